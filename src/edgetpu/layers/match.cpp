// Layers of a program beside the tensors of the plain model that it was compiled from.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "reef/edgetpu/compiled_parameters.h"
#include "reef/edgetpu/layer_dump.h"
#include "reef/edgetpu/parameter_plan.h"
#include "reef/edgetpu/requantisation.h"

namespace reef::edgetpu {
namespace {

using model::Operator;
using model::Subgraph;
using model::Tensor;
using model::TensorIndex;

/// Height, width and channels, where there are no more dimensions.
std::optional<std::array<std::int64_t, 3>> image_shape(const Tensor& tensor) {
    std::array<std::int64_t, 3> shape = {1, 1, 1};
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
        const std::size_t behind = tensor.shape.size() - i;
        if (behind <= 3)
            shape[3 - behind] = tensor.shape[i];
        else if (tensor.shape[i] != 1)
            return std::nullopt;
    }
    return shape;
}

/// Whether an instruction may hold an operator's values but for one that is wrong, with the limits
/// and sums that follow from it. With more it is another operator's.
bool may_be_wrong(const std::vector<ValueDifference>& differences) {
    return std::ranges::count_if(differences, [](const ValueDifference& one) {
               return one.field == "scale" || one.field == "par_zero" || one.field == "in_zero" ||
                      one.field == "out_zero";
           }) <= 1;
}

/// What a tensor comes from: what the host sends, by name, and tensors that layers stand for.
struct Roots {
    std::set<std::string> inputs;
    std::set<TensorIndex> tensors;
    friend bool operator==(const Roots&, const Roots&) = default;
};

class Matching {
  public:
    Matching(const std::vector<GatheredLayer>& layers, const model::Model& plain,
             const std::vector<ParameterPart>& parts, std::vector<Requantisation> roles)
        : layers_(layers), graph_(plain.subgraphs.front()), roles_(std::move(roles)) {
        for (const ParameterPart& part : parts)
            if (part.kind == PartKind::layer) row_of_[part.op] = part.form.row;
        for (std::size_t i = 0; i < layers.size(); ++i) by_name_[layers[i].name] = i;
        for (const GatheredLayer& layer : layers)
            for (const std::string& source : layer.sources)
                if (!by_name_.contains(source)) on_host_.insert(source);
        for (const Requantisation& role : roles_)
            if (role.required()) computed_.insert(output_of(role.op));
        for (std::size_t op = 0; op < graph_.operators.size(); ++op)
            for (const TensorIndex output : graph_.operators[op].outputs) producer_[output] = op;
    }

    std::vector<LayerMatch> run() {
        for (std::size_t i = 0; i < layers_.size(); ++i) match(i);
        for (const Fit fit : {Fit::tensor_and_form, Fit::tensor, Fit::form})
            for (std::size_t i = 0; i < layers_.size(); ++i)
                if (!op_of_.contains(i)) match_by_place(i, fit);
        std::ranges::sort(matches_, {}, &LayerMatch::layer);
        return std::move(matches_);
    }

  private:
    /// What a layer and an operator that are left over must have in common, besides their place.
    enum class Fit : std::uint8_t {
        tensor_and_form,
        tensor,  ///< the shape of the result
        form,    ///< the opcode, modes and loops
    };

    TensorIndex output_of(std::size_t op) const { return graph_.operators[op].outputs.front(); }

    /// What copies an input of a CONCATENATION makes a part of its output.
    bool makes_output(const Requantisation& role) const {
        return role.required() && !taken_.contains(role.op) &&
               graph_.operators[role.op].code.builtin != model::Op::concatenation;
    }

    std::vector<std::size_t> alike(const GatheredLayer& layer) const {
        std::vector<std::size_t> ops;
        for (const Requantisation& role : roles_) {
            if (!makes_output(role) || !holds(layer.first, role)) continue;
            if (has_tensor_of(layer, role.op)) ops.push_back(role.op);
        }
        return ops;
    }

    void match(std::size_t i) {
        const GatheredLayer& layer = layers_[i];
        if (!layer.problem.empty()) return;
        auto ops = alike(layer);
        if (ops.empty()) return;
        MatchedBy by = MatchedBy::values;
        if (ops.size() > 1) {
            by = MatchedBy::sources;
            const Roots mine = roots_of(i);
            auto same = ops;
            std::erase_if(same, [&](std::size_t op) { return !(roots_of_operator(op) == mine); });
            if (!same.empty()) ops = std::move(same);
            if (ops.size() > 1) by = MatchedBy::order;
        }
        take({.layer = i, .op = ops.front(), .tensor = output_of(ops.front()), .by = by});
    }

    std::uint32_t row_of(std::size_t op) const {
        const auto known = row_of_.find(op);
        return known == row_of_.end() ? 0 : known->second;
    }

    void take(LayerMatch match) {
        match.row = row_of(match.op);
        taken_.insert(match.op);
        op_of_[match.layer] = match.op;
        tensor_of_[match.layer] = match.tensor;
        matched_.insert(match.tensor);
        matches_.push_back(std::move(match));
    }

    bool has_tensor_of(const GatheredLayer& layer, std::size_t op) const {
        return layer.problem.empty() &&
               is_alike(layer, graph_.tensors[static_cast<std::size_t>(output_of(op))], row_of(op));
    }

    bool fits(const GatheredLayer& layer, const Requantisation& role, Fit fit) const {
        if (!makes_output(role) || !may_be_wrong(differing_values(layer.first, role))) return false;
        return (fit == Fit::form || has_tensor_of(layer, role.op)) &&
               (fit == Fit::tensor || has_shape_of(layer.first, role));
    }

    /// The operator lies between those of the nearest layers that have one.
    bool is_between_neighbours(std::size_t layer, std::size_t op) const {
        const auto after = op_of_.upper_bound(layer);
        return (after == op_of_.end() || op < after->second) &&
               (after == op_of_.begin() || op > std::prev(after)->second);
    }

    /// Those that read what the layer reads. A wrong address may make it read something else, too:
    /// then those between its neighbours.
    void keep_in_place(std::vector<const Requantisation*>& roles, std::size_t layer,
                       Fit fit) const {
        const Roots mine = roots_of(layer);
        const auto reads_the_same = [&](const Requantisation* role) {
            return roots_of_operator(role->op) == mine;
        };
        const bool any = std::ranges::any_of(roles, reads_the_same);
        std::erase_if(roles, [&](const Requantisation* role) {
            if (any || fit == Fit::tensor) return !reads_the_same(role);
            return !is_between_neighbours(layer, role->op);
        });
    }

    /// Of several in one place, the one with most of the layer's values.
    void match_by_place(std::size_t i, Fit fit) {
        const GatheredLayer& layer = layers_[i];
        // No operator with numbers of its own does that.
        if (layer.keeps_bytes) return;
        std::vector<const Requantisation*> roles;
        for (const Requantisation& role : roles_)
            if (fits(layer, role, fit)) roles.push_back(&role);
        keep_in_place(roles, i, fit);
        if (roles.empty()) return;
        const Requantisation* best =
            *std::ranges::min_element(roles, {}, [&](const Requantisation* role) {
                return differing_values(layer.first, *role).size();
            });
        take({.layer = i,
              .op = best->op,
              .tensor = output_of(best->op),
              .by = MatchedBy::place,
              .comparable = has_tensor_of(layer, best->op),
              .differences = differing_values(layer.first, *best)});
    }

    /// Of what a layer reads.
    Roots roots_of(std::size_t layer) const {
        Roots roots;
        std::set<std::size_t> seen;
        std::vector<std::size_t> left = {layer};
        while (!left.empty()) {
            const std::size_t at = left.back();
            left.pop_back();
            if (!seen.insert(at).second) continue;
            for (const std::string& source : layers_[at].sources) {
                const auto other = by_name_.find(source);
                if (other == by_name_.end())
                    roots.inputs.insert(source);
                else if (const auto known = tensor_of_.find(other->second);
                         known != tensor_of_.end())
                    roots.tensors.insert(known->second);
                else
                    left.push_back(other->second);
            }
        }
        return roots;
    }

    Roots roots_of_operator(std::size_t op) const {
        Roots roots;
        std::set<std::size_t> seen;
        std::vector<std::size_t> left = {op};
        while (!left.empty()) {
            const std::size_t at = left.back();
            left.pop_back();
            if (!seen.insert(at).second) continue;
            for (const TensorIndex input : graph_.operators[at].inputs) {
                if (input == model::absent_tensor) continue;
                const std::string& name = graph_.tensors[static_cast<std::size_t>(input)].name;
                // What has instructions of its own is no way to what lies before it.
                if (matched_.contains(input) || computed_.contains(input))
                    roots.tensors.insert(input);
                else if (on_host_.contains(name))
                    roots.inputs.insert(name);
                else if (const auto from = producer_.find(input); from != producer_.end())
                    left.push_back(from->second);
            }
        }
        return roots;
    }

    const std::vector<GatheredLayer>& layers_;
    const Subgraph& graph_;
    std::vector<Requantisation> roles_;
    std::map<std::string, std::size_t> by_name_;
    std::set<std::string> on_host_;  ///< names of what programs read that no layer is
    std::map<TensorIndex, std::size_t> producer_;
    std::map<std::size_t, std::uint32_t> row_of_;  ///< by operator with weights
    std::set<std::size_t> taken_;                  ///< operators
    std::set<TensorIndex> matched_;
    std::set<TensorIndex> computed_;                ///< by operators with instructions of their own
    std::map<std::size_t, TensorIndex> tensor_of_;  ///< by layer
    std::map<std::size_t, std::size_t> op_of_;      ///< likewise
    std::vector<LayerMatch> matches_;
};

}  // namespace

std::string_view to_string(MatchedBy how) {
    switch (how) {
        case MatchedBy::values:
            return "values";
        case MatchedBy::sources:
            return "sources";
        case MatchedBy::place:
            return "place";
        case MatchedBy::order:
            break;
    }
    return "order";
}

Result<std::vector<LayerMatch>> match_layers(const std::vector<GatheredLayer>& layers,
                                             const model::Model& compiled,
                                             const model::Model& plain) {
    const auto opened = REEF_TRY(CompiledParameters::open(plain, compiled));
    return Matching(layers, plain, opened.parts(),
                    requantisations(plain, opened.on_chip(), opened.parts(), opened.is_own()))
        .run();
}

Result<std::vector<std::size_t>> operators_without_layer(const std::vector<LayerMatch>& matches,
                                                         const model::Model& compiled,
                                                         const model::Model& plain) {
    const auto opened = REEF_TRY(CompiledParameters::open(plain, compiled));
    std::vector<std::size_t> left;
    for (const auto& part : opened.parts())
        if (part.kind == PartKind::layer &&
            std::ranges::none_of(
                matches,
                [&](const LayerMatch& match) { return match.op == part.op && match.comparable; }) &&
            std::ranges::find(left, part.op) == left.end())
            left.push_back(part.op);
    return left;
}

bool is_alike(const GatheredLayer& layer, const model::Tensor& tensor, std::uint32_t row) {
    const bool bytes = tensor.type == ElementType::uint8 || tensor.type == ElementType::int8;
    const auto shape = image_shape(tensor);
    if (!shape || !bytes || layer.tensor.type != ElementType::uint8 ||
        layer.tensor.shape.size() != 3)
        return false;
    const auto [height, width, channels] = *shape;
    const std::int64_t in_rows = stored_channel(static_cast<std::uint32_t>(channels), row);
    const std::int64_t in_words = row == 0 ? (channels + 3) / 4 * 4 : in_rows;
    return layer.tensor.shape[0] == height && layer.tensor.shape[1] == width &&
           (layer.tensor.shape[2] == in_rows || layer.tensor.shape[2] == in_words);
}

Array tensor_like(const GatheredLayer& layer, const model::Tensor& tensor, std::uint32_t row) {
    Array array{tensor.type, {tensor.shape.begin(), tensor.shape.end()}, {}};
    const auto from = static_cast<std::size_t>(layer.tensor.shape.back());
    const std::uint32_t to =
        tensor.shape.empty() ? 1 : static_cast<std::uint32_t>(tensor.shape.back());
    const std::byte flip{static_cast<unsigned char>(tensor.type == ElementType::int8 ? 0x80 : 0)};
    for (std::size_t pixel = 0; pixel < layer.tensor.data.size(); pixel += from)
        for (std::uint32_t c = 0; c < to; ++c)
            array.data.push_back(layer.tensor.data[pixel + stored_channel(c, row)] ^ flip);
    return array;
}

}  // namespace reef::edgetpu
