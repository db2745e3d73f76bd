#include "peers/onnx_check.h"

#include <fmt/format.h>

#include "peers/ort_peer.h"
#include "peers/random_input.h"
#include "reef/cpu/placer.h"
#include "reef/model/operator_samples.h"

namespace reef::peers {
namespace {

struct Counts {
    int written = 0, refused = 0, compared = 0, wrong = 0;
};

Status compare(const model::OperatorSample& sample, graph::Executor& ours, const std::string& name,
               Counts& counts) {
    // Kernels round differently, ONNX Runtime's of RESIZE downwards, and two of them follow one
    // another where a sample has a convolution in front.
    constexpr double most = 3, most_in_the_mean = 0.6;
    const OrtPeer peer = REEF_TRY(OrtPeer::start(sample.model, ours, 1));
    ++counts.compared;
    const Likeness& alike = peer.alike();
    const std::size_t floats = peer.optimised().float_convolutions;
    if (alike.farthest <= most && alike.mean <= most_in_the_mean && floats == 0) return {};
    ++counts.wrong;
    fmt::print("wrong: {}: {:.0f} steps apart, {:.2f} in the mean, {} float convolutions\n", name,
               alike.farthest, alike.mean, floats);
    return {};
}

Status check(const model::OperatorSample& sample, const std::string& name, Counts& counts) {
    auto made = graph::Executor::create(sample.model, {.placers = {cpu::placer()}, .threads = 1});
    if (!made) return {};  // nor does Reef run it
    graph::Executor ours = std::move(*made);
    if (const auto file = onnx_of(sample.model, ours.graph()); !file) {
        ++counts.refused;
        fmt::print("not written: {}: {}\n", name, file.error().what);
        return {};
    }
    ++counts.written;
    fill(ours);
    REEF_TRY(ours.run());
    return why_no_ort().empty() ? compare(sample, ours, name, counts) : Status{};
}

}  // namespace

bool check_onnx() {
    Counts counts;
    for (const ElementType type : {ElementType::uint8, ElementType::int8}) {
        const auto samples = model::operator_samples(type);
        if (!samples) return false;
        for (const model::OperatorSample& sample : *samples) {
            const auto name = fmt::format("{} {} {}", sample.name, name_of(type), sample.variant);
            if (const auto status = check(sample, name, counts); !status) {
                ++counts.wrong;
                fmt::print("wrong: {}: {}\n", name, status.error().message());
            }
        }
    }
    fmt::print("{} samples written, {} not, {} compared, {} wrong{}\n", counts.written,
               counts.refused, counts.compared, counts.wrong,
               why_no_ort().empty() ? "" : "; without ONNX Runtime: " + why_no_ort());
    return counts.written > 0 && counts.wrong == 0;
}

}  // namespace reef::peers
