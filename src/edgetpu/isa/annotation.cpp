#include "edgetpu/isa/annotation.h"

#include <fmt/format.h>

#include <iterator>

#include "edgetpu/isa/instruction_kind.h"

namespace reef::edgetpu {
namespace {

namespace bundle_field = spec::field::bundle;

namespace alu = spec::value::alu_op;
namespace word = spec::value::descriptor_word;

// Set in alu.op where the second operand is the immediate.
constexpr unsigned immediate_bit = alu::addi_ ^ alu::add_;

std::uint64_t bits(const Instruction& instruction, unsigned field) {
    return instruction.bits(instruction.info->fields[field]);
}

// Whom a descriptor's tag means.
std::string tag_text(std::uint32_t tag) {
    const auto* known = spec::dma_tag_enumeration.find(tag);
    return known != nullptr ? std::string(known->meaning) : fmt::format("tag {:#x}", tag);
}

}  // namespace

void Annotator::comment(const Instruction& instruction, std::string& out) {
    out.clear();
    if (!instruction.info || instruction.info->space == Space::tile) return;
    if (is(instruction, spec::op::bundle)) {
        bundle(instruction, out);
    } else if (is(instruction, spec::op::branch)) {
        const auto& offset = instruction.info->fields[spec::field::branch::offset];
        const auto target = static_cast<std::int64_t>(instruction.word) + instruction.value(offset);
        fmt::format_to(std::back_inserter(out), "to {:#06x}", target);
        forget();
    } else if (is(instruction, spec::op::loop)) {
        fmt::format_to(std::back_inserter(out), "repeats {:#06x} to {:#06x}", instruction.word + 1,
                       instruction.word + bits(instruction, spec::field::loop::body));
        forget();
    }
}

void Annotator::bundle(const Instruction& instruction, std::string& out) {
    store(instruction, out);  // reads registers as they were before the bundle
    if (bits(instruction, bundle_field::load_op))
        registers_[bits(instruction, bundle_field::load_reg)].reset();
    const auto operation = bits(instruction, bundle_field::alu_op);
    const auto kind = operation & ~std::uint64_t{immediate_bit};
    const bool compares = kind >= alu::eq_ && kind <= alu::uge_;
    if (operation && !compares)
        registers_[bits(instruction, bundle_field::alu_dst)] = result(instruction);
}

void Annotator::store(const Instruction& instruction, std::string& out) {
    const auto operation = bits(instruction, bundle_field::store_op);
    if (operation == spec::value::store_op::descriptor_) {
        const auto at = bits(instruction, bundle_field::store_address);
        if (at < descriptor_.size())
            descriptor_[at] = registers_[bits(instruction, bundle_field::store_reg)];
    } else if (operation == spec::value::store_op::fire_) {
        out = "DMA";
        if (descriptor_[word::tag_]) out += " " + tag_text(*descriptor_[word::tag_]);
        if (descriptor_[word::bytes_])
            fmt::format_to(std::back_inserter(out), ", {} bytes", *descriptor_[word::bytes_]);
        if (descriptor_[word::address_low_] && descriptor_[word::address_high_])
            fmt::format_to(std::back_inserter(out), ", at {:#x}",
                           std::uint64_t{*descriptor_[word::address_high_]} << 32 |
                               *descriptor_[word::address_low_]);
    }
}

// The value that the arithmetic slot writes, when it is known and unconditional.
Annotator::Known Annotator::result(const Instruction& instruction) const {
    if (bits(instruction, bundle_field::gate)) return std::nullopt;
    const auto operation = bits(instruction, bundle_field::alu_op);
    const auto operand = static_cast<std::uint32_t>(bits(instruction, bundle_field::alu_operand));
    const Known right =
        operation & immediate_bit ? Known(operand) : registers_[operand % registers_.size()];
    const Known left = registers_[bits(instruction, bundle_field::alu_src)];
    const auto kind = operation & ~std::uint64_t{immediate_bit};
    if (kind == alu::mov_) return right;
    if (!left || !right) return std::nullopt;
    switch (kind) {
        case alu::add_:
            return *left + *right;
        case alu::sub_:
            return *left - *right;
        case alu::and_:
            return *left & *right;
        case alu::or_:
            return *left | *right;
        case alu::xor_:
            return *left ^ *right;
        default:
            return std::nullopt;
    }
}

}  // namespace reef::edgetpu
