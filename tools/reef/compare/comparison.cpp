#include "compare/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

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

}  // namespace

ComparedTensor compare_pair(const std::string& name, const Array& a, const Array& b,
                            double tolerance) {
    ComparedTensor result;
    result.name = name;
    result.shape = shape_text_of(a);
    auto numbers = compare(a, b, tolerance);
    if (!numbers) {
        result.problem = numbers.error().what;
        return result;
    }
    result.numbers = *numbers;
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
    sets.tolerance = rules.tolerance;
    if (a.size() == 1 && b.size() == 1) {
        const std::string& name = a[0].first.empty() ? b[0].first : a[0].first;
        sets.tensors.push_back(compare_pair(name, a[0].second, b[0].second, rules.tolerance));
        return sets;
    }
    const ByName in_a = by_name(a);
    const ByName in_b = by_name(b);
    for (const auto& [name, array] : a) {
        const auto other = in_b.find(name);
        if (other != in_b.end()) {
            sets.tensors.push_back(compare_pair(name, array, *other->second, rules.tolerance));
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
    if (sets.tolerance > 0) console.print(" within {:g}", sets.tolerance);
    console.print("\n  a  {}\n  b  {}\n\n", printable(sets.a), printable(sets.b));
    TextTable table({{"tensor"},
                     {"shape"},
                     {"result"},
                     {"equal", Align::right},
                     {"max |a-b|", Align::right},
                     {"mean |a-b|", Align::right},
                     {"MSE", Align::right},
                     {"cosine", Align::right},
                     {"NaN a/b", Align::right},
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

Json comparison_json(const ComparedSets& sets) {
    Json document = json_document("compare");
    document["a"] = sets.a;
    document["b"] = sets.b;
    document["tolerance"] = sets.tolerance;
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
