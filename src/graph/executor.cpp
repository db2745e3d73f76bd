#include "reef/graph/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <numeric>
#include <optional>

#include "base/worker_pool.h"
#include "graph/data_flow.h"
#include "graph/in_place.h"
#include "graph/kernel.h"
#include "graph/known_values.h"
#include "graph/memory_plan.h"
#include "graph/packed_inputs.h"
#include "graph/placer.h"
#include "graph/thread_choice.h"
#include "reef/base/file.h"
#include "reef/model/tflite.h"

namespace reef::graph {
namespace {

/// Zeroed memory, aligned for the widest vector loads. The pages of a large block come zeroed from
/// the system and cost nothing until they are used.
class AlignedBlock {
  public:
    [[nodiscard]] static Result<AlignedBlock> of(std::size_t bytes) {
        AlignedBlock block;
        if (bytes == 0) return block;
        block.memory_.reset(std::calloc(bytes + arena_alignment, 1));
        if (block.memory_ == nullptr)
            return fail(Cause::io_failed, fmt::format("no memory for {} bytes of tensors", bytes));
        void* begin = block.memory_.get();
        std::size_t space = bytes + arena_alignment;
        block.begin_ = static_cast<std::byte*>(std::align(arena_alignment, bytes, begin, space));
        return block;
    }
    [[nodiscard]] std::byte* at(std::size_t offset) const { return begin_ + offset; }

  private:
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    std::unique_ptr<void, Free> memory_;
    std::byte* begin_ = nullptr;
};

struct Step {
    std::unique_ptr<Kernel> kernel;
    std::vector<std::byte*> inputs;
    std::vector<std::byte*> outputs;
    std::span<std::byte> scratch;
    bool is_left_out = false;
};

/// What the placers say when none of them took the operator.
Error refusal_of(const OperatorView& op, std::span<const std::shared_ptr<Placer>> placers) {
    for (const auto& placer : placers)
        if (auto refusal = placer->refusal(op)) return std::move(*refusal);
    return {Cause::unsupported, fmt::format("nothing here runs {}", op.op().code.name()), {}, {}};
}

/// The kinds of operators from `first` on that nobody here has, with how many there are: who
/// converts a model again wants to know all of them at once. Empty where there is none but the
/// first one.
std::string list_of_refused(const model::Model& model, const model::Subgraph& graph,
                            std::size_t first, std::span<const std::shared_ptr<Placer>> placers) {
    struct Kind {
        std::string name;
        std::size_t first = 0, count = 0;
    };
    std::vector<Kind> kinds;
    std::size_t others = 0;
    for (std::size_t i = first; i < graph.operators.size(); ++i) {
        const OperatorView op(model, graph, i);
        if (std::ranges::any_of(placers, [&](const auto& each) { return each->has(op); })) continue;
        if (i != first) ++others;
        const std::string name = op.op().code.name();
        const auto known = std::ranges::find(kinds, name, &Kind::name);
        if (known == kinds.end())
            kinds.push_back({name, i, 1});
        else
            ++known->count;
    }
    if (others == 0) return {};
    std::string list;
    for (const Kind& kind : kinds) {
        list += list.empty() ? "; nothing here runs " : ", ";
        list += kind.count == 1 ? fmt::format("{} (operator {})", kind.name, kind.first)
                                : fmt::format("{} ({}, the first is operator {})", kind.name,
                                              kind.count, kind.first);
    }
    return list;
}

/// Whether an executor outlives the model it was made from. The scales of a network's channels are
/// most of its tables, and a plan alone can read them where they are.
enum class Lifespan : std::uint8_t { own, of_model };

/// The values of what is known are an executor's; a plan has the sizes of large ones, but for
/// bytes.
KnownBefore known_before(const model::Model& model, const model::Subgraph& graph,
                         Lifespan lifespan) {
    const bool is_plan = lifespan == Lifespan::of_model;
    return {model, graph, is_plan ? KnownBefore::Large::when_needed : KnownBefore::Large::computed};
}

}  // namespace

struct Executor::Impl {
    explicit Impl(const ExecutorOptions& given)
        : options(given), pool(given.threads), choice(given.threads) {}

    /// Everything but the parts that take time or memory: packed weights, copies of constants.
    static Result<std::unique_ptr<Impl>> planned(const model::Model& model,
                                                 const ExecutorOptions& options, Lifespan lifespan);
    Status take_graph(const model::Subgraph& given, Lifespan lifespan);
    Status place_operators(const model::Model& model, KnownBefore& known_before);
    Status place_operator(const OperatorView& op);
    Status add_known(const OperatorView& op, Placer& placer, KnownBefore& known_before);
    void leave_out_known();
    void leave_out_unread();
    Status pack();
    [[nodiscard]] std::vector<std::size_t> tensors_in_place() const;
    Status place_tensors();
    Status place_state();
    Status place_constants(const model::Model& model);
    void leave_pages(const model::Model& model, const std::vector<bool>& read_in_place) const;
    [[nodiscard]] std::vector<bool> read_tensors() const;
    enum class Named : std::uint8_t { by_all, by_runs };
    [[nodiscard]] std::vector<bool> named_tensors(Named by) const;
    void connect();
    Status run(RunObserver* observer);
    [[nodiscard]] MutableBytes bytes_of(model::TensorIndex index) const {
        const auto i = static_cast<std::size_t>(index);
        return {addresses[i], addresses[i] == nullptr ? 0 : uses[i].bytes};
    }

    ExecutorOptions options;
    WorkerPool pool;
    ThreadChoice choice;
    std::optional<model::Subgraph> own_graph;
    const model::Subgraph* graph = nullptr;  // the own one, or the model's
    std::vector<TensorUse> uses;
    std::vector<std::byte*> addresses;  // by tensor; null when nothing touches it
    std::vector<Step> steps;
    std::vector<Placement> placements;
    std::vector<SharedBytes> constants;  // keeps the model's buffers alive
    KnownValues known;
    AlignedBlock arena;
    AlignedBlock state;
    AlignedBlock aligned_constants;
    MemoryReport report;
};

Status Executor::Impl::place_operator(const OperatorView& op) {
    for (std::size_t i = 0; i < options.placers.size(); ++i) {
        Placed placed = REEF_TRY(options.placers[i]->place(op));
        if (placed.kernel == nullptr) continue;
        report.packed_bytes += placed.kernel->packed_bytes();
        placements.push_back({.operator_index = op.index(),
                              .operator_name = op.op().code.name(),
                              .kernel = std::move(placed.name),
                              .placer = i,
                              .reason = std::move(placed.reason)});
        steps.push_back(
            {.kernel = std::move(placed.kernel), .inputs = {}, .outputs = {}, .scratch = {}});
        return {};
    }
    return std::unexpected(refusal_of(op, options.placers));
}

Status Executor::Impl::add_known(const OperatorView& op, Placer& placer,
                                 KnownBefore& known_before) {
    if (!placer.runs_at_any_time() || !known_before.includes(op)) return {};
    for (const std::size_t i : known_before.needed_by(op)) {
        const OperatorView before(op.model(), *graph, i, &known_before.values());
        const Placed placed = REEF_TRY(options.placers[placements[i].placer]->place(before));
        known_before.add(before, *placed.kernel, pool, true);
    }
    // Of one that could not be computed nothing follows.
    if (!known_before.includes(op)) return {};
    const Placed again = REEF_TRY(placer.place(op));
    known_before.add(op, *again.kernel, pool);
    return {};
}

Status Executor::Impl::place_operators(const model::Model& model, KnownBefore& known_before) {
    for (const auto& placer : options.placers)
        REEF_CHECK(placer->begin(model, *graph, options.threads));
    for (std::size_t i = 0; i < graph->operators.size(); ++i) {
        const OperatorView op(model, *graph, i, &known_before.values());
        if (Status placed = place_operator(op); !placed) {
            placed.error().what += list_of_refused(model, *graph, i, options.placers);
            return in_place(std::move(placed), model::place_of(*graph, i));
        }
        Placer& placer = *options.placers[placements.back().placer];
        REEF_CHECK(in_place(add_known(op, placer, known_before), model::place_of(*graph, i)));
    }
    known = std::move(known_before.values());
    return {};
}

/// What is known is not computed again in every run.
void Executor::Impl::leave_out_known() {
    const auto is_known = [&](model::TensorIndex output) { return known.contains(output); };
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const auto& outputs = graph->operators[i].outputs;
        if (outputs.empty() || !std::ranges::all_of(outputs, is_known)) continue;
        steps[i].is_left_out = true;
        const bool is_shape = graph->operators[i].code.builtin == model::Op::shape;
        placements[i].reason = fmt::format("computed once, before the first run: {} known",
                                           is_shape ? "shapes are" : "what it reads is");
        for (const model::TensorIndex output : outputs) {
            const auto tensor = static_cast<std::size_t>(output);
            uses[tensor].storage = Storage::known;
            report.known_tensors.push_back(output);
            // As with constants: kernels write outputs and state only.
            addresses[tensor] = const_cast<std::byte*>(known[output].view().data());
        }
    }
    std::ranges::sort(report.known_tensors);
}

/// By tensor: whether an operator has it as input, or one that is not left out.
std::vector<bool> Executor::Impl::named_tensors(Named by) const {
    std::vector<bool> named(uses.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (by == Named::by_runs && steps[i].is_left_out) continue;
        for (const model::TensorIndex input : graph->operators[i].inputs)
            if (input != model::absent_tensor) named[static_cast<std::size_t>(input)] = true;
    }
    return named;
}

/// Operators whose results others name as inputs and no kernel reads. What nothing names is
/// computed nevertheless: its errors are the model's.
void Executor::Impl::leave_out_unread() {
    if (options.keep_all_tensors) return;
    const std::vector<bool> read = read_tensors();
    const std::vector<bool> named = named_tensors(Named::by_all);
    const std::vector<bool> named_by_runs = named_tensors(Named::by_runs);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].is_left_out) continue;
        const auto& outputs = graph->operators[i].outputs;
        const auto is_unread = [&](model::TensorIndex output) {
            const auto tensor = static_cast<std::size_t>(output);
            return output != model::absent_tensor && named[tensor] && !read[tensor];
        };
        if (outputs.empty() || !std::ranges::all_of(outputs, is_unread)) continue;
        steps[i].is_left_out = true;
        const auto is_for_runs = [&](model::TensorIndex output) {
            return output != model::absent_tensor &&
                   named_by_runs[static_cast<std::size_t>(output)];
        };
        // Known operators read shapes, and values that are known, too.
        placements[i].reason = std::ranges::any_of(outputs, is_for_runs)
                                   ? "left out: what reads its result computes it from its input"
                                   : "left out: of its result only the shape is read";
        for (const model::TensorIndex output : outputs)
            uses[static_cast<std::size_t>(output)].storage = Storage::none;
    }
}

/// By tensor: the one whose memory it takes over, or itself. Only what nothing reads any more is
/// replaced.
std::vector<std::size_t> Executor::Impl::tensors_in_place() const {
    std::vector<std::size_t> where(uses.size());
    std::iota(where.begin(), where.end(), std::size_t{0});
    if (options.keep_all_tensors) return where;
    // An input is the next run's, too, an output the caller's.
    std::vector<bool> stays(uses.size());
    for (const auto* ends : {&graph->inputs, &graph->outputs})
        for (const model::TensorIndex tensor : *ends)
            if (tensor != model::absent_tensor) stays[static_cast<std::size_t>(tensor)] = true;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const auto* kernel = dynamic_cast<const WorksInPlace*>(steps[i].kernel.get());
        if (kernel == nullptr || steps[i].is_left_out) continue;
        const model::Operator& op = graph->operators[i];
        const auto in = static_cast<std::size_t>(op.inputs[kernel->replaced_input()]);
        const auto out = static_cast<std::size_t>(op.outputs[0]);
        if (uses[in].storage == Storage::arena && uses[out].storage == Storage::arena &&
            uses[in].bytes == uses[out].bytes && uses[in].last == i && !stays[in])
            where[out] = where[in];
    }
    return where;
}

Status Executor::Impl::place_tensors() {
    const std::size_t last = graph->operators.empty() ? 0 : graph->operators.size() - 1;
    const std::vector<std::size_t> where = tensors_in_place();
    std::vector<Lifetime> blocks;
    std::vector<std::size_t> owners;  // tensor index, or tensor count + operator index
    std::vector<std::size_t> block_of(uses.size());
    for (std::size_t i = 0; i < uses.size(); ++i) {
        if (uses[i].storage != Storage::arena || where[i] != i) continue;
        block_of[i] = blocks.size();
        blocks.push_back({uses[i].bytes, uses[i].first, uses[i].last});
        owners.push_back(i);
    }
    for (std::size_t i = 0; i < uses.size(); ++i) {
        if (where[i] == i) continue;
        Lifetime& block = blocks[block_of[where[i]]];
        block.last = std::max(block.last, uses[i].last);
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].kernel->scratch_bytes() == 0) continue;
        blocks.push_back({steps[i].kernel->scratch_bytes(), i, i});
        owners.push_back(uses.size() + i);
    }
    auto plan = REEF_TRY(plan_memory(blocks));
    report.lower_bound_bytes = plan.lower_bound_bytes;
    if (options.keep_all_tensors) {
        for (std::size_t b = 0; b < blocks.size(); ++b)
            if (owners[b] < uses.size()) blocks[b] = {blocks[b].bytes, 0, last};
        plan = REEF_TRY(plan_memory(blocks));
    }
    report.arena_bytes = plan.arena_bytes;
    // A block even for nothing, so that tensors without elements have an address.
    arena = REEF_TRY(AlignedBlock::of(std::max(plan.arena_bytes, arena_alignment)));
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        std::byte* const address = arena.at(plan.offsets[b]);
        if (owners[b] < uses.size()) {
            addresses[owners[b]] = address;
        } else {
            steps[owners[b] - uses.size()].scratch = {address, blocks[b].bytes};
        }
    }
    for (std::size_t i = 0; i < uses.size(); ++i)
        if (where[i] != i) addresses[i] = addresses[where[i]];
    return {};
}

Status Executor::Impl::place_state() {
    std::size_t total = 0;
    std::vector<std::size_t> offsets(uses.size());
    for (std::size_t i = 0; i < uses.size(); ++i) {
        if (uses[i].storage != Storage::variable) continue;
        offsets[i] = total;
        report.variable_bytes += uses[i].bytes;
        total += align_up(uses[i].bytes);
        if (uses[i].bytes > arena_limit || total > arena_limit)
            return fail(Cause::unsupported,
                        fmt::format("the state tensors need more than {} bytes", arena_limit));
    }
    state = REEF_TRY(AlignedBlock::of(std::max(total, arena_alignment)));
    for (std::size_t i = 0; i < uses.size(); ++i) {
        if (uses[i].storage == Storage::variable) addresses[i] = state.at(offsets[i]);
    }
    return {};
}

/// By tensor: whether a run reads it, or it is an output. Weights that kernels have packed are not,
/// nor what kernels compute from another input.
std::vector<bool> Executor::Impl::read_tensors() const {
    std::vector<bool> read(uses.size());
    for (const model::TensorIndex output : graph->outputs)
        if (output != model::absent_tensor) read[static_cast<std::size_t>(output)] = true;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].is_left_out) continue;
        const auto* packs = dynamic_cast<const PacksInputs*>(steps[i].kernel.get());
        const auto& inputs = graph->operators[i].inputs;
        for (std::size_t k = 0; k < inputs.size(); ++k)
            if (inputs[k] != model::absent_tensor && (packs == nullptr || packs->reads_input(k)))
                read[static_cast<std::size_t>(inputs[k])] = true;
    }
    return read;
}

Status packed(Kernel& kernel) {
    try {
        kernel.pack();
        return {};
    } catch (const std::bad_alloc&) {
        return fail(Cause::io_failed,
                    fmt::format("no memory for {} bytes of packed weights", kernel.packed_bytes()),
                    {}, "open the model where more memory is free");
    }
}

/// Known weights go as soon as they are packed: beside the file and the packed ones they would be
/// the third of their kind.
Status Executor::Impl::pack() {
    const std::vector<bool> read = read_tensors();
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (!steps[i].is_left_out)
            REEF_CHECK(in_place(packed(*steps[i].kernel), model::place_of(*graph, i)));
        if (options.keep_all_tensors) continue;
        std::erase_if(known, [&](const auto& value) {
            const auto tensor = static_cast<std::size_t>(value.first);
            const bool goes =
                uses[tensor].storage == Storage::known && uses[tensor].last <= i && !read[tensor];
            if (goes) addresses[tensor] = nullptr;
            return goes;
        });
    }
    return {};
}

/// Of buffers that no run reads where they are. Kernels let go of each constant they pack, but a
/// system that maps files in large pieces (Linux since 6.18, a whole folio at a time) brings it
/// back with the first read of a neighbour.
void Executor::Impl::leave_pages(const model::Model& model,
                                 const std::vector<bool>& read_in_place) const {
    for (const model::Tensor& tensor : graph->tensors)
        if (!read_in_place[tensor.buffer]) will_not_read(model.buffers[tensor.buffer]);
}

Status Executor::Impl::place_constants(const model::Model& model) {
    // What kernels load in wider units than bytes must be aligned; files from some writers are not.
    constexpr std::uintptr_t alignment = 16;
    // A run that reads small ones from the file would bring in whatever is mapped with them.
    constexpr std::size_t small = 4096;
    const std::vector<bool> read = read_tensors();
    const auto is_copied = [&](std::size_t i, Bytes bytes) {
        return read[i] && (bytes.size() <= small ||
                           reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment != 0);
    };
    std::size_t copied = 0;
    for (std::size_t i = 0; i < uses.size(); ++i) {
        const Bytes bytes = model.constant(graph->tensors[i]);
        if (uses[i].storage == Storage::constant && is_copied(i, bytes))
            copied += align_up(uses[i].bytes);
    }
    aligned_constants = REEF_TRY(AlignedBlock::of(std::max(copied, arena_alignment)));
    copied = 0;
    std::vector<bool> read_in_place(model.buffers.size());
    for (std::size_t i = 0; i < uses.size(); ++i) {
        if (uses[i].storage != Storage::constant) continue;
        const Bytes bytes = model.constant(graph->tensors[i]);
        if (uses[i].bytes == 0) {
            addresses[i] = aligned_constants.at(0);
        } else if (is_copied(i, bytes)) {
            addresses[i] = aligned_constants.at(copied);
            std::memcpy(addresses[i], bytes.data(), uses[i].bytes);
            copied += align_up(uses[i].bytes);
        } else {
            // Frames have one kind of address; kernels write outputs and state only.
            addresses[i] = const_cast<std::byte*>(bytes.data());
            constants.push_back(model.buffers[graph->tensors[i].buffer]);
            if (read[i]) read_in_place[graph->tensors[i].buffer] = true;
        }
    }
    leave_pages(model, read_in_place);
    return {};
}

void Executor::Impl::connect() {
    const auto address = [&](model::TensorIndex index) {
        return index == model::absent_tensor ? nullptr : addresses[static_cast<std::size_t>(index)];
    };
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const model::Operator& op = graph->operators[i];
        std::ranges::transform(op.inputs, std::back_inserter(steps[i].inputs), address);
        std::ranges::transform(op.outputs, std::back_inserter(steps[i].outputs), address);
    }
}

Status Executor::Impl::take_graph(const model::Subgraph& given, Lifespan lifespan) {
    const auto is_custom = [](const model::Operator& op) {
        return op.code.builtin == model::Op::custom;
    };
    if (lifespan == Lifespan::of_model && std::ranges::none_of(given.operators, is_custom)) {
        graph = &given;
        return {};
    }
    own_graph = given;
    graph = &*own_graph;
    for (const auto& placer : options.placers) REEF_CHECK(placer->complete_shapes(*own_graph));
    return {};
}

Result<std::unique_ptr<Executor::Impl>> Executor::Impl::planned(const model::Model& model,
                                                                const ExecutorOptions& options,
                                                                Lifespan lifespan) {
    if (options.threads < 1 || options.threads > WorkerPool::most_threads)
        return fail(Cause::bad_argument, fmt::format("{} threads, not 1 to {}", options.threads,
                                                     WorkerPool::most_threads));
    if (options.subgraph >= model.subgraphs.size())
        return fail(Cause::bad_argument, fmt::format("there is no subgraph {}, the model has {}",
                                                     options.subgraph, model.subgraphs.size()));
    REEF_CHECK(model::validate(model));
    auto impl = std::make_unique<Impl>(options);
    REEF_CHECK(impl->take_graph(model.subgraphs[options.subgraph], lifespan));
    impl->uses = REEF_TRY(trace_tensors(model, *impl->graph));
    impl->addresses.resize(impl->uses.size());
    KnownBefore known = known_before(model, *impl->graph, lifespan);
    REEF_CHECK(impl->place_operators(model, known));
    impl->leave_out_known();
    impl->leave_out_unread();
    REEF_CHECK(impl->place_tensors());
    REEF_CHECK(impl->place_state());
    return impl;
}

Result<MemoryReport> Executor::plan(const model::Model& model, const ExecutorOptions& options) {
    return REEF_TRY(Impl::planned(model, options, Lifespan::of_model))->report;
}

Result<Executor> Executor::create(const model::Model& model, const ExecutorOptions& options) {
    auto impl = REEF_TRY(Impl::planned(model, options, Lifespan::own));
    REEF_CHECK(impl->pack());
    REEF_CHECK(impl->place_constants(model));
    impl->connect();
    Executor executor(std::move(impl));
    executor.reset_state();
    return executor;
}

Executor::Executor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executor::Executor(Executor&&) noexcept = default;
Executor& Executor::operator=(Executor&&) noexcept = default;
Executor::~Executor() = default;

const model::Subgraph& Executor::graph() const {
    return *impl_->graph;
}
std::size_t Executor::input_count() const {
    return impl_->graph->inputs.size();
}
std::size_t Executor::output_count() const {
    return impl_->graph->outputs.size();
}
int Executor::threads_taken() const {
    return impl_->choice.all() ? impl_->options.threads : 1;
}

const MemoryReport& Executor::memory() const {
    return impl_->report;
}
std::span<const Placement> Executor::placements() const {
    return impl_->placements;
}

MutableBytes Executor::input(std::size_t i) {
    assert(i < input_count());
    return impl_->bytes_of(impl_->graph->inputs[i]);
}

Bytes Executor::output(std::size_t i) const {
    assert(i < output_count());
    return impl_->bytes_of(impl_->graph->outputs[i]);
}

Bytes Executor::tensor(model::TensorIndex index) const {
    assert(index >= 0 && static_cast<std::size_t>(index) < impl_->uses.size());
    return impl_->bytes_of(index);
}

Status Executor::run(RunObserver* observer) {
    using Clock = ThreadChoice::Clock;
    ThreadChoice& choice = impl_->choice;
    impl_->pool.use_all(choice.all());
    // What an observer takes is not the run's.
    if (observer != nullptr || !choice.measures()) return impl_->run(observer);
    const auto begin = Clock::now();
    REEF_CHECK(impl_->run(nullptr));
    choice.ended(begin, Clock::now());
    return {};
}

Status Executor::Impl::run(RunObserver* observer) {
    using Clock = RunObserver::Clock;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        Step& step = steps[i];
        const Frame frame{step.inputs, step.outputs, step.scratch, pool};
        if (options.control != nullptr) {
            if (Status status = options.control->check(); !status)
                return in_place(std::move(status), model::place_of(*graph, i));
        }
        const auto begin = observer != nullptr ? Clock::now() : Clock::time_point{};
        if (Status status = step.is_left_out ? Status{} : step.kernel->run(frame); !status)
            return in_place(std::move(status), model::place_of(*graph, i));
        if (observer != nullptr) observer->on_operator(i, begin, Clock::now());
    }
    return {};
}

void Executor::reset_state() {
    for (std::size_t i = 0; i < impl_->uses.size(); ++i) {
        if (impl_->uses[i].storage != Storage::variable) continue;
        const std::byte value = state_at_start(impl_->graph->tensors[i]);
        std::memset(impl_->addresses[i], std::to_integer<int>(value), impl_->uses[i].bytes);
    }
}

std::byte state_at_start(const model::Tensor& tensor) {
    const bool known = tensor.type == ElementType::int8 && tensor.quantization &&
                       !tensor.quantization->zero_point.empty();
    return static_cast<std::byte>(known ? tensor.quantization->zero_point[0] : 0);
}

}  // namespace reef::graph
