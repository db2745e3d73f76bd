#include "edgetpu/params/parameter_reader.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "edgetpu/params/plain_checks.h"
#include "reef/edgetpu/compiled_parameters.h"

namespace reef::edgetpu {
namespace {

/// "multipliers, biases, weights": what lies in a part, in its order.
std::string contents_of(const ParameterPart& part) {
    switch (part.kind) {
        case PartKind::softmax_table:
            return "softmax table";
        case PartKind::selection:
            return "selection";
        case PartKind::ones:
            return "ones";
        case PartKind::multipliers:
            return "multipliers";
        case PartKind::fill:
            return "zeros";
        case PartKind::subtrahend:
        case PartKind::factor:
            return "constant";
        case PartKind::layer:
            break;
    }
    const LayerVectors& vectors = part.layout.vectors;
    std::string text;
    if (vectors.multipliers) text += "multipliers, ";
    if (vectors.biases) text += "biases, ";
    if (vectors.zero_points) text += "zero points, ";
    return text + "weights";
}

class OpenParameters final : public chip::Parameters {
  public:
    explicit OpenParameters(CompiledParameters parameters) : parameters_(std::move(parameters)) {}

    [[nodiscard]] chip::ParameterAccount account() const override;
    [[nodiscard]] Result<NamedArrays> get() const override { return parameters_.get(); }
    [[nodiscard]] Status set(const NamedArrays& arrays) override { return parameters_.set(arrays); }
    [[nodiscard]] bool is_of_other_segment(std::string_view name) const override {
        return parameters_.is_of_other_segment(name);
    }
    [[nodiscard]] Result<model::Model> model() const override { return parameters_.model(); }

  private:
    CompiledParameters parameters_;
};

chip::ParameterAccount OpenParameters::account() const {
    using State = chip::ParameterRange::State;
    chip::ParameterAccount account;
    if (parameters_.ends()) account.first_operator = parameters_.first_operator();
    for (const auto& blob : parameters_.blobs())
        account.blobs.push_back({blob.name, blob.bytes.size(), {}});
    const auto add = [&](const BlobRange& range, chip::ParameterRange what) {
        what.offset = range.offset;
        what.size_bytes = range.size_bytes;
        account.blobs[range.blob].ranges.push_back(std::move(what));
    };
    const Placement& placement = parameters_.placement();
    for (const PlacedPart& placed : placement.placed) {
        const ParameterPart& part = parameters_.parts()[placed.part];
        add(placed.range, {.state = placed.differing == 0 ? State::equal : State::differs,
                           .differing_bytes = placed.differing,
                           .op = part.name,
                           .contents = contents_of(part)});
    }
    for (const BlobRange& range : placement.alignment)
        add(range, {.contents = "alignment", .filling = true});
    for (const BlobRange& range : placement.unexplained) add(range, {.state = State::unexplained});
    for (auto& blob : account.blobs)
        std::ranges::sort(blob.ranges, {}, &chip::ParameterRange::offset);
    for (const std::size_t missing : placement.missing) {
        const ParameterPart& part = parameters_.parts()[missing];
        account.missing.push_back({part.name, contents_of(part), part.size_bytes});
    }
    return account;
}

}  // namespace

Result<std::unique_ptr<chip::Parameters>> ParameterReader::open(model::Model plain,
                                                                model::Model compiled) const {
    auto opened = REEF_TRY(CompiledParameters::open(std::move(plain), std::move(compiled)));
    if (const auto other = other_interface(opened.compiled(), opened.plain()))
        return fail(Cause::bad_input, "another network: " + *other, {},
                    "give the plain model that it was compiled from");
    return std::make_unique<OpenParameters>(std::move(opened));
}

}  // namespace reef::edgetpu
