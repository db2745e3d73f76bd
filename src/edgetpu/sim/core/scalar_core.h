// The scalar core of the Edge TPU: what runs the program and feeds everything else.
//
// It executes bundles, branches, hardware loops, start, halt and end; the other scalar instructions
// (sync, infeed, ring_push, ring_pop) and all tile instructions belong to the machine around it,
// which skips them with pass(). What a step does outside of the core's own state is in its Effect.
//
// How far each reading is proved (docs/edgetpu-isa.md has the grades):
// - The four slots of a bundle read the registers as they were before it: the copying loops of
//   ssd_mobilenet_v1 segment 1 load a register in the bundle that writes it out.
// - A loop runs `count` passes of its body: the nine copies of that program move exactly the words
//   that scalar memory holds and that the DMA descriptor announces.
// - Comparisons are signed: 64-bit additions find their carry with "negative before and not
//   negative after", which unsigned comparisons could never see.
// - load.op 3 and store.op 3 address scalar memory with a register and count it up: every program
//   sets the register to the first word right before, and the counts end at the last word.
// - A load's register is never read by the bundle right after it, a function's by none of the two
//   bundles after it. Reading it there is refused.
// - Functions and conversions with a fraction occur in softmaxes alone. Their results are binary32
//   rounded to nearest; to_int rounds to nearest, ties to even. No data decide ties or last bits:
//   the bytes of the one model that has a plain partner are the same with them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reef/base/result.h"
#include "reef/edgetpu/isa.h"
#include "reef/edgetpu/transfers.h"
#include "reef_spec/edgetpu_isa.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu::sim {

inline constexpr std::size_t scalar_registers = 32;
inline constexpr std::size_t scalar_predicates = 8;
inline constexpr std::size_t descriptor_words = std::size(spec::descriptor_word_values);
using spec::scalar_memory_words;

/// A place in scalar memory, in words of 4 bytes.
struct ScalarAddress {
    std::uint32_t word = 0;
    friend bool operator==(const ScalarAddress&, const ScalarAddress&) = default;
};

/// A place in the host's memory.
struct HostAddress {
    std::uint64_t byte = 0;
    friend bool operator==(const HostAddress&, const HostAddress&) = default;
};

struct DmaDescriptor {
    HostAddress address;
    std::uint32_t bytes = 0;
    Tag tag{};  ///< not instructions: the host sends those unasked
    friend bool operator==(const DmaDescriptor&, const DmaDescriptor&) = default;
};

struct MemoryWrite {
    ScalarAddress address;
    std::uint32_t value = 0;
    friend bool operator==(const MemoryWrite&, const MemoryWrite&) = default;
};

/// What one scalar instruction did besides changing registers and predicates.
struct Effect {
    std::size_t next = 0;   ///< word of the instruction that comes next
    bool executed = true;   ///< false: the gate's predicate did not agree
    bool branched = false;  ///< next is not the instruction behind this one
    bool halted = false;    ///< the stream is over
    std::optional<DmaDescriptor> fired{};
    std::optional<std::uint32_t> to_host{};  ///< a word for the host output FIFO
    std::optional<MemoryWrite> written{};    ///< already in memory()
    std::optional<ScalarAddress> read{};     ///< of a load
};

/// Where and with which address a tile instruction runs, when registers have a say in it.
struct TileIssue {
    bool issued = true;       ///< false: the gate's predicate did not agree
    std::uint16_t tiles = 0;  ///< bit t: tile t
    /// Replaces the base of the source nest, in its units.
    std::optional<std::uint32_t> source_base{};
    friend bool operator==(const TileIssue&, const TileIssue&) = default;
};

class ScalarCore {
  public:
    ScalarCore();

    /// Goes to the first instruction of a stream. Registers, predicates and scalar memory stay.
    void begin_stream();
    /// Everything as after power-on: zero.
    void reset();

    /// Bundles, branches, loops, start, halt and end.
    [[nodiscard]] static bool executes(const Instruction& instruction);
    /// Executes the instruction at program_counter(); allocates nothing unless it fails.
    /// Precondition: executes(instruction), and it is the one at program_counter().
    /// Errors: unsupported, naming opcode, mode and word, for what no known program shows;
    /// bad_input for addresses outside of scalar memory.
    [[nodiscard]] Result<Effect> execute(const Instruction& instruction);
    /// Goes past an instruction that the machine executed.
    void pass(const Instruction& instruction);
    /// The same of `count` instructions that follow each other up to this one. Precondition: it
    /// ends before end_of_body().
    void pass_up_to(const Instruction& last, std::size_t count);
    /// Word behind the body of the loop that is being executed; nothing: there is none.
    [[nodiscard]] std::optional<std::size_t> end_of_body() const {
        return loop_.behind != 0 ? std::optional(loop_.behind) : std::nullopt;
    }

    /// Whether a scalar instruction's gate lets it run.
    [[nodiscard]] bool gate_open(const Instruction& instruction) const;

    /// Which tiles a tile instruction is for and which address it starts at.
    /// Errors: unsupported for register forms that no known program shows.
    [[nodiscard]] Result<TileIssue> issue(const Instruction& instruction) const;

    [[nodiscard]] std::size_t program_counter() const { return pc_; }
    [[nodiscard]] std::span<const std::uint32_t, scalar_registers> registers() const {
        return registers_;
    }
    [[nodiscard]] std::span<const bool, scalar_predicates> predicates() const {
        return predicates_;
    }
    /// For a debugger, between two instructions. Preconditions: they exist.
    void set_register(std::size_t number, std::uint32_t value) { registers_[number] = value; }
    void set_predicate(std::size_t number, bool value) { predicates_[number] = value; }
    /// ring_pop writes here unless its data go to the host, ring_push with source relay reads.
    [[nodiscard]] std::span<std::uint32_t, scalar_memory_words> memory() {
        return std::span<std::uint32_t, scalar_memory_words>(memory_);
    }
    [[nodiscard]] std::span<const std::uint32_t, scalar_memory_words> memory() const {
        return std::span<const std::uint32_t, scalar_memory_words>(memory_);
    }

  private:
    struct Loop {
        std::size_t first = 0;          ///< word of the body
        std::size_t behind = 0;         ///< word behind the body
        std::uint32_t passes_left = 0;  ///< besides the current one; 0 and behind 0: no loop
    };
    struct Writes;
    /// A register whose new value no known program reads yet.
    struct Pending {
        std::uint8_t number = 0;
        std::uint8_t bundles = 0;  ///< that must not read it; 0: any may
    };

    Result<Effect> bundle(const Instruction& instruction);
    Status load_slot(const Instruction& instruction, Writes& writes, Effect& effect) const;
    Status store_slot(const Instruction& instruction, Writes& writes, Effect& effect) const;
    Status fire(const Instruction& instruction, Effect& effect) const;
    Status alu_slot(const Instruction& instruction, Writes& writes) const;
    Status function_slot(const Instruction& instruction, Writes& writes) const;
    Result<Effect> branch(const Instruction& instruction);
    Result<Effect> start_loop(const Instruction& instruction);
    Status refuse_fresh(const Instruction& instruction, std::uint64_t reg) const;
    void advance(const Instruction& instruction);
    void age();

    std::array<std::uint32_t, scalar_registers> registers_{};
    std::array<bool, scalar_predicates> predicates_{};
    std::vector<std::uint32_t> memory_;
    std::array<std::uint32_t, descriptor_words> descriptor_{};
    std::size_t pc_ = 0;
    Loop loop_;
    Pending loaded_;
    Pending function_;
};

}  // namespace reef::edgetpu::sim
