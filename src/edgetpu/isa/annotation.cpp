#include "edgetpu/isa/annotation.h"

#include <fmt/format.h>

#include <iterator>

#include "edgetpu/isa/instruction_kind.h"

namespace reef::edgetpu {
namespace {

namespace bundle_field = spec::field::bundle;

constexpr std::uint64_t store_descriptor = 5;
constexpr std::uint64_t store_fire = 6;

std::uint64_t bits(const Instruction& instruction, unsigned field) {
    return instruction.bits(instruction.info->fields[field]);
}

// Whom a descriptor's tag means.
std::string tag_text(std::uint32_t tag) {
    static constexpr std::string_view names[] = {"instructions", "input activations", "parameters",
                                                 "output activations"};
    if (tag < std::size(names)) return std::string(names[tag]);
    if (tag < 8) return fmt::format("interrupt {}", tag - 4);
    return fmt::format("tag {:#x}", tag);
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
    const auto kind = operation & 31;
    const bool compares = kind >= 0x09 && kind <= 0x0e;
    if (operation && !compares)
        registers_[bits(instruction, bundle_field::alu_dst)] = result(instruction);
}

void Annotator::store(const Instruction& instruction, std::string& out) {
    const auto operation = bits(instruction, bundle_field::store_op);
    if (operation == store_descriptor) {
        const auto word = bits(instruction, bundle_field::store_address);
        if (word < descriptor_.size())
            descriptor_[word] = registers_[bits(instruction, bundle_field::store_reg)];
    } else if (operation == store_fire) {
        out = "DMA";
        if (descriptor_[3]) out += " " + tag_text(*descriptor_[3]);
        if (descriptor_[2]) fmt::format_to(std::back_inserter(out), ", {} bytes", *descriptor_[2]);
        if (descriptor_[0] && descriptor_[1])
            fmt::format_to(std::back_inserter(out), ", at {:#x}",
                           std::uint64_t{*descriptor_[1]} << 32 | *descriptor_[0]);
    }
}

// The value that the arithmetic slot writes, when it is known and unconditional.
Annotator::Known Annotator::result(const Instruction& instruction) const {
    if (bits(instruction, bundle_field::gate)) return std::nullopt;
    const auto operation = bits(instruction, bundle_field::alu_op);
    const auto operand = static_cast<std::uint32_t>(bits(instruction, bundle_field::alu_operand));
    const Known right = operation & 0x20 ? Known(operand) : registers_[operand & 31];
    const Known left = registers_[bits(instruction, bundle_field::alu_src)];
    const auto kind = operation & 31;
    if (kind == 0x0f) return right;
    if (!left || !right) return std::nullopt;
    switch (kind) {
        case 0x01:
            return *left + *right;
        case 0x02:
            return *left - *right;
        case 0x03:
            return *left & *right;
        case 0x04:
            return *left | *right;
        case 0x05:
            return *left ^ *right;
        default:
            return std::nullopt;
    }
}

}  // namespace reef::edgetpu
