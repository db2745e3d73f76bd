// Files made field by field, to hold what no ordinary writer gives: absent fields, newer fields,
// data outside the FlatBuffer, broken rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "model/small_models.h"
#include "reef/model/tflite.h"
#include "reef_schema/tflite_generated.h"
#include "support/temporary_folder.h"

namespace reef::model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SharedBytes finish(flatbuffers::FlatBufferBuilder& builder, const schema::ModelT& model,
                   const char* identifier = "TFL3") {
    builder.Finish(schema::Model::Pack(builder, &model), identifier);
    return SharedBytes::copy_of(
        std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())));
}

SharedBytes file_of(const schema::ModelT& model, const char* identifier = "TFL3") {
    flatbuffers::FlatBufferBuilder builder;
    return finish(builder, model, identifier);
}

std::unique_ptr<schema::TensorT> tensor(std::vector<std::int32_t> shape) {
    auto made = std::make_unique<schema::TensorT>();
    made->shape = std::move(shape);
    return made;
}

/// One ADD of two float inputs; nothing that has a default is given.
schema::ModelT bare() {
    schema::ModelT model;
    model.version = 3;
    model.buffers.push_back(std::make_unique<schema::BufferT>());
    model.operator_codes.push_back(std::make_unique<schema::OperatorCodeT>());
    auto graph = std::make_unique<schema::SubGraphT>();
    for (int i = 0; i < 3; ++i) graph->tensors.push_back(tensor({2}));
    graph->inputs = {0, 1};
    graph->outputs = {2};
    auto add = std::make_unique<schema::OperatorT>();
    add->inputs = {0, 1};
    add->outputs = {2};
    graph->operators.push_back(std::move(add));
    model.subgraphs.push_back(std::move(graph));
    return model;
}

schema::TensorT& tensor_of(schema::ModelT& model, std::size_t i) {
    return *model.subgraphs[0]->tensors[i];
}
schema::OperatorT& operator_of(schema::ModelT& model) {
    return *model.subgraphs[0]->operators[0];
}

/// Gives tensor `i` a buffer of its own with `size` bytes.
void give_data(schema::ModelT& model, std::size_t i, std::size_t size) {
    auto buffer = std::make_unique<schema::BufferT>();
    buffer->data.resize(size, 1);
    model.buffers.push_back(std::move(buffer));
    tensor_of(model, i).buffer = static_cast<std::uint32_t>(model.buffers.size() - 1);
}

TEST(AbsentFields, HaveTheirDefaults) {
    const Model model = read_tflite(file_of(bare())).value();
    const Operator& op = model.subgraphs[0].operators[0];
    EXPECT_EQ(op.code, (OperatorCode{Op::add, "", 1}));
    EXPECT_TRUE(std::holds_alternative<std::monostate>(op.options));
    EXPECT_EQ(op.debug_metadata_index, -1);
    const Tensor& first = model.subgraphs[0].tensors[0];
    EXPECT_EQ(first.type, ElementType::float32);
    EXPECT_EQ(first.buffer, 0U);
    EXPECT_FALSE(first.quantization || first.shape_signature || first.sparsity);
    EXPECT_FALSE(first.is_variable || first.has_rank);
    EXPECT_EQ(first.byte_count(), 8);
    EXPECT_TRUE(model.constant(first).empty());
}

TEST(AbsentFields, OfOptionsAreTheSchemasDefaults) {
    schema::ModelT file = bare();
    operator_of(file).builtin_options.Set(schema::Conv2DOptionsT());
    const Model model = read_tflite(file_of(file)).value();
    const auto options = std::get<Conv2dOptions>(model.subgraphs[0].operators[0].options);
    EXPECT_EQ(options, Conv2dOptions{});
    EXPECT_EQ(options.dilation_h, 1);
}

TEST(OperatorCode, IsTheLargerOfTheTwo) {
    struct Case {
        std::int8_t old_code;
        std::int32_t code;
        std::int32_t expected;
    };
    for (const Case c :
         {Case{3, 0, 3}, Case{0, 3, 3}, Case{127, 150, 150}, Case{4, 4, 4}, Case{127, 0, 127}}) {
        schema::ModelT file = bare();
        file.operator_codes[0]->deprecated_builtin_code = c.old_code;
        file.operator_codes[0]->builtin_code = c.code;
        const Model model = read_tflite(file_of(file)).value();
        EXPECT_EQ(static_cast<int>(model.subgraphs[0].operators[0].code.builtin), c.expected);
    }
}

TEST(OperatorCode, ACustomOperatorNeedsItsName) {
    schema::ModelT file = bare();
    file.operator_codes[0]->builtin_code = 32;
    EXPECT_EQ(read_tflite(file_of(file)).error().message(),
              "operator code 0: a custom operator without custom_code");
    file.operator_codes[0]->custom_code = "Mine";
    const Model model = read_tflite(file_of(file)).value();
    EXPECT_EQ(place_of(model.subgraphs[0], 0), "operator 0 Mine");
}

TEST(OptionalInput, MinusOneIsAbsent) {
    schema::ModelT file = bare();
    operator_of(file).inputs = {0, 1, -1};
    const Model model = read_tflite(file_of(file)).value();
    EXPECT_EQ(model.subgraphs[0].operators[0].inputs.back(), absent_tensor);
}

TEST(Quantization, ZeroPointsMayBeLeftOut) {
    schema::ModelT file = bare();
    auto q = std::make_unique<schema::QuantizationParametersT>();
    q->scale = {0.5F, 0.25F};
    tensor_of(file, 0).quantization = std::move(q);
    tensor_of(file, 1).quantization = std::make_unique<schema::QuantizationParametersT>();
    const Model model = read_tflite(file_of(file)).value();
    EXPECT_THAT(model.subgraphs[0].tensors[0].quantization->zero_point, ElementsAre(0, 0));
    // Empty parameters are not the same as none.
    ASSERT_TRUE(model.subgraphs[0].tensors[1].quantization);
    EXPECT_FALSE(model.subgraphs[0].tensors[1].quantization->quantized());
    EXPECT_FALSE(model.subgraphs[0].tensors[2].quantization);
}

TEST(Constants, AreViewsIntoTheFile) {
    schema::ModelT file = bare();
    give_data(file, 1, 8);
    file.subgraphs[0]->inputs = {0};
    const SharedBytes bytes = file_of(file);
    const Model model = read_tflite(bytes).value();
    const Bytes constant = model.constant(model.subgraphs[0].tensors[1]);
    ASSERT_EQ(constant.size(), 8U);
    EXPECT_GE(constant.data(), bytes.view().data());
    EXPECT_LT(constant.data(), bytes.view().data() + bytes.size());
}

TEST(Constants, OutliveTheCallersHandleOnTheFile) {
    schema::ModelT file = bare();
    give_data(file, 1, 8);
    file.subgraphs[0]->inputs = {0};
    Result<Model> model = read_tflite(file_of(file));
    EXPECT_EQ(model->constant(model->subgraphs[0].tensors[1])[7], std::byte{1});
}

TEST(Constants, AFileMayStartAtAnyAddress) {
    const auto written = write_tflite(test::rich_model()).value();
    for (std::size_t shift = 0; shift < 16; ++shift) {
        std::vector<std::byte> moved(shift);
        moved.insert(moved.end(), written.begin(), written.end());
        const SharedBytes whole = SharedBytes::copy_of(moved);
        const auto model = read_tflite(whole.part(shift, written.size()));
        ASSERT_TRUE(model) << model.error().message();
        EXPECT_TRUE(*model == test::rich_model());
    }
}

// Files beyond 2 GiB keep data behind the FlatBuffer; the smallest such file does as well.
SharedBytes with_data_behind(std::uint64_t size, std::uint64_t claimed_size) {
    schema::ModelT file = bare();
    give_data(file, 1, 0);
    file.subgraphs[0]->inputs = {0};
    file.buffers[1]->offset = 1 << 16;
    file.buffers[1]->size = claimed_size;
    const SharedBytes front = file_of(file);
    std::vector<std::byte> whole(front.view().begin(), front.view().end());
    whole.resize(1 << 16);
    whole.resize((1 << 16) + size, std::byte{5});
    return SharedBytes::copy_of(whole);
}

TEST(DataOutsideTheFlatBuffer, AreRead) {
    const Model model = read_tflite(with_data_behind(8, 8)).value();
    EXPECT_EQ(model.constant(model.subgraphs[0].tensors[1]).size(), 8U);
    EXPECT_EQ(model.constant(model.subgraphs[0].tensors[1])[0], std::byte{5});
    const Model again = read_tflite(SharedBytes::copy_of(write_tflite(model).value())).value();
    EXPECT_TRUE(again == model);
}

TEST(DataOutsideTheFlatBuffer, MustLieInTheFile) {
    EXPECT_EQ(read_tflite(with_data_behind(7, 8)).error().message(),
              "buffer 1: 8 bytes at byte 65536 lie outside the file of 65543 bytes (the file is "
              "truncated or damaged)");
    EXPECT_THAT(read_tflite(with_data_behind(7, ~std::uint64_t{0})).error().message(),
                HasSubstr("lie outside the file"));
}

TEST(DataOutsideTheFlatBuffer, InOtherFilesAreRefusedByName) {
    schema::ModelT file = bare();
    tensor_of(file, 1).external_buffer = 1;
    const auto model = read_tflite(file_of(file));
    ASSERT_FALSE(model);
    EXPECT_EQ(model.error().cause, Cause::unsupported);
    EXPECT_THAT(model.error().message(),
                HasSubstr("subgraph 0: tensor 1: constant data in another file"));
}

// -- What is newer than the schema ----------------------------------------------------------------

void expect_only_readable(const SharedBytes& file, const std::string& what) {
    const auto model = read_tflite(file);
    ASSERT_TRUE(model) << model.error().message();
    ASSERT_EQ(model->not_preserved.size(), 1U);
    EXPECT_EQ(model->not_preserved[0], what);
    const auto written = write_tflite(*model);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().cause, Cause::unsupported);
    EXPECT_THAT(written.error().message(), HasSubstr(what));
}

TEST(NewerThanTheSchema, FieldsAreReadPastButNotWritten) {
    flatbuffers::FlatBufferBuilder b;
    const auto buffers = b.CreateVector(std::vector{schema::CreateBuffer(b)});
    const auto start = b.StartTable();
    b.AddElement<std::int32_t>(flatbuffers::FieldIndexToOffset(9), 5, 0);
    const auto graph = flatbuffers::Offset<schema::SubGraph>(b.EndTable(start));
    const auto graphs = b.CreateVector(std::vector{graph});
    schema::FinishModelBuffer(b, schema::CreateModel(b, 3, 0, graphs, 0, buffers));
    const Bytes newer = std::as_bytes(std::span(b.GetBufferPointer(), b.GetSize()));
    expect_only_readable(SharedBytes::copy_of(newer), "field 9 of subgraphs[0]");
}

TEST(NewerThanTheSchema, UnionMembersAreReadPastButNotWritten) {
    schema::ModelT file = bare();
    operator_of(file).builtin_options.Set(schema::PadOptionsT());
    SharedBytes bytes = file_of(file);
    std::vector<std::byte> changed(bytes.view().begin(), bytes.view().end());
    const auto* op = schema::GetModel(changed.data())->subgraphs()->Get(0)->operators()->Get(0);
    const auto* number = reinterpret_cast<const flatbuffers::Table*>(op)->GetAddressOf(
        schema::Operator::VT_BUILTIN_OPTIONS_TYPE);
    changed[static_cast<std::size_t>(reinterpret_cast<const std::byte*>(number) - changed.data())] =
        std::byte{200};
    bytes = SharedBytes::copy_of(changed);
    expect_only_readable(bytes, "union member 200 of subgraphs[0].operators[0].builtin_options");
    const Model model = read_tflite(bytes).value();
    EXPECT_EQ(std::get<OpaqueOptions>(model.subgraphs[0].operators[0].options).union_type, 200);
}

TEST(NewerThanTheSchema, OtherThingsThatTheModelDoesNotHold) {
    schema::ModelT file = bare();
    operator_of(file).custom_options_format = 1;
    expect_only_readable(file_of(file), "operator 0: custom options of format 1");
    file = bare();
    file.external_buffer_groups.push_back(std::make_unique<schema::ExternalBufferGroupT>());
    expect_only_readable(file_of(file), "the list of external buffers");
    file = bare();
    tensor_of(file, 0).quantization = std::make_unique<schema::QuantizationParametersT>();
    tensor_of(file, 0).quantization->zero_point = {3};
    expect_only_readable(file_of(file), "tensor 0: zero points without scales");
}

// -- Broken rules ---------------------------------------------------------------------------------

struct Broken {
    std::function<void(schema::ModelT&)> change;
    std::string message;
};

void quantize(schema::ModelT& model, std::vector<float> scale, std::vector<std::int64_t> zeros) {
    auto q = std::make_unique<schema::QuantizationParametersT>();
    q->scale = std::move(scale);
    q->zero_point = std::move(zeros);
    tensor_of(model, 0).quantization = std::move(q);
}

TEST(BrokenRules, AreNamedWithTheirPlace) {
    const std::vector<Broken> cases{
        {[](auto& m) { m.version = 1; },
         "schema version 1; version 3 is the one in use since 2017"},
        {[](auto& m) { m.subgraphs.clear(); }, "the model has no subgraph"},
        {[](auto& m) { m.buffers.clear(); }, "the model has no buffers"},
        {[](auto& m) { operator_of(m).opcode_index = 1; },
         "subgraph 0: operator 0: operator code 1 of 1"},
        {[](auto& m) {
             operator_of(m).inputs = {0, 3};
         },
         "subgraph 0: operator 0 ADD: input 1 is tensor 3 of 3"},
        {[](auto& m) {
             operator_of(m).inputs = {0, -2};
         },
         "subgraph 0: operator 0 ADD: input 1 is tensor -2 of 3"},
        {[](auto& m) { operator_of(m).outputs = {-1}; },
         "subgraph 0: operator 0 ADD: output 0 is tensor -1 of 3"},
        {[](auto& m) { m.subgraphs[0]->inputs = {-1}; },
         "subgraph 0: graph input 0 is tensor -1 of 3"},
        {[](auto& m) {
             m.operator_codes[0]->builtin_code = m.operator_codes[0]->deprecated_builtin_code = -1;
         },
         "subgraph 0: operator 0 BUILTIN_-1: operator number -1"},
        {[](auto& m) { tensor_of(m, 0).shape = {-1}; },
         "subgraph 0: tensor 0: negative size -1 in its shape"},
        {[](auto& m) { tensor_of(m, 0).buffer = 9; }, "subgraph 0: tensor 0: buffer 9 of 1"},
        {[](auto& m) { give_data(m, 0, 7); },
         "subgraph 0: tensor 0: buffer 1 holds 7 bytes, but 2 float32 needs 8"},
        {[](auto& m) { give_data(m, 0, 8); }, "subgraph 0: graph input tensor 0 has constant data"},
        {[](auto& m) { give_data(m, 2, 8); },
         "subgraph 0: operator 0 ADD: output tensor 2 has constant data"},
        {[](auto& m) {
             give_data(m, 0, 8);
             tensor_of(m, 0).is_variable = true;
         },
         "subgraph 0: tensor 0: a variable tensor with constant data"},
        {[](auto& m) {
             quantize(m, {1, 2}, {0});
         },
         "subgraph 0: tensor 0: 1 zero points for 2 scales"},
        {[](auto& m) {
             quantize(m, {1, 2, 3}, {0, 0, 0});
         },
         "subgraph 0: tensor 0: 3 scales for the 2 indices of axis 0"},
        {[](auto& m) { quantize(m, {std::numeric_limits<float>::quiet_NaN()}, {0}); },
         "subgraph 0: tensor 0: scale nan"},
        {[](auto& m) { quantize(m, {1}, {std::int64_t{1} << 40}); },
         "subgraph 0: tensor 0: zero point 1099511627776 of type float32"},
        {[](auto& m) {
             m.metadata.push_back(std::make_unique<schema::MetadataT>());
             m.metadata[0]->buffer = 4;
         },
         "metadata 0: buffer 4 of 1"},
        {[](auto& m) {
             m.signature_defs.push_back(std::make_unique<schema::SignatureDefT>());
             m.signature_defs[0]->subgraph_index = 1;
         },
         "signature 0: subgraph 1 of 1"},
        {[](auto& m) {
             schema::Conv2DOptionsT options;
             options.fused_activation_function = 77;
             operator_of(m).builtin_options.Set(options);
         },
         "subgraph 0: operator 0 ADD: activation number 77"},
    };
    for (const Broken& broken : cases) {
        schema::ModelT file = bare();
        broken.change(file);
        const auto model = read_tflite(file_of(file));
        ASSERT_FALSE(model) << broken.message;
        EXPECT_EQ(model.error().message(), broken.message);
    }
}

TEST(Rules, DoNotBindWhereTfliteDoesNot) {
    // Strings, sparse tensors and types without a fixed size hold what they hold.
    for (const std::int8_t type : {std::int8_t{5}, std::int8_t{17}, std::int8_t{120}}) {
        schema::ModelT file = bare();
        file.subgraphs[0]->inputs = {1};
        give_data(file, 0, 3);
        tensor_of(file, 0).type = type;
        EXPECT_TRUE(read_tflite(file_of(file)));
    }
    schema::ModelT file = bare();
    file.subgraphs[0]->inputs = {1};
    give_data(file, 0, 3);
    tensor_of(file, 0).sparsity = std::make_unique<schema::SparsityParametersT>();
    EXPECT_TRUE(read_tflite(file_of(file)));
    // A custom operator may forward a tensor.
    file = bare();
    file.operator_codes[0]->builtin_code = 32;
    file.operator_codes[0]->custom_code = "forward";
    operator_of(file).outputs = {0};
    EXPECT_TRUE(read_tflite(file_of(file)));
}

TEST(NotAModel, IsSaid) {
    const auto message = [](std::string_view text) {
        return read_tflite(SharedBytes::copy_of(as_bytes(text))).error().message();
    };
    EXPECT_EQ(message(""),
              "0 bytes are too few for a .tflite file (the file is empty or truncated)");
    EXPECT_THAT(message("abcd"), HasSubstr("4 bytes are too few"));
    EXPECT_EQ(message("<!DOCTYPE html>"),
              "file identifier 'CTYP' at byte 4, not 'TFL3' (this is no TFLite model)");
    EXPECT_EQ(message(std::string_view("\0\0\0\0\0\0\0\0\0\0", 10)),
              "no file identifier 'TFL3' at byte 4 (this is no TFLite model)");
    EXPECT_THAT(message(std::string_view("\xff\0\0\0TFL3....", 12)),
                HasSubstr("the root table would be at byte 255 of 12"));
    EXPECT_THAT(read_tflite(file_of(bare(), "DWN1")).error().message(), HasSubstr("'DWN1'"));
}

TEST(LoadTflite, NamesTheFile) {
    const test::TemporaryFolder folder;
    const std::string path = folder.file("missing.tflite");
    EXPECT_THAT(load_tflite(path).error().message(), HasSubstr(path));
}

}  // namespace
}  // namespace reef::model
