#include "edgetpu/retarget/constant_fills.h"

#include <algorithm>

#include "edgetpu/program/codec.h"
#include "edgetpu/retarget/program_alignment.h"

namespace reef::edgetpu {

using program::Operation;
using program::TypedInstruction;

namespace {

/// Bytes of narrow memory, both ends included.
struct Span {
    std::int64_t first = 0, last = 0;
    [[nodiscard]] bool meets(const Span& other) const {
        return first <= other.last && other.first <= last;
    }
};

constexpr std::int64_t bytes_per_word = 4;

/// From the lowest to the highest address of a loop nest in units of `unit` bytes; reads and writes
/// are of whole words.
Span span_of(const program::LoopNest& nest, std::int64_t unit) {
    const auto strides = program::strides_of(nest);
    std::int64_t first = nest.base, last = nest.base;
    for (unsigned d = 0; d < nest.dimensions; ++d) {
        const auto way = static_cast<std::int64_t>(strides[d] * (nest.count[d] - std::uint64_t{1}));
        (way < 0 ? first : last) += way;
    }
    return Span{first * unit, last * unit + bytes_per_word - 1};
}

/// What a mac or a narrow_to_wide reads of narrow memory.
std::optional<Span> read_by(const Operation& operation) {
    if (const auto* tensor = std::get_if<program::Tensor>(&operation))
        if (tensor->kind == program::TensorKind::mac) return span_of(tensor->in, 1);
    if (const auto* copy = std::get_if<program::NarrowToWide>(&operation))
        return span_of(copy->src, bytes_per_word);
    return std::nullopt;
}

bool share_a_tile(const Operation& a, const Operation& b) {
    return (program::tiles_of(a) & program::tiles_of(b)) != 0;
}

std::unexpected<Error> unknown_matrix(const Instruction& sum) {
    return fail(Cause::unsupported, "the program does not make its two factors in the known way",
                name_of(sum));
}

/// The word of the matrix, and how far its factor is shifted.
std::optional<unsigned> shift_of(std::size_t word) {
    switch (word % 8) {
        case 0:
        case 6:
            return 0;
        case 1:
        case 7:
            return 16;
        default:
            return std::nullopt;
    }
}

}  // namespace

std::vector<ConstantFill> constant_fills(const std::vector<TypedInstruction>& program) {
    std::vector<std::optional<Span>> reads;
    reads.reserve(program.size());
    for (const auto& one : program) reads.push_back(read_by(one.operation));
    std::vector<ConstantFill> found;
    for (std::size_t i = 0; i < program.size(); ++i) {
        const auto* mesh = std::get_if<program::Mesh>(&program[i].operation);
        if (mesh == nullptr || !mesh->fills) continue;
        const Span written = span_of(mesh->dst, bytes_per_word);
        for (std::size_t j = i + 1; j < program.size(); ++j) {
            if (!reads[j] || !reads[j]->meets(written) ||
                !share_a_tile(program[i].operation, program[j].operation)) {
                continue;
            }
            found.push_back({i, j});
            break;
        }
    }
    return found;
}

Result<SumMatrix> sum_matrix(const std::vector<Instruction>& names,
                             const std::vector<TypedInstruction>& program,
                             const std::vector<ConstantFill>& fills, std::size_t sum) {
    constexpr std::int32_t quarters_per_row = 4;
    const auto& operation = program[sum].operation;
    const std::int32_t row = std::get<program::Tensor>(operation).par.base / quarters_per_row;
    std::size_t writer = sum;
    while (writer > 0) {
        const auto& one = program[--writer].operation;
        const auto* copy = std::get_if<program::NarrowToWide>(&one);
        if (copy != nullptr && share_a_tile(one, operation) && copy->dst.base == row) break;
    }
    const auto* copy = std::get_if<program::NarrowToWide>(&program[writer].operation);
    if (copy == nullptr) return unknown_matrix(names[sum]);
    SumMatrix matrix;
    for (const ConstantFill& one : fills) {
        if (one.reader != writer) continue;
        const program::LoopNest& dst = std::get<program::Mesh>(program[one.fill].operation).dst;
        const auto word = static_cast<std::size_t>(std::int64_t{dst.base} - copy->src.base);
        const bool single = dst.count[0] == 1;
        if (const auto shift = shift_of(word); shift && single && word < 16) {
            matrix.factors[word / 8].push_back({one.fill, *shift});
        }
    }
    for (const auto& entries : matrix.factors) {
        if (entries.size() != 4) return unknown_matrix(names[sum]);
    }
    return matrix;
}

}  // namespace reef::edgetpu
