#include "cpu/fast/tiled_product.h"

#include <algorithm>
#include <array>
#include <utility>

#include "graph/memory_plan.h"

namespace reef::cpu {
namespace {

// Gathered rows of one tile: they and a block of weights stay in the second-level cache. Rows that
// wait there for further blocks may be more.
constexpr std::size_t tile_bytes = std::size_t{96} << 10, held_bytes = std::size_t{256} << 10;

}  // namespace

TiledProduct::TiledProduct(MatrixForm form, Convolution c, int threads,
                           std::span<const float> weight_scales)
    : functions_(form.functions),
      c_(std::move(c)),
      matrix_(std::move(form.matrix)),
      threads_(static_cast<std::size_t>(threads)) {
    const bool is_hybrid = !weight_scales.empty();
    if (is_hybrid)
        matrix_.float_output = float_output_of(*c_.floats, weight_scales, matrix_.blocks);
    const std::size_t step = functions_.rows_at_once;
    const std::size_t all = steps() * step;
    const std::size_t fit = tile_bytes / matrix_.row_bytes() / step * step;
    const bool are_held = is_cut_by_blocks() && all * matrix_.row_bytes() <= held_bytes;
    tile_rows_ = are_held ? all : std::min(std::max(fit, step), all);
    values_bytes_ = graph::align_up(tile_rows_ * matrix_.row_bytes() + gather_slack);
    if (matrix_.row_factor != 0) sums_bytes_ = graph::align_up(tile_rows_ * sizeof(std::int32_t));
    worker_bytes_ = values_bytes_ + sums_bytes_ +
                    graph::align_up(is_hybrid ? tile_rows_ * sizeof(RowScale) : 0);
}

void TiledProduct::pack() {
    pack(c_.weights, {c_.weights, {}});
}

void TiledProduct::pack(SharedBytes weights) {
    const WeightsMadeOf all{weights, {}};
    pack(std::move(weights), all);
}

void TiledProduct::pack(SharedBytes weights, const WeightsMadeOf& from) {
    c_.weights = std::move(weights);
    pack_matrix(c_, from, matrix_);
    c_.weights = {};
    // From here on it is of the activations.
    if (matrix_.float_output.is_used() && takes_uint8()) c_.type = ElementType::uint8;
}

std::size_t TiledProduct::steps() const {
    const std::size_t step = functions_.rows_at_once;
    return (pixels() + step - 1) / step;
}

bool TiledProduct::is_cut_by_blocks() const {
    return threads_ > 1 && steps() < 8 * threads_ && matrix_.blocks.size() >= 2 * threads_;
}

void TiledProduct::run(const Input& input, std::byte* out, std::byte* scratch,
                       WorkerPool& pool) const {
    const std::size_t step = functions_.rows_at_once;
    const std::size_t blocks = matrix_.blocks.size();
    if (steps() == 0 || blocks == 0) return;
    const std::size_t at_once =
        functions_.group == GroupOf::floats ? dense_float_products : dense_byte_products;
    const std::size_t work = pixels() * matrix_.products_per_row();
    if (is_cut_by_blocks()) {
        std::array<const std::byte*, WorkerPool::most_threads> held{};
        pool.parallel_for(blocks, grain_of(work / blocks, at_once),
                          [&](std::size_t begin, std::size_t end, std::size_t worker) {
                              run_part({input,
                                        out,
                                        {0, pixels()},
                                        begin,
                                        end,
                                        scratch + worker * worker_bytes_,
                                        &held[worker]});
                          });
    } else {
        pool.parallel_for(
            steps(), grain_of(work / steps(), at_once),
            [&](std::size_t begin, std::size_t end, std::size_t worker) {
                const PixelRange some{begin * step, std::min(end * step, pixels())};
                run_part({input, out, some, 0, blocks, scratch + worker * worker_bytes_});
            });
    }
}

RowScale TiledProduct::scale_of(const StepRule& rule) const {
    const std::int32_t flipped = takes_uint8() ? 128 : 0;
    return {rule.scale, static_cast<std::int32_t>(rule.zero) + flipped};
}

Rows TiledProduct::rows_of(const Part& part, PixelRange pixels, std::int32_t zero,
                           std::int32_t* sums) const {
    if (part.held != nullptr && *part.held != nullptr)
        return {.values = *part.held, .sums = matrix_.row_factor == 0 ? nullptr : sums};
    const Rows rows =
        functions_.gather(c_, matrix_, part.input.values, zero, pixels, part.scratch, sums);
    const bool is_all = pixels.begin == part.pixels.begin && pixels.end == part.pixels.end;
    if (part.held != nullptr && is_all) *part.held = rows.values;
    return rows;
}

void TiledProduct::run_part(const Part& part) const {
    auto* sums = reinterpret_cast<std::int32_t*>(part.scratch + values_bytes_);
    auto* scales = reinterpret_cast<RowScale*>(part.scratch + values_bytes_ + sums_bytes_);
    const StepRule* rules = part.input.rules;
    const std::size_t pixel_bytes =
        static_cast<std::size_t>(c_.out_channels) * (c_.floats ? sizeof(float) : 1);
    const auto image = static_cast<std::size_t>(c_.h.out * c_.w.out);
    for (std::size_t p = part.pixels.begin; p < part.pixels.end;) {
        std::size_t stop = std::min(p + tile_rows_, part.pixels.end);
        std::int32_t zero = c_.input_zero;
        if (rules != nullptr) {
            // Windows at an image's edge read its zero: such rows are gathered image by image.
            if (!reads_in_order(c_)) stop = std::min(stop, (p / image + 1) * image);
            for (std::size_t i = p; i < stop; ++i) scales[i - p] = scale_of(rules[i / image]);
            zero = scales[0].zero;
        }
        Rows rows = rows_of(part, {p, stop}, zero, sums);
        if (rules != nullptr) rows.scales = scales;
        functions_.multiply(matrix_, rows, stop - p, part.begin, part.end,
                            part.out + p * pixel_bytes, pixel_bytes);
        p = stop;
    }
}

}  // namespace reef::cpu
