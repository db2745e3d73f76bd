#include "rk3588/sim/cna.h"

#include <fmt/format.h>

#include <cstring>

#include "rk3588/layout/convolution_buffer.h"
#include "rk3588/sim/arithmetic.h"

namespace reef::rk3588::sim {

/// What the registers say, checked against each other.
struct Cna::Shape {
    Elements elements = Elements::int8;
    bool depthwise = false;
    unsigned picture_channels = 0;  ///< of a packed picture; 0: a cube
    unsigned width = 0, height = 0, channels = 0, real = 0;
    unsigned fetched_width = 0;
    Windows windows;
    unsigned kernels = 0;
    std::uint32_t weight_bytes = 0, kernel_bytes = 0;
    [[nodiscard]] unsigned atoms() const {
        return (channels + lanes_of_atom(elements) - 1) / lanes_of_atom(elements);
    }
};

namespace {

std::unexpected<Error> contradiction(std::string what) {
    return fail(Cause::bad_input, std::move(what), "CNA");
}

Windows windows_of(WatchedRegisters& r) {
    Windows w;
    w.width = r.get<"CNA_DATA_SIZE2.DATAOUT_WIDTH">();
    w.kernel_width = r.get<"CNA_WEIGHT_SIZE2.WEIGHT_WIDTH">();
    w.kernel_height = r.get<"CNA_WEIGHT_SIZE2.WEIGHT_HEIGHT">();
    w.stride_x = r.get<"CNA_CONV_CON3.CONV_X_STRIDE">();
    w.stride_y = r.get<"CNA_CONV_CON3.CONV_Y_STRIDE">();
    w.dilation_x = r.get<"CNA_CONV_CON3.ATROUS_X_DILATION">() + 1;
    w.dilation_y = r.get<"CNA_CONV_CON3.ATROUS_Y_DILATION">() + 1;
    w.pad_left = r.get<"CNA_PAD_CON0.PAD_LEFT">();
    w.pad_top = r.get<"CNA_PAD_CON0.PAD_TOP">();
    w.pad_value = r.get<"CNA_PAD_CON1.PAD_VALUE">();
    return w;
}

Status check_windows(const Windows& w) {
    if (w.width == 0 || w.height == 0) return contradiction("results without pixels");
    if (w.kernel_width == 0 || w.kernel_height == 0) return contradiction("kernels without pixels");
    if (w.stride_x == 0 || w.stride_y == 0) return contradiction("a stride of 0");
    return {};
}

/// The bytes that the walk over kernels and lanes takes.
std::uint64_t walked_bytes(unsigned kernels, const Windows& w, unsigned lanes, Elements elements) {
    return std::uint64_t{kernels} * w.kernel_width * w.kernel_height * lanes * bytes_of(elements);
}

void add_time_fields(WatchedRegisters& r) {
    r.only_time<"CNA_CONV_CON2.FEATURE_GRAINS", "CNA_CONV_CON2.KERNEL_GROUP",
                "CNA_DMA_CON0.DATA_BURST_LEN", "CNA_DMA_CON0.WEIGHT_BURST_LEN",
                "CNA_DMA_CON0.OV4K_BYPASS">();
    r.without_effect<"CNA_CLK_GATE", "CNA_S_POINTER">();
    // Every core's part of a shared convolution is complete in its own registers.
    r.fields_without_effect<"CNA_CONV_CON2.CO_WORK">();
}

}  // namespace

Result<Elements> elements_of(std::uint32_t precision, const char* field) {
    if (precision == spec::value::precision::int8_) return Elements::int8;
    if (precision == spec::value::precision::fp16_) return Elements::fp16;
    const auto* value = spec::precision_enumeration.find(precision);
    return fail(Cause::unsupported,
                fmt::format("{} is {}, which the simulated chip does not model", field,
                            value ? value->name : "unknown"),
                {}, "int8 and fp16 are modelled");
}

Result<Cna::Shape> Cna::read_shape(WatchedRegisters& r) const {
    Shape s;
    s.elements = REEF_TRY(
        elements_of(r.get<"CNA_CONV_CON1.PROC_PRECISION">(), "CNA_CONV_CON1.PROC_PRECISION"));
    if (REEF_TRY(elements_of(r.get<"CNA_CONV_CON1.IN_PRECISION">(),
                             "CNA_CONV_CON1.IN_PRECISION")) != s.elements)
        return contradiction("IN_PRECISION and PROC_PRECISION differ");
    const auto mode = r.get<"CNA_CONV_CON1.CONV_MODE">();
    s.depthwise = mode == spec::value::conv_mode::depthwise_;
    if (!s.depthwise && mode != spec::value::conv_mode::direct_)
        return fail(Cause::unsupported, fmt::format("CONV_MODE {} has no known meaning", mode),
                    "CNA_CONV_CON1");
    s.width = r.get<"CNA_DATA_SIZE0.DATAIN_WIDTH">();
    s.height = r.get<"CNA_DATA_SIZE0.DATAIN_HEIGHT">();
    s.channels = r.get<"CNA_DATA_SIZE1.DATAIN_CHANNEL">();
    s.real = r.get<"CNA_DATA_SIZE1.DATAIN_CHANNEL_REAL">() + 1;
    s.fetched_width = r.get<"CNA_FC_DATA_SIZE0.DMA_WIDTH">();
    s.windows = windows_of(r);
    const auto pixels = r.get<"CNA_DATA_SIZE3.DATAOUT_ATOMICS">();
    s.windows.height = s.windows.width == 0 ? 0 : pixels / s.windows.width;
    REEF_CHECK(check_windows(s.windows));
    if (s.windows.height * s.windows.width != pixels)
        return contradiction("DATAOUT_ATOMICS is no multiple of DATAOUT_WIDTH");
    if (s.width == 0 || s.height == 0 || s.channels == 0)
        return contradiction("features without pixels or channels");
    if (s.fetched_width > s.width || s.fetched_width == 0 ||
        r.get<"CNA_FC_DATA_SIZE0.DMA_HEIGHT">() != s.height ||
        r.get<"CNA_FC_DATA_SIZE1.DMA_CHANNEL">() != s.channels)
        return contradiction("FC_DATA_SIZE is not the size of the features");
    s.kernels = r.get<"CNA_WEIGHT_SIZE2.WEIGHT_KERNELS">();
    if (s.kernels == 0) return contradiction("no kernels");
    s.weight_bytes = r.get<"CNA_WEIGHT_SIZE0.WEIGHT_BYTES">();
    s.kernel_bytes = r.get<"CNA_WEIGHT_SIZE1.WEIGHT_BYTES_PER_KERNEL">();
    const auto packed = r.get<"CNA_CONV_CON1.ARGB_IN">();
    if (packed != 0 && (packed < 8 || packed > 11))
        return fail(Cause::unsupported, fmt::format("ARGB_IN {} has no known meaning", packed),
                    "CNA_CONV_CON1");
    s.picture_channels = packed == 0 ? 0 : packed - 7;
    return s;
}

Status Cna::check_banks(WatchedRegisters& r, const Shape& s) const {
    const auto data = r.get<"CNA_CBUF_CON0.DATA_BANK">();
    const auto weight = r.get<"CNA_CBUF_CON0.WEIGHT_BANK">();
    if (data == 0 || weight == 0 || data + weight > spec::cbuf_banks)
        return contradiction(fmt::format("{} banks of features and {} of weights: the CBUF has {}",
                                         data, weight, spec::cbuf_banks));
    const auto entries = r.get<"CNA_CBUF_CON1.DATA_ENTRIES">();
    if (s.picture_channels != 0) {
        if (s.channels != lanes_of_atom(s.elements))
            return contradiction("a packed picture has the channels of one atom");
        if (entries != s.width * s.height)
            return contradiction("DATA_ENTRIES of a packed picture is its number of pixels");
        return {};
    }
    const unsigned row_bytes = s.width * s.atoms() * spec::atom_bytes;
    constexpr unsigned entry = spec::data_entry_bytes;
    const unsigned expected = (row_bytes + entry - 1) / entry;
    if (entries != expected)
        return contradiction(
            fmt::format("DATA_ENTRIES is {}, a row of the features has {}", entries, expected));
    const auto capacity = std::uint64_t{data} * spec::cbuf_bank_bytes / spec::cbuf_entry_bytes;
    const auto needed = std::uint64_t{entries_of_row(s.width, s.atoms())} * s.height;
    if (needed > capacity)
        return contradiction(
            fmt::format("the features take {} entries of the CBUF, {} banks have "
                        "{}",
                        needed, data, capacity));
    return {};
}

Status Cna::fetch_cube(WatchedRegisters& r, const Shape& s, Features& f, Traffic& traffic) const {
    if (r.flag<"CNA_CONV_CON1.NONALIGN_DMA">())
        return fail(Cause::unsupported, "NONALIGN_DMA without ARGB_IN is not modelled",
                    "CNA_CONV_CON1");
    // The converter works on packed pictures only, in all streams whose results are known.
    if (!r.flag<"CNA_CVT_CON0.CVT_BYPASS">())
        return fail(Cause::unsupported, "an input converter on a cube is not modelled",
                    "CNA_CVT_CON0");
    r.without_effect<"CNA_CVT_CON0", "CNA_CVT_CON1", "CNA_CVT_CON2", "CNA_CVT_CON3", "CNA_CVT_CON4",
                     "CNA_CVT_CON5">();
    const unsigned group = r.flag<"CNA_CONV_CON1.GROUP_LINE_OFF">() ? 1 : spec::grouped_lines;
    const auto line_stride = r.get<"CNA_DMA_CON1.LINE_STRIDE">();
    if (line_stride % group != 0) return contradiction("LINE_STRIDE is no multiple of four lines");
    const std::int64_t line = line_stride / group;
    const std::int64_t surface =
        r.get_signed<"CNA_DMA_CON2.SURF_STRIDE">() + std::int64_t{group} * s.fetched_width;
    const auto base = r.get<"CNA_FEATURE_DATA_ADDR.FEATURE_BASE_ADDR">();
    const unsigned lanes = lanes_of_atom(s.elements);
    for (unsigned atom = 0; atom < s.atoms(); ++atom) {
        for (unsigned y = 0; y < s.height; ++y) {
            const auto address = base + static_cast<std::int64_t>(spec::atom_bytes) *
                                            (std::int64_t{atom} * surface + std::int64_t{y} * line);
            const std::uint64_t size = std::uint64_t{s.fetched_width} * spec::atom_bytes;
            const Bytes row =
                REEF_TRY(memory_.read(static_cast<std::uint64_t>(address), size, "CNA: features"));
            traffic.features += size;
            for (unsigned x = 0; x < s.fetched_width; ++x) {
                const std::size_t to =
                    (std::size_t{y} * s.fetched_width + x) * f.channels + atom * lanes;
                const std::byte* from = row.data() + std::size_t{x} * spec::atom_bytes;
                if (s.elements == Elements::int8) {
                    for (unsigned c = 0; c < lanes; ++c)
                        f.integers[to + c] = static_cast<std::int8_t>(from[c]);
                } else {
                    for (unsigned c = 0; c < lanes; ++c) {
                        std::uint16_t half;
                        std::memcpy(&half, from + 2 * c, sizeof half);
                        f.floats[to + c] = float_of_half(half);
                    }
                }
            }
        }
    }
    return {};
}

Status Cna::fetch_picture(WatchedRegisters& r, const Shape& s, Features& f,
                          Traffic& traffic) const {
    if (s.picture_channels != 1)
        return fail(Cause::unsupported,
                    fmt::format("packed pictures of {} channels: the pitch of their rows is not "
                                "known",
                                s.picture_channels),
                    "CNA_CONV_CON1.ARGB_IN", "one channel is modelled");
    if (!r.flag<"CNA_CONV_CON1.NONALIGN_DMA">() || !r.flag<"CNA_CONV_CON1.GROUP_LINE_OFF">())
        return contradiction("ARGB_IN comes with NONALIGN_DMA and GROUP_LINE_OFF");
    const unsigned bytes = bytes_of(s.elements);
    const bool convert = !r.flag<"CNA_CVT_CON0.CVT_BYPASS">();
    const bool is_signed = r.flag<"CNA_CVT_CON0.DATA_SIGN">();
    const auto offset = r.get_signed<"CNA_CVT_CON1.CVT_OFFSET0">();
    const auto scale = static_cast<std::int64_t>(r.get<"CNA_CVT_CON1.CVT_SCALE0">());
    const auto shift = r.get<"CNA_CVT_CON0.CVT_TRUNCATE_0">();
    const bool offset_first = r.flag<"CNA_CVT_CON0.CVT_TYPE">();
    if (convert && s.elements != Elements::int8)
        return fail(Cause::unsupported, "an input converter of fp16 is not modelled",
                    "CNA_CVT_CON0");
    // Those of channels that the picture does not have, and the lanes that are converted.
    r.without_effect<"CNA_CVT_CON0", "CNA_CVT_CON2", "CNA_CVT_CON3", "CNA_CVT_CON4",
                     "CNA_CVT_CON5">();
    const auto pitch = std::uint64_t{r.get<"CNA_DMA_CON1.LINE_STRIDE">()} * bytes;
    r.without_effect<"CNA_DMA_CON2">();  // there is one surface
    const auto base = r.get<"CNA_FEATURE_DATA_ADDR.FEATURE_BASE_ADDR">();
    for (unsigned y = 0; y < s.height; ++y) {
        const std::uint64_t size = std::uint64_t{s.fetched_width} * bytes;
        const Bytes row = REEF_TRY(memory_.read(base + y * pitch, size, "CNA: packed picture"));
        traffic.features += size;
        for (unsigned x = 0; x < s.fetched_width; ++x) {
            const std::size_t to = (std::size_t{y} * s.fetched_width + x) * f.channels;
            if (s.elements == Elements::fp16) {
                std::uint16_t half;
                std::memcpy(&half, row.data() + 2 * x, sizeof half);
                f.floats[to] = float_of_half(half);
                continue;
            }
            std::int64_t value = is_signed || !convert ? static_cast<std::int8_t>(row[x])
                                                       : std::to_integer<int>(row[x]);
            if (convert) {
                value = offset_first ? (value + offset) * scale : value * scale;
                value = shifted(value, shift, Rounding::half_to_even);
                if (!offset_first) value += offset;
            }
            f.integers[to] = saturated8(value);
        }
    }
    return {};
}

Status Cna::load_weights(WatchedRegisters& r, const Shape& s, Traffic& traffic) {
    const auto banks = r.get<"CNA_CBUF_CON0.WEIGHT_BANK">();
    if (r.flag<"CNA_CBUF_CON0.WEIGHT_REUSE">()) {
        r.without_effect<"CNA_DCOMP_ADDR0">();
        if (!stored_.valid || stored_.bytes.size() != s.weight_bytes || stored_.banks != banks)
            return contradiction("WEIGHT_REUSE of weights that are not in the CBUF");
        return {};
    }
    const auto address = r.get<"CNA_DCOMP_ADDR0.DECOMPRESS_ADDR0">();
    const Bytes bytes = REEF_TRY(memory_.read(address, s.weight_bytes, "CNA: weights"));
    traffic.weights += s.weight_bytes;
    const auto capacity = std::uint64_t{banks} * spec::cbuf_bank_bytes;
    const std::uint64_t group = std::uint64_t{s.kernel_bytes} *
                                std::min<std::uint64_t>(s.kernels, spec::int8_group_kernels);
    if (s.weight_bytes > capacity && group > capacity)
        return contradiction(
            fmt::format("a group of kernels has {} bytes, {} banks of weights hold {}", group,
                        banks, capacity));
    stored_.valid = s.weight_bytes <= capacity;
    stored_.banks = banks;
    stored_.bytes.assign(bytes.begin(), bytes.end());
    return {};
}

Result<Convolution> Cna::run(WatchedRegisters& r, Traffic& traffic) {
    add_time_fields(r);
    const Shape s = REEF_TRY(read_shape(r));
    REEF_CHECK(check_banks(r, s));
    Convolution out;
    out.elements = s.elements;
    out.depthwise = s.depthwise;
    out.windows = s.windows;
    out.kernels = s.kernels;
    out.features.width = s.fetched_width;
    out.features.height = s.height;
    out.features.real = s.real;
    // Lanes of whole atoms in a cube; a packed picture's other lanes are 0.
    out.features.channels =
        s.picture_channels == 0 ? s.atoms() * lanes_of_atom(s.elements) : s.channels;
    const std::size_t values = std::size_t{s.fetched_width} * s.height * out.features.channels;
    if (s.elements == Elements::int8) {
        out.features.integers.assign(values, 0);
    } else {
        out.features.floats.assign(values, 0);
    }
    REEF_CHECK(s.picture_channels == 0 ? fetch_cube(r, s, out.features, traffic)
                                       : fetch_picture(r, s, out.features, traffic));
    if (std::uint64_t{s.kernel_bytes} * s.kernels != s.weight_bytes)
        return contradiction("WEIGHT_BYTES is not WEIGHT_KERNELS times WEIGHT_BYTES_PER_KERNEL");
    const unsigned declared = s.channels;
    if (walked_bytes(s.kernels, s.windows, declared, s.elements) != s.weight_bytes)
        return contradiction(fmt::format("WEIGHT_BYTES is {}, kernels and channels make {}",
                                         s.weight_bytes,
                                         walked_bytes(s.kernels, s.windows, declared, s.elements)));
    if (s.depthwise && s.kernels != 1)
        return contradiction("a depthwise convolution has WEIGHT_KERNELS 1");
    // Columns between the fetched ones and the declared width were never loaded.
    const auto& w = s.windows;
    const auto last = static_cast<std::int64_t>(w.width - 1) * w.stride_x +
                      std::int64_t{w.kernel_width - 1} * w.dilation_x - w.pad_left;
    if (s.fetched_width < s.width && last >= s.fetched_width)
        return contradiction(
            fmt::format("windows reach column {}, {} were loaded", last, s.fetched_width));
    REEF_CHECK(load_weights(r, s, traffic));
    out.weights = stored_.bytes;
    return out;
}

}  // namespace reef::rk3588::sim
