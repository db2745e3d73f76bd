// Copies words of narrow memory into wide rows, in one of three layouts.
#include <fmt/format.h>

#include "engines.h"

namespace reef::edgetpu::sim {
namespace {

using Row = std::array<std::uint8_t, row_bytes>;

// The first `size` bytes: square matrices of such values, each of which is transposed.
template <typename Value, unsigned side>
void transpose(Row& row, unsigned size) {
    std::array<Value, side * side> from, to;
    for (unsigned at = 0; at < size; at += sizeof from) {
        std::memcpy(from.data(), &row[at], sizeof from);
        for (unsigned i = 0; i < side; ++i)
            for (unsigned j = 0; j < side; ++j) to[i * side + j] = from[j * side + i];
        std::memcpy(&row[at], to.data(), sizeof to);
    }
}

unsigned rounded_up(unsigned size, unsigned block) {
    return (size + block - 1) / block * block;
}

}  // namespace

bool NarrowToWideEngine::write_row(Work& work) {
    const auto at = static_cast<std::uint32_t>(dst_.address());
    if (at >= wide_rows) {
        work.stop(fmt::format("writes wide row {:#x}", at));
        return false;
    }
    std::fill(row_.begin() + filled_, row_.end(), std::uint8_t{0});
    const unsigned block = words_per_block(op_->format) * narrow_word_bytes;
    const unsigned size = rounded_up(filled_, block);
    if (work.word_tags) {
        work.tile.memory.row_format[at] = op_->format;
    } else if (op_->format == RowFormat::transpose_bytes_) {
        transpose<std::uint8_t, 4>(row_, size);
    } else if (op_->format == RowFormat::transpose_halfwords_) {
        transpose<std::uint16_t, 2>(row_, size);
    }
    work.tile.memory.wide[at] = row_;
    work.witness.writes(Watched::wide, at);
    work.fill(op_->dst, at, RowOwner::narrow_to_wide);
    work.tile.memory.row_length[at] = static_cast<std::uint16_t>(size);
    filled_ = 0;
    complete_ = false;
    if (op_->written.fires(dst_.advance(), op_->dst.dimensions))
        work.count(spec::value::tile_counter::NARROW_TO_WIDE_);
    return true;
}

// Words that go on in one row.
std::uint32_t NarrowToWideEngine::words_at_once(const Work& work) const {
    if (op_->row_level == 0) return 1;
    return std::min<std::uint32_t>(work.run(op_->waits, false, src_, narrow_words),
                                   (row_bytes - filled_) / narrow_word_bytes);
}

Outcome NarrowToWideEngine::advance(Work& work) {
    bool moved = false;
    const auto& waits = op_->waits;
    while (complete_ || !src_.done()) {
        if (moved && work.budget == 0) return Outcome::moved;
        if (filled_ == 0 || complete_) {
            if (dst_.done()) return work.stop("has more source words than destination rows");
            if (const auto unready = work.unready(waits, true, dst_))
                return work.wait(*unready, moved);
        }
        if (complete_) {
            const auto row = static_cast<std::uint32_t>(dst_.address());
            if (work.full(op_->dst, row)) return work.wait_for_row(row, moved);
            if (!write_row(work)) return Outcome::waiting;
            moved = true;
            continue;
        }
        if (const auto unready = work.unready(waits, false, src_))
            return work.wait(*unready, moved);
        const auto word_at = static_cast<std::uint32_t>(src_.address());
        if (word_at >= narrow_words)
            return work.stop(fmt::format("reads narrow word {:#x}", word_at));
        const std::size_t at = word_at * narrow_word_bytes;
        const std::uint32_t words = words_at_once(work);
        const std::ptrdiff_t step = std::ptrdiff_t{narrow_word_bytes} * op_->src.step[0];
        for (std::uint32_t i = 0; i < words; ++i, filled_ += narrow_word_bytes)
            std::memcpy(&row_[filled_], &work.tile.memory.narrow[at] + i * step, narrow_word_bytes);
        work.witness.reads(Watched::narrow, word_at);
        complete_ = src_.advance(words) >= op_->row_level || filled_ == row_bytes || src_.done();
        moved = true;
        work.spend(words);
    }
    return Outcome::done;
}

}  // namespace reef::edgetpu::sim
