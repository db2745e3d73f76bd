#include "rk3588/sim/dpu_rdma.h"

#include <fmt/format.h>

#include <cstring>

#include "rk3588/sim/arithmetic.h"

namespace reef::rk3588::sim {
namespace {

std::unexpected<Error> refused_by_rdma(std::string what, Cause cause = Cause::unsupported) {
    return fail(cause, std::move(what), "DPU_RDMA");
}

/// Where the surfaces of a cube are: even and odd ones may come from two readers.
struct CubePlaces {
    std::uint64_t even = 0;
    std::uint64_t odd = 0;
    std::uint64_t pitch = 0;  ///< from an even one to the next even one, the same of odd ones
    bool paired = false;      ///< false: every surface is an even one
    [[nodiscard]] std::uint64_t of(unsigned surface) const {
        if (!paired) return even + surface * pitch;
        return (surface % 2 == 0 ? even : odd) + surface / 2 * pitch;
    }
};

Result<Sums> read_cube(const CubePlaces& places, const DpuShape& shape, const char* what,
                       const Memory& memory, Traffic& traffic) {
    Sums out;
    out.width = shape.width;
    out.height = shape.height;
    out.channels = shape.channels;
    out.elements = shape.elements;
    const unsigned lanes = lanes_of_atom(shape.elements);
    const std::uint64_t size = std::uint64_t{out.pixels()} * spec::atom_bytes;
    // The cube is in memory before room is made for it.
    for (unsigned surface = 0; surface * lanes < shape.channels; ++surface)
        REEF_TRY(memory.read(places.of(surface), size, what));
    const std::size_t values = out.pixels() * out.channels;
    if (shape.elements == Elements::int8) {
        out.integers.resize(values);
    } else {
        out.floats.resize(values);
    }
    for (unsigned surface = 0; surface * lanes < shape.channels; ++surface) {
        const Bytes bytes = REEF_TRY(memory.read(places.of(surface), size, what));
        traffic.operands += size;
        const unsigned count = std::min(lanes, shape.channels - surface * lanes);
        for (std::size_t p = 0; p < out.pixels(); ++p) {
            const std::byte* from = bytes.data() + p * spec::atom_bytes;
            const std::size_t to = p * out.channels + std::size_t{surface} * lanes;
            for (unsigned c = 0; c < count; ++c) {
                if (shape.elements == Elements::int8) {
                    out.integers[to + c] = static_cast<std::int8_t>(from[c]);
                } else {
                    std::uint16_t half;
                    std::memcpy(&half, from + 2 * c, sizeof half);
                    out.floats[to + c] = float_of_half(half);
                }
            }
        }
    }
    return out;
}

template <typename Number>
Number number_at(Bytes bytes, std::size_t at) {
    Number out;
    std::memcpy(&out, bytes.data() + at, sizeof out);
    return out;
}

namespace use {
constexpr unsigned alu = 1U << spec::value::operand::alu_;
constexpr unsigned correction = 1U << spec::value::operand::correction_;
constexpr unsigned mul = 1U << spec::value::operand::mul_;
}  // namespace use

/// BS operands: int32 in a row, or groups of eight channels when there are factors, too.
Result<StageOperands> read_bs(WatchedRegisters& r, const DpuShape& shape, const Memory& memory,
                              const Switches& switches, Traffic& traffic) {
    StageOperands out;
    const auto uses = r.get<"DPU_RDMA_BRDMA_CFG.BRDMA_DATA_USE">();
    if (uses == 0) {
        r.without_effect<"DPU_RDMA_BS_BASE_ADDR">();
        return out;
    }
    if (shape.elements != Elements::int8)
        return refused_by_rdma(
            "BS operands of fp16 in memory are not modelled: their layout is "
            "not known");
    const auto base = r.get<"DPU_RDMA_BS_BASE_ADDR.BS_BASE_ADDR">();
    if (uses == use::alu) {
        const std::uint64_t size = std::uint64_t{shape.channels} * 4;
        const Bytes bytes = REEF_TRY(memory.read(base, size, "DPU_RDMA: BS operands"));
        traffic.operands += size;
        for (unsigned c = 0; c < shape.channels; ++c)
            out.alu.push_back(number_at<std::int32_t>(bytes, std::size_t{c} * 4));
        return out;
    }
    const bool short_groups =
        shape.depthwise && switches.depthwise_operands == Switches::DepthwiseOperands::bytes_48;
    const unsigned expected = use::alu | use::mul | (short_groups ? 0 : use::correction);
    if (uses != expected)
        return refused_by_rdma(
            fmt::format("BRDMA_DATA_USE {:#x} is not modelled here, {:#x} and {:#x} are", uses,
                        use::alu, expected));
    constexpr unsigned channels = spec::operand_group_channels;
    const unsigned group =
        spec::operand_group_bytes - (short_groups ? spec::operand_correction_bytes : 0);
    const unsigned groups = (shape.channels + channels - 1) / channels;
    const std::uint64_t size = std::uint64_t{groups} * group;
    const Bytes bytes = REEF_TRY(memory.read(base, size, "DPU_RDMA: BS operands"));
    traffic.operands += size;
    for (unsigned c = 0; c < shape.channels; ++c) {
        const std::size_t at = std::size_t{c / channels} * group;
        const unsigned lane = c % channels;
        out.alu.push_back(number_at<std::int32_t>(bytes, at + 4 * lane));
        out.mul.push_back(number_at<std::int16_t>(bytes, at + group - 2 * channels + 2 * lane));
        // The group's correction is OW_SRC's business, which is not modelled: it stays unread.
    }
    return out;
}

/// BN factors: int16 in a row. No known stream has them.
Result<StageOperands> read_bn(WatchedRegisters& r, const DpuShape& shape, const Memory& memory,
                              Traffic& traffic) {
    StageOperands out;
    const auto uses = r.get<"DPU_RDMA_NRDMA_CFG.NRDMA_DATA_USE">();
    if (uses == 0) {
        r.without_effect<"DPU_RDMA_BN_BASE_ADDR">();
        return out;
    }
    if (uses != use::mul || shape.elements != Elements::int8)
        return refused_by_rdma(
            fmt::format("NRDMA_DATA_USE {:#x} is not modelled, {:#x} of int8 is", uses, use::mul));
    const std::uint64_t size = std::uint64_t{shape.channels} * 2;
    const Bytes bytes = REEF_TRY(
        memory.read(r.get<"DPU_RDMA_BN_BASE_ADDR.BN_BASE_ADDR">(), size, "DPU_RDMA: BN operands"));
    traffic.operands += size;
    for (unsigned c = 0; c < shape.channels; ++c)
        out.mul.push_back(number_at<std::int16_t>(bytes, std::size_t{c} * 2));
    return out;
}

Status check_operand_shape(WatchedRegisters& r, const DpuShape& shape) {
    if (r.get<"DPU_RDMA_DATA_CUBE_WIDTH.WIDTH">() + 1 != shape.width ||
        r.get<"DPU_RDMA_DATA_CUBE_HEIGHT.HEIGHT">() + 1 != shape.height ||
        r.get<"DPU_RDMA_DATA_CUBE_CHANNEL.CHANNEL">() + 1 < shape.channels)
        return refused_by_rdma("the cube is not the DPU's", Cause::bad_input);
    const auto mode = r.get<"DPU_RDMA_FEATURE_MODE_CFG.CONV_MODE">();
    const bool depthwise = mode == spec::value::conv_mode::depthwise_;
    if (depthwise != shape.depthwise ||
        r.flag<"DPU_RDMA_FEATURE_MODE_CFG.FLYING_MODE">() != shape.flying)
        return refused_by_rdma("FEATURE_MODE_CFG is not the DPU's", Cause::bad_input);
    for (const auto precision : {r.get<"DPU_RDMA_FEATURE_MODE_CFG.IN_PRECISION">(),
                                 r.get<"DPU_RDMA_FEATURE_MODE_CFG.PROC_PRECISION">()})
        if (REEF_TRY(elements_of(precision, "DPU_RDMA_FEATURE_MODE_CFG.PROC_PRECISION")) !=
                shape.elements &&
            (shape.flying || shape.element_wise))
            return refused_by_rdma("the precision is not the DPU's", Cause::bad_input);
    if (r.get<"DPU_RDMA_DATA_CUBE_HEIGHT.EW_LINE_NOTCH_ADDR">() != 0 ||
        r.get<"DPU_RDMA_SRC_DMA_CFG.LINE_NOTCH_ADDR">() != 0)
        return refused_by_rdma("gaps between rows of operands are not modelled");
    r.only_time<"DPU_RDMA_FEATURE_MODE_CFG.BURST_LEN", "DPU_RDMA_ERDMA_CFG.OV4K_BYPASS">();
    r.without_effect<"DPU_RDMA_WEIGHT", "DPU_RDMA_S_POINTER">();
    // fp16 is computed in binary32 either way.
    r.fields_without_effect<"DPU_RDMA_FEATURE_MODE_CFG.MRDMA_FP16TOFP32_EN">();
    return {};
}

Status check_element_size(WatchedRegisters& r, const DpuShape& shape) {
    const auto expected = shape.elements == Elements::int8 ? spec::value::element_size::bits_8_
                                                           : spec::value::element_size::bits_16_;
    if (r.get<"DPU_RDMA_ERDMA_CFG.ERDMA_DATA_SIZE">() != expected)
        return refused_by_rdma("ERDMA_DATA_SIZE is not the size of the DPU's elements",
                               Cause::bad_input);
    if (r.get<"DPU_RDMA_ERDMA_CFG.ERDMA_DATA_MODE">() != 1)
        return refused_by_rdma("only operands for every pixel are modelled");
    return {};
}

/// The element-wise operand of a convolution: even surfaces come from MRDMA, odd ones from ERDMA.
CubePlaces paired_places(WatchedRegisters& r, std::uint64_t surface) {
    CubePlaces places;
    places.paired = true;
    places.even = r.get<"DPU_RDMA_SRC_BASE_ADDR.SRC_BASE_ADDR">();
    places.odd = r.get<"DPU_RDMA_EW_BASE_ADDR.EW_BASE_ADDR">();
    places.pitch =
        surface + std::uint64_t{r.get<"DPU_RDMA_SURF_NOTCH.SURF_NOTCH_ADDR">()} * spec::atom_bytes;
    return places;
}

/// Who reads cubes, and which operand both readers share.
struct Readers {
    bool main = false;     ///< MRDMA
    bool operand = false;  ///< ERDMA
    std::uint32_t combination = 0;
};

Result<Readers> read_readers(WatchedRegisters& r, const DpuShape& shape) {
    const Readers readers{.main = !r.flag<"DPU_RDMA_FEATURE_MODE_CFG.MRDMA_DISABLE">(),
                          .operand = !r.flag<"DPU_RDMA_ERDMA_CFG.ERDMA_DISABLE">(),
                          .combination = r.get<"DPU_RDMA_FEATURE_MODE_CFG.COMB_USE">()};
    if (readers.main && !shape.flying && !shape.element_wise)
        return refused_by_rdma(
            "a main operand is read and nobody takes it: a real chip hangs "
            "(MRDMA_DISABLE)",
            Cause::bad_input);
    if (shape.element_wise != readers.operand)
        return refused_by_rdma("ERDMA_DISABLE and the DPU's EW_CFG do not agree", Cause::bad_input);
    if (readers.operand) REEF_CHECK(check_element_size(r, shape));
    if (shape.flying && (!readers.main || readers.combination != 0))
        return refused_by_rdma("without CORE the main operand comes from MRDMA alone");
    return readers;
}

std::uint64_t surface_bytes(const DpuShape& shape) {
    return std::uint64_t{shape.width} * shape.height * spec::atom_bytes;
}

/// In place of CORE's sums.
Result<Sums> read_main(WatchedRegisters& r, const DpuShape& shape, const Memory& memory,
                       Traffic& traffic) {
    const auto notch =
        std::uint64_t{r.get<"DPU_RDMA_SURF_NOTCH.SURF_NOTCH_ADDR">()} * spec::atom_bytes;
    const auto base = r.get<"DPU_RDMA_SRC_BASE_ADDR.SRC_BASE_ADDR">();
    return read_cube({base, 0, surface_bytes(shape) + notch, false}, shape,
                     "DPU_RDMA: main operand", memory, traffic);
}

constexpr const char* element_wise_operand = "DPU_RDMA: element-wise operand";

/// Beside a main operand from memory.
Result<Sums> read_beside_main(WatchedRegisters& r, const DpuShape& shape, const Memory& memory,
                              Traffic& traffic) {
    const auto pitch =
        std::uint64_t{r.get<"DPU_RDMA_EW_SURF_STRIDE.EW_SURF_STRIDE">()} * spec::atom_bytes;
    const auto notch =
        std::uint64_t{r.get<"DPU_RDMA_EW_SURF_NOTCH.EW_SURF_NOTCH">()} * spec::atom_bytes;
    if (notch != 0 && surface_bytes(shape) + notch != pitch)
        return refused_by_rdma("EW_SURF_STRIDE and EW_SURF_NOTCH do not agree", Cause::bad_input);
    const auto base = r.get<"DPU_RDMA_EW_BASE_ADDR.EW_BASE_ADDR">();
    return read_cube({base, 0, pitch, false}, shape, element_wise_operand, memory, traffic);
}

/// Beside CORE's sums.
Result<Sums> read_beside_sums(WatchedRegisters& r, const DpuShape& shape, const Readers& readers,
                              const Memory& memory, Traffic& traffic) {
    // Bit 0 and bit 2: both readers for the element-wise operand.
    if (!readers.main || readers.combination != 5)
        return refused_by_rdma(
            "an element-wise operand beside CORE's sums comes from both "
            "readers (COMB_USE 5)");
    const auto places = paired_places(r, surface_bytes(shape));
    const auto odd_notch = r.get<"DPU_RDMA_EW_SURF_NOTCH.EW_SURF_NOTCH">();
    if (odd_notch != r.get<"DPU_RDMA_SURF_NOTCH.SURF_NOTCH_ADDR">())
        return refused_by_rdma("SURF_NOTCH and EW_SURF_NOTCH differ");
    r.without_effect<"DPU_RDMA_EW_SURF_STRIDE">();  // the notches give the pitch
    return read_cube(places, shape, element_wise_operand, memory, traffic);
}

/// Registers of readers that read nothing.
void overlook_idle(WatchedRegisters& r, const DpuShape& shape, const Readers& readers) {
    if (!readers.main && !readers.operand)
        r.without_effect<"DPU_RDMA_SRC_BASE_ADDR", "DPU_RDMA_EW_BASE_ADDR",
                         "DPU_RDMA_EW_SURF_STRIDE", "DPU_RDMA_SURF_NOTCH", "DPU_RDMA_EW_SURF_NOTCH",
                         "DPU_RDMA_ERDMA_CFG">();
    if (shape.flying && !readers.operand)
        r.without_effect<"DPU_RDMA_EW_BASE_ADDR", "DPU_RDMA_EW_SURF_STRIDE",
                         "DPU_RDMA_EW_SURF_NOTCH", "DPU_RDMA_ERDMA_CFG">();
}

}  // namespace

Result<Operands> read_operands(WatchedRegisters& r, const DpuShape& shape, const Memory& memory,
                               const Switches& switches, Traffic& traffic) {
    REEF_CHECK(check_operand_shape(r, shape));
    Operands out;
    out.bs = REEF_TRY(read_bs(r, shape, memory, switches, traffic));
    out.bn = REEF_TRY(read_bn(r, shape, memory, traffic));
    const Readers readers = REEF_TRY(read_readers(r, shape));
    if (shape.flying) out.main = REEF_TRY(read_main(r, shape, memory, traffic));
    if (readers.operand)
        out.element_wise = shape.flying
                               ? REEF_TRY(read_beside_main(r, shape, memory, traffic))
                               : REEF_TRY(read_beside_sums(r, shape, readers, memory, traffic));
    overlook_idle(r, shape, readers);
    return out;
}

}  // namespace reef::rk3588::sim
