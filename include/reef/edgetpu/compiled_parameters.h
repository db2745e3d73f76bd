// The parameters of a compiled model, read and replaced by the names of its plain source.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/npy.h"
#include "reef/base/result.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/parameter_plan.h"
#include "reef/model/graph.h"
#include "reef/model/part.h"

namespace reef::edgetpu {

/// A compiled model opened with the plain model that it was compiled from, or one of the same
/// architecture whose order of layers is the same. Of a segment of a pipeline the plain model is
/// that of the whole network, too: what the segment computes is found by the names of its inputs
/// and outputs.
class CompiledParameters {
  public:
    /// One executable's parameters; empty ones are left out.
    struct Blob {
        std::size_t op = 0;          ///< index in operators()
        std::size_t executable = 0;  ///< index in its package
        std::string name;            ///< "operator 0 edgetpu-custom-op: PARAMETER_CACHING"
        std::vector<std::byte> bytes;
    };

    /// Errors: bad_input when the second model is not compiled or the first one is; unsupported for
    /// constants in sparse form; what
    /// packages_of(), plan_parameters() and model::part_between() refuse.
    [[nodiscard]] static Result<CompiledParameters> open(
        model::Model plain, model::Model compiled,
        PartSearch search = PartSearch::by_bytes_and_structure);

    /// The same compiled model with parts of other layouts, at the places that a program tells
    /// instead of by their bytes. Errors: those of place_by_hints().
    [[nodiscard]] Result<CompiledParameters> placed_as(std::vector<ParameterPart> parts,
                                                       const std::vector<PartHint>& hints) const;

    /// Of a segment: the part that it computes.
    [[nodiscard]] const model::Model& plain() const { return plain_; }
    /// Where a segment begins and ends in the whole plain model; nothing for a whole program.
    [[nodiscard]] const std::optional<model::PartEnds>& ends() const { return ends_; }
    /// Of a segment, the first of its operators in the whole plain model; else 0.
    [[nodiscard]] std::size_t first_operator() const { return first_operator_; }
    [[nodiscard]] const model::Model& compiled() const { return compiled_; }
    [[nodiscard]] const std::vector<CompiledOperator>& operators() const { return operators_; }
    [[nodiscard]] const std::vector<bool>& on_chip() const { return on_chip_; }
    [[nodiscard]] const std::vector<ParameterPart>& parts() const { return parts_; }
    /// All forms that a part may have, by its index: which of them it has, its bytes told, if they
    /// are the plain model's.
    [[nodiscard]] const std::vector<std::vector<ParameterPart>>& forms() const { return forms_; }
    /// Reef's own compiler made the programs.
    [[nodiscard]] bool is_own() const { return own_; }
    [[nodiscard]] const std::vector<Blob>& blobs() const { return blobs_; }
    [[nodiscard]] const Placement& placement() const { return placement_; }
    /// The bytes of a placed part.
    [[nodiscard]] MutableBytes bytes_of(const PlacedPart& placed);
    [[nodiscard]] Bytes bytes_of(const PlacedPart& placed) const;

    /// Weights and biases under the names of the plain model's tensors, in their shapes and types;
    /// NAME:multiplier holds the float32 factors in * weight / out of a layer that stores one for
    /// each channel. Errors: unsupported when a layer was not found.
    [[nodiscard]] Result<NamedArrays> get() const;

    /// Replaces the arrays that are named, which are those that get() gives; real weights are
    /// rounded to the plain model's scales where these are symmetric int8. Nothing is changed on
    /// errors: not_found for another name, bad_argument for another shape or type and for a real
    /// weight that is no number or that its scale has no step for, unsupported for a bias where the
    /// program has no place for one.
    [[nodiscard]] Status set(const NamedArrays& arrays);

    /// Of a segment: whether an array of this name would be the whole network's and is of an
    /// operator of other segments alone, so that set() has nothing to put it into. Of a whole
    /// program, false.
    [[nodiscard]] bool is_of_other_segment(std::string_view name) const;

    /// The compiled model with the blobs as they are now, by with_packages().
    [[nodiscard]] Result<model::Model> model() const;

  private:
    CompiledParameters() = default;
    /// Nothing but the row by which a program of Reef's keeps the chip's memory.
    [[nodiscard]] bool is_anchor_of_own(std::size_t blob) const;

    model::Model plain_;
    std::optional<model::PartEnds> ends_;
    std::size_t first_operator_ = 0;
    model::Model compiled_;
    std::vector<CompiledOperator> operators_;
    std::vector<bool> on_chip_;
    std::vector<ParameterPart> parts_;
    std::vector<std::vector<ParameterPart>> forms_;
    bool own_ = false;
    std::vector<Blob> blobs_;
    Placement placement_;
};

/// The model with other packages, one for each of its compiled operators. A package that changed
/// gets a new caching token, or the runtime would keep the parameters that it cached before; so do
/// those that had its token, whose parameters lie beside it. The token is `token`, or follows from
/// the parameters of all of them. Errors: those of replace_package().
[[nodiscard]] Result<model::Model> with_packages(model::Model model,
                                                 const std::vector<CompiledOperator>& operators,
                                                 std::vector<Package> packages,
                                                 std::optional<std::uint64_t> token = {});

}  // namespace reef::edgetpu
