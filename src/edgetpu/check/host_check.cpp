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

constexpr unsigned narrow_to_wide = number_of("NARROW_TO_WIDE", spec::tile_counter_values);
constexpr std::uint64_t host_unit = spec::activation_unit_bytes;
constexpr std::uint64_t row_words = spec::row_bytes / word_bytes;
/// What is counted of one instruction: more than any tile has rows, so that no error is missed.
constexpr std::uint64_t most_rows = 1 << 13;
static_assert(most_rows > spec::wide_rows);

/// Words of each row that a narrow_to_wide writes: a row ends when the source dimensions below
/// row_level have passed, and after 64 words. At most `most_rows` of them.
std::vector<std::uint32_t> written_rows(const Instruction& copy) {
    const auto nest = nest_of(copy, "src");
    const auto level = static_cast<unsigned>(
        copy.bits(spec::narrow_to_wide_fields[spec::field::narrow_to_wide::row_level]));
    std::vector<std::uint32_t> out;
    if (level == 0) {
        out.assign(std::min(nest.visits(), most_rows), 1);
        return out;
    }
    std::uint64_t passes = 1;  // of dimension 0 in a group
    for (unsigned d = 1; d < level && d < nest.dimensions; ++d)
        passes = saturating_product(passes, nest.counts[d]);
    const auto groups = nest.from(level);
    std::uint64_t pass = 0;
    for (std::uint64_t g = 0; g < groups && out.size() < most_rows; ++g) {
        std::uint64_t words = 0;
        for (std::uint64_t p = 0; p < passes && words < most_rows * row_words; ++p)
            words += nest.count_of_pass(pass++);
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
            const auto& instruction = issued.instruction;
            if (is(instruction, spec::op::infeed)) infeed(issued);
            if (is(instruction, spec::op::ring_push)) push(issued);
            if (is(instruction, spec::op::narrow_to_wide)) copy(issued);
            if (is(instruction, spec::op::fence)) fence(issued);
        }
        if (order_.instructions.empty()) return {};
        const auto& last = order_.instructions.back();
        finish(parameters_, last);
        finish(activations_, last);
        counts_ = {};
        for (const auto& issued : order_.instructions) {
            if (is(issued.instruction, spec::op::ring_send)) send(issued);
            if (is(issued.instruction, spec::op::ring_pop)) pops_.push_back(&issued);
            if (is(issued.instruction, spec::op::sync)) sync(issued);
            if (is(issued.instruction, spec::op::fence)) fence(issued);
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
        std::uint64_t all = 0;    ///< of all infeeds
        std::uint64_t first = 0;  ///< address of the current infeed's first unit
        std::uint64_t units = 0;
        std::uint64_t position = 0;
    };

    void infeed(const Issued& issued) {
        const auto source =
            issued.instruction.bits(spec::infeed_fields[spec::field::infeed::source]);
        auto& fifo = source == 0 ? parameters_ : activations_;
        finish(fifo, issued);
        fifo.units = nest_of(issued.instruction, "dst").visits();
        fifo.all += fifo.units;
        fifo.first = issued.instruction.bits(spec::infeed_fields[spec::field::infeed::dst_base]);
        fifo.position = 0;
    }

    void finish(const Fifo& fifo, const Issued& before) {
        if (fifo.position != fifo.units)
            fault(before, "{} units of {} bytes go to tiles before it, {} came from the host",
                  fifo.position, fifo.unit_bytes, fifo.units);
    }

    /// Pieces follow each other; one may begin with the unit that the one before ended with.
    void push(const Issued& issued) {
        namespace f = spec::field::ring_push;
        const auto& push = issued.instruction;
        const auto bits = [&](unsigned field) { return push.bits(spec::ring_push_fields[field]); };
        if (bits(f::source) > 1) return;  // the relay's units come from ring_pop
        auto& fifo = bits(f::source) == 0 ? parameters_ : activations_;
        const auto ring = bits(f::src_rotate_size) * 2;
        const auto base = bits(f::src_base);
        const auto wrapped = [&](std::uint64_t position) {
            const auto unit = fifo.first + position;
            return ring == 0 ? unit : unit % ring;
        };
        const bool shares = base != wrapped(fifo.position) && fifo.position > 0 &&
                            base == wrapped(fifo.position - 1);
        if (base != wrapped(fifo.position) && !shares)
            fault(issued, "ring_push begins at unit {:#x} of its FIFO, {:#x} is due", base,
                  wrapped(fifo.position));
        fifo.position += nest_of(push, "src").visits() - (shares ? 1 : 0);
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

    void fence(const Issued& issued) {
        namespace f = spec::field::fence;
        const auto& fence = issued.instruction;
        if ((fence.bits(spec::fence_fields[f::reset_counters]) >> narrow_to_wide & 1) == 0) return;
        for (unsigned t = 0; t < tiles_per_chip; ++t)
            if (issued.tiles >> t & 1)
                counts_[t] = {counts_[t].epoch + 1,
                              fence.value(spec::fence_fields[f::reset_value])};
    }

    void copy(const Issued& issued) {
        namespace f = spec::field::narrow_to_wide;
        const auto row = issued.instruction.bits(spec::narrow_to_wide_fields[f::dst_base]);
        std::int64_t events = 0;
        for (const auto& production : productions_of(issued.instruction))
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
        for (const auto& demand : demands_of(send.instruction)) {
            if (demand.counter != narrow_to_wide) continue;
            for (const auto& copy : found->second)
                if (copy.before < demand.first && demand.first <= copy.behind) return copy.issued;
        }
        return found->second.size() == 1 ? found->second.front().issued : nullptr;
    }

    void send(const Issued& issued) {
        namespace f = spec::field::ring_send;
        const auto& send = issued.instruction;
        const auto bits = [&](unsigned field) { return send.bits(spec::ring_send_fields[field]); };
        if (bits(f::to_scalar) == 0) return;
        const auto rows = std::min(nest_of(send, "src").visits(), most_rows);
        for (unsigned t = 0; t < tiles_per_chip; ++t) {
            if ((issued.tiles >> t & 1) == 0) continue;
            if (bits(f::ring_b) != 0) {
                relayed_.push_back({&issued, saturating_product(rows, row_words)});
                continue;
            }
            const auto* copy = filling(issued, t, bits(f::src_base));
            if (!copy) {
                fault(issued,
                      "tile {}: no narrow_to_wide fills row {:#x}, which goes to the scalar core",
                      t, bits(f::src_base));
                continue;
            }
            if (rows_.size() > most_rows) {
                fault(issued, "more than {} rows go to the scalar core at a time", most_rows);
                rows_.clear();
            }
            const auto words = written_rows(copy->instruction);
            if (words.size() != rows)
                fault(issued,
                      "tile {}: ring_send takes {} rows, narrow_to_wide at word {:#06x} writes {}",
                      t, rows, copy->instruction.word, words.size());
            for (std::size_t r = 0; r < std::min<std::size_t>(rows, words.size()); ++r)
                rows_.push_back({&issued, words[r]});
        }
    }

    void sync(const Issued& issued) {
        const auto set =
            issued.instruction.bits(spec::sync_fields[spec::field::sync::reset_counters]);
        if (set >> scalar_producer_a & 1)
            deliver(fmt::format("the sync at word {:#06x}", issued.instruction.word));
    }

    /// Rows go to the ring_pops in order; each takes whole rows, padded to its unit.
    void deliver(const std::string& before) {
        for (const auto* pop : pops_) {
            namespace f = spec::field::ring_pop;
            const auto bits = [&](unsigned field) {
                return pop->instruction.bits(spec::ring_pop_fields[field]);
            };
            const auto units = nest_of(pop->instruction, "dst").visits();
            const bool to_host = bits(f::to_host) != 0;
            if (to_host) host_bytes_ += saturating_product(units, host_unit);
            auto& source = bits(f::dst_rotate_size) != 0 ? relayed_ : rows_;
            const auto unit_words = to_host ? host_unit / word_bytes : 1;
            std::uint64_t got = 0;
            while (got < units && !source.empty()) {
                got += (source.front().words + unit_words - 1) / unit_words;
                source.pop_front();
            }
            if (got != units)
                fault(*pop, "ring_pop takes {} units, the rows sent to it before {} hold {}", units,
                      before, got);
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
    Fifo parameters_{spec::parameter_unit_bytes};
    Fifo activations_{spec::activation_unit_bytes};
    std::uint64_t host_bytes_ = 0;
    std::vector<ProgramFault> faults_;
};

}  // namespace

std::vector<ProgramFault> check_host(const IssueOrder& order) {
    return HostChecker(order).run();
}

}  // namespace reef::edgetpu::check
