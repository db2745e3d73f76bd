// The engines of the scalar core: host streams into FIFOs, FIFOs onto ring A, rings to the host or
// into the relay FIFO.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "edgetpu/sim/program/program.h"
#include "edgetpu/sim/tile/tile.h"
#include "edgetpu/sim/watch/monitor.h"
#include "scalar_core.h"

namespace reef::edgetpu::sim {

/// A FIFO's memory, addressed in units.
class FifoMemory {
  public:
    FifoMemory(std::size_t unit_bytes, std::uint32_t units)
        : unit_bytes_(unit_bytes), units_(units), bytes_(unit_bytes * units) {}

    [[nodiscard]] std::size_t unit_bytes() const { return unit_bytes_; }
    [[nodiscard]] std::size_t units() const { return units_; }
    /// Addresses wrap around.
    [[nodiscard]] std::span<std::uint8_t> unit(std::int32_t address) {
        const std::size_t at = static_cast<std::uint32_t>(address) % units_;
        return std::span(bytes_).subspan(at * unit_bytes_, unit_bytes_);
    }

  private:
    std::size_t unit_bytes_;
    std::uint32_t units_;
    std::vector<std::uint8_t> bytes_;
};

/// Where the host's data come from and go to.
class HostPort {
  public:
    /// Copies the next bytes of the stream into `unit`, padded with zeros where a transfer ends
    /// within it. Returns false when nothing has arrived.
    virtual bool take(bool activations, std::span<std::uint8_t> unit) = 0;
    /// Whether give() may be called with so many bytes.
    [[nodiscard]] virtual bool has_room(std::size_t bytes) const = 0;
    [[nodiscard]] virtual Status give(std::span<const std::uint8_t> units) = 0;
    /// The scalar core asks for a transfer.
    [[nodiscard]] virtual Status fire(const DmaDescriptor& descriptor) = 0;

  protected:
    ~HostPort() = default;
};

struct ScalarState {
    ScalarCounters counters;
    FifoMemory parameters{parameter_unit_bytes, parameter_fifo_units};
    FifoMemory activations{activation_unit_bytes, activation_fifo_units};
    /// Both rings end here: what arrives first is received first.
    RingQueue arrived;
    /// The relay FIFO is the scalar core's memory.
    std::span<std::uint32_t> memory;

    [[nodiscard]] std::size_t unit_bytes(Fifo fifo) const {
        if (fifo == Fifo::parameters_) return parameters.unit_bytes();
        return fifo == Fifo::activations_ ? activations.unit_bytes() : relay_unit_bytes;
    }
    [[nodiscard]] std::span<std::uint8_t> unit(Fifo fifo, std::int32_t address) {
        if (fifo == Fifo::parameters_) return parameters.unit(address);
        if (fifo == Fifo::activations_) return activations.unit(address);
        const auto word = static_cast<std::uint32_t>(address) % memory.size();
        return {reinterpret_cast<std::uint8_t*>(&memory[word]), relay_unit_bytes};
    }
    [[nodiscard]] std::uint32_t index(Fifo fifo, std::int32_t address) const {
        const std::size_t units = fifo == Fifo::parameters_    ? parameters.units()
                                  : fifo == Fifo::activations_ ? activations.units()
                                                               : memory.size();
        return static_cast<std::uint32_t>(static_cast<std::uint32_t>(address) % units);
    }
};

/// As Work, for the scalar core's engines.
struct ScalarEngineWork {
    ScalarState& scalar;
    Fabric& fabric;
    HostPort& host;
    std::uint64_t budget;
    Blocked blocked;
    std::unique_ptr<Fault> fault;  ///< null: none
    Witness witness{};

    template <std::size_t most>
    [[nodiscard]] std::optional<Unmet> unready(const Waits<most>& waits,
                                               const NestCursor& at) const {
        if (!at.at_pass_start(waits.least_level)) return std::nullopt;
        auto missing = unmet(waits.view(), false, at, scalar.counters);
        if (missing || !witness) return missing;
        for (const auto& wait : waits.view())
            if (!wait.destination && at.at_pass_start(wait.level))
                witness.monitor->scalar_waited(witness.actor, &wait, wait.counter,
                                               needed(wait, at));
        return missing;
    }
    /// Visits from the cursor's on that follow each other without a wait or the end of a pass
    /// before the last, at most so many. Strict runs look at every visit.
    template <std::size_t most>
    [[nodiscard]] std::uint32_t run(const Waits<most>& waits, const NestCursor& at,
                                    std::size_t most_of_them) const {
        if (witness || waits.least_level == 0) return 1;
        return static_cast<std::uint32_t>(std::min<std::uint64_t>(
            {at.left_in_pass(), std::max<std::uint64_t>(budget, 1), most_of_them}));
    }
    void spend(std::uint64_t visits) { budget -= std::min(budget, visits); }
    void count(unsigned counter, unsigned events = 1) {
        if (events == 0) return;
        scalar.counters.count(counter, events);
        if (witness) witness.monitor->scalar_counted(witness.actor, counter);
    }
    Outcome wait(Blocked::On on) {
        blocked = {on, {}};
        return Outcome::waiting;
    }
    Outcome wait(const Unmet& unmet) {
        blocked = {Blocked::On::counter, unmet};
        return Outcome::waiting;
    }
};

class InfeedEngine {
  public:
    explicit InfeedEngine(const Infeed& op) : op_(&op), dst_(op.dst) {}
    Outcome advance(ScalarEngineWork& work);
    void each_nest(auto&& tell) const { tell("dst", dst_); }

  private:
    const Infeed* op_;
    NestCursor dst_;
};

class RingPushEngine {
  public:
    explicit RingPushEngine(const RingPush& op) : op_(&op), src_(op.src) {}
    Outcome advance(ScalarEngineWork& work);
    void each_nest(auto&& tell) const { tell("src", src_); }

  private:
    bool flush(ScalarEngineWork& work);
    std::uint32_t copy_units(ScalarEngineWork& work);

    const RingPush* op_;
    NestCursor src_;
    std::array<std::uint8_t, row_bytes + parameter_unit_bytes> buffer_{};
    std::size_t filled_ = 0;
    unsigned producers_due_ = 0;
};

class RingPopEngine {
  public:
    explicit RingPopEngine(const RingPop& op) : op_(&op), dst_(op.dst) {}
    Outcome advance(ScalarEngineWork& work);
    void each_nest(auto&& tell) const { tell("dst", dst_); }

  private:
    [[nodiscard]] std::uint32_t give_units(ScalarEngineWork& work);
    void store_unit(ScalarEngineWork& work);
    void take_message(ScalarEngineWork& work);

    const RingPop* op_;
    NestCursor dst_;
    std::array<std::uint8_t, row_bytes> message_{};
    std::size_t size_ = 0;
    std::size_t at_ = 0;
};

}  // namespace reef::edgetpu::sim
