#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "reef_spec/edgetpu_isa.h"
#include "reef_spec/edgetpu_machine.h"
#include "synchronisation.h"
#include "tile_events.h"

namespace reef::edgetpu::check {
namespace {

constexpr unsigned columns = spec::grid_side;

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t unit) {
    return value / unit + (value % unit != 0);
}

/// One direction of mesh transfer: where the words of a tile go.
struct Direction {
    unsigned op;
    std::string_view name;
    int step;  ///< from a tile's number to that of the receiver
};
constexpr Direction directions[] = {
    {spec::op::mesh_south, "south", static_cast<int>(columns)},
    {spec::op::mesh_west, "west", -1},
    {spec::op::mesh_north, "north", -static_cast<int>(columns)},
    {spec::op::mesh_east, "east", 1},
};

/// The tile that receives, or nothing at the edge of the grid.
std::optional<unsigned> receiver(unsigned tile, const Direction& direction) {
    const auto target = static_cast<int>(tile) + direction.step;
    if (target < 0 || target >= static_cast<int>(tiles_per_chip)) return std::nullopt;
    const bool sideways = direction.step == 1 || direction.step == -1;
    const auto row = [](int t) { return t / static_cast<int>(columns); };
    if (sideways && row(target) != row(static_cast<int>(tile))) return std::nullopt;
    return static_cast<unsigned>(target);
}

/// Which of its two sides a mesh instruction uses: a nest that moves, or a fill. A transfer of one
/// word has no such nest; it receives when its destination is not 0 (a guess that makes the words
/// of all known programs add up).
struct MeshSides {
    bool sends = false;
    bool receives = false;
};
MeshSides sides_of(const Instruction& mesh) {
    namespace f = spec::field::mesh_south;
    const auto bits = [&](unsigned field) { return mesh.bits(spec::mesh_south_fields[field]); };
    const bool fill = bits(f::fill) != 0;
    const bool sends = bits(f::src_mask) != 0 || nest_of(mesh, "src").visits() > 1;
    const bool writes = fill || bits(f::dst_mask) != 0 || nest_of(mesh, "dst").visits() > 1;
    if (sends || writes) return {sends, writes && !fill};
    const bool receives = bits(f::dst_base) != 0;
    return {!receives, receives};
}

/// What one place sends to another and what that one receives, in rows, words or units.
class Flow {
  public:
    void send(const Issued& issued, std::uint64_t amount) { add(sent_, issued, amount); }
    void receive(const Issued& issued, std::uint64_t amount) { add(received_, issued, amount); }

    struct Imbalance {
        const Issued* issued;  ///< the first that has no counterpart
        std::uint64_t sent;
        std::uint64_t received;
    };
    [[nodiscard]] std::optional<Imbalance> imbalance() const {
        if (sent_.total == received_.total) return std::nullopt;
        const bool more_sent = sent_.total > received_.total;
        const auto& more = more_sent ? sent_ : received_;
        const auto less = std::min(sent_.total, received_.total);
        const auto first = std::ranges::upper_bound(more.parts, less, {}, &Part::behind);
        return Imbalance{first->issued, sent_.total, received_.total};
    }
    void clear() { *this = {}; }

  private:
    struct Part {
        const Issued* issued;
        std::uint64_t behind;  ///< amount with this part and those before
    };
    struct Side {
        std::vector<Part> parts;
        std::uint64_t total = 0;
    };
    static void add(Side& side, const Issued& issued, std::uint64_t amount) {
        constexpr std::uint64_t most = std::uint64_t{1} << 40;
        side.total += std::min(amount, most);
        side.parts.push_back({&issued, side.total});
    }
    Side sent_;
    Side received_;
};

class TrafficChecker {
  public:
    std::vector<ProgramFault> run(const IssueOrder& order) {
        for (const auto& issued : order.instructions) {
            const auto& instruction = issued.instruction;
            if (is(instruction, spec::op::sync)) sync(issued);
            if (is(instruction, spec::op::ring_push)) push(issued);
            if (is(instruction, spec::op::ring_send)) send(issued);
            if (is(instruction, spec::op::ring_receive_a)) receive(issued, 0);
            if (is(instruction, spec::op::ring_receive_b)) receive(issued, 1);
            for (std::size_t d = 0; d < std::size(directions); ++d)
                if (is(instruction, directions[d].op)) mesh(issued, d);
        }
        compare_rows(0, "the end");
        compare_rows(1, "the end");
        compare_mesh();
        return std::move(faults_);
    }

  private:
    template <typename... Args>
    void fault(const Issued& issued, fmt::format_string<Args...> format, Args&&... args) {
        faults_.push_back({issued.chunk, issued.instruction.word,
                           fmt::format(format, std::forward<Args>(args)...)});
    }

    void push(const Issued& issued) {
        namespace f = spec::field::ring_push;
        const auto& push = issued.instruction;
        const auto bits = [&](unsigned field) { return push.bits(spec::ring_push_fields[field]); };
        static constexpr std::uint64_t unit_bytes[] = {
            spec::parameter_unit_bytes, spec::activation_unit_bytes, spec::relay_unit_bytes,
            spec::relay_unit_bytes};
        const auto bytes =
            saturating_product(nest_of(push, "src").visits(), unit_bytes[bits(f::source)]);
        const auto rows = rounded_up(bytes, word_bytes * (bits(f::message) + 1));
        for (unsigned t = 0; t < tiles_per_chip; ++t)
            if (bits(f::to_tiles) >> t & 1) rows_[0][t].send(issued, rows);
    }

    void send(const Issued& issued) {
        namespace f = spec::field::ring_send;
        const auto& send = issued.instruction;
        const auto bits = [&](unsigned field) { return send.bits(spec::ring_send_fields[field]); };
        const auto rows = nest_of(send, "src").visits();
        const auto senders = static_cast<unsigned>(std::popcount(issued.tiles));
        for (unsigned t = 0; t < tiles_per_chip; ++t)
            if (bits(f::to_tiles) >> t & 1)
                rows_[bits(f::ring_b)][t].send(issued, saturating_product(rows, senders));
    }

    void receive(const Issued& issued, unsigned ring) {
        namespace f = spec::field::ring_receive_a;
        const auto& receive = issued.instruction;
        const auto bits = [&](unsigned field) {
            return receive.bits(spec::ring_receive_a_fields[field]);
        };
        const auto nest = nest_of(receive, "dst");
        auto rows = nest.visits();
        if (bits(f::head_enable) != 0) {
            const auto level = static_cast<unsigned>(bits(f::head_level));
            rows += bits(f::head_rows) * (level == 0 ? 1 : nest.from(level));
        }
        for (unsigned t = 0; t < tiles_per_chip; ++t)
            if (issued.tiles >> t & 1) rows_[ring][t].receive(issued, rows);
    }

    void sync(const Issued& issued) {
        const auto set =
            issued.instruction.bits(spec::sync_fields[spec::field::sync::reset_counters]);
        for (unsigned ring = 0; ring < 2; ++ring)
            if (set >> (scalar_producer_a + ring) & 1)
                compare_rows(ring,
                             fmt::format("the sync at word {:#06x}", issued.instruction.word));
    }

    /// The rings are empty whenever the count of messages begins anew.
    void compare_rows(unsigned ring, const std::string& before) {
        for (unsigned t = 0; t < tiles_per_chip; ++t) {
            auto& flow = rows_[ring][t];
            if (const auto wrong = flow.imbalance())
                fault(*wrong->issued,
                      "tile {}: {} rows are sent to it on ring {}, {} are received before {}; the "
                      "first without "
                      "counterpart belong to this {}",
                      t, wrong->sent, "AB"[ring], wrong -> received, before,
                      wrong -> issued -> instruction.info->name);
            flow.clear();
        }
    }

    void mesh(const Issued& issued, std::size_t direction) {
        const auto& mesh = issued.instruction;
        const auto sides = sides_of(mesh);
        for (unsigned t = 0; t < tiles_per_chip; ++t) {
            if ((issued.tiles >> t & 1) == 0) continue;
            if (sides.receives) words_[direction][t].receive(issued, nest_of(mesh, "dst").visits());
            if (!sides.sends) continue;
            const auto target = receiver(t, directions[direction]);
            if (target)
                words_[direction][*target].send(issued, nest_of(mesh, "src").visits());
            else
                fault(issued, "tile {}: {} sends beyond the edge of the grid", t, mesh.info->name);
        }
    }

    void compare_mesh() {
        for (std::size_t d = 0; d < std::size(directions); ++d) {
            for (unsigned t = 0; t < tiles_per_chip; ++t) {
                if (const auto wrong = words_[d][t].imbalance())
                    fault(*wrong->issued,
                          "tile {}: {} words are sent {} to it, {} are received; the first without "
                          "counterpart "
                          "belong to this {}",
                          t, wrong->sent, directions[d].name, wrong->received,
                          wrong->issued->instruction.info->name);
            }
        }
    }

    std::array<std::array<Flow, tiles_per_chip>, 2> rows_;
    std::array<std::array<Flow, tiles_per_chip>, std::size(directions)> words_;
    std::vector<ProgramFault> faults_;
};

}  // namespace

std::vector<ProgramFault> check_traffic(const IssueOrder& order) {
    return TrafficChecker().run(order);
}

}  // namespace reef::edgetpu::check
