#include "result_words.h"

#include <fmt/format.h>

namespace reef::edgetpu::sim {

bool has_its_table(Work& work, const TensorOp& op) {
    if (!op.table || work.tile.table) return true;
    work.stop("applies a table that nothing loaded",
              "no known program does this: a load_table stands before it on the same tile");
    return false;
}

bool ResultWords::store(Work& work, std::span<const std::uint8_t> words) {
    for (; !words.empty(); words = words.subspan(narrow_word_bytes)) {
        if (out_.done()) {
            work.stop("has more results than output addresses");
            return false;
        }
        const auto to = static_cast<std::uint32_t>(out_.address());
        if (to >= narrow_bytes) {
            work.stop(fmt::format("writes narrow byte {:#x}", to));
            return false;
        }
        std::memcpy(&work.tile.memory.narrow[to], words.data(), narrow_word_bytes);
        if (op_->avdata.fires(out_.advance(), op_->out.dimensions))
            work.count(spec::value::tile_counter::AVDATA_);
    }
    return true;
}

}  // namespace reef::edgetpu::sim
