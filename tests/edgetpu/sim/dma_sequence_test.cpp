#include "edgetpu/sim/dma_sequence.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../package/package_data.h"
#include "reef/edgetpu/assembly.h"
#include "support/shared_data.h"

namespace reef::edgetpu::sim {
namespace {

using ::testing::HasSubstr;

/// The transfers and interrupts of the hints.
std::vector<FiredTransfer> hinted(const DmaHints& hints) {
    std::vector<FiredTransfer> out;
    for (const auto& hint : hints.hints) {
        if (const auto* interrupt = std::get_if<InterruptHint>(&hint.what)) {
            const auto tag = static_cast<std::uint32_t>(DmaTag::interrupt0) +
                             static_cast<std::uint32_t>(interrupt->interrupt);
            out.push_back({.tag = static_cast<DmaTag>(tag)});
        }
        const auto* transfer = std::get_if<DmaDescriptorHint>(&hint.what);
        if (!transfer) continue;
        auto tag = hint.direction == Direction::infeed ? DmaTag::input : DmaTag::output;
        if (transfer->meta.base == BaseAddress::parameter) tag = DmaTag::parameters;
        out.push_back({tag, transfer->meta.base, transfer->meta.name,
                       static_cast<std::uint64_t>(transfer->offset_bytes),
                       static_cast<std::uint64_t>(transfer->size_bytes)});
    }
    return out;
}

std::string text(const std::vector<FiredTransfer>& transfers) {
    std::string out;
    for (const auto& t : transfers)
        out += fmt::format("tag {} region {} {} offset {} bytes {}\n", static_cast<unsigned>(t.tag),
                           static_cast<int>(t.region), t.layer, t.offset, t.bytes);
    return out;
}

TEST(DmaSequence, EqualsTheHintsOfEveryDeterministicProgram) {
    REEF_SHARED_OR_SKIP(shared);
    std::size_t equal = 0;
    for (const auto& path : test::compiled_files()) {
        for (const auto& compiled : test::packages_in(path)) {
            for (const auto& executable : compiled.package.executables) {
                SCOPED_TRACE(path.filename().string() + " " + to_string(executable.type));
                ASSERT_TRUE(executable.dma_hints);
                const auto fired = dma_sequence(executable);
                ASSERT_TRUE(fired) << fired.error().message();
                if (!executable.dma_hints->fully_deterministic) continue;
                const auto expected = merged(hinted(*executable.dma_hints));
                EXPECT_EQ(text(merged(*fired)), text(expected));
                ++equal;
            }
        }
    }
    EXPECT_GE(equal, 37u) << shared;
}

}  // namespace
}  // namespace reef::edgetpu::sim
