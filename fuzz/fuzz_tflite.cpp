// .tflite and the FlexBuffers in it: whatever reads keeps the rules, and comes back equal after
// being written, unless the reader said beforehand what would be lost.
#include "check.h"
#include "reef/model/cost.h"
#include "reef/model/flexbuffer.h"
#include "reef/model/tflite.h"

namespace reef::fuzz {
namespace {

void visit_flexbuffer(Bytes bytes) {
    const auto map = model::read_flexbuffer(bytes);
    if (!map) {
        check(!map.error().what.empty(), "an error says what is wrong");
        return;
    }
    for (const auto& [key, value] : map->entries()) {
        check(map->find(key) != nullptr, "an entry is found by its key");
        const auto text = map->bytes(key);
        check(!text || text->empty() ||
                  (text->data() >= bytes.data() &&
                   text->data() + text->size() <= bytes.data() + bytes.size()),
              "a blob lies within the FlexBuffer");
    }
}

void visit_graph(const model::Model& model) {
    check(model::validate(model).has_value(), "what was read keeps the rules");
    for (const model::Subgraph& graph : model.subgraphs) {
        const model::Cost cost = model::cost_of(model, graph);
        check(cost.macs >= 0 && cost.weight_bytes >= 0 && cost.activation_bytes >= 0,
              "costs are not negative");
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            check(!model::place_of(graph, i).empty(), "an operator has a place");
            visit_flexbuffer(graph.operators[i].custom_options.view());
        }
    }
}

void write_and_read(const model::Model& model) {
    const auto file = model::write_tflite(model);
    if (!file) {
        check(!model.not_preserved.empty(), "a model is written unless something would be lost");
        return;
    }
    const auto again = model::read_tflite(SharedBytes::copy_of(*file));
    check(again.has_value(), "what was written reads");
    // A model with a NaN is not equal to itself.
    check(*again == model || model != model, ".tflite read -> write -> read is equal");
    const auto second = model::write_tflite(*again);
    check(second.has_value() && *second == *file, "equal models give equal bytes");
}

}  // namespace
}  // namespace reef::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const reef::Bytes input = std::as_bytes(std::span(data, size));
    reef::fuzz::visit_flexbuffer(input);
    reef::model::prefetch_tables(input);
    const auto model = reef::model::read_tflite(reef::SharedBytes::copy_of(input));
    if (!model) {
        reef::fuzz::check(!model.error().what.empty(), "an error says what is wrong");
        return 0;
    }
    reef::fuzz::visit_graph(*model);
    reef::fuzz::write_and_read(*model);
    return 0;
}
