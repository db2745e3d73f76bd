#include "rk3588/sim/dpu_stages.h"

#include <fmt/format.h>

#include "rk3588/sim/arithmetic.h"

namespace reef::rk3588::sim {
namespace {

std::unexpected<Error> refused_by_stage(const char* stage, std::string what,
                                        Cause cause = Cause::unsupported) {
    return fail(cause, std::move(what), fmt::format("DPU: {}", stage));
}

/// BS or BN as its registers say.
struct Stage {
    const char* name;
    bool bypass, alu_bypass, mul_bypass, relu_bypass, relux;
    bool alu_from_memory, mul_from_memory;
    std::uint32_t alu_operation;
    std::int32_t alu;
    std::int32_t mul;
    unsigned shift, negative_shift;
    std::int32_t relux_bound;
};

// clang-format off
Stage read_bs_stage(WatchedRegisters& r) {
    Stage s{.name = "BS",
            .bypass = r.flag<"DPU_BS_CFG.BS_BYPASS">(),
            .alu_bypass = r.flag<"DPU_BS_CFG.BS_ALU_BYPASS">(),
            .mul_bypass = r.flag<"DPU_BS_CFG.BS_MUL_BYPASS">(),
            .relu_bypass = r.flag<"DPU_BS_CFG.BS_RELU_BYPASS">(),
            .relux = r.flag<"DPU_BS_CFG.BS_RELUX_EN">(),
            .alu_from_memory = r.flag<"DPU_BS_CFG.BS_ALU_SRC">(),
            .mul_from_memory = r.flag<"DPU_BS_MUL_CFG.BS_MUL_SRC">(),
            .alu_operation = r.get<"DPU_BS_CFG.BS_ALU_ALGO">(),
            .alu = r.get_signed<"DPU_BS_ALU_CFG.BS_ALU_OPERAND">(),
            .mul = r.get_signed<"DPU_BS_MUL_CFG.BS_MUL_OPERAND">(),
            .shift = r.get<"DPU_BS_MUL_CFG.BS_MUL_SHIFT_VALUE">(),
            .negative_shift = r.get<"DPU_DATA_FORMAT.BS_MUL_SHIFT_VALUE_NEG">(),
            .relux_bound = r.get_signed<"DPU_BS_RELUX_CMP_VALUE.BS_RELUX_CMP_DAT">()};
    return s;
}

Stage read_bn_stage(WatchedRegisters& r) {
    Stage s{.name = "BN",
            .bypass = r.flag<"DPU_BN_CFG.BN_BYPASS">(),
            .alu_bypass = r.flag<"DPU_BN_CFG.BN_ALU_BYPASS">(),
            .mul_bypass = r.flag<"DPU_BN_CFG.BN_MUL_BYPASS">(),
            .relu_bypass = r.flag<"DPU_BN_CFG.BN_RELU_BYPASS">(),
            .relux = r.flag<"DPU_BN_CFG.BN_RELUX_EN">(),
            .alu_from_memory = r.flag<"DPU_BN_CFG.BN_ALU_SRC">(),
            .mul_from_memory = r.flag<"DPU_BN_MUL_CFG.BN_MUL_SRC">(),
            .alu_operation = r.get<"DPU_BN_CFG.BN_ALU_ALGO">(),
            .alu = r.get_signed<"DPU_BN_ALU_CFG.BN_ALU_OPERAND">(),
            .mul = r.get_signed<"DPU_BN_MUL_CFG.BN_MUL_OPERAND">(),
            .shift = r.get<"DPU_BN_MUL_CFG.BN_MUL_SHIFT_VALUE">(),
            .negative_shift = r.get<"DPU_DATA_FORMAT.BN_MUL_SHIFT_VALUE_NEG">(),
            .relux_bound = r.get_signed<"DPU_BN_RELUX_CMP_VALUE.BN_RELUX_CMP_DAT">()};
    return s;
}
// clang-format on

/// Every operand that the stage takes from memory was read.
Status check_stage(const Stage& s, const StageOperands& operands, Elements elements) {
    if (!s.alu_bypass) {
        if (s.alu_operation != spec::value::alu::add_ &&
            s.alu_operation != spec::value::alu::minus_)
            return refused_by_stage(
                s.name, fmt::format("the ALU's operator {} has no known meaning", s.alu_operation));
        if (s.alu_from_memory && operands.alu.empty())
            return refused_by_stage(s.name, "the ALU's operand was not read", Cause::bad_input);
    }
    if (!s.mul_bypass && s.mul_from_memory && operands.mul.empty())
        return refused_by_stage(s.name, "the factors were not read", Cause::bad_input);
    if (elements == Elements::fp16 && !s.mul_bypass && (s.shift != 0 || s.negative_shift != 0))
        return refused_by_stage(s.name, "a shift of fp16 is not modelled");
    return {};
}

std::int32_t through_stage(const Stage& s, const StageOperands& operands, unsigned channel,
                           std::int32_t value) {
    if (!s.alu_bypass) {
        const std::int64_t operand = s.alu_from_memory ? operands.alu[channel] : s.alu;
        value = saturated32(s.alu_operation == spec::value::alu::add_ ? value + operand
                                                                      : value - operand);
    }
    if (!s.mul_bypass) {
        const std::int64_t product =
            std::int64_t{value} * (s.mul_from_memory ? operands.mul[channel] : s.mul);
        value = saturated32(
            shifted(product, product < 0 ? s.negative_shift : s.shift, Rounding::half_to_even));
    }
    if (!s.relu_bypass) {
        value = std::max(value, 0);
        if (s.relux) value = std::min(value, s.relux_bound);
    }
    return value;
}

float through_float_stage(const Stage& s, float value) {
    if (!s.alu_bypass) {
        const auto operand = std::bit_cast<float>(s.alu);
        value = s.alu_operation == spec::value::alu::add_ ? value + operand : value - operand;
    }
    if (!s.mul_bypass) value *= float_of_half(static_cast<std::uint16_t>(s.mul));
    if (!s.relu_bypass) {
        value = std::max(value, 0.0F);
        if (s.relux) value = std::min(value, std::bit_cast<float>(s.relux_bound));
    }
    return value;
}

Status run_stage(const Stage& s, const StageOperands& operands, unsigned channels, Sums& data) {
    if (s.bypass) return {};
    REEF_CHECK(check_stage(s, operands, data.elements));
    if (data.elements == Elements::fp16 && (s.alu_from_memory || s.mul_from_memory))
        return refused_by_stage(s.name, "operands of fp16 in memory are not modelled");
    for (std::size_t p = 0; p < data.pixels(); ++p)
        for (unsigned c = 0; c < channels; ++c) {
            const std::size_t at = p * data.channels + c;
            if (data.elements == Elements::int8) {
                data.integers[at] = through_stage(s, operands, c, data.integers[at]);
            } else {
                data.floats[at] = through_float_stage(s, data.floats[at]);
            }
        }
    return {};
}

/// EW as its registers say.
struct ElementWise {
    bool multiply, relu_bypass, relux, convert, offset_first;
    std::uint32_t operation;
    std::int32_t offset, scale;
    unsigned shift;
    Rounding rounding;
    std::int32_t relux_bound;
};

ElementWise read_element_wise(WatchedRegisters& r) {
    return {.multiply = r.flag<"DPU_EW_CFG.EW_OP_TYPE">(),
            .relu_bypass = r.flag<"DPU_EW_CFG.EW_RELU_BYPASS">(),
            .relux = r.flag<"DPU_EW_CFG.EW_RELUX_EN">(),
            .convert = !r.flag<"DPU_EW_CFG.EW_OP_CVT_BYPASS">(),
            .offset_first = r.flag<"DPU_EW_CFG.EW_CVT_TYPE">(),
            .operation = r.get<"DPU_EW_CFG.EW_ALU_ALGO">(),
            .offset = r.get_signed<"DPU_EW_CVT_OFFSET_VALUE.EW_OP_CVT_OFFSET">(),
            .scale = r.get_signed<"DPU_EW_CVT_SCALE_VALUE.EW_OP_CVT_SCALE">(),
            .shift = r.get<"DPU_EW_CVT_SCALE_VALUE.EW_OP_CVT_SHIFT">(),
            .rounding =
                r.flag<"DPU_EW_CFG.EW_CVT_ROUND">() ? Rounding::half_away : Rounding::half_to_even,
            .relux_bound = r.get_signed<"DPU_EW_RELUX_CMP_VALUE.EW_RELUX_CMP_DAT">()};
}

std::int32_t converted(const ElementWise& e, std::int64_t operand) {
    if (!e.convert) return static_cast<std::int32_t>(operand);
    if (e.offset_first)
        return saturated32(shifted((operand + e.offset) * e.scale, e.shift, e.rounding));
    return saturated32(shifted(operand * e.scale, e.shift, e.rounding) + e.offset);
}

Result<float> float_result(const ElementWise& e, float a, float b) {
    using namespace spec::value::ew_operation;
    if (e.multiply) return a * b;
    switch (e.operation) {
        case max_:
            return std::max(a, b);
        case min_:
            return std::min(a, b);
        case add_:
            return a + b;
        case div_:
            return a / b;
        case minus_:
            return a - b;
        default:
            return refused_by_stage("EW",
                                    fmt::format("EW_ALU_ALGO {} is not modelled", e.operation));
    }
}

Status run_element_wise(const ElementWise& e, const Sums& operand, unsigned channels, Sums& data) {
    if (data.elements == Elements::int8 && !e.multiply &&
        e.operation != spec::value::ew_operation::add_)
        return refused_by_stage("EW", "of int8 addition and multiplication are modelled");
    if (data.elements == Elements::fp16 && e.convert &&
        (e.scale != 1 || e.shift != 0 || e.offset != 0))
        return refused_by_stage("EW", "a conversion of an fp16 operand is not modelled");
    for (std::size_t p = 0; p < data.pixels(); ++p)
        for (unsigned c = 0; c < channels; ++c) {
            const std::size_t at = p * data.channels + c;
            const std::size_t from = p * operand.channels + c;
            if (data.elements == Elements::int8) {
                std::int32_t& value = data.integers[at];
                const std::int64_t other = converted(e, operand.integers[from]);
                value = saturated32(e.multiply ? value * other : value + other);
                if (!e.relu_bypass) value = std::max(value, 0);
                if (!e.relu_bypass && e.relux) value = std::min(value, e.relux_bound);
            } else {
                float& value = data.floats[at];
                value = REEF_TRY(float_result(e, value, operand.floats[from]));
                if (!e.relu_bypass) value = std::max(value, 0.0F);
                if (!e.relu_bypass && e.relux)
                    value = std::min(value, std::bit_cast<float>(e.relux_bound));
            }
        }
    return {};
}

void ignore_element_wise(WatchedRegisters& r) {
    r.without_effect<"DPU_EW_CVT_OFFSET_VALUE", "DPU_EW_CVT_SCALE_VALUE", "DPU_EW_RELUX_CMP_VALUE",
                     "DPU_EW_CFG">();
}

void ignore_tables(WatchedRegisters& r) {
    r.without_effect<"DPU_LUT_CFG", "DPU_LUT_INFO", "DPU_LUT_LE_START", "DPU_LUT_LE_END",
                     "DPU_LUT_LO_START", "DPU_LUT_LO_END", "DPU_LUT_LE_SLOPE_SCALE",
                     "DPU_LUT_LE_SLOPE_SHIFT", "DPU_LUT_LO_SLOPE_SCALE",
                     "DPU_LUT_LO_SLOPE_SHIFT">();
}

}  // namespace

Status run_stages(WatchedRegisters& r, const DpuShape& shape, const Operands& operands,
                  const FunctionTables& tables, const Switches& switches, Sums& data) {
    const Stage bs = read_bs_stage(r);
    const Stage bn = read_bn_stage(r);
    REEF_CHECK(run_stage(bs, operands.bs, shape.channels, data));
    REEF_CHECK(run_stage(bn, operands.bn, shape.channels, data));
    r.without_effect<"DPU_EW_OP_VALUE_0", "DPU_EW_OP_VALUE_1", "DPU_EW_OP_VALUE_2",
                     "DPU_EW_OP_VALUE_3", "DPU_EW_OP_VALUE_4", "DPU_EW_OP_VALUE_5",
                     "DPU_EW_OP_VALUE_6", "DPU_EW_OP_VALUE_7">();
    const bool through_tables =
        !r.flag<"DPU_EW_CFG.EW_BYPASS">() && !r.flag<"DPU_EW_CFG.EW_LUT_BYPASS">();
    if (through_tables) return run_function(r, shape, tables, switches, data);
    ignore_tables(r);
    if (r.flag<"DPU_EW_CFG.EW_BYPASS">()) {
        ignore_element_wise(r);
        return {};
    }
    if (!shape.element_wise)
        return refused_by_stage("EW", "an operand from registers is not modelled");
    if (r.get<"DPU_EW_CFG.EW_DATA_MODE">() != 1)
        return refused_by_stage("EW", "only operands for every pixel are modelled");
    // DPU_RDMA has checked the operand's size against ERDMA_DATA_SIZE.
    r.fields_without_effect<"DPU_EW_CFG.EDATA_SIZE">();
    if (!operands.element_wise)
        return refused_by_stage("EW", "the operand was not read", Cause::bad_input);
    return run_element_wise(read_element_wise(r), *operands.element_wise, shape.channels, data);
}

}  // namespace reef::rk3588::sim
