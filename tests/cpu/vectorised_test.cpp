// The vectorised kernels of every instruction set against the plain ones, on random shapes,
// parameters and data. vectorised_pools_test.cpp has pools and means, convolution_test.cpp those of
// the convolutions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <tuple>
#include <utility>

#include "cpu/plain_and_fast.h"
#include "cpu/reference/byte_table.h"

namespace reef::test {
namespace {

using model::Builder;
using model::Op;

model::Model softmax_of(ElementType type, const std::vector<std::int32_t>& shape,
                        const model::Quantization& parameters, float beta) {
    Builder builder("softmax");
    const auto input = builder.input("in", type, shape, parameters);
    const auto output = builder.tensor(
        "out", type, shape, model::per_tensor(1.0F / 256, type == ElementType::int8 ? -128 : 0));
    builder.add(Op::softmax, {input}, {output}, model::SoftmaxOptions{.beta = beta});
    builder.output(output);
    auto model = builder.finish();
    EXPECT_TRUE(model) << model.error().message();
    return model ? std::move(*model) : model::Model{};
}

/// Rows of 1 to 1100 values, as many as several vectors take and a few more, and now and then as
/// many as several threads take. Those of 16, as many as a block has bytes, go their own way.
TEST(Vectorised, SoftmaxEqualsThePlainOne) {
    std::mt19937 random(17);
    for (int round = 0; round < 2 * rounds; ++round) {
        const ElementType type = byte_types[round % 2];
        const std::int32_t longest = std::array{5, 20, 70, 1100}[random() % 4];
        const std::int32_t length = random() % 4 == 0 ? 16 : pick(random, 1, longest);
        const std::int32_t rows = longest < 1000 ? 150 : 40;
        const std::vector<std::int32_t> shape{
            random() % 8 == 0 ? 40000 / length : pick(random, 1, rows), length};
        const float scale = std::array{0.0F, 0.001F, 0.01F, 0.1F, 1.0F, 8.0F}[random() % 6];
        const float beta = scale == 0 ? 0.0F : static_cast<float>(pick(random, 5, 20)) / 10;
        const auto model = softmax_of(
            type, shape,
            model::per_tensor(scale == 0 ? 0.1F : scale, random_zero_point(random, type)), beta);
        SCOPED_TRACE(fmt::format("{} of {}", model::shape_text(shape), scale));
        ASSERT_NO_FATAL_FAILURE(
            expect_same_alone(model, {bytes_of_any_kind(random, count_of(shape))}));
    }
}

/// Rows of which a byte depends on the last bit of something, which random rows seldom do.
TEST(Vectorised, SoftmaxOfRowsThatLastBitsDecide) {
    struct Row {
        const char* what;
        float scale;
        std::array<std::uint8_t, 16> bytes;
    };
    // In the first a product is the number below one half, which uint8 rounds up and int8 down; the
    // second's factor is one that its neighbour would not do for; the others' sums want their
    // order.
    const std::array<Row, 4> rows{
        {{"half", 0.02F, {251, 215, 240, 124, 88, 84, 22, 8, 146, 34, 189, 225, 143, 68, 11, 197}},
         {"factor",
          0.05F,
          {88, 167, 21, 161, 190, 243, 146, 157, 60, 192, 167, 236, 80, 180, 216, 118}},
         {"order",
          0.02F,
          {157, 75, 242, 199, 62, 213, 225, 128, 211, 220, 148, 28, 163, 96, 33, 174}},
         {"order", 0.05F, {24, 73, 22, 21, 236, 123, 43, 12, 84, 217, 170, 11, 75, 17, 241, 29}}}};
    constexpr std::size_t times = 48;
    for (const ElementType type : byte_types)
        for (const Row& row : rows) {
            const std::uint8_t flip = type == ElementType::int8 ? 0x80 : 0;
            std::vector<std::byte> input;
            for (std::size_t i = 0; i < times; ++i)
                for (const std::uint8_t byte : row.bytes) input.push_back(std::byte(byte ^ flip));
            SCOPED_TRACE(fmt::format("{} of {}", row.what, name_of(type)));
            ASSERT_NO_FATAL_FAILURE(expect_same_alone(
                softmax_of(type, {times, 16}, model::per_tensor(row.scale, 0), 1), {input}));
        }
}

struct Resizing {
    std::vector<std::int32_t> in, size;
    std::int32_t form = 0;  ///< 1: aligned corners, 2: centres of pixels
};

/// Of any size, and every other time by a power of two, whose sums are exact in 16 bits or nearly.
Resizing random_resizing(std::mt19937& random) {
    const std::int32_t length = pick(random, 0, 2) == 0 ? 70 : 12;
    Resizing one{.in = {pick(random, 1, 2), pick(random, 1, 12), pick(random, 1, length),
                        pick(random, 0, 5) == 0 ? 32 * pick(random, 1, 4) : pick(random, 1, 40)},
                 .size = {pick(random, 1, 40), pick(random, 1, 40)},
                 .form = pick(random, 0, 2)};
    if (pick(random, 0, 1) == 0) return one;
    for (std::size_t i = 0; i < 2; ++i) {
        const std::int32_t factor = 1 << pick(random, 0, 4);
        one.size[i] = one.form == 1 ? (one.in[i + 1] - 1) * factor + 1 : one.in[i + 1] * factor;
    }
    return one;
}

/// Of pixels that are whole pieces of 8 bytes, smaller and larger by powers of two: several output
/// rows between two input rows, one between each two, and some that lie between none that another
/// lies between. Every eighth is larger than what stays in a second-level cache.
Resizing resizing_of_pieces(std::mt19937& random, int round) {
    Resizing one{.in = {pick(random, 1, 2), pick(random, 1, 20), pick(random, 1, 40),
                        8 * pick(random, 1, pick(random, 0, 1) == 0 ? 4 : 17)},
                 .size = {},
                 .form = pick(random, 0, 2)};
    if (round % 8 == 0) one.in = {1, 70, 35 + pick(random, 0, 3), 8 * pick(random, 2, 3)};
    for (const std::size_t i : {1U, 2U}) {
        const std::int32_t factor =
            round % 8 == 0 ? 4 : 1 << pick(random, 0, one.in[3] < 40 ? 4 : 2);
        const auto larger = [&](std::int32_t length) {
            return one.form == 1 ? (length - 1) * factor + 1 : length * factor;
        };
        const std::int32_t length = one.in[i];
        const bool shrinks = round % 8 != 0 && pick(random, 0, 2) == 0;
        one.in[i] = shrinks ? larger(length) : length;
        one.size.push_back(shrinks ? length : larger(length));
    }
    // What is to the left lies nearer together than what is to the right.
    if (round % 8 == 1) {
        one.form = 0;
        one.in[2] = 5 * pick(random, 1, 4);
        one.size[1] = one.in[2] / 5 * 4;
    }
    return one;
}

TEST(Vectorised, ResizeBilinearEqualsThePlainOne) {
    std::mt19937 random(13);
    for (int round = 0; round < 3 * rounds; ++round) {
        const ElementType type = byte_types[random() % 2];
        const auto [in, size, form] =
            round % 3 == 0 ? resizing_of_pieces(random, round / 3) : random_resizing(random);
        const auto quantization = model::per_tensor(0.1F, 3);
        Builder builder("resize");
        const auto input = builder.input("in", type, in, quantization);
        const auto sizes = builder.constant<std::int32_t>("size", ElementType::int32, {2}, size);
        const auto output =
            builder.tensor("out", type, {in[0], size[0], size[1], in[3]}, quantization);
        builder.add(Op::resize_bilinear, {input, sizes}, {output},
                    model::ResizeBilinearOptions{.align_corners = form == 1,
                                                 .half_pixel_centers = form == 2});
        builder.output(output);
        const auto model = builder.finish();
        ASSERT_TRUE(model) << model.error().message();
        SCOPED_TRACE(
            fmt::format("{} to {}x{} form {}", model::shape_text(in), size[0], size[1], form));
        ASSERT_NO_FATAL_FAILURE(
            expect_same_alone(*model, {bytes_of_any_kind(random, count_of(in))}));
    }
}

/// Of some scales the one whose reciprocal float32 rounds up, or down, the most.
float scale_of_a_rounded_reciprocal(std::mt19937& random, bool up) {
    float farthest = 0;
    double most = 0;
    for (int i = 0; i < 500; ++i) {
        const float scale = std::uniform_real_distribution<float>(0.03F, 0.06F)(random);
        const double above = static_cast<double>(1 / scale) * static_cast<double>(scale) - 1;
        if ((up ? above : -above) < most) continue;
        most = std::abs(above);
        farthest = scale;
    }
    return farthest;
}

/// Ordinary numbers up to any number of steps; every other time halves and what is next to them,
/// and random bits, so that infinities and what is no number are among them, too; or one of these
/// among numbers that leave no doubt, which would hide it.
TEST(Vectorised, QuantizeOfFloatsEqualsThePlainOne) {
    std::mt19937 random(15);
    for (int round = 0; round < rounds; ++round) {
        const ElementType type = byte_types[round % 2];
        const std::vector<std::int32_t> shape{1, pick(random, 1, 3000)};
        const float any = scale_of_a_rounded_reciprocal(random, pick(random, 0, 1) == 0);
        const float scale = round % 3 == 0   ? 0.25F
                            : round % 3 == 1 ? any
                                             : std::ldexp(any, pick(random, -121, 131));
        const std::int64_t zero_point =
            round % 5 == 0   ? std::int64_t{type == ElementType::uint8 ? 0 : -128}
            : round % 5 == 1 ? std::int64_t{type == ElementType::uint8 ? 255 : 127}
                             : random_zero_point(random, type);
        Builder builder("quantize");
        const auto input = builder.input("in", ElementType::float32, shape);
        const auto output =
            builder.tensor("out", type, shape, model::per_tensor(scale, zero_point));
        builder.add(Op::quantize, {input}, {output});
        builder.output(output);
        const auto model = builder.finish();
        ASSERT_TRUE(model) << model.error().message();
        std::vector<float> values(count_of(shape));
        const float deviation =
            round % 4 < 2 ? 240 * scale : std::ldexp(scale, pick(random, 0, 36));
        for (float& value : values) {
            const bool is_alone = round % 6 >= 4 && pick(random, 0, 99) != 0;
            const int kind = is_alone ? 4 : pick(random, round / 2 % 2 == 0 ? 2 : 0, 3);
            value = kind == 0   ? std::bit_cast<float>(static_cast<std::uint32_t>(random()))
                    : kind == 1 ? scale * (static_cast<float>(pick(random, -300, 300)) + 0.5F)
                                : std::normal_distribution<float>(0, deviation)(random);
            if (kind == 1 && pick(random, 0, 1) == 0)
                value = std::nextafter(value, pick(random, 0, 1) == 0 ? INFINITY : -INFINITY);
            if (kind == 4) value = scale * static_cast<float>(pick(random, -250, 250));
            // Beside the end of 32 bits, which the zero point leaves.
            if (kind == 3 && round % 5 == 0)
                value = std::ldexp(scale, 31) * (pick(random, 0, 1) == 0 ? 1.0F : -1.0F) *
                        (1 - std::ldexp(static_cast<float>(pick(random, -2, 4)), -24));
        }
        const Bytes bytes = std::as_bytes(std::span(values));
        const std::vector<std::vector<std::byte>> inputs{{bytes.begin(), bytes.end()}};
        const auto plain = run_model(*model, inputs);
        on_every_target([&] {
            for (const int threads : {1, 2}) {
                const auto fast = run_model(*model, inputs, cpu::KernelSet::fast, threads);
                ASSERT_EQ(fast.size(), plain.size());
                for (std::size_t i = 0; i < values.size(); ++i)
                    ASSERT_EQ(fast[0][i], plain[0][i]) << values[i] << " in steps of " << scale;
            }
        });
    }
}

TEST(Vectorised, DequantizeEqualsThePlainOne) {
    std::mt19937 random(17);
    for (int round = 0; round < rounds; ++round) {
        const ElementType type =
            std::array{ElementType::uint8, ElementType::int8,
                       ElementType::int16}[static_cast<std::size_t>(round % 3)];
        const std::vector<std::int32_t> shape{pick(random, 1, 3000)};
        const bool wide = type == ElementType::int16;
        const float scale =
            round % 7 == 0 ? 0x1.5p-127F : std::uniform_real_distribution<float>(0, 2)(random);
        Builder builder("dequantize");
        const auto input =
            builder.input("in", type, shape,
                          model::per_tensor(scale, wide ? 0 : random_zero_point(random, type)));
        const auto output = builder.tensor("out", ElementType::float32, shape);
        builder.add(Op::dequantize, {input}, {output});
        builder.output(output);
        const auto model = builder.finish();
        ASSERT_TRUE(model) << model.error().message();
        ASSERT_NO_FATAL_FAILURE(expect_same(*model, count_of(shape) * (wide ? 2 : 1), random));
    }
}

/// An operand of a few values for each pixel, against the same written out for all of them.
TEST(Vectorised, RepeatedOperandsEqualWrittenOutOnes) {
    std::mt19937 random(16);
    for (int round = 0; round < rounds; ++round) {
        const ElementType type = byte_types[round % 2];
        const Op op = std::array{Op::add, Op::sub, Op::mul}[static_cast<std::size_t>(round % 3)];
        const bool first = round % 4 == 0;
        const std::vector<std::int32_t> shape{1, pick(random, 1, 90), pick(random, 1, 90),
                                              pick(random, 1, 40)};
        const auto channels = static_cast<std::size_t>(shape[3]);
        const auto few = random_bytes(random, channels);
        std::vector<std::byte> all(count_of(shape));
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = few[i % channels];
        const auto image = random_bytes(random, all.size());
        const auto q = model::per_tensor(0.05F, random_zero_point(random, type));
        const auto run_with = [&](const std::vector<std::int32_t>& other,
                                  const std::vector<std::byte>& bytes, cpu::KernelSet kernels,
                                  int threads) {
            Builder builder("repeats");
            const auto a = builder.input("a", type, first ? other : shape, q);
            const auto b = builder.input("b", type, first ? shape : other, q);
            const auto out = builder.tensor("out", type, shape, model::per_tensor(0.11F, 3));
            if (op == Op::add)
                builder.add(op, {a, b}, {out}, model::AddOptions{});
            else if (op == Op::sub)
                builder.add(op, {a, b}, {out}, model::SubOptions{});
            else
                builder.add(op, {a, b}, {out}, model::MulOptions{});
            builder.output(out);
            const auto model = builder.finish();
            EXPECT_TRUE(model) << model.error().message();
            return run_model(*model, {first ? bytes : image, first ? image : bytes}, kernels,
                             threads);
        };
        const auto expected = run_with(shape, all, cpu::KernelSet::reference, 1);
        for (const auto kernels : {cpu::KernelSet::reference, cpu::KernelSet::fast})
            for (const int threads : {1, 2})
                ASSERT_EQ(run_with({shape[3]}, few, kernels, threads), expected)
                    << model::shape_text(shape);
    }
}

TEST(Vectorised, ArgMaxEqualsThePlainOne) {
    std::mt19937 random(14);
    for (int round = 0; round < rounds; ++round) {
        const ElementType type = byte_types[round % 2];
        const ElementType index = round % 3 == 0 ? ElementType::int64 : ElementType::int32;
        // Along the last axis, and across rows of fewer, as many and more bytes than a vector has.
        const bool along_last = round % 4 < 2;
        std::vector<std::int32_t> in{pick(random, 1, 40), pick(random, 1, 300)};
        if (!along_last) in = {pick(random, 1, 4), pick(random, 1, 40), pick(random, 1, 140)};
        Builder builder("arg_max");
        const auto input = builder.input("in", type, in, model::per_tensor(1, 0));
        const auto axis = builder.constant<std::int32_t>(
            "axis", ElementType::int32, {}, std::vector<std::int32_t>{along_last ? -1 : 1});
        auto reduced = in;
        reduced.erase(reduced.begin() +
                      (along_last ? static_cast<std::ptrdiff_t>(in.size()) - 1 : 1));
        const auto output = builder.tensor("out", index, reduced);
        builder.add(Op::arg_max, {input, axis}, {output},
                    model::ArgMaxOptions{.output_type = index});
        builder.output(output);
        const auto model = builder.finish();
        ASSERT_TRUE(model) << model.error().message();
        SCOPED_TRACE(model::shape_text(in));
        ASSERT_NO_FATAL_FAILURE(expect_same(*model, count_of(in), random));
    }
}

TEST(Vectorised, TransposeEqualsThePlainOne) {
    std::mt19937 random(16);
    std::size_t vectorised = 0;
    for (int round = 0; round < rounds; ++round) {
        const ElementType type = byte_types[round % 2];
        std::vector<std::int32_t> in, order, out;
        const int rank = pick(random, 2, 4);
        for (std::int32_t i = 0; i < rank; ++i) {
            in.push_back(pick(random, 1, rank == 2 ? 150 : 36));
            order.push_back(i);
        }
        std::ranges::shuffle(order, random);
        for (const std::int32_t axis : order) out.push_back(in[static_cast<std::size_t>(axis)]);
        Builder builder("transpose");
        const auto input = builder.input("in", type, in, model::per_tensor(1, 0));
        const auto axes = builder.constant<std::int32_t>("axes", ElementType::int32, {rank}, order);
        const auto output = builder.tensor("out", type, out, model::per_tensor(1, 0));
        builder.add(Op::transpose, {input, axes}, {output});
        builder.output(output);
        const auto model = builder.finish();
        ASSERT_TRUE(model) << model.error().message();
        SCOPED_TRACE(model::shape_text(in) + " to " + model::shape_text(out));
        ASSERT_NO_FATAL_FAILURE(expect_same(*model, count_of(in), random));
        const auto executor = on_cpu(*model);
        ASSERT_TRUE(executor) << executor.error().message();
        if (executor->placements()[0].kernel.starts_with("transpose fast")) ++vectorised;
    }
    EXPECT_GE(vectorised, static_cast<std::size_t>(rounds) / 5);
}

/// On equal shapes, and with one input repeated along some axes.
TEST(Vectorised, MulAddAndSubEqualThePlainOnes) {
    std::mt19937 random(15);
    for (int round = 0; round < rounds; ++round) {
        const ElementType type = byte_types[round % 2];
        const auto [a, b] = random_operand_shapes(random);
        const auto quantization = [&] {
            return model::per_tensor(0.01F * static_cast<float>(pick(random, 1, 400)),
                                     random_zero_point(random, type));
        };
        Builder builder("binary");
        const auto left = builder.input("a", type, a, quantization());
        const bool is_constant = pick(random, 0, 1) == 0;
        const auto of_right = random_bytes(random, count_of(b));
        const auto right = is_constant
                               ? builder.constant_bytes("b", type, b, of_right, quantization())
                               : builder.input("b", type, b, quantization());
        const auto output = builder.tensor("out", type, a, quantization());
        const auto activation = round % 4 == 0 ? model::Activation::relu : model::Activation::none;
        const auto inputs = round % 3 == 0 ? std::vector{left, right} : std::vector{right, left};
        if (const std::int32_t op = pick(random, 0, 2); op == 0)
            builder.add(Op::mul, inputs, {output}, model::MulOptions{.activation = activation});
        else if (op == 1)
            builder.add(Op::add, inputs, {output}, model::AddOptions{.activation = activation});
        else
            builder.add(Op::sub, inputs, {output}, model::SubOptions{.activation = activation});
        builder.output(output);
        const auto model = builder.finish();
        ASSERT_TRUE(model) << model.error().message();
        SCOPED_TRACE(model::shape_text(a) + " and " + model::shape_text(b));
        if (is_constant)
            ASSERT_NO_FATAL_FAILURE(expect_same(*model, count_of(a), random));
        else
            ASSERT_NO_FATAL_FAILURE(
                expect_same_alone(*model, {random_bytes(random, count_of(a)), of_right}));
    }
}

/// Between uint8 and int8, at one scale (which only flips the high bit) and at two.
TEST(Vectorised, QuantizeEqualsThePlainOne) {
    std::mt19937 random(16);
    for (int round = 0; round < rounds; ++round) {
        const ElementType from = byte_types[round % 2];
        const ElementType to = byte_types[1 - round % 2];
        const auto zero = random_zero_point(random, from);
        const std::int64_t shifted = from == ElementType::uint8 ? zero - 128 : zero + 128;
        const std::vector<std::int32_t> shape{pick(random, 1, 300)};
        Builder builder("quantize");
        const auto input = builder.input("in", from, shape, model::per_tensor(0.5F, zero));
        const auto output = builder.tensor(
            "out", to, shape, model::per_tensor(round % 3 == 0 ? 0.4F : 0.5F, shifted));
        builder.add(Op::quantize, {input}, {output});
        builder.output(output);
        const auto model = builder.finish();
        ASSERT_TRUE(model) << model.error().message();
        ASSERT_NO_FATAL_FAILURE(expect_same(*model, count_of(shape), random));
    }
}

/// Functions of a byte are as good as smooth; tables need not be.
TEST(Vectorised, LookedUpBytesAreTheTables) {
    std::mt19937 random(18);
    for (int round = 0; round < rounds; ++round) {
        cpu::ByteTable table;
        for (std::uint8_t& byte : table) byte = static_cast<std::uint8_t>(random());
        std::vector<std::uint8_t> in(static_cast<std::size_t>(pick(random, 0, 600))), expected;
        for (std::uint8_t& byte : in) {
            byte = static_cast<std::uint8_t>(random());
            expected.push_back(table[byte]);
        }
        on_every_target([&] {
            std::vector<std::uint8_t> out(in.size()), in_place = in;
            cpu::look_up_bytes(table, in.data(), out.data(), in.size());
            cpu::look_up_bytes(table, in_place.data(), in_place.data(), in.size());
            ASSERT_EQ(out, expected);
            ASSERT_EQ(in_place, expected);
        });
    }
}

}  // namespace
}  // namespace reef::test
