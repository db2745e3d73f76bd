#include "rk3588/sim/dpu_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "rk3588/sim/arithmetic.h"

namespace reef::rk3588::sim {
namespace {

std::unexpected<Error> refused_by_writer(std::string what, Cause cause = Cause::unsupported) {
    return fail(cause, std::move(what), "DPU: output");
}

enum class Written : std::uint8_t { int8, int32, fp16, fp32 };

struct Converter {
    Written written = Written::int8;
    std::int32_t offset = 0;
    std::int32_t scale = 0;
    unsigned shift = 0;
    Rounding rounding = Rounding::half_to_even;
};

unsigned bytes_of_written(Written written) {
    constexpr unsigned bytes[] = {1, 4, 2, 4};
    return bytes[static_cast<unsigned>(written)];
}

Result<Written> written_elements(std::uint32_t precision, Elements elements) {
    using namespace spec::value::precision;
    if (elements == Elements::int8 && precision == int8_) return Written::int8;
    if (elements == Elements::int8 && precision == int32_) return Written::int32;
    if (elements == Elements::fp16 && precision == fp16_) return Written::fp16;
    if (elements == Elements::fp16 && precision == fp32_) return Written::fp32;
    const auto* value = spec::precision_enumeration.find(precision);
    return refused_by_writer(fmt::format("{} from {} is not modelled (OUT_PRECISION)",
                                         value ? value->name : "an unknown precision",
                                         elements == Elements::int8 ? "int8" : "fp16"));
}

Rounding output_rounding(bool away, const Switches& switches) {
    switch (switches.output_rounding) {
        case Switches::OutputRounding::half_to_even:
            return Rounding::half_to_even;
        case Switches::OutputRounding::half_away:
            return Rounding::half_away;
        case Switches::OutputRounding::by_register:
            break;
    }
    return away ? Rounding::half_away : Rounding::half_to_even;
}

Result<Converter> read_converter(WatchedRegisters& r, Elements elements, const Switches& switches) {
    Converter c;
    c.written = REEF_TRY(written_elements(r.get<"DPU_DATA_FORMAT.OUT_PRECISION">(), elements));
    c.offset = r.get_signed<"DPU_OUT_CVT_OFFSET.OUT_CVT_OFFSET">();
    c.scale = r.get_signed<"DPU_OUT_CVT_SCALE.OUT_CVT_SCALE">();
    c.shift = r.get<"DPU_OUT_CVT_SHIFT.OUT_CVT_SHIFT">();
    c.rounding = output_rounding(r.flag<"DPU_OUT_CVT_SHIFT.CVT_ROUND">(), switches);
    if (r.get<"DPU_OUT_CVT_SHIFT.MINUS_EXP">() != 0)
        return refused_by_writer("MINUS_EXP is not modelled");
    const bool to_half = r.flag<"DPU_OUT_CVT_SCALE.FP32TOFP16_EN">();
    if (to_half != (c.written == Written::fp16))
        return refused_by_writer("FP32TOFP16_EN does not fit OUT_PRECISION", Cause::bad_input);
    if (c.written == Written::int8) {
        if (c.scale <= 0)
            return refused_by_writer(fmt::format("OUT_CVT_SCALE {} is not modelled", c.scale));
        if (c.shift > 46)
            return refused_by_writer(fmt::format("OUT_CVT_SHIFT {} is not modelled", c.shift));
    } else if (c.offset != 0 || c.scale != 1 || c.shift != 0) {
        return refused_by_writer("a conversion of results that are not int8 is not modelled");
    }
    return c;
}

/// Where surfaces and rows go.
struct Places {
    std::uint64_t base = 0;
    std::uint64_t surface = 0;  ///< pitch in bytes
    std::uint64_t group = 0;    ///< pitch of groups of surfaces in bytes
    unsigned group_surfaces = 0;
    std::uint64_t row = 0;  ///< pitch in bytes
    [[nodiscard]] std::uint64_t of(unsigned surface_number) const {
        return base + surface_number / group_surfaces * group +
               surface_number % group_surfaces * surface;
    }
};

Result<Places> read_places(WatchedRegisters& r, const DpuShape& shape) {
    Places p;
    p.base = r.get<"DPU_DST_BASE_ADDR.DST_BASE_ADDR">();
    p.surface = std::uint64_t{r.get<"DPU_DST_SURF_STRIDE.DST_SURF_STRIDE">()} * spec::atom_bytes;
    p.group = std::uint64_t{r.get<"DPU_SURFACE_ADD.SURF_ADD">()} * spec::atom_bytes;
    const auto first = r.get<"DPU_BS_OW_CFG.SIZE_E_0">();
    // In a task without CORE one of the three is enough for vendors' streams.
    const auto middle = r.get<"DPU_BS_OW_CFG.SIZE_E_1">();
    const auto last = r.get<"DPU_BS_OW_CFG.SIZE_E_2">();
    if (middle != first || last != first)
        return refused_by_writer("three different SIZE_E are not modelled");
    p.group_surfaces = first + 1;
    if (p.group != p.group_surfaces * p.surface)
        return refused_by_writer(
            fmt::format("SURFACE_ADD is {} bytes, {} surfaces of {} bytes make {}", p.group,
                        p.group_surfaces, p.surface, p.group_surfaces * p.surface),
            Cause::bad_input);
    const auto notch = r.get<"DPU_DATA_CUBE_NOTCH_ADDR.NOTCH_ADDR_0">();
    if (r.get<"DPU_DATA_CUBE_NOTCH_ADDR.NOTCH_ADDR_1">() != notch)
        return refused_by_writer("two different NOTCH_ADDR are not modelled");
    p.row = (std::uint64_t{shape.width} + notch) * spec::atom_bytes;
    return p;
}

unsigned written_channels(const DpuShape& shape, const Switches& switches) {
    return switches.planes == Switches::Planes::all ? shape.made_channels : shape.channels;
}

void convert_lane(const Converter& c, const Sums& data, std::size_t at, std::byte* to) {
    switch (c.written) {
        case Written::int8:
            *to = static_cast<std::byte>(
                saturated8(shifted(std::int64_t{data.integers[at]} * c.scale, c.shift, c.rounding) +
                           c.offset));
            return;
        case Written::int32:
            std::memcpy(to, &data.integers[at], 4);
            return;
        case Written::fp16: {
            const std::uint16_t half = half_of_float(data.floats[at]);
            std::memcpy(to, &half, sizeof half);
            return;
        }
        case Written::fp32:
            std::memcpy(to, &data.floats[at], 4);
            return;
    }
}

}  // namespace

Status check_results_place(WatchedRegisters& r, const DpuShape& shape, const Switches& switches,
                           const Memory& memory) {
    const Written written =
        REEF_TRY(written_elements(r.get<"DPU_DATA_FORMAT.OUT_PRECISION">(), shape.elements));
    const Places places = REEF_TRY(read_places(r, shape));
    const unsigned lanes = spec::atom_bytes / bytes_of_written(written);
    const std::size_t row_bytes = std::size_t{shape.width} * spec::atom_bytes;
    for (unsigned surface = 0; surface * lanes < written_channels(shape, switches); ++surface)
        for (unsigned y = 0; y < shape.height; ++y)
            REEF_CHECK(
                memory.check_write(places.of(surface) + y * places.row, row_bytes, "DPU: results"));
    return {};
}

Status write_results(WatchedRegisters& r, const DpuShape& shape, const Sums& data,
                     const Switches& switches, Memory& memory, Traffic& traffic) {
    const Converter converter = REEF_TRY(read_converter(r, shape.elements, switches));
    const Places places = REEF_TRY(read_places(r, shape));
    const auto pending = r.get_signed<"DPU_OFFSET_PEND.OFFSET_PEND">();
    if (converter.written != Written::int8 && pending != 0)
        return refused_by_writer("OFFSET_PEND of results that are not int8 is not modelled");
    const unsigned bytes = bytes_of_written(converter.written);
    const unsigned lanes = spec::atom_bytes / bytes;
    const std::size_t row_bytes = std::size_t{shape.width} * spec::atom_bytes;
    for (unsigned surface = 0; surface * lanes < written_channels(shape, switches); ++surface) {
        const unsigned before = std::min(shape.channels, surface * lanes);
        const unsigned count = std::min(lanes, shape.channels - before);
        for (unsigned y = 0; y < shape.height; ++y) {
            const MutableBytes row = REEF_TRY(
                memory.write(places.of(surface) + y * places.row, row_bytes, "DPU: results"));
            traffic.results += row_bytes;
            for (unsigned x = 0; x < shape.width; ++x) {
                std::byte* to = row.data() + std::size_t{x} * spec::atom_bytes;
                const std::size_t from =
                    (std::size_t{y} * shape.width + x) * data.channels + before;
                for (unsigned c = 0; c < count; ++c)
                    convert_lane(converter, data, from + c, to + std::size_t{c} * bytes);
                for (unsigned c = count * bytes; c < spec::atom_bytes; ++c)
                    to[c] = static_cast<std::byte>(pending);
            }
        }
    }
    return {};
}

}  // namespace reef::rk3588::sim
