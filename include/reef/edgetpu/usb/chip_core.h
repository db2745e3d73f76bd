// What is behind the USB unit of a simulated Edge TPU.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/run_watch.h"
#include "reef/edgetpu/transfers.h"

namespace reef::edgetpu::usb {

/// What the chip tells the host besides output bytes.
struct ChipEvent {
    Tag tag = Tag::interrupt_0;
    std::uint64_t address = 0;  ///< of a transfer that the chip asks for; 0 for interrupts
    std::uint32_t size = 0;     ///< its bytes
};

/// The chip proper: takes streams of bytes by tag, gives output bytes and events. Called by one
/// thread at a time.
class ChipCore {
  public:
    ChipCore() = default;
    ChipCore(const ChipCore&) = delete;
    ChipCore& operator=(const ChipCore&) = delete;
    virtual ~ChipCore() = default;

    /// The chip loses its program and parameters.
    virtual void reset() = 0;
    /// Bytes arrived for a stream; a transfer may arrive in several pieces. On an error the chip
    /// stops: it takes and gives nothing until reset().
    [[nodiscard]] virtual Status receive(Tag tag, Bytes bytes) = 0;
    /// Moves output bytes that are ready to `room`, up to the end of one packet; 0 when there are
    /// none.
    [[nodiscard]] virtual std::size_t take_output(MutableBytes room) = 0;
    /// Of every descriptor that the chip fires; which of them reach the host is up to the USB unit.
    [[nodiscard]] virtual std::optional<ChipEvent> take_event() = 0;
    // Registers, by offset. The stick keeps what is written; these are for those that do something.
    /// Of a register whose value is the chip's own; nothing for the others.
    [[nodiscard]] virtual std::optional<std::uint64_t> read_register(
        std::uint32_t /*offset*/) const {
        return std::nullopt;
    }
    virtual void write_register(std::uint32_t /*offset*/, std::uint64_t /*value*/) {}
    /// Who may end what the chip works on; null: nobody. An end is an error, as any that stops it.
    virtual void watch(const RunWatch* /*watch*/) {}
    /// There is no program to run.
    [[nodiscard]] virtual bool idle() const { return true; }
    /// Why the chip stopped, or what its program waits for; empty when it waits for a program.
    [[nodiscard]] virtual std::string standstill() const { return {}; }
};

/// What a NullCore knows of the programs that it will be given. May grow while the core works; any
/// thread.
class NullPrograms {
  public:
    /// Errors: those of plan_transfers; unsupported when hints are not complete.
    [[nodiscard]] Status add(std::span<const Executable> executables);

  private:
    friend class NullCore;
    struct Known {
        Executable executable;
        TransferPlan plan;
    };
    mutable std::mutex mutex_;
    std::deque<Known> known_;   ///< which stay where they are
    bool sizes_differ_ = true;  ///< of the first bitstreams
};

/// A core that computes nothing and answers at once: byte i of its output stream is (7 * i + 3)
/// mod 256. It knows when a run is complete from the DMA hints of the executables that it is given.
class NullCore final : public ChipCore {
  public:
    explicit NullCore(std::shared_ptr<const NullPrograms> programs)
        : programs_(std::move(programs)) {}
    /// One that is given no others. Errors: those of NullPrograms::add().
    [[nodiscard]] static Result<std::unique_ptr<NullCore>> of(
        std::span<const Executable> executables);

    void reset() override;
    [[nodiscard]] Status receive(Tag tag, Bytes bytes) override;
    [[nodiscard]] std::size_t take_output(MutableBytes room) override;
    [[nodiscard]] std::optional<ChipEvent> take_event() override;
    [[nodiscard]] bool idle() const override { return running_ == nullptr; }

  private:
    using Known = NullPrograms::Known;
    struct Packet {
        std::size_t size = 0;
        std::size_t place = 0;  ///< of its first byte in the output stream
    };
    void begin_program();
    [[nodiscard]] const Known* recognise() const;
    void advance();

    std::shared_ptr<const NullPrograms> programs_;
    // What was known when the first bytes of a program came.
    std::size_t known_ = 0;
    bool sizes_differ_ = true;
    const Known* running_ = nullptr;
    std::size_t step_ = 0;
    std::size_t received_[4] = {};               ///< bytes that no step has taken, by tag
    std::vector<std::byte> first_instructions_;  ///< while the executable is unknown
    std::vector<Packet> packets_;                ///< the next one first
    std::size_t produced_ = 0, taken_ = 0;       ///< output bytes, since the reset
    struct Event {
        ChipEvent event;
        std::size_t behind = 0;  ///< output bytes
    };
    std::vector<Event> events_;
};

}  // namespace reef::edgetpu::usb
