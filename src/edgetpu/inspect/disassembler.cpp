#include "edgetpu/inspect/disassembler.h"

#include "reef/edgetpu/assembly.h"
#include "reef/edgetpu/listing.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/program_check.h"

namespace reef::edgetpu {
namespace {

TextOptions as_ours(const chip::TextOptions& options) {
    return {.symbolic = options.symbolic, .addresses = options.addresses};
}

void add_programs(std::vector<chip::Program>& out, const Package& package) {
    for (const auto& executable : package.executables) {
        auto& program = out.emplace_back(chip::Program{to_string(executable.type), {}});
        program.parameters = executable.parameters;
        for (const auto& stream : executable.bitstreams)
            program.streams.push_back(stream.instructions);
    }
    for (const auto& chip : package.multi_chip) add_programs(out, chip);
}

void add(std::vector<chip::ProgramFault>& list, ProgramFault fault) {
    list.push_back({fault.chunk, fault.word, std::move(fault.what)});
}

}  // namespace

const hw::InstructionSet& Disassembler::instruction_set() const {
    return isa();
}

Result<std::vector<chip::Program>> Disassembler::programs_of(const model::Model& model) const {
    std::vector<chip::Program> programs;
    for (const auto& op : REEF_TRY(packages_of(model))) add_programs(programs, op.package);
    return programs;
}

void Disassembler::append_text(const hw::Instruction& instruction, const chip::TextOptions& options,
                               std::string& out) const {
    edgetpu::append_text(instruction, as_ours(options), out);
}

std::string Disassembler::field_text(const hw::Instruction& instruction, const hw::FieldInfo& field,
                                     const chip::TextOptions& options) const {
    return edgetpu::field_text(instruction, field, as_ours(options));
}

std::string_view Disassembler::numbering() const {
    return numbering_field;
}

std::string Disassembler::text_of(Bytes stream, const chip::TextOptions& options) const {
    return disassemble(stream, as_ours(options));
}

Result<std::vector<hw::AssembledStream>> Disassembler::assemble(std::string_view text) const {
    return assemble_streams(text);
}

chip::ProgramCheck Disassembler::check(std::span<const Bytes> streams) const {
    auto faults = check_program(streams);
    if (faults.empty()) faults = check_synchronisation(streams);
    chip::ProgramCheck check;
    for (auto& one : unmodelled_instructions(streams)) add(check.unmodelled, std::move(one));
    for (auto& one : faults) {
        check.followed = check.followed && !one.unmodelled;
        add(one.unmodelled ? check.unmodelled : check.faults, std::move(one));
    }
    return check;
}

}  // namespace reef::edgetpu
