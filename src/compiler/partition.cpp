#include "compiler/partition.h"

#include <algorithm>
#include <set>

#include "compiler/legalise.h"

namespace reef::compiler {
namespace {

constexpr const char* another_program =
    "more than one program is not asked for, and another has more work";

bool is_folded(const Node& node) {
    return std::holds_alternative<Folded>(node.operation);
}

std::uint64_t macs_of(const Graph& graph, const Node& node) {
    const Value& out = graph.values[node.outputs[0]];
    const auto elements = static_cast<std::uint64_t>(out.pixels() * out.channels);
    if (const auto* lstm = std::get_if<Lstm>(&node.operation))
        return elements * lstm->input.size() *
               static_cast<std::uint64_t>(lstm->input[0].in_channels + lstm->units);
    const auto* conv = std::get_if<Convolution>(&node.operation);
    const auto* transposed = std::get_if<TransposedConvolution>(&node.operation);
    if (transposed != nullptr) conv = &transposed->of;
    if (const auto* rows = std::get_if<RowProduct>(&node.operation)) conv = &rows->of;
    if (conv == nullptr) return elements;
    const auto taps = static_cast<std::uint64_t>(conv->window.kernel_h) *
                      static_cast<std::uint64_t>(conv->window.kernel_w);
    return elements * taps * (conv->depthwise ? 1 : static_cast<std::uint64_t>(conv->in_channels));
}

class Partitioner {
  public:
    Partitioner(const Graph& graph, const Target& target) : graph_(graph) {
        for (const Node& node : graph.nodes) {
            const auto* unknown = std::get_if<Unknown>(&node.operation);
            reasons_.push_back(unknown != nullptr ? unknown->why
                               : is_folded(node)  ? std::string()
                                                  : target.refusal(graph, node));
        }
        for (ValueId v = 0; v < graph.values.size(); ++v) sources_.push_back(source_of(graph, v));
    }

    Partition run(std::size_t most_programs) {
        assign_stages();
        auto programs = collect();
        if (programs.size() > most_programs) {
            keep_largest(programs, most_programs);
            assign_stages();
            programs = collect();
        }
        find_needed();
        Partition out;
        for (Program& program : programs) connect(program);
        out.order = ordered(programs);
        out.programs = std::move(programs);
        for (std::size_t i = 0; i < reasons_.size(); ++i)
            out.reasons.push_back(kept_[i] && reasons_[i].empty() ? "only the CPU needs it"
                                                                  : reasons_[i]);
        return out;
    }

  private:
    [[nodiscard]] bool on_chip(std::size_t node) const {
        return reasons_[node].empty() && !is_folded(graph_.nodes[node]);
    }

    /// A value of the host with stage s is there when programs 0 to s - 1 have run; one of the chip
    /// is program s's.
    struct Place {
        bool chip = false;
        std::size_t stage = 0;
    };

    void assign_stages() {
        places_.assign(graph_.values.size(), {});
        stages_.assign(graph_.nodes.size(), 0);
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            const Node& node = graph_.nodes[i];
            const bool chip = on_chip(i);
            std::size_t stage = 0;
            for (const ValueId in : node.inputs) {
                const Place& p = places_[sources_[in]];
                stage = std::max(stage, p.stage + (p.chip && !chip ? 1 : 0));
            }
            stages_[i] = stage;
            for (const ValueId out : node.outputs) places_[out] = {chip, stage};
        }
    }

    /// By stage, without gaps; programs_of_ tells the number of a node's.
    std::vector<Program> collect() {
        std::vector<Program> programs;
        std::set<std::size_t> used;
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
            if (on_chip(i)) used.insert(stages_[i]);
        for (const std::size_t stage : used) {
            Program& program = programs.emplace_back();
            for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
                if (!on_chip(i) || stages_[i] != stage) continue;
                program.nodes.push_back(i);
                program.macs += macs_of(graph_, graph_.nodes[i]);
            }
        }
        return programs;
    }

    void keep_largest(const std::vector<Program>& programs, std::size_t most) {
        std::vector<const Program*> by_work;
        for (const Program& p : programs) by_work.push_back(&p);
        std::ranges::stable_sort(by_work, std::ranges::greater{}, &Program::macs);
        for (std::size_t k = most; k < by_work.size(); ++k)
            for (const std::size_t node : by_work[k]->nodes) reasons_[node] = another_program;
    }

    /// Tensors that must be in the host's memory, and Folded operators that the CPU still runs.
    void find_needed() {
        needed_.assign(graph_.values.size(), false);
        kept_.assign(graph_.nodes.size(), false);
        for (const ValueId v : graph_.outputs) needed_[v] = true;
        for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
            if (on_chip(i)) continue;
            const Node& node = graph_.nodes[i];
            if (const auto* folded = std::get_if<Folded>(&node.operation)) {
                const ValueId out = node.outputs[0];
                kept_[i] = needed_[out] && !(folded->copies && places_[sources_[out]].chip);
                if (!kept_[i]) continue;
            }
            for (const auto in : graph_.subgraph().operators[i].inputs)
                if (in != model::absent_tensor) needed_[static_cast<ValueId>(in)] = true;
        }
        for (const auto& node : graph_.nodes)
            for (const ValueId in : node.inputs) note_reader(node, in);
    }

    /// Programs read what earlier ones computed from the host's memory.
    void note_reader(const Node& node, ValueId in) {
        const auto index = static_cast<std::size_t>(&node - graph_.nodes.data());
        if (!on_chip(index)) return;
        const ValueId source = sources_[in];
        if (places_[source].chip && places_[source].stage != stages_[index]) needed_[source] = true;
        if (!places_[source].chip) needed_[source] = true;
    }

    void connect(Program& program) const {
        const std::size_t stage = stages_[program.nodes.front()];
        const auto add = [](std::vector<Program::Port>& list, Program::Port port) {
            if (!holds(list, port)) list.push_back(port);
        };
        for (const std::size_t i : program.nodes) {
            for (const ValueId in : graph_.nodes[i].inputs) {
                const Place& p = places_[sources_[in]];
                if (!p.chip || p.stage != stage) add(program.inputs, {sources_[in], sources_[in]});
            }
        }
        std::set<ValueId> read;
        for (const Node& node : graph_.nodes)
            for (const ValueId in : node.inputs) read.insert(sources_[in]);
        for (ValueId v = 0; v < graph_.values.size(); ++v) {
            const ValueId source = sources_[v];
            if (!places_[source].chip || places_[source].stage != stage || is_kept(v)) continue;
            const bool unread = v == source && !read.contains(v);
            if (needed_[v] || (unread && !has_alias_needed(v))) add(program.outputs, {v, source});
        }
    }

    [[nodiscard]] bool is_kept(ValueId v) const {
        const auto producer = graph_.producer(v);
        return producer && kept_[*producer];
    }
    [[nodiscard]] bool has_alias_needed(ValueId source) const {
        for (ValueId v = 0; v < sources_.size(); ++v)
            if (v != source && sources_[v] == source && needed_[v]) return true;
        return false;
    }

    std::vector<Partition::Item> ordered(const std::vector<Program>& programs) const {
        std::vector<Partition::Item> order;
        std::size_t next = 0;
        const auto host_of = [&](std::size_t stage) {
            for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
                const bool host = !on_chip(i) && (!is_folded(graph_.nodes[i]) || kept_[i]);
                if (host && stages_[i] == stage) order.push_back({false, i});
            }
        };
        const std::size_t last =
            stages_.empty() ? 0 : *std::max_element(stages_.begin(), stages_.end());
        for (std::size_t stage = 0; stage <= last; ++stage) {
            host_of(stage);
            if (next < programs.size() && stages_[programs[next].nodes.front()] == stage)
                order.push_back({true, next++});
        }
        return order;
    }

    const Graph& graph_;
    std::vector<std::string> reasons_;  ///< by node
    std::vector<ValueId> sources_;      ///< by value
    std::vector<Place> places_;         ///< by value; of Folded nodes' outputs: of their source
    std::vector<std::size_t> stages_;   ///< by node
    std::vector<bool> needed_;          ///< by value
    std::vector<bool> kept_;            ///< by node
};

}  // namespace

Partition partition(const Graph& graph, const Target& target, std::size_t most_programs) {
    return Partitioner(graph, target).run(most_programs);
}

}  // namespace reef::compiler
