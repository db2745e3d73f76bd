#include "layer_gatherer.h"

#include <map>

#include "reef/edgetpu/device/program_layers.h"
#include "reef/edgetpu/parameter_plan.h"

namespace reef::edgetpu {
namespace {

class ProgramLayers final : public chip::LayerSet {
  public:
    ProgramLayers(model::Model compiled, std::vector<GatheredLayer> gathered)
        : compiled_(std::move(compiled)), gathered_(std::move(gathered)) {
        for (const auto& layer : gathered_)
            layers_.push_back(
                {layer.name, layer.instructions, layer.tiles, layer.sources, layer.problem});
    }

    [[nodiscard]] std::span<const chip::Layer> layers() const override { return layers_; }
    [[nodiscard]] const Array& tensor_of(std::size_t layer) const override {
        return gathered_[layer].tensor;
    }
    [[nodiscard]] Result<Matches> match(const model::Model& plain) override;
    [[nodiscard]] std::optional<Array> as_tensor(std::size_t layer,
                                                 const model::Tensor& tensor) const override {
        const auto row = row_of_.find(layer);
        const std::uint32_t channels = row == row_of_.end() ? 0 : row->second;
        if (!is_alike(gathered_[layer], tensor, channels)) return std::nullopt;
        return tensor_like(gathered_[layer], tensor, channels);
    }

  private:
    model::Model compiled_;
    std::vector<GatheredLayer> gathered_;
    std::vector<chip::Layer> layers_;
    std::map<std::size_t, std::uint32_t> row_of_;  ///< LayerMatch::row, by layer
};

Result<chip::LayerSet::Matches> ProgramLayers::match(const model::Model& plain) {
    const auto found = REEF_TRY(match_layers(gathered_, compiled_, plain));
    Matches matches;
    matches.operators_without_layer =
        REEF_TRY(edgetpu::operators_without_layer(found, compiled_, plain));
    for (const auto& one : found) {
        row_of_[one.layer] = one.row;
        auto& match =
            matches.layers.emplace_back(chip::LayerMatch{.layer = one.layer,
                                                         .op = one.op,
                                                         .tensor = one.tensor,
                                                         .by = to_string(one.by),
                                                         .by_place = one.by == MatchedBy::place,
                                                         .comparable = one.comparable});
        for (const auto& [field, held, wanted] : one.differences)
            match.differences.push_back({field, held, wanted});
    }
    return matches;
}

}  // namespace

Result<std::vector<bool>> LayerGatherer::on_chip(const model::Model& compiled,
                                                 const model::Model& plain) const {
    return operators_on_chip(plain, compiled);
}

Result<std::unique_ptr<chip::LayerSet>> LayerGatherer::gather(const chip::RanModel& ran) const {
    auto layers = REEF_TRY(program_layers(ran.graph, ran.tensor));
    return std::make_unique<ProgramLayers>(ran.model, std::move(layers));
}

}  // namespace reef::edgetpu
