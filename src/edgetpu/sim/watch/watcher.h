// Who is told of the accesses to a machine's memories.
#pragma once

#include <cstdint>

#include "happens_before.h"

namespace reef::edgetpu::sim {

struct ProgramInstruction;

enum class Watched : std::uint8_t {
    narrow,
    wide,
    scaling,
    parameter_fifo,
    activation_fifo,
    scalar_memory,
    ring,  ///< at its receivers: sending is a write
};

class AccessWatcher {
  public:
    /// `at` counts the memory's words, rows or units: 4 bytes in narrow and scalar memory, 8 in
    /// scaling memory, rows of wide memory, units of a FIFO.
    virtual void read(Actor actor, Watched memory, unsigned tile, std::uint32_t at) = 0;
    /// `parameter`: a row that came over a ring.
    virtual void write(Actor actor, Watched memory, unsigned tile, std::uint32_t at,
                       bool parameter) = 0;

  protected:
    ~AccessWatcher() = default;
};

/// Is told of everything in a stepwise run.
class StepObserver : public AccessWatcher {
  public:
    /// Before the instruction does anything: an engine takes it up, a dispatcher comes to a fence,
    /// the scalar core executes it.
    virtual void started(Actor actor, const ProgramInstruction& instruction) = 0;
    virtual void finished(Actor actor, const ProgramInstruction& instruction) = 0;

  protected:
    ~StepObserver() = default;
};

}  // namespace reef::edgetpu::sim
