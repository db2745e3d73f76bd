#include "demo/on_chips.h"

#include <algorithm>
#include <cstdlib>
#include <span>

#include "compare/layer_comparison.h"
#include "inputs/chips.h"
#include "reef/chip/compiler.h"

namespace reef::tool {
namespace {

Result<DemoNetworkOnChip> compiled_for(const chip::Compiler& compiler, const char* name,
                                       const model::Model& plain) {
    auto done = REEF_TRY(in_place(compiler.compile(plain, {}), name));
    DemoNetworkOnChip network{.name = name, .compiled = std::move(done.model)};
    network.operators = done.operators.size();
    for (const auto& op : done.operators) network.on_chip += op.on_chip ? 1 : 0;
    return network;
}

void compare(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b,
             DemoNetworkOnChip& network) {
    network.bytes += a.size();
    for (std::size_t i = 0; i < a.size(); ++i) {
        network.differing += a[i] != b[i] ? 1 : 0;
        network.most_apart = std::max(network.most_apart, std::abs(a[i] - b[i]));
    }
}

Status compare_layers_of(DemoNetworkOnChip& network, const model::Model& plain,
                         std::span<const std::uint8_t> picture) {
    const Bytes input = std::as_bytes(picture);
    const LayerComparison compared =
        REEF_TRY(compare_layers({.compiled = {network.name + " on the chip", network.compiled},
                                 .plain = {network.name, plain},
                                 .inputs = {{input.begin(), input.end()}}}));
    network.layers = compared.sets.tensors.size();
    network.same_layers = compared.sets.same_count();
    return {};
}

}  // namespace

Result<std::vector<DemoOnChip>> run_demo_on_chips(const DemoModels& models, const DemoRun& plain) {
    std::vector<DemoOnChip> chips;
    for (const auto* compiler : runtime::Registry::of_process().parts<chip::Compiler>()) {
        DemoOnChip one;
        one.family = compiler->family();
        one.chip = chip_name(one.family);
        one.networks.push_back(REEF_TRY(compiled_for(*compiler, "looming", models.looming)));
        one.networks.push_back(REEF_TRY(compiled_for(*compiler, "gabor", models.gabor)));
        one.device = device_for(one.networks[0].compiled);
        if (one.device == "cpu") continue;
        const DemoModels compiled{one.networks[0].compiled, one.networks[1].compiled};
        const DemoRun run =
            REEF_TRY(run_demo(compiled, static_cast<int>(plain.frames.size()), one.device));
        for (std::size_t i = 0; i < plain.frames.size(); ++i) {
            const DemoFrame &on_cpu = plain.frames[i], &on_chip = run.frames[i];
            compare(on_cpu.zones, on_chip.zones, one.networks[0]);
            compare(on_cpu.features, on_chip.features, one.networks[1]);
            one.same_verdicts += on_cpu.estimate.motion == on_chip.estimate.motion ? 1 : 0;
        }
        const auto& picture = plain.frames.back().picture;
        REEF_CHECK(compare_layers_of(one.networks[0], models.looming, picture));
        REEF_CHECK(compare_layers_of(one.networks[1], models.gabor, picture));
        chips.push_back(std::move(one));
    }
    return chips;
}

}  // namespace reef::tool
