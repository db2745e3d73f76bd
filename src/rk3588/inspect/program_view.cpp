#include "rk3588/inspect/program_view.h"

#include <fmt/format.h>

#include <algorithm>

namespace reef::rk3588 {
namespace {

std::string operator_of(const Artifact& a, std::uint32_t task) {
    for (const ArtifactOperator& op : a.operators)
        if (task >= op.first_task && task - op.first_task < op.tasks)
            return fmt::format("{} {}", op.index, op.name);
    return "none";
}

void add_window(const RegisterSet& r, TaskView& view) {
    const auto of_two = [](unsigned y, unsigned x) {
        return y == x ? std::to_string(y) : fmt::format("{}x{}", y, x);
    };
    view.window = fmt::format("{}x{}", r.get<"CNA_WEIGHT_SIZE2.WEIGHT_HEIGHT">(),
                              r.get<"CNA_WEIGHT_SIZE2.WEIGHT_WIDTH">());
    const unsigned y = r.get<"CNA_CONV_CON3.CONV_Y_STRIDE">();
    const unsigned x = r.get<"CNA_CONV_CON3.CONV_X_STRIDE">();
    if (y != 1 || x != 1) view.window += " stride " + of_two(y, x);
    const unsigned down = r.get<"CNA_CONV_CON3.ATROUS_Y_DILATION">() + 1;
    const unsigned right = r.get<"CNA_CONV_CON3.ATROUS_X_DILATION">() + 1;
    if (down != 1 || right != 1) view.window += " dilation " + of_two(down, right);
}

void add_convolution(const RegisterSet& r, TaskView& view) {
    const bool depthwise = r.get<"CNA_CONV_CON1.CONV_MODE">() == spec::value::conv_mode::depthwise_;
    const bool sum = r.get<"DPU_RDMA_ERDMA_CFG.ERDMA_DISABLE">() == 0;
    view.kind = depthwise ? "depthwise convolution" : "convolution";
    if (sum) view.kind += " and sum";
    if (r.get<"CNA_CBUF_CON0.WEIGHT_REUSE">() != 0) view.kind += ", weights stay";
    view.in = {r.get<"CNA_DATA_SIZE0.DATAIN_HEIGHT">(), r.get<"CNA_DATA_SIZE0.DATAIN_WIDTH">(),
               r.get<"CNA_DATA_SIZE1.DATAIN_CHANNEL">()};
    view.data_banks = r.get<"CNA_CBUF_CON0.DATA_BANK">();
    view.weight_banks = r.get<"CNA_CBUF_CON0.WEIGHT_BANK">();
    add_window(r, view);
}

void add_pool(const RegisterSet& r, TaskView& view) {
    view.kind = "pool";
    view.in = {r.get<"PPU_DATA_CUBE_IN_HEIGHT.CUBE_IN_HEIGHT">() + std::uint64_t{1},
               r.get<"PPU_DATA_CUBE_IN_WIDTH.CUBE_IN_WIDTH">() + std::uint64_t{1},
               r.get<"PPU_DATA_CUBE_IN_CHANNEL.CUBE_IN_CHANNEL">() + std::uint64_t{1}};
    view.out = {r.get<"PPU_DATA_CUBE_OUT_HEIGHT.CUBE_OUT_HEIGHT">() + std::uint64_t{1},
                r.get<"PPU_DATA_CUBE_OUT_WIDTH.CUBE_OUT_WIDTH">() + std::uint64_t{1},
                r.get<"PPU_DATA_CUBE_OUT_CHANNEL.CUBE_OUT_CHANNEL">() + std::uint64_t{1}};
    view.window = fmt::format("{}x{}", r.get<"PPU_POOLING_KERNEL_CFG.KERNEL_HEIGHT">() + 1,
                              r.get<"PPU_POOLING_KERNEL_CFG.KERNEL_WIDTH">() + 1);
}

TaskView view_of(const Task& task) {
    TaskView view;
    const RegisterSet& r = task.registers;
    if ((task.blocks & Blocks::dpu) != 0)
        view.out = {r.get<"DPU_DATA_CUBE_HEIGHT.HEIGHT">() + std::uint64_t{1},
                    r.get<"DPU_DATA_CUBE_WIDTH.WIDTH">() + std::uint64_t{1},
                    r.get<"DPU_DATA_CUBE_CHANNEL.ORIG_CHANNEL">() + std::uint64_t{1}};
    if ((task.blocks & Blocks::cna) != 0) {
        add_convolution(r, view);
    } else if ((task.blocks & Blocks::ppu) != 0) {
        add_pool(r, view);
    } else {
        const bool by_table =
            r.get<"DPU_EW_CFG.EW_BYPASS">() == 0 && r.get<"DPU_EW_CFG.EW_LUT_BYPASS">() == 0;
        view.kind = by_table                                           ? "function by table"
                    : r.get<"DPU_RDMA_ERDMA_CFG.ERDMA_DISABLE">() == 0 ? "two cubes, element-wise"
                                                                       : "one cube, element-wise";
        view.in = view.out;
    }
    view.work = work_of(task);
    const Work work[] = {view.work};
    view.cycles = cycles_of(work);
    return view;
}

/// The number of stages before the one that has the operator's last task, and it itself.
std::size_t stage_of(const std::vector<Stage>& stages, const ArtifactOperator& op) {
    for (std::size_t s = stages.size(); s-- > 0;)
        for (const Part& part : stages[s])
            if (part.first_task < op.first_task + op.tasks &&
                op.first_task < part.first_task + part.tasks)
                return s;
    return 0;
}

bool meets(const Cube& a, const Cube& b) {
    return a.offset < b.offset + b.bytes() && b.offset < a.offset + a.bytes();
}

std::vector<TensorView> tensors_of(const Artifact& a, const std::vector<Stage>& stages) {
    std::vector<TensorView> tensors;
    for (std::size_t i = 0; i < a.inputs.size(); ++i)
        tensors.push_back({fmt::format("in{}", i), a.inputs[i], 0, 0});
    std::size_t stage = 0;
    for (const ArtifactOperator& op : a.operators) {
        if (op.tasks != 0) stage = stage_of(stages, op);
        for (const Cube& in : op.inputs)
            for (auto t = tensors.rbegin(); t != tensors.rend(); ++t)
                if (meets(t->cube, in)) {
                    t->last_stage = std::max(t->last_stage, stage);
                    break;
                }
        tensors.push_back({fmt::format("{} {}", op.index, op.name), op.output, stage, stage});
    }
    for (const Cube& out : a.outputs)
        for (auto t = tensors.rbegin(); t != tensors.rend(); ++t)
            if (meets(t->cube, out)) {
                t->last_stage = stages.empty() ? 0 : stages.size() - 1;
                break;
            }
    return tensors;
}

}  // namespace

std::string text_of(const ImageShape& shape) {
    return fmt::format("{}x{}x{}", shape.height, shape.width, shape.channels);
}

Result<ProgramView> view_of(const Artifact& a) {
    ProgramView view;
    const auto stages = stages_of(a);
    view.tasks.resize(a.tasks.size());
    for (std::size_t s = 0; s < stages.size(); ++s) {
        std::vector<Work> cores;
        for (std::size_t core = 0; core < stages[s].size(); ++core) {
            Work& all = cores.emplace_back();
            for (std::uint32_t t = 0; t < stages[s][core].tasks; ++t) {
                const std::uint32_t number = stages[s][core].first_task + t;
                TaskView& task = view.tasks[number];
                const Task words = REEF_TRY(task_of(a, number));
                task = view_of(words);
                task.sram_bytes = bytes_in_sram(words, a);
                view.sram_bytes += task.sram_bytes;
                task.stage = s;
                task.core = core;
                task.op = operator_of(a, number);
                all += task.work;
            }
            view.bytes += all.bytes;
        }
        view.cycles += cycles_of(cores);
    }
    view.tensors = tensors_of(a, stages);
    for (const Relocation& r : a.relocations) ++view.relocations[static_cast<std::size_t>(r.area)];
    return view;
}

std::string_view name_of(Area area) {
    switch (area) {
        case Area::commands:
            return "commands";
        case Area::constants:
            return "constants";
        case Area::activations:
            return "activations";
    }
    return {};
}

std::string text_of(const AbsorbedOperator& op) {
    switch (op.how) {
        case Absorption::copied:
            return "it takes no task: its bytes are its input's";
        case Absorption::windows:
            return "it takes no task: the windows of what reads it do its work";
        case Absorption::sum:
            return fmt::format(
                "operator {} adds to its sums on the chip: they are neither rounded nor stored",
                op.into);
        case Absorption::table:
            return fmt::format("the table of operator {} has its results: they are not stored",
                               op.into);
    }
    return {};
}

}  // namespace reef::rk3588
