// Which programs' parameters a chip's memory holds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "reef/edgetpu/parameter_memory.h"

namespace reef::edgetpu {

/// All of one token. Another token's parameters take their place; programs of one token stay side
/// by side unless they fill the same rows: parts of one model for several chips share a token. A
/// program without parameters to cache, or without a token, has the memory for itself.
/// `Holder` names a program.
template <typename Holder>
class ResidentParameters {
  public:
    /// What comes before a program runs.
    struct Need {
        std::optional<std::uint64_t> evicted;  ///< the token whose parameters are gone
        bool load = false;
    };

    /// `same` says whether a holder's parameters are this program's, too; `rows` are those that it
    /// fills, if that is known.
    [[nodiscard]] Need make_room(std::uint64_t token, bool caches,
                                 const std::optional<ParameterRows>& rows, const auto& same) {
        const bool shares = caches && token != 0;
        const auto its_own = [&](const Held& each) { return same(each.holder); };
        const auto in_its_rows = [&](const Held& each) {
            return each.rows && rows && overlap(*each.rows, *rows);
        };
        const bool collides =
            std::ranges::none_of(held_, its_own) && std::ranges::any_of(held_, in_its_rows);
        Need need;
        if (!shares || token != token_ || collides) {
            if (!held_.empty()) need.evicted = token_;
            held_.clear();
            token_ = shares ? token : 0;
        }
        need.load = caches && std::ranges::none_of(held_, its_own);
        return need;
    }

    /// The program for which room was made last has been loaded.
    void add(Holder holder, const std::optional<ParameterRows>& rows) {
        if (token_ != 0) held_.push_back({std::move(holder), rows});
    }

    /// What the memory holds is not known any more.
    void forget() {
        held_.clear();
        token_ = 0;
    }

  private:
    struct Held {
        Holder holder;
        std::optional<ParameterRows> rows;
    };
    std::uint64_t token_ = 0;
    std::vector<Held> held_;
};

}  // namespace reef::edgetpu
