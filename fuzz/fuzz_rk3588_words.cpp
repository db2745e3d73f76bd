// The RK3588's command words: any bytes print and assemble to themselves; tasks, chains, checks,
// differences and containers take them or refuse them with a reason.
#include <algorithm>

#include "check.h"
#include "reef/rk3588/command_words.h"
#include "rk3588/stream/container.h"
#include "rk3588/stream/stream_check.h"
#include "rk3588/stream/stream_diff.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reef;
    const Bytes bytes = std::as_bytes(std::span(data, size));
    const auto again = rk3588::assemble(rk3588::disassemble(bytes));
    fuzz::check(
        again && (again->empty() ? bytes.empty() : std::ranges::equal(again->front().bytes, bytes)),
        "any bytes print and assemble to themselves");
    const auto faults = rk3588::check_stream(bytes);
    const auto tasks = rk3588::tasks_of(bytes);
    const bool broken =
        std::ranges::any_of(faults, [](const auto& fault) { return !fault.unmodelled; });
    fuzz::check(!broken || !tasks || size % rk3588::word_bytes != 0,
                "a stream with a broken rule has no tasks");
    if (tasks) {
        const auto diff = rk3588::diff_streams(bytes, bytes);
        fuzz::check(diff && diff->changes.empty(), "a stream differs from itself in nothing");
    }
    const auto fetch = [&](std::uint32_t address, std::size_t count) -> Result<Bytes> {
        if (address > size) return fail(Cause::bad_input, "outside");
        return bytes.subspan(address, std::min(count, size - address));
    };
    const auto chain = rk3588::follow_chain(fetch, 0, size / rk3588::word_bytes);
    fuzz::check(chain || !chain.error().what.empty(), "a refused chain has a reason");
    std::size_t end = 0;
    for (const auto& task : rk3588::stored_tasks(bytes)) {
        fuzz::check(task.offset >= end && task.offset + task.size <= size,
                    "stored tasks lie in the file, one behind the other");
        end = task.offset + task.size;
    }
    return 0;
}
