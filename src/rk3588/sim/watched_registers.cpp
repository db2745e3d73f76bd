#include "rk3588/sim/watched_registers.h"

#include <fmt/format.h>

namespace reef::rk3588::sim {
namespace {

std::unexpected<Error> not_modelled(RegisterIndex index, const hw::FieldInfo& field,
                                    std::uint64_t bits) {
    return fail(
        Cause::unsupported,
        fmt::format("{} is {:#x}, which the simulated chip does not model", field.name, bits),
        std::string(spec::instructions[index].name),
        "docs/rk3588-isa.md says what is known of the field");
}

Status check_register(RegisterIndex index, std::uint32_t value, std::uint32_t seen) {
    for (const auto& field : spec::instructions[index].fields) {
        if (field.position < 16 || field.position >= 48) continue;
        const std::uint32_t mask = ~0U >> (32 - field.width);
        const unsigned shift = field.position - 16U;
        const std::uint32_t bits = value >> shift & mask;
        const bool was_read = (seen >> shift & mask) == mask;
        const auto usual = field.only >= 0 ? static_cast<std::uint32_t>(field.only) : 0;
        if (bits != usual && (field.only >= 0 || !was_read))
            return not_modelled(index, field, bits);
    }
    return {};
}

}  // namespace

std::uint32_t block_of(RegisterIndex index) {
    switch (spec::instructions[index].opcode >> 12) {
        case 1:
            return Blocks::cna;
        case 3:
            return Blocks::core;
        case 4:
            return Blocks::dpu;
        case 5:
            return Blocks::dpu_rdma;
        case 6:
            return Blocks::ppu;
        case 7:
            return Blocks::ppu_rdma;
        default:
            return 0;
    }
}

Status WatchedRegisters::all_seen(std::uint32_t blocks) const {
    for (RegisterIndex i = 0; i < register_count; ++i) {
        if ((block_of(i) & blocks) == 0) continue;
        REEF_CHECK(check_register(i, registers_->value(i), seen_[i]));
    }
    return {};
}

}  // namespace reef::rk3588::sim
