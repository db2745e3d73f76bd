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
    // Bands send their parameters once for each, as no program of the vendor's does.
    for (const std::string& finding : verified->findings)
        check(finding.starts_with("reads a second time"), finding);
}

/// What users may ask for, drawn by the input.
chip::CompileOptions drawn_options(unsigned drawn) {
    chip::CompileOptions options{.most_programs = 3, .keep_islands = true};
    const auto one_of = [&](unsigned count) {
        const unsigned which = drawn % count;
        drawn /= count;
        return which;
    };
    options.stream_parameters = one_of(4) == 0;
    options.known_forms_only = one_of(4) == 0;
    if (one_of(3) == 0) options.most_activation_bytes = 256U << one_of(8);
    if (one_of(4) == 0) options.settings["spill"] = "always";
    if (one_of(5) == 0) options.schedule = chip::Schedule::plain;
    return options;
}

void check_refusal(const Error& error) {
    check(!error.what.empty(), "a refusal says why");
    check(error.hint.find("bug") == std::string::npos, "a refusal is none of ours");
}

/// The file reads, and its programs keep the rules; nothing where it could not be written.
bool check_compiled(const model::Model& plain, const edgetpu::Compiled& compiled) {
    check(compiled.operators.size() == plain.subgraphs.front().operators.size(),
          "every operator has a fate");
    const auto file = model::write_tflite(compiled.model);
    if (!file) {
        check(!plain.not_preserved.empty(), "a model is written unless something would be lost");
        return false;
    }
    check(model::read_tflite(SharedBytes::copy_of(*file)).has_value(), "what was written reads");
    check_programs(compiled.model);
    return true;
}

void visit(const model::Model& model, unsigned drawn) {
    const auto one = edgetpu::compile(model, {.most_programs = 1, .keep_islands = true});
    if (one)
        (void)check_compiled(model, *one);
    else
        check_refusal(one.error());
    const auto several = edgetpu::compile(model, drawn_options(drawn));
    if (!several) return check_refusal(several.error());
    if (check_compiled(model, *several)) check_bytes(model, several->model);
}

}  // namespace
}  // namespace reef::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const reef::Bytes bytes = std::as_bytes(std::span(data, size));
    const auto model = reef::model::read_tflite(reef::SharedBytes::copy_of(bytes));
    unsigned drawn = 1;
    for (const std::byte b : bytes) drawn = (drawn ^ static_cast<unsigned>(b)) * 16777619U;
    if (model) reef::fuzz::visit(*model, drawn >> 4U);
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t capacity, unsigned seed) {
    return reef::fuzz::mutate_network(data, size, capacity, seed);
}
