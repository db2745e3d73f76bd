// The fast convolutions against XNNPACK's, layer by layer of real networks: one thread, the two in
// turn in one process, medians. XNNPACK rounds in another way, so outputs may differ by one step;
// more than that stops the benchmark, because then the two do not compute the same layer.
#include <fmt/format.h>
#include <xnnpack.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/worker_pool.h"
#include "cpu/prepare/convolution.h"
#include "operators/sides.h"
#include "quantile.h"
#include "reef/cpu/placer.h"
#include "reef/model/tflite.h"

namespace reef::cpu {
namespace {

using bench::median;

constexpr const char* networks[] = {"mobilenet_v1_0.5_160_quant", "tf2_mobilenet_v2_1.0_224_ptq",
                                    "deeplabv3_mnv2_dm05_pascal_quant"};
constexpr double bound = 1.25;

struct Layer {
    std::string network;
    std::size_t index = 0;
    bool depthwise = false;
    std::string shape;
    double reef_us = 0;
    double xnnpack_us = 0;
    [[nodiscard]] double ratio() const { return reef_us / xnnpack_us; }
};

struct XnnDelete {
    void operator()(xnn_operator_t op) const { xnn_delete_operator(op); }
};
using XnnOperator = std::unique_ptr<std::remove_pointer_t<xnn_operator_t>, XnnDelete>;

[[noreturn]] void stop(const std::string& message) {
    std::cerr << message << "\n";
    std::exit(1);
}

/// XNNPACK's operator for the same layer; its multipliers come from the file's scales.
class Peer {
  public:
    Peer(const Convolution& c, const OperatorView& op, bool depthwise, const std::byte* input,
         std::byte* output) {
        const auto unsigned32 = [](std::int64_t value) {
            return static_cast<std::uint32_t>(value);
        };
        const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
        const auto after = [&](const WindowAxis& axis) {
            const std::int64_t reach = (axis.taps - 1) * axis.dilation + 1;
            return unsigned32(std::max<std::int64_t>(
                0, (axis.out - 1) * axis.stride + reach - axis.in - axis.pad));
        };
        const auto create = [&](auto function, auto zero, auto... kernel_parameters) {
            using T = decltype(zero);
            xnn_operator_t made = nullptr;
            const xnn_status status = function(
                unsigned32(c.h.pad), after(c.w), after(c.h), unsigned32(c.w.pad),
                unsigned32(c.h.taps), unsigned32(c.w.taps), unsigned32(c.h.stride),
                unsigned32(c.w.stride), unsigned32(c.h.dilation), unsigned32(c.w.dilation),
                depthwise ? unsigned32(c.in_channels) : 1U, depthwise ? 1U : size(c.in_channels),
                size(depthwise ? c.depth_multiplier : c.out_channels), size(c.in_channels),
                size(c.out_channels), static_cast<T>(c.input_zero),
                op.input(0).quantization->scale[0], kernel_parameters...,
                reinterpret_cast<const T*>(c.weights.view().data()), c.bias.data(),
                static_cast<T>(c.output_zero), op.output(0).quantization->scale[0],
                static_cast<T>(c.clamp.min), static_cast<T>(c.clamp.max),
                depthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0U, &made);
            if (status != xnn_status_success) stop("XNNPACK refuses the layer");
            operator_.reset(made);
        };
        std::vector<float> scales = op.input(1).quantization->scale;
        if (c.type == ElementType::uint8) {
            create(xnn_create_convolution2d_nhwc_qu8, std::uint8_t{},
                   static_cast<std::uint8_t>(c.weight_zero), scales[0]);
            setup(xnn_setup_convolution2d_nhwc_qu8, c, reinterpret_cast<const std::uint8_t*>(input),
                  reinterpret_cast<std::uint8_t*>(output));
            return;
        }
        scales.resize(size(c.out_channels), scales[0]);
        create(xnn_create_convolution2d_nhwc_qc8, std::int8_t{},
               static_cast<const float*>(scales.data()));
        setup(xnn_setup_convolution2d_nhwc_qc8, c, reinterpret_cast<const std::int8_t*>(input),
              reinterpret_cast<std::int8_t*>(output));
    }
    void run() { xnn_run_operator(operator_.get(), nullptr); }

  private:
    template <typename Function, typename T>
    void setup(Function function, const Convolution& c, const T* input, T* output) {
        const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
        if (function(operator_.get(), size(c.batch), size(c.h.in), size(c.w.in), input, output,
                     nullptr) != xnn_status_success)
            stop("XNNPACK cannot set up the layer");
    }
    XnnOperator operator_;
};

/// Medians of `rounds` turns, each long enough for the clock.
template <typename Reef, typename Xnnpack>
void measure(const Reef& reef, const Xnnpack& xnnpack, int rounds, Layer& layer) {
    constexpr double turn_us = 400;
    reef();
    xnnpack();
    const double slower = std::max(microseconds(1, reef), microseconds(1, xnnpack));
    const int times = std::clamp(static_cast<int>(turn_us / slower), 1, 1000);
    std::vector<double> a;
    std::vector<double> b;
    for (int round = 0; round < rounds; ++round) {
        a.push_back(microseconds(times, reef));
        b.push_back(microseconds(times, xnnpack));
    }
    layer.reef_us = median(std::move(a));
    layer.xnnpack_us = median(std::move(b));
}

void expect_alike(const Convolution& c, std::span<const std::byte> a, std::span<const std::byte> b,
                  const Layer& layer) {
    for (std::size_t i = 0; i < a.size(); ++i) {
        const auto value = [&](std::byte byte) {
            const auto raw = std::to_integer<std::uint8_t>(byte);
            return c.type == ElementType::int8 ? static_cast<std::int8_t>(raw) : int{raw};
        };
        if (std::abs(value(a[i]) - value(b[i])) > 1)
            stop(fmt::format("{} operator {}: output {} is {} here and {} there", layer.network,
                             layer.index, i, value(a[i]), value(b[i])));
    }
}

void bench_layer(const OperatorView& op, int rounds, Layer& layer) {
    auto read = layer.depthwise ? read_depthwise_conv_2d(op) : read_conv_2d(op);
    if (!read) stop(read.error().message());
    const Convolution c = std::move(*read);
    const auto in_bytes = static_cast<std::size_t>(*op.input(0).byte_count());
    const auto out_bytes = static_cast<std::size_t>(*op.output(0).byte_count());
    const Memory input = allocate(in_bytes + XNN_EXTRA_BYTES);
    std::mt19937 random(1);
    std::generate_n(input.get(), in_bytes, [&] { return static_cast<std::byte>(random() & 0xFF); });
    const Memory ours = allocate(out_bytes);
    const Memory theirs = allocate(out_bytes + XNN_EXTRA_BYTES);
    const std::unique_ptr<Kernel> kernel =
        layer.depthwise ? fast_depthwise_conv_2d(c, 1) : fast_conv_2d(c, 1);
    kernel->pack();
    Peer peer(c, op, layer.depthwise, input.get(), theirs.get());
    const Memory scratch = allocate(std::max<std::size_t>(kernel->scratch_bytes(), 1));
    WorkerPool pool(1);
    std::byte* const inputs[] = {input.get(), nullptr, nullptr};
    std::byte* const outputs[] = {ours.get()};
    const Frame frame{inputs, outputs, {scratch.get(), kernel->scratch_bytes()}, pool};
    const auto reef = [&] {
        if (!kernel->run(frame)) stop("the kernel failed");
    };
    measure(
        reef, [&] { peer.run(); }, rounds, layer);
    expect_alike(c, {ours.get(), out_bytes}, {theirs.get(), out_bytes}, layer);
}

std::string describe(const OperatorView& op, const Convolution& c) {
    return fmt::format("{} {} * {} -> {}x{}{}{}", name_of(c.type),
                       model::shape_text(op.input(0).shape), model::shape_text(op.input(1).shape),
                       c.h.out, c.w.out, c.h.stride > 1 ? fmt::format(" /{}", c.h.stride) : "",
                       c.h.dilation > 1 ? fmt::format(" dilated {}", c.h.dilation) : "");
}

void bench_network(const std::string& folder, const std::string& name, int rounds,
                   std::vector<Layer>& layers) {
    const auto model = model::load_tflite(folder + "/data/models/" + name + ".tflite");
    if (!model) stop(model.error().message());
    const model::Subgraph& graph = model->subgraphs[0];
    std::map<std::string, bool> seen;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const model::Operator& op = graph.operators[i];
        const bool depthwise = op.code.builtin == model::Op::depthwise_conv_2d;
        if (!depthwise && op.code.builtin != model::Op::conv_2d) continue;
        const OperatorView view(*model, graph, i);
        auto c = depthwise ? read_depthwise_conv_2d(view) : read_conv_2d(view);
        if (!c) stop(c.error().message());
        Layer layer{.network = name,
                    .index = i,
                    .depthwise = depthwise,
                    .shape = (depthwise ? "dw   " : "conv ") + describe(view, *c)};
        if (!seen.emplace(layer.shape, true).second) continue;
        bench_layer(view, rounds, layer);
        layers.push_back(std::move(layer));
    }
}

double median_ratio(std::span<const Layer> layers) {
    std::vector<double> ratios;
    for (const Layer& layer : layers) ratios.push_back(layer.ratio());
    return median(std::move(ratios));
}

void print_text(const std::vector<Layer>& layers) {
    for (const char* network : networks) {
        fmt::print("{}\n  op  {:66} {:>9} {:>11} {:>6}\n", network, "layer", "Reef us",
                   "XNNPACK us", "ratio");
        double ours = 0;
        double theirs = 0;
        for (const Layer& layer : layers) {
            if (layer.network != network) continue;
            fmt::print("{:4}  {:66} {:9.1f} {:11.1f} {:6.2f}\n", layer.index, layer.shape,
                       layer.reef_us, layer.xnnpack_us, layer.ratio());
            ours += layer.reef_us;
            theirs += layer.xnnpack_us;
        }
        fmt::print("      {:66} {:9.1f} {:11.1f} {:6.2f}\n", "sum", ours, theirs, ours / theirs);
    }
    std::vector<Layer> worst = layers;
    std::ranges::sort(worst, std::greater{}, &Layer::ratio);
    worst.resize(std::min<std::size_t>(worst.size(), 5));
    fmt::print("worst layers\n");
    for (const Layer& layer : worst)
        fmt::print("{:6.2f}  {} operator {}: {}\n", layer.ratio(), layer.network, layer.index,
                   layer.shape);
    const double ratio = median_ratio(layers);
    fmt::print("median ratio {:.3f} over {} layers on {}, bound {}: {}\n", ratio, layers.size(),
               simd_target(), bound, ratio <= bound ? "kept" : "NOT KEPT");
}

void print_json(const std::vector<Layer>& layers) {
    fmt::print("{{\"target\": \"{}\", \"bound\": {}, \"median_ratio\": {:.4f}, \"layers\": [",
               simd_target(), bound, median_ratio(layers));
    const char* separator = "\n";
    for (const Layer& layer : layers) {
        fmt::print(
            "{}{{\"network\": \"{}\", \"operator\": {}, \"layer\": \"{}\", \"reef_us\": "
            "{:.2f}, \"xnnpack_us\": {:.2f}, \"ratio\": {:.4f}}}",
            separator, layer.network, layer.index, layer.shape, layer.reef_us, layer.xnnpack_us,
            layer.ratio());
        separator = ",\n";
    }
    fmt::print("\n]}}\n");
}

int main_of(std::span<char*> arguments) {
    bool json = false;
    int rounds = 41;
    for (const std::string argument : arguments.subspan(1)) {
        if (argument == "--json") {
            json = true;
        } else if (argument == "--smoke") {
            rounds = 1;
        } else {
            std::cerr
                << "usage: reef_convolution_bench [--json] [--smoke], with REEF_SHARED set to "
                   "the folder of reference data\n";
            return 2;
        }
    }
    const char* folder = std::getenv("REEF_SHARED");
    if (folder == nullptr) {
        std::cerr << "no reference data: set REEF_SHARED to its folder\n";
        return 2;
    }
    if (xnn_initialize(nullptr) != xnn_status_success) stop("XNNPACK does not start");
    std::vector<Layer> layers;
    for (const char* network : networks) bench_network(folder, network, rounds, layers);
    if (json)
        print_json(layers);
    else
        print_text(layers);
    return median_ratio(layers) <= bound || rounds == 1 ? 0 : 1;
}

}  // namespace
}  // namespace reef::cpu

int main(int argc, char** argv) {
    return reef::cpu::main_of({argv, static_cast<std::size_t>(argc)});
}
