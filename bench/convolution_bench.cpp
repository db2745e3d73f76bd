// The fast convolutions against XNNPACK's, layer by layer of real networks: one thread, the two in
// turn in one process, medians. XNNPACK rounds in another way, so outputs may differ by one step;
// more than that stops the benchmark, because then the two do not compute the same layer.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/worker_pool.h"
#include "cpu/prepare/convolution.h"
#include "operators/sides.h"
#include "peers/xnnpack_placer.h"
#include "quantile.h"
#include "reef/cpu/placer.h"
#include "reef/model/tflite.h"

namespace reef::cpu {
namespace {

using bench::median;

constexpr const char* networks[] = {"mobilenet_v1_0.5_160_quant", "tf2_mobilenet_v2_1.0_224_ptq",
                                    "deeplabv3_mnv2_dm05_pascal_quant"};
constexpr double bound = 1.25;
/// XNNPACK reads and writes some behind its tensors, 128 at most.
constexpr std::size_t bytes_behind = 128;

struct Layer {
    std::string network;
    std::size_t index = 0;
    bool depthwise = false;
    std::string shape;
    double reef_us = 0;
    double xnnpack_us = 0;
    [[nodiscard]] double ratio() const { return reef_us / xnnpack_us; }
};

[[noreturn]] void stop(const std::string& message) {
    std::cerr << message << "\n";
    std::exit(1);
}

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
    const Memory input = allocate(in_bytes + bytes_behind);
    std::mt19937 random(1);
    std::generate_n(input.get(), in_bytes, [&] { return static_cast<std::byte>(random() & 0xFF); });
    const Memory ours = allocate(out_bytes);
    const Memory theirs = allocate(out_bytes + bytes_behind);
    const std::unique_ptr<Kernel> kernel =
        layer.depthwise ? fast_depthwise_conv_2d(c, 1) : fast_conv_2d(c, 1);
    kernel->pack();
    const auto peer = peers::xnnpack_placer(nullptr)->place(op);
    if (!peer || peer->kernel == nullptr) stop("XNNPACK refuses the layer");
    const Memory scratch = allocate(std::max<std::size_t>(kernel->scratch_bytes(), 1));
    WorkerPool pool(1);
    std::byte* const inputs[] = {input.get(), nullptr, nullptr};
    std::byte* const outputs[] = {ours.get()};
    const Frame frame{inputs, outputs, {scratch.get(), kernel->scratch_bytes()}, pool};
    std::byte* const their_outputs[] = {theirs.get()};
    const Frame their_frame{inputs, their_outputs, {}, pool};
    const auto reef = [&] {
        if (!kernel->run(frame)) stop("the kernel failed");
    };
    const auto xnnpack = [&] {
        if (!peer->kernel->run(their_frame)) stop("XNNPACK does not run the layer");
    };
    measure(reef, xnnpack, rounds, layer);
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
    if (!peers::start_xnnpack()) stop("XNNPACK does not start");
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
