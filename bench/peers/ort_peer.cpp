#include "peers/ort_peer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "peers/simd_limit.h"
#include "reef/base/file.h"
#if REEF_HAS_ONNX
#include "peers/onnx_model.h"
#include "peers/onnx_survey.h"
#endif

namespace reef::peers {

struct OrtPeer::Impl {
    ScratchFolder folder;
    NodeProgram program;
    OptimisedGraph optimised;
    Likeness alike{};
};

OrtPeer::OrtPeer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OrtPeer::OrtPeer(OrtPeer&&) noexcept = default;
OrtPeer& OrtPeer::operator=(OrtPeer&&) noexcept = default;
OrtPeer::~OrtPeer() = default;
const std::string& OrtPeer::version() const {
    return impl_->program.version();
}
const OptimisedGraph& OrtPeer::optimised() const {
    return impl_->optimised;
}
const Likeness& OrtPeer::alike() const {
    return impl_->alike;
}

#if REEF_HAS_ONNX

std::string why_no_ort() {
    static const std::string reason = [] -> std::string {
        // It follows no option of ours.
        if (simd_is_limited())
            return "it cannot be limited to the instruction set that REEF_SIMD names";
        return why_no_program(REEF_ORT_PROGRAM);
    }();
    return reason;
}

Result<std::string> onnx_of(const model::Model& model, const model::Subgraph& graph) {
    return onnx_file(model, graph);
}

Result<OrtPeer> OrtPeer::start(const model::Model& model, graph::Executor& ours, int threads) {
    ScratchFolder folder = REEF_TRY(ScratchFolder::create());
    const auto write = [&](const char* name, const std::string& file) {
        return write_file(folder.file(name), as_bytes(file));
    };
    REEF_CHECK(write("network.onnx", REEF_TRY(onnx_file(model, ours.graph()))));
    REEF_CHECK(write("identity.onnx", onnx_identity(ours.graph())));
    NodeProgram program = REEF_TRY(NodeProgram::start(
        REEF_ORT_PROGRAM, {folder.file("network.onnx"), folder.file("identity.onnx"),
                           fmt::format("{}", threads), folder.file("optimised.onnx")}));
    REEF_CHECK(program.ready());
    const SharedBytes optimised = REEF_TRY(read_file(folder.file("optimised.onnx")));
    auto impl = std::make_unique<Impl>(Impl{.folder = std::move(folder),
                                            .program = std::move(program),
                                            .optimised = REEF_TRY(survey(optimised.view()))});
    impl->alike = REEF_TRY(impl->program.check(ours, impl->folder));
    return OrtPeer(std::move(impl));
}

#else

std::string why_no_ort() {
    return "built without libonnx-dev and libprotobuf-dev";
}
Result<std::string> onnx_of(const model::Model&, const model::Subgraph&) {
    return fail(Cause::not_found, why_no_ort());
}
Result<OrtPeer> OrtPeer::start(const model::Model&, graph::Executor&, int) {
    return fail(Cause::not_found, why_no_ort());
}

#endif

Result<ProgramTime> OrtPeer::turn(int runs, double warm_up_ms) {
    return impl_->program.turn(runs, warm_up_ms);
}

Result<std::vector<double>> OrtPeer::operator_times(int runs, std::size_t operators) {
    const auto command = fmt::format("profile\t{}\t{}", runs, impl_->folder.file("profile"));
    const auto answer = nlohmann::json::parse(REEF_TRY(impl_->program.ask(command)));
    std::vector<double> times(operators);
    for (const auto& [index, microseconds] : answer.at("operators_us").items())
        times.at(std::stoul(index)) = microseconds.get<double>();
    return times;
}

}  // namespace reef::peers
