#include "sophgo/final_text.h"

#include <cstdlib>

#include "sophgo/final/check.h"

namespace reef::sophgo {

const FinalEngine& engine() {
    static const FinalEngine* const found = [] {
        ::setenv("REEF_COMPONENTS", REEF_COMPONENT_FOLDER, 1);
        return final_engine().value();
    }();
    return *found;
}

std::vector<std::string> findings_of(const FinalProgram& program, bool faults) {
    std::vector<std::string> out;
    for (const auto& one : check_program(program).findings)
        if (one.fault == faults) out.push_back(one.rule + ": " + one.place + ": " + one.what);
    return out;
}

std::vector<std::string> faults_of(const FinalProgram& program) {
    return findings_of(program, true);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    return text;
}

}  // namespace reef::sophgo
