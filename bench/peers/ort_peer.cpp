#include "peers/ort_peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "peers/child.h"
#include "peers/scratch_folder.h"
#include "reef/base/file.h"
#if REEF_HAS_ONNX
#include "peers/onnx_model.h"
#include "peers/onnx_survey.h"
#endif

namespace reef::peers {
namespace {

Result<nlohmann::json> answer(Child& child) {
    const std::string line = REEF_TRY(child.read_line());
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_discarded()) return fail(Cause::io_failed, "no JSON: " + line);
    if (json.contains("error")) return fail(Cause::unsupported, json["error"].get<std::string>());
    return json;
}

Result<nlohmann::json> ask(Child& child, const std::string& line) {
    REEF_CHECK(child.write_line(line));
    return answer(child);
}

}  // namespace

struct OrtPeer::Impl {
    ScratchFolder folder;
    Child child;
    std::string version;
    OptimisedGraph optimised;
    Likeness alike{};

    Status check(graph::Executor& ours);
};

OrtPeer::OrtPeer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OrtPeer::OrtPeer(OrtPeer&&) noexcept = default;
OrtPeer& OrtPeer::operator=(OrtPeer&&) noexcept = default;
OrtPeer::~OrtPeer() = default;
const std::string& OrtPeer::version() const {
    return impl_->version;
}
const OptimisedGraph& OrtPeer::optimised() const {
    return impl_->optimised;
}
const Likeness& OrtPeer::alike() const {
    return impl_->alike;
}

#if REEF_HAS_ONNX

namespace {

constexpr const char* node_variable = "REEF_NODE";

/// Bytes of a tensor in the other's form of int8.
std::vector<std::byte> in_their_form(Bytes bytes, const model::Tensor& tensor) {
    std::vector<std::byte> form(bytes.begin(), bytes.end());
    if (is_raised(tensor))
        for (std::byte& byte : form) byte ^= std::byte{0x80};
    return form;
}

}  // namespace

std::string why_no_ort() {
    static const std::string reason = [] -> std::string {
        const std::string node = find_program(node_variable, "node");
        if (node.empty()) return "no node on the PATH";
        // It follows no option of ours.
        if (std::getenv("REEF_SIMD") != nullptr)
            return "it cannot be limited to the instruction set that REEF_SIMD names";
        auto child = Child::start({node, REEF_ORT_PROGRAM});
        if (!child) return child.error().message();
        const auto version = answer(*child);
        return version ? std::string() : version.error().what;
    }();
    return reason;
}

Result<std::string> onnx_of(const model::Model& model, const model::Subgraph& graph) {
    return onnx_file(model, graph);
}

Status OrtPeer::Impl::check(graph::Executor& ours) {
    const auto& graph = ours.graph();
    const auto tensor = [&](model::TensorIndex t) -> const model::Tensor& {
        return graph.tensors[static_cast<std::size_t>(t)];
    };
    std::vector<std::byte> in;
    for (std::size_t i = 0; i < ours.input_count(); ++i) {
        const auto part = in_their_form(ours.input(i), tensor(graph.inputs[i]));
        in.insert(in.end(), part.begin(), part.end());
    }
    REEF_CHECK(write_file(folder.file("in"), in));
    REEF_TRY(ask(child, fmt::format("check\t{}\t{}", folder.file("in"), folder.file("out"))));
    const SharedBytes out = REEF_TRY(read_file(folder.file("out")));
    std::vector<std::vector<std::byte>> outputs;
    std::size_t offset = 0;
    for (std::size_t i = 0; i < ours.output_count(); ++i) {
        const std::size_t size = ours.output(i).size();
        if (offset + size > out.size()) return fail(Cause::unsupported, "outputs of another size");
        outputs.push_back(
            in_their_form(out.view().subspan(offset, size), tensor(graph.outputs[i])));
        offset += size;
    }
    alike = likeness(ours, {outputs.begin(), outputs.end()});
    return {};
}

Result<OrtPeer> OrtPeer::start(const model::Model& model, graph::Executor& ours, int threads) {
    ScratchFolder folder = REEF_TRY(ScratchFolder::create());
    const auto write = [&](const char* name, const std::string& file) {
        return write_file(folder.file(name), as_bytes(file));
    };
    REEF_CHECK(write("network.onnx", REEF_TRY(onnx_file(model, ours.graph()))));
    REEF_CHECK(write("identity.onnx", onnx_identity(ours.graph())));
    Child child = REEF_TRY(Child::start(
        {find_program(node_variable, "node"), REEF_ORT_PROGRAM, folder.file("network.onnx"),
         folder.file("identity.onnx"), fmt::format("{}", threads), folder.file("optimised.onnx")}));
    const auto started = REEF_TRY(answer(child));
    REEF_TRY(answer(child));
    const SharedBytes optimised = REEF_TRY(read_file(folder.file("optimised.onnx")));
    auto impl = std::make_unique<Impl>(Impl{.folder = std::move(folder),
                                            .child = std::move(child),
                                            .version = started.at("version").get<std::string>(),
                                            .optimised = REEF_TRY(survey(optimised.view()))});
    REEF_CHECK(impl->check(ours));
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

Result<OrtTime> OrtPeer::turn(int runs, double warm_up_ms) {
    const auto times = REEF_TRY(ask(impl_->child, fmt::format("burst\t{}\t{}", runs, warm_up_ms)));
    const auto least = [&](const char* name) {
        constexpr double milliseconds = 1e-6;
        return std::ranges::min(times.at(name).get<std::vector<double>>()) * milliseconds;
    };
    return OrtTime{.network_ms = least("network_ns"), .overhead_ms = least("overhead_ns")};
}

Result<std::vector<double>> OrtPeer::operator_times(int runs, std::size_t operators) {
    const auto command = fmt::format("profile\t{}\t{}", runs, impl_->folder.file("profile"));
    const auto answer = REEF_TRY(ask(impl_->child, command));
    std::vector<double> times(operators);
    for (const auto& [index, microseconds] : answer.at("operators_us").items())
        times.at(std::stoul(index)) = microseconds.get<double>();
    return times;
}

}  // namespace reef::peers
