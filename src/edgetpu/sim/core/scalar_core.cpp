#include "scalar_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu::sim {
namespace {

namespace field = spec::field;
namespace word = spec::value::descriptor_word;
constexpr auto& bundle_field = spec::bundle_fields;
constexpr auto& branch_field = spec::branch_fields;
constexpr auto& loop_field = spec::loop_fields;
constexpr auto& work_field = spec::narrow_to_wide_fields;

using spec::AluOp;
using spec::FunctionOp;
using spec::LoadOp;
using spec::StoreOp;

// A bit of alu.op selects the immediate; without it these are the operations.
constexpr std::uint64_t immediate_bit =
    std::to_underlying(AluOp::addi_) ^ std::to_underlying(AluOp::add_);
// Bundles after a load, or a function, that no known program lets read its register.
constexpr std::uint8_t bundles_of_load = 1;
constexpr std::uint8_t bundles_of_function = 2;
constexpr std::uint64_t register_mask = scalar_registers - 1;
// What load.op 3 and store.op 3 have above the register's number in every known program.
constexpr std::uint64_t increment_by_one = 1;
constexpr std::uint32_t largest_base = 0xffff;
constexpr std::uint32_t all_tiles = (1U << spec::tile_count) - 1;

bool is(const Instruction& instruction, unsigned op) {
    return instruction.info == &spec::instructions[op];
}

template <typename... Args>
std::unexpected<Error> refuse(const Instruction& instruction, fmt::format_string<Args...> format,
                              Args&&... args) {
    return fail(Cause::unsupported,
                fmt::format("not modelled: {} opcode {:#04x} {}: {}",
                            instruction.info->space == Space::tile ? "tile" : "scalar",
                            instruction.info->opcode, instruction.info->name,
                            fmt::format(format, std::forward<Args>(args)...)),
                fmt::format("word {:#x}", instruction.word),
                "no known program shows what it does; src/edgetpu/sim/scalar_core.cpp is the place "
                "for it");
}

std::int32_t as_signed(std::uint32_t value) {
    return std::bit_cast<std::int32_t>(value);
}

bool is_comparison(AluOp op) {
    return op == AluOp::eq_ || op == AluOp::ne_ || op == AluOp::lt_ || op == AluOp::ge_;
}

bool compare(AluOp op, std::uint32_t a, std::uint32_t b) {
    switch (op) {
        case AluOp::eq_:
            return a == b;
        case AluOp::ne_:
            return a != b;
        case AluOp::lt_:
            return as_signed(a) < as_signed(b);
        default:
            return as_signed(a) >= as_signed(b);
    }
}

bool is_unary(AluOp op) {
    return op == AluOp::mov_ || op == AluOp::to_float_ || op == AluOp::to_int_;
}

/// Operations that occur in known programs, with an immediate or with a register.
bool is_known(AluOp op, bool immediate) {
    switch (op) {
        case AluOp::to_float_:
        case AluOp::to_int_:
        case AluOp::fadd_:
        case AluOp::fsub_:
            return !immediate;
        case AluOp::fmin_:
            return immediate;
        case AluOp::fmul_:
        case AluOp::fmax_:
        case AluOp::add_:
        case AluOp::sub_:
        case AluOp::and_:
        case AluOp::or_:
        case AluOp::xor_:
        case AluOp::shl_:
        case AluOp::shr_:
        case AluOp::eq_:
        case AluOp::ne_:
        case AluOp::lt_:
        case AluOp::ge_:
        case AluOp::mov_:
            return true;
        default:
            return false;
    }
}

std::string_view why_unknown(AluOp op) {
    if (op == AluOp::shl_ || op == AluOp::shr_) return "a shift of 32 or more";
    if (op == AluOp::to_float_) return "a conversion that rounds";
    if (op == AluOp::to_int_) return "a conversion out of range";
    return "what is no number";
}

bool is_float(AluOp op) {
    return op == AluOp::fadd_ || op == AluOp::fsub_ || op == AluOp::fmul_ || op == AluOp::fmax_ ||
           op == AluOp::fmin_;
}

/// Nothing for what is no number.
std::optional<std::uint32_t> calculate(AluOp op, float a, float b) {
    if (std::isnan(a) || std::isnan(b)) return std::nullopt;
    switch (op) {
        case AluOp::fadd_:
            return std::bit_cast<std::uint32_t>(a + b);
        case AluOp::fsub_:
            return std::bit_cast<std::uint32_t>(a - b);
        case AluOp::fmul_:
            return std::bit_cast<std::uint32_t>(a * b);
        case AluOp::fmax_:
            return std::bit_cast<std::uint32_t>(std::max(a, b));
        default:
            return std::bit_cast<std::uint32_t>(std::min(a, b));
    }
}

/// Nothing when the number of the result would depend on a rounding or a shift that no program
/// shows. Precondition: known and no comparison.
std::optional<std::uint32_t> calculate(AluOp op, std::uint32_t a, std::uint32_t b) {
    if (is_float(op)) return calculate(op, std::bit_cast<float>(a), std::bit_cast<float>(b));
    switch (op) {
        case AluOp::add_:
            return a + b;
        case AluOp::sub_:
            return a - b;
        case AluOp::and_:
            return a & b;
        case AluOp::or_:
            return a | b;
        case AluOp::xor_:
            return a ^ b;
        case AluOp::shl_:
            return b < 32 ? std::optional(a << b) : std::nullopt;
        case AluOp::shr_:
            return b < 32 ? std::optional(a >> b) : std::nullopt;
        case AluOp::to_float_: {
            const auto number = static_cast<float>(as_signed(b));
            if (static_cast<double>(number) != as_signed(b)) return std::nullopt;
            return std::bit_cast<std::uint32_t>(number);
        }
        case AluOp::to_int_: {
            const auto number = std::bit_cast<float>(b);
            const bool fits = number >= -0x1p31F && number < 0x1p31F;
            if (!fits) return std::nullopt;
            return static_cast<std::uint32_t>(static_cast<std::int32_t>(std::nearbyint(number)));
        }
        default:
            return b;
    }
}

}  // namespace

/// What a bundle's slots will write, so that all of them read the state before it.
struct ScalarCore::Writes {
    struct Register {
        std::uint8_t number;
        std::uint32_t value;
    };
    std::optional<Register> loaded;
    std::optional<Register> load_counted;   // address register of load.op 3
    std::optional<Register> store_counted;  // address register of store.op 3
    std::optional<Register> computed;
    std::optional<Register> function;
    std::optional<Register> predicate;
    std::optional<Register> descriptor_word;
};

ScalarCore::ScalarCore() : memory_(scalar_memory_words) {}

void ScalarCore::begin_stream() {
    pc_ = 0;
    loop_ = {};
    loaded_ = {};
    function_ = {};
}

void ScalarCore::reset() {
    begin_stream();
    registers_.fill(0);
    predicates_.fill(false);
    std::ranges::fill(memory_, 0);
    descriptor_.fill(0);
}

bool ScalarCore::executes(const Instruction& instruction) {
    using namespace spec;
    return is(instruction, op::bundle) || is(instruction, op::branch) ||
           is(instruction, op::loop) || is(instruction, op::start) || is(instruction, op::halt) ||
           is(instruction, op::end);
}

bool ScalarCore::gate_open(const Instruction& instruction) const {
    // All instructions have their gate in the same place.
    if (instruction.bits(bundle_field[field::bundle::gate]) == 0) return true;
    const auto predicate = instruction.bits(bundle_field[field::bundle::predicate]);
    return predicates_[predicate] == (instruction.bits(bundle_field[field::bundle::sense]) != 0);
}

Result<TileIssue> ScalarCore::issue(const Instruction& instruction) const {
    if (!gate_open(instruction)) return TileIssue{.issued = false, .tiles = 0};
    // All tile instructions have their bitmap in the same place, all but fences the registers.
    TileIssue out{.tiles = static_cast<std::uint16_t>(
                      instruction.bits(work_field[field::narrow_to_wide::tiles]))};
    if (is(instruction, spec::op::fence)) return out;
    const auto base_register = instruction.bits(work_field[field::narrow_to_wide::base_register]);
    if (base_register != 0) {
        if (!is(instruction, spec::op::narrow_to_wide))
            return refuse(instruction, "base_register {}", base_register);
        REEF_CHECK(refuse_fresh(instruction, base_register));
        out.source_base = registers_[base_register];
        if (*out.source_base > largest_base)
            return fail(Cause::bad_input,
                        fmt::format("register {} holds the base {:#x}, which has more than 16 bits",
                                    base_register, *out.source_base),
                        fmt::format("word {:#x}", instruction.word));
    }
    if (instruction.bits(work_field[field::narrow_to_wide::tiles_indirect]) == 0) return out;
    const auto reg = instruction.bits(work_field[field::narrow_to_wide::tiles_register]);
    REEF_CHECK(refuse_fresh(instruction, reg));
    if (out.tiles != 0)
        return refuse(instruction, "tiles {:#06x} and those of register {}", out.tiles, reg);
    if (registers_[reg] == 0 || registers_[reg] > all_tiles)
        return fail(Cause::bad_input,
                    fmt::format("register {} holds the tiles {:#x}", reg, registers_[reg]),
                    fmt::format("word {:#x}", instruction.word));
    out.tiles = static_cast<std::uint16_t>(registers_[reg]);
    return out;
}

void ScalarCore::advance(const Instruction& instruction) {
    pc_ += instruction.info->words;
    if (loop_.behind == 0 || pc_ < loop_.behind) return;
    if (loop_.passes_left > 0) {
        --loop_.passes_left;
        pc_ = loop_.first;
    } else {
        loop_ = {};
    }
}

void ScalarCore::age() {
    for (Pending* pending : {&loaded_, &function_})
        if (pending->bundles > 0) --pending->bundles;
}

void ScalarCore::pass(const Instruction& instruction) {
    age();
    advance(instruction);
}

void ScalarCore::pass_up_to(const Instruction& last, std::size_t count) {
    for (; count > 0 && (loaded_.bundles > 0 || function_.bundles > 0); --count) age();
    pc_ = last.word + last.info->words;
}

Result<Effect> ScalarCore::execute(const Instruction& instruction) {
    if (!gate_open(instruction)) {
        pass(instruction);
        return Effect{.next = pc_, .executed = false};
    }
    if (is(instruction, spec::op::bundle)) return bundle(instruction);
    if (is(instruction, spec::op::branch)) return branch(instruction);
    if (is(instruction, spec::op::loop)) return start_loop(instruction);
    pass(instruction);
    return Effect{.next = pc_, .halted = is(instruction, spec::op::halt)};
}

Status ScalarCore::refuse_fresh(const Instruction& instruction, std::uint64_t reg) const {
    if (loaded_.bundles > 0 && loaded_.number == reg)
        return refuse(instruction, "register {} is read by the bundle right after its load", reg);
    if (function_.bundles > 0 && function_.number == reg)
        return refuse(instruction,
                      "register {} is read by one of the {} bundles after its function", reg,
                      bundles_of_function);
    return {};
}

Result<Effect> ScalarCore::bundle(const Instruction& instruction) {
    Writes writes;
    Effect effect;
    REEF_CHECK(load_slot(instruction, writes, effect));
    REEF_CHECK(store_slot(instruction, writes, effect));
    REEF_CHECK(alu_slot(instruction, writes));
    REEF_CHECK(function_slot(instruction, writes));
    std::uint32_t written = 0;
    for (const auto& write : {writes.loaded, writes.load_counted, writes.store_counted,
                              writes.computed, writes.function}) {
        if (!write) continue;
        const auto bit = std::uint32_t{1} << write->number;
        if (written & bit)
            return refuse(instruction, "register {} is written by two slots", write->number);
        written |= bit;
        registers_[write->number] = write->value;
    }
    if (writes.predicate) predicates_[writes.predicate->number] = writes.predicate->value != 0;
    if (writes.descriptor_word)
        descriptor_[writes.descriptor_word->number] = writes.descriptor_word->value;
    if (effect.written) memory_[effect.written->address.word] = effect.written->value;
    age();
    if (writes.loaded) loaded_ = {writes.loaded->number, bundles_of_load};
    if (writes.function) function_ = {writes.function->number, bundles_of_function};
    advance(instruction);
    effect.next = pc_;
    effect.branched = pc_ != instruction.word + instruction.info->words;
    return effect;
}

Status ScalarCore::load_slot(const Instruction& instruction, Writes& writes, Effect& effect) const {
    const auto op = static_cast<LoadOp>(instruction.bits(bundle_field[field::bundle::load_op]));
    if (op == LoadOp::none_) return {};
    const auto operand = instruction.bits(bundle_field[field::bundle::load_address]);
    const auto target =
        static_cast<std::uint8_t>(instruction.bits(bundle_field[field::bundle::load_reg]));
    auto address = operand;
    if (op != LoadOp::load_) {
        const auto reg = operand & register_mask;
        const auto step = operand / scalar_registers;
        if (step != (op == LoadOp::load_increment_ ? increment_by_one : 0))
            return refuse(instruction, "load.op {} with load.address {:#x}",
                          static_cast<unsigned>(op), operand);
        REEF_CHECK(refuse_fresh(instruction, reg));
        address = registers_[reg];
        if (op == LoadOp::load_increment_)
            writes.load_counted = {static_cast<std::uint8_t>(reg), registers_[reg] + 1};
    }
    if (address >= scalar_memory_words)
        return fail(Cause::bad_input,
                    fmt::format("load of word {:#x} of scalar memory, which has {:#x}", address,
                                scalar_memory_words),
                    fmt::format("word {:#x}", instruction.word));
    effect.read = ScalarAddress{static_cast<std::uint32_t>(address)};
    writes.loaded = {target, memory_[address]};
    return {};
}

Status ScalarCore::store_slot(const Instruction& instruction, Writes& writes,
                              Effect& effect) const {
    const auto code = instruction.bits(bundle_field[field::bundle::store_op]);
    const auto op = static_cast<StoreOp>(code);
    if (op == StoreOp::none_) return {};
    if (op == StoreOp::fire_) return fire(instruction, effect);
    if (op > StoreOp::fire_) return refuse(instruction, "store.op {}", code);
    const auto operand = instruction.bits(bundle_field[field::bundle::store_address]);
    const auto source = instruction.bits(bundle_field[field::bundle::store_reg]);
    REEF_CHECK(refuse_fresh(instruction, source));
    const auto value = registers_[source];
    if (op == StoreOp::write_fifo_) {
        if (operand != 0) return refuse(instruction, "store.op 4 with FIFO {}", operand);
        effect.to_host = value;
        return {};
    }
    if (op == StoreOp::descriptor_) {
        if (operand >= descriptor_words)
            return refuse(instruction, "word {} of the DMA descriptor", operand);
        writes.descriptor_word = {static_cast<std::uint8_t>(operand), value};
        return {};
    }
    auto address = operand;
    if (op != StoreOp::store_) {
        const auto reg = operand & register_mask;
        if (operand / scalar_registers != (op == StoreOp::store_increment_ ? increment_by_one : 0))
            return refuse(instruction, "store.op {} with store.address {:#x}", code, operand);
        REEF_CHECK(refuse_fresh(instruction, reg));
        address = registers_[reg];
        if (op == StoreOp::store_increment_)
            writes.store_counted = {static_cast<std::uint8_t>(reg), registers_[reg] + 1};
    }
    if (address >= scalar_memory_words)
        return fail(Cause::bad_input,
                    fmt::format("store to word {:#x} of scalar memory, which has {:#x}", address,
                                scalar_memory_words),
                    fmt::format("word {:#x}", instruction.word));
    effect.written = {{static_cast<std::uint32_t>(address)}, value};
    return {};
}

Status ScalarCore::fire(const Instruction& instruction, Effect& effect) const {
    const auto operand = instruction.bits(bundle_field[field::bundle::store_address]);
    const auto reg = instruction.bits(bundle_field[field::bundle::store_reg]);
    if (operand != 0 || reg != 0)
        return refuse(instruction, "store.op 6 with store.address {:#x} and store.reg {}", operand,
                      reg);
    const auto tag = descriptor_[word::tag_];
    if (tag < static_cast<std::uint32_t>(Tag::input_activations) ||
        tag > static_cast<std::uint32_t>(Tag::interrupt_3))
        return refuse(instruction, "a DMA descriptor with tag {}", tag);
    effect.fired = {
        {std::uint64_t{descriptor_[word::address_high_]} << 32 | descriptor_[word::address_low_]},
        descriptor_[word::bytes_],
        static_cast<Tag>(tag)};
    return {};
}

Status ScalarCore::alu_slot(const Instruction& instruction, Writes& writes) const {
    const auto code = instruction.bits(bundle_field[field::bundle::alu_op]);
    if (code == 0) return {};
    const bool immediate = (code & immediate_bit) != 0;
    const auto op = static_cast<AluOp>(code & ~immediate_bit);
    const auto target = instruction.bits(bundle_field[field::bundle::alu_dst]);
    const auto source = instruction.bits(bundle_field[field::bundle::alu_src]);
    const auto operand = instruction.bits(bundle_field[field::bundle::alu_operand]);
    if (!is_known(op, immediate)) return refuse(instruction, "alu.op {:#04x}", code);
    if (!immediate && operand >= scalar_registers)
        return refuse(instruction, "alu.op {:#04x} with register {}", code, operand);
    if (!immediate) REEF_CHECK(refuse_fresh(instruction, operand));
    if (!is_unary(op)) REEF_CHECK(refuse_fresh(instruction, source));
    const auto a = registers_[source];
    const auto b = immediate ? static_cast<std::uint32_t>(operand) : registers_[operand];
    if (is_comparison(op)) {
        if (target >= scalar_predicates)
            return refuse(instruction, "alu.op {:#04x} into predicate {}", code, target);
        writes.predicate = {static_cast<std::uint8_t>(target), compare(op, a, b)};
        return {};
    }
    const auto value = calculate(op, a, b);
    if (!value)
        return refuse(instruction, "alu.op {:#04x} of {:#x} and {:#x}: {}", code, a, b,
                      why_unknown(op));
    writes.computed = {static_cast<std::uint8_t>(target), *value};
    return {};
}

Status ScalarCore::function_slot(const Instruction& instruction, Writes& writes) const {
    const auto code = instruction.bits(bundle_field[field::bundle::function_op]);
    const auto op = static_cast<FunctionOp>(code);
    const auto target = instruction.bits(bundle_field[field::bundle::function_dst]);
    const auto source = instruction.bits(bundle_field[field::bundle::function_src]);
    if (op == FunctionOp::none_) return {};
    if (op != FunctionOp::reciprocal_ && op != FunctionOp::exp2_)
        return refuse(instruction, "function.op {}", code);
    REEF_CHECK(refuse_fresh(instruction, source));
    const auto x = std::bit_cast<float>(registers_[source]);
    const auto y = static_cast<float>(op == FunctionOp::exp2_ ? std::exp2(double{x}) : 1.0 / x);
    if (!std::isfinite(y)) return refuse(instruction, "function.op {} of {}", code, x);
    writes.function = {static_cast<std::uint8_t>(target), std::bit_cast<std::uint32_t>(y)};
    return {};
}

Result<Effect> ScalarCore::branch(const Instruction& instruction) {
    if (loop_.behind != 0) return refuse(instruction, "a branch inside a hardware loop");
    age();
    bool taken = true;
    if (instruction.bits(branch_field[field::branch::condition_enable]) != 0) {
        const auto predicate = instruction.bits(branch_field[field::branch::condition_predicate]);
        const auto sense = instruction.bits(branch_field[field::branch::condition_sense]);
        if (predicate != 0 || sense == 0)
            return refuse(instruction, "condition.predicate {} with condition.sense {}", predicate,
                          sense);
        taken = predicates_[0];
    }
    if (!taken) {
        advance(instruction);
        return Effect{.next = pc_};
    }
    const auto target = static_cast<std::int64_t>(instruction.word) +
                        instruction.value(branch_field[field::branch::offset]);
    if (target < 0)
        return fail(Cause::bad_input, fmt::format("the branch goes to word {}", target),
                    fmt::format("word {:#x}", instruction.word));
    pc_ = static_cast<std::size_t>(target);
    return Effect{.next = pc_, .branched = true};
}

Result<Effect> ScalarCore::start_loop(const Instruction& instruction) {
    if (loop_.behind != 0) return refuse(instruction, "a loop inside a loop");
    age();
    const auto count = instruction.bits(loop_field[field::loop::count]);
    const auto body = instruction.bits(loop_field[field::loop::body]);
    if (count == 0 || body == 0) return refuse(instruction, "{} passes of {} bundles", count, body);
    advance(instruction);
    loop_ = {
        .first = pc_, .behind = pc_ + body, .passes_left = static_cast<std::uint32_t>(count) - 1};
    return Effect{.next = pc_};
}

}  // namespace reef::edgetpu::sim
