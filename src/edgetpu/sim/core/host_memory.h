// The host's memory as the chip's DMA sees it, when no USB lies between: descriptors are carried
// out at their addresses.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/edgetpu/package.h"
#include "scalar_engines.h"

namespace reef::edgetpu::sim {

/// Regions are those of with_base_addresses(): the upper half of an address tells which.
class HostMemory final : public HostPort {
  public:
    /// Refers to the executable. Errors: bad_input for layers with impossible sizes.
    [[nodiscard]] static Result<HostMemory> create(const Executable& executable);

    /// Forgets descriptors and what the chip sent; inputs and scratch memory stay.
    void begin_run();

    /// The layer's bytes, as they are sent or received.
    [[nodiscard]] MutableBytes input(std::size_t layer) { return inputs_[layer]; }
    [[nodiscard]] Bytes output(std::size_t layer) const { return outputs_[layer]; }

    bool take(bool activations, std::span<std::uint8_t> unit) override;
    std::size_t take_units(bool activations, std::size_t unit_bytes,
                           std::span<std::uint8_t> units) override;
    [[nodiscard]] bool has_room(std::size_t /*bytes*/) const override { return true; }
    [[nodiscard]] Status give(std::span<const std::uint8_t> unit) override;
    [[nodiscard]] Status fire(const DmaDescriptor& descriptor) override;
    [[nodiscard]] Status end_stream() override;

    /// What the chip asked for and did not take, and what its descriptors have room for and it did
    /// not send, in bytes.
    [[nodiscard]] std::uint64_t not_taken() const;
    [[nodiscard]] std::uint64_t not_sent() const;

  private:
    struct Pending {
        std::uint32_t region = 0;
        std::uint64_t offset = 0;
        std::uint64_t left = 0;
    };
    struct Queue {
        std::vector<Pending> all;
        std::size_t next = 0;
        [[nodiscard]] bool empty() const { return next == all.size(); }
        [[nodiscard]] Pending& front() { return all[next]; }
        [[nodiscard]] std::uint64_t left() const;
    };

    [[nodiscard]] Bytes readable(std::uint32_t region) const;
    [[nodiscard]] MutableBytes writable(std::uint32_t region);
    [[nodiscard]] Status place_early();
    /// What the chip sent that no descriptor has a place for.
    [[nodiscard]] std::uint64_t not_placed() const { return early_.size() - early_at_; }

    SharedBytes parameters_;
    std::vector<std::byte> scratch_;
    std::vector<std::vector<std::byte>> inputs_;
    std::vector<std::vector<std::byte>> outputs_;
    std::array<Queue, 2> to_chip_;  ///< parameters, activations
    Queue from_chip_;
    std::vector<std::byte> early_;  ///< sent before its descriptor was fired
    std::size_t early_at_ = 0;
};

}  // namespace reef::edgetpu::sim
