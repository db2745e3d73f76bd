// How compiling a network went, and whether its program gives the bytes of the chip's arithmetic.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "compile/verification.h"
#include "reef/edgetpu/compiler.h"
#include "reef/runtime/session.h"

namespace reef::test {

struct Outcome {
    bool compiled = false;
    std::string problem, refusal;
    std::size_t on_chip = 0, left = 0;
    /// Of the watched runs; the first is a problem.
    std::vector<std::string> findings = {};
};

/// The bytes are verified; here they come and go over USB. Inputs are zeros.
inline Status run_on_stick(const model::Model& compiled) {
    auto session = REEF_TRY(runtime::Session::open(compiled, {.devices = {"edgetpu:sim"}}));
    return session.run();
}

inline Outcome outcome_of(const model::Model& model, const edgetpu::CompileOptions& options = {}) {
    Outcome out;
    const auto compiled = edgetpu::compile(model, options);
    if (!compiled) {
        if (compiled.error().cause != Cause::unsupported ||
            compiled.error().hint.find("bug") != std::string::npos)
            out.problem = compiled.error().message();
        out.refusal = compiled.error().message();
        return out;
    }
    out.compiled = true;
    for (const auto& op : compiled->operators) ++(op.on_chip ? out.on_chip : out.left);
    const auto verified = tool::verify_compiled(model, compiled->model, "edgetpu");
    if (!verified && verified.error().cause == Cause::unsupported) {
        // The chip's arithmetic is not known of an operator that stays with the CPU.
        out = {.compiled = false, .problem = {}, .refusal = verified.error().message()};
    } else if (!verified)
        out.problem = verified.error().message();
    else if (!verified->passed())
        out.problem = "differs: " + verified->first_difference;
    else if (const auto ran = run_on_stick(compiled->model); !ran)
        out.problem = "on a stick: " + ran.error().message();
    else if (!verified->findings.empty()) {
        out.findings = verified->findings;
        out.problem = "finding: " + out.findings.front();
    }
    return out;
}

}  // namespace reef::test
