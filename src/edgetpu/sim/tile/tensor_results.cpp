// What a tensor instruction does with its sums: bias, scale, table, and stores.
#include <fmt/format.h>

#include "requantise.h"
#include "result_words.h"
#include "tensor_engine.h"

namespace reef::edgetpu::sim {
namespace {

// Lanes whose results are stored: their scale and bias, of 4 bytes each.
void tell_scaling(const Witness& witness, unsigned buffer, unsigned lanes) {
    constexpr unsigned lanes_of_word = scaling_word_bytes / 4;
    for (unsigned lane = 0; lane < lanes; lane += lanes_of_word)
        witness.reads(Watched::scaling, (buffer * lane_count + lane) / lanes_of_word);
}

}  // namespace

bool TensorEngine::store(Work& work, std::span<const std::uint8_t> words) {
    for (std::size_t word = 0; word < words.size(); word += narrow_word_bytes) {
        if (out_.done()) {
            work.stop("has more results than output addresses");
            return false;
        }
        const auto at = static_cast<std::uint32_t>(out_.address());
        if (at >= narrow_bytes) {
            work.stop(fmt::format("writes narrow byte {:#x}", at));
            return false;
        }
        for (auto touched = at / narrow_word_bytes; touched <= (at + 3) / narrow_word_bytes;
             ++touched) {
            work.witness.writes(Watched::narrow, touched);
            if (work.word_tags)
                std::memcpy(&work.tile.memory.narrow[touched * narrow_word_bytes], &words[word],
                            narrow_word_bytes);
        }
        if (!work.word_tags)
            std::memcpy(&work.tile.memory.narrow[at], &words[word], narrow_word_bytes);
        if (op_->avdata.fires(out_.advance(), op_->out.dimensions))
            work.count(spec::value::tile_counter::AVDATA_);
    }
    return true;
}

bool TensorEngine::store_sums(Work& work, const std::array<std::int32_t, lane_count>& sums) {
    auto& memory = work.tile.memory;
    const auto row = static_cast<std::uint32_t>(acc_.address()) >> 2U;
    if (row >= wide_rows) {
        work.stop(fmt::format("writes wide row {:#x}", row));
        return false;
    }
    std::memcpy(memory.wide[row].data(), sums.data(), row_bytes);
    memory.row_length[row] = row_bytes;
    work.witness.writes(Watched::wide, row);
    return true;
}

// Before the results are scaled: the sums themselves, where the instruction keeps them.
bool TensorEngine::keep_sums(Work& work, LaneSums& sums) {
    if (op_->kind == TensorKind::mac || op_->kind == TensorKind::sum)
        for (auto& sum : sums) sum += op_->start_value;
    if (op_->acc_internal) return true;
    std::array<std::int32_t, lane_count> narrowed;
    for (unsigned lane = 0; lane < lane_count; ++lane)
        narrowed[lane] = static_cast<std::int32_t>(sums[lane]);
    if (watched_) work.tap->sums(work.tile.number, narrowed);
    return store_sums(work, narrowed);
}

/// The bytes of each lane's result, 8 or 16 bits.
TensorEngine::LaneBytes TensorEngine::requantised(const Work& work, const LaneSums& sums,
                                                  unsigned buffer) const {
    const auto& memory = work.tile.memory;
    const unsigned width = op_->out_16bit ? 2 : 1;
    LaneBytes bytes{};
    for (unsigned lane = 0; lane < used_lanes_; ++lane) {
        const std::int64_t sum = sums[lane] + (op_->bias ? memory.lane_bias(buffer, lane) : 0);
        float y = scaled(sum, op_->lane_scale ? memory.lane_scale(buffer, lane) : op_->scale, *op_);
        if (op_->table) y = apply_table(*work.tile.table, y, *op_);
        const std::uint16_t value = stored(y, *op_);
        std::memcpy(&bytes[std::size_t{lane} * width], &value, width);
    }
    return bytes;
}

bool TensorEngine::finish(Work& work, LaneSums& sums, std::uint64_t group) {
    const auto buffer = static_cast<unsigned>(group & 1U);
    const unsigned lanes = group + 1 == shape_.groups ? op_->last_lanes : op_->lanes;
    if (!keep_sums(work, sums)) return false;
    if (work.witness) {
        if (op_->lane_scale) tell_scaling(work.witness, buffer, lanes);
        if (op_->bias) tell_scaling(work.witness, 2 + buffer, lanes);
    }
    if (!has_its_table(work, *op_)) return false;
    LaneBytes bytes = watched_ ? LaneBytes{} : requantised(work, sums, buffer);
    const std::size_t width = op_->out_16bit ? 2 : 1;
    const auto words =
        std::span(bytes).first((lanes * width + 3) / narrow_word_bytes * narrow_word_bytes);
    if (work.tap != nullptr) work.tap->results(work.tile.number, work.tile.memory, buffer, words);
    return store(work, words);
}

}  // namespace reef::edgetpu::sim
