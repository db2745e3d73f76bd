#include "rk3588/inspect/disassembler.h"

#include "reef/rk3588/command_words.h"
#include "rk3588/artifact/artifact.h"
#include "rk3588/stream/container.h"
#include "rk3588/stream/stream_check.h"

namespace reef::rk3588 {
namespace {

TextOptions as_ours(const chip::TextOptions& options) {
    return {.symbolic = options.symbolic, .addresses = options.addresses};
}

}  // namespace

const hw::InstructionSet& Disassembler::instruction_set() const {
    return command_words();
}

Result<std::vector<chip::Program>> Disassembler::programs_of(const model::Model& model) const {
    std::vector<chip::Program> programs;
    for (const model::Subgraph& graph : model.subgraphs)
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            const model::Operator& op = graph.operators[i];
            if (!is_compiled(op)) continue;
            const std::string place = model::place_of(graph, i);
            const Artifact artifact =
                REEF_TRY(in_place(read_artifact(op.custom_options.view()), place));
            chip::Program program{"RK3588", {}};
            for (const TaskPlace& task : artifact.tasks)
                program.streams.push_back(SharedBytes::copy_of(std::as_bytes(
                    std::span(artifact.commands).subspan(task.first_word, task.words))));
            programs.push_back(std::move(program));
        }
    return programs;
}

Result<std::vector<chip::Program>> Disassembler::programs_in(const SharedBytes& file) const {
    std::vector<chip::Program> programs;
    if (!is_vendor_container(file.view())) return programs;
    chip::Program program{"RKNN", {}};
    for (const StoredTask& task : stored_tasks(file.view()))
        program.streams.push_back(file.part(task.offset, task.size));
    if (program.streams.empty())
        return fail(Cause::unsupported, "this .rknn file holds no plain command words", {},
                    "older containers are compiled when they are loaded: use a model made with "
                    "toolkit 2");
    programs.push_back(std::move(program));
    return programs;
}

void Disassembler::append_text(const hw::Instruction& instruction, const chip::TextOptions& options,
                               std::string& out) const {
    rk3588::append_text(instruction, as_ours(options), out);
}

std::string Disassembler::text_of(Bytes stream, const chip::TextOptions& options) const {
    return disassemble(stream, as_ours(options));
}

Result<std::vector<hw::AssembledStream>> Disassembler::assemble(std::string_view text) const {
    return rk3588::assemble(text);
}

chip::ProgramCheck Disassembler::check(std::span<const Bytes> streams) const {
    chip::ProgramCheck check;
    for (std::size_t s = 0; s < streams.size(); ++s)
        for (auto& fault : check_stream(streams[s]))
            (fault.unmodelled ? check.unmodelled : check.faults)
                .push_back({s, fault.word, std::move(fault.what)});
    return check;
}

}  // namespace reef::rk3588
