// The Edge TPU assembler: any text is refused with a reason, or prints and reparses to equal bytes.
#include "check.h"
#include "reef/edgetpu/assembly.h"
#include "reef/edgetpu/listing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reef;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto streams = edgetpu::assemble_streams(text);
    if (!streams) {
        fuzz::check(!streams.error().what.empty() && streams.error().place.starts_with("line "),
                    "an error says what is wrong and in which line");
        return 0;
    }
    for (const auto& stream : *streams) {
        for (const bool symbolic : {false, true}) {
            const auto again = edgetpu::assemble(
                edgetpu::disassemble(stream.bytes, {.symbolic = symbolic, .addresses = symbolic}));
            fuzz::check(again.has_value() && *again == stream.bytes,
                        "what assembles prints and assembles to the same bytes");
        }
    }
    return 0;
}
