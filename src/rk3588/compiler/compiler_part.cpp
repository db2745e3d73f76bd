#include "rk3588/compiler/compiler_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/legalise.h"
#include "reef_spec/rk3588_machine.h"
#include "rk3588/compiler/compile.h"
#include "rk3588/compiler/target.h"

namespace reef::rk3588 {
namespace {

constexpr std::string_view requant = "requant", assume = "assume", costs = "costs";
constexpr std::string_view as_tflite = "tflite", as_exact = "exact";
constexpr std::string_view assume_round = "round", assume_nrdma = "nrdma";
constexpr std::string_view assume_ppu = "ppu", assume_groups48 = "groups48",
                           assume_planes = "planes";
constexpr std::string_view assume_lut = "lut", assume_sumlut = "sumlut";
constexpr std::string_view fuse = "fuse", fuse_sums = "add";
constexpr std::string_view images = "images", folded = "folded", plain = "plain";
constexpr std::string_view cores = "cores";
constexpr std::string_view sram = "sram";
/// KiB; the last one is all that a board's device tree may give.
constexpr auto sram_sizes =
    std::to_array<std::string_view>({"64", "128", "256", "384", "512", "640", "768", "956"});
constexpr std::uint32_t bytes_of_size = 1024;
static_assert(956 * bytes_of_size == spec::sram_bytes);

std::string megabytes(std::uint64_t bytes) {
    return fmt::format("{:.2f} MB", static_cast<double>(bytes) / 1e6);
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    while (!text.empty()) {
        const auto comma = std::min(text.find(','), text.size());
        words.emplace_back(text.substr(0, comma));
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return words;
}

std::unexpected<Error> no_value(std::string_view setting, const std::string& value,
                                std::string hint) {
    return fail(Cause::bad_argument, fmt::format("`{}` has no value '{}'", setting, value), {},
                std::move(hint));
}

Status read_assumptions(const std::string& value, Options& out) {
    for (const std::string& word : words_of(value)) {
        if (word == assume_round)
            out.assume_round = true;
        else if (word == assume_nrdma)
            out.assume_nrdma = true;
        else if (word == assume_ppu)
            out.assume_ppu = true;
        else if (word == assume_groups48)
            out.assume_groups48 = true;
        else if (word == assume_planes)
            out.assume_planes = true;
        else if (word == assume_lut)
            out.assume_lut = true;
        else if (word == assume_sumlut)
            out.assume_sumlut = true;
        else
            return no_value(
                assume, word,
                "values are round, nrdma, ppu, groups48, planes, lut and sumlut, with commas "
                "between");
    }
    return {};
}

Result<std::uint32_t> read_sram(const std::string& value) {
    if (std::ranges::find(sram_sizes, value) == sram_sizes.end())
        return no_value(sram, value, fmt::format("sizes are {} KiB", fmt::join(sram_sizes, ", ")));
    return static_cast<std::uint32_t>(std::stoul(value)) * bytes_of_size;
}

Result<Options> numbers_of(const chip::CompileOptions& options) {
    Options out;
    for (const auto& [name, value] : options.settings) {
        if (name == requant) {
            if (value != as_tflite && value != as_exact)
                return no_value(name, value, "values are tflite and exact");
            out.requant = value == as_exact ? Options::Requant::exact : Options::Requant::tflite;
        } else if (name == assume) {
            REEF_CHECK(read_assumptions(value, out));
        } else if (name == images) {
            if (value != folded && value != plain)
                return no_value(name, value, "values are folded and plain");
            out.fold_images = value == folded;
        } else if (name == cores) {
            if (value != "1" && value != "2" && value != "3")
                return no_value(name, value, "the chip has 3");
            out.cores = value.front() - '0';
        } else if (name == sram) {
            out.sram_bytes = REEF_TRY(read_sram(value));
        } else if (name == fuse) {
            if (value != fuse_sums) return no_value(name, value, "its value is add");
            out.fuse_sums = true;
        } else if (name != costs) {
            return fail(Cause::bad_argument, fmt::format("no setting '{}'", name), {},
                        "settings are requant, assume, fuse, images, cores, sram and costs");
        }
    }
    if (out.assume_planes && out.cores != 1)
        return fail(Cause::bad_argument,
                    "with `assume` planes a core's results would lie over the next one's", {},
                    "compile for one core");
    return out;
}

Status refuse_others(const chip::CompileOptions& options) {
    const char* name = options.schedule != chip::Schedule::overlapped ? "schedule"
                       : options.stream_parameters                    ? "stream_parameters"
                       : options.most_activation_bytes != 0           ? "most_activation_bytes"
                       : options.known_forms_only                     ? "known_forms_only"
                                                                      : nullptr;
    if (name == nullptr) return {};
    return fail(Cause::bad_argument, fmt::format("`{}` means nothing on the RK3588", name));
}

struct Totals {
    std::uint64_t macs = 0, bytes = 0, sram_bytes = 0, cycles = 0;
};
Totals totals_of(const CompiledProgram& p) {
    Totals t;
    for (const OperatorReport& r : p.operators) {
        t.macs += r.macs;
        t.bytes += r.bytes.total();
        t.sram_bytes += r.sram_bytes;
    }
    t.cycles = p.cycles;
    return t;
}

double utilisation(std::uint64_t macs, std::uint64_t cycles) {
    if (cycles == 0) return 0;
    return static_cast<double>(macs) /
           (static_cast<double>(cycles) * spec::assumed::macs_per_cycle);
}

/// Of a program for several cores.
std::string cores_text(const CompiledProgram& p, const OperatorReport& r) {
    if (p.cores == 1) return {};
    if (r.cores == 1) return fmt::format(" on core {}", r.first_core);
    return fmt::format(" on {} cores", r.cores);
}

chip::Section section_of(const CompiledProgram& p, std::size_t number, std::size_t count,
                         bool each) {
    chip::Section section{
        .title = count == 1 ? std::string("program") : fmt::format("program {}", number),
        .about = {},
        .lines = {}};
    const Totals t = totals_of(p);
    section.add("operators", fmt::format("{} in {} tasks", p.operators.size(), p.tasks));
    if (p.fused_sums != 0) section.add("fused", fmt::format("{} sums", p.fused_sums));
    section.add("memory", fmt::format("{} of constants, {} of activations, {} of commands",
                                      megabytes(p.constant_bytes), megabytes(p.activation_bytes),
                                      megabytes(p.command_bytes)));
    section.add("bytes moved",
                p.sram_bytes == 0
                    ? megabytes(t.bytes)
                    : fmt::format("{} to and from memory, {} to and from {} KiB of the chip's SRAM",
                                  megabytes(t.bytes - t.sram_bytes), megabytes(t.sram_bytes),
                                  p.sram_bytes / bytes_of_size));
    if (p.cores > 1) section.add("cores", fmt::format("{}, with {} barriers", p.cores, p.barriers));
    section.add("estimate",
                fmt::format("{} cycles, {:.1f} % of the multipliers of {}", t.cycles,
                            100 * utilisation(t.macs, t.cycles * p.cores),
                            p.cores == 1 ? "one core" : fmt::format("{} cores", p.cores)));
    if (!each) return section;
    for (const OperatorReport& r : p.operators)
        section.add(
            fmt::format("{} {}", r.index, r.name),
            r.tasks == 0
                ? std::string("stands where its inputs are")
                : fmt::format("{} tasks{}, banks {}+{}, {} bytes{}, {} cycles, {:.1f} %", r.tasks,
                              cores_text(p, r), r.data_banks, r.weight_banks, r.bytes.total(),
                              p.sram_bytes == 0 ? std::string()
                                                : fmt::format(" ({} in SRAM)", r.sram_bytes),
                              r.cycles, 100 * utilisation(r.macs, r.cycles * r.cores)));
    return section;
}

chip::Object document_of(const BytesMoved& b) {
    return {{"features", b.features}, {"weights", b.weights}, {"operands", b.operands},
            {"commands", b.commands}, {"results", b.results}, {"total", b.total()}};
}

chip::Object document_of(const CompiledProgram& p) {
    const Totals t = totals_of(p);
    chip::Array operators;
    for (const OperatorReport& r : p.operators)
        operators.emplace_back(
            chip::Object{{"index", r.index},
                         {"name", r.name},
                         {"tasks", r.tasks},
                         {"data_banks", r.data_banks},
                         {"weight_banks", r.weight_banks},
                         {"macs", r.macs},
                         {"bytes_moved", document_of(r.bytes)},
                         {"bytes_moved_in_sram", r.sram_bytes},
                         {"first_core", r.first_core},
                         {"cores", r.cores},
                         {"estimated_cycles", r.cycles},
                         {"utilisation", utilisation(r.macs, r.cycles * r.cores)},
                         {"worst_gain_error", r.worst_gain_error}});
    return {{"tasks", p.tasks},
            {"cores", p.cores},
            {"barriers", p.barriers},
            {"fused_sums", p.fused_sums},
            {"activation_bytes", p.activation_bytes},
            {"constant_bytes", p.constant_bytes},
            {"command_bytes", p.command_bytes},
            {"bytes_moved", t.bytes},
            {"sram_bytes", p.sram_bytes},
            {"bytes_moved_in_sram", t.sram_bytes},
            {"macs", t.macs},
            {"estimated_cycles", t.cycles},
            {"operators", std::move(operators)}};
}

chip::Section section_of(const std::vector<UnprovenForm>& forms) {
    chip::Section section{
        .title = "forms that no int8 stream of a real RK3588 has shown", .about = {}, .lines = {}};
    for (const UnprovenForm& f : forms)
        section.add(fmt::format("{} operators", f.operators), f.what);
    return section;
}

}  // namespace

std::vector<std::string_view> CompilerPart::passes() const {
    return compiler_passes();
}

std::vector<chip::CompilerSetting> CompilerPart::settings() const {
    return {
        {.name = std::string(requant),
         .sentence = "Round twice as TFLite's kernels do, or the exact product once (default: "
                     "tflite)",
         .choices = {std::string(as_tflite), std::string(as_exact)}},
        {.name = std::string(assume),
         .sentence =
             "Use forms that no real chip has shown: round (CVT_ROUND), nrdma (factors "
             "of BN from memory), ppu (the greatest of int8 windows), groups48 (operands by "
             "channel of depthwise convolutions, 48 bytes for 8 channels), planes (planes behind "
             "results are written, and have room), lut (functions by table, such as LOGISTIC), "
             "sumlut (sums through tables: MEAN of int8 without its "
             "dimensions)",
         .choices = {std::string(assume_round), std::string(assume_nrdma), std::string(assume_ppu),
                     std::string(assume_groups48), std::string(assume_planes),
                     std::string(assume_lut), std::string(assume_sumlut)},
         .several = true},
        {.name = std::string(fuse),
         .sentence = "Compute sums with a convolution in front of them (add): fewer bytes moved, "
                     "results one apart from TFLite's more often",
         .choices = {std::string(fuse_sums)}},
        {.name = std::string(images),
         .sentence = "Strips of an input of few channels beside each other in an atom, or each "
                     "pixel in an atom of its own (default: folded)",
         .choices = {std::string(folded), std::string(plain)}},
        {.name = std::string(cores),
         .sentence = "Cores that share the work (default: 1)",
         .choices = {"1", "2", "3"},
         .elsewhere = "--segments divides a model over several chips"},
        {.name = std::string(sram),
         .sentence =
             "Place the tensors that move the most bytes in so many KiB of the chip's SRAM, "
             "which the vendor's driver gives where the board has it set apart (`device` "
             "rk3588:rknpu?sram=on)",
         .choices = {sram_sizes.begin(), sram_sizes.end()}},
        {.name = std::string(costs),
         .sentence = "List tasks, banks, bytes moved and estimated cycles of each operator, "
                     "and the unproven forms",
         .choices = {}}};
}

Result<chip::Compilation> CompilerPart::compile(const model::Model& model,
                                                const chip::CompileOptions& options) const {
    REEF_CHECK(refuse_others(options));
    Compiled compiled = REEF_TRY(rk3588::compile(model, REEF_TRY(numbers_of(options)), options));
    chip::Compilation out{.model = std::move(compiled.model),
                          .operators = std::move(compiled.operators),
                          .sections = {},
                          .document = {},
                          .listing = std::move(compiled.listing)};
    const bool each = options.settings.contains(std::string(costs));
    chip::Array programs;
    for (std::size_t i = 0; i < compiled.programs.size(); ++i) {
        out.sections.push_back(section_of(compiled.programs[i], i, compiled.programs.size(), each));
        out.sections.back().asked_for = each;
        programs.emplace_back(document_of(compiled.programs[i]));
    }
    chip::Array unproven;
    for (const UnprovenForm& f : compiled.unproven)
        unproven.emplace_back(chip::Object{{"what", f.what}, {"operators", f.operators}});
    if (each || options.list_forms) {
        out.sections.push_back(section_of(compiled.unproven));
        out.sections.back().asked_for = true;
    }
    out.document = {{"programs", std::move(programs)}, {"unproven", std::move(unproven)}};
    return out;
}

Result<std::vector<chip::CompiledOperator>> CompilerPart::mapping(
    const model::Model& model, const chip::CompileOptions& options) const {
    REEF_CHECK(refuse_others(options));
    return rk3588::mapping(model, REEF_TRY(numbers_of(options)), options);
}

Result<chip::CheckReport> TargetCheckerPart::check(const model::Model& model) const {
    return chip::report_of(REEF_TRY(rk3588::mapping(model, {}, {})));
}

}  // namespace reef::rk3588
