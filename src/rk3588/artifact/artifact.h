// A compiled program: command words, packed constants, and where tensors stand in memory. It is the
// custom options of an operator `reef-rk3588`; schema/rk3588.fbs is its format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/model/graph.h"
#include "rk3588/stream/task.h"

namespace reef::rk3588 {

inline constexpr std::string_view custom_operator_name = "reef-rk3588";
/// The newest; programs that need no more are of an older one.
inline constexpr std::uint32_t artifact_version = 3;

/// Memory that a program needs; addresses inside it are offsets until it is loaded.
enum class Area : std::uint8_t { commands, constants, activations };
inline constexpr std::size_t area_count = 3;

/// The command word's value is an offset in an area.
struct Relocation {
    std::uint32_t word = 0;
    Area area = Area::commands;
    friend bool operator==(const Relocation&, const Relocation&) = default;
};

struct TaskPlace {
    std::uint32_t first_word = 0;
    std::uint32_t words = 0;  ///< tail included
    friend bool operator==(const TaskPlace&, const TaskPlace&) = default;
};

/// How the rows of an image of few channels stand beside each other in an atom: strips of them, one
/// for some of its lanes each. Row r of strip s is row s * step + r - top of the image; outside of
/// the image every channel is `fill`, int8. Lane s * channels + c is channel c of strip s.
struct Fold {
    std::uint32_t strips = 1, rows = 0, step = 0, top = 0;
    std::uint8_t fill = 0;
    friend bool operator==(const Fold&, const Fold&) = default;
};

/// int8 in memory, [channel / 16][row][column][channel % 16], unless it is folded.
struct Cube {
    std::uint32_t offset = 0;  ///< in the activations, bytes
    std::uint32_t height = 0, width = 0, channels = 0;
    bool flipped = false;  ///< bytes of the tensor, uint8, have their sign bit flipped
    std::optional<Fold> fold{};

    [[nodiscard]] std::uint64_t atoms() const;  ///< lanes in units of 16
    [[nodiscard]] std::uint32_t rows() const { return fold ? fold->rows : height; }
    [[nodiscard]] std::uint32_t lanes() const { return fold ? fold->strips * channels : channels; }
    [[nodiscard]] std::uint64_t surface_bytes() const;
    [[nodiscard]] std::uint64_t bytes() const { return atoms() * surface_bytes(); }
    [[nodiscard]] std::uint64_t elements() const {
        return std::uint64_t{height} * width * channels;
    }
    friend bool operator==(const Cube&, const Cube&) = default;
};

/// An operator of the plain model, and the tasks that compute it.
struct ArtifactOperator {
    std::uint32_t index = 0;  ///< in the plain model
    std::string name;
    std::uint32_t first_task = 0, tasks = 0;
    std::vector<Cube> inputs;
    Cube output;
    friend bool operator==(const ArtifactOperator&, const ArtifactOperator&) = default;
};

/// How the program does the work of an operator without tasks of its own.
enum class Absorption : std::uint8_t {
    copied,   ///< its output has its input's bytes
    windows,  ///< the windows of what reads it do
    sum,      ///< another operator adds to its sums, which are neither rounded nor stored
    table,    ///< another operator's table has its results, too, which are not stored
};
struct AbsorbedOperator {
    std::uint32_t index = 0;  ///< in the plain model
    std::string name;
    Absorption how = Absorption::copied;
    std::uint32_t into = 0;  ///< of a sum and a table: the other operator, in the plain model
    friend bool operator==(const AbsorbedOperator&, const AbsorbedOperator&) = default;
};

/// A form that the program uses and that no stream of a real RK3588 has shown in int8.
struct UnprovenForm {
    std::string what;
    std::size_t operators = 0;
    friend bool operator==(const UnprovenForm&, const UnprovenForm&) = default;
};

/// Tasks that one core runs one after the other.
struct Part {
    std::uint32_t first_task = 0, tasks = 0;
    friend bool operator==(const Part&, const Part&) = default;
};
/// What runs at once, part n on core n, at most one for each core; first parts have at least as
/// many tasks as later ones. A barrier stands behind it.
using Stage = std::vector<Part>;

struct Artifact {
    std::uint32_t activation_bytes = 0;
    /// The first ones, which are meant for the chip's SRAM; elsewhere they are right, too.
    std::uint32_t sram_bytes = 0;
    SharedBytes constants;
    /// Tasks, each at a multiple of 64 bytes and chained to the next one.
    std::vector<std::uint64_t> commands;
    std::vector<Relocation> relocations;  ///< ascending
    std::vector<TaskPlace> tasks;
    std::vector<Cube> inputs, outputs;  ///< as the operator's tensors
    std::vector<ArtifactOperator> operators;
    std::vector<Stage> stages{};  ///< none: the operators one after the other on one core
    std::vector<AbsorbedOperator> absorbed{};
    std::string requantisation{};  ///< how it was compiled: "tflite, assumes nrdma"
    std::vector<UnprovenForm> unproven{};
    friend bool operator==(const Artifact&, const Artifact&) = default;
};

/// What runs one after the other, on as many cores as the program is made for.
[[nodiscard]] std::vector<Stage> stages_of(const Artifact& artifact);
/// The most cores of a stage.
[[nodiscard]] std::size_t cores_of(const Artifact& artifact);
/// "operator 3 CONV_2D of the plain model": whose tasks run in the stage.
[[nodiscard]] std::string operators_of(const Artifact& artifact, const Stage& stage);

/// As its words say, with offsets in place of addresses. Errors: those of read_task(), which words
/// of an artifact that was read have not.
[[nodiscard]] Result<Task> task_of(const Artifact& artifact, std::size_t number);

/// Of what one of its tasks moves, the bytes of activations in the chip's SRAM.
[[nodiscard]] std::uint64_t bytes_in_sram(const Task& task, const Artifact& artifact);

[[nodiscard]] bool is_compiled(const model::Operator& op);

/// Of the format that it is written in: the oldest that has all that it says.
[[nodiscard]] std::uint32_t version_of(const Artifact& artifact);
[[nodiscard]] std::vector<std::byte> write_artifact(const Artifact& artifact);

/// Errors, with the place inside: bytes that are no such program or were cut off; a newer version,
/// by its number; tasks, relocations or cubes that lie outside of their areas; words that are no
/// task. What is read is safe to load; what it computes is not looked at.
[[nodiscard]] Result<Artifact> read_artifact(Bytes bytes);

/// The commands with addresses in place of offsets. Precondition: the areas end within 32 bits.
[[nodiscard]] std::vector<std::uint64_t> relocated(const Artifact& artifact,
                                                   const std::uint32_t (&base)[area_count]);
/// The same, to memory that has room for them; allocates nothing. Precondition of both: the
/// relocations' words rise.
void write_relocated(const Artifact& artifact, const std::uint32_t (&base)[area_count],
                     MutableBytes memory);

/// From a tensor's elements, [row][column][channel], to the cube's bytes, and back; lanes behind
/// the last channel are written as 0. Precondition: both have their size; what is read is not
/// folded.
void to_cube(const Cube& cube, Bytes tensor, MutableBytes memory);
void from_cube(const Cube& cube, Bytes memory, MutableBytes tensor);

}  // namespace reef::rk3588
