#include "reef/sophgo/bisect.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "sophgo/final/plan.h"

namespace reef::sophgo {
namespace {

bool is_integer(ElementType type) {
    switch (type) {
        case ElementType::int8:
        case ElementType::uint8:
        case ElementType::int16:
        case ElementType::uint16:
        case ElementType::int32:
        case ElementType::uint32:
        case ElementType::int64:
        case ElementType::uint64:
            return true;
        default:
            return false;
    }
}

template <class T>
T element(const Array& array, std::size_t index) {
    T value;
    std::memcpy(&value, array.data.data() + index * sizeof(T), sizeof(T));
    return value;
}

double half(std::uint16_t bits) {
    const int exponent = (bits >> 10) & 31;
    const double fraction = bits & 1023;
    double value = 0;
    if (exponent == 31)
        value = fraction == 0 ? HUGE_VAL : std::nan("");
    else
        value =
            exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
    return (bits & 0x8000) != 0 ? -value : value;
}

/// Elements as numbers; nothing for types that have none.
using Reader = double (*)(const Array&, std::size_t);
template <class T>
double read_as(const Array& array, std::size_t index) {
    return static_cast<double>(element<T>(array, index));
}
Reader reader_for(ElementType type) {
    switch (type) {
        case ElementType::float32:
            return read_as<float>;
        case ElementType::float64:
            return read_as<double>;
        case ElementType::float16:
            return [](const Array& a, std::size_t i) { return half(element<std::uint16_t>(a, i)); };
        case ElementType::int8:
            return read_as<std::int8_t>;
        case ElementType::uint8:
        case ElementType::boolean:
            return read_as<std::uint8_t>;
        case ElementType::int16:
            return read_as<std::int16_t>;
        case ElementType::uint16:
            return read_as<std::uint16_t>;
        case ElementType::int32:
            return read_as<std::int32_t>;
        case ElementType::uint32:
            return read_as<std::uint32_t>;
        case ElementType::int64:
            return read_as<std::int64_t>;
        case ElementType::uint64:
            return read_as<std::uint64_t>;
        default:
            return nullptr;
    }
}

// Brain floats stand in .npz files as their 16 bits.
Reader bfloat_reader() {
    return [](const Array& array, std::size_t index) {
        return static_cast<double>(std::bit_cast<float>(
            static_cast<std::uint32_t>(element<std::uint16_t>(array, index)) << 16));
    };
}

/// One side's elements in real numbers: integers of a quantised tensor by its scales.
class Side {
  public:
    Side(const Array& array, const Value& value) : array_(array) {
        read_ = reader_for(array.type);
        if (value.element == "bf16" && array.type == ElementType::uint16) read_ = bfloat_reader();
        if (!is_integer(array.type) || !value.quantisation) return;
        quantisation_ = &*value.quantisation;
        if (!quantisation_->axis) return;
        for (std::size_t d = *quantisation_->axis + 1; d < value.shape.size(); ++d)
            inner_ *= static_cast<std::size_t>(value.shape[d]);
    }
    [[nodiscard]] bool readable() const { return read_ != nullptr; }
    [[nodiscard]] double operator[](std::size_t index) const {
        const double stored = read_(array_, index);
        if (quantisation_ == nullptr) return stored;
        const std::size_t channel =
            quantisation_->axis ? index / inner_ % quantisation_->scales.size() : 0;
        return (stored - static_cast<double>(quantisation_->zero_points[channel])) *
               quantisation_->scales[channel];
    }

  private:
    const Array& array_;
    Reader read_ = nullptr;
    const UniformQuantisation* quantisation_ = nullptr;
    std::size_t inner_ = 1;  ///< elements of one position of the axis
};

/// One scale for each position of the axis, and elements as many as the shape has.
Status check_quantisation(const Value& value, const Array& array) {
    const UniformQuantisation& of = *value.quantisation;
    const std::size_t scales = of.scales.size();
    const bool fits = of.axis ? *of.axis < value.shape.size() && scales > 0 &&
                                    value.shape[*of.axis] == static_cast<std::int64_t>(scales)
                              : scales == 1;
    if (!fits || of.zero_points.size() != scales)
        return fail(Cause::bad_input,
                    fmt::format("{} scales do not belong to {}", scales, value.type));
    std::int64_t elements = 1;
    for (const std::int64_t dim : value.shape)
        if (__builtin_mul_overflow(elements, dim, &elements)) elements = -1;
    if (of.axis && elements != array.element_count())
        return fail(Cause::bad_input, fmt::format("{} elements, and the scales of {}",
                                                  array.element_count(), value.type));
    return {};
}

const Array* find_array(const std::map<std::string_view, const Array*>& arrays,
                        const std::string& name) {
    const auto found = arrays.find(name);
    return found == arrays.end() ? nullptr : found->second;
}

std::map<std::string_view, const Array*> by_name(const NamedArrays& arrays) {
    std::map<std::string_view, const Array*> out;
    for (const auto& [name, array] : arrays) out.emplace(name, &array);
    return out;
}

bool moves_only(const Operator& op) {
    return op.is("tpu.Load") || op.is("tpu.Store") || op.is("tpu.Yield") || op.is("tpu.Group");
}

/// Calls `visit` for each operator that computes, in order, with its unit's number.
template <class Visit>
void each_computed(const FinalProgram& program, const Visit& visit) {
    std::size_t unit = 0;
    for (const DeviceProgram& device : program.devices)
        for (const Operator& call : device.main()->operators) {
            const Function* function = device.find(callee_of(call));
            if (function == nullptr) continue;
            for (const Operator& op : function->operators) {
                if (is_constant(op) || op.is("tpu.Buffer")) continue;
                const auto descend = [&](const auto& self, const Operator& one) -> void {
                    for (const Operator& inner : one.body) self(self, inner);
                    if (!moves_only(one)) visit(one, unit);
                };
                descend(descend, op);
                ++unit;
            }
        }
}

}  // namespace

Result<Similarity> similarity(const Array& reference, const Array& actual, const Value& value) {
    if (reference.element_count() != actual.element_count())
        return fail(Cause::bad_input,
                    fmt::format("{} elements should be, {} are", reference.element_count(),
                                actual.element_count()));
    if (value.quantisation && (is_integer(reference.type) || is_integer(actual.type)))
        REEF_CHECK(check_quantisation(value, reference));
    const Side a(reference, value), b(actual, value);
    if (!a.readable() || !b.readable())
        return fail(Cause::unsupported,
                    fmt::format("elements of {} are no numbers",
                                name_of(a.readable() ? actual.type : reference.type)));
    Similarity out;
    double dot = 0, aa = 0, bb = 0, distance = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(reference.element_count()); ++i) {
        const double x = a[i], y = b[i];
        if (!std::isfinite(x) || !std::isfinite(y)) {
            const bool same = (std::isnan(x) && std::isnan(y)) || x == y;
            out.nan_only_one += same ? 0 : 1;
            continue;
        }
        dot += x * y;
        aa += x * x;
        bb += y * y;
        distance += (x - y) * (x - y);
    }
    if (distance == 0) return out;
    out.cosine = aa == 0 || bb == 0 ? 0 : dot / (std::sqrt(aa) * std::sqrt(bb));
    out.euclid = aa == 0 ? 0 : 1 - std::sqrt(distance) / std::sqrt(aa);
    return out;
}

std::vector<Unit> units_of(const FinalProgram& program) {
    std::vector<Unit> units;
    std::map<ValueIndex, std::size_t> made_by;
    const auto note_operands = [&](const auto& self, const Operator& op,
                                   std::set<std::size_t>& out) -> void {
        for (const ValueIndex operand : op.operands)
            if (const auto known = made_by.find(operand); known != made_by.end())
                out.insert(known->second);
        for (const Operator& inner : op.body) self(self, inner, out);
    };
    for (const DeviceProgram& device : program.devices)
        for (const Operator& call : device.main()->operators) {
            const Function* function = device.find(callee_of(call));
            if (function == nullptr) continue;
            for (std::size_t i = 0; i < std::min(call.operands.size(), function->arguments.size());
                 ++i)
                if (const auto known = made_by.find(call.operands[i]); known != made_by.end())
                    made_by[function->arguments[i]] = known->second;
            for (const Operator& op : function->operators) {
                if (is_constant(op) || op.is("tpu.Buffer")) continue;
                Unit unit{&op, {}, {}};
                std::set<std::size_t> before;
                note_operands(note_operands, op, before);
                unit.before.assign(before.begin(), before.end());
                for (const ValueIndex result : op.results) {
                    made_by[result] = units.size();
                    if (program.at(result).in_memory())
                        unit.names.push_back(program.at(result).name);
                }
                units.push_back(std::move(unit));
            }
            for (std::size_t i = 0; i < std::min(call.results.size(), function->returned.size());
                 ++i)
                if (const auto known = made_by.find(function->returned[i]); known != made_by.end())
                    made_by[call.results[i]] = known->second;
        }
    return units;
}

namespace {

/// Two sides' tensors by name.
class Judge {
  public:
    Judge(const NamedArrays& reference, const NamedArrays& actual, const Tolerance& tolerance)
        : should_(by_name(reference)), is_(by_name(actual)), tolerance_(tolerance) {}

    /// Unknown when one side has not got it.
    void judge(Judged& one, const Value& value) const {
        const Array* a = find_array(should_, value.name);
        const Array* b = find_array(is_, value.name);
        if (a == nullptr || b == nullptr) return;
        const auto numbers = similarity(*a, *b, value);
        if (numbers)
            one.numbers = *numbers;
        else
            one.problem = numbers.error().what;
        one.verdict = numbers && numbers->within(tolerance_) ? Verdict::right : Verdict::wrong;
    }

  private:
    std::map<std::string_view, const Array*> should_, is_;
    const Tolerance& tolerance_;
};

/// Who computes a value, groups' operators included.
class Makers {
  public:
    explicit Makers(const FinalProgram& program) : program_(program) {
        for (const DeviceProgram& device : program.devices)
            for (const Function& function : device.functions)
                for (const Operator& op : function.operators) note(op);
    }
    /// Names of an operator's operands, through Loads, and whether they are constants.
    [[nodiscard]] std::vector<std::pair<std::string, bool>> operands_of(const Operator& op) const {
        std::vector<std::pair<std::string, bool>> out;
        for (ValueIndex operand : op.operands) {
            const Operator* made = maker(operand);
            while (made != nullptr && made->is("tpu.Load") && !made->operands.empty()) {
                operand = made->operands[0];
                made = maker(operand);
            }
            if (made != nullptr && made->is("top.None")) continue;
            out.emplace_back(program_.at(operand).name, made != nullptr && is_constant(*made));
        }
        return out;
    }

  private:
    void note(const Operator& op) {
        for (const ValueIndex result : op.results) made_.emplace(result, &op);
        for (const Operator& inner : op.body) note(inner);
    }
    [[nodiscard]] const Operator* maker(ValueIndex value) const {
        const auto found = made_.find(value);
        return found == made_.end() ? nullptr : found->second;
    }

    const FinalProgram& program_;
    std::map<ValueIndex, const Operator*> made_;
};

}  // namespace

Result<Bisection> bisect(const FinalProgram& program, const NamedArrays& reference,
                         const NamedArrays& actual, const Tolerance& tolerance) {
    const Judge judge(reference, actual, tolerance);
    Bisection out;
    for (const DeviceProgram& device : program.devices)
        for (const Operator& op : device.main()->operators)
            if (op.is("top.Input"))
                for (const ValueIndex result : op.results) {
                    out.inputs.push_back({result, 0, &op, Verdict::unknown, {}, {}});
                    judge.judge(out.inputs.back(), program.at(result));
                }
    std::set<std::string_view> seen;
    each_computed(program, [&](const Operator& op, std::size_t unit) {
        for (const ValueIndex result : op.results) {
            const Value& value = program.at(result);
            if (value.name.empty() || !seen.insert(value.name).second) continue;
            Judged judged{result, unit, &op, Verdict::unknown, {}, {}};
            judge.judge(judged, value);
            if (judged.verdict != Verdict::unknown) ++out.compared;
            if (judged.verdict == Verdict::wrong && !out.first_wrong)
                out.first_wrong = out.tensors.size();
            out.tensors.push_back(std::move(judged));
        }
    });
    if (out.compared == 0)
        return fail(Cause::bad_input,
                    fmt::format("none of {} tensors is in both files", out.tensors.size()), {},
                    "names are those of the network's locations; reef inspect --all lists them");
    return out;
}

std::vector<std::pair<std::string, Verdict>> inputs_of(const FinalProgram& program,
                                                       const Bisection& bisection,
                                                       std::size_t tensor) {
    std::map<std::string_view, Verdict> verdicts;
    for (const auto* list : {&bisection.tensors, &bisection.inputs})
        for (const Judged& one : *list) verdicts.emplace(program.at(one.value).name, one.verdict);
    std::vector<std::pair<std::string, Verdict>> out;
    for (const auto& [name, constant] :
         Makers(program).operands_of(*bisection.tensors[tensor].op)) {
        const auto known = verdicts.find(name);
        out.emplace_back(name, constant                  ? Verdict::constant
                               : known == verdicts.end() ? Verdict::unknown
                                                         : known->second);
    }
    return out;
}

std::vector<std::size_t> not_compared_before(const FinalProgram& program,
                                             const Bisection& bisection, std::size_t tensor) {
    std::map<std::string_view, std::size_t> places;
    for (std::size_t i = 0; i < bisection.tensors.size(); ++i)
        places.emplace(program.at(bisection.tensors[i].value).name, i);
    const Makers makers(program);
    std::set<std::size_t> found;
    std::vector<std::size_t> open = {tensor};
    while (!open.empty()) {
        const Operator& op = *bisection.tensors[open.back()].op;
        open.pop_back();
        for (const auto& [name, constant] : makers.operands_of(op)) {
            const auto place = places.find(name);
            if (constant || place == places.end()) continue;
            if (bisection.tensors[place->second].verdict == Verdict::unknown &&
                found.insert(place->second).second)
                open.push_back(place->second);
        }
    }
    found.erase(tensor);
    return {found.begin(), found.end()};
}

Result<std::optional<std::size_t>> first_wrong_unit(const std::vector<Unit>& units,
                                                    const IsWrong& is_wrong) {
    std::map<std::size_t, bool> known;
    const auto ask = [&](std::size_t i) -> Result<bool> {
        if (const auto before = known.find(i); before != known.end()) return before->second;
        return known[i] = REEF_TRY(is_wrong(units[i]));
    };
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < units.size(); ++i)
        if (!units[i].names.empty()) open.push_back(i);
    // The last unit is not behind all others: every end of the network is asked.
    std::set<std::size_t> read;
    for (const Unit& unit : units) read.insert(unit.before.begin(), unit.before.end());
    std::optional<std::size_t> found;
    for (const std::size_t i : open)
        if (!read.contains(i) && REEF_TRY(ask(i))) {
            found = i;
            break;
        }
    // From a wrong unit to the wrong ones that it reads: halve the units before it first.
    while (found) {
        std::set<std::size_t> cone;
        const auto descend = [&](const auto& self, std::size_t i) -> void {
            for (const std::size_t before : units[i].before)
                if (cone.insert(before).second) self(self, before);
        };
        descend(descend, *found);
        std::vector<std::size_t> candidates;
        for (const std::size_t i : cone)
            if (!units[i].names.empty() && !(known.contains(i) && !known[i]))
                candidates.push_back(i);
        if (candidates.empty()) break;
        const std::size_t middle = candidates[candidates.size() / 2];
        if (REEF_TRY(ask(middle))) {
            found = middle;
            continue;
        }
        // What the right one reads is taken as right, too.
        const auto clear = [&](const auto& self, std::size_t i) -> void {
            for (const std::size_t before : units[i].before)
                if (known.emplace(before, false).second) self(self, before);
        };
        clear(clear, middle);
    }
    return found;
}

namespace {

/// Positions in a group's body of what a value is computed from, without what only moves.
std::set<std::size_t> computed_from(const Operator& group, ValueIndex value) {
    std::set<std::size_t> out;
    const auto visit = [&](const auto& self, ValueIndex wanted) -> void {
        for (std::size_t i = 0; i < group.body.size(); ++i) {
            const Operator& op = group.body[i];
            if (std::ranges::find(op.results, wanted) == op.results.end()) continue;
            if (!moves_only(op) && !out.insert(i).second) return;
            for (const ValueIndex operand : op.operands) self(self, operand);
            return;
        }
    };
    visit(visit, value);
    return out;
}

}  // namespace

Result<std::vector<const Operator*>> suspects_in(const FinalProgram& program, const Unit& unit,
                                                 const IsWrong& is_wrong) {
    const Operator& group = *unit.op;
    if (!group.is("tpu.Group") || group.body.empty() ||
        group.body.back().operands.size() != group.results.size())
        return std::vector{unit.op};
    std::optional<std::set<std::size_t>> suspects;
    std::set<std::size_t> cleared;
    for (std::size_t i = 0; i < group.results.size(); ++i) {
        const Value& result = program.at(group.results[i]);
        if (!result.in_memory()) continue;
        Unit alone = unit;
        alone.names = {result.name};
        const auto from = computed_from(group, group.body.back().operands[i]);
        // A group of one result was asked already: it is wrong.
        const bool wrong = unit.names.size() == 1 || REEF_TRY(is_wrong(alone));
        if (!wrong)
            cleared.insert(from.begin(), from.end());
        else if (from.empty())
            continue;
        else if (!suspects || *from.rbegin() < *suspects->rbegin())
            suspects = from;
    }
    std::vector<const Operator*> out;
    for (const std::size_t i : suspects.value_or(std::set<std::size_t>{}))
        if (!cleared.contains(i)) out.push_back(&group.body[i]);
    // Only the results together were wrong, or what is right says that nothing is.
    if (out.empty()) out.push_back(unit.op);
    return out;
}

}  // namespace reef::sophgo
