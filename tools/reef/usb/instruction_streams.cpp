#include "usb/instruction_streams.h"

#include <fmt/format.h>

#include "reef/edgetpu/package.h"
#include "reef/model/tflite.h"

namespace reef::tool {
namespace {

void add_package(const edgetpu::Package& package, std::vector<Program>& out) {
    for (const auto& executable : package.executables) {
        Program program{out.size(), to_string(executable.type), {}, {}};
        for (const auto& stream : executable.bitstreams) {
            program.chunks.push_back(stream.instructions.view());
            program.owners.push_back(stream.instructions);
        }
        out.push_back(std::move(program));
    }
    for (const auto& chip : package.multi_chip) add_package(chip, out);
}

bool is_tflite(Bytes file) {
    return file.size() >= 8 && as_text(file.subspan(4, 4)) == "TFL3";
}

}  // namespace

Result<std::vector<Program>> programs_of(const SharedBytes& file) {
    std::vector<Program> out;
    if (!is_tflite(file.view())) {
        out.push_back({0, "raw", {file.view()}, {file}});
        return out;
    }
    const auto model = REEF_TRY(model::read_tflite(file));
    for (const auto& op : REEF_TRY(edgetpu::packages_of(model))) add_package(op.package, out);
    if (out.empty())
        return fail(Cause::bad_input, "the model is not compiled: it has no Edge TPU program", {},
                    "give a model that the Edge TPU compiler made");
    return out;
}

std::string Program::chunk_name(std::size_t chunk) const {
    if (type == "raw") return type;
    const auto name = fmt::format("{}-{}", executable, type);
    return chunks.size() > 1 ? fmt::format("{}-{}", name, chunk) : name;
}

Result<std::vector<Program>> select_programs(std::vector<Program> programs,
                                             const std::string& which) {
    if (which.empty()) return programs;
    std::vector<Program> out;
    std::string known;
    for (auto& program : programs) {
        known +=
            fmt::format("{}{} {}", known.empty() ? "" : ", ", program.executable, program.type);
        if (which == std::to_string(program.executable) || which == program.type)
            out.push_back(std::move(program));
    }
    if (out.empty())
        return fail(Cause::not_found, fmt::format("no executable '{}'", which), {},
                    "there are " + known);
    return out;
}

}  // namespace reef::tool
