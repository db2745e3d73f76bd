// The instructions of a program in the order in which the scalar core issues them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "edgetpu/program/instruction.h"
#include "reef/edgetpu/isa.h"
#include "reef/edgetpu/program_check.h"
#include "reef/edgetpu/transfers.h"

namespace reef::edgetpu::check {

struct Issued {
    Instruction instruction;
    const program::Operation* operation = nullptr;  ///< of the IssueOrder
    std::size_t chunk = 0;
    std::uint16_t tiles = 0;  ///< of tile instructions, chosen by a register where that is so
};

struct IssueOrder {
    IssueOrder() = default;
    IssueOrder(IssueOrder&&) = default;
    IssueOrder& operator=(IssueOrder&&) = default;

    /// By chunk: those of its instructions that are issued, decoded once.
    std::vector<std::vector<program::Operation>> operations;
    /// Tile instructions and those scalar ones that the scalar core does not execute itself.
    std::vector<Issued> instructions;
    /// Bytes of the DMA descriptors; each rounded up to the 8 bytes of a FIFO unit.
    [[nodiscard]] std::uint64_t bytes_of(Tag tag) const {
        return bytes_by_tag[static_cast<std::size_t>(tag)];
    }
    std::array<std::uint64_t, static_cast<std::size_t>(Tag::interrupt_0)> bytes_by_tag{};
    std::uint64_t words_to_host = 0;   ///< written to the host FIFO by bundles
    std::vector<ProgramFault> faults;  ///< why the order could not be followed to the end
};

/// Executes the scalar instructions, with branches and loops as registers decide. Base addresses
/// are what the streams hold.
[[nodiscard]] IssueOrder issue_order(std::span<const Bytes> chunks);
/// Why issue_order() could not follow it to the end, if so, without keeping anything; any number of
/// instructions is right here, as long as the program ends.
[[nodiscard]] std::optional<ProgramFault> first_fault_of_order(std::span<const Bytes> chunks);

}  // namespace reef::edgetpu::check
