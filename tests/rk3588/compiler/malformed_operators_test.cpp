// The compiler refuses a malformed operator or takes it, and reads no tensor that is not there.
#include <gtest/gtest.h>

#include "cpu/plain/malformed.h"
#include "rk3588/compiler/compile.h"

namespace reef {
namespace {

TEST(MalformedOperators, CompilerRefusesOrTakes) {
    int taken = 0, refused = 0;
    plain::each_malformed(6, [&](const model::Model& model, const std::string& name) {
        const auto compiled = rk3588::compile(model, {}, {});
        ++(compiled ? taken : refused);
        EXPECT_TRUE(compiled || !compiled.error().what.empty()) << name;
        return !testing::Test::HasFailure();
    });
    EXPECT_GT(taken, 20);
    EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace reef
