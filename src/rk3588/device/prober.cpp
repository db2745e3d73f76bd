#include "rk3588/device/prober.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "reef/model/builder.h"
#include "reef/runtime/session.h"
#include "rk3588/artifact/artifact.h"
#include "rk3588/compiler/compile.h"
#include "rk3588/regs/register_set.h"

namespace reef::rk3588 {
namespace {

using chip::ProbeAnswer;

/// A convolution of 8x8 pixels and 32 channels, but for what a question is about.
struct ProbeLayer {
    std::int32_t height = 8, width = 8, channels = 32;
    std::int32_t kernel = 3, stride = 1, dilation = 1;
    bool depthwise = false, by_channel = false;
    model::Activation activation = model::Activation::none;
    float out_scale = 0.07F;
    model::Op elements = model::Op::conv_2d;  ///< in place of a convolution
};

/// What the device may do, and the simulator that does it.
struct Assumption {
    const char* simulator;
    const char* answer;
    const char* set;
    bool short_groups = false;  ///< the program's operands are packed for it
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
                                          "rk3588:sim?depthwise_operands=48", true}};
constexpr Assumption factors_in_memory[] = {
    {"rk3588:sim", "as simulated", "compile with `assume` nrdma"},
    {"rk3588:sim?output_rounding=even", "as simulated, halves to even",
     "compile with `assume` nrdma"},
    {"rk3588:sim?output_rounding=away", "as simulated, halves away from zero",
     "compile with `assume` nrdma"}};

constexpr Assumption pooling_unit[] = {{"rk3588:sim", "as simulated", "compile with `assume` ppu"}};

struct Probe {
    const char* question;
    ProbeLayer layer;
    Options options{};
    std::span<const Assumption> assumptions = as_simulated;
};

std::vector<Probe> probes() {
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
        {"dilation of depthwise convolutions", {.dilation = 2, .depthwise = true}},
        {"padding of 2", {.kernel = 5}},
        {"images that are no squares", {.height = 6, .width = 11}},
        {"3 channels in atoms of 16", {.channels = 3}, {.fold_images = false}},
        {"strips of an image beside each other in atoms of 16", {.height = 16, .channels = 3}},
        {"strides of 3", {.height = 10, .width = 10, .stride = 3}},
        {"kernels of one pixel", {.kernel = 1}},
        {"sums of two tensors", {.elements = model::Op::add}},
        {"products of two tensors", {.elements = model::Op::mul}},
        {"values at another scale", {.elements = model::Op::quantize}},
        {"the greatest of windows in the PPU",
         {.elements = model::Op::max_pool_2d},
         {.assume_ppu = true},
         pooling_unit},
        {"a convolution shared by two cores", {.height = 24, .width = 24}, {.cores = 2}},
    };
}

model::Quantization weight_scales(const ProbeLayer& layer, std::int32_t out_channels) {
    if (!layer.by_channel) return model::per_tensor(0.005F, 128);
    std::vector<float> scales;
    for (std::int32_t c = 0; c < out_channels; ++c)
        scales.push_back(0.002F + 0.0003F * static_cast<float>(c % 13));
    return model::per_channel(std::move(scales), layer.depthwise ? 3 : 0);
}

Result<model::Model> elements_of(const ProbeLayer& layer) {
    model::Builder b("a probe");
    const std::vector<std::int32_t> shape{1, layer.height, layer.width, layer.channels};
    const auto numbers = model::per_tensor(0.05F, 120);
    const auto one = b.input("one", ElementType::uint8, shape, numbers);
    if (layer.elements == model::Op::max_pool_2d) {
        const auto out = b.tensor("out", ElementType::uint8,
                                  {1, layer.height / 2, layer.width / 2, layer.channels}, numbers);
        b.add(layer.elements, {one}, {out},
              model::Pool2dOptions{.stride_h = 2, .stride_w = 2, .filter_h = 2, .filter_w = 2});
        b.output(out);
        return b.finish();
    }
    const auto out =
        b.tensor("out", ElementType::uint8, shape, model::per_tensor(layer.out_scale, 125));
    if (layer.elements == model::Op::quantize) {
        b.add(layer.elements, {one}, {out});
    } else {
        const auto other =
            b.input("other", ElementType::uint8, shape, model::per_tensor(0.03F, 131));
        const bool product = layer.elements == model::Op::mul;
        b.add(layer.elements, {one, other}, {out},
              product ? model::Options(model::MulOptions{}) : model::Options(model::AddOptions{}));
    }
    b.output(out);
    return b.finish();
}

Result<model::Model> model_of(const ProbeLayer& layer) {
    if (layer.elements != model::Op::conv_2d) return elements_of(layer);
    const auto type = layer.by_channel ? ElementType::int8 : ElementType::uint8;
    const std::int32_t zero = layer.by_channel ? 0 : 128,
                       out_channels = layer.depthwise ? layer.channels : 32;
    const auto out_side = [&](std::int32_t side) {
        return (side + layer.stride - 1) / layer.stride;
    };
    model::Builder b("a probe");
    const auto in = b.input("in", type, {1, layer.height, layer.width, layer.channels},
                            model::per_tensor(0.05F, zero - 5));
    const std::vector<std::int32_t> shape{layer.depthwise ? 1 : out_channels, layer.kernel,
                                          layer.kernel, layer.channels};
    std::vector<std::byte> weights(
        static_cast<std::size_t>(shape[0] * layer.kernel * layer.kernel * layer.channels));
    for (std::size_t i = 0; i < weights.size(); ++i)
        weights[i] = static_cast<std::byte>(i * 7 + i / 31);
    // TFLite has no int8 weight of -128.
    if (layer.by_channel) std::ranges::replace(weights, std::byte{0x80}, std::byte{0x81});
    const auto w =
        b.constant_bytes("weights", type, shape, weights, weight_scales(layer, out_channels));
    const auto out = b.tensor(
        "out", type, {1, out_side(layer.height), out_side(layer.width), out_channels},
        model::per_tensor(layer.out_scale,
                          layer.activation == model::Activation::none ? zero : zero - 128));
    if (layer.depthwise)
        b.add(model::Op::depthwise_conv_2d, {in, w, model::absent_tensor}, {out},
              model::DepthwiseConv2dOptions{.padding = model::Padding::same,
                                            .stride_h = layer.stride,
                                            .stride_w = layer.stride,
                                            .dilation_h = layer.dilation,
                                            .dilation_w = layer.dilation,
                                            .depth_multiplier = 1,
                                            .activation = layer.activation});
    else
        b.add(model::Op::conv_2d, {in, w, model::absent_tensor}, {out},
              model::Conv2dOptions{.padding = model::Padding::same,
                                   .stride_h = layer.stride,
                                   .stride_w = layer.stride,
                                   .dilation_h = layer.dilation,
                                   .dilation_w = layer.dilation,
                                   .activation = layer.activation});
    b.output(out);
    return b.finish();
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

/// The value of the only word that writes the register.
std::uint64_t* word_of(std::vector<std::uint64_t>& words, RegisterIndex index) {
    constexpr std::uint64_t value_bits = 0xffffffffULL << first_value_bit;
    const std::uint64_t wanted = register_word(index, 0);
    const auto found = std::ranges::find_if(
        words, [&](std::uint64_t word) { return (word & ~value_bits) == wanted; });
    return found == words.end() ? nullptr : &*found;
}

/// The program of one depthwise task with its operands in groups of 48 bytes, without the 16 that
/// nothing uses.
Result<model::Model> with_short_groups(model::Model program) {
    constexpr FieldPlace use = field_named("DPU_RDMA_BRDMA_CFG.BRDMA_DATA_USE");
    constexpr std::uint64_t correction = 2;
    constexpr std::size_t sums = 32, unused = 16, factors = 16;
    auto& options = program.subgraphs[0].operators[0].custom_options;
    Artifact artifact = REEF_TRY(read_artifact(options.view()));
    std::uint64_t* uses = word_of(artifact.commands, use.index);
    const std::uint64_t* base = word_of(artifact.commands, register_named("DPU_RDMA_BS_BASE_ADDR"));
    if (uses == nullptr || base == nullptr || artifact.tasks.size() != 1)
        return fail(Cause::unsupported, "the probe is no single task with operands in memory");
    *uses &= ~(correction << (use.shift + first_value_bit));
    const auto first = static_cast<std::uint32_t>(*base >> first_value_bit);
    const Bytes old = artifact.constants.view();
    std::vector<std::byte> packed(old.begin(), old.end());
    const std::size_t groups = artifact.outputs[0].channels / 8;
    for (std::size_t g = 0; g < groups; ++g) {
        const auto from =
            old.begin() + static_cast<std::ptrdiff_t>(first + g * (sums + unused + factors));
        const auto to = packed.begin() + static_cast<std::ptrdiff_t>(first + g * (sums + factors));
        std::copy_n(from, sums, to);
        std::copy_n(from + sums + unused, factors, to + sums);
    }
    artifact.constants = SharedBytes::copy_of(packed);
    options = SharedBytes::copy_of(write_artifact(artifact));
    return program;
}

Result<ProbeAnswer> ask(const Probe& probe, const std::string& device) {
    const auto plain = REEF_TRY(model_of(probe.layer));
    const auto compiled = REEF_TRY(compile(plain, probe.options, {})).model;
    ProbeAnswer answer{.question = probe.question, .answer = {}, .set = {}, .expected = false};
    std::string others;
    for (const Assumption& one : probe.assumptions) {
        const auto program = one.short_groups ? REEF_TRY(with_short_groups(compiled)) : compiled;
        const auto simulated_bytes = REEF_TRY(outputs_on(one.simulator, program));
        const auto found = outputs_on(device, program);
        if (!found && is_no_answer(found.error())) return std::unexpected(found.error());
        others += others.empty() ? "otherwise: " : "; ";
        if (!found) {
            others += found.error().message();
            continue;
        }
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
    for (const Probe& each : probes())
        answers.push_back(REEF_TRY(in_place(ask(each, device), each.question)));
    return answers;
}

}  // namespace reef::rk3588
