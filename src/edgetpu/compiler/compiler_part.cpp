#include "edgetpu/compiler/compiler_part.h"

#include <fmt/format.h>

#include "edgetpu/compiler/settings.h"
#include "reef/edgetpu/compiler.h"

namespace reef::edgetpu {
namespace {

/// "7.69MiB", as the vendor's compiler prints it.
std::string size_text(std::size_t bytes) {
    constexpr double kib = 1024;
    const auto n = static_cast<double>(bytes);
    if (n < kib) return fmt::format("{:.2f}B", n);
    if (n < kib * kib) return fmt::format("{:.2f}KiB", n / kib);
    return fmt::format("{:.2f}MiB", n / kib / kib);
}

chip::Section section_of(const CompiledProgram& p, std::size_t number, std::size_t count) {
    chip::Section section{
        .title = count == 1 ? std::string("program") : fmt::format("program {}", number),
        .about = {},
        .lines = {}};
    section.add("operators", std::to_string(p.operators));
    section.add("parameters", fmt::format("{} cached on the chip, where {} remain; {} streamed",
                                          size_text(p.cached_bytes), size_text(p.remaining_bytes),
                                          size_text(p.streamed_bytes)));
    section.add("activations", fmt::format("{} of each tile", size_text(p.narrow_bytes)));
    for (const SpilledTensor& t : p.spilled)
        section.add(
            "spilled",
            fmt::format("{} of '{}' to the host, {} back", size_text(t.bytes), t.name,
                        t.fetches == 1 ? std::string("once") : fmt::format("{} times", t.fetches)));
    if (!p.spilled.empty())
        section.add("scratch", fmt::format("{} of the host's memory", size_text(p.host_bytes)));
    section.add("instructions", size_text(p.instruction_bytes));
    section.add("estimate", fmt::format("{} cycles, {:.3f} ms with transfers over USB", p.cycles,
                                        p.seconds * 1e3));
    return section;
}

chip::Object document_of(const CompiledProgram& p) {
    chip::Array spilled;
    for (const SpilledTensor& t : p.spilled)
        spilled.emplace_back(
            chip::Object{{"tensor", t.name}, {"bytes", t.bytes}, {"fetches", t.fetches}});
    return {{"operators", p.operators},
            {"cached_bytes", p.cached_bytes},
            {"remaining_bytes", p.remaining_bytes},
            {"streamed_bytes", p.streamed_bytes},
            {"narrow_bytes", p.narrow_bytes},
            {"spilled", std::move(spilled)},
            {"scratch_bytes", p.host_bytes},
            {"instruction_bytes", p.instruction_bytes},
            {"estimated_cycles", p.cycles},
            {"estimated_ms", p.seconds * 1e3}};
}

std::string percent(std::size_t part, std::size_t all) {
    return fmt::format(
        "{:.1f} %",
        all == 0 ? 100.0 : 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

chip::Section section_of(const Forms& forms) {
    chip::Section section{.title = "forms", .about = {}, .lines = {}, .asked_for = true};
    section.add(
        "instructions",
        fmt::format("{}, of which {} ({}) have a form that a program of the vendor has",
                    forms.instructions, forms.known, percent(forms.known, forms.instructions)));
    for (const UnprovenForm& f : forms.unproven) {
        section.add(fmt::format("{} of {}", f.count, f.part), f.form);
        section.add(
            "", f.reason.empty() ? f.difference : fmt::format("{}: {}", f.difference, f.reason));
    }
    return section;
}

chip::Object document_of(const Forms& forms) {
    chip::Array unproven;
    for (const UnprovenForm& f : forms.unproven)
        unproven.emplace_back(chip::Object{{"part", f.part},
                                           {"count", f.count},
                                           {"form", f.form},
                                           {"difference", f.difference},
                                           {"reason", f.reason}});
    return {{"instructions", forms.instructions},
            {"known", forms.known},
            {"unproven", std::move(unproven)}};
}

}  // namespace

std::vector<std::string_view> CompilerPart::passes() const {
    return compiler_passes();
}

std::optional<chip::VendorCompiler> CompilerPart::vendor() const {
    return chip::VendorCompiler{.program = "edgetpu_compiler",
                                .arguments = {"-s", "-o"},
                                .suffix = "_edgetpu.tflite",
                                .hint =
                                    "it runs on x86-64 Linux alone; `against` takes a file that "
                                    "it compiled elsewhere"};
}

namespace {

namespace setting = lowering::setting;

/// A setting of this part alone.
constexpr std::string_view gains = "gains";

/// What each pass saves, by the estimate.
Status add_gains(chip::Compilation& out, const model::Model& model,
                 const chip::CompileOptions& options) {
    const auto all = REEF_TRY(gains_of(model, options));
    chip::Section section{.title = "passes",
                          .about = "estimated cycles, and those without a pass",
                          .lines = {},
                          .asked_for = true};
    chip::Array list;
    const std::uint64_t with_all = all.front().cycles;
    for (const Gain& gain : all) {
        std::string text = fmt::format("{} cycles", gain.cycles);
        if (!gain.without.empty())
            text += fmt::format(", {:.3f} of them with it",
                                static_cast<double>(with_all) / static_cast<double>(gain.cycles));
        if (gain.operators != all.front().operators)
            text += fmt::format("; {} operators on the chip", gain.operators);
        section.add(gain.without.empty() ? "with all" : fmt::format("without {}", gain.without),
                    text);
        list.emplace_back(chip::Object{{"without", gain.without},
                                       {"operators", gain.operators},
                                       {"estimated_cycles", gain.cycles}});
    }
    out.sections.push_back(std::move(section));
    out.document.emplace_back("passes", std::move(list));
    return {};
}

chip::Compilation compilation_of(Compiled compiled, const chip::CompileOptions& options) {
    chip::Compilation out{.model = std::move(compiled.model),
                          .operators = std::move(compiled.operators),
                          .seconds = compiled.seconds(),
                          .sections = {},
                          .document = {},
                          .listing = std::move(compiled.listing)};
    chip::Array programs;
    for (std::size_t i = 0; i < compiled.programs.size(); ++i) {
        out.sections.push_back(section_of(compiled.programs[i], i, compiled.programs.size()));
        programs.emplace_back(document_of(compiled.programs[i]));
    }
    out.document.emplace_back("programs", std::move(programs));
    if (options.list_forms) {
        out.sections.push_back(section_of(compiled.forms));
        out.document.emplace_back("forms", document_of(compiled.forms));
    }
    return out;
}

}  // namespace

Result<chip::Compilation> CompilerPart::compile(const model::Model& model,
                                                const chip::CompileOptions& options) const {
    chip::CompileOptions own = options;
    const bool with_gains = own.settings.erase(std::string(gains)) != 0;
    auto done = compilation_of(REEF_TRY(edgetpu::compile(model, own)), own);
    if (with_gains) REEF_CHECK(add_gains(done, model, own));
    return done;
}

std::vector<chip::CompilerSetting> CompilerPart::settings() const {
    return {{.name = std::string(setting::without),
             .sentence = "Leave out passes that make programs faster",
             .choices = improvements(),
             .several = true},
            {.name = std::string(setting::spill),
             .sentence = "Which tensors lie in the host's memory while no operator touches them: "
                         "those that a network does not fit without (needed), also where that is "
                         "estimated to be faster than bands, all, or none",
             .choices = spillings()},
            {.name = std::string(setting::runtime_version),
             .sentence = "The oldest runtime of the vendor's that takes the program: 10 to 14, the "
                         "default. Signed values and streamed parameters need 12, tensors in the "
                         "host's memory 14",
             .choices = runtime_versions()},
            {.name = std::string(gains),
             .sentence = "Compile again without each of those passes, and print the estimates"}};
}

Result<std::vector<chip::Compilation>> CompilerPart::compile_together(
    std::span<const model::Model> models, const chip::CompileOptions& options) const {
    if (options.settings.contains(std::string(gains)))
        return fail(Cause::bad_argument, "gains are told of one model", std::string(gains),
                    "compile one model, undivided");
    if (options.schedule == chip::Schedule::vendor)
        return fail(Cause::bad_argument,
                    "the vendor's schedule is not known of models compiled together", {},
                    "compile them one by one, or ask for another schedule");
    std::vector<chip::Compilation> out;
    for (Compiled& one : REEF_TRY(edgetpu::compile_together(models, options)))
        out.push_back(compilation_of(std::move(one), options));
    return out;
}

Result<std::vector<chip::CompiledOperator>> CompilerPart::mapping(
    const model::Model& model, const chip::CompileOptions& options) const {
    return edgetpu::mapping(model, options);
}

Result<chip::CheckReport> TargetCheckerPart::check(const model::Model& model) const {
    return chip::report_of(REEF_TRY(edgetpu::mapping(model, {.most_programs = 0})));
}

}  // namespace reef::edgetpu
