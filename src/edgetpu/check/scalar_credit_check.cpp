#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "edgetpu/isa/names.h"
#include "reef_spec/edgetpu_isa.h"
#include "synchronisation.h"
#include "tile_events.h"

namespace reef::edgetpu::check {
namespace {

class ScalarCreditChecker {
  public:
    std::vector<ProgramFault> run(const IssueOrder& order) {
        for (const auto& issued : order.instructions) {
            if (const auto* s = std::get_if<program::Sync>(issued.operation)) {
                sync(issued, *s);
            } else if (issued.instruction.info->space == Space::scalar) {
                scalar(issued);
            } else if (const auto* r = std::get_if<program::RingSend>(issued.operation)) {
                send(issued, *r);
            } else if (const auto* f = std::get_if<program::Fence>(issued.operation)) {
                fence(*f);
            }
        }
        for (unsigned c = 0; c < scalar_counters; ++c) settle(c, "before the end");
        return std::move(faults_);
    }

  private:
    struct Pending {
        const Issued* issued;
        Demand demand;
    };

    template <typename... Args>
    void fault(const Issued& issued, fmt::format_string<Args...> format, Args&&... args) {
        faults_.push_back({issued.chunk, issued.instruction.word,
                           fmt::format(format, std::forward<Args>(args)...)});
    }

    void scalar(const Issued& issued) {
        for (const auto& demand : demands_of(*issued.operation)) {
            if (demand.counter >= scalar_counters)
                fault(issued, "{} waits for scalar counter {}, of which nothing is known",
                      issued.instruction.info->name, demand.counter);
            else
                pending_.push_back({&issued, demand});
        }
        for (const auto& production : productions_of(*issued.operation)) {
            const auto events = counted(production);
            counters_[production.counter] += events;
            if (production.counter != scalar_producer_a) continue;
            relay_turn_ = turns_[0];
            turns_[0] += events;
        }
    }

    static std::int64_t counted(const Production& production) {
        return static_cast<std::int64_t>(
            std::min<std::uint64_t>(production.events, std::uint64_t{1} << 40));
    }

    void fence(const program::Fence& fence) {
        for (unsigned ring = 0; ring < 2; ++ring)
            if (fence.reset_counters >> (tile_producer_a + ring) & 1)
                turns_[ring] = fence.reset_value;
    }

    /// Senders take turns: each waits until as many messages were sent as the ones before it send.
    void send(const Issued& issued, const program::RingSend& send) {
        const auto& info = *issued.instruction.info;
        bool waits[2] = {false, false};
        for (const auto& demand : demands_of(*issued.operation)) {
            if (demand.counter != tile_producer_a && demand.counter != tile_producer_b) continue;
            const unsigned ring = demand.counter - tile_producer_a;
            waits[ring] = true;
            const auto due = turn(send, ring);
            if (demand.first != due)
                fault(issued, "{}: wait{} of {} takes turn {} on ring {}, {} is due",
                      tiles_text(issued.tiles), demand.wait, info.name, demand.first, "AB"[ring],
                      due);
        }
        for (const auto& production : productions_of(*issued.operation)) {
            if (production.counter != tile_producer_a && production.counter != tile_producer_b)
                continue;
            const unsigned ring = production.counter - tile_producer_a;
            if (!waits[ring])
                fault(issued, "{}: {} counts on ring {} without waiting for its turn",
                      tiles_text(issued.tiles), info.name, "AB"[ring]);
            const auto events = counted(production) * std::popcount(issued.tiles);
            counters_[scalar_producer_a + ring] += events;
            turns_[ring] += events;
        }
    }

    /// What a relay sends on ring B goes on over ring A as the ring_push right before it: it may
    /// begin one message before that one's turn.
    [[nodiscard]] std::int64_t turn(const program::RingSend& send, unsigned ring) const {
        return ring == 0 && send.ring == program::Ring::b ? relay_turn_ - 1 : turns_[ring];
    }

    void sync(const Issued& issued, const program::Sync& sync) {
        for (unsigned c = 0; c < scalar_counters; ++c) {
            if (sync.expected_counters >> c & 1) {
                const auto wanted = sync.expected[c];
                // The field has 16 bits, and so has what it is compared with.
                const auto reached = static_cast<std::uint16_t>(counters_[c]);
                if (wanted != reached)
                    fault(issued, "sync expects {} {}, {} come before it",
                          spec::scalar_counter_values[c].name, wanted, counters_[c]);
            }
            if ((sync.reset_counters >> c & 1) == 0) continue;
            settle(c, fmt::format("before the sync at word {:#06x}", issued.instruction.word));
            counters_[c] = sync.reset_value;
        }
    }

    void settle(unsigned counter, const std::string& before) {
        std::erase_if(pending_, [&](const Pending& p) {
            if (p.demand.counter != counter) return false;
            if (counters_[counter] < p.demand.largest)
                fault(*p.issued, "wait{} of {} needs {} {}, {} come {}", p.demand.wait,
                      p.issued->instruction.info->name, spec::scalar_counter_values[counter].name,
                      p.demand.largest, counters_[counter], before);
            return true;
        });
    }

    std::array<std::int64_t, scalar_counters> counters_{};
    std::array<std::int64_t, 2> turns_{};  ///< as the tiles count RING_PRODUCER_A and _B
    std::int64_t relay_turn_ = 0;          ///< of ring A before the last relaying ring_push
    std::vector<Pending> pending_;
    std::vector<ProgramFault> faults_;
};

}  // namespace

std::vector<ProgramFault> check_scalar_credits(const IssueOrder& order) {
    return ScalarCreditChecker().run(order);
}

}  // namespace reef::edgetpu::check
