// read -> write -> read gives an equal graph, and equal models give equal bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/small_models.h"
#include "reef/base/file.h"
#include "reef/model/tflite.h"
#include "reef_schema/tflite_generated.h"
#include "support/shared_data.h"

namespace reef::model {
namespace {

using testing::HasSubstr;

SharedBytes shared_copy(const std::vector<std::byte>& bytes) {
    return SharedBytes::copy_of(bytes);
}

void expect_round_trip(const Model& model) {
    const auto bytes = write_tflite(model);
    ASSERT_TRUE(bytes) << bytes.error().message();
    const auto again = read_tflite(shared_copy(*bytes));
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_TRUE(*again == model);
    EXPECT_EQ(write_tflite(*again).value(), *bytes);
}

class EveryFile : public testing::TestWithParam<std::filesystem::path> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryFile);

TEST_P(EveryFile, RoundTrip) {
    const auto model = load_tflite(GetParam().string());
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_TRUE(model->not_preserved.empty()) << model->not_preserved.front();
    expect_round_trip(*model);
}

// The parameters come from the folder; the count is fixed so that a folder half there is noticed.
TEST(RoundTrip, EveryFileOfTheReferenceDataIsTried) {
    REEF_SHARED_OR_SKIP(shared);
    EXPECT_EQ(test::shared_files("data/models", ".tflite").size(), 18U) << shared;
    EXPECT_EQ(test::shared_files("data/edgetpu/templates", ".tflite").size(), 20U) << shared;
}

std::string test_name(const testing::TestParamInfo<std::filesystem::path>& info) {
    std::string name = info.param.stem().string();
    for (char& c : name) {
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    }
    return name;
}

INSTANTIATE_TEST_SUITE_P(Models, EveryFile,
                         testing::ValuesIn(test::shared_files("data/models", ".tflite")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Templates, EveryFile,
                         testing::ValuesIn(test::shared_files("data/edgetpu/templates", ".tflite")),
                         test_name);

TEST(RoundTrip, RichModel) {
    expect_round_trip(test::rich_model());
}
TEST(RoundTrip, PlainModel) {
    expect_round_trip(test::plain_model());
}

// One operator for each option type, with no field at its default.
TEST(RoundTrip, EveryTypedOption) {
    const auto relu = Activation::relu;
    const auto i32 = ElementType::int32;
    const auto i64 = ElementType::int64;
    const std::vector<Options> all{
        Conv2dOptions{Padding::valid, 2, 3, 4, 5, relu, i32},
        DepthwiseConv2dOptions{Padding::valid, 2, 3, 4, 5, 6, relu},
        Pool2dOptions{Padding::valid, 2, 3, 4, 5, relu},
        TransposeConvOptions{Padding::valid, 2, 3, relu, i32},
        FullyConnectedOptions{relu, 1, true, true, i32},
        AddOptions{relu, false},
        SubOptions{relu, false},
        MulOptions{relu},
        DivOptions{relu},
        ConcatenationOptions{-1, relu},
        SoftmaxOptions{0.5F},
        ReshapeOptions{{1, -1}},
        SqueezeOptions{{1, 2}},
        ResizeBilinearOptions{true, true, 7, 8},
        ResizeNearestNeighborOptions{true, true},
        ReducerOptions{true},
        StridedSliceOptions{1, 2, 3, 4, 5, true},
        SplitOptions{3},
        CastOptions{i32, i64},
        ArgMaxOptions{i64},
        ArgMinOptions{i64},
        PackOptions{2, 1},
        UnpackOptions{2, 1},
        SplitVOptions{3},
        ShapeOptions{i64},
        SpaceToDepthOptions{2},
        DepthToSpaceOptions{2},
        LeakyReluOptions{0.5F},
        GeluOptions{true},
        GatherOptions{1, 2},
        MirrorPadOptions{Mirror::symmetric},
        L2NormOptions{relu},
        BatchMatMulOptions{true, true, true},
        SvdfOptions{2, relu, true},
        UnidirectionalSequenceLstmOptions{relu, 1.5F, 2.5F, true, true, true},
    };
    ASSERT_EQ(all.size(), std::variant_size_v<OptionsAlternatives> - 2);
    Model model = test::plain_model();
    model.subgraphs[0].operators.clear();
    for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(all[i].index(), i + 1);
        Operator op;
        op.code.builtin = Op::add;
        op.options = all[i];
        model.subgraphs[0].operators.push_back(op);
    }
    expect_round_trip(model);
}

// Width and height are easily swapped on both sides at once: check against the schema's own names.
TEST(RoundTrip, FieldsStandWhereTheSchemaSays) {
    Model model = test::plain_model();
    model.subgraphs[0].operators[0].options = DepthwiseConv2dOptions{
        .padding = Padding::valid, .stride_h = 2, .stride_w = 3, .dilation_h = 4, .dilation_w = 5};
    model.subgraphs[0].operators[1].options =
        Pool2dOptions{.stride_h = 2, .stride_w = 3, .filter_h = 4, .filter_w = 5};
    model.subgraphs[0].operators[2].options =
        Conv2dOptions{.stride_h = 2, .stride_w = 3, .dilation_h = 4, .dilation_w = 5};
    const auto bytes = write_tflite(model).value();
    const auto& operators = *schema::GetModel(bytes.data())->subgraphs()->Get(0)->operators();
    const auto* depthwise = operators[0]->builtin_options_as_DepthwiseConv2DOptions();
    ASSERT_NE(depthwise, nullptr);
    EXPECT_EQ(depthwise->padding(), 1);
    EXPECT_EQ(depthwise->stride_h(), 2);
    EXPECT_EQ(depthwise->stride_w(), 3);
    EXPECT_EQ(depthwise->dilation_h_factor(), 4);
    EXPECT_EQ(depthwise->dilation_w_factor(), 5);
    const auto* pool = operators[1]->builtin_options_as_Pool2DOptions();
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(pool->stride_h(), 2);
    EXPECT_EQ(pool->filter_height(), 4);
    EXPECT_EQ(pool->filter_width(), 5);
    const auto* conv = operators[2]->builtin_options_as_Conv2DOptions();
    ASSERT_NE(conv, nullptr);
    EXPECT_EQ(conv->stride_w(), 3);
    EXPECT_EQ(conv->dilation_h_factor(), 4);
}

TEST(Writer, ConstantsAndCustomOptionsAreAlignedTo16) {
    const auto bytes = write_tflite(test::rich_model()).value();
    const auto at = [&](const void* p) { return static_cast<const std::byte*>(p) - bytes.data(); };
    const auto* file = schema::GetModel(bytes.data());
    for (const auto* buffer : *file->buffers()) {
        if (buffer->data() == nullptr) continue;
        EXPECT_EQ(at(buffer->data()->data()) % 16, 0);
    }
    const auto* custom = file->subgraphs()->Get(0)->operators()->Get(2)->custom_options();
    EXPECT_EQ(at(custom->data()) % 16, 0);
}

TEST(Writer, OperatorCodesAreDeduplicatedAndBackwardCompatible) {
    Model model = test::plain_model();
    auto& operators = model.subgraphs[0].operators;
    operators.push_back(operators[0]);
    operators.push_back(operators[0]);
    operators.back().code.version = 9;
    operators.push_back(operators[3]);
    operators.back().code = {.builtin = static_cast<Op>(150), .custom = {}, .version = 1};
    const auto bytes = write_tflite(model).value();
    const auto& codes = *schema::GetModel(bytes.data())->operator_codes();
    ASSERT_EQ(codes.size(), 6U);
    EXPECT_EQ(codes[0]->deprecated_builtin_code(), 3);
    EXPECT_EQ(codes[0]->builtin_code(), 3);
    EXPECT_EQ(codes[4]->version(), 9);
    EXPECT_EQ(codes[5]->deprecated_builtin_code(), 127);
    EXPECT_EQ(codes[5]->builtin_code(), 150);
}

TEST(Writer, BigCustomOptions) {
    Model model = test::rich_model();
    model.subgraphs[0].operators[2].custom_options =
        SharedBytes::copy_of(std::vector<std::byte>(20 << 20, std::byte{0xa5}));
    expect_round_trip(model);
}

TEST(Writer, RefusesWhatBreaksTheRules) {
    Model model = test::plain_model();
    model.subgraphs[0].operators[0].inputs[0] = 99;
    const auto written = write_tflite(model);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().cause, Cause::bad_argument);
    EXPECT_EQ(written.error().message(),
              "subgraph 0: operator 0 CONV_2D: input 0 is tensor 99 of 8");
}

TEST(Writer, RefusesOpaqueTablesThatAreNotCanonical) {
    Model model = test::rich_model();
    auto& options = std::get<OpaqueOptions>(model.subgraphs[0].operators[1].options);
    options.bytes.resize(options.bytes.size() - 4);
    EXPECT_THAT(write_tflite(model).error().message(), HasSubstr("ReverseSequenceOptions"));
    options = std::get<OpaqueOptions>(test::rich_model().subgraphs[0].operators[1].options);
    options.bytes.insert(options.bytes.end(), 16, std::byte{0});
    EXPECT_THAT(write_tflite(model).error().message(), HasSubstr("canonical"));
    options.type_name = "PadOptions";
    EXPECT_THAT(write_tflite(model).error().message(), HasSubstr("are not number 87"));
}

TEST(Writer, RefusesToLoseWhatItCouldNotRead) {
    Model model = test::plain_model();
    model.not_preserved.emplace_back("field 12 of subgraphs[0].operators[3]");
    const auto written = write_tflite(model);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().cause, Cause::unsupported);
    EXPECT_THAT(written.error().message(), HasSubstr("field 12 of subgraphs[0].operators[3]"));
}

}  // namespace
}  // namespace reef::model
