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
            if (is(issued.instruction, spec::op::sync)) {
                sync(issued);
            } else if (issued.instruction.info->space == Space::scalar) {
                scalar(issued);
            } else if (is(issued.instruction, spec::op::ring_send)) {
                send(issued);
            } else if (is(issued.instruction, spec::op::fence)) {
                fence(issued.instruction);
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
        for (const auto& demand : demands_of(issued.instruction)) {
            if (demand.counter >= scalar_counters)
                fault(issued, "{} waits for scalar counter {}, of which nothing is known",
                      issued.instruction.info->name, demand.counter);
            else
                pending_.push_back({&issued, demand});
        }
        for (const auto& production : productions_of(issued.instruction)) {
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

    void fence(const Instruction& fence) {
        const auto set = fence.bits(spec::fence_fields[spec::field::fence::reset_counters]);
        const auto value = fence.value(spec::fence_fields[spec::field::fence::reset_value]);
        for (unsigned ring = 0; ring < 2; ++ring)
            if (set >> (tile_producer_a + ring) & 1) turns_[ring] = value;
    }

    /// Senders take turns: each waits until as many messages were sent as the ones before it send.
    void send(const Issued& issued) {
        const auto& info = *issued.instruction.info;
        bool waits[2] = {false, false};
        for (const auto& demand : demands_of(issued.instruction)) {
            if (demand.counter != tile_producer_a && demand.counter != tile_producer_b) continue;
            const unsigned ring = demand.counter - tile_producer_a;
            waits[ring] = true;
            const auto due = turn(issued.instruction, ring);
            if (demand.first != due)
                fault(issued, "{}: wait{} of {} takes turn {} on ring {}, {} is due",
                      tiles_text(issued.tiles), demand.wait, info.name, demand.first, "AB"[ring],
                      due);
        }
        for (const auto& production : productions_of(issued.instruction)) {
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
    [[nodiscard]] std::int64_t turn(const Instruction& send, unsigned ring) const {
        const bool to_ring_b =
            send.bits(spec::ring_send_fields[spec::field::ring_send::ring_b]) != 0;
        return ring == 0 && to_ring_b ? relay_turn_ - 1 : turns_[ring];
    }

    void sync(const Issued& issued) {
        const auto& sync = issued.instruction;
        const auto bits = [&](unsigned f) { return sync.bits(spec::sync_fields[f]); };
        const auto expected = bits(spec::field::sync::expected_counters);
        const auto set = bits(spec::field::sync::reset_counters);
        for (unsigned c = 0; c < scalar_counters; ++c) {
            if (expected >> c & 1) {
                const auto wanted = bits(spec::field::sync::expected0 + c);
                // The field has 16 bits, and so has what it is compared with.
                const auto reached = static_cast<std::uint16_t>(counters_[c]);
                if (wanted != reached)
                    fault(issued, "sync expects {} {}, {} come before it",
                          spec::scalar_counter_values[c].name, wanted, counters_[c]);
            }
            if ((set >> c & 1) == 0) continue;
            settle(c, fmt::format("before the sync at word {:#06x}", sync.word));
            counters_[c] = sync.value(spec::sync_fields[spec::field::sync::reset_value]);
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
