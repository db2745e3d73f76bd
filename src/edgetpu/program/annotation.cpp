#include "edgetpu/program/annotation.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "edgetpu/program/codec.h"

namespace reef::edgetpu::program {
namespace {

namespace alu = spec::value::alu_op;
namespace word = spec::value::descriptor_word;

// Set in alu.op where the second operand is the immediate.
constexpr std::uint32_t immediate_bit = alu::addi_ ^ alu::add_;

bool is_immediate(spec::AluOp op) {
    return (std::to_underlying(op) & immediate_bit) != 0;
}

/// Of registers or an immediate.
std::uint32_t kind_of(spec::AluOp op) {
    return std::to_underlying(op) & ~immediate_bit;
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
    const TypedInstruction typed = decode(instruction);
    if (const auto* slots = std::get_if<Bundle>(&typed.operation)) {
        bundle(*slots, out);
    } else if (const auto* branch = std::get_if<Branch>(&typed.operation)) {
        const auto target = static_cast<std::int64_t>(instruction.word) + branch->offset;
        fmt::format_to(std::back_inserter(out), "to {:#06x}", target);
        forget();
    } else if (const auto* loop = std::get_if<Loop>(&typed.operation)) {
        fmt::format_to(std::back_inserter(out), "repeats {:#06x} to {:#06x}", instruction.word + 1,
                       instruction.word + loop->body);
        forget();
    }
}

void Annotator::bundle(const Bundle& bundle, std::string& out) {
    store(bundle.store, out);  // reads registers as they were before the bundle
    if (bundle.load.op != spec::LoadOp{}) registers_[bundle.load.reg].reset();
    if (bundle.function.op != spec::FunctionOp{}) registers_[bundle.function.dst].reset();
    const auto kind = kind_of(bundle.alu.op);
    const bool compares = kind >= alu::eq_ && kind <= alu::uge_;
    if (bundle.alu.op != spec::AluOp{} && !compares) registers_[bundle.alu.dst] = result(bundle);
}

void Annotator::store(const Bundle::Store& store, std::string& out) {
    if (store.op == spec::StoreOp::descriptor_) {
        if (store.address < descriptor_.size()) descriptor_[store.address] = registers_[store.reg];
    } else if (store.op == spec::StoreOp::fire_) {
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
Annotator::Known Annotator::result(const Bundle& bundle) const {
    if (bundle.gate.enabled) return std::nullopt;
    const auto& [op, dst, src, operand] = bundle.alu;
    const Known right = is_immediate(op) ? Known(operand) : registers_[operand % registers_.size()];
    const Known left = registers_[src];
    const auto kind = kind_of(op);
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

}  // namespace reef::edgetpu::program
