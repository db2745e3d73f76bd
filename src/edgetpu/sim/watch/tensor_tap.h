// Someone who looks on while tensor instructions work, and may store something else.
#pragma once

#include <cstdint>
#include <span>

namespace reef::edgetpu::sim {

struct ProgramInstruction;
struct TileMemory;

/// One step of a tensor instruction, which adds to the sums of `position`.
struct TensorStep {
    std::uint64_t position = 0;
    std::uint32_t in = 0;           ///< the first input byte
    std::uint32_t parameter = 0;    ///< the quarter row
    std::int64_t pixel_weight = 1;  ///< of a resize's pixel; 0: it adds nothing
};

class TensorTap {
  public:
    /// Whether the words of memory are tags in place of data: copies and stores then keep each of
    /// them whole, and TileMemory::row_format says how a row would have been laid out.
    [[nodiscard]] virtual bool tags_words() const { return false; }
    /// A tile's engine begins a tensor instruction; what follows from that tile belongs to it,
    /// until its next begin(). Returns whether the steps are watched: they are then told one by one
    /// and nothing is computed, so that sums() and results() must say what is stored.
    virtual bool begin(unsigned tile, const ProgramInstruction& instruction) = 0;
    /// The steps of one position come in the order of its reduction, those of different positions
    /// may come in turns.
    virtual void step(unsigned tile, const TileMemory& memory, const TensorStep& at) = 0;
    /// Watched, a position's sums as they are about to be kept in wide memory: lane by lane.
    virtual void sums(unsigned tile, std::span<std::int32_t> lanes) = 0;
    /// The results of the next position, whole words as they are about to be stored; `buffer` is
    /// that of the scaling memory which the position's factors and biases are in.
    virtual void results(unsigned tile, const TileMemory& memory, unsigned buffer,
                         std::span<std::uint8_t> words) = 0;

  protected:
    ~TensorTap() = default;
};

}  // namespace reef::edgetpu::sim
