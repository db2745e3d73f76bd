#include "dma_sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "program_path.h"

namespace reef::edgetpu::sim {
namespace {

constexpr unsigned patched_bits = 32;

/// The regions of one executable, each at an address of its own that tells which one it is.
class Regions {
  public:
    explicit Regions(const Executable& executable) {
        for (const auto& stream : executable.bitstreams) {
            for (const auto& offset : stream.field_offsets) {
                const Key key{offset.meta.base, offset.meta.name};
                if (std::ranges::find(keys_, key) == keys_.end()) keys_.push_back(key);
            }
        }
    }

    [[nodiscard]] std::uint32_t half(const Meta& meta) const {
        const auto index = std::ranges::find(keys_, Key{meta.base, meta.name}) - keys_.begin();
        const auto address = base(static_cast<std::uint64_t>(index));
        return static_cast<std::uint32_t>(meta.half == AddressHalf::upper_32_bits ? address >> 32
                                                                                  : address);
    }

    [[nodiscard]] Result<FiredTransfer> transfer(const DmaDescriptor& fired) const {
        FiredTransfer out{.tag = fired.tag, .bytes = fired.bytes};
        if (fired.tag >= Tag::interrupt_0) return out;
        const auto index = (fired.address.byte + distance_to_end) / spacing - 1;
        if (index >= keys_.size() || fired.address.byte < base(index))
            return fail(Cause::bad_input,
                        fmt::format("a DMA descriptor has the address {:#x}, which is in no region",
                                    fired.address.byte));
        out.region = keys_[index].base;
        out.layer = keys_[index].layer;
        out.offset = fired.address.byte - base(index);
        return out;
    }

  private:
    struct Key {
        BaseAddress base;
        std::string layer;
        friend bool operator==(const Key&, const Key&) = default;
    };

    static constexpr std::uint64_t spacing = std::uint64_t{1} << 36;
    static constexpr std::uint64_t distance_to_end = 64;
    static constexpr std::uint64_t base(std::uint64_t index) {
        return (index + 1) * spacing - distance_to_end;
    }

    std::vector<Key> keys_;
};

Result<std::vector<std::byte>> patched(const InstructionBitstream& stream, const Regions& regions) {
    const auto bytes = stream.instructions.view();
    std::vector<std::byte> out(bytes.begin(), bytes.end());
    for (const auto& field : stream.field_offsets) {
        const auto first = field.offset_bit;
        if (first < 0 || static_cast<std::size_t>(first) + patched_bits > out.size() * 8)
            return fail(Cause::bad_input, fmt::format("field offset {} is outside", first));
        const auto value = regions.half(field.meta);
        for (unsigned bit = 0; bit < patched_bits; ++bit) {
            const auto at = static_cast<std::size_t>(first) + bit;
            const auto mask = static_cast<std::byte>(1U << at % 8);
            out[at / 8] = (value >> bit & 1) != 0 ? out[at / 8] | mask : out[at / 8] & ~mask;
        }
    }
    return out;
}

/// One stream from start to halt.
Status run(Bytes stream, ScalarCore& core, const Regions& regions, std::uint64_t& instructions_left,
           std::vector<FiredTransfer>& out) {
    const auto instructions = REEF_TRY(decode(stream));
    const auto halted = follow_path(
        core, instructions_left, by_word(instructions), [&](const PathStep& step) -> Status {
            if (step.effect.fired)
                out.push_back(REEF_TRY(in_place(regions.transfer(*step.effect.fired),
                                                fmt::format("word {:#x}", step.instruction.word))));
            return {};
        });
    if (halted && *halted) return {};
    if (halted)
        return fail(Cause::bad_input, "the program does not halt", {}, "it runs in circles");
    return std::unexpected(halted.error());
}

}  // namespace

Result<std::vector<FiredTransfer>> dma_sequence(const Executable& executable,
                                                std::uint64_t most_instructions) {
    std::vector<FiredTransfer> out;
    for (auto& stream : REEF_TRY(dma_sequences(executable, most_instructions)))
        std::ranges::move(stream, std::back_inserter(out));
    return out;
}

Result<std::vector<std::vector<FiredTransfer>>> dma_sequences(const Executable& executable,
                                                              std::uint64_t most_instructions) {
    const Regions regions(executable);
    ScalarCore core;
    std::vector<std::vector<FiredTransfer>> out;
    for (std::size_t chunk = 0; chunk < executable.bitstreams.size(); ++chunk) {
        const auto place = fmt::format("chunk {}", chunk);
        const auto stream =
            REEF_TRY(in_place(patched(executable.bitstreams[chunk], regions), place));
        REEF_CHECK(
            in_place(run(stream, core, regions, most_instructions, out.emplace_back()), place));
    }
    return out;
}

std::vector<FiredTransfer> merged(std::vector<FiredTransfer> transfers) {
    std::vector<FiredTransfer> out;
    for (auto& t : transfers) {
        const bool goes_on = !out.empty() && t.tag < Tag::interrupt_0 && out.back().tag == t.tag &&
                             out.back().region == t.region && out.back().layer == t.layer &&
                             out.back().offset + out.back().bytes == t.offset;
        if (goes_on)
            out.back().bytes += t.bytes;
        else
            out.push_back(std::move(t));
    }
    return out;
}

}  // namespace reef::edgetpu::sim
