// A simulated Edge TPU: runs compiled programs instruction by instruction, from their bytes alone.
//
// What it computes is what the instructions say: nothing of the model that was compiled is known to
// it. Engines are ordered by the chip's own synchronisation (issue order, counters, fences, buses).
// What is not modelled stops the run with its name and place. docs/edgetpu-isa.md says how well
// each field is known; docs/simulator.md lists the assumptions that no program decides.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/run_watch.h"

namespace reef::edgetpu {

/// Which engines execute tensor instructions. They give the same bytes.
enum class EngineKind : std::uint8_t {
    plain,  ///< reads like the specification, one step at a time
    fast,   ///< many steps at a time, with vectors; instructions that it does not know run plain
};

struct SimulatorOptions {
    EngineKind engine = EngineKind::fast;
    /// Engines advance in random order and by random amounts, from this seed; nothing: always in
    /// the same order, which takes data as soon as they are there.
    std::optional<std::uint64_t> random_seed = std::nullopt;
    /// Collects findings, with the plain engines and at several times their cost.
    bool strict = false;
    /// Steps (scalar instructions and visits of loop nests) after which a program is stopped: 2^40
    /// multiply-adds for a program of convolutions, hundreds of times those of any known one.
    std::uint64_t most_steps = std::uint64_t{1} << 32U;
    /// The scalar core's alone: half a second of the chip, far above every known program; an
    /// endless loop ends in seconds. Strict runs, which remember each of them, stop at 2^20.
    std::uint64_t most_scalar_instructions = std::uint64_t{1} << 28U;
    /// 1 to 256, that compute tiles side by side. More than one changes no byte and no error;
    /// strict and random runs use one.
    int threads = 1;
};

enum class FindingKind : std::uint8_t {
    unwritten_read,      ///< since power-on
    outside_bound,       ///< used_narrow_memory_bytes_per_tile of the executable
    row_never_read,      ///< a parameter row that was loaded
    read_twice,          ///< a FIFO unit, or a cached row by two instructions of a program
    overwritten_unread,  ///< a parameter row or FIFO unit
    left_over,           ///< messages, words, notifications at the end of a program
    hazard,              ///< two accesses that no synchronisation orders, right as they may be here
};
/// For people: "reads what nothing wrote".
[[nodiscard]] std::string_view to_string(FindingKind kind);
/// For programs: the enumerator, "unwritten_read".
[[nodiscard]] std::string_view identifier_of(FindingKind kind);

/// What a program did, or may do in another order of its engines, that a right one would not.
struct Finding {
    FindingKind kind{};
    std::string memory;            ///< or what was left over
    std::uint32_t address = 0;     ///< the first: bytes of narrow memory, else words, rows, units
    std::uint16_t tiles = 0;       ///< bit t: tile t; none: the scalar core
    std::string instruction;       ///< "word 0x0a7 mac"; empty: none in particular
    std::string other;             ///< the second instruction of a hazard
    std::uint64_t times = 1;       ///< accesses, or pieces left over
    std::uint64_t not_listed = 0;  ///< further findings for which the list had no place
};
[[nodiscard]] std::string message(const Finding& finding);

/// One chip with its memories. Programs of several packages can share it, as on a stick.
class Simulator {
  public:
    explicit Simulator(const SimulatorOptions& options = {});
    Simulator(Simulator&&) noexcept;
    Simulator& operator=(Simulator&&) noexcept;
    ~Simulator();

    /// Of the last SimulatedPackage::run(), if options.strict.
    [[nodiscard]] std::span<const Finding> findings() const;

    struct Chip;
    [[nodiscard]] Chip& chip() { return *chip_; }

  private:
    std::unique_ptr<Chip> chip_;
};

/// A package made ready to run on a simulated chip.
class SimulatedPackage {
  public:
    /// The package's bytes stay shared. Errors: unsupported ("not modelled: ...", other chips than
    /// the Edge TPU, several chips), bad_input for programs that contradict themselves.
    [[nodiscard]] static Result<SimulatedPackage> prepare(const Package& package);
    SimulatedPackage(SimulatedPackage&&) noexcept;
    SimulatedPackage& operator=(SimulatedPackage&&) noexcept;
    ~SimulatedPackage();

    /// The executable that computes: its inputs and outputs are the package's.
    [[nodiscard]] const Executable& executable() const;

    /// One inference. Parameters are loaded when the chip does not hold this package's: after
    /// another token's, and always when the token is 0.
    /// `inputs` and `outputs` are host tensors (NHWC, tensor_bytes() of each layer) in the order of
    /// executable().inputs and .outputs.
    /// Errors: bad_argument for sizes; bad_input when the program stops (fault, deadlock), with
    /// tile, word and cause; unsupported, "not modelled: ..."; those of `watch`, after which the
    /// chip's parameters are loaded again.
    [[nodiscard]] Status run(Simulator& simulator, std::span<const Bytes> inputs,
                             std::span<const MutableBytes> outputs,
                             const RunWatch* watch = nullptr);

  private:
    struct Impl;
    explicit SimulatedPackage(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace reef::edgetpu
