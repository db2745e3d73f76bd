// The Edge TPU decoder: any bytes come back from text in both forms, and from their own fields.
#include <algorithm>
#include <array>

#include "check.h"
#include "reef/edgetpu/assembly.h"
#include "reef/edgetpu/listing.h"
#include "reef/edgetpu/program_check.h"
#include "reef/hw/program_diff.h"

namespace reef::fuzz {
namespace {

void through_text(Bytes input, const edgetpu::TextOptions& options) {
    const auto bytes = edgetpu::assemble(edgetpu::disassemble(input, options));
    check(bytes.has_value(), "the disassembly of any bytes assembles");
    check(std::ranges::equal(*bytes, input), "disassemble -> assemble gives the same bytes");
}

void through_fields(Bytes input) {
    edgetpu::InstructionCursor cursor(input);
    std::size_t size = 0;
    while (const auto instruction = cursor.next()) {
        size += instruction->bytes.size();
        if (!instruction->info) continue;
        edgetpu::InstructionBuilder builder(*instruction->info);
        for (const auto& field : instruction->info->fields)
            check(edgetpu::set_field(builder.bytes(), field, instruction->value(field)).has_value(),
                  "a field takes the value that was read from it");
        check(std::ranges::equal(builder.bytes(), instruction->bytes),
              "the fields make up the instruction");
    }
    check(size == input.size(), "the parts make up the stream");
}

}  // namespace
}  // namespace reef::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reef;
    const Bytes input = std::as_bytes(std::span(data, size));
    fuzz::through_text(input, {.symbolic = false, .addresses = true});
    fuzz::through_text(input, {.symbolic = true, .addresses = false});
    fuzz::through_fields(input);
    const std::array chunks = {input.first(size / 2), input.subspan(size / 2)};
    (void)edgetpu::check_program(chunks);
    (void)edgetpu::check_synchronisation(chunks);
    (void)edgetpu::check_synchronisation(std::array{input});
    const auto diff =
        hw::diff_programs(edgetpu::isa(), chunks[0], chunks[1], edgetpu::numbering_field);
    fuzz::check(diff.identical == std::ranges::equal(chunks[0], chunks[1]),
                "identical streams are called so");
    return 0;
}
