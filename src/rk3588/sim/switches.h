// What public facts leave open about the chip, as named assumptions.
#pragma once

#include <cstdint>

namespace reef::rk3588::sim {

struct Switches {
    /// Lanes of the last block of weights where a direct int8 convolution has 17 to 31 channels.
    enum class Lanes : std::uint8_t {
        padded,  ///< 32, and the sums of features run over 32
        real,    ///< as many as DATAIN_CHANNEL_REAL says: an independent driver's streams
    };
    Lanes lanes = Lanes::padded;

    /// Which byte of PAD_VALUE odd channels below 32 of a direct convolution see. In depthwise
    /// convolutions it is the second one, as a real chip's border bytes show.
    enum class PadLanes : std::uint8_t { first_byte, second_byte };
    PadLanes direct_pad_lanes = PadLanes::first_byte;

    /// What the output converter does with CVT_ROUND.
    enum class OutputRounding : std::uint8_t {
        by_register,   ///< as the manual says
        half_to_even,  ///< always
        half_away,     ///< always
    };
    OutputRounding output_rounding = OutputRounding::by_register;

    /// BS operands of depthwise convolutions with factors: 64 bytes for 8 channels, or 48 without
    /// the correction's.
    enum class DepthwiseOperands : std::uint8_t { bytes_64, bytes_48 };
    DepthwiseOperands depthwise_operands = DepthwiseOperands::bytes_64;

    /// An int8 average of the pooling unit.
    enum class AverageRounding : std::uint8_t { half_to_even, down };
    AverageRounding average_rounding = AverageRounding::half_to_even;

    /// A function between two entries of its table, and beyond the table's ends.
    enum class Interpolation : std::uint8_t { half_away, down };
    Interpolation interpolation = Interpolation::half_away;

    /// Which surfaces of a cube go to memory where the arrays make more channels than the model
    /// has.
    enum class Planes : std::uint8_t {
        of_model,  ///< those of ORIG_CHANNEL
        all,       ///< those of CHANNEL; what they hold is not known: here OFFSET_PEND
    };
    Planes planes = Planes::of_model;
};

}  // namespace reef::rk3588::sim
