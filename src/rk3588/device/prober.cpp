#include "rk3588/device/prober.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "reef/runtime/session.h"
#include "reef_spec/rk3588_machine.h"
#include "rk3588/artifact/artifact.h"
#include "rk3588/compiler/compile.h"
#include "rk3588/device/probe_networks.h"
#include "rk3588/regs/register_set.h"

namespace reef::rk3588 {
namespace {

using chip::ProbeAnswer;

/// What the device may do, and the simulator that does it.
struct Assumption {
    const char* simulator;
    const char* answer;
    const char* set;
    bool short_groups = false;  ///< the program's operands are packed for it, too
};
constexpr Assumption as_simulated[] = {
    {"rk3588:sim", "as simulated", ""},
    {"rk3588:sim?output_rounding=even", "as simulated, halves to even",
     "rk3588:sim?output_rounding=even"},
    {"rk3588:sim?output_rounding=away", "as simulated, halves away from zero",
     "rk3588:sim?output_rounding=away"}};
constexpr Assumption marked_rounding[] = {
    {"rk3588:sim", "away from zero", "compile with `assume` round"},
    {"rk3588:sim?output_rounding=even", "to even", "rk3588:sim?output_rounding=even"}};
constexpr Assumption plain_rounding[] = {
    {"rk3588:sim", "to even", ""},
    {"rk3588:sim?output_rounding=away", "away from zero", "rk3588:sim?output_rounding=away"}};
constexpr Assumption operand_groups[] = {{"rk3588:sim", "groups of 64 bytes", ""},
                                         {"rk3588:sim?depthwise_operands=48", "groups of 48 bytes",
                                          "compile with `assume` groups48", true}};
constexpr Assumption weight_lanes[] = {
    {"rk3588:sim", "32", ""},
    {"rk3588:sim?weight_lanes=real", "as many as there are channels",
     "rk3588:sim?weight_lanes=real"}};
constexpr Assumption padding_bytes[] = {
    {"rk3588:sim", "the first", ""},
    {"rk3588:sim?direct_padding=second", "the second", "rk3588:sim?direct_padding=second"}};
constexpr Assumption factors_in_memory[] = {
    {"rk3588:sim", "as simulated", "compile with `assume` nrdma"},
    {"rk3588:sim?output_rounding=even", "as simulated, halves to even",
     "compile with `assume` nrdma"},
    {"rk3588:sim?output_rounding=away", "as simulated, halves away from zero",
     "compile with `assume` nrdma"}};

constexpr Assumption pooling_unit[] = {{"rk3588:sim", "as simulated", "compile with `assume` ppu"}};
constexpr Assumption rounded_averages[] = {
    {"rk3588:sim", "halves to even", ""},
    {"rk3588:sim?average_rounding=down", "down", "rk3588:sim?average_rounding=down"}};

constexpr Assumption function_tables[] = {
    {"rk3588:sim", "as simulated", "compile with `assume` lut"}};
constexpr Assumption sums_by_table[] = {
    {"rk3588:sim", "as simulated", "compile with `assume` sumlut"}};
constexpr Assumption interpolations[] = {
    {"rk3588:sim", "to the nearest", ""},
    {"rk3588:sim?interpolation=down", "down", "rk3588:sim?interpolation=down"}};

constexpr Assumption written_planes[] = {
    {"rk3588:sim", "left alone", ""},
    {"rk3588:sim?planes=all", "written", "compile with `assume` planes"}};

/// A field that the compiler writes otherwise, in every task.
struct Change {
    FieldPlace field;
    std::uint32_t value;
    std::uint32_t step = 0;  ///< more, each further time
};
/// Every second byte another one, where the compiler repeats one.
constexpr Change two_padding_bytes[] = {{field_named("CNA_PAD_CON1.PAD_VALUE"), 0x1df11df1}};
constexpr Change real_channels[] = {{field_named("CNA_DATA_SIZE1.DATAIN_CHANNEL_REAL"), 24 - 1}};
constexpr Change filled_lanes[] = {{field_named("DPU_OFFSET_PEND.OFFSET_PEND"), 0x2a}};
constexpr std::uint32_t half = 65536 / 2;
constexpr Change average_of_two_by_two[] = {
    {field_named("PPU_OPERATION_MODE_CFG.POOLING_METHOD"), spec::value::pooling::average_},
    {field_named("PPU_RECIP_KERNEL_WIDTH.RECIP_KERNEL_WIDTH"), half},
    {field_named("PPU_RECIP_KERNEL_HEIGHT.RECIP_KERNEL_HEIGHT"), half}};

/// Entries that lie 7 apart, of which values use those in the middle of both tables, less the one
/// between them.
constexpr std::uint32_t between_entries = 7;
constexpr Change steps_of_entries[] = {
    {field_named("DPU_LUT_ACCESS_DATA.LUT_ACCESS_DATA"), 0, between_entries},
    {field_named("DPU_BN_MUL_CFG.BN_MUL_OPERAND"), 3 << 7},
    {field_named("DPU_OUT_CVT_SHIFT.OUT_CVT_SHIFT"), 14},
    {field_named("DPU_OUT_CVT_OFFSET.OUT_CVT_OFFSET"),
     0U - between_entries* static_cast<std::uint32_t>(spec::lut_entries)}};

struct Probe {
    const char* question;
    ProbeLayer layer;
    Options options{};
    std::span<const Assumption> assumptions = as_simulated;
    std::span<const Change> changes{};
    bool whole_atoms = false;         ///< the lanes behind the last channel are looked at, too
    bool chained = false;             ///< the kernel's driver starts a chain
    std::uint32_t planes_behind = 0;  ///< of the input, behind the output's, are looked at, too
};

/// How sums become bytes.
std::vector<Probe> probes_of_rescaling() {
    using Requant = Options::Requant;
    const ProbeLayer by_channel{.by_channel = true};
    return {
        {"BS multiplies with a factor of all channels, and rounds", {}},
        {"halves with CVT_ROUND", {}, {.assume_round = true}, marked_rounding},
        {"halves without CVT_ROUND", {.channels = 3}, {}, plain_rounding},
        {"one rounding behind both factors", {}, {.requant = Requant::exact}},
        {"BS multiplies with factors by channel from memory", by_channel},
        {"BN multiplies with factors by channel from memory",
         by_channel,
         {.assume_nrdma = true},
         factors_in_memory},
        {"operands by channel of depthwise convolutions",
         {.channels = 64, .depthwise = true, .by_channel = true},
         {},
         operand_groups},
        {"a bound above ReLU", {.activation = model::Activation::relu6, .out_scale = 0.03F}},
    };
}

/// Of convolutions, and the images under them.
std::vector<Probe> probes_of_windows() {
    return {
        {"dilation of depthwise convolutions", {.dilation = 2, .depthwise = true}},
        {"padding of 2", {.kernel = 5}},
        {"padding of 6", {.kernel = 13}},
        {"padding of 15", {.kernel = 31, .depthwise = true}},
        {"images that are no squares", {.height = 6, .width = 11}},
        {"3 channels in atoms of 16", {.channels = 3}, {.fold_images = false}},
        {"strips of an image beside each other in atoms of 16", {.height = 16, .channels = 3}},
        {"strides of 3", {.height = 10, .width = 10, .stride = 3}},
        {"kernels of one pixel", {.kernel = 1}},
    };
}

/// That are no convolutions.
std::vector<Probe> probes_of_operators() {
    return {
        {"sums of two tensors", {.elements = model::Op::add}},
        {"products of two tensors", {.elements = model::Op::mul}},
        {"values at another scale", {.elements = model::Op::quantize}},
        {"the greatest of windows in the PPU",
         {.elements = model::Op::max_pool_2d},
         {.assume_ppu = true},
         pooling_unit},
        {"functions by table",
         {.out_scale = 1.0F / 256, .elements = model::Op::logistic},
         {.assume_lut = true},
         function_tables},
        {"how a function rounds between two entries of its table",
         {.out_scale = 1.0F / 256, .elements = model::Op::logistic},
         {.assume_lut = true},
         interpolations,
         steps_of_entries},
        {"sums of a convolution by table",
         {.elements = model::Op::mean},
         {.assume_sumlut = true},
         sums_by_table},
    };
}

/// Of lanes and planes in which nothing of the model lies.
std::vector<Probe> probes_of_lanes() {
    using Requant = Options::Requant;
    return {
        {"lanes of the weights of 24 channels",
         {.channels = 24},
         {.requant = Requant::exact},
         weight_lanes,
         real_channels},
        {"which byte of PAD_VALUE pads odd channels of direct convolutions",
         {},
         {.requant = Requant::exact},
         padding_bytes,
         two_padding_bytes},
        {"OFFSET_PEND in the lanes behind the last channel",
         {.out_channels = 20},
         {},
         as_simulated,
         filled_lanes,
         true},
        {.question = "the plane behind results of 16 channels, of which the arrays make 32",
         .layer = {.channels = 16, .out_channels = 16},
         .options = {.requant = Requant::exact},
         .assumptions = written_planes,
         .planes_behind = 1},
        {.question =
             "planes behind results of a depthwise convolution of 16 channels, of which the "
             "arrays make 64",
         .layer = {.channels = 16, .depthwise = true},
         .options = {.requant = Requant::exact},
         .assumptions = written_planes,
         .planes_behind = 3},
    };
}

std::vector<Probe> probes_of_averages() {
    return {
        {"averages as depthwise convolutions with one weight",
         {.height = 14, .width = 14, .elements = model::Op::average_pool_2d, .window = 7}},
        {"how the PPU rounds averages",
         {.elements = model::Op::max_pool_2d},
         {.assume_ppu = true},
         rounded_averages,
         average_of_two_by_two},
    };
}

/// Of tasks on several cores, and of chained ones.
std::vector<Probe> probes_of_starts() {
    return {
        {"a convolution shared by two cores", {.height = 24, .width = 24}, {.cores = 2}},
        {.question = "tasks of an operator, started as a chain",
         .layer = {.height = 112, .width = 112},
         .chained = true},
    };
}

std::vector<Probe> probes() {
    std::vector<Probe> all;
    for (const auto group : {probes_of_rescaling, probes_of_windows, probes_of_operators,
                             probes_of_lanes, probes_of_averages, probes_of_starts})
        std::ranges::move(group(), std::back_inserter(all));
    return all;
}

Result<std::vector<std::byte>> outputs_on(const std::string& device, const model::Model& program) {
    runtime::SessionOptions options;
    options.devices = {{device}};
    options.require_npu = true;
    auto session = REEF_TRY(runtime::Session::open(program, options));
    for (std::size_t n = 0; n < session.input_count(); ++n) {
        const MutableBytes input = session.input(n);
        for (std::size_t i = 0; i < input.size(); ++i)
            input[i] = static_cast<std::byte>(i * (37 + 6 * n) + i / 97);
    }
    REEF_CHECK(session.run());
    const Bytes output = session.output(0);
    return std::vector<std::byte>(output.begin(), output.end());
}

std::size_t equal_bytes(Bytes a, Bytes b) {
    std::size_t equal = 0;
    for (std::size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i] ? 1 : 0;
    return equal;
}

/// What may be wrong with the way to the device, which no program answers.
bool is_no_answer(const Error& error) {
    return error.cause == Cause::device_missing || error.cause == Cause::device_denied ||
           error.cause == Cause::bad_argument || error.cause == Cause::cancelled;
}

/// The program's words with the fields changed in each task that writes them.
Status change(Artifact& artifact, const Change& change) {
    constexpr std::uint64_t value_bits = 0xffffffffULL << first_value_bit;
    const std::uint64_t wanted = register_word(change.field.index, 0);
    const unsigned shift = change.field.shift + first_value_bit;
    std::size_t changed = 0;
    for (std::uint64_t& word : artifact.commands) {
        if ((word & ~value_bits) != wanted) continue;
        const auto value = change.value + change.step * static_cast<std::uint32_t>(changed);
        word &= ~(std::uint64_t{change.field.mask()} << shift);
        word |= std::uint64_t{value & change.field.mask()} << shift;
        ++changed;
    }
    if (changed > 0) return {};
    return fail(Cause::unsupported, "the probe's program does not write the register");
}

/// Outputs with every lane of their atoms.
void show_lanes(Artifact& artifact, model::Subgraph& graph) {
    Cube& out = artifact.outputs[0];
    const Cube before = out;
    out.channels = static_cast<std::uint32_t>(out.atoms() * spec::atom_bytes);
    for (ArtifactOperator& op : artifact.operators)
        if (op.output == before) op.output = out;
    auto& tensor = graph.tensors[static_cast<std::size_t>(graph.outputs[0])];
    tensor.shape.back() = static_cast<std::int32_t>(out.channels);
}

/// The output, then planes of the input that nothing reads, then the one that the task reads. What
/// comes out are all but the last.
Status show_planes_behind(std::uint32_t count, Artifact& artifact, model::Subgraph& graph) {
    Cube &in = artifact.inputs[0], &out = artifact.outputs[0];
    const auto plane = static_cast<std::uint32_t>(out.surface_bytes());
    if (artifact.tasks.size() != 1 || in.atoms() != 1 || out.atoms() != 1 || in.fold ||
        in.surface_bytes() != plane)
        return fail(Cause::unsupported, "the probe's program is not one task of single planes");
    const Change places[] = {
        {field_named("CNA_FEATURE_DATA_ADDR.FEATURE_BASE_ADDR"), (1 + count) * plane},
        {field_named("DPU_DST_BASE_ADDR.DST_BASE_ADDR"), 0}};
    for (const Change& each : places) REEF_CHECK(change(artifact, each));
    in.offset = plane;
    out.offset = 0;
    in.channels = out.channels = (1 + count) * spec::atom_bytes;
    artifact.activation_bytes = (2 + count) * plane;
    artifact.operators[0].inputs = {in};
    artifact.operators[0].output = out;
    for (const auto index : {graph.inputs[0], graph.outputs[0]})
        graph.tensors[static_cast<std::size_t>(index)].shape.back() =
            static_cast<std::int32_t>(in.channels);
    return {};
}

Result<model::Model> program_of(const Probe& probe, const Options& options) {
    auto program = REEF_TRY(compile(REEF_TRY(model_of(probe.layer)), options, {})).model;
    if (probe.changes.empty() && !probe.whole_atoms && probe.planes_behind == 0) return program;
    auto& graph = program.subgraphs[0];
    Artifact artifact = REEF_TRY(read_artifact(graph.operators[0].custom_options.view()));
    for (const Change& each : probe.changes) REEF_CHECK(change(artifact, each));
    if (probe.whole_atoms) show_lanes(artifact, graph);
    if (probe.planes_behind != 0)
        REEF_CHECK(show_planes_behind(probe.planes_behind, artifact, graph));
    graph.operators[0].custom_options = SharedBytes::copy_of(write_artifact(artifact));
    return program;
}

/// The device as it starts chains; nothing where its driver never does. The simulated cores follow
/// chains always.
Result<std::optional<std::string>> chaining(const std::string& device) {
    auto uri = REEF_TRY(runtime::Registry::of_process().find(device)).uri;
    if (uri.backend == "rocket") return std::nullopt;
    if (uri.backend == "sim") return device;
    // The question is about chains, whatever else the device starts.
    std::erase_if(uri.options, [](const auto& option) { return option.first == "start"; });
    uri.options.emplace_back("start", "chain");
    return uri.text();
}

Result<ProbeAnswer> ask(const Probe& probe, const std::string& device) {
    ProbeAnswer answer{.question = probe.question, .answer = {}, .set = {}, .expected = false};
    std::string others;
    for (const Assumption& one : probe.assumptions) {
        Options options = probe.options;
        options.assume_groups48 = one.short_groups;
        const auto program = REEF_TRY(program_of(probe, options));
        const auto simulated_bytes = REEF_TRY(outputs_on(one.simulator, program));
        const auto found = outputs_on(device, program);
        if (!found && is_no_answer(found.error())) return std::unexpected(found.error());
        if (!found) {
            // The same for each assumption.
            const std::string why = found.error().message();
            if (!others.contains(why)) others += (others.empty() ? "otherwise: " : "; ") + why;
            continue;
        }
        others += others.empty() ? "otherwise: " : "; ";
        const std::size_t equal = equal_bytes(*found, simulated_bytes);
        if (equal == simulated_bytes.size()) {
            answer.answer = one.answer;
            answer.set = one.set;
            answer.expected = &one == probe.assumptions.data();
            return answer;
        }
        others += fmt::format("{} of {} bytes {}", equal, simulated_bytes.size(), one.answer);
    }
    answer.answer = others;
    return answer;
}

}  // namespace

Result<std::vector<ProbeAnswer>> Prober::probe(const std::string& device) const {
    std::vector<ProbeAnswer> answers;
    for (const Probe& each : probes()) {
        const auto asked =
            each.chained ? REEF_TRY(chaining(device)) : std::optional<std::string>(device);
        if (asked) answers.push_back(REEF_TRY(in_place(ask(each, *asked), each.question)));
    }
    return answers;
}

}  // namespace reef::rk3588
