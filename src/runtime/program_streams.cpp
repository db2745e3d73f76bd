#include "reef/runtime/program_streams.h"

#include <fmt/format.h>

#include "reef/model/tflite.h"
#include "reef/runtime/registry.h"

namespace reef::runtime {

Result<const chip::Disassembler*> disassembler_of(const std::string& family) {
    std::vector<std::string> families;
    for (const auto* each : Registry::of_process().parts<chip::Disassembler>()) {
        if (family.empty() || each->family() == family) return each;
        families.emplace_back(each->family());
    }
    return fail(Cause::bad_argument, fmt::format("no chip '{}' with a disassembler", family), {},
                "there are " + in_a_row(families));
}

namespace {

void add_programs(std::vector<chip::Program> programs, const chip::Disassembler& disassembler,
                  std::vector<ProgramStreams>& out) {
    for (auto& program : programs) {
        ProgramStreams& one = out.emplace_back(ProgramStreams{out.size(),
                                                              std::move(program.type),
                                                              {},
                                                              {},
                                                              &disassembler,
                                                              std::move(program.parameters)});
        for (auto& stream : program.streams) {
            one.chunks.push_back(stream.view());
            one.owners.push_back(std::move(stream));
        }
    }
}

}  // namespace

Result<std::vector<ProgramStreams>> program_streams_of(const SharedBytes& file,
                                                       const std::string& family) {
    std::vector<ProgramStreams> out;
    if (!model::is_tflite(file.view())) {
        for (const auto* each : Registry::of_process().parts<chip::Disassembler>())
            if (family.empty() || each->family() == family)
                add_programs(REEF_TRY(each->programs_in(file)), *each, out);
        if (!out.empty()) return out;
        out.push_back({0, "raw", {file.view()}, {file}, REEF_TRY(disassembler_of(family)), {}});
        return out;
    }
    const auto model = REEF_TRY(model::read_tflite(file));
    std::vector<std::string> names;
    for (const auto* disassembler : Registry::of_process().parts<chip::Disassembler>()) {
        names.emplace_back(disassembler->name());
        add_programs(REEF_TRY(disassembler->programs_of(model)), *disassembler, out);
    }
    if (out.empty()) {
        const std::string chips = in_a_row(names, "or");
        return fail(Cause::bad_input,
                    fmt::format("the model is not compiled: it has no {} program", chips), {},
                    fmt::format("give a model that the {} compiler made", chips));
    }
    return out;
}

std::string ProgramStreams::chunk_name(std::size_t chunk) const {
    if (type == "raw") return type;
    const auto name = fmt::format("{}-{}", executable, type);
    return chunks.size() > 1 ? fmt::format("{}-{}", name, chunk) : name;
}

Result<std::vector<ProgramStreams>> select_programs(std::vector<ProgramStreams> programs,
                                                    const std::string& which) {
    if (which.empty()) return programs;
    std::vector<ProgramStreams> out;
    std::string known;
    for (auto& program : programs) {
        known +=
            fmt::format("{}{} {}", known.empty() ? "" : ", ", program.executable, program.type);
        if (which == std::to_string(program.executable) || which == program.type)
            out.push_back(std::move(program));
    }
    if (out.empty())
        return fail(Cause::bad_argument, fmt::format("no executable '{}'", which), {},
                    "there are " + known);
    return out;
}

}  // namespace reef::runtime
