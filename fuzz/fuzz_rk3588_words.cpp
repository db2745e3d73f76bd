// The RK3588's command words: any bytes print and assemble to themselves; tasks, checks and
// containers take them or refuse them with a reason.
#include <algorithm>

#include "check.h"
#include "reef/rk3588/command_words.h"
#include "rk3588/stream/container.h"
#include "rk3588/stream/stream_check.h"
#include "rk3588/stream/task.h"

namespace {

/// Whether the stream is tasks, one behind the other, with words without effect between them.
bool is_of_tasks(reef::Bytes stream) {
    std::size_t at = 0;
    while (at < stream.size()) {
        const auto word =
            stream.subspan(at).first(std::min(reef::rk3588::word_bytes, stream.size() - at));
        if (std::ranges::all_of(word, [](std::byte b) { return b == std::byte{0}; })) {
            at += word.size();
            continue;
        }
        const auto task = reef::rk3588::read_task(stream.subspan(at));
        if (!task) return false;
        at += task->words * reef::rk3588::word_bytes;
    }
    return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reef;
    const Bytes bytes = std::as_bytes(std::span(data, size));
    const auto again = rk3588::assemble(rk3588::disassemble(bytes));
    fuzz::check(
        again && (again->empty() ? bytes.empty() : std::ranges::equal(again->front().bytes, bytes)),
        "any bytes print and assemble to themselves");
    const auto faults = rk3588::check_stream(bytes);
    const bool broken =
        std::ranges::any_of(faults, [](const auto& fault) { return !fault.unmodelled; });
    fuzz::check(!broken || size % rk3588::word_bytes != 0 || !is_of_tasks(bytes),
                "a stream with a broken rule has no tasks");
    std::size_t end = 0;
    for (const auto& task : rk3588::stored_tasks(bytes)) {
        fuzz::check(task.offset >= end && task.offset + task.size <= size,
                    "stored tasks lie in the file, one behind the other");
        end = task.offset + task.size;
    }
    return 0;
}
