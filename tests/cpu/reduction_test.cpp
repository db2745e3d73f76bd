// MEAN, SUM, REDUCE_MAX and REDUCE_MIN: each of TFLite's arithmetics on values where the others
// give another answer, and the recorded results of TFLite 2.9.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "cpu/one_operator.h"
#include "cpu/prepare/pooling.h"
#include "reef/base/file.h"
#include "support/shared_data.h"

namespace reef::test {
namespace {

using model::Op;
using model::per_tensor;
using model::ReducerOptions;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

TEST(PoolingWindows, EndWithAnAxisOfTheLongestLength) {
    constexpr std::int32_t most = 2147483647;
    const cpu::PoolingAxis axis{
        .input = most, .output = most / 2 + 1, .filter = 2, .stride = 2, .padding = 0};
    const auto last = axis.window(axis.output - 1);
    EXPECT_EQ(last.begin, most - 1);
    EXPECT_EQ(last.end, most);
    EXPECT_EQ(axis.whole_windows().begin, 0);
    EXPECT_EQ(axis.whole_windows().end, most / 2);
}

TEST(PoolingWindows, AreWholeWhereTheyLieInsideTheInput) {
    std::mt19937 random(5);
    for (int round = 0; round < 2000; ++round) {
        const auto pick = [&](int least, int most) {
            return std::uniform_int_distribution(least, most)(random);
        };
        cpu::PoolingAxis axis{.input = pick(1, 12), .filter = pick(1, 14), .stride = pick(1, 6)};
        const bool is_valid = axis.filter <= axis.input && round % 2 == 0;
        axis.output = is_valid ? (axis.input - axis.filter) / axis.stride + 1
                               : (axis.input + axis.stride - 1) / axis.stride;
        const int beyond = (axis.output - 1) * axis.stride + axis.filter - axis.input;
        axis.padding = is_valid ? 0 : std::max(0, beyond) / 2;
        const cpu::Extent whole = axis.whole_windows();
        ASSERT_LE(0, whole.begin);
        ASSERT_LE(whole.begin, whole.end);
        ASSERT_LE(whole.end, axis.output);
        for (int o = 0; o < axis.output; ++o)
            ASSERT_EQ(axis.window(o).size() == axis.filter, whole.begin <= o && o < whole.end)
                << axis.input << " by " << axis.filter << ", " << axis.stride << ": " << o;
    }
}

constexpr ReducerOptions keep{.keep_dims = true};

/// Two rows and two columns of one channel, reduced to one value.
template <typename T>
T square_mean(ElementType type, const std::vector<T>& values, const std::vector<std::int32_t>& axes,
              model::Quantization in, model::Quantization out) {
    const auto result = OneOperator()
                            .input(type, {1, 2, 2, 1}, values, std::move(in))
                            .numbers(axes)
                            .output(type, {1, 1, 1, 1}, std::move(out))
                            .template run<T>(Op::mean, keep);
    return result.size() == 1 ? result[0] : T{};
}

// The mean of 0, 0, 0, 3 is 0.75. The special case rounds it, the general one, with one
// quantisation, drops the fraction; the axes as they are stored decide.
TEST(MeanArithmetic, StoredAxesChooseTheSpecialCase) {
    const auto one = per_tensor(1, 0);
    const auto unsigned_mean = [&](const std::vector<std::int32_t>& axes) {
        return square_mean<std::uint8_t>(ElementType::uint8, {0, 0, 0, 3}, axes, one, one);
    };
    const auto signed_mean = [&](const std::vector<std::int32_t>& axes) {
        return square_mean<std::int8_t>(ElementType::int8, {0, 0, 0, -3}, axes, one, one);
    };
    for (const std::vector<std::int32_t>& special : {std::vector{1, 2}, std::vector{2, 1}}) {
        EXPECT_EQ(unsigned_mean(special), 1);
        EXPECT_EQ(signed_mean(special), -1);
    }
    for (const std::vector<std::int32_t>& general :
         {std::vector{-3, -2}, std::vector{1, -2}, std::vector{1, 2, 1}}) {
        EXPECT_EQ(unsigned_mean(general), 0);
        EXPECT_EQ(signed_mean(general), 0);
    }
}

// -1.25 / 0.5 = -2.5 becomes -3, plus 1.
TEST(MeanArithmetic, GeneralCaseRescalesInFloat) {
    EXPECT_EQ(square_mean<std::int8_t>(ElementType::int8, {1, -2, -2, -2}, {-3, -2},
                                       per_tensor(1, 0), per_tensor(0.5F, 1)),
              -2);
}

// uint8: 3 * 1.5 = 4.5 becomes 5, and 51 * 1.5 / 4 = 19.125 becomes 19; 19 - 5 + 7.
// Rounded together they would be 22.
TEST(MeanArithmetic, UnsignedSpecialCaseRoundsTheZeroPointApart) {
    EXPECT_EQ(square_mean<std::uint8_t>(ElementType::uint8, {11, 12, 14, 14}, {1, 2},
                                        per_tensor(1.5F, 3), per_tensor(1, 7)),
              21);
}

// int8: the sum of distances, 3, becomes 1.5, rounded to 2, before 2 / 4 is rounded to 1. The mean
// itself, 0.375, would be 0.
TEST(MeanArithmetic, SignedSpecialCaseRescalesBeforeItDivides) {
    EXPECT_EQ(square_mean<std::int8_t>(ElementType::int8, {6, 5, 5, 7}, {1, 2}, per_tensor(1, 5),
                                       per_tensor(2, -10)),
              -9);
}

TEST(MeanArithmetic, IntegersTruncateTheirQuotient) {
    const auto mean = OneOperator()
                          .input<std::int32_t>(ElementType::int32, {2, 3}, {1, 2, 5, -1, -2, -5})
                          .numbers({1})
                          .output(ElementType::int32, {2})
                          .run<std::int32_t>(Op::mean);
    EXPECT_THAT(mean, ElementsAre(2, -2));
}

// In input order ((1 + 2^24) - 2^24) + 1 ... loses ones; by lanes each meets its equal.
TEST(MeanArithmetic, FloatsAlongTheLastAxisSumInFourLanes) {
    constexpr float big = 0x1p25F;
    const std::vector<float> row{1, big, 1, 1, 1, -big, 1, 1};
    const auto mean = [&](std::int32_t axis) {
        return OneOperator()
            .input<float>(ElementType::float32, {1, 8}, row)
            .numbers({axis})
            .output(ElementType::float32, {1})
            .run<float>(Op::mean);
    };
    EXPECT_THAT(mean(1), ElementsAre(6.0F / 8));
    EXPECT_THAT(mean(-1), ElementsAre(2.0F / 8));
}

TEST(Sum, WrapsInTheElementsType) {
    const auto sum = [](model::Quantization out) {
        return OneOperator()
            .input<std::uint8_t>(ElementType::uint8, {1, 3}, {200, 100, 7}, per_tensor(1, 3))
            .numbers({1})
            .output(ElementType::uint8, {1}, std::move(out))
            .run<std::uint8_t>(Op::sum);
    };
    EXPECT_THAT(sum(per_tensor(1, 3)), ElementsAre(307 - 256));
    // (307 - 9) / 2 + 250 = 399
    EXPECT_THAT(sum(per_tensor(2, 250)), ElementsAre(399 - 256));
}

TEST(ReduceMaxMin, TakesTheExtremesAndIgnoresNan) {
    const std::vector<float> values{NAN, -3, 4, 2, -INFINITY, 8};
    const auto reduced = [&](Op op) {
        return OneOperator()
            .input(ElementType::float32, {3, 2}, values)
            .numbers({0})
            .output(ElementType::float32, {2})
            .run<float>(op);
    };
    EXPECT_THAT(reduced(Op::reduce_max), ElementsAre(4, 8));
    EXPECT_THAT(reduced(Op::reduce_min), ElementsAre(-INFINITY, -3));
}

TEST(ReduceMaxMin, RefusesToRescale) {
    EXPECT_THAT(OneOperator()
                    .input<std::int8_t>(ElementType::int8, {2}, {1, 2}, per_tensor(1, 0))
                    .numbers({0})
                    .output(ElementType::int8, {}, per_tensor(2, 0))
                    .refused(Op::reduce_max),
                HasSubstr("different scales"));
}

/// A recorded case in the types that TFLite had.
template <typename T>
void expect_recorded(const nlohmann::json& recorded, ElementType type, Op op) {
    const auto quantised = [&](const char* scale, const char* zero) {
        return per_tensor(recorded.at(scale).get<float>(), recorded.at(zero).get<std::int64_t>());
    };
    const auto result =
        OneOperator()
            .input(type, recorded.at("shape").get<Shape>(),
                   recorded.at("input").get<std::vector<T>>(), quantised("in_scale", "in_zero"))
            .numbers(recorded.at("axes").get<Shape>())
            .output(type, recorded.at("output_shape").get<Shape>(),
                    quantised("out_scale", "out_zero"))
            .template run<T>(op, ReducerOptions{recorded.at("keep_dims").get<bool>()});
    EXPECT_THAT(result, ElementsAreArray(recorded.at("output").get<std::vector<T>>()));
}

TEST(Reductions, RecordedResultsAreEqual) {
    REEF_SHARED_OR_SKIP(shared);
    const auto file =
        read_file((shared / "data" / "cpu_ops" / "mean_sum_max_vectors.json").string());
    ASSERT_TRUE(file) << file.error().message();
    const auto* text = reinterpret_cast<const char*>(file->view().data());
    const auto cases = nlohmann::json::parse(text, text + file->view().size());
    ASSERT_EQ(cases.size(), 78U);
    for (const auto& recorded : cases) {
        SCOPED_TRACE(recorded.at("path").get<std::string>());
        const Op op = recorded.at("op") == "MEAN" ? Op::mean : Op::sum;
        ASSERT_TRUE(op == Op::mean || recorded.at("op") == "SUM");
        if (recorded.at("type") == "u8")
            expect_recorded<std::uint8_t>(recorded, ElementType::uint8, op);
        else if (recorded.at("type") == "i8")
            expect_recorded<std::int8_t>(recorded, ElementType::int8, op);
        else
            expect_recorded<std::int16_t>(recorded, ElementType::int16, op);
    }
}

}  // namespace
}  // namespace reef::test
