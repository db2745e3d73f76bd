// Where the operands of every tensor instruction come from, and what it stores.
//
// A program's data flow does not depend on its data. It runs several times with marks in place of
// what the host sends and of what tensor instructions store; everything else (copies, rings, mesh,
// DMA) moves the marks as it would move data. What arrives at a tensor instruction tells where it
// was stored, byte by byte.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "edgetpu/sim/machine/prepared_executable.h"
#include "edgetpu/sim/program/program.h"
#include "edgetpu/sim/tile/tensor_engine.h"
#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/edgetpu/package.h"

namespace reef::edgetpu::trace {

/// A byte of what the host sends or of what a tensor instruction stores. Numbers are given in this
/// order: inputs, parameters of both executables, results.
using Origin = std::uint32_t;
/// Constants, memory that nothing wrote, sums that stay in wide memory.
inline constexpr Origin no_origin = 0;

/// One execution of a tensor instruction on one tile.
struct Execution {
    const sim::ProgramInstruction* instruction = nullptr;
    const sim::TensorOp* op = nullptr;
    const sim::TensorShape* shape = nullptr;
    unsigned tile = 0;
    Origin first_result = no_origin;  ///< of the first byte of `results`

    /// Steps of a position that are looked at, by their place in its reduction: the first, and
    /// those whose input does not follow that of the step before.
    std::vector<std::uint32_t> taps;
    /// [tap][position]: the step's first input byte.
    std::vector<Origin> inputs;
    /// [position]: lane 0's parameter at the first step.
    std::vector<Origin> parameters;
    /// Steps whose parameters are looked at in every lane: the first, and of a maximum those in the
    /// middle and at the end, of which one is inside an image's border.
    std::vector<std::uint32_t> lane_taps;
    /// [lane tap][position][lane]: what they read, when any of it is an activation; else empty.
    /// Lanes behind the row's end have no origin.
    std::vector<Origin> lanes;
    /// The positions' results in order, whole words each; those of the last picture.
    std::vector<std::byte> results;

    [[nodiscard]] std::size_t positions() const { return shape->positions; }
    [[nodiscard]] Origin lane(std::size_t tap, std::size_t position, std::size_t lane) const {
        return lanes[(tap * positions() + position) * most_lanes() + lane];
    }
    /// Lanes that a position has at most.
    [[nodiscard]] std::size_t most_lanes() const { return std::max(op->lanes, op->last_lanes); }
    [[nodiscard]] unsigned element_bytes() const { return op->out_16bit ? 2 : 1; }
    [[nodiscard]] unsigned lanes_of(std::uint64_t position) const;
    [[nodiscard]] std::size_t bytes_of(std::uint64_t position) const;
    /// Where the position's bytes are in `results`.
    [[nodiscard]] std::size_t offset_of(std::uint64_t position) const;
    /// The position whose bytes include that byte of `results`.
    [[nodiscard]] std::uint64_t position_at(std::size_t offset) const;
};

/// Bytes that the host sends with one kind of transfer.
struct SentBytes {
    Origin first = no_origin;
    std::size_t size = 0;
    [[nodiscard]] bool contains(Origin origin) const {
        return origin >= first && origin - first < size;
    }
};

struct Trace {
    std::vector<sim::PreparedExecutable> programs;  ///< as they ran; the last one computes
    std::vector<SentBytes> inputs;                  ///< by input layer: bytes of the host's tensor
    std::vector<SentBytes> parameters;              ///< by program
    std::vector<Execution> executions;              ///< by first_result
    /// By picture and execution.
    std::vector<std::vector<std::vector<std::byte>>> results;

    /// Null when the origin is no result.
    [[nodiscard]] const Execution* find(Origin origin) const;
};

/// A multiplication by one that gives each byte as it was, whatever its zero point.
[[nodiscard]] bool keeps_bytes(const sim::TensorOp& op);

/// Runs the package's programs on chips of their own: with marks, then with each picture's inputs,
/// which are as of SimulatedPackage::run(). Precondition: there is a picture.
/// `moves`: numbers of instructions that keep bytes, of the program that computes. What they store
/// has the origin that it had before, as what instructions without zero points and limits store.
/// Errors: those of SimulatedPackage::prepare() and run(); unsupported for input layers of other
/// than 8 or 16 bits, and programs that store too much.
[[nodiscard]] Result<Trace> trace_bytes(const Package& package,
                                        std::span<const std::vector<Bytes>> pictures,
                                        const std::set<std::uint32_t>& moves = {});

}  // namespace reef::edgetpu::trace
