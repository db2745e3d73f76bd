#include "check/program_check.h"

#include <algorithm>
#include <map>
#include <utility>

#include "outputs/json_output.h"

namespace reef::tool {
namespace {

struct CheckedProgram {
    const runtime::ProgramStreams* program;
    std::size_t instructions;
    chip::ProgramCheck check;
};

CheckedProgram checked(const runtime::ProgramStreams& program) {
    std::size_t instructions = 0;
    for (const auto chunk : program.chunks) {
        hw::InstructionCursor cursor(program.disassembler->instruction_set(), chunk);
        while (cursor.next()) ++instructions;
    }
    return {&program, instructions, program.disassembler->check(program.chunks)};
}

/// Each text once, with the first place.
void print_unmodelled(Console& console, const runtime::ProgramStreams& program,
                      const std::vector<chip::ProgramFault>& list) {
    std::map<std::string_view, std::size_t> times;
    for (const auto& one : list) ++times[one.what];
    for (const auto& one : list) {
        const auto again = std::exchange(times[one.what], 0);
        if (again == 0) continue;
        console.print("  {} word {:#06x}{}: {}\n", program.chunk_name(one.stream), one.word,
                      again == 1 ? "" : fmt::format(" and {} more", again - 1), one.what);
    }
}

void print_check_text(Console& console, const std::vector<CheckedProgram>& programs) {
    for (const auto& [program, instructions, check] : programs) {
        const auto& [followed, faults, unmodelled] = check;
        console.print("{} {}: {} instructions, {}{}\n", program->executable, program->type,
                      instructions,
                      !faults.empty() ? fmt::format("{} faults", faults.size())
                      : followed      ? "all rules kept"
                                      : "no rule broken as far as it can be followed",
                      unmodelled.empty() ? "" : "; the simulator does not model all of it");
        for (const auto& fault : faults)
            console.print("  {} word {:#06x}: {}\n", program->chunk_name(fault.stream), fault.word,
                          fault.what);
        print_unmodelled(console, *program, unmodelled);
    }
}

void print_check_json(Console& console, const std::vector<CheckedProgram>& programs,
                      std::string_view verb, const std::string& file) {
    Json document = json_document(verb);
    document["file"] = file;
    document["executables"] = Json::array();
    const auto listed = [](const std::vector<chip::ProgramFault>& faults) {
        Json list = Json::array();
        for (const auto& fault : faults)
            list.push_back({{"chunk", fault.stream}, {"word", fault.word}, {"what", fault.what}});
        return list;
    };
    for (const auto& [program, instructions, check] : programs) {
        Json one = {{"executable", program->executable},
                    {"type", program->type},
                    {"instructions", instructions},
                    {"faults", listed(check.faults)}};
        if (!check.unmodelled.empty()) one["unmodelled"] = listed(check.unmodelled);
        document["executables"].push_back(std::move(one));
    }
    print_json(console, document);
}

}  // namespace

Exit check_programs(Console& console, std::string_view verb,
                    const std::vector<runtime::ProgramStreams>& programs, const std::string& file,
                    bool json) {
    std::vector<CheckedProgram> results;
    bool kept = true;
    for (const auto& program : programs) {
        results.push_back(checked(program));
        kept = kept && results.back().check.faults.empty();
    }
    if (json) {
        print_check_json(console, results, verb, file);
    } else {
        print_check_text(console, results);
    }
    return kept ? Exit::ok : Exit::failed;
}

}  // namespace reef::tool
