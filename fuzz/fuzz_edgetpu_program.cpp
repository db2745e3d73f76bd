// Typed programs: any instruction comes back from its typed form, and what encodes is a program.
#include <algorithm>

#include "check.h"
#include "edgetpu/program/codec.h"
#include "edgetpu/program/encode_stream.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reef;
    namespace program = edgetpu::program;
    const Bytes input = std::as_bytes(std::span(data, size));
    edgetpu::InstructionCursor cursor(input);
    std::vector<program::TypedInstruction> typed;
    std::vector<std::byte> instructions;
    while (const auto one = cursor.next()) {
        if (!one->info) continue;
        instructions.insert(instructions.end(), one->bytes.begin(), one->bytes.end());
        typed.push_back(program::decode(*one));
        fuzz::check(&program::info_of(typed.back().operation) == one->info,
                    "the typed form is of the same instruction");
    }
    const auto encoded = program::encode_stream(typed);
    fuzz::check(encoded.has_value(), "what was decoded encodes");
    fuzz::check(*encoded == instructions, "decode -> encode gives the same bytes");
    const auto again = program::decode_stream(*encoded);
    fuzz::check(again.has_value() && again->size() == typed.size(), "what was encoded decodes");
    return 0;
}
