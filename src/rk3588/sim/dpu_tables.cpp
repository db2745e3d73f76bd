#include "rk3588/sim/dpu_tables.h"

#include <fmt/format.h>

#include "rk3588/sim/arithmetic.h"

namespace reef::rk3588::sim {
namespace {

constexpr unsigned le = 0, lo = 1;
constexpr const char* table_names[] = {"LE", "LO"};

std::unexpected<Error> refused_by_table(std::string what, Cause cause = Cause::unsupported) {
    return fail(cause, std::move(what), "DPU: function by table");
}

/// Beyond one end of a table: so much more for each unit of distance.
struct Slope {
    std::int32_t scale = 0;
    unsigned shift = 0;
};

struct TableRange {
    std::int64_t start = 0, end = 0;
    unsigned index_shift = 0;
    Slope below, above;
};

/// How the tables are used, as the registers say.
struct FunctionForm {
    TableRange tables[2];
    unsigned below_both = le, above_both = le, in_both = le;
};

// clang-format off
FunctionForm read_form(WatchedRegisters& r) {
    FunctionForm f;
    f.tables[le] = {.start = r.get_signed<"DPU_LUT_LE_START.LUT_LE_START">(),
                    .end = r.get_signed<"DPU_LUT_LE_END.LUT_LE_END">(),
                    .index_shift = r.get<"DPU_LUT_INFO.LUT_LE_INDEX_SELECT">(),
                    .below = {r.get_signed<"DPU_LUT_LE_SLOPE_SCALE.LUT_LE_SLOPE_UFLOW_SCALE">(),
                              r.get<"DPU_LUT_LE_SLOPE_SHIFT.LUT_LE_SLOPE_UFLOW_SHIFT">()},
                    .above = {r.get_signed<"DPU_LUT_LE_SLOPE_SCALE.LUT_LE_SLOPE_OFLOW_SCALE">(),
                              r.get<"DPU_LUT_LE_SLOPE_SHIFT.LUT_LE_SLOPE_OFLOW_SHIFT">()}};
    f.tables[lo] = {.start = r.get_signed<"DPU_LUT_LO_START.LUT_LO_START">(),
                    .end = r.get_signed<"DPU_LUT_LO_END.LUT_LO_END">(),
                    .index_shift = r.get<"DPU_LUT_INFO.LUT_LO_INDEX_SELECT">(),
                    .below = {r.get_signed<"DPU_LUT_LO_SLOPE_SCALE.LUT_LO_SLOPE_UFLOW_SCALE">(),
                              r.get<"DPU_LUT_LO_SLOPE_SHIFT.LUT_LO_SLOPE_UFLOW_SHIFT">()},
                    .above = {r.get_signed<"DPU_LUT_LO_SLOPE_SCALE.LUT_LO_SLOPE_OFLOW_SCALE">(),
                              r.get<"DPU_LUT_LO_SLOPE_SHIFT.LUT_LO_SLOPE_OFLOW_SHIFT">()}};
    f.below_both = r.get<"DPU_LUT_CFG.LUT_UFLOW_PRIORITY">();
    f.above_both = r.get<"DPU_LUT_CFG.LUT_OFLOW_PRIORITY">();
    f.in_both = r.get<"DPU_LUT_CFG.LUT_HYBRID_PRIORITY">();
    return f;
}
// clang-format on

Status check_form(WatchedRegisters& r, const FunctionForm& form, Elements elements) {
    // The only value of every known stream; others have no known meaning.
    constexpr std::uint32_t usual_mux = 2;
    constexpr unsigned most_shift = 31;
    if (elements != Elements::int8) return refused_by_table("of int8 alone it is modelled");
    if (!r.flag<"DPU_EW_CFG.EW_OP_BYPASS">())
        return refused_by_table(
            "an operator in front of the tables (EW_OP_BYPASS) is not modelled");
    if (!r.flag<"DPU_EW_CFG.EW_RELU_BYPASS">())
        return refused_by_table("ReLU with the tables is not modelled");
    if (const auto mux = r.get<"DPU_LUT_CFG.LUT_LO_LE_MUX">(); mux != usual_mux)
        return refused_by_table(fmt::format("LUT_LO_LE_MUX {} has no known meaning", mux));
    for (const unsigned t : {le, lo}) {
        if (form.tables[t].start > form.tables[t].end)
            return refused_by_table(fmt::format("{} ends in front of its start", table_names[t]),
                                    Cause::bad_input);
        if (form.tables[t].index_shift > most_shift)
            return refused_by_table(fmt::format("LUT_{}_INDEX_SELECT {} is not modelled",
                                                table_names[t], form.tables[t].index_shift));
    }
    // The operand, which nobody takes.
    r.fields_without_effect<
        "DPU_EW_CFG.EW_OP_SRC", "DPU_EW_CFG.EW_OP_TYPE", "DPU_EW_CFG.EW_ALU_ALGO",
        "DPU_EW_CFG.EDATA_SIZE", "DPU_EW_CFG.EW_DATA_MODE", "DPU_EW_CFG.EW_CVT_TYPE",
        "DPU_EW_CFG.EW_CVT_ROUND", "DPU_EW_CFG.EW_OP_CVT_BYPASS", "DPU_EW_CFG.EW_MUL_PRELU",
        "DPU_EW_CFG.EW_EQUAL_EN", "DPU_EW_CFG.EW_BINARY_EN", "DPU_EW_CFG.EW_RELUX_EN">();
    r.without_effect<"DPU_EW_CVT_OFFSET_VALUE", "DPU_EW_CVT_SCALE_VALUE",
                     "DPU_EW_RELUX_CMP_VALUE">();
    return {};
}

/// One value through the tables.
class Function {
  public:
    Function(const FunctionForm& form, const FunctionTables& tables, const Switches& switches)
        : form_(form),
          tables_(tables),
          down_(switches.interpolation == Switches::Interpolation::down) {}

    [[nodiscard]] Result<std::int32_t> of(std::int32_t value) const {
        const TableRange &first = form_.tables[le], &second = form_.tables[lo];
        const bool in_le = value >= first.start && value <= first.end;
        const bool in_lo = value >= second.start && value <= second.end;
        if (in_le != in_lo) return of(value, in_le ? le : lo);
        if (!in_le && value < first.start && value < second.start)
            return of(value, form_.below_both);
        if (!in_le && value > first.end && value > second.end) return of(value, form_.above_both);
        return of(value, form_.in_both);
    }

  private:
    [[nodiscard]] std::int64_t less(std::int64_t value, unsigned shift) const {
        return down_ ? value >> shift : shifted(value, shift, Rounding::half_away);
    }

    [[nodiscard]] Result<std::int32_t> of(std::int64_t value, unsigned table) const {
        const TableRange& range = form_.tables[table];
        const std::int64_t inside = std::clamp(value, range.start, range.end);
        const auto distance = static_cast<std::uint64_t>(inside - range.start);
        const std::uint64_t index = distance >> range.index_shift;
        const auto rest = static_cast<std::int64_t>(distance - (index << range.index_shift));
        std::int64_t result = REEF_TRY(tables_.at(table, index));
        if (rest != 0) {
            const std::int64_t next = REEF_TRY(tables_.at(table, index + 1));
            result += less((next - result) * rest, range.index_shift);
        }
        const Slope& slope = value < inside ? range.below : range.above;
        return saturated32(result + less((value - inside) * slope.scale, slope.shift));
    }

    const FunctionForm& form_;
    const FunctionTables& tables_;
    bool down_;
};

}  // namespace

Status FunctionTables::load(std::span<const TableWrite> writes) {
    for (const TableWrite& w : writes) {
        if (w.entry >= spec::lut_entries)
            return refused_by_table(fmt::format("entry {} of {}, which has {}", w.entry,
                                                table_names[w.table], spec::lut_entries),
                                    Cause::bad_input);
        tables_[w.table].entries[w.entry] = w.value;
        tables_[w.table].loaded.set(w.entry);
    }
    return {};
}

Result<std::int32_t> FunctionTables::at(unsigned table, std::uint64_t entry) const {
    if (entry >= spec::lut_entries || !tables_[table].loaded[entry])
        return refused_by_table(
            fmt::format("entry {} of {} is not loaded", entry, table_names[table]),
            Cause::bad_input);
    return tables_[table].entries[entry];
}

Status run_function(WatchedRegisters& r, const DpuShape& shape, const FunctionTables& tables,
                    const Switches& switches, Sums& data) {
    const FunctionForm form = read_form(r);
    REEF_CHECK(check_form(r, form, data.elements));
    const Function function(form, tables, switches);
    for (std::size_t p = 0; p < data.pixels(); ++p)
        for (unsigned c = 0; c < shape.channels; ++c) {
            std::int32_t& value = data.integers[p * data.channels + c];
            value = REEF_TRY(function.of(value));
        }
    return {};
}

}  // namespace reef::rk3588::sim
