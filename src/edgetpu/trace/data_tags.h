// Tags: what memory holds in a traced run, one in each word, in place of data.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace reef::edgetpu::trace {

/// The kind in the upper 4 bits, its number below; 0: nothing, as memory is after power-on.
using DataTag = std::uint32_t;
inline constexpr unsigned tag_number_bits = 28;
enum class TagKind : std::uint8_t {
    none,
    tensor,     ///< stored by the tensor instruction of that number
    fill,       ///< a constant of the mesh instruction of that number
    input,      ///< of that layer of the executable
    parameter,  ///< this and above: a word of the parameters of executable kind - parameter
};
inline constexpr unsigned tagged_executables = 16 - static_cast<unsigned>(TagKind::parameter);

[[nodiscard]] constexpr DataTag tag_of(TagKind kind, std::uint32_t number) {
    return static_cast<DataTag>(kind) << tag_number_bits | number;
}
[[nodiscard]] constexpr DataTag tensor_tag(std::uint32_t number) {
    return tag_of(TagKind::tensor, number);
}
[[nodiscard]] constexpr bool is_parameter_tag(DataTag tag) {
    return tag >> tag_number_bits >= static_cast<DataTag>(TagKind::parameter);
}
[[nodiscard]] constexpr std::uint32_t number_of(DataTag tag) {
    return tag & ((DataTag{1} << tag_number_bits) - 1);
}

/// Given the same few tags again and again.
class TagSet {
  public:
    void insert(DataTag tag) {
        if (tag == 0) return;
        if (known_.empty()) known_.resize(std::size_t{1} << place_bits);
        DataTag& known = known_[tag * golden_ratio >> (32 - place_bits)];
        if (known == tag) return;
        known = tag;
        if (tags_.size() >= limit_) {
            tags_ = tags();
            limit_ = tags_.size() + piece;
        }
        tags_.push_back(tag);
    }
    /// Sorted, each once.
    [[nodiscard]] std::vector<DataTag> tags() const {
        auto tags = tags_;
        std::ranges::sort(tags);
        const auto rest = std::ranges::unique(tags);
        tags.erase(rest.begin(), rest.end());
        return tags;
    }

  private:
    static constexpr unsigned place_bits = 11;
    static constexpr std::uint32_t golden_ratio = 0x9e3779b1;
    static constexpr std::size_t piece = 4096;

    std::vector<DataTag> known_;  ///< by place: the last tag that came there
    std::vector<DataTag> tags_;   ///< may hold some several times
    std::size_t limit_ = piece;
};

}  // namespace reef::edgetpu::trace
