#include "byte_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>

#include "edgetpu/host/flip.h"
#include "edgetpu/sim/machine/machine.h"
#include "reef/edgetpu/layer_tensor.h"

namespace reef::edgetpu::trace {
namespace {

/// Results beyond which origins would run out of numbers, and memory with them.
constexpr std::uint64_t most_result_bytes = std::uint64_t{1} << 30;
/// Operands that are followed, 5 bytes of memory each, and 16 where a layer that reads them is
/// gathered.
constexpr std::uint64_t most_reads = std::uint64_t{1} << 28;

/// What stands in place of data in one run.
struct Marks {
    enum class Kind : std::uint8_t {
        survey,       ///< zeros: for the addresses alone
        activations,  ///< ones in activations, zeros in parameters
        parameters,   ///< the other way round
        numbers,      ///< eight bits of every origin
        none,         ///< the data themselves
    };
    Kind kind = Kind::none;
    unsigned shift = 0;  ///< of numbers

    [[nodiscard]] std::uint8_t of(Origin origin, bool parameter) const {
        if (kind == Kind::numbers) return static_cast<std::uint8_t>(origin >> shift);
        if (kind == Kind::survey) return 0;
        return (kind == Kind::parameters) == parameter ? 0xff : 0;
    }
};

/// An origin that is found out run by run.
struct Found {
    static constexpr std::uint8_t ones_with_activations = 1, ones_with_parameters = 2,
                                  zeros_with_activations = 4, zeros_with_parameters = 8;
    static constexpr std::uint8_t activation = ones_with_activations | zeros_with_parameters;
    static constexpr std::uint8_t parameter = ones_with_parameters | zeros_with_activations;

    static void add(Origin& origin, std::uint8_t& kind, std::uint8_t seen, const Marks& marks) {
        if (marks.kind == Marks::Kind::numbers) {
            origin |= Origin{seen} << marks.shift;
        } else {
            const bool activations = marks.kind == Marks::Kind::activations;
            if (seen == 0xff) kind |= activations ? ones_with_activations : ones_with_parameters;
            if (seen == 0) kind |= activations ? zeros_with_activations : zeros_with_parameters;
        }
    }
};

/// One execution while it is traced.
struct Record {
    Execution execution;
    std::vector<std::uint8_t> input_kinds;
    std::vector<std::uint8_t> parameter_kinds;
    std::vector<std::uint8_t> lane_kinds;
    std::vector<std::uint32_t> steps;       ///< done, by position
    std::vector<std::uint32_t> reads;       ///< of the first position: input bytes, by step
    std::vector<std::int32_t> tap_of_step;  ///< -1: not looked at
    std::vector<std::int32_t> lane_tap_of_step;
    std::uint64_t next_position = 0;  ///< whose results come next

    void begin_run() {
        std::ranges::fill(steps, 0);
        next_position = 0;
    }
};

/// Bytes go to other places as they are. Copies compute on marks as they would on data.
bool is_copy(const sim::TensorOp& op) {
    return keeps_bytes(op) && op.in_zero == 0 && std::isinf(op.clamp_min) &&
           std::isinf(op.clamp_max);
}

bool reads_input(const sim::TensorOp& op) {
    return op.kind == sim::TensorKind::mac || op.kind == sim::TensorKind::resize;
}

class Recorder final : public sim::TensorTap {
  public:
    Recorder(Origin first_result, const std::set<std::uint32_t>& moves)
        : moves_(moves), next_origin_(first_result) {}

    void begin_program(const sim::Program& program, bool computes) {
        program_ = &program;
        computes_ = computes;
    }

    void begin_run(const Marks& marks) {
        marks_ = marks;
        begun_.fill(0);
        for (auto& record : records_) record.begin_run();
    }

    bool begin(unsigned tile, const sim::ProgramInstruction& instruction) override {
        copies_[tile] = is_copy(std::get<sim::TensorOp>(instruction.operation)) ||
                        (computes_ && moves_.contains(instruction.number));
        if (copies_[tile]) return false;
        const std::size_t at = begun_[tile]++;
        auto& mine = of_tile_[tile];
        if (at == mine.size()) {
            mine.push_back(records_.size());
            records_.push_back(make(tile, instruction));
        }
        current_[tile] = mine[at];
        return marks_.kind != Marks::Kind::none;
    }

    void step(unsigned tile, const sim::TileMemory& memory, const sim::TensorStep& at) override {
        if (too_much_) return;
        const auto& [position, in, parameter, pixel_weight] = at;
        Record& record = records_[current_[tile]];
        Execution& execution = record.execution;
        if (marks_.kind == Marks::Kind::survey) {
            if (position == 0 && ++looked_at_ <= most_reads) record.reads.push_back(in);
            too_much_ |= looked_at_ > most_reads;
            return;
        }
        // Cropped loops may have more positions and steps than they count; those have no origin.
        if (position >= execution.positions()) return;
        const std::uint32_t step = record.steps[position]++;
        if (step >= record.tap_of_step.size()) return;
        if (execution.op->kind != sim::TensorKind::resize)
            add_parameters(record, memory, step, position, parameter);
        // Maxima and sums are of parameters alone: what stands at their input's address, which is
        // 0, may be their own results.
        if (!reads_input(*execution.op)) return;
        const std::int32_t tap = record.tap_of_step[step];
        if (tap < 0) return;
        const std::size_t read = static_cast<std::size_t>(tap) * execution.positions() + position;
        if (in < memory.narrow.size())
            Found::add(execution.inputs[read], record.input_kinds[read], memory.narrow[in], marks_);
    }

    /// Those that stay in wide memory have no origin.
    void sums(unsigned, std::span<std::int32_t>) override {}

    void results(unsigned tile, const sim::TileMemory&, unsigned,
                 std::span<std::uint8_t> words) override {
        if (copies_[tile]) return;
        Record& record = records_[current_[tile]];
        Execution& execution = record.execution;
        if (record.next_position >= execution.positions()) return;
        const std::size_t offset = execution.offset_of(record.next_position++);
        if (marks_.kind == Marks::Kind::none) {
            std::memcpy(&execution.results[offset], words.data(), words.size());
            return;
        }
        for (std::size_t i = 0; i < words.size(); ++i)
            words[i] = marks_.of(execution.first_result + static_cast<Origin>(offset + i), false);
    }

    /// After the survey. Precondition: not too_much().
    void choose_taps() {
        looked_at_ = 0;
        for (auto& record : records_) {
            choose_taps(record);
            looked_at_ += record.execution.taps.size() * record.execution.positions();
            too_much_ |= looked_at_ > most_reads;
            if (!too_much_) make_room(record);
        }
    }

    [[nodiscard]] bool too_much() const { return too_much_; }

    /// Beyond every origin that was given.
    [[nodiscard]] Origin end_of_origins() const { return next_origin_; }

    /// Of the last run, by execution.
    [[nodiscard]] std::vector<std::vector<std::byte>> results() const {
        std::vector<std::vector<std::byte>> all;
        for (const auto& record : records_) all.push_back(record.execution.results);
        return all;
    }

    [[nodiscard]] std::vector<Execution> take() {
        std::vector<Execution> all;
        for (auto& record : records_) {
            Execution& execution = record.execution;
            keep(execution.inputs, record.input_kinds, Found::activation);
            keep(execution.parameters, record.parameter_kinds, Found::parameter);
            if (!keep(execution.lanes, record.lane_kinds, Found::activation))
                execution.lanes.clear();
            all.push_back(std::move(execution));
        }
        return all;
    }

  private:
    Record make(unsigned tile, const sim::ProgramInstruction& instruction) {
        Record record;
        Execution& execution = record.execution;
        execution.instruction = &instruction;
        execution.op = std::get_if<sim::TensorOp>(&instruction.operation);
        execution.shape = &program_->shapes[instruction.number];
        execution.tile = tile;
        execution.first_result = next_origin_;
        const std::size_t positions = execution.positions();
        const std::size_t bytes =
            execution.offset_of(positions - 1) + execution.bytes_of(positions - 1);
        result_bytes_ += bytes;
        too_much_ |= result_bytes_ > most_result_bytes;
        if (!too_much_) {
            next_origin_ += static_cast<Origin>(bytes);
            execution.results.resize(bytes);
        }
        return record;
    }

    // Of each run of input bytes, its ends and its middle: between the borders of an image and of a
    // window, one of them lies inside both.
    static void choose_taps(Record& record) {
        Execution& execution = record.execution;
        const sim::TensorOp& op = *execution.op;
        const std::uint32_t size = op.elements() * (op.in_16bit ? 2 : 1);
        const auto& reads = record.reads;
        record.tap_of_step.assign(reads.size(), -1);
        const auto take = [&](std::size_t step) {
            if (record.tap_of_step[step] >= 0) return;
            record.tap_of_step[step] = static_cast<std::int32_t>(execution.taps.size());
            execution.taps.push_back(static_cast<std::uint32_t>(step));
        };
        for (std::size_t first = 0; first < reads.size();) {
            std::size_t last = first;
            while (last + 1 < reads.size() && reads[last + 1] == reads[last] + size) ++last;
            for (const std::size_t step : {first, first + (last - first) / 2, last}) take(step);
            first = last + 1;
        }
        choose_lane_taps(record);
        record.reads = {};
    }

    static void choose_lane_taps(Record& record) {
        Execution& execution = record.execution;
        const std::size_t steps = record.reads.size();
        record.lane_tap_of_step.assign(steps, -1);
        std::vector<std::size_t> chosen = {0};
        if (execution.op->kind == sim::TensorKind::max) chosen = {0, steps / 2, steps - 1};
        for (const std::size_t step : chosen) {
            if (step >= steps || record.lane_tap_of_step[step] >= 0) continue;
            record.lane_tap_of_step[step] = static_cast<std::int32_t>(execution.lane_taps.size());
            execution.lane_taps.push_back(static_cast<std::uint32_t>(step));
        }
    }

    static void make_room(Record& record) {
        Execution& execution = record.execution;
        execution.inputs.resize(execution.taps.size() * execution.positions());
        record.input_kinds.resize(execution.inputs.size());
        execution.parameters.resize(execution.positions());
        record.parameter_kinds.resize(execution.positions());
        record.steps.resize(execution.positions());
    }

    void add_parameters(Record& record, const sim::TileMemory& memory, std::uint32_t step,
                        std::uint64_t position, std::uint32_t parameter) {
        Execution& execution = record.execution;
        const std::int32_t tap = record.lane_tap_of_step[step];
        if (tap < 0) return;
        const sim::TensorOp& op = *execution.op;
        const unsigned width = op.par_16bit ? 2 : 1;
        const unsigned quarter = op.elements() * width < 4 ? parameter & 3U : 0;
        const auto& row = memory.wide[parameter >> 2U];
        // What the row held before it was filled the last time is no operand of anything.
        const std::size_t lanes_held = (memory.row_length[parameter >> 2U] + 3U) / 4;
        if (step == 0)
            Found::add(execution.parameters[position], record.parameter_kinds[position],
                       row[quarter], marks_);
        const bool ones = marks_.kind == Marks::Kind::activations && row[quarter] == 0xff;
        if (execution.lanes.empty() && ones) {
            execution.lanes.resize(execution.lane_taps.size() * execution.positions() *
                                   execution.most_lanes());
            record.lane_kinds.resize(execution.lanes.size());
        }
        if (execution.lanes.empty()) return;
        const std::size_t first =
            (static_cast<std::size_t>(tap) * execution.positions() + position) *
            execution.most_lanes();
        for (std::size_t lane = 0; lane < std::min(execution.most_lanes(), lanes_held); ++lane) {
            const std::size_t at = first + lane;
            Found::add(execution.lanes[at], record.lane_kinds[at], row[4 * lane + quarter], marks_);
        }
    }

    /// What is not of that kind has no origin. Returns whether anything is.
    static bool keep(std::vector<Origin>& origins, const std::vector<std::uint8_t>& kinds,
                     std::uint8_t kind) {
        bool any = false;
        for (std::size_t i = 0; i < origins.size(); ++i) {
            if (kinds[i] != kind) origins[i] = no_origin;
            any |= kinds[i] == kind;
        }
        return any;
    }

    const std::set<std::uint32_t>& moves_;
    const sim::Program* program_ = nullptr;
    bool computes_ = false;
    Marks marks_;
    std::vector<Record> records_;
    std::array<std::vector<std::size_t>, sim::tile_count> of_tile_;  ///< records, as begun
    std::array<std::size_t, sim::tile_count> begun_{};
    std::array<std::size_t, sim::tile_count> current_{};
    std::array<bool, sim::tile_count> copies_{};  ///< whether the tile's instruction is one
    Origin next_origin_;
    std::uint64_t result_bytes_ = 0;
    std::uint64_t looked_at_ = 0;
    bool too_much_ = false;
};

/// What one run needs besides the programs.
Status run_once(std::vector<sim::PreparedExecutable>& programs, std::span<const Bytes> inputs,
                const Trace& trace, const Marks& marks, Recorder& recorder) {
    const bool marked = marks.kind != Marks::Kind::none;
    const auto marks_of = [&](const SentBytes& sent, bool parameter) {
        std::vector<std::byte> bytes(sent.size);
        for (std::size_t i = 0; i < sent.size; ++i)
            bytes[i] = std::byte{marks.of(sent.first + static_cast<Origin>(i), parameter)};
        return bytes;
    };
    auto machine = std::make_unique<sim::Machine>(sim::MachineOptions{.tap = &recorder});
    recorder.begin_run(marks);
    for (std::size_t i = 0; i < programs.size(); ++i) {
        Executable executable = programs[i].executable;
        if (marked)
            executable.parameters = SharedBytes::copy_of(marks_of(trace.parameters[i], true));
        auto& host = programs[i].host.emplace(REEF_TRY(sim::HostMemory::create(executable)));
        const bool computes = i + 1 == programs.size();
        for (std::size_t j = 0; computes && j < inputs.size(); ++j) {
            const Layer& layer = executable.inputs[j];
            auto bytes = marked ? marks_of(trace.inputs[j], false)
                                : std::vector<std::byte>(inputs[j].begin(), inputs[j].end());
            // Which is turned back on the way.
            if (marked) host::flip(bytes, host::flip_pattern(layer.data_type));
            REEF_CHECK(pack_input(layer, bytes, host.input(j)));
        }
        recorder.begin_program(programs[i].program, computes);
        const Status ran = sim::run(*machine, programs[i]);
        programs[i].host.reset();  // which refers to the executable with marks
        REEF_CHECK(ran);
    }
    return {};
}

}  // namespace

unsigned Execution::lanes_of(std::uint64_t position) const {
    return position / shape->positions_of_group + 1 == shape->groups ? op->last_lanes : op->lanes;
}

std::size_t Execution::bytes_of(std::uint64_t position) const {
    return (std::size_t{lanes_of(position)} * element_bytes() + 3) / 4 * 4;
}

std::size_t Execution::offset_of(std::uint64_t position) const {
    const std::uint64_t others = (shape->groups - 1) * shape->positions_of_group;
    if (position <= others) return position * bytes_of(0);
    return others * bytes_of(0) + (position - others) * bytes_of(position);
}

std::uint64_t Execution::position_at(std::size_t offset) const {
    const std::uint64_t others = (shape->groups - 1) * shape->positions_of_group;
    const std::size_t first = others * bytes_of(0);
    if (offset < first) return offset / bytes_of(0);
    return others + (offset - first) / bytes_of(shape->positions - 1);
}

const Execution* Trace::find(Origin origin) const {
    const auto after = std::ranges::upper_bound(executions, origin, {}, &Execution::first_result);
    if (after == executions.begin()) return nullptr;
    const Execution& execution = *std::prev(after);
    return origin - execution.first_result < execution.results.size() ? &execution : nullptr;
}

bool keeps_bytes(const sim::TensorOp& op) {
    const bool adds = op.in_zero != op.out_zero || op.par_zero != 0 || op.par_zero_rows ||
                      op.start_value != 0 || op.bias;
    const bool bytes = !op.in_16bit && !op.par_16bit && !op.out_16bit;
    constexpr float half = 0.5F, largest = 255;
    const auto zero = static_cast<float>(op.out_zero);
    const bool limits = !(op.clamp_min < half - zero) || !(op.clamp_max > largest - half - zero);
    return op.kind == sim::TensorKind::mac && bytes && !adds && op.scale == 1 && !op.lane_scale &&
           !op.table && !limits;
}

Result<Trace> trace_bytes(const Package& package, std::span<const std::vector<Bytes>> pictures,
                          const std::set<std::uint32_t>& moves) {
    Trace trace;
    REEF_CHECK(sim::check_chip(package));
    const Executable* computing = REEF_TRY(computing_executable(package));
    for (const Executable* executable :
         {package.find(ExecutableType::parameter_caching), computing})
        if (executable != nullptr) trace.programs.push_back(REEF_TRY(sim::prepare(*executable)));
    Origin next = 1;
    const auto give = [&next](std::size_t size) {
        const SentBytes sent{next, size};
        next += static_cast<Origin>(size);
        return sent;
    };
    const auto& layers = trace.programs.back().executable.inputs;
    for (const auto& inputs : pictures)
        if (layers.size() != inputs.size())
            return fail(Cause::bad_argument,
                        fmt::format("{} inputs, the package has {}", inputs.size(), layers.size()));
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const ElementType type = REEF_TRY(in_place(element_type_of(layers[i]), layers[i].name));
        const auto width = size_of(type);
        if (!width || *width > 2)
            return fail(Cause::unsupported,
                        fmt::format("the origin of {} inputs is not followed", name_of(type)),
                        layers[i].name);
        trace.inputs.push_back(give(REEF_TRY(tensor_bytes(layers[i]))));
    }
    for (const auto& program : trace.programs)
        trace.parameters.push_back(give(program.executable.parameters.size()));
    Recorder recorder(next, moves);
    const auto too_much = [] {
        return fail(Cause::unsupported,
                    "its tensor instructions read or store more than there is "
                    "room for to follow it");
    };
    const auto run = [&](const std::vector<Bytes>& inputs, const Marks& marks) {
        return run_once(trace.programs, inputs, trace, marks, recorder);
    };
    REEF_CHECK(run(pictures.front(), {Marks::Kind::survey}));
    if (recorder.too_much()) return too_much();
    recorder.choose_taps();
    if (recorder.too_much()) return too_much();
    std::vector<Marks> runs = {{Marks::Kind::activations}, {Marks::Kind::parameters}};
    // Bits that no origin has need no run.
    for (unsigned shift = 0; shift < 32 && recorder.end_of_origins() >> shift != 0; shift += 8)
        runs.push_back({Marks::Kind::numbers, shift});
    for (const Marks& marks : runs) REEF_CHECK(run(pictures.front(), marks));
    for (const auto& inputs : pictures) {
        REEF_CHECK(run(inputs, {Marks::Kind::none}));
        trace.results.push_back(recorder.results());
    }
    trace.executions = recorder.take();
    return trace;
}

}  // namespace reef::edgetpu::trace
