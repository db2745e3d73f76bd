#include "rk3588/sim/core.h"

#include <fmt/format.h>

#include <cstring>

#include "rk3588/sim/arithmetic.h"

namespace reef::rk3588::sim {
namespace {

std::unexpected<Error> refused_by_core(std::string what) {
    return fail(Cause::bad_input, std::move(what), "CORE");
}

/// Lanes of a channel number that weights and sums run over.
unsigned walked_lanes(const Convolution& c, const Switches& switches) {
    const auto& f = c.features;
    const bool real = switches.lanes == Switches::Lanes::real && c.elements == Elements::int8;
    const unsigned whole = c.depthwise ? spec::int8_depthwise_lanes : spec::kernel_lanes;
    // In a longer stream every block but the last is whole, and the last one ends on an atom.
    if (real && f.channels <= whole && f.real < f.channels && f.real > spec::atom_bytes)
        return f.real;
    return f.channels;
}

/// The value outside of the picture, by channel.
template <typename Value>
std::vector<Value> padding(const Convolution& c, const Switches& switches) {
    std::vector<Value> out(c.features.channels);
    const std::uint32_t value = c.windows.pad_value;
    for (unsigned i = 0; i < out.size(); ++i) {
        if constexpr (std::is_same_v<Value, float>) {
            out[i] = float_of_half(static_cast<std::uint16_t>(value));
        } else {
            const bool second =
                i % 2 == 1 && i % 64 < 32 &&
                (c.depthwise || switches.direct_pad_lanes == Switches::PadLanes::second_byte);
            out[i] = static_cast<std::int8_t>(second ? value >> 8 : value);
        }
    }
    return out;
}

/// Weights as numbers, [group of kernels][tap][channel][kernel of the group].
template <typename Value>
std::vector<Value> direct_weights(const Convolution& c, unsigned lanes, unsigned group) {
    const auto& w = c.windows;
    const unsigned taps = w.kernel_width * w.kernel_height;
    const unsigned groups = (c.kernels + group - 1) / group;
    std::vector<Value> out(std::size_t{groups} * taps * c.features.channels * group);
    const std::byte* from = c.weights.data();
    for (unsigned g = 0; g < groups; ++g) {
        const unsigned kernels = std::min(group, c.kernels - g * group);
        for (unsigned first = 0; first < lanes; first += spec::kernel_lanes) {
            const unsigned block = std::min<unsigned>(spec::kernel_lanes, lanes - first);
            for (unsigned tap = 0; tap < taps; ++tap) {
                Value* to = out.data() +
                            (std::size_t{g * taps + tap} * c.features.channels + first) * group;
                for (unsigned k = 0; k < kernels; ++k)
                    for (unsigned lane = 0; lane < block; ++lane) {
                        Value& weight = to[std::size_t{lane} * group + k];
                        if constexpr (std::is_same_v<Value, float>) {
                            std::uint16_t half;
                            std::memcpy(&half, from, sizeof half);
                            weight = float_of_half(half);
                            from += sizeof half;
                        } else {
                            weight = static_cast<std::int8_t>(*from++);
                        }
                    }
            }
        }
    }
    return out;
}

/// The same of a depthwise convolution, [tap][channel].
template <typename Value>
std::vector<Value> depthwise_weights(const Convolution& c, unsigned lanes) {
    const unsigned taps = c.windows.kernel_width * c.windows.kernel_height;
    const unsigned whole =
        c.elements == Elements::int8 ? spec::int8_depthwise_lanes : spec::fp16_depthwise_lanes;
    std::vector<Value> out(std::size_t{taps} * c.features.channels);
    const std::byte* from = c.weights.data();
    for (unsigned first = 0; first < lanes; first += whole) {
        const unsigned block = std::min(whole, lanes - first);
        for (unsigned tap = 0; tap < taps; ++tap)
            for (unsigned lane = 0; lane < block; ++lane) {
                Value& weight = out[std::size_t{tap} * c.features.channels + first + lane];
                if constexpr (std::is_same_v<Value, float>) {
                    std::uint16_t half;
                    std::memcpy(&half, from, sizeof half);
                    weight = float_of_half(half);
                    from += sizeof half;
                } else {
                    weight = static_cast<std::int8_t>(*from++);
                }
            }
    }
    return out;
}

/// The features that one window meets, tap by tap: pixels of the picture, or padding.
template <typename Value>
class WindowTaps {
  public:
    WindowTaps(const Convolution& c, const std::vector<Value>& values,
               const std::vector<Value>& outside)
        : c_(c),
          values_(values),
          outside_(outside),
          taps_(c.windows.kernel_width * c.windows.kernel_height) {}
    /// Pointers to the channels of each tap.
    [[nodiscard]] std::span<const Value* const> at(unsigned x, unsigned y) {
        const auto& w = c_.windows;
        const auto& f = c_.features;
        std::size_t tap = 0;
        for (unsigned ky = 0; ky < w.kernel_height; ++ky) {
            const int row =
                static_cast<int>(y * w.stride_y + ky * w.dilation_y) - static_cast<int>(w.pad_top);
            for (unsigned kx = 0; kx < w.kernel_width; ++kx, ++tap) {
                const int column = static_cast<int>(x * w.stride_x + kx * w.dilation_x) -
                                   static_cast<int>(w.pad_left);
                const bool inside = row >= 0 && row < static_cast<int>(f.height) && column >= 0 &&
                                    column < static_cast<int>(f.width);
                taps_[tap] = inside ? values_.data() + (static_cast<std::size_t>(row) * f.width +
                                                        static_cast<std::size_t>(column)) *
                                                           f.channels
                                    : outside_.data();
            }
        }
        return taps_;
    }

  private:
    const Convolution& c_;
    const std::vector<Value>& values_;
    const std::vector<Value>& outside_;
    std::vector<const Value*> taps_;
};

/// One group of kernels on one window.
template <unsigned group, typename Value, typename Sum>
void direct_window(std::span<const Value* const> taps, const Value* weights, unsigned channels,
                   Sum* sums) {
    Sum local[group] = {};
    for (const Value* features : taps) {
        for (unsigned c = 0; c < channels; ++c, weights += group) {
            const Value feature = features[c];
            for (unsigned k = 0; k < group; ++k)
                local[k] += static_cast<Sum>(feature) * static_cast<Sum>(weights[k]);
        }
    }
    std::copy_n(local, group, sums);
}

template <unsigned group, typename Value, typename Sum>
void run_direct(const Convolution& c, const std::vector<Value>& values,
                const std::vector<Value>& outside, unsigned lanes, Sums& out,
                std::vector<Sum>& sums) {
    const auto weights = direct_weights<Value>(c, lanes, group);
    const std::size_t taps = c.windows.kernel_width * c.windows.kernel_height;
    const std::size_t of_group = taps * c.features.channels * group;
    const unsigned groups = (c.kernels + group - 1) / group;
    WindowTaps<Value> windows(c, values, outside);
    Sum block[group];
    for (unsigned y = 0; y < out.height; ++y)
        for (unsigned x = 0; x < out.width; ++x) {
            const auto window = windows.at(x, y);
            Sum* to = sums.data() + (std::size_t{y} * out.width + x) * out.channels;
            for (unsigned g = 0; g < groups; ++g) {
                direct_window<group>(window, weights.data() + g * of_group, c.features.channels,
                                     block);
                const unsigned kernels = std::min(group, c.kernels - g * group);
                std::copy_n(block, kernels, to + std::size_t{g} * group);
            }
        }
}

template <typename Value, typename Sum>
void run_depthwise(const Convolution& c, const std::vector<Value>& values,
                   const std::vector<Value>& outside, unsigned lanes, Sums& out,
                   std::vector<Sum>& sums) {
    const auto weights = depthwise_weights<Value>(c, lanes);
    const unsigned channels = c.features.channels;
    WindowTaps<Value> windows(c, values, outside);
    for (unsigned y = 0; y < out.height; ++y)
        for (unsigned x = 0; x < out.width; ++x) {
            Sum* to = sums.data() + (std::size_t{y} * out.width + x) * out.channels;
            const Value* weight = weights.data();
            for (const Value* features : windows.at(x, y)) {
                for (unsigned i = 0; i < channels; ++i)
                    to[i] += static_cast<Sum>(features[i]) * static_cast<Sum>(weight[i]);
                weight += c.features.channels;
            }
        }
}

/// Sums of the features of each window: of all lanes, or of each channel.
void sum_features(const Convolution& c, const std::vector<std::int16_t>& outside, unsigned lanes,
                  Sums& out) {
    const unsigned each = c.depthwise ? out.channels : 1;
    const unsigned channels = lanes;
    out.feature_sums.assign(out.pixels() * each, 0);
    WindowTaps<std::int16_t> windows(c, c.features.integers, outside);
    for (unsigned y = 0; y < out.height; ++y)
        for (unsigned x = 0; x < out.width; ++x) {
            std::int32_t* to = out.feature_sums.data() + (std::size_t{y} * out.width + x) * each;
            for (const std::int16_t* features : windows.at(x, y))
                for (unsigned i = 0; i < channels; ++i) to[c.depthwise ? i : 0] += features[i];
        }
}

Status check_shape(WatchedRegisters& r, const Convolution& c, const DpuShape& dpu, Sums& out) {
    const auto precision = REEF_TRY(
        elements_of(r.get<"CORE_MISC_CFG.PROC_PRECISION">(), "CORE_MISC_CFG.PROC_PRECISION"));
    if (precision != c.elements) return refused_by_core("PROC_PRECISION is not CNA's");
    if (r.flag<"CORE_MISC_CFG.DW_EN">() != c.depthwise)
        return refused_by_core("DW_EN is not CNA's CONV_MODE");
    out.width = r.get<"CORE_DATAOUT_SIZE_0.DATAOUT_WIDTH">() + 1;
    out.height = r.get<"CORE_DATAOUT_SIZE_0.DATAOUT_HEIGHT">() + 1;
    out.channels = r.get<"CORE_DATAOUT_SIZE_1.DATAOUT_CHANNEL">() + 1;
    out.elements = c.elements;
    if (out.width != c.windows.width || out.height != c.windows.height)
        return refused_by_core(fmt::format("results of {} x {} pixels, CNA makes {} x {}",
                                           out.width, out.height, c.windows.width,
                                           c.windows.height));
    if (out.width != dpu.width || out.height != dpu.height || out.channels != dpu.made_channels)
        return refused_by_core("the size of the results is not the DPU's");
    const unsigned made = c.depthwise ? c.features.channels : c.kernels;
    if (made > out.channels)
        return refused_by_core(
            fmt::format("{} channels of results, CNA makes {}", out.channels, made));
    // |feature * weight| <= 2^14 in every lane of every tap.
    const auto products = std::uint64_t{c.windows.kernel_width} * c.windows.kernel_height *
                          (c.depthwise ? 1 : c.features.channels);
    if (c.elements == Elements::int8 && products >= std::uint64_t{1} << 17)
        return fail(Cause::unsupported,
                    fmt::format("sums of {} products may need more than 32 bits", products),
                    "CORE");
    r.without_effect<"CORE_MAC_GATING", "CORE_S_POINTER">();
    r.only_time<"CORE_MISC_CFG.SOFT_GATING">();
    return {};
}

}  // namespace

Result<Sums> accumulate(WatchedRegisters& r, const Convolution& c, const DpuShape& dpu,
                        const Switches& switches) {
    Sums out;
    REEF_CHECK(check_shape(r, c, dpu, out));
    const bool keep_sums = r.flag<"CORE_MISC_CFG.QD_EN">();
    const unsigned lanes = walked_lanes(c, switches);
    const std::size_t values = out.pixels() * out.channels;
    if (c.elements == Elements::fp16) {
        const auto outside = padding<float>(c, switches);
        out.floats.assign(values, 0);
        if (c.depthwise) {
            run_depthwise(c, c.features.floats, outside, lanes, out, out.floats);
        } else {
            run_direct<spec::fp16_group_kernels>(c, c.features.floats, outside, lanes, out,
                                                 out.floats);
        }
        if (keep_sums)
            return fail(Cause::unsupported, "QD_EN in floating point is not modelled", "CORE");
        return out;
    }
    const auto outside = padding<std::int16_t>(c, switches);
    out.integers.assign(values, 0);
    if (c.depthwise) {
        run_depthwise(c, c.features.integers, outside, lanes, out, out.integers);
    } else {
        run_direct<spec::int8_group_kernels>(c, c.features.integers, outside, lanes, out,
                                             out.integers);
    }
    if (keep_sums) sum_features(c, outside, lanes, out);
    return out;
}

}  // namespace reef::rk3588::sim
