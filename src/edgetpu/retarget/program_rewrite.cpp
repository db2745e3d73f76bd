#include "edgetpu/retarget/program_rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <set>

#include "edgetpu/program/codec.h"
#include "edgetpu/retarget/constant_fills.h"
#include "edgetpu/retarget/program_alignment.h"

namespace reef::edgetpu {
namespace {

using Form = Requantisation::Form;

void put(float& member, const std::optional<float>& value) {
    if (value && member != *value) member = *value;  // a zero keeps its sign
}
void put(std::int32_t& member, const std::optional<std::int32_t>& value) {
    if (value) member = *value;
}

void put(program::Tensor& tensor, const Requantisation& values) {
    put(tensor.scale, values.scale);
    put(tensor.clamp_min, values.clamp_min);
    put(tensor.clamp_max, values.clamp_max);
    put(tensor.par_zero, values.weight_zero);
    put(tensor.in_zero, values.in_zero);
    put(tensor.out_zero, values.out_zero);
    put(tensor.initial, values.initial);
}

class Rewriting {
  public:
    /// `program` is decoded from a copy of `stream`.
    Rewriting(MutableBytes stream, std::vector<Instruction> program)
        : stream_(stream), program_(std::move(program)) {}

    Result<std::size_t> run(const std::vector<Replacement>& replacements,
                            const std::vector<BorderFill>& borders) {
        for (const Replacement& one : replacements) {
            const std::size_t index = index_of(one.word);
            auto changed = program::decode(program_[index]);
            put(std::get<program::Tensor>(changed.operation), *one.to);
            REEF_CHECK(write(index, changed));
            if (one.to->form == Form::sum) REEF_CHECK(write_factors(index, one));
        }
        for (const BorderFill& one : borders) REEF_CHECK(write_border(one));
        return changed_.size();
    }

  private:
    /// Of the instruction that begins at a word of the stream.
    [[nodiscard]] std::size_t index_of(std::size_t word) const {
        const auto found = std::ranges::lower_bound(program_, word, {}, &Instruction::word);
        assert(found != program_.end() && found->word == word);
        return static_cast<std::size_t>(found - program_.begin());
    }

    /// Into the stream; what is asked of the program later is what it held before.
    Status write(std::size_t index, const program::TypedInstruction& changed) {
        const auto bits = REEF_TRY(program::encode(changed));
        const Instruction& old = program_[index];
        if (equal_bytes(bits.bytes(), old.bytes)) return {};
        changed_.insert(index);
        std::ranges::copy(bits.bytes(), stream_.subspan(old.word * word_bytes).begin());
        return {};
    }

    [[nodiscard]] std::uint32_t fill_value(std::size_t index) const {
        const auto typed = program::decode(program_[index]);
        return std::get<program::Mesh>(typed.operation).fill_value;
    }

    /// For what a sum reads; networks without sums do without.
    void decode_all() {
        if (!typed_.empty()) return;
        typed_.reserve(program_.size());
        for (const Instruction& one : program_) typed_.push_back(program::decode(one));
        fills_ = constant_fills(typed_);
    }

    static std::int64_t word_of(std::int64_t zero) { return zero * 0x01010101; }

    Status write_fill(std::size_t index, std::int64_t value) {
        if (value < 0 || value > std::numeric_limits<std::uint32_t>::max())
            return fail(Cause::bad_argument, fmt::format("{} does not fit 32 bits", value),
                        "fill_value");
        auto changed = program::decode(program_[index]);
        std::get<program::Mesh>(changed.operation).fill_value = static_cast<std::uint32_t>(value);
        return write(index, changed);
    }

    /// The border of a padded window holds the input's zero point in every byte.
    Status write_border(const BorderFill& border) {
        const std::size_t index = index_of(border.word);
        const std::uint32_t held = fill_value(index);
        if (held != word_of(border.old_zero)) {
            return fail(Cause::unsupported,
                        fmt::format("it fills the border of operator {} with {:#x}, which is not "
                                    "its input's zero point {}",
                                    border.op, held, border.old_zero),
                        name_of(program_[index]));
        }
        const auto [known, is_new] = borders_.try_emplace(index, border.new_zero);
        if (!is_new && known->second != border.new_zero)
            return fail(Cause::unsupported,
                        fmt::format("it fills borders of layers that get the zero points {} and {}",
                                    known->second, border.new_zero),
                        name_of(program_[index]));
        return write_fill(index, word_of(border.new_zero));
    }

    Status write_factors(std::size_t sum, const Replacement& one) {
        if (one.from != nullptr && one.from->factors == one.to->factors) return {};
        decode_all();
        const SumMatrix matrix = REEF_TRY(sum_matrix(program_, typed_, fills_, sum));
        const bool second_first =
            one.second_first ? *one.second_first : REEF_TRY(order_by_factors(matrix, sum, one));
        const SumFactors to = *one.to->factors;
        REEF_CHECK(write_factor(matrix.factors[second_first ? 1 : 0], to.first));
        return write_factor(matrix.factors[second_first ? 0 : 1], to.second);
    }

    Result<bool> order_by_factors(const SumMatrix& matrix, std::size_t sum,
                                  const Replacement& one) const {
        if (one.from == nullptr) {
            if (one.to->factors->first == one.to->factors->second) return false;
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
                return fill_value(entry.fill) == factor << entry.shift;
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
    std::vector<program::TypedInstruction> typed_;  ///< by instruction, or nothing yet
    std::vector<ConstantFill> fills_;
    std::set<std::size_t> changed_;
    std::map<std::size_t, std::int32_t> borders_;  ///< zero points, by index of the fill
};

}  // namespace

Result<std::size_t> rewrite_program(MutableBytes stream,
                                    const std::vector<Replacement>& replacements,
                                    const std::vector<BorderFill>& borders) {
    const std::vector<std::byte> old(stream.begin(), stream.end());
    return Rewriting(stream, REEF_TRY(decode(old))).run(replacements, borders);
}

}  // namespace reef::edgetpu
