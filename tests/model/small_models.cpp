#include "model/small_models.h"

#include <flatbuffers/flexbuffers.h>

#include <span>

#include "reef/model/builder.h"
#include "reef_schema/tflite_generated.h"

namespace reef::test {
namespace {

using namespace model;

template <typename Native>
std::vector<std::byte> packed(const Native& native) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(Native::TableType::Pack(builder, &native));
    const Bytes bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
    return {bytes.begin(), bytes.end()};
}

OpaqueTable sparsity() {
    schema::SparsityParametersT table;
    table.traversal_order = {0, 1};
    auto dense = std::make_unique<schema::DimensionMetadataT>();
    dense->dense_size = 3;
    auto sparse = std::make_unique<schema::DimensionMetadataT>();
    sparse->format = 1;
    schema::Uint8VectorT segments;
    segments.values = {0, 1, 1, 2};
    sparse->array_segments.Set(segments);
    schema::Uint16VectorT indices;
    indices.values = {300, 2};
    sparse->array_indices.Set(indices);
    table.dim_metadata.push_back(std::move(dense));
    table.dim_metadata.push_back(std::move(sparse));
    return {"SparsityParameters", packed(table)};
}

OpaqueTable custom_quantization() {
    schema::CustomQuantizationT table;
    table.custom = {1, 2, 3, 4, 5};
    return {"CustomQuantization", packed(table)};
}

OpaqueTable variant() {
    schema::VariantSubTypeT table;
    table.shape = {4, 5};
    table.has_rank = true;
    return {"VariantSubType", packed(table)};
}

OpaqueTable stablehlo_gather() {
    schema::StablehloGatherOptionsT table;
    table.offset_dims = {1, 2};
    table.slice_sizes = {3, -1};
    table.indices_are_sorted = true;
    return {"StablehloGatherOptions", packed(table)};
}

OpaqueOptions reverse_sequence() {
    schema::ReverseSequenceOptionsT table;
    table.seq_dim = -1;
    table.batch_dim = 1;
    return {static_cast<std::uint8_t>(schema::BuiltinOptions::ReverseSequenceOptions),
            "ReverseSequenceOptions", packed(table)};
}

std::vector<std::uint8_t> flexbuffer() {
    flexbuffers::Builder builder;
    builder.Map([&] {
        builder.Int("max_detections", 20);
        builder.Double("score_threshold", 0.25);
    });
    builder.Finish();
    return builder.GetBuffer();
}

/// What the Builder does not make: the rarer fields of tensors and operators.
void add_rare_fields(Model& m) {
    Subgraph& graph = m.subgraphs[0];
    graph.tensors[0].shape_signature = {{-1, 4, 4, 2}};
    graph.tensors[0].quantization->min = {-1};
    graph.tensors[0].quantization->max = {1};
    graph.tensors[1].sparsity = sparsity();
    graph.tensors[1].quantization->custom = custom_quantization();
    graph.tensors[4].variant_tensors = {variant(), variant()};
    graph.operators[0].intermediates = {absent_tensor, 3};
    graph.operators[0].mutating_variable_inputs = {false, false, true};
    graph.operators[0].debug_metadata_index = 7;
    graph.operators[1].options_2 = stablehlo_gather();
    m.metadata_buffer = {1, 2};
    m.signatures.push_back({.key = "serving_default",
                            .tag = "old",
                            .subgraph = 0,
                            .inputs = {{"image", 0}},
                            .outputs = {{"boxes", 4}}});
    Subgraph empty;
    empty.name = "empty";
    empty.debug_metadata_index = 1;
    m.subgraphs.push_back(empty);
}

}  // namespace

Model rich_model() {
    Builder b("every feature");
    const std::vector<std::int8_t> weights{1, -2, 3, -4, 5, -6};
    const auto in = b.input("in", ElementType::int8, {1, 4, 4, 2}, per_tensor(0.5F, -3));
    const auto w = b.constant<std::int8_t>("w", ElementType::int8, {3, 1, 1, 2}, weights,
                                           per_channel({0.1F, 0.2F, 0.3F}, 0));
    const auto state = b.variable("state", ElementType::int16, {1, 4, 4, 3});
    const auto mid = b.tensor("mid", ElementType::int8, {1, 4, 4, 3}, per_tensor(0.25F, 0));
    const auto out = b.tensor("out", ElementType::float32, {});
    b.add(Op::conv_2d, {in, w, state}, {mid},
          Conv2dOptions{.padding = Padding::valid,
                        .stride_h = 1,
                        .stride_w = 1,
                        .activation = Activation::relu6},
          3);
    b.add(static_cast<Op>(201), {mid, absent_tensor}, {out}, reverse_sequence());
    const auto options = flexbuffer();
    b.add_custom("PosenetDecoderOp", {out}, {out}, std::as_bytes(std::span(options)));
    b.output(out);
    b.metadata("min_runtime_version", as_bytes("1.14.0"));
    Model m = b.finish().value();
    add_rare_fields(m);
    return m;
}

Model plain_model() {
    Builder b("plain");
    const std::vector<std::int8_t> filter(3UL * 3 * 3 * 2, 7);
    const std::vector<std::int8_t> weights(5UL * 48, -7);
    const std::vector<std::int32_t> shape{1, 48};
    const auto in = b.input("in", ElementType::int8, {1, 4, 4, 2}, per_tensor(0.5F, -3));
    const auto f = b.constant<std::int8_t>("filter", ElementType::int8, {3, 3, 3, 2}, filter,
                                           per_channel({0.1F, 0.2F, 0.3F}, 0));
    const auto conv = b.tensor("conv", ElementType::int8, {1, 4, 4, 3}, per_tensor(0.25F, 0));
    const auto s = b.constant<std::int32_t>("shape", ElementType::int32, {2}, shape);
    const auto flat = b.tensor("flat", ElementType::int8, {1, 48}, per_tensor(0.25F, 0));
    const auto w = b.constant<std::int8_t>("weights", ElementType::int8, {5, 48}, weights,
                                           per_tensor(0.1F, 0));
    const auto logits = b.tensor("logits", ElementType::int8, {1, 5}, per_tensor(0.25F, 0));
    const auto scores = b.tensor("scores", ElementType::int8, {1, 5}, per_tensor(1 / 256.F, -128));
    b.add(Op::conv_2d, {in, f, absent_tensor}, {conv},
          Conv2dOptions{.padding = Padding::same, .stride_h = 1, .stride_w = 1}, 3);
    b.add(Op::reshape, {conv, s}, {flat}, ReshapeOptions{{1, 48}});
    b.add(Op::fully_connected, {flat, w, absent_tensor}, {logits}, FullyConnectedOptions{}, 4);
    b.add(Op::softmax, {logits}, {scores}, SoftmaxOptions{1.0F}, 2);
    b.output(scores);
    return b.finish().value();
}

}  // namespace reef::test
