// The RK3588 for programs outside Reef: layouts, and products of matrices.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "reef/rk3588/layout.h"
#include "reef/rk3588/matmul.h"

namespace {

TEST(Rk3588Layout, IsConvertedThereAndBack) {
    // Two pixels of three channels, in atoms of 16 lanes.
    const reef::rk3588::CubeShape shape{.channels = 3, .height = 1, .width = 2};
    const std::array<std::byte, 6> pixels{std::byte{1}, std::byte{2}, std::byte{3},
                                          std::byte{4}, std::byte{5}, std::byte{6}};
    std::vector<std::byte> cube(shape.elements());
    reef::rk3588::to_cube(shape, 1, pixels, cube);
    EXPECT_EQ(cube[reef::rk3588::feature_data(3, 1, 2, 16, 2, 1, 2) /* from 1 */], std::byte{5});
    std::array<std::byte, 6> again{};
    reef::rk3588::from_cube(shape, 1, cube, again);
    EXPECT_EQ(again, pixels);
}

TEST(Rk3588Matmul, KeepsTheMatrixOnTheNpu) {
    // On a board: "rk3588:rknpu" or "rk3588:rocket".
    auto npu = reef::rk3588::Matmul::open("rk3588:sim", {.cores = 2});
    ASSERT_TRUE(npu) << npu.error().message();
    const std::vector<std::int8_t> b{1, 2, 3, 4, 5, 6};  // 3 rows, 2 columns
    const auto layer = npu->load("a layer", reef::rk3588::MatrixElements::int8, 3, 2,
                                 reef::rk3588::MatrixOrder::rows, std::as_bytes(std::span(b)));
    ASSERT_TRUE(layer) << layer.error().message();
    const std::vector<std::int8_t> a{1, 1, 1, -1, 0, 2};  // 2 rows
    std::vector<std::int32_t> c(4);
    const auto done =
        npu->multiply(*layer, 2, std::as_bytes(std::span(a)), std::as_writable_bytes(std::span(c)));
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_EQ(c, (std::vector<std::int32_t>{9, 12, 9, 10}));
    EXPECT_EQ(npu->counters().loads, 1U);
}

}  // namespace
