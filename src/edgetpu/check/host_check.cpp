#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <map>

#include "reef_spec/edgetpu_isa.h"
#include "reef_spec/edgetpu_machine.h"
#include "synchronisation.h"
#include "tile_events.h"

namespace reef::edgetpu::check {
namespace {

using program::saturating_product;

constexpr unsigned narrow_to_wide = number_of("NARROW_TO_WIDE", spec::tile_counter_values);
constexpr std::uint64_t host_unit = spec::activation_unit_bytes;
constexpr std::uint64_t row_words = spec::row_bytes / word_bytes;
/// What is counted of one instruction: more than any tile has rows, so that no error is missed.
constexpr std::uint64_t most_rows = 1 << 13;
static_assert(most_rows > spec::wide_rows);
/// On their way to the host between two resets of the rings' counters: 16 MiB.
constexpr std::uint64_t most_sent_rows = 1 << 16;

/// Words of each row that a narrow_to_wide writes: a row ends when the source dimensions below
/// row_level have passed, and after 64 words. At most `most_rows` of them.
std::vector<std::uint32_t> written_rows(const program::NarrowToWide& copy) {
    const auto& nest = copy.src;
    const auto level = copy.row_level;
    std::vector<std::uint32_t> out;
    if (level == 0) {
        out.assign(std::min(nest.visits(), most_rows), 1);
        return out;
    }
    const auto groups = nest.passes_from(level);
    for (std::uint64_t g = 0; g < groups && out.size() < most_rows; ++g) {
        std::uint64_t words = std::min(nest.visits_of_pass(level, g), most_rows * row_words);
        for (; words > 0 && out.size() < most_rows; words -= std::min(words, row_words))
            out.push_back(static_cast<std::uint32_t>(std::min(words, row_words)));
    }
    return out;
}

class HostChecker {
  public:
    explicit HostChecker(const IssueOrder& order) : order_(order) {}

    std::vector<ProgramFault> run() {
        for (const auto& issued : order_.instructions) {
            const auto& operation = *issued.operation;
            if (const auto* i = std::get_if<program::Infeed>(&operation)) infeed(issued, *i);
            if (const auto* p = std::get_if<program::RingPush>(&operation)) push(issued, *p);
            if (const auto* c = std::get_if<program::NarrowToWide>(&operation)) copy(issued, *c);
            if (const auto* f = std::get_if<program::Fence>(&operation)) fence(issued, *f);
        }
        if (order_.instructions.empty()) return {};
        const auto& last = order_.instructions.back();
        finish(parameters_, last);
        finish(activations_, last);
        counts_ = {};
        for (const auto& issued : order_.instructions) {
            const auto& operation = *issued.operation;
            if (const auto* r = std::get_if<program::RingSend>(&operation)) send(issued, *r);
            if (std::holds_alternative<program::RingPop>(operation)) pops_.push_back(&issued);
            if (const auto* s = std::get_if<program::Sync>(&operation)) sync(issued, *s);
            if (const auto* f = std::get_if<program::Fence>(&operation)) fence(issued, *f);
        }
        deliver("the end");
        totals(last);
        return std::move(faults_);
    }

  private:
    template <typename... Args>
    void fault(const Issued& issued, fmt::format_string<Args...> format, Args&&... args) {
        faults_.push_back({issued.chunk, issued.instruction.word,
                           fmt::format(format, std::forward<Args>(args)...)});
    }

    /// A FIFO of the scalar core: the units of one infeed, and how many of them are sent on.
    struct Fifo {
        std::uint64_t unit_bytes;
        std::uint64_t size;       ///< units of the FIFO, after which addresses begin anew
        std::uint64_t all = 0;    ///< of all infeeds
        std::uint64_t first = 0;  ///< address of the current infeed's first unit
        std::uint64_t units = 0;
        std::uint64_t position = 0;
    };

    void infeed(const Issued& issued, const program::Infeed& infeed) {
        auto& fifo = infeed.activations() ? activations_ : parameters_;
        finish(fifo, issued);
        fifo.units = infeed.dst.visits();
        fifo.all += fifo.units;
        fifo.first = static_cast<std::uint64_t>(infeed.dst.base);
        fifo.position = 0;
    }

    void finish(const Fifo& fifo, const Issued& before) {
        if (fifo.position != fifo.units)
            fault(before, "{} units of {} bytes go to tiles before it, {} came from the host",
                  fifo.position, fifo.unit_bytes, fifo.units);
    }

    /// Pieces follow each other; one may begin with the unit that the one before ended with.
    void push(const Issued& issued, const program::RingPush& push) {
        if (push.fifo >= spec::Fifo::relay_) return;  // the relay's units come from ring_pop
        auto& fifo = push.fifo == spec::Fifo::parameters_ ? parameters_ : activations_;
        const auto ring =
            push.src.rotates() ? static_cast<std::uint64_t>(push.src.rotate_size) * 2 : fifo.size;
        const auto base = static_cast<std::uint64_t>(push.src.base);
        const auto wrapped = [&](std::uint64_t position) { return (fifo.first + position) % ring; };
        const bool shares = base != wrapped(fifo.position) && fifo.position > 0 &&
                            base == wrapped(fifo.position - 1);
        if (base != wrapped(fifo.position) && !shares)
            fault(issued, "ring_push begins at unit {:#x} of its FIFO, {:#x} is due", base,
                  wrapped(fifo.position));
        fifo.position += push.src.visits() - (shares ? 1 : 0);
    }

    // -- Rows to the scalar core ------------------------------------------------------------------

    /// Counts of NARROW_TO_WIDE in a tile: how often it was set, and how far it got since.
    struct Count {
        std::uint64_t epoch = 0;
        std::int64_t value = 0;
    };
    struct Place {
        unsigned tile;
        std::uint64_t row;
        std::uint64_t epoch;
        auto operator<=>(const Place&) const = default;
    };
    struct Copy {
        const Issued* issued;
        std::int64_t before;  ///< NARROW_TO_WIDE in front of it ...
        std::int64_t behind;  ///< ... and behind it
    };

    void fence(const Issued& issued, const program::Fence& fence) {
        if ((fence.reset_counters >> narrow_to_wide & 1) == 0) return;
        for (unsigned t = 0; t < tiles_per_chip; ++t)
            if (issued.tiles >> t & 1) counts_[t] = {counts_[t].epoch + 1, fence.reset_value};
    }

    void copy(const Issued& issued, const program::NarrowToWide& copy) {
        const auto row = static_cast<std::uint64_t>(copy.dst.base);
        std::int64_t events = 0;
        for (const auto& production : productions_of(*issued.operation))
            events = static_cast<std::int64_t>(std::min(production.events, most_rows));
        for (unsigned t = 0; t < tiles_per_chip; ++t) {
            if ((issued.tiles >> t & 1) == 0) continue;
            auto& count = counts_[t];
            copies_[{t, row, count.epoch}].push_back({&issued, count.value, count.value + events});
            count.value += events;
        }
    }

    /// The narrow_to_wide that a sender waits for: the one that brings NARROW_TO_WIDE where its
    /// wait wants it, or the only one that fills its rows.
    const Issued* filling(const Issued& send, unsigned tile, std::uint64_t row) const {
        const auto found = copies_.find({tile, row, counts_[tile].epoch});
        if (found == copies_.end()) return nullptr;
        for (const auto& demand : demands_of(*send.operation)) {
            if (demand.counter != narrow_to_wide) continue;
            for (const auto& copy : found->second)
                if (copy.before < demand.first && demand.first <= copy.behind) return copy.issued;
        }
        return found->second.size() == 1 ? found->second.front().issued : nullptr;
    }

    void send(const Issued& issued, const program::RingSend& send) {
        if (!send.to_scalar) return;
        const auto first = static_cast<std::uint64_t>(send.src.base);
        const auto rows = std::min(send.src.visits(), most_rows);
        for (unsigned t = 0; t < tiles_per_chip; ++t) {
            if ((issued.tiles >> t & 1) == 0) continue;
            if (send.ring == program::Ring::b) {
                relayed_.push_back({&issued, saturating_product(rows, row_words)});
                continue;
            }
            const auto* copy = filling(issued, t, first);
            if (!copy) {
                fault(issued,
                      "tile {}: no narrow_to_wide fills row {:#x}, which goes to the scalar core",
                      t, first);
                continue;
            }
            if (rows_.size() > most_sent_rows) {
                fault(issued, "more than {} rows go to the scalar core at a time", most_sent_rows);
                rows_.clear();
            }
            const auto words = written_rows(std::get<program::NarrowToWide>(*copy->operation));
            if (words.size() != rows)
                fault(issued,
                      "tile {}: ring_send takes {} rows, narrow_to_wide at word {:#06x} writes {}",
                      t, rows, copy->instruction.word, words.size());
            for (std::size_t r = 0; r < std::min<std::size_t>(rows, words.size()); ++r)
                rows_.push_back({&issued, words[r]});
        }
    }

    void sync(const Issued& issued, const program::Sync& sync) {
        if (sync.reset_counters >> scalar_producer_a & 1)
            deliver(fmt::format("the sync at word {:#06x}", issued.instruction.word));
    }

    /// Rows go to the ring_pops in order; each takes whole rows, padded to its unit.
    void deliver(const std::string& before) {
        for (const auto* issued : pops_) {
            const auto& pop = std::get<program::RingPop>(*issued->operation);
            const auto units = pop.dst.visits();
            const bool to_host = pop.to_host;
            if (to_host) host_bytes_ += saturating_product(units, host_unit);
            // What is counted, to be pushed on, is a relay's; the scalar core's own words are not.
            auto& source = !to_host && pop.outfeed.enabled ? relayed_ : rows_;
            const auto unit_words = to_host ? host_unit / word_bytes : 1;
            std::uint64_t got = 0;
            while (got < units && !source.empty()) {
                got += (source.front().words + unit_words - 1) / unit_words;
                source.pop_front();
            }
            if (got != units)
                fault(*issued, "ring_pop takes {} units, the rows sent to it before {} hold {}",
                      units, before, got);
        }
        for (auto* left : {&rows_, &relayed_}) {
            if (!left->empty())
                fault(*left->front().sender,
                      "{} rows go to the scalar core that no ring_pop takes before {}",
                      left->size(), before);
            left->clear();
        }
        pops_.clear();
    }

    void totals(const Issued& last) {
        const auto compare = [&](std::string_view what, std::uint64_t dma, std::string_view with,
                                 std::uint64_t moved) {
            if (dma != moved)
                fault(last, "the {} transfers of the program have {} bytes, {} {}", what, dma, with,
                      moved);
        };
        const auto bytes = [](const Fifo& fifo) {
            return saturating_product(fifo.all, fifo.unit_bytes);
        };
        compare("input", order_.bytes_of(Tag::input_activations), "infeed", bytes(activations_));
        compare("parameter", order_.bytes_of(Tag::parameters), "infeed", bytes(parameters_));
        compare("output", order_.bytes_of(Tag::output_activations), "ring_pop and bundles",
                host_bytes_ + order_.words_to_host * word_bytes);
    }

    struct Row {
        const Issued* sender;
        std::uint64_t words;
    };

    const IssueOrder& order_;
    std::map<Place, std::vector<Copy>> copies_;
    std::array<Count, tiles_per_chip> counts_{};
    std::vector<const Issued*> pops_;
    std::deque<Row> rows_;
    std::deque<Row> relayed_;
    Fifo parameters_{spec::parameter_unit_bytes, spec::parameter_fifo_units};
    Fifo activations_{spec::activation_unit_bytes, spec::activation_fifo_units};
    std::uint64_t host_bytes_ = 0;
    std::vector<ProgramFault> faults_;
};

}  // namespace

std::vector<ProgramFault> check_host(const IssueOrder& order) {
    return HostChecker(order).run();
}

}  // namespace reef::edgetpu::check
