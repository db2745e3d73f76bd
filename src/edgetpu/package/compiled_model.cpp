// Packages in the custom operators of a model.
#include <fmt/format.h>

#include "edgetpu/package/options.h"
#include "reef/edgetpu/package.h"
#include "reef/model/flexbuffer.h"

namespace reef::edgetpu {

bool is_compiled(const model::Operator& op) {
    return op.code.builtin == model::Op::custom && op.code.custom == custom_operator_name;
}

Result<Package> package_of(const model::Operator& op) {
    const SharedBytes& options = op.custom_options;
    const auto map = REEF_TRY(in_place(model::read_flexbuffer(options.view()), "custom options"));
    const Bytes bytes = REEF_TRY(in_place(map.bytes(package_key), "custom options"));
    return read_package({bytes, options.owner()});
}

Result<std::vector<CompiledOperator>> packages_of(const model::Model& model) {
    std::vector<CompiledOperator> found;
    for (std::size_t s = 0; s < model.subgraphs.size(); ++s) {
        const model::Subgraph& graph = model.subgraphs[s];
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            if (!is_compiled(graph.operators[i])) continue;
            std::string place = fmt::format("subgraph {}: {}", s, model::place_of(graph, i));
            auto package = REEF_TRY(in_place(package_of(graph.operators[i]), place));
            found.push_back({s, i, std::move(place), std::move(package)});
        }
    }
    return found;
}

Status replace_package(model::Operator& op, const Package& package) {
    const auto bytes = REEF_TRY(write_package(package));
    const auto options =
        REEF_TRY(in_place(options_with_package(op.custom_options.view(), bytes), "custom options"));
    op.custom_options = SharedBytes::copy_of(options);
    return {};
}

}  // namespace reef::edgetpu
