#include <span>
#include <string_view>

#include "seeds.h"

namespace reef::fuzz {

Result<Seeds> device_uri_seeds() {
    constexpr std::string_view uris[] = {
        "cpu",
        "edgetpu:sim",
        "edgetpu:sim:1?strict=true",
        "edgetpu:sim?engine=plain&random_seed=3&most_steps=2000",
        "edgetpu:usb:1-4.2?clock=standard&firmware=/a%26b",
        "edgetpu:replay:a:b%3F.log",
        "edgetpu:null?clock=maximum",
    };
    Seeds seeds;
    for (const std::string_view uri : uris) {
        const auto bytes = std::as_bytes(std::span(uri));
        seeds.emplace_back(std::to_string(seeds.size()),
                           std::vector<std::byte>(bytes.begin(), bytes.end()));
    }
    return seeds;
}

}  // namespace reef::fuzz
