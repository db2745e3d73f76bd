// Where a plain model's constants are in the blobs of a compiled one.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "edgetpu/params/fixed_bytes.h"
#include "edgetpu/params/stored_form.h"
#include "reef/edgetpu/parameter_plan.h"

namespace reef::edgetpu {
namespace {

std::size_t aligned(std::size_t size) {
    return (size + parameter_alignment - 1) / parameter_alignment * parameter_alignment;
}

/// The whole lines of some blobs by what they hold. Vectors alone: there are tens of thousands.
class LineIndex {
  public:
    struct Line {
        std::size_t blob = 0, offset = 0;
    };

    explicit LineIndex(const std::vector<Bytes>& blobs) {
        for (std::size_t blob = 0; blob < blobs.size(); ++blob) {
            const std::size_t whole = blobs[blob].size() / parameter_alignment;
            for (std::size_t i = 0; i < whole; ++i) {
                lines_.push_back({blob, i * parameter_alignment});
            }
        }
        bits_ = static_cast<unsigned>(std::bit_width(lines_.size()));
        first_.assign(std::size_t{1} << bits_, none);
        next_.resize(lines_.size());
        // From behind, so that a chain is in the order of the blobs.
        for (std::size_t i = lines_.size(); i-- > 0;) {
            auto& first = first_[bucket(blobs[lines_[i].blob].subspan(lines_[i].offset))];
            next_[i] = std::exchange(first, static_cast<std::uint32_t>(i));
        }
    }

    /// The first line for which `is_there` holds among those that may begin as `bytes` do.
    template <typename Test>
    [[nodiscard]] std::optional<Line> find(Bytes bytes, Test is_there) const {
        for (std::uint32_t i = first_[bucket(bytes)]; i != none; i = next_[i]) {
            if (is_there(lines_[i])) return lines_[i];
        }
        return std::nullopt;
    }

  private:
    static constexpr std::uint32_t none = 0xffff'ffff;

    [[nodiscard]] std::size_t bucket(Bytes bytes) const {
        std::uint64_t words[parameter_alignment / 8], hash = 0;
        std::memcpy(words, bytes.data(), sizeof words);
        for (const std::uint64_t word : words) {
            hash = std::rotl(hash ^ word, 29) * 0x9e37'79b9'7f4a'7c15U;
        }
        return static_cast<std::size_t>(hash >> 32 >> (32 - bits_));
    }

    std::vector<Line> lines_;
    std::vector<std::uint32_t> first_, next_;  ///< chains of lines of a bucket
    unsigned bits_ = 0;
};

std::size_t count_differing(Bytes a, Bytes b) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
    return count;
}

class Placer {
  public:
    Placer(const model::Model& plain, const std::vector<ParameterPart>& parts,
           const std::vector<Bytes>& blobs)
        : plain_(plain), parts_(parts), blobs_(blobs) {
        for (const Bytes blob : blobs_) {
            taken_.emplace_back((blob.size() + parameter_alignment - 1) / parameter_alignment);
        }
        next_.resize(blobs_.size());
    }

    Result<Placement> run(PartSearch search) {
        encoded_.resize(parts_.size());
        std::size_t largest = 0;
        for (const Bytes blob : blobs_) largest = std::max(largest, blob.size());
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            // What no blob has room for stays empty, and is nowhere.
            if (parts_[i].size_bytes > largest) continue;
            encoded_[i].resize(parts_[i].size_bytes);
            REEF_CHECK(encode_part(plain_, parts_[i], encoded_[i]));
        }
        std::vector<std::size_t> left, selections;
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            if (parts_[i].kind == PartKind::selection) {
                selections.push_back(i);
            } else if (!place_next(i)) {
                left.push_back(i);
            }
        }
        std::erase_if(left, [this](std::size_t part) { return place_anywhere(part); });
        // A smaller one may be the beginning of a larger one.
        std::ranges::stable_sort(selections, std::greater{},
                                 [this](std::size_t i) { return parts_[i].size_bytes; });
        std::ranges::copy_if(selections, std::back_inserter(left),
                             [this](std::size_t part) { return !place_anywhere(part); });
        std::ranges::sort(left);
        if (search == PartSearch::by_bytes_and_structure) REEF_CHECK(place_by_structure(left));
        result_.missing = std::move(left);
        find_rest();
        return std::move(result_);
    }

    Result<Placement> run_by_hints(const std::vector<PartHint>& hints) {
        encoded_.resize(parts_.size());
        for (const bool known : {true, false}) {
            for (std::size_t i = 0; i < parts_.size(); ++i) {
                if (hints[i].place.has_value() != known) continue;
                const BlobRange there =
                    REEF_TRY(in_place(known ? fitting(i, *hints[i].place, hints[i].weight_zero)
                                            : first_fitting(i, hints[i].weight_zero),
                                      parts_[i].name));
                place(i, there.blob, there.offset);
            }
        }
        find_rest();
        std::size_t left = 0;
        for (const BlobRange& range : result_.unexplained) left += range.size_bytes;
        if (left == 0) return std::move(result_);
        return fail(Cause::unsupported,
                    fmt::format("{} bytes of the parameters belong to no operator", left));
    }

  private:
    bool fits(std::size_t part, const BlobRange& range, std::int32_t weight_zero) const {
        const std::size_t size = parts_[part].size_bytes;
        return range.offset % parameter_alignment == 0 && range.blob < blobs_.size() &&
               is_free(range.blob, range.offset, size) &&
               has_structure_of(plain_, parts_[part], bytes_at(range.blob, range.offset, size),
                                weight_zero);
    }

    Result<BlobRange> fitting(std::size_t part, const BlobRange& range,
                              std::int32_t weight_zero) const {
        if (fits(part, range, weight_zero)) return range;
        return fail(Cause::unsupported, "its parameters are not where the program reads them");
    }

    /// Where the first gap of a blob begins; the only blob where the part fits there.
    Result<BlobRange> first_fitting(std::size_t part, std::int32_t weight_zero) const {
        std::vector<BlobRange> found;
        for (std::size_t blob = 0; blob < blobs_.size(); ++blob) {
            const auto gap = std::ranges::find(taken_[blob], false);
            const BlobRange range{
                blob, static_cast<std::size_t>(gap - taken_[blob].begin()) * parameter_alignment,
                parts_[part].size_bytes};
            if (fits(part, range, weight_zero)) found.push_back(range);
        }
        if (found.size() == 1) return found.front();
        return fail(Cause::unsupported,
                    found.empty() ? "its parameters are not where those of the operators before "
                                    "it leave room"
                                  : "its parameters may be cached or streamed");
    }

    Bytes bytes_at(std::size_t blob, std::size_t offset, std::size_t size) const {
        return blobs_[blob].subspan(offset, size);
    }

    bool is_free(std::size_t blob, std::size_t offset, std::size_t size) const {
        if (size == 0 || offset > blobs_[blob].size() || size > blobs_[blob].size() - offset) {
            return false;
        }
        const auto first =
            taken_[blob].begin() + static_cast<std::ptrdiff_t>(offset / parameter_alignment);
        return std::none_of(
            first, first + static_cast<std::ptrdiff_t>(aligned(size) / parameter_alignment),
            [](bool taken) { return taken; });
    }

    bool equal_at(std::size_t part, std::size_t blob, std::size_t offset) const {
        const auto& bytes = encoded_[part];
        return is_free(blob, offset, bytes.size()) &&
               std::memcmp(bytes.data(), bytes_at(blob, offset, bytes.size()).data(),
                           bytes.size()) == 0;
    }

    void place(std::size_t part, std::size_t blob, std::size_t offset) {
        const std::size_t size = parts_[part].size_bytes;
        for (std::size_t at = offset; at < offset + size; at += parameter_alignment) {
            taken_[blob][at / parameter_alignment] = true;
        }
        next_[blob] = offset + aligned(size);
        // Without bytes to compare, all may differ.
        const std::size_t differing =
            encoded_[part].empty() ? size
                                   : count_differing(encoded_[part], bytes_at(blob, offset, size));
        result_.placed.push_back({part, {blob, offset, size}, differing});
    }

    /// After the last part of a blob: where the order of the operators puts it.
    bool place_next(std::size_t part) {
        for (std::size_t blob = 0; blob < blobs_.size(); ++blob) {
            if (equal_at(part, blob, next_[blob])) {
                place(part, blob, next_[blob]);
                return true;
            }
        }
        return place_anywhere(part);
    }

    bool place_anywhere(std::size_t part) {
        // Parts shorter than a line are found by the line's beginning: look at all lines.
        if (encoded_[part].size() >= parameter_alignment) {
            if (!lines_) lines_.emplace(blobs_);
            const auto line = lines_->find(encoded_[part], [&](const LineIndex::Line& one) {
                return equal_at(part, one.blob, one.offset);
            });
            if (line) place(part, line->blob, line->offset);
            return line.has_value();
        }
        for (std::size_t blob = 0; blob < blobs_.size(); ++blob) {
            for (std::size_t at = 0; at < blobs_[blob].size(); at += parameter_alignment) {
                if (!equal_at(part, blob, at)) continue;
                place(part, blob, at);
                return true;
            }
        }
        return false;
    }

    struct Candidate {
        std::size_t part;
        std::vector<FixedByte> fixed;  ///< some, of a layer
    };

    /// A few bytes refuse nearly every place that is none; what is left is looked at as a whole.
    bool may_be(const Candidate& candidate, std::size_t blob, std::size_t at) const {
        const ParameterPart& part = parts_[candidate.part];
        if (!is_free(blob, at, part.size_bytes)) return false;
        const Bytes bytes = bytes_at(blob, at, part.size_bytes);
        return std::ranges::all_of(
                   candidate.fixed,
                   [&](const FixedByte& fixed) { return bytes[fixed.offset] == fixed.value; }) &&
               has_structure_of(plain_, part, bytes);
    }

    /// Of parts that may have other bytes than the plain model's; a table may not.
    Result<std::vector<Candidate>> candidates(const std::vector<std::size_t>& left) const {
        constexpr std::size_t enough = 64;
        std::vector<Candidate> all;
        for (const std::size_t i : left) {
            if (encoded_[i].empty()) continue;
            switch (parts_[i].kind) {
                case PartKind::layer:
                    // In which order, only bytes or the program tell.
                    if (may_be_in_blocks(parts_[i].form)) break;
                    all.push_back({i, REEF_TRY(fixed_bytes(plain_, parts_[i], enough))});
                    break;
                case PartKind::factor:
                case PartKind::subtrahend:
                    all.push_back({i, {}});
                    break;
                case PartKind::softmax_table:
                case PartKind::selection:
                case PartKind::ones:
                case PartKind::multipliers:
                case PartKind::fill:
                    break;
            }
        }
        return all;
    }

    /// Free lines from front to back: the first part left whose structure fits there.
    Status place_by_structure(std::vector<std::size_t>& left) {
        auto waiting = REEF_TRY(candidates(left));
        for (std::size_t blob = 0; blob < blobs_.size(); ++blob) {
            for (std::size_t at = 0; at < blobs_[blob].size() && !waiting.empty();) {
                const auto fits = std::ranges::find_if(
                    waiting, [&](const Candidate& one) { return may_be(one, blob, at); });
                if (fits == waiting.end()) {
                    at += parameter_alignment;
                    continue;
                }
                place(fits->part, blob, at);
                at = next_[blob];
                std::erase(left, fits->part);
                waiting.erase(fits);
            }
        }
        return {};
    }

    void find_rest() {
        std::ranges::sort(result_.placed, {}, [](const PlacedPart& placed) {
            return std::pair(placed.range.blob, placed.range.offset);
        });
        auto placed = result_.placed.begin();
        for (std::size_t blob = 0; blob < blobs_.size(); ++blob) {
            std::size_t at = 0;
            for (; placed != result_.placed.end() && placed->range.blob == blob; ++placed) {
                add_gap(blob, at, placed->range.offset);
                at = placed->range.offset + placed->range.size_bytes;
            }
            add_gap(blob, at, blobs_[blob].size());
        }
    }

    /// Zeros up to the next line belong to the part before; the rest belongs to nothing.
    void add_gap(std::size_t blob, std::size_t from, std::size_t to) {
        const std::size_t line = std::min(aligned(from), to);
        const Bytes filler = bytes_at(blob, from, line - from);
        const bool zero =
            std::ranges::all_of(filler, [](std::byte b) { return b == std::byte{0}; });
        if (zero && line > from) result_.alignment.push_back({blob, from, line - from});
        const std::size_t begin = zero ? line : from;
        if (to > begin) result_.unexplained.push_back({blob, begin, to - begin});
    }

    const model::Model& plain_;
    const std::vector<ParameterPart>& parts_;
    const std::vector<Bytes>& blobs_;
    std::vector<std::vector<std::byte>> encoded_;
    std::vector<std::vector<bool>> taken_;  ///< by line
    std::vector<std::size_t> next_;         ///< after the last part placed, by blob
    std::optional<LineIndex> lines_;
    Placement result_;
};

}  // namespace

bool Placement::complete() const {
    return missing.empty() && unexplained.empty() &&
           std::ranges::all_of(placed, [](const PlacedPart& part) { return part.differing == 0; });
}

Result<Placement> place_parts(const model::Model& plain, const std::vector<ParameterPart>& parts,
                              const std::vector<Bytes>& blobs, PartSearch search) {
    return Placer(plain, parts, blobs).run(search);
}

Result<Placement> place_by_hints(const model::Model& plain, const std::vector<ParameterPart>& parts,
                                 const std::vector<PartHint>& hints,
                                 const std::vector<Bytes>& blobs) {
    return Placer(plain, parts, blobs).run_by_hints(hints);
}

}  // namespace reef::edgetpu
