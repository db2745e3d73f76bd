// A plain model's tensors by the names that a compiled model has for them.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reef/edgetpu/compiled_parameters.h"

namespace reef::edgetpu {

class TensorNames {
  public:
    explicit TensorNames(const CompiledParameters& opened) {
        const auto& graph = opened.plain().subgraphs.front();
        for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
            const std::string& name = graph.tensors[i].name;
            if (!name.empty()) names_.try_emplace(name, static_cast<model::TensorIndex>(i));
        }
        const auto& compiled = opened.compiled().subgraphs.front();
        const auto add = [&](const std::vector<model::TensorIndex>& ours,
                             const std::vector<model::TensorIndex>& theirs) {
            for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
                const auto& tensor = compiled.tensors[static_cast<std::size_t>(ours[i])];
                names_.try_emplace(tensor.name, theirs[i]);
            }
        };
        add(compiled.inputs, graph.inputs);
        add(compiled.outputs, graph.outputs);
    }

    /// absent_tensor: none of that name.
    [[nodiscard]] model::TensorIndex find(std::string_view name) const {
        const auto found = names_.find(name);
        return found == names_.end() ? model::absent_tensor : found->second;
    }

  private:
    std::map<std::string, model::TensorIndex, std::less<>> names_;
};

}  // namespace reef::edgetpu
