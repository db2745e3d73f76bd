#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "compare/layer_comparison.h"
#include "outputs/text_table.h"

namespace reef::tool {
namespace {

/// Why a layer was not compared.
std::string reason_of(const DumpedLayer& dumped) {
    if (!dumped.layer.problem.empty()) return dumped.layer.problem;
    if (dumped.match)
        return fmt::format("its {} elements are not of its tensor's shape",
                           fmt::join(dumped.tensor.shape, "x"));
    return "no tensor of the plain model is known to be it";
}

struct LayerLeftOut {
    std::size_t index = 0;  ///< in the dump
    std::string reason;
};

/// Layers that were not compared.
std::vector<LayerLeftOut> left_out(const LayerComparison& result) {
    std::vector<LayerLeftOut> list;
    for (std::size_t i = 0; i < result.dump.layers.size(); ++i) {
        if (std::ranges::find(result.origins, i, &TensorOrigin::layer) != result.origins.end())
            continue;
        list.push_back({i, reason_of(result.dump.layers[i])});
    }
    return list;
}

std::string layer_text(const DumpedLayer& dumped) {
    return fmt::format("{}, {}", dumped.layer.name, dumped.layer.instructions.front());
}

/// What is known about where the first difference arises.
struct FirstDifference {
    std::size_t at = 0;                           ///< index of a compared tensor
    std::vector<std::string> layers_before;       ///< that were not compared
    std::vector<OperatorWithoutLayer> operators;  ///< before it, that no layer is
    std::optional<std::size_t> last_equal;        ///< compared tensor of the layer before those
    bool in_layers = false, only_cpu = false;
};

std::optional<FirstDifference> first_difference(const LayerComparison& result) {
    if (!result.first_different) return std::nullopt;
    FirstDifference first;
    first.at = *result.first_different;
    const TensorOrigin& origin = result.origins[first.at];
    first.in_layers = origin.layer.has_value();
    first.only_cpu = origin.from_cpu;
    const std::size_t end = origin.layer.value_or(result.dump.layers.size());
    for (const LayerLeftOut& left : left_out(result))
        if (left.index < end)
            first.layers_before.push_back(result.dump.layers[left.index].layer.name);
    const auto* match = first.in_layers ? &result.dump.layers[end].match : nullptr;
    for (const auto& op : result.dump.without_layer)
        if (match == nullptr || !*match || op.op < (*match)->op) first.operators.push_back(op);
    for (std::size_t i = 0; i < first.at; ++i) {
        if (!result.origins[i].layer) continue;
        const auto& known = result.dump.layers[*result.origins[i].layer].match;
        const bool behind =
            !first.operators.empty() && (!known || known->op > first.operators.front().op);
        if (!behind) first.last_equal = i;
    }
    return first;
}

void print_differences(Console& console, const DumpedLayer& dumped) {
    if (dumped.match && !dumped.match->differences.empty())
        console.print("  {}\n", differences_text(*dumped.match));
}

/// The layer that is left over where the operator is.
const DumpedLayer* in_place_of(const LayerDump& dump, std::size_t op) {
    const auto found = std::ranges::find_if(dump.layers, [op](const DumpedLayer& dumped) {
        return dumped.match && dumped.match->op == op;
    });
    return found == dump.layers.end() ? nullptr : &*found;
}

void print_first_without_layer(Console& console, const LayerComparison& result,
                               const FirstDifference& first) {
    if (!first.operators.empty()) {
        const auto& op = first.operators.front();
        console.print("  the first operator without a layer, and the first that may be wrong: {}\n",
                      printable(op.name));
        if (const DumpedLayer* dumped = in_place_of(result.dump, op.op)) {
            console.print("  by its place it is {}: {}\n", layer_text(*dumped), reason_of(*dumped));
            print_differences(console, *dumped);
        }
    }
    if (first.last_equal) {
        const DumpedLayer& last = result.dump.layers[*result.origins[*first.last_equal].layer];
        console.print("  the last equal layer{}: {} {}\n",
                      first.operators.empty() ? "" : " before it",
                      result.sets.tensors[*first.last_equal].name, layer_text(last));
    }
}

void print_layer_that_differs(Console& console, const LayerComparison& result,
                              const FirstDifference& first) {
    const DumpedLayer& dumped = result.dump.layers[*result.origins[first.at].layer];
    console.print("\nfirst layer that differs: {} {}\n  {}, matched by {}\n",
                  result.sets.tensors[first.at].name, printable(dumped.plain_name),
                  layer_text(dumped), result.origins[first.at].matched_by);
    print_differences(console, dumped);
    if (!first.layers_before.empty())
        console.print("  before it, not compared: {}\n", fmt::join(first.layers_before, ", "));
    for (const auto& op : first.operators)
        console.print("  before it, no layer is {}\n", printable(op.name));
    if (!first.operators.empty()) print_first_without_layer(console, result, first);
}

void print_outputs_that_differ(Console& console, const LayerComparison& result,
                               const FirstDifference& first) {
    if (first.only_cpu) {
        console.print(
            "\noutputs differ; what the chip gives is equal: the operators behind it on the "
            "CPU make the difference\n");
        return;
    }
    const bool any = result.origins.front().layer.has_value();
    console.print(
        "\noutputs differ; {}\n",
        any ? "the layers that were compared are equal"
            : "no layer was compared: is this the plain model that it was compiled from?");
    print_first_without_layer(console, result, first);
}

void print_table(Console& console, const TextTable& table) {
    if (table.empty()) return;
    console.print("\n");
    table.print(console);
}

void print_by_place(Console& console, const LayerComparison& result) {
    TextTable table({{"by place"}, {"layer"}, {"first instruction"}, {"different values"}});
    for (std::size_t i = 0; i < result.origins.size(); ++i) {
        if (!result.origins[i].layer) continue;
        const DumpedLayer& dumped = result.dump.layers[*result.origins[i].layer];
        if (dumped.match && dumped.match->by_place)
            table.add({result.sets.tensors[i].name, dumped.layer.name,
                       dumped.layer.instructions.front(), differences_text(*dumped.match)});
    }
    print_table(console, table);
}

void print_left_out(Console& console, const LayerComparison& result) {
    TextTable table({{"not compared"}, {"first instruction"}, {"by place"}, {"reason"}});
    for (const auto& [index, reason] : left_out(result)) {
        const DumpedLayer& dumped = result.dump.layers[index];
        table.add({dumped.layer.name, dumped.layer.instructions.front(), dumped.plain_op, reason});
    }
    print_table(console, table);
}

Json left_out_json(const LayerComparison& result) {
    Json list = Json::array();
    for (const auto& [index, reason] : left_out(result)) {
        const DumpedLayer& dumped = result.dump.layers[index];
        Json& json = list.emplace_back(Json{{"layer", dumped.layer.name},
                                            {"instructions", dumped.layer.instructions},
                                            {"reason", reason}});
        if (!dumped.match) continue;
        json["operator_by_place"] = dumped.plain_op;
        json["different_values"] = differences_json(*dumped.match);
    }
    return list;
}

Json first_difference_json(const LayerComparison& result) {
    const auto first = first_difference(result);
    if (!first) return nullptr;
    Json json{{"tensor", result.sets.tensors[first->at].name},
              {"layer", nullptr},
              {"not_compared_before", first->layers_before},
              {"operators_without_layer_before", names_json(first->operators)},
              {"layer_by_place", nullptr},
              {"last_equal_tensor", nullptr}};
    if (first->in_layers)
        json["layer"] = result.dump.layers[*result.origins[first->at].layer].layer.name;
    if (const auto* dumped = first->operators.empty()
                                 ? nullptr
                                 : in_place_of(result.dump, first->operators.front().op))
        json["layer_by_place"] = dumped->layer.name;
    if (first->last_equal) json["last_equal_tensor"] = result.sets.tensors[*first->last_equal].name;
    return json;
}

}  // namespace

void print_layer_comparison_text(Console& console, const LayerComparison& result, bool all) {
    print_comparison_text(console, result.sets, all);
    if (!result.rounding.empty())
        console.print(
            "\nthe chip rounds by its own rule ({}): each operator of the CPU was given what the "
            "chip's gave{}\n",
            printable(result.rounding),
            result.sets.rules.tolerance.absolute == 1 ? ", and values may be 1 apart" : "");
    if (const auto first = first_difference(result)) {
        if (first->in_layers)
            print_layer_that_differs(console, result, *first);
        else
            print_outputs_that_differ(console, result, *first);
    }
    print_by_place(console, result);
    print_left_out(console, result);
    for (const auto& op : result.dump.without_layer)
        console.print("  no layer is {}\n", printable(op.name));
}

Json layer_comparison_json(const LayerComparison& result) {
    Json document = comparison_json(result.sets);
    document["rounding"] = result.rounding.empty() ? Json() : Json(result.rounding);
    for (std::size_t i = 0; i < result.sets.tensors.size(); ++i) {
        const TensorOrigin& origin = result.origins[i];
        Json& tensor = document["tensors"][i];
        tensor["layer"] = nullptr;
        tensor["instructions"] = Json::array();
        tensor["matched_by"] = origin.matched_by;
        if (!origin.layer) continue;
        const DumpedLayer& dumped = result.dump.layers[*origin.layer];
        tensor["layer"] = dumped.layer.name;
        tensor["instructions"] = dumped.layer.instructions;
        if (dumped.match && !dumped.match->differences.empty())
            tensor["different_values"] = differences_json(*dumped.match);
    }
    document["first_different_tensor"] = nullptr;
    if (result.first_different)
        document["first_different_tensor"] = result.sets.tensors[*result.first_different].name;
    document["first_difference"] = first_difference_json(result);
    document["not_compared"] = left_out_json(result);
    document["operators_without_layer"] = names_json(result.dump.without_layer);
    return document;
}

}  // namespace reef::tool
