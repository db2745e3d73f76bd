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
    std::string_view name;
    int step;  ///< from a tile's number to that of the receiver
};
/// By program::Direction.
constexpr Direction directions[] = {
    {"south", static_cast<int>(columns)},
    {"west", -1},
    {"north", -static_cast<int>(columns)},
    {"east", 1},
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
MeshSides sides_of(const program::Mesh& mesh) {
    const bool sends = mesh.src.mask != 0 || mesh.src.visits() > 1;
    const bool writes = mesh.fills || mesh.dst.mask != 0 || mesh.dst.visits() > 1;
    if (sends || writes) return {sends, writes && !mesh.fills};
    const bool receives = mesh.dst.base != 0;
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
            std::visit(
                [&](const auto& operation) {
                    if constexpr (requires { step(issued, operation); }) step(issued, operation);
                },
                *issued.operation);
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

    void step(const Issued& issued, const program::RingPush& push) {
        static constexpr std::uint64_t unit_bytes[] = {
            spec::parameter_unit_bytes, spec::activation_unit_bytes, spec::relay_unit_bytes,
            spec::relay_unit_bytes};
        const auto bytes = program::saturating_product(
            push.src.visits(), unit_bytes[static_cast<unsigned>(push.fifo)]);
        const auto rows = rounded_up(bytes, word_bytes * push.message_words);
        for (unsigned t = 0; t < tiles_per_chip; ++t)
            if (push.to_tiles >> t & 1) rows_[0][t].send(issued, rows);
    }

    void step(const Issued& issued, const program::RingSend& send) {
        const auto rows = send.src.visits();
        const auto senders = static_cast<unsigned>(std::popcount(issued.tiles));
        for (unsigned t = 0; t < tiles_per_chip; ++t)
            if (send.to_tiles >> t & 1)
                rows_[static_cast<unsigned>(send.ring)][t].send(
                    issued, program::saturating_product(rows, senders));
    }

    void step(const Issued& issued, const program::RingReceive& receive) {
        const auto ring = static_cast<unsigned>(receive.ring);
        const auto& head = receive.head;
        auto rows = receive.dst.visits();
        // A head of level 0 comes in front of each pass of dimension 0, as one of level 1.
        if (head.enabled) rows += head.rows * receive.dst.passes_from(std::max(head.level, 1U));
        for (unsigned t = 0; t < tiles_per_chip; ++t)
            if (issued.tiles >> t & 1) rows_[ring][t].receive(issued, rows);
    }

    void step(const Issued& issued, const program::Sync& sync) {
        for (unsigned ring = 0; ring < 2; ++ring)
            if (sync.reset_counters >> (scalar_producer_a + ring) & 1)
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

    void step(const Issued& issued, const program::Mesh& mesh) {
        const auto direction = static_cast<std::size_t>(mesh.to);
        const auto sides = sides_of(mesh);
        for (unsigned t = 0; t < tiles_per_chip; ++t) {
            if ((issued.tiles >> t & 1) == 0) continue;
            if (sides.receives) words_[direction][t].receive(issued, mesh.dst.visits());
            if (!sides.sends) continue;
            const auto target = receiver(t, directions[direction]);
            if (target)
                words_[direction][*target].send(issued, mesh.src.visits());
            else
                fault(issued, "tile {}: {} sends beyond the edge of the grid", t,
                      issued.instruction.info->name);
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
