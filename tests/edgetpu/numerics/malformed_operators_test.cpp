// Every kernel of either arithmetic, and the compiler, refuse a malformed operator or take it and
// run; none reads a tensor that is not there, or makes an integer of what is no number.
#include <gtest/gtest.h>

#include "cpu/plain/malformed.h"
#include "reef/cpu/placer.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/numerics.h"
#include "reef/graph/executor.h"

namespace reef {
namespace {

void expect_refused_or_taken(const cpu::Arithmetic* arithmetic) {
    int taken = 0, refused = 0;
    plain::each_malformed(12, [&](const model::Model& model, const std::string& name) {
        for (const auto set : {cpu::KernelSet::reference, cpu::KernelSet::fast}) {
            auto executor =
                graph::Executor::create(model, {.placers = {cpu::placer({set, arithmetic, {}})}});
            ++(executor ? taken : refused);
            EXPECT_TRUE(executor || !executor.error().what.empty()) << name;
            if (!executor) continue;
            for (std::size_t i = 0; i < executor->input_count(); ++i)
                for (std::size_t at = 0; std::byte & b : executor->input(i))
                    b = static_cast<std::byte>(at++ * 37);
            const auto done = executor->run();
            EXPECT_TRUE(done || !done.error().what.empty()) << name;
        }
        return !testing::Test::HasFailure();
    });
    EXPECT_GT(taken, 1000);
    EXPECT_GT(refused, 1000);
}

TEST(MalformedOperators, TfliteRefusesOrTakes) {
    expect_refused_or_taken(nullptr);
}

TEST(MalformedOperators, ChipArithmeticRefusesOrTakes) {
    expect_refused_or_taken(&edgetpu::arithmetic());
}

TEST(MalformedOperators, CompilerRefusesOrTakes) {
    int taken = 0, refused = 0;
    plain::each_malformed(6, [&](const model::Model& model, const std::string& name) {
        const auto compiled = edgetpu::compile(model, {.keep_islands = true});
        ++(compiled ? taken : refused);
        EXPECT_TRUE(compiled || !compiled.error().what.empty()) << name;
        return !testing::Test::HasFailure();
    });
    EXPECT_GT(taken, 20);
    EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace reef
