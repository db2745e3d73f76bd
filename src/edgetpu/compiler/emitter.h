// Writes a program: typed instructions in the order in which the scalar core issues them.
#pragma once

#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "edgetpu/compiler/plan.h"
#include "edgetpu/program/codec.h"
#include "edgetpu/program/instruction.h"
#include "reef/edgetpu/package.h"
#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu::lowering {

using program::TileSet;
namespace counter = spec::value::tile_counter;
namespace scalar_counter = spec::value::scalar_counter;

/// Counters that begin anew at stops: the messages on the rings are counted to the program's end.
constexpr std::uint32_t all_but_producers = (1U << counter::RING_PRODUCER_A_) - 1;
/// What a fence tells the scalar core.
namespace notification = spec::value::notification;
/// Scratch rows of wide memory end here; ring slots are taken from the top.
constexpr std::int32_t top_row = spec::wide_rows;

/// Numbers that run on beyond what the field holds begin again at 0.
[[nodiscard]] constexpr std::uint32_t wrapped(std::uint32_t number, const hw::FieldInfo& field) {
    return number & static_cast<std::uint32_t>((std::uint64_t{1} << field.width) - 1);
}

/// A dimension of a loop nest: the distance of two passes, and how many there are.
struct Dimension {
    std::int32_t stride = 0;
    std::uint32_t count = 1;
};

/// Dimensions beyond those given have one pass. Its mask has the dimensions that move.
[[nodiscard]] LoopNest nest(unsigned dimensions, std::int32_t base,
                            std::initializer_list<Dimension> given);
[[nodiscard]] LoopNest nest(unsigned dimensions, std::int32_t base,
                            const std::vector<Dimension>& given);
/// Every second group of dimensions below `level` lies `size` further.
[[nodiscard]] LoopNest rotating(LoopNest nest, unsigned level, std::int32_t size);
/// Counts alone.
[[nodiscard]] LoopNest loops(std::initializer_list<std::uint32_t> counts);

[[nodiscard]] constexpr program::Wait wait_for(unsigned counter, unsigned level, std::int32_t start,
                                               std::int32_t step) {
    return {.counter = static_cast<std::uint8_t>(counter),
            .level = static_cast<std::uint8_t>(level),
            .enabled = true,
            .start = start,
            .step = step};
}
/// Holds back the writing side: until what lay there was used.
[[nodiscard]] constexpr program::Wait room_for(unsigned counter, unsigned level, std::int32_t start,
                                               std::int32_t step) {
    auto wait = wait_for(counter, level, start, step);
    wait.destination = true;
    return wait;
}
[[nodiscard]] constexpr program::Signal signal_at(unsigned level) {
    return {.enabled = true, .level = static_cast<std::uint8_t>(level)};
}
/// Counters have 16 bits.
[[nodiscard]] constexpr std::int32_t wrapped(std::int64_t count) {
    return static_cast<std::int16_t>(static_cast<std::uint16_t>(count));
}

/// One pass through a FIFO: `units` from unit `first` on.
[[nodiscard]] LoopNest fifo_pass(std::int64_t first, std::int64_t units, std::uint32_t fifo_units,
                                 std::uint32_t inner);

class Emitter {
  public:
    explicit Emitter(bool caching) : caching_(caching) {}

    /// Gives an instruction a known form, where one does the same.
    using Rewrite = bool (*)(program::Operation&);
    /// From now on each instruction of a tile is rewritten.
    void prefer_known_forms(Rewrite rewrite) { rewrite_ = rewrite; }
    [[nodiscard]] bool prefers_known_forms() const { return rewrite_ != nullptr; }

    template <typename Op>
    void tile(TileSet tiles, Op op) {
        op.work.tiles = tiles;
        op.work.caching = caching_;
        code_.push_back({std::move(op)});
        if (rewrite_ != nullptr) rewrite_(code_.back().operation);
    }
    void scalar(program::Operation op) { code_.push_back({std::move(op)}); }

    /// Tiles for which `make` gives equal instructions share one.
    template <typename Make>
    void by_class(Make&& make, TileSet tiles = every_tile) {
        using Op = typename decltype(make(0U))::value_type;
        std::vector<std::pair<Op, TileSet>> classes;
        for (unsigned t = 0; t < all_tiles; ++t) {
            if ((tiles >> t & 1U) == 0) continue;
            const std::optional<Op> op = make(t);
            if (!op) continue;
            const auto bit = static_cast<TileSet>(1U << t);
            auto known = classes.begin();
            while (known != classes.end() && !(known->first == *op)) ++known;
            if (known == classes.end())
                classes.emplace_back(*op, bit);
            else
                known->second = static_cast<TileSet>(known->second | bit);
        }
        for (auto& [op, set] : classes) tile(set, std::move(op));
    }

    /// Waits for all engines of the tiles.
    void fence(std::uint32_t reset_counters = 0, std::uint32_t notify = 0);
    /// ... and the scalar core for them.
    void wait_for_tiles(std::uint32_t engines = awaited_engines, std::uint32_t reset_counters = 0);
    /// A full stop after which all counters but the rings' producers begin anew. With parameters in
    /// flight their engines go on, and their counters.
    void full_stop();
    /// Parameters that arrive while other steps work.
    struct Flight {
        program::Ring ring = program::Ring::a;
        bool relayed = false;
    };
    /// What neither fences nor stops wait for from now on.
    void let_fly(std::optional<Flight> flight) { flight_ = flight; }
    /// Whether a stop must not reset PARAMETERS while that ring's receiver is not waited for.
    [[nodiscard]] bool awaits_consumption(program::Ring ring) const;
    /// Events of a counter of a tile since the last full stop: those that its instructions signal.
    [[nodiscard]] std::uint64_t avdata_events(unsigned tile) const;
    [[nodiscard]] std::uint64_t received_events(unsigned tile, program::Direction to) const;
    [[nodiscard]] std::uint64_t ring_events(unsigned tile, program::Ring ring) const;
    [[nodiscard]] std::uint64_t consumed_events(unsigned tile) const;
    /// Since the last stop at which a stream can end.
    [[nodiscard]] std::size_t words_since_stop() const;
    void reset_scalar(std::uint32_t counters, std::int32_t value);

    void set(unsigned reg, std::uint32_t value);
    /// ... with half a base address, which the host writes.
    void set_address(unsigned reg, Meta meta);
    void copy(unsigned reg, unsigned from);
    /// Instructions that the scalar core repeats, with `reg` from `first` on in steps of `step`.
    /// They begin and end with full stops, and lie in one stream.
    void begin_loop(unsigned reg, std::uint32_t first);
    void end_loop(unsigned reg, std::uint32_t step, std::uint32_t end);
    /// An address behind another, in 64 bits. Registers: low and high half of both.
    void copy_address(std::pair<unsigned, unsigned> to, std::pair<unsigned, unsigned> from,
                      std::uint32_t offset);
    /// Asks the host for a transfer. Registers: of the address's halves, and two to use. `offset`:
    /// of the address, where the host's bytes are a part of its parameters.
    void transfer(std::pair<unsigned, unsigned> address, std::pair<unsigned, unsigned> use,
                  std::uint32_t bytes, spec::DmaTag tag, std::uint32_t offset = 0);
    void start();
    /// The interrupt that ends the program. `halves`: registers for the address.
    void end(std::pair<unsigned, unsigned> halves, std::pair<unsigned, unsigned> copies,
             std::pair<unsigned, unsigned> use);

    /// What the instructions that follow are for.
    void begin_part(std::string_view name) { parts_.emplace_back(code_.size(), name); }
    /// Of the instruction of that number.
    [[nodiscard]] std::string_view part_of(std::size_t instruction) const;
    [[nodiscard]] const std::vector<program::TypedInstruction>& code() const { return code_; }

    struct Stream {
        std::vector<std::byte> bytes;
        std::vector<FieldOffset> fields;
    };
    struct Transfer {
        std::size_t stream = 0;
        bool parameters = false;
        std::uint32_t offset = 0, bytes = 0;  ///< of parameters
        friend bool operator==(const Transfer&, const Transfer&) = default;
    };
    struct Program {
        /// One, or several where there are too many words for one: cut behind full stops.
        std::vector<Stream> streams;
        std::vector<Transfer> transfers;  ///< in their order
    };
    /// Errors: bad_argument where a number is wider than its field; unsupported for too many words
    /// between two full stops.
    [[nodiscard]] Result<Program> finish();
    /// Instructions up to now; and the one that finish() refused.
    [[nodiscard]] std::size_t size() const { return code_.size(); }
    [[nodiscard]] std::optional<std::size_t> refused() const { return refused_; }

    static constexpr std::uint32_t awaited_engines =
        1U << spec::value::scalar_engine::INFEED_ | 1U << spec::value::scalar_engine::OUTFEED_;

  private:
    /// Instructions [begin, end) of a stream.
    struct Part {
        std::size_t begin = 0, end = 0;
    };
    [[nodiscard]] Result<std::vector<Part>> cut();
    [[nodiscard]] Result<Stream> encode(const Part& part, std::uint32_t& sequence);

    bool caching_;
    Rewrite rewrite_ = nullptr;
    std::vector<program::TypedInstruction> code_;
    struct Patch {
        std::size_t instruction;
        Meta meta;
    };
    std::vector<Patch> patches_;
    std::vector<std::pair<std::size_t, std::string_view>> parts_;
    std::vector<std::size_t> stops_;  ///< instructions behind full stops
    struct Fired {
        std::size_t instruction = 0;
        bool parameters = false;
        std::uint32_t offset = 0, bytes = 0;
    };
    std::vector<Fired> transfers_;
    std::optional<std::size_t> refused_;
    std::optional<Flight> flight_;
    std::optional<std::size_t> loop_;  ///< its first instruction
    // Instructions behind the last reset of counters.
    std::size_t rings_since_ = 0, consumed_since_ = 0, others_since_ = 0;
    /// By ring: behind the last fence that waited for its receiver.
    std::array<std::size_t, 2> receivers_since_{};
};

}  // namespace reef::edgetpu::lowering
