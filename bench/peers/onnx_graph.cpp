#include "peers/onnx_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cassert>
#include <optional>
#include <span>

namespace reef::peers {
namespace {

/// Of operators in ONNX's own domain: the last in which axes of reductions are attributes.
constexpr std::int64_t operator_set = 17;
constexpr std::int64_t ir_version = 8;

std::optional<onnx::TensorProto_DataType> onnx_type(ElementType type) {
    switch (type) {
        case ElementType::float32:
            return onnx::TensorProto_DataType_FLOAT;
        case ElementType::uint8:
            return onnx::TensorProto_DataType_UINT8;
        case ElementType::int8:
            return onnx::TensorProto_DataType_INT8;
        case ElementType::int32:
            return onnx::TensorProto_DataType_INT32;
        case ElementType::int64:
            return onnx::TensorProto_DataType_INT64;
        case ElementType::boolean:
            return onnx::TensorProto_DataType_BOOL;
        default:
            return std::nullopt;
    }
}

onnx::TensorProto_DataType known_type(ElementType type) {
    const auto found = onnx_type(type);
    assert(found);
    return *found;
}

void describe(onnx::ValueInfoProto& value, const std::string& name, ElementType type,
              const Dimensions& shape) {
    value.set_name(name);
    auto& tensor = *value.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(known_type(type));
    auto& dimensions = *tensor.mutable_shape();
    for (const std::int64_t length : shape) dimensions.add_dim()->set_dim_value(length);
}

}  // namespace

bool has_onnx_type(ElementType type) {
    return onnx_type(type).has_value();
}

onnx::AttributeProto& OnnxNode::attribute(const char* name) const {
    auto& attribute = *node_.add_attribute();
    attribute.set_name(name);
    return attribute;
}
OnnxNode OnnxNode::set(const char* name, std::int64_t value) const {
    auto& made = attribute(name);
    made.set_type(onnx::AttributeProto_AttributeType_INT);
    made.set_i(value);
    return *this;
}
OnnxNode OnnxNode::set(const char* name, float value) const {
    auto& made = attribute(name);
    made.set_type(onnx::AttributeProto_AttributeType_FLOAT);
    made.set_f(value);
    return *this;
}
OnnxNode OnnxNode::set(const char* name, std::string_view value) const {
    auto& made = attribute(name);
    made.set_type(onnx::AttributeProto_AttributeType_STRING);
    made.set_s(std::string(value));
    return *this;
}
OnnxNode OnnxNode::set(const char* name, const Dimensions& values) const {
    auto& made = attribute(name);
    made.set_type(onnx::AttributeProto_AttributeType_INTS);
    for (const std::int64_t value : values) made.add_ints(value);
    return *this;
}

OnnxGraph::OnnxGraph(const std::string& name) : graph_(*model_.mutable_graph()) {
    model_.set_ir_version(ir_version);
    model_.set_producer_name("reef peers");
    auto& set = *model_.add_opset_import();
    set.set_domain("");
    set.set_version(operator_set);
    graph_.set_name(name);
}

OnnxNode OnnxGraph::node(std::string_view type, const Names& inputs, const Names& outputs) {
    auto& node = *graph_.add_node();
    node.set_op_type(std::string(type));
    node.set_name(prefix_ + fresh(type));
    for (const std::string& input : inputs) node.add_input(input);
    for (const std::string& output : outputs) node.add_output(output);
    return OnnxNode(node);
}

void OnnxGraph::input(const std::string& name, ElementType type, const Dimensions& shape) {
    describe(*graph_.add_input(), name, type, shape);
}
void OnnxGraph::output(const std::string& name, ElementType type, const Dimensions& shape) {
    describe(*graph_.add_output(), name, type, shape);
}

std::string OnnxGraph::fresh(std::string_view stem) {
    return fmt::format("{}_{}", stem, names_++);
}

std::string OnnxGraph::constant(ElementType type, const Dimensions& shape, Bytes bytes) {
    constexpr std::size_t small = 64;
    std::string key;
    if (bytes.size() <= small) {
        key = fmt::format("{} {} {}", name_of(type), fmt::join(shape, "x"), as_text(bytes));
        if (const auto found = small_.find(key); found != small_.end()) return found->second;
    }
    const std::string name = fresh("constant");
    auto& tensor = *graph_.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(known_type(type));
    for (const std::int64_t length : shape) tensor.add_dims(length);
    tensor.set_raw_data(std::string(as_text(bytes)));
    if (!key.empty()) small_.emplace(std::move(key), name);
    return name;
}

std::string OnnxGraph::scalar(float value) {
    return constant(ElementType::float32, {}, std::as_bytes(std::span(&value, 1)));
}
std::string OnnxGraph::integers(const Dimensions& values) {
    return constant(ElementType::int64, {static_cast<std::int64_t>(values.size())},
                    std::as_bytes(std::span(values)));
}

std::string OnnxGraph::serialised() const {
    return model_.SerializeAsString();
}

}  // namespace reef::peers
