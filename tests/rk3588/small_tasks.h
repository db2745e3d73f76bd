// Small programs for the simulated chip, with their memory.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "rk3588/regs/register_set.h"
#include "rk3588/sim/machine.h"

namespace reef::rk3588::test {

/// Of the DPU's function tables.
struct FunctionEntries {
    std::vector<std::int16_t> le, lo;
    /// The words that load them.
    [[nodiscard]] std::vector<std::uint64_t> words() const;
};

/// Buffers at addresses of their own, and tasks behind each other.
class SmallProgram {
  public:
    SmallProgram() = default;
    SmallProgram(const SmallProgram&) = delete;
    SmallProgram& operator=(const SmallProgram&) = delete;

    /// The address of a new buffer.
    std::uint32_t add(std::vector<std::byte> bytes);
    template <typename Number>
    std::uint32_t add_numbers(const std::vector<Number>& numbers) {
        const auto bytes = std::as_bytes(std::span(numbers));
        return add({bytes.begin(), bytes.end()});
    }
    [[nodiscard]] std::vector<std::byte>& at(std::uint32_t address) { return buffers_.at(address); }

    /// Runs one task with these registers. The machine and its CBUF stay for the next call.
    Result<sim::RunReport> run(const RegisterSet& registers, std::uint32_t blocks,
                               const sim::Switches& switches = {});
    /// The same with words that load function tables in front of the task's others: entries from
    /// the first one on.
    Result<sim::RunReport> run(const FunctionEntries& entries, const RegisterSet& registers,
                               std::uint32_t blocks, const sim::Switches& switches = {});

    /// The next run is a new machine's.
    void restart() { machine_.reset(); }

    sim::Memory memory;

  private:
    std::map<std::uint32_t, std::vector<std::byte>> buffers_;
    std::uint32_t next_ = 0x1000;
    std::unique_ptr<sim::Machine> machine_;
};

/// An int8 convolution whose requantisation is the identity with saturation: results are sums.
struct SmallConvolution {
    unsigned width = 4, height = 4, channels = 16, kernels = 32;
    unsigned kernel_width = 1, kernel_height = 1, stride = 1, dilation = 1;
    unsigned pad_left = 0, pad_top = 0, pad_right = 0, pad_bottom = 0;
    bool depthwise = false;
    std::uint32_t pad_value = 0;
    std::int32_t weight_zero = 0;
    unsigned data_banks = 1, weight_banks = 11;
    std::uint32_t features = 0, weights = 0, biases = 0, results = 0;  ///< addresses

    [[nodiscard]] unsigned out_width() const;
    [[nodiscard]] unsigned out_height() const;
    /// Lanes of features and weights in memory.
    [[nodiscard]] unsigned lanes() const { return (channels + 15) / 16 * 16; }
    [[nodiscard]] unsigned results_channels() const { return depthwise ? channels : kernels; }
    [[nodiscard]] RegisterSet registers() const;
};

/// The DPU's and its reader's registers of a cube that comes from memory and goes there unchanged.
[[nodiscard]] RegisterSet flying_copy(unsigned width, unsigned height, unsigned channels,
                                      std::uint32_t from, std::uint32_t to);

/// The same through tables of five entries, LE's from -64 to 0 and LO's to 64, with slopes beyond
/// the outer ends and below LO.
[[nodiscard]] RegisterSet flying_function(unsigned width, unsigned height, unsigned channels,
                                          std::uint32_t from, std::uint32_t to);

/// Pooling of a cube of int8: a window of `kernel` pixels, no padding.
[[nodiscard]] RegisterSet pooling(unsigned width, unsigned height, unsigned channels,
                                  unsigned kernel, unsigned stride, std::uint32_t method,
                                  std::uint32_t from, std::uint32_t to);

}  // namespace reef::rk3588::test
