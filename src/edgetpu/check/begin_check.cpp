#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reef_spec/edgetpu_isa.h"
#include "synchronisation.h"
#include "tile_events.h"

namespace reef::edgetpu::check {
namespace {

constexpr unsigned first_in = number_of("MESH_NORTH_IN", spec::tile_counter_values);
constexpr unsigned last_in = number_of("MESH_WEST_IN", spec::tile_counter_values);

/// What must have begun before what, in one tile: an instruction begins when the waits of its first
/// passes are satisfied and the one before it on its engine is done. A mesh instruction has two
/// sides that begin one by one: 0 sends, 1 receives.
class TileOrder {
  public:
    TileOrder(const IssueOrder& order, unsigned tile) : order_(order), tile_(tile) {}

    std::vector<ProgramFault> run() {
        for (const auto& issued : order_.instructions) {
            const auto& instruction = issued.instruction;
            if (instruction.info->space == Space::scalar || (issued.tiles >> tile_ & 1) == 0)
                continue;
            if (const auto* f = std::get_if<program::Fence>(issued.operation))
                fence(*f);
            else
                work(issued);
        }
        settle(~std::uint64_t{0});
        find_circles();
        return std::move(faults_);
    }

  private:
    struct Node {
        const Issued* issued;
        std::vector<std::size_t> needs;
        enum class State : std::uint8_t { unseen, open, done } state = State::unseen;
    };
    struct Counted {
        std::int64_t behind;  ///< value with this instruction's events
        std::size_t node;
    };
    struct Pending {
        std::size_t node;
        unsigned counter;
        std::int64_t first;
        unsigned engine;
    };

    void work(const Issued& issued) {
        const auto& operation = *issued.operation;
        const bool mesh = std::holds_alternative<program::Mesh>(operation);
        const auto engine = engine_of(operation);
        const auto node = nodes_.size();
        for (std::size_t side = 0; side < 2; ++side) nodes_.push_back({&issued, {}});
        if (!mesh) nodes_[node + 1].needs.push_back(node);
        if (const auto last = last_.find(engine); last != last_.end()) {
            for (const auto side : {node, node + 1}) {
                nodes_[side].needs.push_back(last->second);
                nodes_[side].needs.push_back(last->second + 1);
            }
        }
        last_[engine] = node;
        for (const auto& demand : demands_of(operation))
            if (demand.counter < tile_producer_a)
                pending_.push_back({node + (mesh && demand.destination ? 1 : 0), demand.counter,
                                    demand.first, engine});
        for (const auto& production : productions_of(operation)) {
            const auto c = production.counter;
            if (c >= tile_producer_a) continue;
            const bool receives = c >= first_in && c <= last_in;
            values_[c] += static_cast<std::int64_t>(
                std::min<std::uint64_t>(production.events, std::uint64_t{1} << 40));
            counted_[c].push_back({values_[c], node + (receives ? 1 : 0)});
        }
    }

    void fence(const program::Fence& fence) {
        settle(fence.engines);
        const auto set = fence.reset_counters;
        for (unsigned c = 0; c < tile_producer_a; ++c) {
            if ((set >> c & 1) == 0) continue;
            values_[c] = base_[c] = fence.reset_value;
            counted_[c].clear();
        }
    }

    /// Of the events that a first pass needs, the last belongs to an instruction that has begun.
    void settle(std::uint64_t engines) {
        std::erase_if(pending_, [&](const Pending& p) {
            if ((engines >> p.engine & 1) == 0) return false;
            const auto& counted = counted_[p.counter];
            const auto found = std::ranges::lower_bound(counted, p.first, {}, &Counted::behind);
            if (p.first > base_[p.counter] && found != counted.end())
                nodes_[p.node].needs.push_back(found->node);
            return true;
        });
    }

    void find_circles() {
        struct Step {
            std::size_t node;
            std::size_t next;
        };
        std::vector<Step> path;
        for (std::size_t start = 0; start < nodes_.size(); ++start) {
            if (nodes_[start].state != Node::State::unseen) continue;
            path.push_back({start, 0});
            nodes_[start].state = Node::State::open;
            while (!path.empty()) {
                auto& step = path.back();
                auto& node = nodes_[step.node];
                if (step.next == node.needs.size()) {
                    node.state = Node::State::done;
                    path.pop_back();
                    continue;
                }
                const auto needed = node.needs[step.next++];
                if (nodes_[needed].state == Node::State::open) report(step.node, needed);
                if (nodes_[needed].state != Node::State::unseen) continue;
                nodes_[needed].state = Node::State::open;
                path.push_back({needed, 0});
            }
        }
    }

    void report(std::size_t waiting, std::size_t needed) {
        const auto& a = *nodes_[waiting].issued;
        const auto& b = *nodes_[needed].issued;
        faults_.push_back(
            {a.chunk, a.instruction.word,
             fmt::format("tile {}: {} cannot begin before {} at word {:#06x}, which needs it to "
                         "have begun",
                         tile_, a.instruction.info->name, b.instruction.info->name,
                         b.instruction.word)});
    }

    const IssueOrder& order_;
    unsigned tile_;
    std::vector<Node> nodes_;
    std::map<unsigned, std::size_t> last_;  ///< node of each engine's last instruction
    std::vector<Pending> pending_;
    std::array<std::vector<Counted>, tile_counters> counted_;
    std::array<std::int64_t, tile_counters> values_{};
    std::array<std::int64_t, tile_counters> base_{};
    std::vector<ProgramFault> faults_;
};

}  // namespace

std::vector<ProgramFault> check_beginnings(const IssueOrder& order) {
    std::vector<ProgramFault> faults;
    for (unsigned t = 0; t < tiles_per_chip; ++t)
        std::ranges::move(TileOrder(order, t).run(), std::back_inserter(faults));
    return faults;
}

}  // namespace reef::edgetpu::check
