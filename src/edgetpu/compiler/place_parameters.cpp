// Pass "place": rows of wide memory, on the chip for good or streamed with every inference.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "edgetpu/compiler/plan.h"

namespace reef::edgetpu::lowering {
namespace {

std::string place_of_layer(const ParameterLayer& layer) {
    return layer.name;
}

/// Some rows are left for parameters at least.
constexpr std::int32_t least_head = 16;

class ParameterPlacer {
  public:
    explicit ParameterPlacer(Plan& plan) : plan_(plan), used_(plan.rows_used) {
        plan.first_scratch_row = spec::parameter_rows - plan.beside.scratch_rows;
        for (const ParameterLayer& layer : plan.layers)
            if (!layer.spread)
                plan.first_scratch_row =
                    std::min(plan.first_scratch_row,
                             static_cast<std::uint32_t>(std::max(layer.schedule.head, 0)));
    }

    Status run(bool stream_all) {
        used_ = plan_.beside.first_rows;
        for (const ParameterLayer& layer : plan_.layers)
            if (!layer.spread && layer.schedule.head < least_head)
                return fail(Cause::unsupported,
                            "its parameters and partial sums need more rows than wide memory has",
                            place_of_layer(layer));
        choose_streamed(stream_all);
        // The same row on every tile: before single tiles take others.
        for (const bool of_one_tile : {false, true})
            for (ParameterLayer& layer : plan_.layers)
                if (layer.spread && (layer.share_tiles() == 1) == of_one_tile)
                    REEF_CHECK(place_spread(layer));
        for (ParameterLayer& layer : plan_.layers) {
            if (layer.spread) continue;
            if (layer.streamed)
                stream(layer);
            else if (layer.relayed)
                REEF_CHECK(place_whole(layer));
            else
                REEF_CHECK(place_pieces(layer));
        }
        return anchor();
    }

  private:
    [[nodiscard]] std::uint32_t cap() const { return plan_.first_scratch_row; }

    std::unexpected<Error> too_many(const ParameterLayer& layer) const {
        return fail(Cause::unsupported,
                    fmt::format("parameters do not fit: {} rows are in use, {} on each tile there "
                                "are",
                                std::reduce(used_.begin(), used_.end()), cap()),
                    place_of_layer(layer));
    }

    /// The largest layers come with every inference until the others fit.
    void choose_streamed(bool all) {
        std::uint64_t rows = 0;
        std::vector<ParameterLayer*> can;
        for (ParameterLayer& layer : plan_.layers) {
            rows += layer.row_count();
            if (!layer.relayed && !layer.spread && layer.uses == 1) can.push_back(&layer);
            layer.streamed = false;
        }
        // Some rows of every tile are lost to layers that lie on one tile.
        constexpr std::uint64_t lost_rows = 600;
        std::uint64_t room = 0;
        for (const std::uint32_t used : used_) room += cap() - std::min(cap(), used);
        std::ranges::stable_sort(can, std::ranges::greater{},
                                 [](const ParameterLayer* l) { return l->bytes; });
        for (ParameterLayer* layer : can) {
            if (!all && rows + lost_rows <= room) break;
            layer->streamed = true;
            rows -= layer->row_count();
        }
    }

    /// At one row number on all of its tiles.
    Status place_spread(ParameterLayer& layer) {
        const std::uint32_t all = layer.row_count(), share = layer.share_rows();
        const std::span used = std::span(used_).subspan(layer.first_tile, layer.share_tiles());
        const std::uint32_t row = std::ranges::max(used);
        if (row + share > cap()) return too_many(layer);
        for (unsigned t = 0; t < used.size(); ++t) {
            const std::uint32_t count = std::min(share, all - t * share);
            layer.pieces.push_back(
                {layer.first_tile + t, row, count, std::size_t{t} * share * layer.row_bytes});
            used[t] = row + count;
        }
        return {};
    }

    void stream(ParameterLayer& layer) {
        layer.first_unit =
            static_cast<std::uint32_t>(plan_.streamed_bytes / spec::parameter_unit_bytes);
        plan_.streamed_bytes += layer.bytes;
    }

    Status anchor() {
        for (const ParameterLayer& layer : plan_.layers)
            if (!layer.pieces.empty()) return {};
        const unsigned tile = emptiest();
        if (used_[tile] >= cap())
            return fail(Cause::unsupported, "no row is left to show what the chip holds");
        plan_.anchored = true;
        ParameterLayer& layer = plan_.layers.emplace_back();
        layer.name = "anchor";
        layer.row_bytes = spec::row_bytes;
        layer.bytes = spec::row_bytes;
        layer.pieces.push_back({tile, used_[tile]++, 1, 0});
        return {};
    }

    [[nodiscard]] unsigned emptiest() const {
        return static_cast<unsigned>(std::ranges::min_element(used_) - used_.begin());
    }

    Status place_whole(ParameterLayer& layer) {
        const unsigned tile = emptiest();
        const std::uint32_t count = layer.row_count();
        if (used_[tile] + count > cap()) return too_many(layer);
        layer.pieces.push_back({tile, used_[tile], count, 0});
        used_[tile] += count;
        return {};
    }

    Status place_pieces(ParameterLayer& layer) {
        const std::uint32_t all = layer.row_count();
        for (std::uint32_t done = 0; done < all;) {
            const unsigned tile = emptiest();
            const std::uint32_t count = std::min(all - done, cap() - std::min(cap(), used_[tile]));
            if (count == 0) return too_many(layer);
            layer.pieces.push_back({tile, used_[tile], count, std::size_t{done} * layer.row_bytes});
            used_[tile] += count;
            done += count;
        }
        return {};
    }

    Plan& plan_;
    std::array<std::uint32_t, all_tiles>& used_;
};

}  // namespace

Status place_parameters(Plan& plan, bool stream_all) {
    return ParameterPlacer(plan).run(stream_all);
}

}  // namespace reef::edgetpu::lowering
