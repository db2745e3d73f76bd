// Tests that need TensorFlow Lite's library.
#pragma once

#include <gmock/gmock.h>

#include <cstdlib>

#include "peers/tflite_peer.h"

namespace reef::peers {

/// They are skipped, with the reason, without the library; with REEF_REQUIRE_TFLITE they fail.
class WithTflite : public testing::Test {
  protected:
    void SetUp() override {
        const std::string reason = why_no_tflite();
        if (reason.empty()) return;
        ASSERT_EQ(std::getenv("REEF_REQUIRE_TFLITE"), nullptr) << reason;
        GTEST_SKIP() << reason;
    }
};

}  // namespace reef::peers
