#include "edgetpu/retarget/program_rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "edgetpu/retarget/constant_fills.h"
#include "edgetpu/retarget/program_alignment.h"

namespace reef::edgetpu {
namespace {

using Form = Requantisation::Form;

/// Writes the values that differ; a zero keeps its sign. Gives whether anything was written.
Result<bool> write_values(MutableBytes bytes, const Instruction& instruction,
                          const Requantisation& values) {
    bool changed = false;
    const auto write = [&](std::string_view field, std::int64_t value) -> Status {
        if (instruction.value(field) == value) return {};
        changed = true;
        return set_field(bytes, *instruction.info->find(field), value);
    };
    const auto write_real = [&](std::string_view field, std::optional<float> value) -> Status {
        if (!value) return {};
        const auto held = static_cast<std::uint32_t>(instruction.value(field).value());
        if (std::bit_cast<float>(held) == *value) return {};
        return write(field, std::bit_cast<std::uint32_t>(*value));
    };
    const auto write_number = [&](std::string_view field,
                                  std::optional<std::int32_t> value) -> Status {
        return value ? write(field, *value) : Status{};
    };
    REEF_CHECK(write_real("scale", values.scale));
    REEF_CHECK(write_real("clamp_min", values.clamp_min));
    REEF_CHECK(write_real("clamp_max", values.clamp_max));
    REEF_CHECK(write_number("par_zero", values.weight_zero));
    REEF_CHECK(write_number("in_zero", values.in_zero));
    REEF_CHECK(write_number("out_zero", values.out_zero));
    REEF_CHECK(write_number("initial", values.initial));
    return changed;
}

class Rewriting {
  public:
    /// `program` is decoded from a copy of `stream`.
    Rewriting(MutableBytes stream, std::vector<Instruction> program)
        : stream_(stream), program_(std::move(program)) {
        for (std::size_t i = 0; i < program_.size(); ++i) index_of_.emplace(program_[i].word, i);
        fills_ = constant_fills(program_);
    }

    Result<std::size_t> run(const std::vector<Replacement>& replacements) {
        for (const Replacement& one : replacements) {
            const std::size_t index = index_of_.at(one.word);
            if (REEF_TRY(write_values(bytes_of(index), program_[index], *one.to))) {
                changed_.insert(index);
            }
            if (one.to->form == Form::layer) REEF_CHECK(write_border(index, one));
            if (one.to->form == Form::sum) REEF_CHECK(write_factors(index, one));
        }
        return changed_.size();
    }

  private:
    MutableBytes bytes_of(std::size_t index) {
        return stream_.subspan(program_[index].word * word_bytes, program_[index].bytes.size());
    }

    static std::int64_t word_of(std::int64_t zero) { return zero * 0x01010101; }

    Status write_fill(std::size_t index, std::int64_t value) {
        const Instruction& fill = program_[index];
        if (fill.value("fill_value") == value) return {};
        changed_.insert(index);
        return set_field(bytes_of(index), *fill.info->find("fill_value"), value);
    }

    /// The border of a padded window holds the input's zero point in every byte.
    Status write_border(std::size_t layer, const Replacement& replacement) {
        const Requantisation& to = *replacement.to;
        const std::int64_t old_zero = program_[layer].value("in_zero").value();
        if (old_zero == to.in_zero) return {};
        for (const std::size_t word : replacement.border) {
            const std::size_t index = index_of_.at(word);
            const Instruction& fill = program_[index];
            if (fill.value("fill_value") != word_of(old_zero)) {
                return fail(Cause::unsupported,
                            fmt::format("it fills the border of operator {} with {:#x}, which is "
                                        "not its input's zero point {}",
                                        to.op, fill.value("fill_value").value(), old_zero),
                            name_of(fill));
            }
            const auto [known, is_new] = borders_.try_emplace(index, *to.in_zero);
            if (!is_new && known->second != *to.in_zero)
                return fail(Cause::unsupported,
                            fmt::format("it fills borders of layers that get the zero points {} "
                                        "and {}",
                                        known->second, *to.in_zero),
                            name_of(fill));
            REEF_CHECK(write_fill(index, word_of(*to.in_zero)));
        }
        return {};
    }

    Status write_factors(std::size_t sum, const Replacement& one) {
        if (one.from != nullptr && one.from->factors == one.to->factors) return {};
        const SumMatrix matrix = REEF_TRY(sum_matrix(program_, fills_, sum));
        const bool second_first =
            one.second_first ? *one.second_first : REEF_TRY(order_by_factors(matrix, sum, one));
        const SumFactors to = *one.to->factors;
        REEF_CHECK(write_factor(matrix.factors[second_first ? 1 : 0], to.first));
        return write_factor(matrix.factors[second_first ? 0 : 1], to.second);
    }

    Result<bool> order_by_factors(const SumMatrix& matrix, std::size_t sum,
                                  const Replacement& one) const {
        if (one.from == nullptr) {
            return fail(Cause::unsupported,
                        "which of its operands comes first in the program is not known",
                        name_of(program_[sum]));
        }
        const bool straight = holds(matrix, *one.from->factors);
        const SumFactors turned{one.from->factors->second, one.from->factors->first};
        if (straight != holds(matrix, turned)) return !straight;
        return fail(Cause::unsupported,
                    straight ? "its operands have one factor, so that their order in the "
                               "program is not known"
                             : "the program holds other factors than the source's",
                    name_of(program_[sum]));
    }

    bool holds(const SumMatrix& matrix, const SumFactors& factors) const {
        const auto all = [&](const std::vector<SumMatrix::Entry>& entries, std::int64_t factor) {
            return std::ranges::all_of(entries, [&](const SumMatrix::Entry& entry) {
                return program_[entry.fill].value("fill_value") == factor << entry.shift;
            });
        };
        return all(matrix.factors[0], factors.first) && all(matrix.factors[1], factors.second);
    }

    Status write_factor(const std::vector<SumMatrix::Entry>& entries, std::int64_t factor) {
        for (const SumMatrix::Entry& entry : entries) {
            REEF_CHECK(write_fill(entry.fill, factor << entry.shift));
        }
        return {};
    }

    MutableBytes stream_;
    std::vector<Instruction> program_;
    std::map<std::size_t, std::size_t> index_of_;  ///< by word
    std::vector<ConstantFill> fills_;
    std::set<std::size_t> changed_;
    std::map<std::size_t, std::int32_t> borders_;  ///< zero points, by index of the fill
};

}  // namespace

Result<std::size_t> rewrite_program(MutableBytes stream,
                                    const std::vector<Replacement>& replacements) {
    const std::vector<std::byte> old(stream.begin(), stream.end());
    return Rewriting(stream, REEF_TRY(decode(old))).run(replacements);
}

}  // namespace reef::edgetpu
