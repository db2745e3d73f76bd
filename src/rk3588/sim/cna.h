// CNA: features and weights from memory into the CBUF, windows of them to CORE.
#pragma once

#include <cstdint>
#include <vector>

#include "rk3588/sim/memory.h"
#include "rk3588/sim/task_data.h"
#include "rk3588/sim/watched_registers.h"

namespace reef::rk3588::sim {

/// Weights that stay in the banks of the CBUF between tasks.
struct StoredWeights {
    bool valid = false;
    unsigned banks = 0;
    std::vector<std::byte> bytes;
};

class Cna {
  public:
    explicit Cna(const Memory& memory) : memory_(memory) {}

    /// The convolution that the registers describe. Its weights refer to the CBUF and hold until
    /// the next call. Errors, by register or by what is read: modes that are not modelled, sizes
    /// that contradict each other, more features or weights than the banks take, WEIGHT_REUSE of
    /// weights that were never loaded, reads outside of memory.
    [[nodiscard]] Result<Convolution> run(WatchedRegisters& registers, Traffic& traffic);

    void reset() { stored_ = {}; }

  private:
    struct Shape;
    [[nodiscard]] Result<Shape> read_shape(WatchedRegisters& registers) const;
    [[nodiscard]] Status check_banks(WatchedRegisters& registers, const Shape& shape) const;
    [[nodiscard]] Status fetch_cube(WatchedRegisters& registers, const Shape& shape,
                                    Features& features, Traffic& traffic) const;
    [[nodiscard]] Status fetch_picture(WatchedRegisters& registers, const Shape& shape,
                                       Features& features, Traffic& traffic) const;
    [[nodiscard]] Status load_weights(WatchedRegisters& registers, const Shape& shape,
                                      Traffic& traffic);

    const Memory& memory_;
    StoredWeights stored_;
};

}  // namespace reef::rk3588::sim
