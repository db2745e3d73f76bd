#include "reef/edgetpu/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "edgetpu/sim/core/program_path.h"
#include "edgetpu/sim/program/memory.h"
#include "edgetpu/sim/program/program.h"
#include "edgetpu/sim/watch/happens_before.h"
#include "reef_spec/edgetpu_isa.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu {
namespace {

using namespace sim;

namespace assumed = spec::assumed;

std::uint64_t cycles_for(double amount, double per_cycle) {
    return static_cast<std::uint64_t>(amount / per_cycle + assumed::start_cycles);
}

/// Cycles of one instruction on its engine.
struct Cycles {
    std::uint64_t operator()(const TensorOp& op) const {
        return cycles_for(static_cast<double>(op.acc.visits()), assumed::steps_per_cycle);
    }
    std::uint64_t operator()(const RingSend& op) const {
        return cycles_for(static_cast<double>(op.src.visits() * row_bytes),
                          assumed::ring_bytes_per_cycle);
    }
    std::uint64_t operator()(const RingReceive& op) const {
        return cycles_for(static_cast<double>(op.dst.visits() * row_bytes),
                          assumed::ring_bytes_per_cycle);
    }
    std::uint64_t operator()(const NarrowToWide& op) const {
        return cycles_for(static_cast<double>(op.src.visits() * narrow_word_bytes),
                          assumed::copy_bytes_per_cycle);
    }
    std::uint64_t operator()(const WideToNarrow& op) const {
        const std::uint64_t unit = op.to_scaling ? scaling_word_bytes : narrow_word_bytes;
        return cycles_for(static_cast<double>(op.dst.visits() * unit),
                          assumed::copy_bytes_per_cycle);
    }
    std::uint64_t operator()(const MeshTransfer& op) const {
        const std::uint64_t words = std::max(op.src.visits(), op.dst.visits());
        return cycles_for(static_cast<double>(words * narrow_word_bytes),
                          assumed::mesh_bytes_per_cycle);
    }
    std::uint64_t operator()(const Infeed& op) const {
        return cycles_for(
            static_cast<double>(op.dst.visits() *
                                (op.activations() ? activation_unit_bytes : parameter_unit_bytes)),
            assumed::ring_bytes_per_cycle);
    }
    std::uint64_t operator()(const RingPush& op) const {
        constexpr std::array unit_bytes = {parameter_unit_bytes, activation_unit_bytes,
                                           relay_unit_bytes};
        return cycles_for(
            static_cast<double>(op.src.visits() * unit_bytes[static_cast<std::size_t>(op.fifo)]),
            assumed::ring_bytes_per_cycle);
    }
    std::uint64_t operator()(const RingPop& op) const {
        return cycles_for(static_cast<double>(op.dst.visits() * (op.to_host ? activation_unit_bytes
                                                                            : relay_unit_bytes)),
                          assumed::ring_bytes_per_cycle);
    }
    std::uint64_t operator()(const auto&) const { return 1; }
};

/// Adds up what instructions of one name take, unit by unit.
class InstructionTable {
  public:
    void count(std::string_view name) { ++rows_[name].count; }
    /// `unit`: a tile, or EngineSpan::scalar_core.
    void add(std::string_view name, unsigned unit, std::uint64_t cycles) {
        rows_[name].cycles[unit] += cycles;
    }
    [[nodiscard]] std::vector<InstructionCycles> table() const {
        std::vector<InstructionCycles> out;
        for (const auto& [name, row] : rows_)
            out.push_back({name, row.count, std::ranges::max(row.cycles),
                           std::accumulate(row.cycles.begin(), row.cycles.end(), std::uint64_t{})});
        std::ranges::stable_sort(out, std::greater{}, &InstructionCycles::busiest_cycles);
        return out;
    }

  private:
    struct Row {
        std::uint64_t count = 0;
        std::array<std::uint64_t, tile_count + 1> cycles{};
    };
    std::map<std::string_view, Row> rows_;
};

/// Follows a program: every engine has its own clock, fences and syncs bring them together.
class Timeline {
  public:
    explicit Timeline(std::vector<EngineSpan>* spans) : spans_(spans) {}

    /// `tiles`: of a tile instruction, those that it is issued to.
    void add(const ProgramInstruction& at, std::uint16_t tiles, ExecutableEstimate& estimate) {
        table_.count(at.source.info->name);
        if (const auto* sync = std::get_if<Sync>(&at.operation)) return join(*sync);
        if (at.source.info->space == Space::scalar) return add_scalar(at);
        if (const auto* fence = std::get_if<Fence>(&at.operation)) return join(tiles, *fence);
        const unsigned engine = engine_of(at.operation);
        const std::uint64_t cycles = std::visit(Cycles{}, at.operation);
        for (unsigned t = 0; t < tile_count; ++t) {
            if ((tiles >> t & 1U) == 0) continue;
            if (const auto* op = std::get_if<TensorOp>(&at.operation))
                estimate.mac_steps += op->acc.visits();
            auto& clock = tiles_[t].engines[engine];
            const std::uint64_t begin = std::max(clock, tiles_[t].dispatch);
            note({static_cast<std::uint8_t>(t), spec::tile_engine_values[engine].name,
                  at.source.info->name, at.source.word, begin, cycles});
            clock = begin + cycles;
        }
    }

    [[nodiscard]] std::uint64_t end() const {
        std::uint64_t latest = std::max(scalar_, std::ranges::max(scalar_engines_));
        for (const auto& tile : tiles_)
            latest = std::max({latest, tile.dispatch, std::ranges::max(tile.engines)});
        return latest;
    }
    [[nodiscard]] std::vector<InstructionCycles> instructions() const { return table_.table(); }

  private:
    static constexpr std::size_t engine_count = std::size(spec::tile_engine_values);
    struct TileClock {
        std::uint64_t dispatch = 0;  ///< when its next instruction can be issued
        std::array<std::uint64_t, engine_count> engines{};
    };

    void note(const EngineSpan& span) {
        table_.add(span.instruction, span.tile, span.cycles);
        if (spans_ != nullptr) spans_->push_back(span);
    }
    void join(std::uint16_t tiles, const Fence& fence) {
        for (unsigned t = 0; t < tile_count; ++t) {
            if ((tiles >> t & 1U) == 0) continue;
            for (std::size_t e = 0; e < engine_count; ++e)
                if ((fence.engines >> e & 1U) != 0)
                    tiles_[t].dispatch = std::max(tiles_[t].dispatch, tiles_[t].engines[e]);
        }
    }
    // The scalar core goes on when the tiles have told it so, and the tiles with what it issues.
    void join(const Sync& sync) {
        for (unsigned t = 0; t < tile_count; ++t)
            if ((sync.notified_tiles >> t & 1U) != 0)
                scalar_ = std::max(scalar_, tiles_[t].dispatch);
        for (auto& tile : tiles_) tile.dispatch = std::max(tile.dispatch, scalar_);
    }
    static std::optional<ScalarEngine> scalar_engine_of(const Operation& operation) {
        if (std::holds_alternative<Infeed>(operation)) return infeed;
        if (std::holds_alternative<RingPush>(operation)) return push;
        if (std::holds_alternative<RingPop>(operation)) return pop;
        return std::nullopt;
    }
    void add_scalar(const ProgramInstruction& at) {
        constexpr std::array<std::string_view, scalar_engine_count> names = {"INFEED", "PUSH",
                                                                             "OUTFEED"};
        ++scalar_;
        const auto engine = scalar_engine_of(at.operation);
        if (!engine) return table_.add(at.source.info->name, EngineSpan::scalar_core, 1);
        const std::uint64_t cycles = std::visit(Cycles{}, at.operation);
        const std::uint64_t begin = std::max(scalar_engines_[*engine], scalar_);
        note({EngineSpan::scalar_core, names[*engine], at.source.info->name, at.source.word, begin,
              cycles});
        scalar_engines_[*engine] = begin + cycles;
    }

    std::vector<EngineSpan>* spans_;
    InstructionTable table_;
    std::array<TileClock, tile_count> tiles_{};
    std::array<std::uint64_t, scalar_engine_count> scalar_engines_{};
    std::uint64_t scalar_ = 0;
};

void count_transfers(const Executable& executable, ExecutableEstimate& out) {
    for (const auto& stream : executable.bitstreams)
        out.to_chip_bytes += stream.instructions.size();
    out.to_chip_bytes += executable.parameters.size();
    for (const auto& layer : executable.inputs)
        out.to_chip_bytes += static_cast<std::uint64_t>(std::max(layer.size_bytes, 0));
    for (const auto& layer : executable.outputs)
        out.from_chip_bytes += static_cast<std::uint64_t>(std::max(layer.size_bytes, 0));
    if (!executable.dma_hints) return;
    for (const auto& hint : executable.dma_hints->hints) {
        const auto* dma = std::get_if<DmaDescriptorHint>(&hint.what);
        if (dma == nullptr || dma->meta.base != BaseAddress::scratch) continue;
        auto& bytes =
            hint.direction == edgetpu::Direction::infeed ? out.to_chip_bytes : out.from_chip_bytes;
        bytes += static_cast<std::uint64_t>(std::max(dma->size_bytes, 0));
    }
}

std::uint64_t end_of(std::span<const EngineSpan> spans) {
    std::uint64_t latest = 0;
    for (const auto& span : spans) latest = std::max(latest, span.begin + span.cycles);
    return latest;
}

/// Adds the streams' instructions as the scalar core comes by them.
/// False: it meets what is not modelled, or no end.
bool follow(std::span<const Stream> streams, Timeline& timeline, ExecutableEstimate& out) {
    std::uint64_t instructions_left = most_path_instructions;
    std::size_t kept = 0;  // spans of them
    ScalarCore core;
    return std::ranges::all_of(streams, [&](const Stream& stream) {
        const auto at = [&](std::size_t word) {
            const auto index =
                word < stream.at_word.size() ? stream.at_word[word] : Stream::no_instruction;
            return index == Stream::no_instruction ? nullptr : &stream.instructions[index];
        };
        const auto find = [&](std::size_t word) {
            const auto* found = at(word);
            return found == nullptr ? nullptr : &found->source;
        };
        const auto halted =
            follow_path(core, instructions_left, find, [&](const PathStep& step) -> Status {
                kept += ScalarCore::executes(step.instruction) ? 0 : 1;
                if (kept > most_kept_instructions)
                    return fail(Cause::unsupported, "more instructions than any known program");
                if (step.issue.issued)
                    timeline.add(*at(step.instruction.word), step.issue.tiles, out);
                return {};
            });
        return halted && *halted;
    });
}

Result<ExecutableEstimate> estimate_executable(const Executable& executable,
                                               std::vector<EngineSpan>* spans) {
    std::vector<Stream> streams;
    for (const auto& bitstream : executable.bitstreams)
        streams.push_back(REEF_TRY(translate(bitstream.instructions.view())));
    const std::size_t before = spans == nullptr ? 0 : spans->size();
    const std::uint64_t start = spans == nullptr ? 0 : end_of(*spans);
    ExecutableEstimate out;
    Timeline timeline(spans);
    if (!follow(streams, timeline, out)) {
        out = {.counted_once = true};
        if (spans != nullptr) spans->resize(before);
        timeline = Timeline(spans);
        for (const auto& stream : streams)
            for (const auto& at : stream.instructions) timeline.add(at, at.tiles, out);
    }
    if (spans != nullptr)
        for (auto& span : std::span(*spans).subspan(before)) {
            span.begin += start;
            span.caching = executable.type == ExecutableType::parameter_caching;
        }
    out.cycles = timeline.end();
    out.instructions = timeline.instructions();
    count_transfers(executable, out);
    return out;
}

/// How fast the chip and its USB are at one of its clocks.
struct Pace {
    double clock_hz = 0, to_chip_bytes_per_second = 0;
};
constexpr Pace at_maximum = {assumed::clock_hz, assumed::to_chip_bytes_per_second};
constexpr Pace throttled = {assumed::throttled_clock_hz,
                            assumed::throttled_to_chip_bytes_per_second};

double seconds_of(const ExecutableEstimate& e, const Pace& pace) {
    return static_cast<double>(e.cycles) / pace.clock_hz +
           static_cast<double>(e.to_chip_bytes) / pace.to_chip_bytes_per_second +
           static_cast<double>(e.from_chip_bytes) / assumed::from_chip_bytes_per_second +
           assumed::inference_seconds;
}

}  // namespace

double estimated_clock_hz() {
    return assumed::clock_hz;
}

ExecutableEstimate& ExecutableEstimate::operator+=(const ExecutableEstimate& other) {
    cycles += other.cycles;
    mac_steps += other.mac_steps;
    to_chip_bytes += other.to_chip_bytes;
    from_chip_bytes += other.from_chip_bytes;
    counted_once |= other.counted_once;
    for (const auto& row : other.instructions) {
        auto found =
            std::ranges::find(instructions, row.instruction, &InstructionCycles::instruction);
        if (found == instructions.end()) {
            instructions.push_back(row);
            continue;
        }
        found->count += row.count;
        found->busiest_cycles += row.busiest_cycles;
        found->all_cycles += row.all_cycles;
    }
    std::ranges::stable_sort(instructions, std::greater{}, &InstructionCycles::busiest_cycles);
    return *this;
}

PackageEstimate& PackageEstimate::operator+=(const PackageEstimate& other) {
    first_seconds += other.first_seconds;
    cached_seconds += other.cached_seconds;
    throttled_seconds += other.throttled_seconds;
    computing += other.computing;
    if (other.caching) {
        if (!caching) caching.emplace();
        *caching += *other.caching;
    }
    return *this;
}

Result<PackageEstimate> estimate(const Package& package, std::vector<EngineSpan>* spans) {
    PackageEstimate out;
    const Executable* computing = REEF_TRY(computing_executable(package));
    if (const auto* caching = package.find(ExecutableType::parameter_caching))
        out.caching = REEF_TRY(estimate_executable(*caching, spans));
    out.computing = REEF_TRY(estimate_executable(*computing, spans));
    out.cached_seconds = seconds_of(out.computing, at_maximum);
    out.throttled_seconds = seconds_of(out.computing, throttled);
    out.first_seconds = out.cached_seconds;
    if (out.caching) {
        // Parameters go into the chip as they arrive: the slower of the two counts.
        const double load =
            static_cast<double>(out.caching->to_chip_bytes) / assumed::to_chip_bytes_per_second;
        out.first_seconds +=
            std::max(load, static_cast<double>(out.caching->cycles) / assumed::clock_hz);
    }
    return out;
}

}  // namespace reef::edgetpu
