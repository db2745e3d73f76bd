#include <algorithm>
#include <span>
#include <string>

#include "reef/edgetpu/assembly.h"
#include "reef/edgetpu/listing.h"
#include "seeds.h"

namespace reef::fuzz {
namespace {

using edgetpu::FieldInfo;
using edgetpu::InstructionBuilder;
using edgetpu::InstructionInfo;

/// Every field holds some bits, so that every form of value occurs.
std::vector<std::byte> filled(const InstructionInfo& info, std::uint64_t pattern) {
    InstructionBuilder builder(info);
    for (const FieldInfo& field : info.fields)
        edgetpu::set_field_bits(builder.bytes(), field, pattern >> (field.position % 7));
    const auto bytes = builder.bytes();
    return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> as_seed(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

constexpr std::uint64_t patterns[] = {1, 0x1249'2492'4924'9249, ~std::uint64_t{0}};

}  // namespace

Result<Seeds> edgetpu_isa_seeds() {
    Seeds seeds;
    std::vector<std::byte> all;
    for (const InstructionInfo& info : edgetpu::instruction_set()) {
        for (const std::uint64_t pattern : patterns) {
            auto bytes = filled(info, pattern);
            all.insert(all.end(), bytes.begin(), bytes.end());
            seeds.emplace_back(std::string(info.name) + std::to_string(pattern % 10),
                               std::move(bytes));
        }
    }
    all.push_back(std::byte{7});
    seeds.emplace_back("all", std::move(all));
    return seeds;
}

Result<Seeds> edgetpu_asm_seeds() {
    Seeds seeds;
    for (const InstructionInfo& info : edgetpu::instruction_set()) {
        for (const std::uint64_t pattern : patterns) {
            const auto bytes = filled(info, pattern);
            for (const bool symbolic : {false, true})
                seeds.emplace_back(
                    std::string(info.name) + std::to_string(pattern % 10) + (symbolic ? "s" : "p"),
                    as_seed(edgetpu::disassemble(bytes, {symbolic, !symbolic})));
        }
    }
    seeds.emplace_back("directives", as_seed("; all\n.stream a\n.word 0x1f\n.bytes 0102\n"
                                             ".stream b\n0x0004: fence engines=all-OP-MESH_0\n"));
    return seeds;
}

}  // namespace reef::fuzz
