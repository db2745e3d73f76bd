#include "peers/likeness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "reef/cpu/placer.h"
#include "reef/model/builder.h"

namespace reef::peers {
namespace {

/// What three float32 values are beside 4, 1 and -2.
Likeness beside(const std::vector<float>& theirs) {
    model::Builder b("relu");
    const std::vector<float> ours{4, 1, -2};
    const auto in = b.input("in", ElementType::float32, {1, 3});
    const auto out = b.tensor("out", ElementType::float32, {1, 3});
    b.add(model::Op::reshape, {in}, {out}, model::ReshapeOptions{.new_shape = {1, 3}});
    b.output(out);
    auto executor = graph::Executor::create(*b.finish(), {.placers = {cpu::placer()}});
    std::memcpy(executor->input(0).data(), ours.data(), ours.size() * sizeof(float));
    EXPECT_TRUE(executor->run());
    return likeness(*executor, {std::as_bytes(std::span(theirs))});
}

TEST(Likeness, OfEqualFloatsIsNothing) {
    const Likeness alike = beside({4, 1, -2});
    EXPECT_EQ(alike.equal, 1);
    EXPECT_EQ(alike.relative, 0);
}

TEST(Likeness, OfFloatsIsByTheLargest) {
    const Likeness alike = beside({4, 1, -1.5F});
    EXPECT_DOUBLE_EQ(*alike.equal, 2.0 / 3);
    EXPECT_DOUBLE_EQ(*alike.relative, 0.125);
}

TEST(Likeness, OfWhatIsNoNumberIsBeyondEveryBound) {
    const float none = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isinf(*beside({none, 1, -2}).relative));
}

}  // namespace
}  // namespace reef::peers
