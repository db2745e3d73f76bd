// A model's results for drawn inputs.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "reef/runtime/session.h"

namespace reef::test {

/// All outputs, one behind the other, of the second of two runs, which finds what the first left.
inline Result<std::vector<std::byte>> try_run_on(const model::Model& model,
                                                 const std::string& device, unsigned seed) {
    auto session = REEF_TRY(runtime::Session::open(model, {.devices = {{device}}}));
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < session.input_count(); ++i)
        for (std::byte& b : session.input(i)) b = static_cast<std::byte>(random());
    for (int run = 0; run < 2; ++run) REEF_CHECK(session.run());
    std::vector<std::byte> all;
    for (std::size_t i = 0; i < session.output_count(); ++i)
        all.insert(all.end(), session.output(i).begin(), session.output(i).end());
    return all;
}

inline std::vector<std::byte> run_on(const model::Model& model, const std::string& device,
                                     unsigned seed) {
    auto done = try_run_on(model, device, seed);
    EXPECT_TRUE(done) << done.error().message();
    return done ? std::move(*done) : std::vector<std::byte>{};
}

}  // namespace reef::test
