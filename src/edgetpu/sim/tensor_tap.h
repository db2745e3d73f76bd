// Someone who looks on while tensor instructions work, and may store something else.
#pragma once

#include <cstdint>
#include <span>

namespace reef::edgetpu::sim {

struct ProgramInstruction;
struct TileMemory;

class TensorTap {
  public:
    /// A tile's engine begins a tensor instruction; what follows from that tile belongs to it,
    /// until its next begin(). Returns whether the steps are watched: they are then told one by one
    /// and nothing is computed, so that results() must say what is stored.
    virtual bool begin(unsigned tile, const ProgramInstruction& instruction) = 0;
    /// A step adds to the sums of `position`: `in` is the first input byte, `parameter` the quarter
    /// row. The steps of one position come in the order of its reduction, those of different
    /// positions may come in turns.
    virtual void step(unsigned tile, const TileMemory& memory, std::uint64_t position,
                      std::uint32_t in, std::uint32_t parameter) = 0;
    /// The results of the next position, whole words as they are about to be stored.
    virtual void results(unsigned tile, std::span<std::uint8_t> words) = 0;

  protected:
    ~TensorTap() = default;
};

}  // namespace reef::edgetpu::sim
