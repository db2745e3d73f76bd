#include "edgetpu/retarget/constant_fills.h"

#include <algorithm>

#include "edgetpu/isa/loop_nest.h"
#include "edgetpu/retarget/program_alignment.h"

namespace reef::edgetpu {
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
std::optional<Span> span_of(const Instruction& instruction, std::string_view name,
                            std::int64_t unit) {
    const auto& groups = instruction.info->groups;
    const auto group = std::ranges::find(groups, name, &FieldGroup::name);
    if (group == groups.end() || group->kind != GroupKind::loop_nest) return std::nullopt;
    const LoopNest nest = read_loop_nest(instruction.bytes, *instruction.info, *group);
    auto first = static_cast<std::int64_t>(nest.base), last = first;
    for (unsigned d = 0; d < nest.dimensions; ++d) {
        const auto way = static_cast<std::int64_t>(nest.strides[d] * nest.limits[d]);
        (way < 0 ? first : last) += way;
    }
    return Span{first * unit, last * unit + bytes_per_word - 1};
}

bool fills(const Instruction& instruction) {
    return instruction.value("fill").value_or(0) != 0;
}

/// What a mac or a narrow_to_wide reads of narrow memory.
std::optional<Span> read_by(const Instruction& instruction) {
    if (instruction.info->name == "mac") return span_of(instruction, "in", 1);
    if (instruction.info->name == "narrow_to_wide") {
        return span_of(instruction, "src", bytes_per_word);
    }
    return std::nullopt;
}

bool share_a_tile(const Instruction& a, const Instruction& b) {
    return (a.value("tiles").value_or(0) & b.value("tiles").value_or(0)) != 0;
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

std::vector<ConstantFill> constant_fills(const std::vector<Instruction>& program) {
    std::vector<std::optional<Span>> reads;
    reads.reserve(program.size());
    for (const Instruction& one : program) reads.push_back(read_by(one));
    std::vector<ConstantFill> found;
    for (std::size_t i = 0; i < program.size(); ++i) {
        if (!fills(program[i])) continue;
        const auto written = span_of(program[i], "dst", bytes_per_word);
        if (!written) continue;
        for (std::size_t j = i + 1; j < program.size(); ++j) {
            if (!reads[j] || !reads[j]->meets(*written) || !share_a_tile(program[i], program[j])) {
                continue;
            }
            found.push_back({i, j});
            break;
        }
    }
    return found;
}

Result<SumMatrix> sum_matrix(const std::vector<Instruction>& program,
                             const std::vector<ConstantFill>& fills, std::size_t sum) {
    constexpr std::int64_t quarters_per_row = 4;
    const std::int64_t row = program[sum].value("par.base").value() / quarters_per_row;
    std::size_t writer = sum;
    while (writer > 0) {
        const Instruction& one = program[--writer];
        if (one.info->name == "narrow_to_wide" && share_a_tile(one, program[sum]) &&
            one.value("dst.base") == row) {
            break;
        }
    }
    if (program[writer].info->name != "narrow_to_wide") return unknown_matrix(program[sum]);
    const std::int64_t base = program[writer].value("src.base").value();
    SumMatrix matrix;
    for (const ConstantFill& one : fills) {
        if (one.reader != writer) continue;
        const auto word =
            static_cast<std::size_t>(program[one.fill].value("dst.base").value() - base);
        const bool single = program[one.fill].value("dst.limit0") == 0;
        if (const auto shift = shift_of(word); shift && single && word < 16) {
            matrix.factors[word / 8].push_back({one.fill, *shift});
        }
    }
    for (const auto& entries : matrix.factors) {
        if (entries.size() != 4) return unknown_matrix(program[sum]);
    }
    return matrix;
}

}  // namespace reef::edgetpu
