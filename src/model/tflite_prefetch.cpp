// Where a .tflite file has its tables, before anything of it is verified.
//
// A FlatBuffer refers forward only: what belongs to a subgraph lies behind its table. Writers store
// the buffers' data next to each other, each behind its table. So what begins at a buffer's table,
// up to the next thing that is known, is data but for its first bytes; the rest is tables.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "reef/base/file.h"
#include "reef/model/tflite.h"
#include "reef_schema/tflite_generated.h"

namespace reef::model {
namespace {

/// Table of a buffer, its vtable, and the length of its data.
constexpr std::size_t buffer_head_bytes = 64;

/// Of one vector; no model has so many, and a damaged file must not cost more.
constexpr std::size_t most_tables = 1 << 16;

struct Landmark {
    std::size_t at = 0;
    bool is_buffer = false;
};

/// Offsets as they stand in the file; nothing where they lead out of it.
class Offsets {
  public:
    explicit Offsets(Bytes file) : file_(file) {}

    template <typename T>
    [[nodiscard]] std::optional<T> number(std::size_t at) const {
        if (at > file_.size() || file_.size() - at < sizeof(T)) return std::nullopt;
        return flatbuffers::ReadScalar<T>(file_.data() + at);
    }
    /// Where the offset at `at` leads.
    [[nodiscard]] std::optional<std::size_t> follow(std::optional<std::size_t> at) const {
        if (!at) return std::nullopt;
        const auto offset = number<flatbuffers::uoffset_t>(*at);
        if (!offset || *offset >= file_.size() - *at) return std::nullopt;
        return *at + *offset;
    }
    /// A table's field; nothing when it is absent.
    [[nodiscard]] std::optional<std::size_t> field(std::size_t table,
                                                   flatbuffers::voffset_t which) const {
        const auto back = number<flatbuffers::soffset_t>(table);
        if (!back) return std::nullopt;
        const std::int64_t vtable = static_cast<std::int64_t>(table) - *back;
        if (vtable < 0) return std::nullopt;
        const auto place = static_cast<std::size_t>(vtable);
        const auto size = number<flatbuffers::voffset_t>(place);
        if (!size || which >= *size) return std::nullopt;
        const auto offset = number<flatbuffers::voffset_t>(place + which);
        if (!offset || *offset == 0) return std::nullopt;
        return table + *offset;
    }
    /// The tables that a vector of them refers to.
    [[nodiscard]] std::vector<std::size_t> tables(std::size_t vector) const {
        std::vector<std::size_t> all;
        const auto count =
            std::min<std::size_t>(number<flatbuffers::uoffset_t>(vector).value_or(0), most_tables);
        for (std::size_t i = 0; i < count; ++i) {
            const auto table = follow(vector + (i + 1) * sizeof(flatbuffers::uoffset_t));
            if (!table) break;
            all.push_back(*table);
        }
        return all;
    }

  private:
    Bytes file_;
};

/// In order.
std::vector<Landmark> landmarks_of(Bytes file) {
    const Offsets offsets(file);
    const auto root = offsets.follow(0);
    if (!root) return {};
    std::vector<Landmark> all = {{*root}};
    if (const auto subgraphs = offsets.follow(offsets.field(*root, schema::Model::VT_SUBGRAPHS)))
        for (const std::size_t table : offsets.tables(*subgraphs)) all.push_back({table});
    if (const auto buffers = offsets.follow(offsets.field(*root, schema::Model::VT_BUFFERS))) {
        all.push_back({*buffers});
        for (const std::size_t table : offsets.tables(*buffers)) all.push_back({table, true});
    }
    std::ranges::sort(all, {}, &Landmark::at);
    return all;
}

}  // namespace

void prefetch_tables(Bytes file) {
    const std::vector<Landmark> landmarks = landmarks_of(file);
    // Pieces that nearly touch are one request.
    constexpr std::size_t near = 16384;
    std::size_t begin = 0, end = 0;
    for (std::size_t i = 0; i < landmarks.size(); ++i) {
        const auto [at, is_buffer] = landmarks[i];
        const std::size_t next = i + 1 < landmarks.size() ? landmarks[i + 1].at : file.size();
        const std::size_t stop = is_buffer ? std::min(next, at + buffer_head_bytes) : next;
        if (at > end + near) {
            will_read(file.subspan(begin, end - begin));
            begin = at;
        }
        end = std::max(end, stop);
    }
    will_read(file.subspan(begin, end - begin));
}

}  // namespace reef::model
