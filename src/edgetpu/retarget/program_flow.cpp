#include "edgetpu/retarget/program_flow.h"

#include <algorithm>
#include <set>

namespace reef::edgetpu {
namespace {

using trace::DataOrigin;

/// One compiled operator's flow added to that of the whole model.
class FlowBuilder {
  public:
    FlowBuilder(const CompiledParameters& opened, ProgramFlow& flow)
        : opened_(opened), flow_(flow) {}

    Status add(std::size_t op) {
        op_ = op;
        first_ = flow_.nodes.size();
        const Package& package = opened_.operators()[op].package;
        const trace::DataFlow traced = REEF_TRY(trace::data_flow(package));
        const Executable& layers = *REEF_TRY(computing_executable(package));
        layers_ = &layers;
        const auto executable = static_cast<std::size_t>(&layers - package.executables.data());
        std::vector<std::vector<Instruction>> streams;
        for (const auto& stream : layers.bitstreams) {
            streams.push_back(REEF_TRY(decode(stream.instructions.view())));
        }
        for (const trace::TensorFlow& one : traced.tensors) {
            const auto& stream = streams[one.place.bitstream];
            const auto at =
                std::ranges::lower_bound(stream, one.place.word, {}, &Instruction::word);
            FlowNode& node = flow_.nodes.emplace_back();
            node.at = {op, executable, one.place.bitstream, *at};
            add_sources(node, one);
            add_fills(node, one, traced.fills);
        }
        for (std::size_t i = 0; i < traced.outputs.size(); ++i) {
            auto& output = flow_.outputs.emplace_back();
            output.name = layers.outputs[i].name;
            output.sources = sources_of(traced.outputs[i].all);
            for (const auto& origins : traced.outputs[i].by_channels)
                output.by_channels.push_back(sources_of(origins));
        }
        return {};
    }

  private:
    FlowSources sources_of(const std::vector<DataOrigin>& origins) const {
        FlowSources sources;
        for (const DataOrigin& origin : origins) {
            if (origin.kind == DataOrigin::Kind::tensor) {
                sources.nodes.push_back(first_ + origin.index);
            }
            if (origin.kind == DataOrigin::Kind::input) add_input(sources, origin.index);
        }
        return sources;
    }

    /// What a program before gave to the host for this one comes from there.
    void add_input(FlowSources& sources, std::size_t layer) const {
        const std::string& name = layers_->inputs[layer].name;
        const auto given = std::ranges::find(flow_.outputs, name, &ProgramFlow::Output::name);
        if (given == flow_.outputs.end())
            sources.from_host = true;
        else
            join(sources, given->sources);
    }

    static void join(FlowSources& all, const FlowSources& more) {
        all.from_host = all.from_host || more.from_host;
        all.nodes.insert(all.nodes.end(), more.nodes.begin(), more.nodes.end());
        std::ranges::sort(all.nodes);
        const auto rest = std::ranges::unique(all.nodes);
        all.nodes.erase(rest.begin(), rest.end());
    }

    void add_sources(FlowNode& node, const trace::TensorFlow& traced) const {
        for (std::size_t row = 0; row < traced.in.size(); ++row) {
            join(node.operands[row / 2], sources_of(traced.in[row]));
        }
        for (const FlowSources& operand : node.operands) join(node.sources, operand);
        join(node.sources, sources_of(traced.parameters));
        join(node.sources, sources_of(traced.scaling));
        for (const DataOrigin& origin : traced.parameters) {
            if (origin.kind != DataOrigin::Kind::parameters) continue;
            const auto blob = std::ranges::find_if(opened_.blobs(), [&](const auto& one) {
                return one.op == op_ && one.executable == origin.index;
            });
            const auto index = static_cast<std::size_t>(blob - opened_.blobs().begin());
            node.rows.push_back({index, origin.offset, 0});
        }
    }

    static void add_fills(FlowNode& node, const trace::TensorFlow& traced,
                          const std::vector<trace::InstructionPlace>& fills) {
        std::set<trace::InstructionPlace> all;
        for (const auto& origins : traced.in)
            for (const DataOrigin& origin : origins)
                if (origin.kind == DataOrigin::Kind::fill) all.insert(fills[origin.index]);
        node.fills.assign(all.begin(), all.end());
    }

    const CompiledParameters& opened_;
    ProgramFlow& flow_;
    const Executable* layers_ = nullptr;
    std::size_t op_ = 0, first_ = 0;
};

}  // namespace

Result<ProgramFlow> program_flow(const CompiledParameters& opened) {
    ProgramFlow flow{.nodes = {}, .outputs = {}, .own = opened.is_own()};
    FlowBuilder builder(opened, flow);
    for (std::size_t op = 0; op < opened.operators().size(); ++op) {
        REEF_CHECK(in_place(builder.add(op), opened.operators()[op].place));
    }
    return flow;
}

std::vector<bool> copies_of(const ProgramFlow& flow) {
    std::vector<bool> copies;
    for (const FlowNode& node : flow.nodes) {
        const Instruction& one = node.at.instruction;
        copies.push_back(!requantises(one) || independent_of_quantization(one, flow.own));
    }
    return copies;
}

std::vector<trace::InstructionPlace> fills_through_copies(const ProgramFlow& flow, std::size_t node,
                                                          const std::vector<bool>& copies) {
    std::set<trace::InstructionPlace> fills;
    std::set<std::size_t> seen;
    std::vector<std::size_t> left = {node};
    while (!left.empty()) {
        const FlowNode& one = flow.nodes[left.back()];
        left.pop_back();
        fills.insert(one.fills.begin(), one.fills.end());
        for (const std::size_t source : one.sources.nodes)
            if (copies[source] && seen.insert(source).second) left.push_back(source);
    }
    return {fills.begin(), fills.end()};
}

FlowSources through_copies(const ProgramFlow& flow, const FlowSources& sources,
                           const std::vector<bool>& copies) {
    FlowSources out{{}, sources.from_host};
    std::set<std::size_t> seen;
    std::vector<std::size_t> left = sources.nodes;
    while (!left.empty()) {
        const std::size_t node = left.back();
        left.pop_back();
        if (!seen.insert(node).second) continue;
        if (!copies[node]) {
            out.nodes.push_back(node);
            continue;
        }
        const FlowSources& further = flow.nodes[node].sources;
        out.from_host = out.from_host || further.from_host;
        left.insert(left.end(), further.nodes.begin(), further.nodes.end());
    }
    std::ranges::sort(out.nodes);
    return out;
}

}  // namespace reef::edgetpu
