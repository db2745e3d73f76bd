// Copies words of narrow memory into wide rows, in one of three layouts.
#include <fmt/format.h>

#include "engines.h"

namespace reef::edgetpu::sim {
namespace {

// Square matrices of such values, one behind the other in so many bytes, each of which is
// transposed.
template <typename Value, unsigned side>
void transpose(std::uint8_t* bytes, unsigned size) {
    std::array<Value, side * side> from, to;
    for (unsigned at = 0; at < size; at += sizeof from) {
        std::memcpy(from.data(), &bytes[at], sizeof from);
        for (unsigned i = 0; i < side; ++i)
            for (unsigned j = 0; j < side; ++j) to[i * side + j] = from[j * side + i];
        std::memcpy(&bytes[at], to.data(), sizeof to);
    }
}

// Whole blocks of words, as they lie in a row.
void lay_out(RowFormat format, std::uint8_t* blocks, unsigned size) {
    if (format == RowFormat::transpose_bytes_)
        transpose<std::uint8_t, 4>(blocks, size);
    else if (format == RowFormat::transpose_halfwords_)
        transpose<std::uint16_t, 2>(blocks, size);
}

constexpr unsigned block_bytes(RowFormat format) {
    return words_per_block(format) * narrow_word_bytes;
}
constexpr unsigned largest_block = block_bytes(RowFormat::transpose_bytes_);
static_assert(block_bytes(RowFormat::transpose_halfwords_) <= largest_block);

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
    const unsigned size = rounded_up(filled_, block_bytes(op_->format));
    if (work.word_tags)
        work.tile.memory.row_format[at] = op_->format;
    else
        lay_out(op_->format, row_.data(), size);
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

// Words, each of which is all that its row gets, to rows that follow each other; how many. 0: the
// next row, if it is one, is for write_row(). Precondition: nothing holds back the first of either.
std::uint32_t NarrowToWideEngine::write_words(Work& work) {
    if (op_->row_level != 0 || filled_ > 0 || work.word_tags) return 0;
    const std::uint32_t most = std::min(work.run(op_->waits, false, src_, narrow_words),
                                        work.run(op_->waits, true, dst_, wide_rows));
    if (most == 1) return 0;
    auto& memory = work.tile.memory;
    const auto first = static_cast<std::uint32_t>(dst_.address());
    const auto step = static_cast<std::uint32_t>(op_->dst.step[0]);
    const auto* word = &memory.narrow[src_.address() * std::ptrdiff_t{narrow_word_bytes}];
    const std::ptrdiff_t distance = std::ptrdiff_t{narrow_word_bytes} * op_->src.step[0];
    std::uint32_t rows = 0;
    for (; rows < most; ++rows) {
        const std::uint32_t at = first + rows * step;
        if (work.full(op_->dst, at)) break;
        std::array<std::uint8_t, largest_block> block{};
        std::memcpy(block.data(), word + rows * distance, narrow_word_bytes);
        lay_out(op_->format, block.data(), block_bytes(op_->format));
        memory.wide[at].fill(0);
        std::memcpy(memory.wide[at].data(), block.data(), block.size());
        memory.row_length[at] = static_cast<std::uint16_t>(block_bytes(op_->format));
        work.fill(op_->dst, at, RowOwner::narrow_to_wide);
    }
    if (rows == 0) return 0;
    src_.advance(rows);
    work.count(spec::value::tile_counter::NARROW_TO_WIDE_,
               op_->written.events(rows, dst_.advance(rows), op_->dst.dimensions));
    return rows;
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
        if (const std::uint32_t rows = write_words(work); rows > 0) {
            moved = true;
            work.spend(rows);
            continue;
        }
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
