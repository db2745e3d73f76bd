#include <algorithm>

#include "reef/sophgo/final_program.h"

namespace reef::sophgo {

std::string_view callee_of(const Operator& op) {
    const std::string_view kind = op.kind;
    if (!kind.starts_with(call_kind) || kind.size() <= call_kind.size()) return {};
    return kind.substr(call_kind.size() + 1);
}

const Function* DeviceProgram::find(std::string_view function) const {
    const auto found = std::ranges::find(functions, function, &Function::name);
    return found == functions.end() ? nullptr : &*found;
}

const Function* DeviceProgram::main() const {
    return find("main");
}

}  // namespace reef::sophgo
