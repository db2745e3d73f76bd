#include "edgetpu/retarget/operator_matching.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>

namespace reef::edgetpu {
namespace {

using Form = Requantisation::Form;
using Matched = std::vector<std::optional<std::size_t>>;

/// An instruction of this form reads all operands of its operator, and nothing else.
bool reads_all_operands(const Requantisation& role) {
    return role.required();
}

/// Narrows down the roles of every node until each has one: a node keeps a role while what it reads
/// may be that operator's operands, and while whoever reads it may read that operator.
class Matching {
  public:
    Matching(const CompiledParameters& opened, const ProgramFlow& flow, const OperatorGraph& graph,
             const std::vector<Requantisation>& roles, const MatchingRules& rules)
        : opened_(opened), flow_(flow), graph_(graph), roles_(roles), rules_(rules) {}

    Result<Matched> run() {
        find_candidates();
        REEF_CHECK(narrow());
        Matched matched(flow_.nodes.size());
        bool clear = true;
        for (std::size_t node = 0; node < flow_.nodes.size(); ++node) {
            const auto& left = possible_[node];
            if (left.empty()) continue;
            matched[node] = *left.begin();
            clear = clear && all_alike(left);
        }
        if (!clear) REEF_CHECK(choose_in_order(matched));
        REEF_CHECK(check_complete(matched));
        return matched;
    }

  private:
    void find_candidates() {
        const std::size_t count = flow_.nodes.size();
        possible_.resize(count);
        copies_ = copies_of(flow_);
        certain_.resize(count);
        for (std::size_t node = 0; node < count; ++node) {
            if (copies_[node]) continue;
            const Instruction& one = flow_.nodes[node].at.instruction;
            for (std::size_t role = 0; role < roles_.size(); ++role) {
                if (rules_.fits(one, roles_[role]) && rows_fit(flow_.nodes[node], roles_[role])) {
                    possible_[node].insert(role);
                    // No other operator reads a layer's rows.
                    certain_[node] = certain_[node] ||
                                     (rules_.parts_are_placed && roles_[role].form == Form::layer);
                }
            }
        }
        for (const FlowNode& node : flow_.nodes) {
            sources_.push_back(through_copies(flow_, node.sources, copies_));
        }
        for (std::size_t node = 0; node < count; ++node) {
            for (const BlobRange& row : flow_.nodes[node].rows) {
                readers_[{row.blob, row.offset}].push_back(node);
            }
        }
    }

    /// Layers read rows of their part, if it is known where that is.
    bool rows_fit(const FlowNode& node, const Requantisation& role) const {
        if (role.form != Form::layer) return true;
        if (node.rows.empty()) return false;
        if (!rules_.parts_are_placed) return true;
        const auto& placed = opened_.placement().placed;
        return std::ranges::any_of(placed, [&](const PlacedPart& one) {
            const ParameterPart& part = opened_.parts()[one.part];
            const BlobRange& range = one.range;
            return part.is_layer() && part.op == role.op &&
                   std::ranges::all_of(node.rows, [&](const BlobRange& row) {
                       return row.blob == range.blob && row.offset >= range.offset &&
                              row.offset < range.offset + range.size_bytes;
                   });
        });
    }

    Status narrow() {
        REEF_CHECK(check_candidates("its form and values are those"));
        bool changed = true;
        while (changed) {
            changed = false;
            for (std::size_t node = 0; node < possible_.size(); ++node) {
                if (possible_[node].empty()) continue;
                changed =
                    std::erase_if(possible_[node],
                                  [&](std::size_t role) {
                                      return !reads_fit(node, role) || !rows_are_shared(node, role);
                                  }) > 0 ||
                    changed;
            }
            for (std::size_t node = 0; node < possible_.size(); ++node)
                changed = narrow_sources(node) || changed;
            for (const auto& output : flow_.outputs) changed = narrow_output(output) || changed;
            REEF_CHECK(
                check_candidates("its values, and where its data come from and go to, are those"));
        }
        return {};
    }

    /// Instructions that no role is left for belong to operators that are not known, if there are.
    Status check_candidates(std::string_view what) const {
        for (std::size_t node = 0; node < possible_.size(); ++node) {
            if (copies_[node] || !possible_[node].empty() || may_be_unmodelled(node)) continue;
            return fail(Cause::unsupported, fmt::format("{} of no operator of the model", what),
                        name_of(flow_.nodes[node].at.instruction));
        }
        return {};
    }

    bool may_be_unmodelled(std::size_t node) const {
        return graph_.has_unmodelled() && !copies_[node] && !certain_[node];
    }

    Status check_complete(const Matched& matched) const {
        for (std::size_t role = 0; role < roles_.size(); ++role) {
            const auto has = [&](const std::optional<std::size_t>& one) {
                return one && (*one == role || rules_.alike(*one, role));
            };
            if (!roles_[role].required() || std::ranges::any_of(matched, has)) continue;
            return fail(Cause::unsupported,
                        fmt::format("no instruction is found for operator {}", roles_[role].op));
        }
        return {};
    }

    bool may_compute(std::size_t node, const Producers& producers) const {
        if (producers.unmodelled && may_be_unmodelled(node)) return true;
        return std::ranges::any_of(possible_[node], [&](std::size_t role) {
            return producers.ops.contains(roles_[role].op);
        });
    }

    bool any_may_compute(const FlowSources& sources, const Producers& producers) const {
        if (producers.from_host && sources.from_host) return true;
        return std::ranges::any_of(
            sources.nodes, [&](std::size_t source) { return may_compute(source, producers); });
    }

    /// What a node of that role may read.
    Producers readable(std::size_t role) const {
        Producers all;
        const std::size_t op = roles_[role].op;
        const auto& operands = graph_.operands(op);
        const auto only = roles_[role].operand;
        for (const Producers& operand :
             only ? std::span(operands).subspan(*only, 1) : std::span(operands)) {
            all.ops.insert(operand.ops.begin(), operand.ops.end());
            all.from_host = all.from_host || operand.from_host;
            all.unmodelled = all.unmodelled || operand.unmodelled;
        }
        // Such operators are several instructions, which read each other.
        if (!reads_all_operands(roles_[role])) all.ops.insert(op);
        return all;
    }

    bool reads_fit(std::size_t node, std::size_t role) const {
        const FlowSources& sources = sources_[node];
        const auto& operands = graph_.operands(roles_[role].op);
        const Producers all = readable(role);
        if (sources.from_host && !all.from_host) return false;
        if (!std::ranges::all_of(sources.nodes,
                                 [&](std::size_t source) { return may_compute(source, all); })) {
            return false;
        }
        if (!reads_all_operands(roles_[role])) return any_may_compute(sources, all);
        return std::ranges::all_of(
            operands, [&](const Producers& operand) { return any_may_compute(sources, operand); });
    }

    /// Whoever reads the same rows computes the same operator.
    bool rows_are_shared(std::size_t node, std::size_t role) const {
        if (roles_[role].form != Form::layer) return true;
        const auto may = [&](std::size_t reader) {
            return copies_[reader] ||
                   std::ranges::any_of(possible_[reader], [&](std::size_t other) {
                       return roles_[other].op == roles_[role].op;
                   });
        };
        return std::ranges::all_of(flow_.nodes[node].rows, [&](const BlobRange& row) {
            return std::ranges::all_of(readers_.at({row.blob, row.offset}), may);
        });
    }

    /// What a node reads computes an operator that the node's may read.
    bool narrow_sources(std::size_t reader) {
        if (copies_[reader] || may_be_unmodelled(reader)) return false;
        std::set<std::size_t> ops;
        for (const std::size_t role : possible_[reader]) ops.merge(readable(role).ops);
        return keep(sources_[reader], ops);
    }

    bool narrow_output(const ProgramFlow::Output& output) {
        bool changed = narrow_to(output.sources, graph_.output(output.name));
        const auto by_channels = graph_.output_by_channels(output.name);
        if (by_channels.size() != output.by_channels.size()) return changed;
        for (std::size_t i = 0; i < by_channels.size(); ++i) {
            changed = narrow_to(output.by_channels[i], by_channels[i]) || changed;
        }
        return changed;
    }

    bool narrow_to(const FlowSources& sources, const Producers& producers) {
        if (producers.empty() || producers.unmodelled) return false;
        return keep(through_copies(flow_, sources, copies_), producers.ops);
    }

    bool keep(const FlowSources& sources, const std::set<std::size_t>& ops) {
        bool changed = false;
        for (const std::size_t source : sources.nodes) {
            changed = std::erase_if(
                          possible_[source],
                          [&](std::size_t role) { return !ops.contains(roles_[role].op); }) > 0 ||
                      changed;
        }
        return changed;
    }

    bool all_alike(const std::set<std::size_t>& left) const {
        return std::ranges::all_of(
            left, [&](std::size_t role) { return rules_.alike(*left.begin(), role); });
    }

    /// What depends on nothing that tells it apart comes in the order of the operators.
    Status choose_in_order(Matched& matched) const {
        std::vector<Instruction> instructions;
        std::vector<std::size_t> nodes;
        for (std::size_t node = 0; node < matched.size(); ++node) {
            if (!matched[node]) continue;
            nodes.push_back(node);
            instructions.push_back(flow_.nodes[node].at.instruction);
        }
        std::map<const std::byte*, std::size_t> by_bytes;
        for (const std::size_t node : nodes)
            by_bytes.emplace(flow_.nodes[node].at.instruction.bytes.data(), node);
        const auto fits = [&](const Instruction& one, const Requantisation& role) {
            const auto index = static_cast<std::size_t>(&role - roles_.data());
            return possible_[by_bytes.at(one.bytes.data())].contains(index);
        };
        const auto chosen = REEF_TRY(align_in_order(instructions, roles_, fits, rules_.alike));
        for (std::size_t i = 0; i < nodes.size(); ++i) matched[nodes[i]] = chosen[i];
        return {};
    }

    const CompiledParameters& opened_;
    const ProgramFlow& flow_;
    const OperatorGraph& graph_;
    const std::vector<Requantisation>& roles_;
    const MatchingRules& rules_;
    std::vector<std::set<std::size_t>> possible_;  ///< roles, by node
    std::vector<bool> copies_;                     ///< nodes that only hand on what they read
    std::vector<bool> certain_;         ///< nodes that belong to an operator whose role fits
    std::vector<FlowSources> sources_;  ///< of every node, through copies
    std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> readers_;  ///< of rows
};

}  // namespace

Result<Matched> match_operators(const CompiledParameters& opened, const ProgramFlow& flow,
                                const OperatorGraph& graph,
                                const std::vector<Requantisation>& roles,
                                const MatchingRules& rules) {
    return Matching(opened, flow, graph, roles, rules).run();
}

std::optional<bool> takes_second_first(const ProgramFlow& flow, const OperatorGraph& graph,
                                       const std::vector<Requantisation>& roles,
                                       const Matched& matched, std::size_t node) {
    const std::vector<bool> copies = copies_of(flow);
    const auto& operands = graph.operands(roles[*matched[node]].op);
    if (operands.size() != 2) return std::nullopt;
    const auto comes_from = [&](std::size_t half, const Producers& producers) {
        const FlowSources sources = through_copies(flow, flow.nodes[node].operands[half], copies);
        if (sources.from_host && !producers.from_host) return false;
        return std::ranges::all_of(sources.nodes, [&](std::size_t source) {
            return matched[source] ? producers.ops.contains(roles[*matched[source]].op)
                                   : producers.unmodelled;
        });
    };
    const bool straight = comes_from(0, operands[0]) && comes_from(1, operands[1]);
    const bool turned = comes_from(0, operands[1]) && comes_from(1, operands[0]);
    if (straight == turned) return std::nullopt;
    return turned;
}

}  // namespace reef::edgetpu
