// The engines of the scalar core: host streams into FIFOs, FIFOs onto ring A, rings to the host or
// into the relay FIFO.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "edgetpu/sim/program/program.h"
#include "edgetpu/sim/tile/tile.h"
#include "edgetpu/sim/watch/monitor.h"
#include "scalar_core.h"

namespace reef::edgetpu::sim {

/// Addresses of a FIFO wrap around.
template <std::uint32_t units>
[[nodiscard]] constexpr std::uint32_t index_in_fifo(std::int32_t address) {
    static_assert(std::has_single_bit(units));
    return static_cast<std::uint32_t>(address) & (units - 1);
}

/// A FIFO's memory, addressed in units.
template <std::size_t bytes_of_unit, std::uint32_t units>
class FifoMemory {
  public:
    FifoMemory() : bytes_(bytes_of_unit * units) {}

    /// The unit at the address and those behind it, up to the memory's end.
    [[nodiscard]] std::span<std::uint8_t> from(std::int32_t address) {
        return std::span(bytes_).subspan(bytes_of_unit * index_in_fifo<units>(address));
    }

  private:
    std::vector<std::uint8_t> bytes_;
};

/// Where the host's data come from and go to.
class HostPort {
  public:
    /// Copies the next bytes of the stream into `unit`, padded with zeros where a transfer ends
    /// within it. Returns false when nothing has arrived.
    virtual bool take(bool activations, std::span<std::uint8_t> unit) = 0;
    /// The same for as many whole units of `unit_bytes` as have arrived, one after the other, and
    /// fit; returns how many.
    virtual std::size_t take_units(bool activations, std::size_t unit_bytes,
                                   std::span<std::uint8_t> units) {
        std::size_t taken = 0;
        for (; units.size() >= unit_bytes; units = units.subspan(unit_bytes), ++taken)
            if (!take(activations, units.first(unit_bytes))) break;
        return taken;
    }
    /// Whether give() may be called with so many bytes.
    [[nodiscard]] virtual bool has_room(std::size_t bytes) const = 0;
    [[nodiscard]] virtual Status give(std::span<const std::uint8_t> units) = 0;
    /// The scalar core asks for a transfer.
    [[nodiscard]] virtual Status fire(const DmaDescriptor& descriptor) = 0;
    /// A stream of instructions has ended. The next one comes on the way of the bytes that were
    /// asked for, behind them. Errors: bad_input when transfers are not complete: no known program
    /// leaves one open there.
    [[nodiscard]] virtual Status end_stream() = 0;

  protected:
    ~HostPort() = default;
};

struct ScalarState {
    ScalarCounters counters;
    FifoMemory<parameter_unit_bytes, parameter_fifo_units> parameters;
    FifoMemory<activation_unit_bytes, activation_fifo_units> activations;
    /// Both rings end here: what arrives first is received first.
    RingQueue arrived;
    /// The relay FIFO is the scalar core's memory.
    std::span<std::uint32_t> memory;

    [[nodiscard]] static std::size_t unit_bytes(Fifo fifo) {
        if (fifo == Fifo::parameters_) return parameter_unit_bytes;
        return fifo == Fifo::activations_ ? activation_unit_bytes : relay_unit_bytes;
    }
    /// The unit at the address and those behind it, up to the FIFO's end.
    [[nodiscard]] std::span<std::uint8_t> from(Fifo fifo, std::int32_t address) {
        if (fifo == Fifo::parameters_) return parameters.from(address);
        if (fifo == Fifo::activations_) return activations.from(address);
        return std::span(reinterpret_cast<std::uint8_t*>(memory.data()), memory.size_bytes())
            .subspan(relay_unit_bytes * index(fifo, address));
    }
    [[nodiscard]] std::span<std::uint8_t> unit(Fifo fifo, std::int32_t address) {
        return from(fifo, address).first(unit_bytes(fifo));
    }
    [[nodiscard]] static std::uint32_t index(Fifo fifo, std::int32_t address) {
        if (fifo == Fifo::parameters_) return index_in_fifo<parameter_fifo_units>(address);
        return fifo == Fifo::activations_ ? index_in_fifo<activation_fifo_units>(address)
                                          : index_in_fifo<spec::scalar_memory_words>(address);
    }
};

/// As Work, for the scalar core's engines.
struct ScalarEngineWork {
    ScalarState& scalar;
    Fabric& fabric;
    HostPort& host;
    std::uint64_t budget;
    Blocked& blocked;              ///< the engine's: nothing at first
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
    /// Visits from the cursor's on that follow each other before one that waits or the end of a
    /// pass, at most so many. Precondition: no wait holds back the first. Strict runs look at every
    /// visit.
    template <std::size_t most>
    [[nodiscard]] std::uint32_t run(const Waits<most>& waits, const NestCursor& at,
                                    std::size_t most_of_them) const {
        if (witness) return 1;
        const std::uint64_t visits = std::min<std::uint64_t>(
            {at.left_in_step(), std::max<std::uint64_t>(budget, 1), most_of_them});
        if (waits.least_level > 0 || visits == 1) return static_cast<std::uint32_t>(visits);
        return static_cast<std::uint32_t>(
            visits_unheld(waits.view(), false, at, scalar.counters, visits));
    }
    /// The same of a FIFO's units that lie one behind the other in its memory.
    template <std::size_t most>
    [[nodiscard]] std::uint32_t run(const Waits<most>& waits, const NestCursor& at,
                                    std::size_t most_of_them, Fifo fifo) {
        if (at.nest().step[0] != 1) return 1;
        const std::size_t left =
            scalar.from(fifo, at.address()).size() / ScalarState::unit_bytes(fifo);
        return run(waits, at, std::min(most_of_them, left));
    }
    void spend(std::uint64_t visits) { budget -= std::min(budget, visits); }
    void count(unsigned counter, unsigned events = 1) {
        if (events == 0) return;
        scalar.counters.count(counter, events);
        if (witness) witness.monitor->scalar_counted(witness.actor, counter);
    }
    /// What holds back the engine's next visit, whether this turn brought it forward or not.
    Outcome wait(Blocked::On on, bool moved) {
        blocked = {on, {}};
        return moved ? Outcome::moved : Outcome::waiting;
    }
    Outcome wait(const Unmet& unmet, bool moved) {
        blocked = {Blocked::On::counter, unmet};
        return moved ? Outcome::moved : Outcome::waiting;
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
    std::uint32_t send_units(ScalarEngineWork& work);
    std::uint32_t copy_units(ScalarEngineWork& work);

    const RingPush* op_;
    NestCursor src_;
    std::array<std::uint8_t, row_bytes + parameter_unit_bytes> buffer_;  ///< so many are filled
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
    [[nodiscard]] std::uint32_t store_units(ScalarEngineWork& work);
    void take_message(ScalarEngineWork& work);

    const RingPop* op_;
    NestCursor dst_;
    std::array<std::uint8_t, row_bytes> message_;  ///< the first size_ bytes
    std::size_t size_ = 0;
    std::size_t at_ = 0;
};

}  // namespace reef::edgetpu::sim
