// What a compiled operator's tensors and its program's layers must agree on.
#include "reef/edgetpu/device/layer_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reef/model/builder.h"

namespace reef::edgetpu {
namespace {

using testing::HasSubstr;

model::Tensor tensor(const std::string& name, ElementType type, float scale, std::int64_t zero) {
    model::Tensor one;
    one.name = name;
    one.type = type;
    one.shape = {1, 4};
    one.quantization = model::per_tensor(scale, zero);
    return one;
}

Layer layer(const std::string& name, DataType type, float scale, std::int32_t zero, bool input) {
    Layer one;
    one.name = name;
    one.y_dim = one.x_dim = 1;
    one.z_dim = 4;
    one.numerics = Numerics{zero, scale};
    one.data_type = type;
    if (input)
        one.kind = InputLayer{};
    else
        one.kind = OutputLayer{};
    return one;
}

struct LayerBindings : testing::Test {
    LayerBindings() {
        graph.tensors = {tensor("in", ElementType::uint8, 0.5F, 3),
                         tensor("out", ElementType::int8, 2.0F, -28)};
        op.inputs = {0};
        op.outputs = {1};
        inputs = {layer("in", DataType::fixed_point8, 0.5F, 3, true)};
        outputs = {layer("out", DataType::signed_fixed_point8, 2.0F, 100, false)};
    }

    [[nodiscard]] std::string error() const {
        const auto bound = LayerBinding::of(inputs, outputs, graph, op);
        return bound ? "" : bound.error().message();
    }

    model::Subgraph graph;
    model::Operator op;
    std::vector<Layer> inputs, outputs;
};

TEST_F(LayerBindings, SignedLayersHaveZeroPointsOfUint8) {
    EXPECT_EQ(error(), "");
}

TEST_F(LayerBindings, ANumberThatIsAnotherIsRefused) {
    graph.tensors[1].type = ElementType::uint8;
    EXPECT_THAT(error(), HasSubstr("the tensor is uint8, the layer int8"));
    graph.tensors[1] = tensor("out", ElementType::int8, 2.5F, -28);
    EXPECT_THAT(error(), HasSubstr("the tensor has scale 2.5 and zero point 100, the layer 2 and"));
    graph.tensors[1] = tensor("out", ElementType::int8, 2.0F, -27);
    EXPECT_THAT(error(), HasSubstr("zero point 101, the layer 2 and 100"));
    outputs[0].numerics.reset();
    EXPECT_EQ(error(), "");
}

TEST_F(LayerBindings, AnOutputHasOneLayer) {
    graph.tensors.push_back(tensor("more", ElementType::uint8, 1, 0));
    op.outputs = {1, 2};
    EXPECT_THAT(error(), HasSubstr("0 layers of the program write output 'more'"));
    op.outputs = {1};
    outputs.push_back(outputs[0]);
    EXPECT_THAT(error(), HasSubstr("2 layers of the program write output 'out'"));
}

}  // namespace
}  // namespace reef::edgetpu
