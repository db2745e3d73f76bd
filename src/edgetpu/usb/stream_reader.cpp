#include "edgetpu/usb/stream_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "reef/edgetpu/isa.h"
#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu::usb {
namespace {

/// Streams that are kept, by their bytes; a translation takes about ten times as many.
constexpr std::size_t most_kept_bytes = 4 << 20;
/// The longest known has 0.2 MiB.
constexpr std::size_t most_stream_bytes = 16 << 20;

bool starts_with(Bytes bytes, Bytes beginning) {
    return bytes.size() >= beginning.size() &&
           std::memcmp(bytes.data(), beginning.data(), beginning.size()) == 0;
}

}  // namespace

void StreamReader::clear() {
    begun_.clear();
    walked_ = 0;
}

Result<std::shared_ptr<const TranslatedStream>> StreamReader::take(Bytes& bytes) {
    const std::size_t before = begun_.size();
    // A known one that comes whole, as it nearly always does, is not copied.
    const bool whole = before == 0;
    if (!whole) begun_.insert(begun_.end(), bytes.begin(), bytes.end());
    if (auto stream = known(whole ? bytes : Bytes(begun_))) {
        bytes = bytes.subspan(stream->bytes.size() - before);
        clear();
        return stream;
    }
    if (whole) begun_.assign(bytes.begin(), bytes.end());
    if (!REEF_TRY(find_end())) {
        bytes = {};
        if (begun_.size() > most_stream_bytes)
            return fail(Cause::bad_input,
                        fmt::format("{} bytes of instructions without an end", begun_.size()));
        return nullptr;
    }
    bytes = bytes.subspan(walked_ - before);
    begun_.resize(walked_);
    auto stream = REEF_TRY(translate());
    keep(stream);
    clear();
    return stream;
}

// No stream is the beginning of another: each has its end just once.
std::shared_ptr<const TranslatedStream> StreamReader::known(Bytes bytes) {
    const auto found = std::ranges::find_if(
        known_, [&](const auto& each) { return starts_with(bytes, each->bytes); });
    if (found == known_.end()) return nullptr;
    std::rotate(found, found + 1, known_.end());
    return known_.back();
}

Result<bool> StreamReader::find_end() {
    while (begun_.size() - walked_ >= word_bytes) {
        const Bytes left = Bytes(begun_).subspan(walked_);
        const InstructionInfo* info = instruction_of(left);
        if (info == nullptr)
            return fail(Cause::bad_input, "no instruction",
                        fmt::format("word {:#06x}", walked_ / word_bytes));
        if (left.size() < info->size_bytes()) return false;
        walked_ += info->size_bytes();
        if (info == &instruction_set()[spec::op::end]) return true;
    }
    return false;
}

Result<std::shared_ptr<const TranslatedStream>> StreamReader::translate() {
    auto stream = std::make_shared<TranslatedStream>();
    stream->bytes = begun_;
    const std::array views = {Bytes(stream->bytes)};
    stream->program = REEF_TRY(sim::translate_program(views));
    ++translations_;
    return stream;
}

void StreamReader::keep(std::shared_ptr<const TranslatedStream> stream) {
    known_.push_back(std::move(stream));
    const auto kept_bytes = [&] {
        return std::accumulate(
            known_.begin(), known_.end(), std::size_t{0},
            [](std::size_t sum, const auto& each) { return sum + each->bytes.size(); });
    };
    while (known_.size() > 1 && kept_bytes() > most_kept_bytes) known_.erase(known_.begin());
}

}  // namespace reef::edgetpu::usb
