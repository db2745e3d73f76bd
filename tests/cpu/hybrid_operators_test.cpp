// What BATCH_MATMUL, SVDF and UNIDIRECTIONAL_SEQUENCE_LSTM of float32 activations and int8 weights
// refuse; differential_test.cpp has their results.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "cpu/plain/operator_case.h"
#include "cpu/run_model.h"
#include "cpu/simd_targets.h"

namespace reef::plain {
namespace {

using model::Op;
using testing::HasSubstr;

struct HybridInputs {
    Op op;
    std::vector<std::size_t> weights;
};
const std::vector<HybridInputs>& hybrids() {
    static const std::vector<HybridInputs> all = {
        {Op::batch_matmul, {1}},
        {Op::svdf, {1, 2}},
        {Op::unidirectional_sequence_lstm, {1, 2, 3, 4, 5, 6, 7, 8}}};
    return all;
}

OperatorCase case_of(Op op) {
    const auto makers = hybrid_makers();
    Choices choices(3);
    return std::ranges::find(makers, op, &NamedMaker::op)->make(choices);
}

/// With one change to the weights at `position`.
std::string refusal_of(Op op, std::size_t position, const std::function<void(Values&)>& change) {
    OperatorCase one = case_of(op);
    change(one.inputs[position]);
    const auto model = model_of(one);
    return model ? test::refusal(*model) : model.error().message();
}

TEST(HybridOperators, RefuseOtherWeights) {
    for (const auto& [op, positions] : hybrids())
        for (const std::size_t i : positions) {
            SCOPED_TRACE(testing::Message() << model::builtin_name(op) << ", input " << i);
            EXPECT_THAT(refusal_of(op, i, [](Values& w) { w.role = Role::input; }),
                        HasSubstr("constant ones are needed"));
            EXPECT_THAT(refusal_of(op, i, [](Values& w) { w.zero = 3; }),
                        HasSubstr("zero point 3"));
            EXPECT_THAT(refusal_of(op, i,
                                   [](Values& w) {
                                       w.scales.assign(static_cast<std::size_t>(w.shape[0]), 1);
                                       w.scales.resize(std::max<std::size_t>(2, w.scales.size()));
                                   }),
                        testing::AnyOf(HasSubstr("scale per channel"), HasSubstr("scales")));
            EXPECT_NE(refusal_of(op, i, [](Values& w) { w.type = i16; }), "");
            EXPECT_NE(refusal_of(op, i, [](Values& w) { w.type = u8; }), "");
        }
}

TEST(HybridOperators, RefuseOneFloat32AmongInt8Weights) {
    for (const auto& [op, positions] : hybrids())
        for (const std::size_t i : positions)
            if (positions.size() > 1) {
                EXPECT_NE(refusal_of(op, i,
                                     [](Values& w) {
                                         w.type = f32;
                                         w.scales.clear();
                                     }),
                          "")
                    << model::builtin_name(op) << ", input " << i;
            }
}

TEST(HybridOperators, EndARunOnWhatIsNoNumber) {
    for (const auto& [op, positions] : hybrids())
        for (const double bad :
             {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
            OperatorCase one = case_of(op);
            one.inputs[0].stored.back() = bad;
            const auto model = model_of(one);
            ASSERT_TRUE(model);
            auto executor = test::on_cpu(*model, {});
            ASSERT_TRUE(executor) << executor.error().message();
            std::ranges::copy(stored_bytes(one.inputs[0]), executor->input(0).begin());
            EXPECT_FALSE(executor->run()) << model::builtin_name(op) << " of " << bad;
        }
}

model::Model products_of(std::int32_t rows, std::int32_t depth, std::int32_t columns,
                         bool swapped) {
    model::Builder b("products");
    const auto in = b.input("in", f32, {1, rows, depth});
    const std::vector<std::int8_t> bytes(static_cast<std::size_t>(depth * columns), 1);
    const auto weights = b.constant<std::int8_t>(
        "weights", i8, swapped ? Shape{1, columns, depth} : Shape{1, depth, columns},
        std::span<const std::int8_t>(bytes), model::per_tensor(0.5F, 0));
    const auto out = b.tensor("out", f32, {1, rows, columns});
    b.add(Op::batch_matmul, {in, weights}, {out}, model::BatchMatMulOptions{.adj_y = swapped});
    b.output(out);
    return *b.finish();
}

TEST(HybridOperators, WeightsOfNothingAreRefusedRowsOfNothingAreNot) {
    for (const bool swapped : {false, true}) {
        EXPECT_THAT(test::refusal(products_of(2, 0, 4, swapped)), HasSubstr("or empty"));
        EXPECT_THAT(test::refusal(products_of(2, 3, 0, swapped)), HasSubstr("or empty"));
        for (const auto kernels : {cpu::KernelSet::reference, cpu::KernelSet::fast})
            EXPECT_THAT(test::run_model(products_of(0, 3, 4, swapped), {{}}, kernels),
                        testing::ElementsAre(testing::IsEmpty()));
    }
}

std::vector<std::byte> first_output(graph::Executor& executor, const std::vector<std::byte>& in) {
    std::ranges::copy(in, executor.input(0).begin());
    const Status status = executor.run();
    EXPECT_TRUE(status) << status.error().message();
    return {executor.output(0).begin(), executor.output(0).end()};
}

std::vector<std::vector<std::byte>> outputs_of_runs(const model::Model& model,
                                                    std::vector<std::byte> in,
                                                    const test::CpuOptions& options) {
    auto executor = test::on_cpu(model, options);
    if (!executor) {
        ADD_FAILURE() << executor.error().message();
        return {};
    }
    std::vector<std::vector<std::byte>> outputs;
    for (int run = 0; run < 3; ++run) {
        outputs.push_back(first_output(*executor, in));
        std::ranges::rotate(in, in.begin() + std::ssize(in) / 8 * 4);
    }
    return outputs;
}

/// Of runs on one state, too.
TEST(HybridOperators, VectorsGiveTheSameBits) {
    const auto makers = hybrid_makers();
    for (const auto& [op, positions] : hybrids())
        for (std::uint64_t seed = 1; seed < 60; ++seed) {
            Choices choices(seed);
            const OperatorCase one = std::ranges::find(makers, op, &NamedMaker::op)->make(choices);
            const auto model = model_of(one);
            ASSERT_TRUE(model);
            const auto in = stored_bytes(one.inputs[0]);
            const auto plain = outputs_of_runs(*model, in, {.kernels = cpu::KernelSet::reference});
            test::on_every_target([&] {
                for (const int threads : {1, 2})
                    ASSERT_EQ(outputs_of_runs(*model, in, {.threads = threads}), plain)
                        << model::builtin_name(op) << ", seed " << seed;
            });
        }
}

/// The last row is bad: those in front of it are not remembered either.
TEST(HybridOperators, RunsThatFailChangeNoState) {
    for (const Op op : {Op::svdf, Op::unidirectional_sequence_lstm})
        for (std::uint64_t seed = 1; seed < 20; ++seed) {
            const auto makers = hybrid_makers();
            Choices choices(seed);
            OperatorCase one = std::ranges::find(makers, op, &NamedMaker::op)->make(choices);
            const auto model = model_of(one);
            ASSERT_TRUE(model);
            auto tried = test::on_cpu(*model, {});
            auto other = test::on_cpu(*model, {});
            ASSERT_TRUE(tried && other);
            const auto good = stored_bytes(one.inputs[0]);
            one.inputs[0].stored.back() = std::numeric_limits<double>::quiet_NaN();
            EXPECT_EQ(first_output(*tried, good), first_output(*other, good));
            std::ranges::copy(stored_bytes(one.inputs[0]), tried->input(0).begin());
            EXPECT_FALSE(tried->run());
            EXPECT_EQ(first_output(*tried, good), first_output(*other, good)) << "seed " << seed;
        }
}

/// The same weights in float32.
OperatorCase with_float_weights(const OperatorCase& one,
                                std::initializer_list<std::size_t> weights) {
    OperatorCase floats = one;
    for (const std::size_t i : weights) {
        Values& w = floats.inputs[i];
        for (std::size_t n = 0; n < w.stored.size(); ++n)
            w.stored[n] = static_cast<double>(static_cast<float>(one.inputs[i].real(n)));
        w.type = f32;
        w.scales.clear();
    }
    return floats;
}

double largest(const Values& values) {
    double most = 0;
    for (std::size_t i = 0; i < values.stored.size(); ++i)
        most = std::max(most, std::abs(values.real(i)));
    return most;
}

double sum_of_row(const Values& values, std::size_t row) {
    const auto width = static_cast<std::size_t>(values.shape[1]);
    double sum = 0;
    for (std::size_t i = row * width; i < (row + 1) * width; ++i) sum += std::abs(values.real(i));
    return sum;
}

/// How far outputs may be from those of float32 weights: each input by a step at most.
double svdf_bound(const OperatorCase& one) {
    const auto rank = static_cast<std::size_t>(std::get<model::SvdfOptions>(one.options).rank);
    const auto filters = static_cast<std::size_t>(one.inputs[1].shape[0]);
    double most = 0;
    for (std::size_t first = 0; first < filters; first += rank) {
        double sum = 0;
        for (std::size_t f = first; f < first + rank; ++f)
            sum += sum_of_row(one.inputs[1], f) * sum_of_row(one.inputs[2], f);
        most = std::max(most, sum);
    }
    return most * largest(one.inputs[0]) / 127 + 1e-5;
}

/// Several runs fill its memory: every column of the weights over time counts.
TEST(HybridOperators, SvdfRemembersAsThatOfFloat32) {
    double most = 0, values = 0;
    for (std::uint64_t seed = 1; seed < 100; ++seed) {
        const auto makers = hybrid_makers();
        Choices choices(seed);
        OperatorCase one = std::ranges::find(makers, Op::svdf, &NamedMaker::op)->make(choices);
        std::get<model::SvdfOptions>(one.options).activation = model::Activation::none;
        const auto hybrid_model = model_of(one);
        const auto float_model = model_of(with_float_weights(one, {1, 2}));
        ASSERT_TRUE(hybrid_model && float_model);
        auto hybrid = test::on_cpu(*hybrid_model, {}), floats = test::on_cpu(*float_model, {});
        ASSERT_TRUE(hybrid && floats);
        auto in = stored_bytes(one.inputs[0]);
        for (int run = 0; run < 7; ++run) {
            const auto a = first_output(*hybrid, in), b = first_output(*floats, in);
            for (std::size_t i = 0; i < a.size(); i += sizeof(float)) {
                float x = 0, y = 0;
                std::memcpy(&x, a.data() + i, sizeof x);
                std::memcpy(&y, b.data() + i, sizeof y);
                ASSERT_LE(std::abs(x - y), svdf_bound(one)) << "seed " << seed << ", run " << run;
                most += svdf_bound(one);
                values += static_cast<double>(std::abs(y));
            }
            std::ranges::rotate(in, in.begin() + std::ssize(in) / 8 * 4);
        }
    }
    // The bound is far below the values: outputs of other weights are not within it.
    EXPECT_LT(most, values / 4);
}

/// A gate that is shut leaves an output far below what has steps.
TEST(HybridOperators, LstmGoesOnAfterOutputsOfNothing) {
    OperatorCase one = case_of(Op::unidirectional_sequence_lstm);
    const std::int32_t units = one.inputs[4].shape[0];
    one.inputs[15] = {.shape = {units},
                      .stored = std::vector<double>(static_cast<std::size_t>(units), -86.0),
                      .role = Role::constant};
    for (const std::size_t i : {std::size_t{4}, std::size_t{8}})
        std::ranges::fill(one.inputs[i].stored, 0.0);
    const auto model = model_of(one);
    ASSERT_TRUE(model);
    auto executor = test::on_cpu(*model, {});
    ASSERT_TRUE(executor) << executor.error().message();
    std::ranges::copy(stored_bytes(one.inputs[0]), executor->input(0).begin());
    for (int run = 0; run < 2; ++run) {
        const Status status = executor->run();
        EXPECT_TRUE(status) << status.error().message();
    }
}

}  // namespace
}  // namespace reef::plain
