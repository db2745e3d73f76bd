// Copies wide rows, as one stream of bytes, into narrow memory or into scaling memory.
#include <fmt/format.h>

#include "engines.h"

namespace reef::edgetpu::sim {

WideToNarrowEngine::Fill WideToNarrowEngine::next_row(Work& work) {
    if (src_.done()) {
        work.stop("needs more bytes than its source rows hold",
                  "reef disasm --check FILE says whether it waits for those rows");
        return Fill::faulty;
    }
    if (const auto unready = work.unready(op_->waits, false, src_)) {
        work.wait(*unready, false);
        return Fill::waiting;
    }
    const auto at = static_cast<std::uint32_t>(src_.address());
    if (at >= wide_rows) {
        work.stop(fmt::format("reads wide row {:#x}", at));
        return Fill::faulty;
    }
    row_from_ = work.tile.memory.wide[at].data();
    work.witness.reads(Watched::wide, at);
    work.empty(op_->src, at);
    row_at_ = 0;
    src_.advance();
    if (work.budget > 0) --work.budget;
    return Fill::ready;
}

WideToNarrowEngine::Fill WideToNarrowEngine::fill_word(Work& work, unsigned unit) {
    while (skip_bytes_ > 0 || word_filled_ < unit) {
        if (row_at_ == row_bytes) {
            if (const Fill fill = next_row(work); fill != Fill::ready) return fill;
            continue;
        }
        const auto left = static_cast<unsigned>(row_bytes) - row_at_;
        if (skip_bytes_ > 0) {
            const auto n = static_cast<unsigned>(std::min<std::uint64_t>(skip_bytes_, left));
            skip_bytes_ -= n;
            row_at_ += n;
            continue;
        }
        const unsigned n = std::min(unit - word_filled_, left);
        std::memcpy(&word_[word_filled_], row_from_ + row_at_, n);
        word_filled_ += n;
        row_at_ += n;
    }
    return Fill::ready;
}

void WideToNarrowEngine::write_word(Work& work, unsigned unit) {
    const auto address = static_cast<std::uint32_t>(dst_.address());
    auto& memory = work.tile.memory;
    if (op_->to_scaling) {
        if (address >= scaling_words) {
            work.stop(fmt::format("writes scaling word {:#x}", address));
            return;
        }
        std::memcpy(&memory.scaling[address * scaling_word_bytes], word_.data(), unit);
        work.witness.writes(Watched::scaling, address);
    } else {
        if (address >= narrow_bytes / narrow_word_bytes) {
            work.stop(fmt::format("writes narrow word {:#x}", address));
            return;
        }
        std::memcpy(&memory.narrow[address * narrow_word_bytes], word_.data(), unit);
        work.witness.writes(Watched::narrow, address);
    }
    word_filled_ = 0;
    count_words(work, 1);
}

void WideToNarrowEngine::count_words(Work& work, std::uint32_t words) {
    const unsigned completed = dst_.advance(words);
    if (completed >= op_->row_level) row_at_ = row_bytes;
    work.count(op_->to_scaling ? spec::value::tile_counter::WIDE_TO_SCALING_
                               : spec::value::tile_counter::WIDE_TO_NARROW_,
               op_->written.events(words, completed, op_->dst.dimensions));
}

namespace {

template <unsigned unit>
void copy_words(std::uint8_t* to, std::ptrdiff_t step, const std::uint8_t* from,
                std::uint32_t words) {
    for (std::uint32_t i = 0; i < words; ++i) std::memcpy(to + i * step, from + i * unit, unit);
}

}  // namespace

// Whole words of one row; false when there is none.
bool WideToNarrowEngine::write_run(Work& work, unsigned unit) {
    if (op_->row_level == 0 || skip_bytes_ > 0 || word_filled_ > 0) return false;
    const unsigned words_left = (static_cast<unsigned>(row_bytes) - row_at_) / unit;
    if (words_left == 0) return false;
    const std::size_t size = op_->to_scaling ? scaling_words : narrow_words;
    const std::uint32_t words = std::min(work.run(op_->waits, true, dst_, size), words_left);
    if (words == 1 && static_cast<std::uint32_t>(dst_.address()) >= size) return false;
    auto& memory = work.tile.memory;
    const auto at = static_cast<std::uint32_t>(dst_.address()) * std::size_t{unit};
    std::uint8_t* to = op_->to_scaling ? &memory.scaling[at] : &memory.narrow[at];
    const std::uint8_t* from = row_from_ + row_at_;
    const std::ptrdiff_t step = static_cast<std::ptrdiff_t>(unit) * op_->dst.step[0];
    if (step == static_cast<std::ptrdiff_t>(unit))
        std::memcpy(to, from, words * unit);
    else if (unit == narrow_word_bytes)
        copy_words<narrow_word_bytes>(to, step, from, words);
    else
        copy_words<scaling_word_bytes>(to, step, from, words);
    row_at_ += words * unit;
    count_words(work, words);
    return true;
}

// Rows that the destination does not need are waited for all the same: the nest walks to its end.
Outcome WideToNarrowEngine::drain(Work& work, bool moved) {
    while (!src_.done()) {
        if (moved && work.budget == 0) return Outcome::moved;
        const Fill fill = next_row(work);
        if (fill == Fill::faulty) return Outcome::waiting;
        if (fill == Fill::waiting) return moved ? Outcome::moved : Outcome::waiting;
        moved = true;
    }
    return Outcome::done;
}

Outcome WideToNarrowEngine::advance(Work& work) {
    const Outcome outcome = copy(work);
    const bool within = outcome != Outcome::done && row_at_ != row_bytes;
    if (!within || row_from_ == row_.data()) return outcome;
    std::copy_n(row_from_, row_bytes, row_.begin());
    row_from_ = row_.data();
    return outcome;
}

Outcome WideToNarrowEngine::copy(Work& work) {
    const auto unit =
        static_cast<unsigned>(op_->to_scaling ? scaling_word_bytes : narrow_word_bytes);
    bool moved = false;
    while (!dst_.done()) {
        if (moved && work.budget == 0) return Outcome::moved;
        if (const auto unready = work.unready(op_->waits, true, dst_))
            return work.wait(*unready, moved);
        if (row_at_ == row_bytes && skip_bytes_ == 0 && word_filled_ == 0) {
            const Fill row = next_row(work);
            if (row == Fill::faulty) return Outcome::waiting;
            if (row == Fill::waiting) return moved ? Outcome::moved : Outcome::waiting;
        }
        if (!work.witness && write_run(work, unit)) {
            moved = true;
            continue;
        }
        const Fill fill = fill_word(work, unit);
        if (fill == Fill::faulty) return Outcome::waiting;
        if (fill == Fill::waiting) return moved ? Outcome::moved : Outcome::waiting;
        write_word(work, unit);
        if (work.fault) return Outcome::waiting;
        moved = true;
    }
    return drain(work, moved);
}

}  // namespace reef::edgetpu::sim
