// Published networks whose activation is SiLU, with functions by table: layer by layer against the
// CPU's kernels.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "compare/layer_comparison.h"
#include "inputs/drawn_input.h"
#include "rk3588/artifact/artifact.h"
#include "rk3588/compiler/compile.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"

namespace reef {
namespace {

struct NetworkByTable {
    const char* name;
    std::size_t programs, tables;
};

/// Names of the layers that tables make.
std::set<std::string> layers_by_table(const model::Model& compiled) {
    std::set<std::string> names;
    for (const auto& op : compiled.subgraphs[0].operators) {
        if (!rk3588::is_compiled(op)) continue;
        const auto artifact = rk3588::read_artifact(op.custom_options.view());
        EXPECT_TRUE(artifact) << artifact.error().message();
        for (const auto& each : artifact->operators)
            if (each.tasks > 0 && !task_of(*artifact, each.first_task)->tables.empty())
                names.insert(fmt::format("layer_{:03}", each.index));
    }
    return names;
}

class NetworksByTable : public testing::TestWithParam<NetworkByTable> {};

TEST_P(NetworksByTable, AreTflitesWithinOneAndTheirTablesExactly) {
    REEF_SHARED_OR_SKIP(shared);
    const auto plain =
        test::load_model(shared / "data/edgetpu/wild" / (std::string(GetParam().name) + ".tflite"));
    const auto compiled = rk3588::compile(plain, {.assume_lut = true}, {});
    ASSERT_TRUE(compiled) << compiled.error().message();
    EXPECT_EQ(compiled->programs.size(), GetParam().programs);
    const auto by_table = layers_by_table(compiled->model);
    EXPECT_EQ(by_table.size(), GetParam().tables);
    const auto inputs = tool::random_inputs(plain.subgraphs[0], 1);
    ASSERT_TRUE(inputs) << inputs.error().message();
    const auto compared = tool::compare_layers(
        {.compiled = {"compiled", compiled->model}, .plain = {"plain", plain}, .inputs = *inputs});
    ASSERT_TRUE(compared) << compared.error().message();
    std::int64_t all = 0, equal = 0;
    std::size_t exact = 0;
    for (std::size_t i = 0; i < compared->sets.tensors.size(); ++i) {
        const auto& tensor = compared->sets.tensors[i];
        EXPECT_TRUE(tensor.same()) << tensor.name << " " << tensor.problem;
        const auto layer = compared->origins[i].layer;
        if (!layer || !tensor.numbers) continue;
        all += tensor.numbers->elements;
        equal += tensor.numbers->equal;
        if (!by_table.contains(compared->dump.layers[*layer].layer.name)) continue;
        EXPECT_TRUE(tensor.numbers->same()) << tensor.name;
        ++exact;
    }
    EXPECT_EQ(exact, by_table.size());
    const double share = static_cast<double>(equal) / static_cast<double>(all);
    EXPECT_GE(share, 0.998);
    fmt::print("{}: {} programs, {:.3f} % of {} bytes equal, {} tables\n", GetParam().name,
               compiled->programs.size(), 100 * share, all, by_table.size());
}

INSTANTIATE_TEST_SUITE_P(Published, NetworksByTable,
                         testing::Values(NetworkByTable{"mot__yolov5nu_full_integer_quant", 4, 69},
                                         NetworkByTable{"mot__yolov8n_full_integer_quant", 6, 58},
                                         NetworkByTable{"mot__yolov10n_full_integer_quant", 9, 70}),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace reef
