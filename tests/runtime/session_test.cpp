#include "reef/runtime/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "reef/edgetpu/numerics.h"
#include "reef/model/builder.h"

namespace reef::runtime {
namespace {

/// out = a + a, float32, 4 elements.
model::Model doubling() {
    model::Builder builder("doubling");
    const auto in = builder.input("in", ElementType::float32, {1, 4});
    const auto out = builder.tensor("out", ElementType::float32, {1, 4});
    builder.add(model::Op::add, {in, in}, {out}, model::AddOptions{});
    builder.output(out);
    return builder.finish().value();
}

TEST(Session, RunsOnTheCpuAndSaysWhere) {
    auto session = Session::open(doubling(), {});
    ASSERT_TRUE(session) << session.error().message();
    const float values[4] = {1, -2, 0.5F, 1e30F};
    ASSERT_EQ(session->input_count(), 1U);
    ASSERT_EQ(session->input(0).size(), sizeof(values));
    std::memcpy(session->input(0).data(), values, sizeof(values));
    ASSERT_TRUE(session->run());
    float doubled[4] = {};
    ASSERT_EQ(session->output(0).size(), sizeof(doubled));
    std::memcpy(doubled, session->output(0).data(), sizeof(doubled));
    for (int i = 0; i < 4; ++i) EXPECT_EQ(doubled[i], 2 * values[i]);
    ASSERT_EQ(session->placements().size(), 1U);
    EXPECT_EQ(session->placements()[0].name, "ADD");
    EXPECT_EQ(session->placements()[0].device, "cpu");
    EXPECT_TRUE(session->placements()[0].kernel.starts_with("add fast "));
    EXPECT_FALSE(session->placements()[0].reason.empty());
    EXPECT_GE(session->memory().arena_bytes, 32U);
}

TEST(Session, RefusesDevicesThatNobodyDrives) {
    for (const char* device : {"vpu:rocket:/dev/accel/accel0", "tpu", "edgetpu", ""}) {
        const auto session = Session::open(doubling(), {.devices = {device}});
        ASSERT_FALSE(session);
        EXPECT_EQ(session.error().cause, Cause::bad_argument);
        EXPECT_THAT(session.error().hint,
                    testing::HasSubstr("this build drives cpu, edgetpu:sim[:NAME]"));
    }
    EXPECT_EQ(Session::open(doubling(), {.devices = {}}).error().cause, Cause::bad_argument);
    const auto twice = Session::open(
        doubling(), {.devices = {"edgetpu:sim"}, .arithmetic = &edgetpu::arithmetic()});
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().cause, Cause::bad_argument);
}

TEST(Session, RefusesAnEdgeTpuForAModelThatIsNotCompiled) {
    const auto session = Session::open(doubling(), {.devices = {"edgetpu:sim"}});
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().cause, Cause::unsupported);
    EXPECT_THAT(session.error().message(), testing::HasSubstr("no operator compiled"));
    EXPECT_THAT(session.error().hint, testing::HasSubstr("`device` cpu"));
}

TEST(Session, SaysWhyAnOperatorHasItsArithmetic) {
    const auto session = Session::open(doubling(), {.arithmetic = &edgetpu::arithmetic()});
    ASSERT_TRUE(session) << session.error().message();
    EXPECT_THAT(session->placements()[0].reason, testing::HasSubstr("is float32"));
}

}  // namespace
}  // namespace reef::runtime
