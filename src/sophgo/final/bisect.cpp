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

/// One side's elements in real numbers.
class Side {
  public:
    Side(const Array& array, const Array& other, const Value& value) : array_(array) {
        read_ = reader_for(array.type);
        const bool integer = is_integer(array.type);
        const bool mixed = integer && !is_integer(other.type);
        if (value.element == "bf16" && array.type == ElementType::uint16) read_ = bfloat_reader();
        if (mixed && value.quantisation) {
            scale_ = value.quantisation->scale;
            zero_ = static_cast<double>(value.quantisation->zero_point);
        }
    }
    [[nodiscard]] bool readable() const { return read_ != nullptr; }
    [[nodiscard]] double operator[](std::size_t index) const {
        return (read_(array_, index) - zero_) * scale_;
    }

  private:
    const Array& array_;
    Reader read_ = nullptr;
    double scale_ = 1, zero_ = 0;
};

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
    const Side a(reference, actual, value), b(actual, reference, value);
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

Result<Bisection> bisect(const FinalProgram& program, const NamedArrays& reference,
                         const NamedArrays& actual, const Tolerance& tolerance) {
    const auto should = by_name(reference), is = by_name(actual);
    Bisection out;
    std::set<std::string_view> seen;
    each_computed(program, [&](const Operator& op, std::size_t unit) {
        for (const ValueIndex result : op.results) {
            const Value& value = program.at(result);
            if (value.name.empty() || !seen.insert(value.name).second) continue;
            Judged judged{result, unit, &op, Verdict::unknown, {}, {}};
            const Array* a = find_array(should, value.name);
            const Array* b = find_array(is, value.name);
            if (a != nullptr && b != nullptr) {
                ++out.compared;
                const auto numbers = similarity(*a, *b, value);
                if (numbers)
                    judged.numbers = *numbers;
                else
                    judged.problem = numbers.error().what;
                judged.verdict =
                    numbers && numbers->within(tolerance) ? Verdict::right : Verdict::wrong;
                if (judged.verdict == Verdict::wrong && !out.first_wrong)
                    out.first_wrong = out.tensors.size();
            }
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
    for (const Judged& one : bisection.tensors)
        verdicts.emplace(program.at(one.value).name, one.verdict);
    std::map<ValueIndex, const Operator*> maker;
    const auto note = [&](const auto& self, const Operator& op) -> void {
        for (const ValueIndex result : op.results) maker.emplace(result, &op);
        for (const Operator& inner : op.body) self(self, inner);
    };
    for (const DeviceProgram& device : program.devices)
        for (const Function& function : device.functions)
            for (const Operator& op : function.operators) note(note, op);
    std::vector<std::pair<std::string, Verdict>> out;
    for (ValueIndex operand : bisection.tensors[tensor].op->operands) {
        auto made = maker.find(operand);
        while (made != maker.end() && made->second->is("tpu.Load") &&
               !made->second->operands.empty()) {
            operand = made->second->operands[0];
            made = maker.find(operand);
        }
        if (made != maker.end() && made->second->is("top.None")) continue;
        const std::string& name = program.at(operand).name;
        const bool constant = made != maker.end() && is_constant(*made->second);
        const auto known = verdicts.find(name);
        out.emplace_back(name, constant                  ? Verdict::constant
                               : known == verdicts.end() ? Verdict::unknown
                                                         : known->second);
    }
    return out;
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
