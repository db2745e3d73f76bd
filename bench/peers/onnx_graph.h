// Writes the graph of an ONNX file, node by node.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/element_type.h"
#include "reef/base/result.h"

namespace reef::peers {

using Dimensions = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

/// A node whose attributes are added one behind the other.
class OnnxNode {
  public:
    explicit OnnxNode(onnx::NodeProto& node) : node_(node) {}
    OnnxNode set(const char* name, std::int64_t value) const;
    OnnxNode set(const char* name, float value) const;
    OnnxNode set(const char* name, std::string_view value) const;
    OnnxNode set(const char* name, const Dimensions& values) const;

  private:
    [[nodiscard]] onnx::AttributeProto& attribute(const char* name) const;
    onnx::NodeProto& node_;
};

/// Nodes are added in an order in which they can run.
class OnnxGraph {
  public:
    explicit OnnxGraph(const std::string& name);

    /// In front of the names of the nodes that follow.
    void name_nodes(std::string prefix) { prefix_ = std::move(prefix); }
    OnnxNode node(std::string_view type, const Names& inputs, const Names& outputs);
    void input(const std::string& name, ElementType type, const Dimensions& shape);
    void output(const std::string& name, ElementType type, const Dimensions& shape);

    /// A name of its own, with `stem` in it.
    [[nodiscard]] std::string fresh(std::string_view stem);
    /// Constants; equal small ones are one.
    std::string constant(ElementType type, const Dimensions& shape, Bytes bytes);
    std::string scalar(float value);
    std::string integers(const Dimensions& values);

    /// The file.
    [[nodiscard]] std::string serialised() const;

  private:
    onnx::ModelProto model_;
    onnx::GraphProto& graph_;
    std::map<std::string, std::string> small_;  ///< type, shape and bytes to name
    std::string prefix_;
    std::size_t names_ = 0;
};

/// Whether ONNX has the type in the form that Reef has it.
[[nodiscard]] bool has_onnx_type(ElementType type);

}  // namespace reef::peers
