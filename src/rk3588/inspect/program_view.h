// What a compiled program is made of, read off its words, as text and documents show it.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "rk3588/artifact/artifact.h"
#include "rk3588/stream/task_work.h"

namespace reef::rk3588 {

struct ImageShape {
    std::uint64_t height = 0, width = 0, channels = 0;
};
[[nodiscard]] std::string text_of(const ImageShape& shape);

/// One task.
struct TaskView {
    std::size_t stage = 0, core = 0;
    std::string op;    ///< "3 CONV_2D", with its index in the plain model
    std::string kind;  ///< "convolution", "pool", ...
    ImageShape in, out;
    std::string window;  ///< "3x3 stride 2"; empty without one
    std::uint32_t data_banks = 0, weight_banks = 0;
    Work work;
    std::uint64_t sram_bytes = 0;  ///< of those moved, to and from the chip's SRAM
    std::uint64_t cycles = 0;      ///< estimated
};

/// A tensor in the activations, from the stage that writes it to the last one that reads it.
struct TensorView {
    std::string name;  ///< "in0", "3 CONV_2D"
    Cube cube;
    std::size_t first_stage = 0, last_stage = 0;
};

struct ProgramView {
    std::vector<TaskView> tasks;
    std::vector<TensorView> tensors;  ///< in the order in which they are written
    std::array<std::size_t, area_count> relocations{};
    BytesMoved bytes;
    std::uint64_t sram_bytes = 0;  ///< of those, to and from the chip's SRAM
    std::uint64_t cycles = 0;      ///< of the stages one after the other, estimated
};
/// Of an artifact that was read.
[[nodiscard]] Result<ProgramView> view_of(const Artifact& artifact);

[[nodiscard]] std::string_view name_of(Area area);
/// How an operator without tasks is done.
[[nodiscard]] std::string text_of(const AbsorbedOperator& op);

}  // namespace reef::rk3588
