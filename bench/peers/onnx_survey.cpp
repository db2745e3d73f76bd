#include "peers/onnx_survey.h"

#include <onnx/onnx_pb.h>

namespace reef::peers {

Result<OptimisedGraph> survey(Bytes file) {
    onnx::ModelProto model;
    if (!model.ParseFromArray(file.data(), static_cast<int>(file.size())))
        return fail(Cause::bad_input, "the optimised graph is no ONNX file");
    OptimisedGraph found;
    for (const onnx::NodeProto& node : model.graph().node()) {
        const std::string& type = node.op_type();
        ++found.nodes[type];
        // "Conv", "FusedConv", "NhwcFusedConv", "QLinearConv"
        if (!type.ends_with("Conv")) continue;
        ++(type.starts_with("QLinear") ? found.integer_convolutions : found.float_convolutions);
    }
    return found;
}

}  // namespace reef::peers
