// What Reef's own programs ask of the host: in the order of their hints, and at whatever addresses
// a driver gives the host's memory.
#include <gtest/gtest.h>

#include "compiler/random_network.h"
#include "host_addresses.h"
#include "own_models.h"
#include "reef/edgetpu/compiler.h"
#include "support/drawn_seeds.h"

namespace reef::edgetpu {
namespace {

TEST(OwnModels, HostMemoryMayLieAnywhere) {
    std::size_t transfers = 0;
    for (const test::OwnModel& one : test::own_models()) {
        SCOPED_TRACE(one.name);
        transfers += test::expect_hints_hold_anywhere(one.compiled, 10);
    }
    EXPECT_GE(transfers, 200U);
}

/// Streamed, spilled, in several programs, of known forms alone; one in five recurrent.
TEST(OwnModels, HostMemoryOfRandomNetworksMayLieAnywhere) {
    std::size_t networks = 0;
    for (unsigned seed = 1; seed <= 100; ++seed) {
        SCOPED_TRACE(seed);
        const auto plain =
            seed % 5 == 0 ? test::random_recurrent_network(seed) : test::random_network(seed);
        const auto compiled = compile(plain, test::options_in_turn(seed / 5 + seed % 5));
        if (!compiled) continue;
        if (test::expect_hints_hold_anywhere(compiled->model, 3) > 0) ++networks;
    }
    EXPECT_GE(networks, 80U);
}

}  // namespace
}  // namespace reef::edgetpu
