#include "check/program_check.h"

#include <algorithm>
#include <map>
#include <utility>

#include "outputs/json_output.h"
#include "reef/base/bytes.h"
#include "reef/base/text.h"

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

bool passed(const std::vector<CheckedProgram>& programs) {
    return std::ranges::all_of(programs, [](const auto& one) { return one.check.faults.empty(); });
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
    document["passed"] = passed(programs);
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

/// The first of a list that is not in the other.
const chip::ProgramFault* first_new(const std::vector<chip::ProgramFault>& after,
                                    const std::vector<chip::ProgramFault>& before) {
    const auto is_new = [&](const chip::ProgramFault& one) {
        return std::ranges::none_of(before, [&](const chip::ProgramFault& old) {
            return old.stream == one.stream && old.word == one.word && old.what == one.what;
        });
    };
    const auto found = std::ranges::find_if(after, is_new);
    return found == after.end() ? nullptr : &*found;
}

Status check_rewritten(const runtime::ProgramStreams& before,
                       const runtime::ProgramStreams& after) {
    if (std::ranges::equal(before.chunks, after.chunks, equal_bytes)) return {};
    const auto now = after.disassembler->check(after.chunks);
    if (now.faults.empty() && now.unmodelled.empty()) return {};
    const auto then = before.disassembler->check(before.chunks);
    const auto* broken = first_new(now.faults, then.faults);
    const auto* found = broken != nullptr ? broken : first_new(now.unmodelled, then.unmodelled);
    if (found == nullptr) return {};
    return fail(Cause::unsupported,
                fmt::format("the rewritten program {}: {}",
                            broken != nullptr ? "breaks a rule"
                                              : "has what the simulated chip does not model",
                            found->what),
                fmt::format("{} word {:#06x}", after.chunk_name(found->stream), found->word),
                "this is a bug of Reef's: please report the models");
}

}  // namespace

Status check_rewritten(const std::vector<runtime::ProgramStreams>& before,
                       const std::vector<runtime::ProgramStreams>& after) {
    if (before.size() != after.size())
        return fail(
            Cause::unsupported,
            fmt::format("rewriting made {} of {}", plural(after.size(), "program"), before.size()),
            {}, "this is a bug of Reef's: please report the models");
    for (std::size_t i = 0; i < before.size(); ++i)
        REEF_CHECK(check_rewritten(before[i], after[i]));
    return {};
}

Exit check_programs(Console& console, std::string_view verb,
                    const std::vector<runtime::ProgramStreams>& programs, const std::string& file,
                    bool json) {
    std::vector<CheckedProgram> results;
    for (const auto& program : programs) results.push_back(checked(program));
    if (json) {
        print_check_json(console, results, verb, file);
    } else {
        print_check_text(console, results);
    }
    return passed(results) ? Exit::ok : Exit::failed;
}

}  // namespace reef::tool
