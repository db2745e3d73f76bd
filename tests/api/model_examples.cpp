// How a program builds, reads and writes models.
#include <gtest/gtest.h>

#include "reef/model/builder.h"
#include "reef/model/graph.h"
#include "reef/model/operator.h"
#include "reef/model/tflite.h"

namespace {

using reef::ElementType;
namespace model = reef::model;

model::Model sigmoid() {
    model::Builder builder("a sigmoid");
    const auto in = builder.input("in", ElementType::uint8, {1, 4}, model::per_tensor(0.05F, 128));
    const auto out =
        builder.tensor("out", ElementType::uint8, {1, 4}, model::per_tensor(1 / 256.0F, 0));
    builder.add(model::Op::logistic, {in}, {out});
    builder.output(out);
    return builder.finish().value();
}

TEST(Promised, ModelsAreBuilt) {
    const model::Model built = sigmoid();
    ASSERT_EQ(built.subgraphs.size(), 1U);
    const model::Subgraph& graph = built.subgraphs[0];
    EXPECT_EQ(graph.tensors[static_cast<std::size_t>(graph.outputs[0])].byte_count(), 4);
    EXPECT_EQ(model::place_of(graph, 0), "operator 0 LOGISTIC");
}

TEST(Promised, OperatorsHaveNamesAndOptions) {
    EXPECT_EQ(model::builtin_name(model::Op::conv_2d), "CONV_2D");
    const model::Options options = model::Conv2dOptions{.stride_h = 2, .stride_w = 2};
    EXPECT_EQ(std::get<model::Conv2dOptions>(options).dilation_h, 1);
    model::Options other = options;
    EXPECT_EQ(other, options);
    other = model::AddOptions{};
    EXPECT_NE(other, options);
}

TEST(Promised, ModelsAreTfliteFiles) {
    const auto file = model::write_tflite(sigmoid());
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_TRUE(model::is_tflite(*file));
    const auto read = model::read_tflite(reef::SharedBytes::copy_of(*file));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->subgraphs[0].operators[0].code.builtin, model::Op::logistic);
    EXPECT_TRUE(model::validate(*read));
    EXPECT_FALSE(model::read_tflite(reef::SharedBytes::copy_of(reef::as_bytes("no model"))));
}

}  // namespace
