// A model from a hostile file on the CPU: refused, or run within its memory; both kernel sets and
// any number of threads give the same bytes, in either arithmetic.
#include <algorithm>
#include <cstring>

#include "check.h"
#include "reef/cpu/placer.h"
#include "reef/edgetpu/numerics.h"
#include "reef/graph/executor.h"
#include "reef/model/cost.h"
#include "reef/model/tflite.h"

namespace reef::fuzz {
namespace {

/// Keeps one input within fractions of a second and some tens of MiB.
bool small(const model::Model& model) {
    std::int64_t tensor_bytes = 0;
    for (const model::Tensor& tensor : model.subgraphs[0].tensors)
        tensor_bytes += tensor.byte_count().value_or(0);
    const model::Cost cost = model::cost_of(model, model.subgraphs[0]);
    return tensor_bytes < (1 << 24) && cost.macs < 2'000'000 && cost.activation_bytes < (1 << 22) &&
           cost.weight_bytes < (1 << 22) && model.subgraphs[0].operators.size() < 64;
}

void fill(MutableBytes bytes, std::size_t seed) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>((i * 2654435761U + seed * 97) >> 5);
}

/// Whether floating point takes part: there the two kernel sets may differ in the last bits.
bool integers_only(const model::Subgraph& graph) {
    return std::ranges::none_of(graph.tensors, [](const model::Tensor& tensor) {
        return tensor.type == ElementType::float32;
    });
}

struct Outcome {
    bool ran = false;
    std::vector<std::vector<std::byte>> outputs;
    friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome run(const model::Model& model, const cpu::KernelOptions& options, int threads) {
    auto executor =
        graph::Executor::create(model, {.placers = {cpu::placer(options)}, .threads = threads});
    if (!executor) {
        check(!executor.error().what.empty(), "an error says what is wrong");
        return {};
    }
    for (std::size_t i = 0; i < executor->input_count(); ++i) fill(executor->input(i), i);
    Outcome outcome;
    outcome.ran = executor->run().has_value();
    for (std::size_t i = 0; outcome.ran && i < executor->output_count(); ++i) {
        const Bytes bytes = executor->output(i);
        outcome.outputs.emplace_back(bytes.begin(), bytes.end());
    }
    return outcome;
}

}  // namespace
}  // namespace reef::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reef;
    const auto model =
        model::read_tflite(SharedBytes::copy_of(std::as_bytes(std::span(data, size))));
    if (!model || model->subgraphs.empty() || !fuzz::small(*model)) return 0;
    // From the last byte, so that a corpus varies it.
    const int threads = 2 + static_cast<int>(data[size - 1] % 3);
    constexpr const cpu::Arithmetic* tflite = nullptr;
    for (const cpu::Arithmetic* arithmetic : {tflite, &edgetpu::arithmetic()}) {
        const cpu::KernelOptions reference{cpu::KernelSet::reference, arithmetic};
        const cpu::KernelOptions vectors{cpu::KernelSet::fast, arithmetic};
        const auto plain = fuzz::run(*model, reference, 1);
        const auto fast = fuzz::run(*model, vectors, 1);
        fuzz::check(plain.ran == fast.ran, "both kernel sets accept the same models");
        fuzz::check(!fuzz::integers_only(model->subgraphs[0]) || plain == fast,
                    "both kernel sets give the same bytes");
        fuzz::check(fuzz::run(*model, reference, 2) == plain,
                    "threads do not change plain kernels");
        fuzz::check(fuzz::run(*model, vectors, threads) == fast,
                    "threads do not change fast kernels");
    }
    return 0;
}
