// What the recording's target and its seeds ask of a kernel's driver: two buffers, a task that
// copies, and what it left.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>

#include "rk3588/drm/port.h"
#include "rk3588/regs/register_set.h"
#include "rk3588/small_tasks.h"

namespace reef::fuzz {

inline Status copy_on(rk3588::drm::Port& port) {
    using namespace rk3588;
    const auto commands = REEF_TRY(port.allocate(4096));
    const auto data = REEF_TRY(port.allocate(4096));
    const auto words = REEF_TRY(task_words(
        rk3588::test::flying_copy(4, 4, 16, data.address, data.address + 0x800), Blocks::flying));
    std::memcpy(commands.bytes.data(), words.data(), words.size() * sizeof words[0]);
    std::ranges::fill(data.bytes, std::byte{7});
    for (const auto* buffer : {&commands, &data}) REEF_CHECK(port.to_device(*buffer));
    const drm::SubmittedTask task{.address = commands.address,
                                  .words = static_cast<std::uint32_t>(words.size()),
                                  .blocks = Blocks::flying};
    const std::span<const drm::SubmittedTask> core(&task, 1);
    const drm::Buffer* reads[] = {&commands};
    const drm::Buffer* writes[] = {&data};
    REEF_CHECK(port.submit({.cores = {&core, 1},
                            .reads = reads,
                            .writes = writes,
                            .time_out = std::chrono::seconds(1)}));
    REEF_CHECK(port.from_device(data));
    for (const auto* buffer : {&commands, &data}) port.release(*buffer);
    return {};
}

}  // namespace reef::fuzz
