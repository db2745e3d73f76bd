#include "reef/base/result.h"

#include <gtest/gtest.h>

namespace reef {
namespace {

Result<int> half(int n) {
    if (n % 2 != 0) return fail(Cause::bad_argument, "odd number", "", "pass an even one");
    return n / 2;
}

Result<int> quarter(int n) {
    return REEF_TRY(half(REEF_TRY(half(n))));
}

TEST(Result, TryPassesValuesAndErrors) {
    EXPECT_EQ(quarter(12).value(), 3);
    ASSERT_FALSE(quarter(6));
    EXPECT_EQ(quarter(6).error().cause, Cause::bad_argument);
}

TEST(Result, PlacesGrowOutwards) {
    const auto result = in_place(in_place(half(3), "tensor 2"), "cat.tflite");
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().message(), "cat.tflite: tensor 2: odd number (pass an even one)");
}

}  // namespace
}  // namespace reef
