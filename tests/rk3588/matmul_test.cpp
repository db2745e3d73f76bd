// Products of matrices, and how B is packed for them.
#include "reef/rk3588/matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "reef/rk3588/layout.h"
#include "rk3588/matmul/matmul_plan.h"

namespace reef::rk3588 {
namespace {

using testing::HasSubstr;

std::vector<std::int8_t> random_bytes(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::int8_t> out(count);
    for (auto& v : out) v = static_cast<std::int8_t>(random());
    return out;
}

/// [k][n] to [n][k].
template <typename T>
std::vector<T> by_columns(const std::vector<T>& rows, std::size_t k, std::size_t n) {
    std::vector<T> out(rows.size());
    for (std::size_t i = 0; i < k; ++i)
        for (std::size_t j = 0; j < n; ++j) out[j * k + i] = rows[i * n + j];
    return out;
}

std::vector<std::int32_t> product_of(const std::vector<std::int8_t>& a,
                                     const std::vector<std::int8_t>& b, std::size_t m,
                                     std::size_t k, std::size_t n) {
    std::vector<std::int32_t> c(m * n, 0);
    for (std::size_t y = 0; y < m; ++y)
        for (std::size_t i = 0; i < k; ++i)
            for (std::size_t x = 0; x < n; ++x) c[y * n + x] += a[y * k + i] * b[i * n + x];
    return c;
}

std::vector<std::int32_t> multiplied(Matmul& npu, const ResidentMatrix& b,
                                     const std::vector<std::int8_t>& a, std::size_t m) {
    std::vector<std::int32_t> c(m * b.n(), 77);
    const auto done =
        npu.multiply(b, m, std::as_bytes(std::span(a)), std::as_writable_bytes(std::span(c)));
    EXPECT_TRUE(done) << done.error().message();
    return c;
}

// The formulas that others give for elements whose coordinates count from 1.
TEST(MatrixLayouts, AreTheFormulasThatCountFromOne) {
    const std::size_t C = 96, H = 5, W = 7;
    for (const std::size_t c2 : {16U, 8U, 4U})
        for (std::size_t c = 1; c <= C; c += 5)
            for (std::size_t h = 1; h <= H; ++h)
                for (std::size_t w = 1; w <= W; ++w)
                    EXPECT_EQ(feature_data(C, H, W, c2, c, h, w), (c - 1) / c2 * (H * W * c2) +
                                                                      (h - 1) * W * c2 +
                                                                      (w - 1) * c2 + (c - 1) % c2);
    for (std::size_t k = 1; k <= 128; ++k)
        for (std::size_t c = 1; c <= C; ++c) {
            EXPECT_EQ(weight_int8(C, k, c), (c - 1) / 32 * 32 * 32 + (k - 1) / 32 * 32 * C +
                                                (c - 1) % 32 + (k - 1) % 32 * 32);
            EXPECT_EQ(weight_fp16(C, k, c), (c - 1) / 32 * 32 * 16 + (k - 1) / 16 * 16 * C +
                                                (c - 1) % 32 + (k - 1) % 16 * 32);
        }
}

/// The matrix begins `shift` elements behind a place that is good for any store.
template <typename T>
void expect_packed(std::size_t k, std::size_t n, std::size_t group, std::size_t shift) {
    std::vector<T> rows(k * n);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<T>(i * 2654435761U >> 7);
    const auto columns = by_columns(rows, k, n);
    const std::size_t lanes = (k + 31) / 32 * 32, kernels = (n + group - 1) / group * group;
    for (const bool turned : {false, true}) {
        std::vector<T> all_packed(shift + lanes * kernels, static_cast<T>(0x55));
        const auto packed = std::span(all_packed).subspan(shift);
        const MatrixStretch all{.k = k, .n = n, .first = 0, .count = k, .by_columns = turned};
        const auto bytes = std::as_bytes(std::span(turned ? columns : rows));
        const auto out = std::as_writable_bytes(packed);
        sizeof(T) == 1 ? pack_int8_matrix(all, bytes, out) : pack_fp16_matrix(all, bytes, out);
        for (std::size_t x = 0; x < kernels; ++x)
            for (std::size_t i = 0; i < lanes; ++i) {
                const std::size_t at = sizeof(T) == 1 ? weight_int8(lanes, x + 1, i + 1)
                                                      : weight_fp16(lanes, x + 1, i + 1);
                ASSERT_EQ(packed[at], i < k && x < n ? rows[i * n + x] : T{0})
                    << k << "x" << n << " " << i << "," << x << (turned ? " by columns" : "");
            }
    }
}

TEST(MatrixLayouts, PackedMatricesHaveEachElementInItsPlace) {
    for (const auto& [k, n] : {std::pair<std::size_t, std::size_t>{64, 64},
                               {33, 31},
                               {1, 1},
                               {96, 50},
                               {130, 16},
                               {31, 129}}) {
        for (const std::size_t shift : {0U, 1U}) {
            expect_packed<std::uint8_t>(k, n, 32, shift);
            expect_packed<std::uint16_t>(k, n, 16, shift);
        }
    }
}

TEST(MatrixProducts, OfBytesAreExact) {
    struct Size {
        std::size_t m, k, n;
    };
    for (const std::size_t cores : {1U, 2U, 3U}) {
        auto npu = Matmul::open("rk3588:sim", {.cores = cores});
        ASSERT_TRUE(npu) << npu.error().message();
        unsigned seed = 1;
        for (const auto& [m, k, n] : {Size{1, 1, 1},
                                      {1, 64, 32},
                                      {3, 40, 70},
                                      {4, 32, 96},
                                      {57, 130, 33},
                                      {130, 512, 200},
                                      {9, 9000, 40},
                                      {1, 300, 5000}}) {
            const auto a = random_bytes(m * k, seed++), rows = random_bytes(k * n, seed++);
            const bool turned = seed % 4 < 2;
            const auto b = turned ? by_columns(rows, k, n) : rows;
            auto matrix = npu->load("", MatrixElements::int8, k, n,
                                    turned ? MatrixOrder::columns : MatrixOrder::rows,
                                    std::as_bytes(std::span(b)));
            ASSERT_TRUE(matrix) << matrix.error().message();
            EXPECT_EQ(multiplied(*npu, *matrix, a, m), product_of(a, rows, m, k, n))
                << m << "x" << k << "x" << n << " on " << cores;
        }
    }
}

TEST(MatrixProducts, OfALayerOf4096Is4096ExactSums) {
    constexpr std::size_t size = 4096;
    const auto a = random_bytes(size, 1), b = random_bytes(size * size, 2);
    auto npu = Matmul::open("rk3588:sim").value();
    const auto matrix = npu.load("layer", MatrixElements::int8, size, size, MatrixOrder::rows,
                                 std::as_bytes(std::span(b)));
    ASSERT_TRUE(matrix) << matrix.error().message();
    EXPECT_EQ(multiplied(npu, *matrix, a, 1), product_of(a, b, 1, size, size));
    // B once, A once, C once, and command words.
    const auto moved = npu.counters().bytes_moved;
    EXPECT_GE(moved, size * size + size + 4 * size);
    EXPECT_LE(moved, size * size + 6 * size + 2048);
}

// Halves of small integers: every sum is exact in binary32, in whatever order.
TEST(MatrixProducts, OfHalvesAreThoseOfTheirNumbers) {
    const std::size_t m = 6, k = 4500, n = 50;
    const auto half = [](int value) {
        // 2^10 is the least number of its exponent: 1024 + v has v in its mantissa.
        const int size = std::abs(value);
        if (size == 0) return std::uint16_t{0};
        int exponent = 0;
        while (size >> (exponent + 1) != 0) ++exponent;
        const int mantissa = (size << (10 - exponent)) & 0x3ff;
        return static_cast<std::uint16_t>((value < 0 ? 0x8000 : 0) | (exponent + 15) << 10 |
                                          mantissa);
    };
    std::mt19937 random(5);
    std::vector<int> a(m * k), b(k * n);
    for (int& v : a) v = static_cast<int>(random() % 31) - 15;
    for (int& v : b) v = static_cast<int>(random() % 31) - 15;
    std::vector<std::uint16_t> a_halves, b_halves;
    for (const int v : a) a_halves.push_back(half(v));
    for (const int v : b) b_halves.push_back(half(v));
    auto npu = Matmul::open("rk3588:sim", {.cores = 2}).value();
    const auto matrix = npu.load("", MatrixElements::fp16, k, n, MatrixOrder::rows,
                                 std::as_bytes(std::span(b_halves)));
    ASSERT_TRUE(matrix) << matrix.error().message();
    std::vector<float> c(m * n);
    const auto done = npu.multiply(*matrix, m, std::as_bytes(std::span(a_halves)),
                                   std::as_writable_bytes(std::span(c)));
    ASSERT_TRUE(done) << done.error().message();
    for (std::size_t y = 0; y < m; ++y)
        for (std::size_t x = 0; x < n; ++x) {
            int sum = 0;
            for (std::size_t i = 0; i < k; ++i) sum += a[y * k + i] * b[i * n + x];
            EXPECT_EQ(c[y * n + x], static_cast<float>(sum)) << y << "," << x;
        }
}

/// Fewer columns may be cut into more tasks, and submissions begin with the core of most.
TEST(MatrixProducts, CoresOfMostTasksComeFirst) {
    for (const matmul::ProductShape& shape :
         {matmul::ProductShape{MatrixElements::fp16, 1424, 1312, 528},
          matmul::ProductShape{MatrixElements::fp16, 1828, 2176, 336}}) {
        const auto plan = matmul::plan_product(shape, 2);
        ASSERT_EQ(plan.cores.size(), 2U);
        EXPECT_GT(plan.cores[0].size(), plan.cores[1].size());
        std::size_t elements = 0;
        for (const auto& tasks : plan.cores)
            for (const auto& task : tasks) elements += task.rows * task.columns * task.k;
        EXPECT_EQ(elements, shape.stored_m() * shape.stored_n() * shape.stored_k());
    }
}

TEST(MatrixProducts, GiveTheSameOnTheKernelsDrivers) {
    const std::size_t m = 20, k = 200, n = 150;
    const auto a = random_bytes(m * k, 3), b = random_bytes(k * n, 4);
    for (const char* device : {"rk3588:rknpu?kernel=simulated", "rk3588:rocket?kernel=simulated",
                               "rk3588:rknpu?kernel=simulated&start=chain"})
        for (const std::size_t cores : {1U, 3U}) {
            auto npu = Matmul::open(device, {.cores = cores}).value();
            const auto matrix = npu.load("", MatrixElements::int8, k, n, MatrixOrder::rows,
                                         std::as_bytes(std::span(b)));
            ASSERT_TRUE(matrix) << matrix.error().message();
            const auto want = product_of(a, b, m, k, n);
            for (int run = 0; run < 2; ++run)
                EXPECT_EQ(multiplied(npu, *matrix, a, m), want) << device;
        }
}

TEST(MatrixProducts, KeepMatricesByNameAndBuffersForLater) {
    const std::size_t k = 64, n = 64;
    const auto b = random_bytes(k * n, 9), a = random_bytes(2 * k, 10);
    auto npu = Matmul::open("rk3588:sim", {.cores = 1, .cache_bytes = 2 * k * n}).value();
    const auto load = [&](const char* name) {
        return npu.load(name, MatrixElements::int8, k, n, MatrixOrder::rows,
                        std::as_bytes(std::span(b)));
    };
    {
        const auto first = load("one").value();
        EXPECT_EQ(multiplied(npu, first, a, 2), product_of(a, b, 2, k, n));
        const auto buffers = npu.counters().buffers;
        EXPECT_EQ(multiplied(npu, first, a, 2), product_of(a, b, 2, k, n));
        EXPECT_EQ(npu.counters().buffers, buffers) << "a second product allocates nothing";
    }
    EXPECT_TRUE(npu.load("one", MatrixElements::int8, k, n, MatrixOrder::rows, {}))
        << "its bytes are not looked at";
    EXPECT_EQ(npu.counters().cache_hits, 1U);
    EXPECT_EQ(npu.counters().loads, 1U);
    const auto other = npu.load("one", MatrixElements::int8, n, 2 * k, MatrixOrder::rows, {});
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().cause, Cause::bad_argument);
    EXPECT_TRUE(load("two"));
    EXPECT_TRUE(load("three")) << "the cache is full: the first one goes";
    const auto buffers = npu.counters().buffers;
    EXPECT_TRUE(load("one"));
    EXPECT_EQ(npu.counters().loads, 4U);
    EXPECT_EQ(npu.counters().buffers, buffers) << "its buffer is used again";
}

TEST(MatrixProducts, RefuseWhatTheyCannot) {
    EXPECT_EQ(Matmul::open("cpu").error().cause, Cause::bad_argument);
    EXPECT_EQ(Matmul::open("rk3588:sim", {.cores = 4}).error().cause, Cause::bad_argument);
    EXPECT_EQ(Matmul::open("rk3588:rknpu:/dev/none").error().cause, Cause::device_missing);
    auto npu = Matmul::open("rk3588:sim").value();
    std::vector<std::byte> bytes(64 * 64), c(64 * 4);
    const auto load = [&](std::size_t k, std::size_t n) {
        return npu.load("", MatrixElements::int8, k, n, MatrixOrder::rows, bytes);
    };
    EXPECT_THAT(load(0, 64).error().message(), HasSubstr("0 x 64"));
    EXPECT_THAT(load(64, 1U << 16).error().message(), HasSubstr("columns"));
    EXPECT_THAT(load(64, 63).error().message(), HasSubstr("4096 bytes"));
    const auto matrix = load(64, 64).value();
    EXPECT_FALSE(npu.multiply(matrix, 0, {}, {}));
    EXPECT_FALSE(npu.multiply(matrix, 1, Bytes(bytes).first(63), c));
    auto other = Matmul::open("rk3588:sim").value();
    EXPECT_THAT(other.multiply(matrix, 1, Bytes(bytes).first(64), c).error().message(),
                HasSubstr("another NPU"));
}

}  // namespace
}  // namespace reef::rk3588
