// The RK3588's artifact: any bytes are refused with a reason, or read to what is written the same.
#include "check.h"
#include "rk3588/artifact/artifact.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reef;
    const auto artifact = rk3588::read_artifact(std::as_bytes(std::span(data, size)));
    if (!artifact) {
        fuzz::check(!artifact.error().what.empty(), "a refused artifact has a reason");
        return 0;
    }
    const auto again = rk3588::read_artifact(write_artifact(*artifact));
    fuzz::check(again && *again == *artifact, "what is read is written and read the same");
    constexpr std::uint32_t base[rk3588::area_count] = {0x1000, 0x2000, 0x3000};
    const auto words = relocated(*artifact, base);
    fuzz::check(words.size() == artifact->commands.size(), "relocation keeps words");
    for (const auto* cubes : {&artifact->inputs, &artifact->outputs})
        for (const auto& cube : *cubes)
            fuzz::check(cube.offset + cube.bytes() <= artifact->activation_bytes,
                        "cubes lie in the activations");
    return 0;
}
