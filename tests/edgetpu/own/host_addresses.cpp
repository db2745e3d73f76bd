#include "host_addresses.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "edgetpu/sim/core/scalar_core.h"
#include "reef/edgetpu/isa.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/transfers.h"

namespace reef::test {
namespace {

using namespace edgetpu;

using Region = std::pair<BaseAddress, std::string>;
using Bases = std::map<Region, std::uint64_t>;

std::vector<std::byte> at_addresses(const InstructionBitstream& stream, const Bases& bases) {
    const Bytes bytes = stream.instructions.view();
    std::vector<std::byte> out(bytes.begin(), bytes.end());
    for (const FieldOffset& field : stream.field_offsets) {
        const std::uint64_t address = bases.at({field.meta.base, field.meta.name});
        const auto half = static_cast<std::uint32_t>(
            field.meta.half == AddressHalf::upper_32_bits ? address >> 32U : address);
        for (unsigned bit = 0; bit < 32; ++bit) {
            const std::size_t at = static_cast<std::size_t>(field.offset_bit) + bit;
            const auto mask = static_cast<std::byte>(1U << at % 8);
            out.at(at / 8) = (half >> bit & 1U) != 0 ? out[at / 8] | mask : out[at / 8] & ~mask;
        }
    }
    return out;
}

/// One line for each descriptor that the scalar core fires.
void fire(Bytes stream, sim::ScalarCore& core, std::vector<std::string>& fired) {
    const auto instructions = decode(stream);
    ASSERT_TRUE(instructions) << instructions.error().message();
    core.begin_stream();
    for (bool halted = false; !halted;) {
        const auto found =
            std::ranges::lower_bound(*instructions, core.program_counter(), {}, &Instruction::word);
        ASSERT_NE(found, instructions->end());
        if (!sim::ScalarCore::executes(*found)) {
            core.pass(*found);
            continue;
        }
        const auto effect = core.execute(*found);
        ASSERT_TRUE(effect) << effect.error().message();
        if (effect->fired && effect->fired->tag < Tag::interrupt_0)
            fired.push_back(fmt::format("{} of {} bytes at {:#x}", to_string(effect->fired->tag),
                                        effect->fired->bytes, effect->fired->address.byte));
        halted = effect->halted;
    }
}

std::vector<std::string> hinted(const Executable& executable, const Bases& bases) {
    std::vector<std::string> out;
    for (const DmaHint& hint : executable.dma_hints->hints) {
        const auto* transfer = std::get_if<DmaDescriptorHint>(&hint.what);
        if (transfer == nullptr) continue;
        const Tag tag = transfer->meta.base == BaseAddress::parameter ? Tag::parameters
                        : hint.direction == Direction::infeed         ? Tag::input_activations
                                                                      : Tag::output_activations;
        out.push_back(fmt::format("{} of {} bytes at {:#x}", to_string(tag), transfer->size_bytes,
                                  bases.at({transfer->meta.base, transfer->meta.name}) +
                                      static_cast<std::uint64_t>(transfer->offset_bytes)));
    }
    return out;
}

}  // namespace

std::size_t expect_hints_hold_anywhere(const model::Model& compiled, int rounds) {
    std::mt19937_64 random(14);
    std::size_t transfers = 0;
    const auto packages = packages_of(compiled);
    if (!packages) ADD_FAILURE() << packages.error().message();
    if (!packages) return 0;
    for (const CompiledOperator& op : *packages)
        for (const Executable& executable : op.package.executables) {
            Bases bases;
            for (const auto& stream : executable.bitstreams)
                for (const FieldOffset& field : stream.field_offsets)
                    bases[{field.meta.base, field.meta.name}] = 0;
            for (int round = 0; round < rounds; ++round) {
                for (auto& [region, base] : bases) base = random() >> 8U;
                sim::ScalarCore core;
                std::vector<std::string> fired;
                for (const auto& stream : executable.bitstreams)
                    fire(at_addresses(stream, bases), core, fired);
                EXPECT_EQ(fired, hinted(executable, bases));
                transfers += fired.size();
            }
        }
    return transfers;
}

}  // namespace reef::test
