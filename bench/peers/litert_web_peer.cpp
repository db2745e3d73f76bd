#include "peers/litert_web_peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/simd.h"
#include "peers/simd_limit.h"
#include "reef/base/file.h"
#include "reef/cpu/kernel_set.h"
#include "reef/model/tflite.h"

namespace reef::peers {
namespace {

/// The second input is weights.
bool multiplies_weights(model::Op op) {
    using enum model::Op;
    return op == conv_2d || op == depthwise_conv_2d || op == transpose_conv ||
           op == fully_connected;
}

OptimisedGraph survey(const model::Model& model) {
    OptimisedGraph found;
    const model::Subgraph& graph = model.subgraphs[0];
    for (const model::Operator& op : graph.operators) {
        ++found.nodes[op.code.name()];
        if (!multiplies_weights(op.code.builtin)) continue;
        const auto& weights = graph.tensors[static_cast<std::size_t>(op.inputs[1])];
        ++(weights.type == ElementType::float32 ? found.float_convolutions
                                                : found.integer_convolutions);
    }
    return found;
}

/// A tensor like it, 128 more, and the QUANTIZE between the two.
model::Operator raise(model::Subgraph& graph, model::TensorIndex& end, bool is_input) {
    model::Tensor raised = graph.tensors[static_cast<std::size_t>(end)];
    raised.name += "_raised";
    raised.type = ElementType::uint8;
    raised.quantization->zero_point.resize(1);
    raised.quantization->zero_point[0] += 128;
    graph.tensors.push_back(std::move(raised));
    const auto there = static_cast<model::TensorIndex>(graph.tensors.size() - 1);
    model::Operator quantize;
    quantize.code.builtin = model::Op::quantize;
    quantize.inputs = {is_input ? there : end};
    quantize.outputs = {is_input ? end : there};
    end = there;
    return quantize;
}

}  // namespace

std::string why_no_litert_web(int threads) {
    const char* named = std::getenv("REEF_LITERT_SIMD");
    const std::string most = named != nullptr && *named != '\0'             ? named
                             : machine_byte_products() == ByteProducts::dot ? "AVX2_VNNI"
                                                                            : "AVX2";
    if (simd_is_limited() && cpu::simd_target() != most)
        return fmt::format("of what REEF_SIMD names it can be limited to {} alone here", most);
    const int processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const int taken = std::min(4, (processors + 1) / 2);
    if (threads != taken)
        return fmt::format("it takes {} thread{} of {} processors", taken, taken == 1 ? "" : "s",
                           processors);
    static const std::string absent = why_no_program(REEF_LITERT_WEB_PROGRAM);
    return absent;
}

model::Model with_raised_ends(model::Model model) {
    model::Subgraph& graph = model.subgraphs[0];
    const auto tensor = [&](model::TensorIndex t) -> const model::Tensor& {
        return graph.tensors[static_cast<std::size_t>(t)];
    };
    std::vector<model::Operator> before, after;
    for (model::TensorIndex& input : graph.inputs)
        if (is_raised(tensor(input))) before.push_back(raise(graph, input, true));
    for (model::TensorIndex& output : graph.outputs)
        if (is_raised(tensor(output))) after.push_back(raise(graph, output, false));
    graph.operators.insert(graph.operators.begin(), before.begin(), before.end());
    graph.operators.insert(graph.operators.end(), after.begin(), after.end());
    model.signatures.clear();  // they name the tensors that were ends
    return model;
}

namespace {

/// The browser writes it when it has time.
Result<model::Model> what_runs_there(const std::string& file) {
    constexpr int tries = 100;
    constexpr std::chrono::milliseconds rest(20);
    auto model = model::load_tflite(file);
    for (int i = 0; i < tries && !model; ++i) {
        std::this_thread::sleep_for(rest);
        model = model::load_tflite(file);
    }
    return model;
}

}  // namespace

Result<LitertWebPeer> LitertWebPeer::start(const model::Model& model, graph::Executor& ours,
                                           int /*threads*/) {
    ScratchFolder folder = REEF_TRY(ScratchFolder::create());
    const std::string file = folder.file("network.tflite"), dump = folder.file("dump");
    std::error_code ignored;
    std::filesystem::create_directory(dump, ignored);
    REEF_CHECK(write_file(file, REEF_TRY(model::write_tflite(with_raised_ends(model)))));
    LitertWebPeer peer(std::move(folder),
                       REEF_TRY(NodeProgram::start(REEF_LITERT_WEB_PROGRAM, {file, dump})));
    REEF_CHECK(peer.program_->ready());
    peer.alike_ = REEF_TRY(peer.program_->check(ours, peer.folder_));
    peer.optimised_ = survey(REEF_TRY(what_runs_there(dump + "/model0.tflite")));
    return peer;
}

}  // namespace reef::peers
