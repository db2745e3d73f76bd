// The compiler for the Edge TPU: any readable model is refused with a reason or compiled to one
// that reads back, whose programs keep the rules and give every byte of the chip's arithmetic, in
// strict runs without findings.
#include "check.h"
#include "compile/verification.h"
#include "mutate_network.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/program_check.h"
#include "reef/model/cost.h"
#include "reef/model/tflite.h"
#include "reef/runtime/session.h"

namespace reef::fuzz {
namespace {

void check_programs(const model::Model& compiled) {
    const auto packages = edgetpu::packages_of(compiled);
    check(packages.has_value() && !packages->empty(), "packages read");
    for (const auto& op : *packages) {
        for (const auto& executable : op.package.executables) {
            std::vector<Bytes> streams;
            for (const auto& s : executable.bitstreams) streams.push_back(s.instructions.view());
            check(edgetpu::check_program(streams).empty(), "programs keep the rules of form");
            check(edgetpu::check_synchronisation(streams).empty(),
                  "programs keep the rules of synchronisation");
        }
    }
}

/// Strict runs of larger ones take seconds here.
constexpr std::int64_t most_macs = 300'000;

void check_bytes(const model::Model& plain, const model::Model& compiled) {
    if (model::cost_of(plain, plain.subgraphs.front()).macs > most_macs) return;
    // What no device runs has no right bytes.
    if (!runtime::Session::open(plain, {})) return;
    const auto verified = tool::verify_compiled(plain, compiled, "edgetpu");
    if (!verified) {
        // Operators that stay with the CPU may be none of its, or ones whose arithmetic on the chip
        // is not known.
        check(verified.error().cause == Cause::unsupported, verified.error().message());
        return;
    }
    check(verified->passed(), verified->first_difference);
    check(verified->findings.empty(), verified->findings.empty() ? "" : verified->findings.front());
}

void visit(const model::Model& model) {
    for (const std::size_t programs : {1, 3}) {
        const auto compiled =
            edgetpu::compile(model, {.most_programs = programs, .keep_islands = true});
        if (!compiled) {
            check(!compiled.error().what.empty(), "a refusal says why");
            check(compiled.error().hint.find("bug") == std::string::npos,
                  "a refusal is none of ours");
            continue;
        }
        check(compiled->operators.size() == model.subgraphs.front().operators.size(),
              "every operator has a fate");
        const auto file = model::write_tflite(compiled->model);
        if (!file) {
            check(!model.not_preserved.empty(),
                  "a model is written unless something would be lost");
            continue;
        }
        check(model::read_tflite(SharedBytes::copy_of(*file)).has_value(),
              "what was written reads");
        check_programs(compiled->model);
        if (programs != 1) check_bytes(model, compiled->model);
    }
}

}  // namespace
}  // namespace reef::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto model =
        reef::model::read_tflite(reef::SharedBytes::copy_of(std::as_bytes(std::span(data, size))));
    if (model) reef::fuzz::visit(*model);
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t capacity, unsigned seed) {
    return reef::fuzz::mutate_network(data, size, capacity, seed);
}
