// Operators of uint8 and int8, those without sums of products first, then the convolutions that
// XNNPACK does well: small ones, and of few channels (operators/measure.h). The peer is XNNPACK,
// which rounds in another way; its times are taken by clock inside an executor's run, one by one,
// and so contain some tens of nanoseconds more than Reef's. Shapes are those of published networks.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <vector>

#include "operators/measure.h"
#include "operators/sides.h"
#include "peers/random_input.h"
#include "peers/xnnpack_placer.h"
#include "quantile.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"

namespace reef::cpu {
namespace {

using bench::median;
using model::Op;
using Shape = std::vector<std::int32_t>;
constexpr auto int8 = ElementType::int8;
constexpr auto uint8 = ElementType::uint8;

Operand bytes(Shape shape, ElementType type = int8, float scale = 0.05F) {
    return {type, std::move(shape), model::per_tensor(scale, type == int8 ? -3 : 125)};
}

Operand probabilities(Shape shape, ElementType type = int8) {
    return {type, std::move(shape), model::per_tensor(1.0F / 256, type == int8 ? -128 : 0)};
}

std::string text_of(Op op, ElementType type, const Shape& in, std::string_view note) {
    return fmt::format("{} {} {}{}{}", model::builtin_name(op), name_of(type),
                       model::shape_text(in), note.empty() ? "" : " ", note);
}

class Cases {
  public:
    void add(Op op, std::vector<Operand> inputs, std::vector<Operand> outputs,
             model::Options options = {}, std::string_view note = {}) {
        const Operand& first = inputs[op == Op::split ? 1 : 0];
        cases_.push_back({text_of(op, first.type, first.shape, note), op, std::move(inputs),
                          std::move(outputs), std::move(options)});
    }
    void add_large(const Cases& others) {
        for (Case one : others.all()) {
            one.is_large = true;
            cases_.push_back(std::move(one));
        }
    }
    void add_pool(Op op, ElementType type, const Shape& in, std::int32_t filter,
                  std::int32_t stride, model::Padding padding) {
        const auto out = [&](std::int32_t length) {
            return padding == model::Padding::same ? (length + stride - 1) / stride
                                                   : (length - filter) / stride + 1;
        };
        add(op, {bytes(in, type)}, {bytes({in[0], out(in[1]), out(in[2]), in[3]}, type)},
            model::Pool2dOptions{padding, stride, stride, filter, filter, model::Activation::none},
            fmt::format("{0} x {0} by {1}", filter, stride));
    }
    void add_resize(ElementType type, const Shape& in, std::int32_t height, std::int32_t width) {
        add(Op::resize_bilinear, {bytes(in, type), constant_of({height, width})},
            {bytes({in[0], height, width, in[3]}, type)},
            model::ResizeBilinearOptions{.align_corners = false, .half_pixel_centers = true},
            fmt::format("to {} x {}", height, width));
    }
    /// SAME padding, int8, weights quantised by channel.
    void add_convolution(Op op, const Shape& in, std::int32_t filter, std::int32_t stride,
                         std::int32_t channels) {
        const bool depthwise = op == Op::depthwise_conv_2d;
        const std::int32_t axis = depthwise ? 3 : 0;
        const std::vector<float> scales(static_cast<std::size_t>(channels), 0.01F);
        std::vector<float> bias_scales;
        for (const float scale : scales) bias_scales.push_back(scale * 0.05F);
        const Shape weights =
            depthwise ? Shape{1, filter, filter, channels} : Shape{channels, filter, filter, in[3]};
        const auto out = [&](std::int32_t length) { return (length + stride - 1) / stride; };
        const model::Options options =
            depthwise
                ? model::Options(model::DepthwiseConv2dOptions{
                      .stride_h = stride, .stride_w = stride, .depth_multiplier = 1})
                : model::Options(model::Conv2dOptions{.stride_h = stride, .stride_w = stride});
        // Sums of so many products fill the output's steps.
        const float scale = 0.05F * static_cast<float>(filter) *
                            (depthwise ? 1 : std::sqrt(static_cast<float>(in[3])));
        add(op,
            {bytes(in), random_constant(int8, weights, model::per_channel(scales, axis)),
             random_constant(ElementType::int32, {channels}, model::per_channel(bias_scales, 0))},
            {bytes({in[0], out(in[1]), out(in[2]), channels}, int8, scale)}, options,
            fmt::format("{0} x {0} by {1} to {2}", filter, stride, channels));
    }
    [[nodiscard]] const std::vector<Case>& all() const { return cases_; }

  private:
    std::vector<Case> cases_;
};

void add_windows(Cases& cases) {
    for (const Op op : {Op::average_pool_2d, Op::max_pool_2d}) {
        cases.add_pool(op, int8, {1, 35, 35, 288}, 3, 1, model::Padding::same);
        cases.add_pool(op, int8, {1, 17, 17, 768}, 5, 1, model::Padding::same);
        cases.add_pool(op, uint8, {1, 112, 112, 64}, 2, 2, model::Padding::valid);
    }
    cases.add_pool(Op::average_pool_2d, int8, {1, 7, 7, 1280}, 7, 1, model::Padding::valid);
    cases.add_resize(int8, {1, 33, 33, 21}, 513, 513);
    cases.add_resize(uint8, {1, 65, 65, 21}, 200, 200);
    cases.add_resize(uint8, {1, 96, 96, 3}, 192, 192);
    cases.add_resize(int8, {1, 24, 24, 64}, 48, 48);
    cases.add_resize(int8, {1, 128, 128, 8}, 256, 256);
}

void add_functions(Cases& cases) {
    for (const Shape& in : {Shape{1, 160, 160, 16}, Shape{1, 14, 14, 96}})
        for (const ElementType type : {int8, uint8}) {
            const Operand a = bytes(in, type, 0.05127F), b = bytes(in, type, 0.03119F);
            cases.add(Op::add, {a, b}, {bytes(in, type, 0.07843F)}, model::AddOptions{});
            cases.add(Op::sub, {a, b}, {bytes(in, type, 0.07843F)}, model::SubOptions{});
            cases.add(Op::mul, {a, b}, {bytes(in, type, 0.1973F)}, model::MulOptions{});
        }
    // Of scales that are small multiples of each other many sums lie in the middle of two steps.
    const Shape image{1, 160, 160, 16};
    cases.add(Op::add, {bytes(image, int8, 0.05F), bytes(image, int8, 0.03F)},
              {bytes(image, int8, 0.08F)}, model::AddOptions{}, "of middles");
    for (const Op op : {Op::maximum, Op::minimum})
        cases.add(op, {bytes({1, 160, 160, 16}), bytes({1, 160, 160, 16})},
                  {bytes({1, 160, 160, 16})});
    cases.add(Op::hard_swish, {bytes({1, 160, 160, 16})}, {bytes({1, 160, 160, 16}, int8, 0.04F)});
    cases.add(Op::logistic, {bytes({1, 160, 160, 16})}, {probabilities({1, 160, 160, 16})});
    // XNNPACK of 2022 has it of uint8.
    for (const Shape& rows : {Shape{33600, 16}, Shape{64, 1000}, Shape{1, 1001}})
        for (const ElementType type : {int8, uint8})
            cases.add(Op::softmax, {bytes(rows, type)}, {probabilities(rows, type)},
                      model::SoftmaxOptions{1});
    for (const Shape& in : {Shape{1, 8, 8, 2048}, Shape{1, 7, 7, 1280}, Shape{1, 224, 224, 3}})
        cases.add(Op::mean, {bytes(in), constant_of({1, 2})}, {bytes({1, in[3]}, int8, 0.02F)},
                  model::ReducerOptions{});
}

void add_movement(Cases& cases) {
    const Shape image{1, 160, 160, 16};
    const Operand part = bytes(image);
    cases.add(Op::concatenation, {part, part, part}, {bytes({1, 160, 160, 48})},
              model::ConcatenationOptions{.axis = 3}, "three times");
    cases.add(Op::split, {constant_of({3}), part},
              {bytes({1, 160, 160, 8}), bytes({1, 160, 160, 8})}, model::SplitOptions{2});
    Operand begin = constant_of({0, 0, 0, 8}), size = constant_of({1, 160, 160, 8});
    cases.add(Op::slice, {part, begin, size}, {bytes({1, 160, 160, 8})}, {}, "half the channels");
    Operand margins = constant_of({0, 0, 1, 1, 1, 1, 0, 0});
    margins.shape = {4, 2};
    cases.add(Op::pad, {bytes({1, 640, 640, 3}), margins}, {bytes({1, 642, 642, 3})});
    cases.add(Op::pad, {part, margins}, {bytes({1, 162, 162, 16})});
    cases.add(Op::transpose, {part, constant_of({0, 3, 1, 2})}, {bytes({1, 16, 160, 160})});
    cases.add(Op::depth_to_space, {part}, {bytes({1, 320, 320, 4})}, model::DepthToSpaceOptions{2});
    const Operand floats{ElementType::float32, {1, 192, 192, 3}};
    cases.add(Op::quantize, {floats}, {bytes(floats.shape)});
    cases.add(Op::dequantize, {bytes(floats.shape)}, {floats});
    cases.add(Op::quantize, {bytes(image, uint8)}, {bytes(image, int8)});
}

/// Of tensors that fit no cache, where a memcpy is as fast as memory.
Cases of_memory() {
    Cases cases;
    const Shape image{1, 2048, 2048, 8};
    const auto of = [](Shape shape, float scale = 0.05F) {
        return bytes(std::move(shape), int8, scale);
    };
    for (const Op op : {Op::max_pool_2d, Op::average_pool_2d})
        cases.add_pool(op, int8, image, 2, 2, model::Padding::valid);
    cases.add_resize(int8, {1, 1024, 1024, 8}, 2048, 2048);
    cases.add(Op::add, {of(image, 0.05127F), of(image, 0.03119F)}, {of(image, 0.07843F)},
              model::AddOptions{});
    cases.add(Op::add, {of(image), of(image, 0.03F)}, {of(image, 0.08F)}, model::AddOptions{},
              "of middles");
    cases.add(Op::mul, {of(image, 0.05127F), of(image, 0.03119F)}, {of(image, 0.1973F)},
              model::MulOptions{});
    cases.add(Op::logistic, {of(image)}, {probabilities(image)});
    const Shape rows{1 << 21, 16};
    for (const ElementType type : {int8, uint8})
        cases.add(Op::softmax, {bytes(rows, type)}, {probabilities(rows, type)},
                  model::SoftmaxOptions{1});
    cases.add(Op::concatenation, {of(image), of(image)}, {of({1, 2048, 2048, 16})},
              model::ConcatenationOptions{.axis = 3}, "twice");
    const Operand floats{ElementType::float32, image};
    cases.add(Op::quantize, {floats}, {of(image)});
    cases.add(Op::dequantize, {of(image)}, {floats});
    return cases;
}

void add_products(Cases& cases) {
    constexpr Op conv = Op::conv_2d, depthwise = Op::depthwise_conv_2d;
    cases.add_convolution(conv, {1, 64, 64, 3}, 1, 1, 1);
    cases.add_convolution(conv, {1, 4, 8400, 16}, 1, 1, 1);
    cases.add_convolution(conv, {1, 256, 256, 16}, 1, 1, 2);
    cases.add_convolution(conv, {1, 64, 64, 1}, 7, 1, 4);
    cases.add_convolution(conv, {1, 128, 128, 3}, 3, 2, 8);
    cases.add_convolution(conv, {1, 128, 128, 16}, 3, 1, 3);
    cases.add_convolution(conv, {1, 160, 160, 3}, 3, 2, 16);
    cases.add_convolution(conv, {1, 160, 160, 3}, 3, 2, 24);
    cases.add_convolution(conv, {1, 64, 64, 8}, 1, 1, 16);
    cases.add_convolution(conv, {1, 257, 257, 16}, 1, 1, 8);
    cases.add_convolution(conv, {1, 112, 112, 16}, 1, 1, 96);
    cases.add_convolution(conv, {1, 112, 112, 32}, 1, 1, 16);
    cases.add_convolution(conv, {1, 1, 1, 1280}, 1, 1, 1001);
    cases.add_convolution(conv, {1, 224, 224, 3}, 3, 2, 32);
    for (const std::int32_t stride : {1, 2})
        for (const Shape& in : {Shape{1, 112, 112, 32}, Shape{1, 28, 28, 192},
                                Shape{1, 14, 14, 576}, Shape{1, 7, 7, 960}})
            cases.add_convolution(depthwise, in, 3, stride, in[3]);
    cases.add_convolution(depthwise, {1, 14, 14, 480}, 5, 1, 480);
    // A depthwise convolution and the pointwise one behind it: whole, and an eighth of the image,
    // whose tensors stay in the second-level cache. Eight times the latter is what both would take
    // fused.
    for (const std::int32_t rows : {112, 14}) {
        cases.add_convolution(depthwise, {1, rows, 112, 96}, 3, 1, 96);
        cases.add_convolution(conv, {1, rows, 112, 96}, 1, 1, 24);
    }
    for (const std::int32_t rows : {56, 7}) {
        cases.add_convolution(depthwise, {1, rows, 56, 144}, 3, 1, 144);
        cases.add_convolution(conv, {1, rows, 56, 144}, 1, 1, 24);
    }
}

std::vector<Case> all_cases() {
    Cases cases;
    add_windows(cases);
    add_functions(cases);
    add_movement(cases);
    cases.add_large(of_memory());
    add_products(cases);
    return cases.all();
}

/// What one operator takes inside an executor's run.
class OperatorClock final : public graph::RunObserver {
  public:
    void on_operator(std::size_t /*i*/, Clock::time_point begin, Clock::time_point end) override {
        microseconds = std::chrono::duration<double, std::micro>(end - begin).count();
    }
    double microseconds = 0;
};

Result<Turn> xnnpack_of(const model::Model& model) {
    auto executor = std::make_shared<graph::Executor>(REEF_TRY(graph::Executor::create(
        model, {.placers = {peers::xnnpack_placer(nullptr), placer()}, .threads = 1})));
    if (executor->placements()[0].placer != 0)
        return fail(Cause::unsupported, "XNNPACK has no such operator");
    peers::fill(*executor);
    return Turn([executor]() -> Result<double> {
        OperatorClock clock;
        Status status;
        std::vector<double> runs;
        const double whole = timed([&] {
            if (status) status = executor->run(&clock);
            runs.push_back(clock.microseconds);
        });
        REEF_CHECK(status);
        // What the executor adds is not the operator's.
        return std::min(whole, median(runs));
    });
}

}  // namespace
}  // namespace reef::cpu

int main(int argc, char** argv) {
    if (!reef::peers::start_xnnpack()) {
        std::cerr << "XNNPACK does not start on this machine\n";
        return 1;
    }
    return reef::cpu::measure(argc, argv, "operators of bytes", reef::cpu::all_cases(),
                              {.name = "XNNPACK", .of = reef::cpu::xnnpack_of});
}
