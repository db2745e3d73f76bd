#include "rk3588/matmul/matmul_plan.h"

#include <algorithm>
#include <functional>

#include "reef_spec/rk3588_machine.h"
#include "rk3588/layout/convolution_buffer.h"
#include "rk3588/regs/register_set.h"

namespace reef::rk3588::matmul {
namespace {

constexpr std::size_t row_step = spec::product_row_step;
/// Of one start: the arrays wait for as many rows as FEATURE_GRAINS says.
constexpr std::size_t most_rows =
    field_named("CNA_CONV_CON2.FEATURE_GRAINS").mask() - spec::product_spare_grains;

std::size_t up(std::size_t value, std::size_t step) {
    return (value + step - 1) / step;
}

BufferedRows rows_of(std::size_t row_bytes) {
    return {.pixels = 1, .atoms = up(row_bytes, spec::atom_bytes)};
}

/// Rows for so many banks, whole steps of them.
std::size_t rows_for(std::size_t banks, std::size_t row_bytes, std::size_t stored_rows) {
    const std::size_t rows = rows_of(row_bytes).rows_in(banks, std::min(stored_rows, most_rows));
    return rows < row_step ? rows : rows / row_step * row_step;
}

/// One way to cut a stretch of A's columns: so many of B's columns and of A's rows at once.
struct Cut {
    std::size_t columns = 0, rows = 0;
    unsigned data_banks = 0, weight_banks = 0;
    bool stays = false;  ///< weights stay for all rows
    std::uint64_t bytes = 0;
};

Cut cut_of(const ProductShape& s, std::size_t k, std::size_t n, std::size_t columns, bool stays) {
    const std::size_t row_bytes = k * s.element_bytes(), weights = columns * row_bytes;
    const std::size_t group = std::min(columns, std::size_t{spec::int8_group_kernels}) * row_bytes;
    const std::size_t banks = stays ? banks_of_weights(weights) : banks_of_streamed_weights(group);
    if (banks >= spec::cbuf_banks) return {};
    Cut cut{.columns = columns,
            .rows = rows_for(spec::cbuf_banks - banks, row_bytes, s.stored_m())};
    if (cut.rows == 0) return {};
    cut.data_banks = static_cast<unsigned>(
        std::min<std::size_t>(spec::cbuf_banks - banks, rows_of(row_bytes).banks_of(cut.rows)));
    cut.weight_banks = static_cast<unsigned>(spec::cbuf_banks) - cut.data_banks;
    cut.stays = stays;
    const std::size_t row_tiles = up(s.stored_m(), cut.rows), column_tiles = up(n, columns);
    cut.bytes = std::uint64_t{s.stored_m()} * row_bytes * column_tiles +
                std::uint64_t{n} * row_bytes * (stays ? 1 : row_tiles);
    return cut;
}

Cut best_cut(const ProductShape& s, std::size_t k, std::size_t n) {
    Cut best;
    const auto take = [&](const Cut& cut) {
        if (cut.rows == 0) return;
        if (best.rows == 0 || cut.bytes < best.bytes) best = cut;
    };
    take(cut_of(s, k, n, std::min(n, spec::most_product_columns), false));
    for (std::size_t columns = s.group(); columns < n + s.group(); columns += s.group())
        if (columns <= spec::most_product_columns)
            take(cut_of(s, k, n, std::min(n, columns), true));
    return best;
}

}  // namespace

std::size_t ProductShape::group() const {
    return elements == MatrixElements::int8 ? spec::int8_group_kernels : spec::fp16_group_kernels;
}
std::size_t ProductShape::stored_k() const {
    return up(k, spec::kernel_lanes) * spec::kernel_lanes;
}
std::size_t ProductShape::stored_n() const {
    return up(n, group()) * group();
}
std::size_t ProductShape::stored_m() const {
    return m == 1 ? 1 : up(m, row_step) * row_step;
}

std::uint64_t ProductPlan::bytes_moved() const {
    std::uint64_t bytes = 0;
    for (const auto& tasks : cores)
        for (const ProductTask& task : tasks) bytes += task.bytes_moved;
    return bytes;
}

std::size_t k_tile_size(const ProductShape& shape) {
    return std::min(shape.stored_k(), spec::most_exact_sum_bytes / shape.element_bytes());
}

ProductPlan plan_product(const ProductShape& s, std::size_t cores) {
    ProductPlan plan;
    const std::size_t groups = s.stored_n() / s.group(), tile = k_tile_size(s);
    const std::size_t used = std::min(cores, groups);
    plan.k_tiles = up(s.stored_k(), tile);
    for (std::size_t core = 0; core < used; ++core) {
        const std::size_t each = groups / used, more = groups % used;
        const std::size_t first = (core * each + std::min(core, more)) * s.group();
        const std::size_t n = (each + (core < more ? 1 : 0)) * s.group();
        auto& tasks = plan.cores.emplace_back();
        for (std::size_t t = 0; t < plan.k_tiles; ++t) {
            const std::size_t first_k = t * tile, k = std::min(tile, s.stored_k() - first_k);
            const Cut cut = best_cut(s, k, n);
            for (std::size_t c = 0; c < n; c += cut.columns) {
                const std::size_t columns = std::min(cut.columns, n - c);
                for (std::size_t row = 0; row < s.stored_m(); row += cut.rows) {
                    const std::size_t rows = std::min(cut.rows, s.stored_m() - row);
                    const bool kept = cut.stays && row > 0;
                    const std::uint64_t k_bytes = std::uint64_t{k} * s.element_bytes();
                    tasks.push_back({row, rows, first_k, k, first + c, columns, t, cut.data_banks,
                                     cut.weight_banks, kept,
                                     rows * k_bytes + (kept ? 0 : columns * k_bytes) +
                                         std::uint64_t{rows} * columns * sizeof(std::int32_t)});
                }
            }
        }
    }
    // Cores with fewer columns may be cut into more tasks; submissions begin with the most.
    std::ranges::stable_sort(plan.cores, std::ranges::greater{},
                             [](const auto& tasks) { return tasks.size(); });
    return plan;
}

}  // namespace reef::rk3588::matmul
