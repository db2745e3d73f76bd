#include "peers/node_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reef/base/file.h"

namespace reef::peers {
namespace {

constexpr const char* node_variable = "REEF_NODE";

Result<nlohmann::json> parsed(const std::string& line) {
    auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) return fail(Cause::io_failed, "no object of JSON: " + line);
    const auto error = json.find("error");
    if (error == json.end()) return json;
    return fail(Cause::unsupported, error->is_string() ? error->get<std::string>() : error->dump());
}

/// "" where there is none.
std::string version_in(const nlohmann::json& json) {
    const auto found = json.find("version");
    return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

Result<double> least_milliseconds(const nlohmann::json& json, const char* name) {
    constexpr double milliseconds = 1e-6;
    const auto times = json.find(name);
    const bool has_times = times != json.end() && times->is_array() && !times->empty() &&
                           std::ranges::all_of(*times, &nlohmann::json::is_number);
    if (!has_times)
        return fail(Cause::io_failed, fmt::format("no times '{}' in {}", name, json.dump()));
    return std::ranges::min(times->get<std::vector<double>>()) * milliseconds;
}

/// Bytes of a tensor in the program's form of int8.
std::vector<std::byte> in_their_form(Bytes bytes, const model::Tensor& tensor) {
    std::vector<std::byte> form(bytes.begin(), bytes.end());
    if (is_raised(tensor))
        for (std::byte& byte : form) byte ^= std::byte{0x80};
    return form;
}

}  // namespace

bool is_raised(const model::Tensor& tensor) {
    return tensor.type == ElementType::int8 && tensor.quantization &&
           tensor.quantization->quantized();
}

Result<NodeProgram> NodeProgram::start(const std::string& file,
                                       const std::vector<std::string>& arguments) {
    std::vector<std::string> command{find_program(node_variable, "node"), file};
    if (command[0].empty()) return fail(Cause::not_found, "no node on the PATH");
    command.insert(command.end(), arguments.begin(), arguments.end());
    NodeProgram program(REEF_TRY(Child::start(command)));
    program.version_ = version_in(REEF_TRY(parsed(REEF_TRY(program.child_.read_line()))));
    if (program.version_.empty()) return fail(Cause::io_failed, "it says no version", file);
    return program;
}

Status NodeProgram::ready() {
    if (auto version = version_in(REEF_TRY(parsed(REEF_TRY(child_.read_line())))); !version.empty())
        version_ = std::move(version);
    return {};
}

Result<std::string> NodeProgram::ask(const std::string& line) {
    if (const auto written = child_.write_line(line); !written) {
        if (const auto last = child_.read_line()) REEF_TRY(parsed(*last));
        return std::unexpected(written.error());
    }
    std::string answer = REEF_TRY(child_.read_line());
    REEF_TRY(parsed(answer));
    return answer;
}

Result<ProgramTime> NodeProgram::turn(int times, double warm_up_ms) {
    const auto answer =
        REEF_TRY(parsed(REEF_TRY(ask(fmt::format("burst\t{}\t{}", times, warm_up_ms)))));
    return ProgramTime{.network_ms = REEF_TRY(least_milliseconds(answer, "network_ns")),
                       .overhead_ms = REEF_TRY(least_milliseconds(answer, "overhead_ns"))};
}

Result<Likeness> NodeProgram::check(graph::Executor& ours, const ScratchFolder& folder) {
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
    REEF_TRY(ask(fmt::format("check\t{}\t{}", folder.file("in"), folder.file("out"))));
    const SharedBytes out = REEF_TRY(read_file(folder.file("out")));
    std::vector<std::vector<std::byte>> outputs;
    std::size_t offset = 0;
    for (std::size_t i = 0; i < ours.output_count(); ++i) {
        const std::size_t size = ours.output(i).size();
        if (offset + size > out.size()) break;
        outputs.push_back(
            in_their_form(out.view().subspan(offset, size), tensor(graph.outputs[i])));
        offset += size;
    }
    if (outputs.size() != ours.output_count() || offset != out.size())
        return fail(Cause::unsupported, "outputs of another size");
    return likeness(ours, {outputs.begin(), outputs.end()});
}

std::string why_no_program(const std::string& file) {
    const auto program = NodeProgram::start(file, {});
    if (program) return {};
    return program.error().cause == Cause::io_failed ? program.error().message()
                                                     : program.error().what;
}

}  // namespace reef::peers
