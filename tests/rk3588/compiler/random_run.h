// A compiled model's result for drawn inputs.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <vector>

#include "reef/runtime/session.h"

namespace reef::test {

inline std::vector<std::byte> run_on(const model::Model& model, const char* device, unsigned seed) {
    runtime::SessionOptions options;
    options.devices = {{device}};
    auto session = runtime::Session::open(model, options);
    EXPECT_TRUE(session) << session.error().message();
    if (!session) return {};
    std::mt19937 random(seed);
    for (std::byte& b : session->input(0)) b = static_cast<std::byte>(random());
    const auto done = session->run();
    EXPECT_TRUE(done) << done.error().message();
    return {session->output(0).begin(), session->output(0).end()};
}

}  // namespace reef::test
