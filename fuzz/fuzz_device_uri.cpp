// Device URIs: what is parsed prints as itself again, and the registry answers every text.
#include <cstdint>
#include <string_view>

#include "check.h"
#include "reef/runtime/registry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reef::runtime;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto uri = DeviceUri::parse(text);
    if (uri) {
        const auto again = DeviceUri::parse(uri->text());
        reef::fuzz::check(again && *again == *uri, "a URI's text parses to itself");
    }
    const auto found = Registry::of_process().find(text);
    reef::fuzz::check(!found || uri, "what is found is a URI");
    if (found) static_cast<void>(OptionValues::check(found->driver->options(), found->uri));
    return 0;
}
