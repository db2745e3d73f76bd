#include "compare/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "outputs/csv_output.h"
#include "outputs/json_output.h"
#include "outputs/model_text.h"
#include "outputs/text_table.h"

namespace reef::tool {
namespace {

constexpr std::size_t rows_at_a_glance = 20;

std::string shape_text_of(const Array& array) {
    const std::string shape =
        array.shape.empty() ? "scalar" : fmt::format("{}", fmt::join(array.shape, "x"));
    return fmt::format("{} {}", shape, short_name(array.type));
}

double element_at(const Array& array, std::int64_t index) {
    const std::size_t size = size_of(array.type).value_or(1);
    const Bytes bytes = Bytes(array.data).subspan(static_cast<std::size_t>(index) * size, size);
    model::Tensor tensor;
    tensor.type = array.type;
    const auto values = real_values(tensor, bytes);
    return values && !values->empty() ? values->front() : 0;
}

std::vector<std::int64_t> coordinates(std::int64_t index, const std::vector<std::int64_t>& shape) {
    std::vector<std::int64_t> place(shape.size());
    for (std::size_t i = shape.size(); i-- > 0;) {
        place[i] = index % shape[i];
        index /= shape[i];
    }
    return place;
}

ComparedTensor only_on(std::string_view side, const std::string& name, const Array& array) {
    ComparedTensor result;
    result.name = name;
    result.shape = shape_text_of(array);
    result.problem = fmt::format("only in {}", side);
    return result;
}

using ByName = std::unordered_map<std::string, const Array*>;

ByName by_name(const NamedArrays& arrays) {
    ByName map;
    for (const auto& [name, array] : arrays) map.emplace(name, &array);
    return map;
}

std::string status_of(const ComparedTensor& tensor) {
    if (!tensor.numbers) return "different";
    return tensor.same() ? "equal" : "different";
}

std::string first_text(const ComparedTensor& tensor) {
    if (!tensor.numbers) return tensor.problem;
    if (!tensor.numbers->first_different) return {};
    return fmt::format("[{}] {:.7g} against {:.7g}", fmt::join(tensor.first_place, ","),
                       tensor.first_a, tensor.first_b);
}

std::vector<std::string> row_of(const ComparedTensor& tensor) {
    if (!tensor.numbers) {
        return {tensor.name, tensor.shape, status_of(tensor), "", "", "", "",
                "",          "",           first_text(tensor)};
    }
    const Comparison& n = *tensor.numbers;
    return {tensor.name,
            tensor.shape,
            status_of(tensor),
            fmt::format("{}/{}", n.equal, n.elements),
            fmt::format("{:.6g}", n.max_abs_diff),
            fmt::format("{:.6g}", n.mean_abs_diff),
            fmt::format("{:.6g}", n.mse),
            fmt::format("{:.7f}", n.cosine),
            n.nan_a + n.nan_b == 0 ? "" : fmt::format("{}/{}", n.nan_a, n.nan_b),
            first_text(tensor)};
}

/// " within 0.1 + 0.001 |b|, with a cosine of 0.99 at least"; empty when nothing may differ.
std::string rules_text(const ComparedSets& sets) {
    std::string text;
    if (sets.rules.tolerance.absolute > 0)
        text += fmt::format(" within {:g}", sets.rules.tolerance.absolute);
    if (sets.rules.tolerance.relative > 0)
        text += fmt::format("{} {:g} |b|", text.empty() ? " within" : " +",
                            sets.rules.tolerance.relative);
    if (sets.rules.least_cosine)
        text += fmt::format("{} a cosine of {:g} at least", text.empty() ? " with" : ", with",
                            *sets.rules.least_cosine);
    return text;
}

}  // namespace

ComparedTensor compare_pair(const std::string& name, const Array& a, const Array& b,
                            const ComparisonRules& rules) {
    ComparedTensor result;
    result.name = name;
    result.shape = shape_text_of(a);
    auto numbers = compare(a, b, rules.tolerance);
    if (!numbers) {
        result.problem = numbers.error().what;
        return result;
    }
    result.numbers = *numbers;
    const bool elements_count = !rules.least_cosine || rules.tolerance != Tolerance{};
    result.within = (!elements_count || numbers->same()) &&
                    (!rules.least_cosine ||
                     (numbers->cosine >= *rules.least_cosine && numbers->nan_only_one == 0));
    if (numbers->first_different) {
        result.first_place = coordinates(*numbers->first_different, a.shape);
        result.first_a = element_at(a, *numbers->first_different);
        result.first_b = element_at(b, *numbers->first_different);
    }
    return result;
}

std::size_t ComparedSets::same_count() const {
    return static_cast<std::size_t>(std::ranges::count_if(tensors, &ComparedTensor::same));
}

Result<ComparedSets> compare_sets(const NamedArrays& a, const NamedArrays& b,
                                  const ComparisonRules& rules) {
    ComparedSets sets;
    sets.rules = rules;
    if (a.size() == 1 && b.size() == 1) {
        const std::string& name = a[0].first.empty() ? b[0].first : a[0].first;
        sets.tensors.push_back(compare_pair(name, a[0].second, b[0].second, rules));
        return sets;
    }
    const ByName in_a = by_name(a);
    const ByName in_b = by_name(b);
    for (const auto& [name, array] : a) {
        const auto other = in_b.find(name);
        if (other != in_b.end()) {
            sets.tensors.push_back(compare_pair(name, array, *other->second, rules));
        } else if (!rules.only_common) {
            sets.tensors.push_back(only_on("the first", name, array));
        }
    }
    for (const auto& [name, array] : b) {
        if (!in_a.contains(name) && !rules.only_common) {
            sets.tensors.push_back(only_on("the second", name, array));
        }
    }
    if (sets.tensors.empty()) return fail(Cause::bad_input, "no tensor is on both sides");
    return sets;
}

void print_comparison_text(Console& console, const ComparedSets& sets, bool all) {
    const std::size_t same = sets.same_count();
    const std::size_t count = sets.tensors.size();
    const std::string verdict = same == count ? "equal" : "different";
    const auto style =
        fmt::fg(same == count ? fmt::terminal_color::green : fmt::terminal_color::red);
    console.print("{}: {} of {} equal", console.styled(style, verdict), same,
                  plural(count, "tensor"));
    console.write(rules_text(sets));
    console.print("\n  a  {}\n  b  {}\n\n", printable(sets.a), printable(sets.b));
    TextTable table({{"tensor"},
                     {"shape"},
                     {"result"},
                     {"equal", Align::right},
                     {"max |a-b|", Align::right},
                     {"mean |a-b|", Align::right, 2},
                     {"MSE", Align::right, 4},
                     {"cosine", Align::right, 1},
                     {"NaN a/b", Align::right, 3},
                     {"first difference"}});
    // With many tensors the differences must not drown between the equal ones.
    const bool show_equal = all || count <= rows_at_a_glance;
    for (const ComparedTensor& tensor : sets.tensors) {
        if (show_equal || !tensor.same()) table.add(row_of(tensor));
    }
    if (!table.empty()) table.print(console);
    if (!show_equal && same > 0) {
        console.print("  {}{} equal: --all shows them\n", table.empty() ? "" : "... ",
                      plural(same, "tensor"));
    }
}

void print_comparison_csv(Console& console, const ComparedSets& sets) {
    print_csv(console, {"name", "shape", "equal", "elements", "equal_elements", "max_abs_diff",
                        "mean_abs_diff", "mse", "cosine", "nan_a", "nan_b", "problem"});
    for (const ComparedTensor& tensor : sets.tensors) {
        std::vector<std::string> row{tensor.name, tensor.shape, tensor.same() ? "1" : "0"};
        if (const auto& n = tensor.numbers)
            row.insert(row.end(),
                       {std::to_string(n->elements), std::to_string(n->equal),
                        fmt::format("{}", n->max_abs_diff), fmt::format("{}", n->mean_abs_diff),
                        fmt::format("{}", n->mse), fmt::format("{}", n->cosine),
                        std::to_string(n->nan_a), std::to_string(n->nan_b)});
        row.resize(11);
        row.push_back(tensor.problem);
        print_csv(console, row);
    }
}

Json comparison_json(const ComparedSets& sets) {
    Json document = json_document("compare");
    document["a"] = sets.a;
    document["b"] = sets.b;
    document["tolerance"] = sets.rules.tolerance.absolute;
    document["relative_tolerance"] = sets.rules.tolerance.relative;
    if (sets.rules.least_cosine) document["least_cosine"] = *sets.rules.least_cosine;
    document["equal"] = sets.same();
    document["equal_tensors"] = sets.same_count();
    document["tensors"] = Json::array();
    for (const ComparedTensor& tensor : sets.tensors) {
        Json json{{"name", tensor.name}, {"shape", tensor.shape}, {"equal", tensor.same()}};
        if (!tensor.problem.empty()) json["problem"] = tensor.problem;
        if (tensor.numbers) {
            const Comparison& n = *tensor.numbers;
            json.update({{"elements", n.elements},
                         {"equal_elements", n.equal},
                         {"max_abs_diff", n.max_abs_diff},
                         {"mean_abs_diff", n.mean_abs_diff},
                         {"mse", n.mse},
                         {"cosine", n.cosine},
                         {"nan_a", n.nan_a},
                         {"nan_b", n.nan_b}});
            json["first_different"] = nullptr;
            if (n.first_different) json["first_different"] = *n.first_different;
            if (n.max_ulp) json["max_ulp"] = *n.max_ulp;
        }
        document["tensors"].push_back(std::move(json));
    }
    return document;
}

}  // namespace reef::tool
