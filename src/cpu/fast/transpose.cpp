// Bytes of a matrix that lie along its columns and are wanted along its rows, in blocks of 16 x 16.
#include "base/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/fast/transpose.cpp"
#include <hwy/foreach_target.h>
// After it, once per target:
#include <hwy/highway.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/worker_pool.h"
#include "cpu/reference/rearrangement.h"

HWY_BEFORE_NAMESPACE();
namespace reef::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

void transpose_columns(const std::uint8_t* in, std::size_t in_step, std::uint8_t* out,
                       std::size_t out_step, std::size_t rows) {
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < transpose_block_side; ++c)
            out[c * out_step + r] = in[r * in_step + c];
}

#else

/// out[c * out_step + r] = in[r * in_step + c] for 16 rows and 16 columns. Row r = r3 r2 r1 r0 and
/// column c3 c2 c1 c0, in bits: interleaving rows that differ in r3 moves that bit behind those of
/// the column and c3 into the row's, so that four rounds exchange them.
HWY_INLINE void transpose_block(const std::uint8_t* HWY_RESTRICT in, std::size_t in_step,
                                std::uint8_t* HWY_RESTRICT out, std::size_t out_step) {
    const hn::Full128<std::uint8_t> d;
    using V = hn::Vec<decltype(d)>;
    V rows[transpose_block_side], next[transpose_block_side];
    for (std::size_t r = 0; r < transpose_block_side; ++r) rows[r] = hn::LoadU(d, in + r * in_step);
    const auto round = [d](const V* from, V* to) HWY_ATTR {
        for (std::size_t i = 0; i < transpose_block_side / 2; ++i) {
            const V a = from[i], b = from[i + transpose_block_side / 2];
            to[2 * i] = hn::InterleaveLower(d, a, b);
            to[2 * i + 1] = hn::InterleaveUpper(d, a, b);
        }
    };
    round(rows, next);
    round(next, rows);
    round(rows, next);
    round(next, rows);
    for (std::size_t c = 0; c < transpose_block_side; ++c)
        hn::StoreU(rows[c], d, out + c * out_step);
}

/// 16 columns from all `rows`, of which there are 16 at least; the last block may move some a
/// second time.
void transpose_columns(const std::uint8_t* in, std::size_t in_step, std::uint8_t* out,
                       std::size_t out_step, std::size_t rows) {
    std::size_t r = 0;
    for (; r + transpose_block_side <= rows; r += transpose_block_side)
        transpose_block(in + r * in_step, in_step, out + r, out_step);
    if (r < rows) {
        r = rows - transpose_block_side;
        transpose_block(in + r * in_step, in_step, out + r, out_step);
    }
}

#endif

}  // namespace reef::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace reef::cpu {
namespace {

HWY_EXPORT(transpose_columns);

/// Matrices, one for each combination of the other dimensions.
class FastTranspose final : public Kernel {
  public:
    struct Dimension {
        std::size_t length = 1, in_step = 0, out_step = 0;
    };
    FastTranspose(const char* name, std::vector<Dimension> others, Dimension columns,
                  Dimension rows)
        : name_(name), others_(std::move(others)), columns_(columns), rows_(rows) {
        blocks_ = (columns_.length + transpose_block_side - 1) / transpose_block_side;
        for (const Dimension& one : others_) matrices_ *= one.length;
    }
    [[nodiscard]] std::string name() const override {
        return std::string(name_) + " fast " + std::string(simd_target());
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        constexpr std::size_t worth_a_thread = 1 << 14;  // bytes
        frame.pool.parallel_for(
            matrices_ * blocks_, worth_a_thread / (transpose_block_side * rows_.length) + 1,
            [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                for (std::size_t i = begin; i < end; ++i)
                    transpose(frame.in<std::uint8_t>(0), frame.out<std::uint8_t>(0), i / blocks_,
                              i % blocks_);
            });
        return {};
    }

  private:
    void transpose(const std::uint8_t* in, std::uint8_t* out, std::size_t matrix,
                   std::size_t block) const {
        for (std::size_t d = others_.size(); d-- > 0;) {
            const std::size_t index = matrix % others_[d].length;
            matrix /= others_[d].length;
            in += index * others_[d].in_step;
            out += index * others_[d].out_step;
        }
        const std::size_t column =
            std::min(block * transpose_block_side, columns_.length - transpose_block_side);
        HWY_DYNAMIC_DISPATCH(transpose_columns)
        (in + column, rows_.in_step, out + column * columns_.out_step, columns_.out_step,
         rows_.length);
    }

    const char* name_;
    std::vector<Dimension> others_;
    Dimension columns_, rows_;
    std::size_t blocks_ = 0, matrices_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> fast_byte_transpose(const char* name, const Rearrangement& from) {
    apply_simd_choice();
    const auto joined = joined_dimensions(from.dimensions);
    std::vector<FastTranspose::Dimension> dimensions;
    std::size_t out_step = 1;
    for (std::size_t i = joined.size(); i-- > 0;) {
        const auto& [length, step] = joined[i];
        if (step < 0) return nullptr;
        dimensions.insert(dimensions.begin(), {length, static_cast<std::size_t>(step), out_step});
        out_step *= length;
    }
    if (from.first != 0 || dimensions.size() < 2) return nullptr;
    const FastTranspose::Dimension rows = dimensions.back();
    dimensions.pop_back();
    const auto columns = std::ranges::find(dimensions, 1U, &FastTranspose::Dimension::in_step);
    if (columns == dimensions.end() || rows.length < transpose_block_side ||
        columns->length < transpose_block_side)
        return nullptr;
    const FastTranspose::Dimension across = *columns;
    dimensions.erase(columns);
    return std::make_unique<FastTranspose>(name, std::move(dimensions), across, rows);
}

}  // namespace reef::cpu
#endif
