// Weights of a compiled model by a plain one that need not be the one that was compiled: refused
// with a reason, or got and set again without a change of anything.
#include <algorithm>
#include <vector>

#include "check.h"
#include "compiler/random_network.h"
#include "mutate_network.h"
#include "reef/edgetpu/compiled_parameters.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/retarget.h"
#include "reef/model/part.h"
#include "reef/model/tflite.h"

namespace reef::fuzz {
namespace {

struct Pair {
    model::Model plain, compiled;
};

/// What the seeds are the plain models of; of some, the two halves as segments.
const std::vector<Pair>& compiled_networks() {
    static const std::vector<Pair> pairs = [] {
        std::vector<Pair> made;
        const auto add = [&](model::Model plain) {
            auto compiled = edgetpu::compile(plain, {.keep_islands = true});
            if (compiled) made.push_back({std::move(plain), std::move(compiled->model)});
        };
        for (unsigned seed = 1; seed <= 12; ++seed) add(test::random_network(seed));
        for (unsigned seed = 1; seed <= 3; ++seed) add(test::random_recurrent_network(seed));
        for (unsigned seed = 1; seed <= 6; ++seed) {
            const auto whole = test::random_network(seed);
            const std::size_t all = whole.subgraphs.front().operators.size(), half = all / 2;
            for (const model::OperatorRange range :
                 {model::OperatorRange{0, half}, {half, all - half}}) {
                const auto part = model::part_of(whole, range);
                if (!part) continue;
                auto compiled = edgetpu::compile(part->model, {.keep_islands = true});
                if (compiled) made.push_back({whole, std::move(compiled->model)});
            }
        }
        return made;
    }();
    return pairs;
}

void check_error(const Error& error) {
    check(!error.what.empty(), "a refusal says why");
    check(error.hint.find("bug") == std::string::npos, "a refusal is none of ours");
}

void visit(const model::Model& plain, const model::Model& compiled) {
    auto opened = edgetpu::CompiledParameters::open(plain, compiled);
    if (!opened) return check_error(opened.error());
    const auto got = opened->get();
    if (!got) return check_error(got.error());
    if (const auto set = opened->set(*got); !set) return check_error(set.error());
    const auto again = opened->get();
    check(again.has_value() && *again == *got, "what was got and set is got again");
    check(opened->model().has_value(), "what was set can be written");
}

void visit(const model::Model& model) {
    if (model.subgraphs.empty()) return;
    // The compiled networks with as many operators as this one.
    for (const Pair& one : compiled_networks()) {
        const auto& graph = one.plain.subgraphs.front();
        if (graph.operators.size() != model.subgraphs.front().operators.size()) continue;
        visit(model, one.compiled);
        const auto result = edgetpu::retarget(one.compiled, one.plain, model, {});
        if (!result) check_error(result.error());
    }
}

}  // namespace
}  // namespace reef::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto model =
        reef::model::read_tflite(reef::SharedBytes::copy_of(std::as_bytes(std::span(data, size))));
    if (model) reef::fuzz::visit(*model);
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t capacity, unsigned seed) {
    return reef::fuzz::mutate_network(data, size, capacity, seed);
}
