// A recording of a kernel's driver, its lines and their bytes with a zero between: refused with a
// reason, or read, and then a device that answers to whoever opens it, allocates and submits.
#include <algorithm>

#include "check.h"
#include "rk3588/drm/recording.h"
#include "rk3588_session.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reef;
    using namespace reef::rk3588;
    const auto all = std::as_bytes(std::span(data, size));
    const auto end = static_cast<std::size_t>(std::ranges::find(all, std::byte{0}) - all.begin());
    const auto recording =
        drm::parse_recording(all.first(end), all.subspan(std::min(end + 1, size)));
    if (!recording) {
        fuzz::check(!recording.error().what.empty(), "a refused recording has a reason");
        return 0;
    }
    for (const auto& call : recording->calls)
        fuzz::check(!drm::text_of(call).empty(), "every call has a text");
    for (const auto driver : {drm::KernelDriver::rknpu, drm::KernelDriver::rocket}) {
        const auto kernel = drm::replaying_kernel(*recording);
        auto port = drm::open_port(kernel, driver, {}, drm::Start::each_task);
        if (port) (void)fuzz::copy_on(**port);
        fuzz::check(kernel->answered() <= recording->calls.size(), "no call is answered twice");
    }
    return 0;
}
