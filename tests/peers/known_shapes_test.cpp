// Networks that are known by their shapes have the products that their papers and model cards say.
#include "peers/known_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "peers/networks.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"

namespace reef::peers {
namespace {

std::uint64_t products(const model::Subgraph& graph) {
    std::uint64_t sum = 0;
    for (const model::Operator& op : graph.operators) {
        const auto count = [&](model::TensorIndex t, std::size_t from) {
            const auto& shape = graph.tensors[static_cast<std::size_t>(t)].shape;
            std::uint64_t elements = 1;
            for (std::size_t i = from; i < shape.size(); ++i)
                elements *= static_cast<std::uint64_t>(shape[i]);
            return elements;
        };
        if (op.code.builtin == model::Op::conv_2d || op.code.builtin == model::Op::fully_connected)
            sum += count(op.outputs[0], 0) * count(op.inputs[1], 1);
        if (op.code.builtin == model::Op::depthwise_conv_2d)
            sum += count(op.outputs[0], 0) * count(op.inputs[1], 1) / count(op.inputs[1], 3);
    }
    return sum;
}

TEST(KnownShapes, HaveTheProductsThatAreSaidOfThem) {
    const std::map<std::string, double> millions{
        {"mobilenet_v1", 569},           {"mobilenet_v1_0.75", 325},
        {"mobilenet_v2", 300},           {"resnet50", 3860},
        {"inception_v1", 1500},          {"inception_v3", 5713},
        {"efficientnet_edgetpu_s", 1810}};
    for (const auto& [name, expected] : millions) {
        const auto model = network_of_shape(name + ":int8");
        ASSERT_TRUE(model) << model.error().message();
        const auto found = static_cast<double>(products(model->subgraphs[0])) / 1e6;
        EXPECT_NEAR(found / expected, 1, 0.03) << name << ": " << found;
    }
}

TEST(KnownShapes, IncludeTheFewThatAreMeasuredWithoutReferenceData) {
    const std::vector<std::string> known = known_shapes();
    for (const std::string& path : few_shapes()) {
        ASSERT_TRUE(path.starts_with(shape_prefix));
        EXPECT_NE(std::ranges::find(known, path.substr(shape_prefix.size())), known.end()) << path;
    }
}

TEST(KnownShapes, AreRunByTheKernels) {
    for (const std::string& name : known_shapes()) {
        const auto model = network_of_shape(name);
        ASSERT_TRUE(model) << name << ": " << model.error().message();
        const auto executor = graph::Executor::create(*model, {.placers = {cpu::placer()}});
        EXPECT_TRUE(executor) << name << ": " << executor.error().message();
    }
}

}  // namespace
}  // namespace reef::peers
