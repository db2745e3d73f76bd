#include <fmt/format.h>

#include <algorithm>

#include "rk3588/compiler/tasks.h"

namespace reef::rk3588::lowering {
namespace {

/// A task in its place among the others.
struct PlacedTask {
    TaskRegisters registers;
    std::size_t node = 0;
    bool ends_part = false;  ///< no other one follows on its core before the barrier
    [[nodiscard]] std::size_t words() const { return registers.order.size() + spec::tail_words; }
};

class Emission {
  public:
    explicit Emission(const Plan& plan) : plan_(plan) {}

    Result<Artifact> run() {
        several_ = std::ranges::any_of(plan_.steps, [&](const Step& step) {
            return step.core != 0 || work_of(plan_, step).size() > 1;
        });
        for (const Step& step : plan_.steps) add(step);
        for (std::size_t i = 0; i < tasks_.size(); ++i) REEF_CHECK(write(i));
        out_.activation_bytes = plan_.activation_bytes;
        out_.sram_bytes = plan_.sram_bytes;
        out_.constants = SharedBytes::copy_of(plan_.constants);
        out_.absorbed = plan_.absorbed;
        add_unproven(plan_, out_.unproven);
        for (const auto& port : plan_.program->inputs) out_.inputs.push_back(cube(port));
        for (const auto& port : plan_.program->outputs) out_.outputs.push_back(cube(port));
        return std::move(out_);
    }

  private:
    /// Where the source is, with the bytes that the tensor has.
    [[nodiscard]] Cube cube(const compiler::Program::Port& port) const {
        Cube c = plan_.cube(port.source);
        c.flipped = plan_.value(port.tensor).type == ElementType::uint8;
        return c;
    }

    void add(const Step& step) {
        ArtifactOperator op;
        op.index = static_cast<std::uint32_t>(step.node);
        op.name = plan_.graph->nodes[step.node].name;
        op.first_task = static_cast<std::uint32_t>(tasks_.size());
        for (const ValueId in : step.inputs) op.inputs.push_back(plan_.cube(in));
        op.output = plan_.cube(step.output);
        std::visit([&](const auto& kind) { add_tasks(step, kind); }, step.kind);
        op.tasks = static_cast<std::uint32_t>(tasks_.size()) - op.first_task;
        out_.operators.push_back(std::move(op));
    }

    void add_tasks(const Step& step, const ConvolutionStep& conv) {
        for (const Piece& piece : conv.pieces)
            for (std::size_t i = 0; i < piece.tiles.size(); ++i)
                add_task(step, piece.core, convolution_task(plan_, step, conv, piece, i));
    }
    void add_tasks(const Step& step, const ElementStep& element) {
        for (std::int32_t core = 0; core < element.cores; ++core)
            add_task(step, core, element_task(plan_, step, element, core));
    }
    void add_tasks(const Step& step, const FunctionStep& function) {
        for (std::int32_t core = 0; core < function.cores; ++core)
            add_task(step, core, function_task(plan_, step, function, core));
    }
    void add_tasks(const Step& step, const PoolStep& pool) {
        for (std::int32_t core = 0; core < pool.cores; ++core)
            add_task(step, core, pool_task(plan_, step, pool, core));
    }
    void add_tasks(const Step&, const PlacedStep&) {}

    /// `core`: from the step's first one on.
    void add_task(const Step& step, std::int32_t core, TaskRegisters&& registers) {
        const auto number = static_cast<std::uint32_t>(tasks_.size());
        tasks_.push_back({std::move(registers), step.node});
        if (!several_) return;
        if (stage_ != step.stage) out_.stages.emplace_back();
        stage_ = step.stage;
        auto& parts = out_.stages.back();
        const auto place = static_cast<std::size_t>(step.core + core);
        if (parts.size() <= place) parts.resize(place + 1);
        if (parts[place].tasks == 0)
            parts[place].first_task = number;
        else
            tasks_[number - 1].ends_part = false;
        ++parts[place].tasks;
        tasks_.back().ends_part = true;
    }

    [[nodiscard]] static std::size_t end_of(std::size_t first, std::size_t words) {
        constexpr std::size_t step = spec::task_alignment_bytes / sizeof(std::uint64_t);
        return (first + words + step - 1) / step * step;
    }

    Status write(std::size_t index) {
        const PlacedTask& task = tasks_[index];
        const TaskRegisters& t = task.registers;
        const std::size_t first = out_.commands.size();
        const std::size_t end = end_of(first, task.words());
        NextTask next;
        if (index + 1 < tasks_.size() && !task.ends_part)
            next = {static_cast<std::uint32_t>(end * sizeof(std::uint64_t)),
                    static_cast<std::uint32_t>(tasks_[index + 1].words())};
        const auto words =
            REEF_TRY(in_place(task_words(t.registers, t.order, t.blocks, next, t.repeated),
                              model::place_of(plan_.graph->subgraph(), task.node)));
        out_.commands.insert(out_.commands.end(), words.begin(), words.end());
        out_.commands.resize(end, 0);
        out_.tasks.push_back(
            {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(words.size())});
        relocate(t, first, next.address != 0);
        return {};
    }

    void relocate(const TaskRegisters& task, std::size_t first, bool chained) {
        for (std::size_t w = 0; w < task.order.size(); ++w)
            for (const auto& [index, area] : task.addresses)
                if (task.order[w] == index)
                    out_.relocations.push_back({static_cast<std::uint32_t>(first + w), area});
        if (chained)
            out_.relocations.push_back(
                {static_cast<std::uint32_t>(first + task.order.size()), Area::commands});
    }

    const Plan& plan_;
    bool several_ = false;  ///< cores
    std::optional<std::size_t> stage_;
    std::vector<PlacedTask> tasks_;
    Artifact out_;
};

}  // namespace

Result<Artifact> emit(const Plan& plan) {
    return Emission(plan).run();
}

}  // namespace reef::rk3588::lowering
