#include "cpu/one_convolution.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpu/run_kernel.h"
#include "cpu/simd_targets.h"

namespace reef::cpu::one_convolution {

std::string Case::text() const {
    return fmt::format("{} {} input {} filter {} output {} zeros {} {} {} scales {} {} {} seed {}",
                       model::builtin_name(op), name_of(type), model::shape_text(input),
                       model::shape_text(filter), model::shape_text(output), input_zero,
                       weight_zero, output_zero, input_scale, weight_scales[0], output_scale, seed);
}

model::Model build(const Case& c) {
    Random random(c.seed);
    model::Builder builder("one operator");
    const auto input =
        builder.input("input", c.type, c.input, model::per_tensor(c.input_scale, c.input_zero));
    model::Quantization q = model::per_tensor(c.weight_scales[0], c.weight_zero);
    if (c.weight_scales.size() > 1)
        q = model::per_channel(c.weight_scales, c.op == Op::depthwise_conv_2d ? 3 : 0);
    std::size_t count = 1;
    for (const std::int32_t length : c.filter) count *= static_cast<std::size_t>(length);
    auto weights = random.bytes(count);
    const int middle = c.type == ElementType::uint8 ? 128 : 0;
    for (std::uint8_t& weight : weights)
        if (c.any_weights < 1000 && random.between(0, 999) >= c.any_weights)
            weight = static_cast<std::uint8_t>(middle + random.between(-50, 50));
    const auto filter = builder.constant<std::uint8_t>("weights", c.type, c.filter, weights, q);
    std::vector<model::TensorIndex> inputs{input, filter};
    if (c.op == Op::transpose_conv)
        inputs = {builder.constant<std::int32_t>("shape", ElementType::int32, {4}, c.output),
                  filter, input};
    if (c.with_bias) {
        const std::int32_t channels = c.output.back();
        std::vector<std::int32_t> bias(static_cast<std::size_t>(channels));
        const std::int32_t size = random.one_of({100, 100000, INT32_MAX});
        for (std::int32_t& value : bias) value = random.between(-size, size);
        inputs.push_back(
            builder.constant<std::int32_t>("bias", ElementType::int32, {channels}, bias));
    }
    const auto output = builder.tensor("output", c.type, c.output,
                                       model::per_tensor(c.output_scale, c.output_zero));
    builder.add(c.op, inputs, {output}, c.options);
    builder.output(output);
    auto built = builder.finish();
    EXPECT_TRUE(built) << built.error().message();
    return std::move(*built);
}

PreparedKernel prepare(const model::Model& model, const KernelChoice& options) {
    const model::Subgraph& graph = model.subgraphs[0];
    const model::Operator& op = graph.operators[0];
    const Prepare prepares = options.arithmetic == nullptr
                                 ? find_kernel(op.code)->prepare
                                 : options.arithmetic->find(op.code.builtin)->prepare;
    return prepares(OperatorView(model, graph, 0), options.options());
}

std::vector<std::byte> run(const model::Model& model, std::span<const std::uint8_t> input,
                           const KernelChoice& options, WorkerPool& pool) {
    auto kernel = prepare(model, options);
    EXPECT_TRUE(kernel) << kernel.error().message();
    if (!kernel) return {};
    return test::run_kernel(**kernel, model, std::as_bytes(input), pool);
}

void compare_kernels(const Case& c, const Arithmetic* arithmetic) {
    SCOPED_TRACE(c.text());
    const model::Model model = build(c);
    std::size_t count = 1;
    for (const std::int32_t length : c.input) count *= static_cast<std::size_t>(length);
    const auto input = Random(c.seed + 1).bytes(count);
    WorkerPool one(1);
    static WorkerPool two(2);
    const auto expected =
        run(model, input, {.kernels = KernelSet::reference, .arithmetic = arithmetic}, one);
    test::on_every_target([&] {
        KernelChoice fast{.kernels = KernelSet::fast, .arithmetic = arithmetic};
        EXPECT_EQ(run(model, input, fast, one), expected);
        fast.threads = 2;
        EXPECT_EQ(run(model, input, fast, two), expected) << "with two threads";
    });
}

}  // namespace reef::cpu::one_convolution
