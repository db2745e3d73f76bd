// The RK3588's assembler: any text is refused with a reason, or prints and reparses to equal bytes.
#include "check.h"
#include "reef/rk3588/command_words.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reef;
    const auto streams = rk3588::assemble({reinterpret_cast<const char*>(data), size});
    if (!streams) {
        fuzz::check(!streams.error().what.empty() && streams.error().place.starts_with("line "),
                    "an error says what is wrong and in which line");
        return 0;
    }
    for (const auto& stream : *streams) {
        for (const bool symbolic : {false, true}) {
            const auto again = rk3588::assemble(
                rk3588::disassemble(stream.bytes, {.symbolic = symbolic, .addresses = symbolic}));
            fuzz::check(
                again.has_value() && again->size() <= 1 &&
                    (again->empty() ? stream.bytes.empty() : again->front().bytes == stream.bytes),
                "what assembles prints and assembles to the same bytes");
        }
    }
    return 0;
}
