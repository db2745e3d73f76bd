#include "rk3588/stream/task_work.h"

#include <algorithm>

#include "reef/rk3588/command_words.h"
#include "reef_spec/rk3588_machine.h"
#include "rk3588/stream/task_cubes.h"

namespace reef::rk3588 {
namespace {

std::uint64_t whole(std::uint64_t value, std::uint64_t step) {
    return (value + step - 1) / step;
}

void add_cubes(const Task& task, Work& work) {
    for (const CubeWalk& cube : cubes_of(task))
        (cube.role == CubeRole::features  ? work.bytes.features
         : cube.role == CubeRole::operand ? work.bytes.operands
                                          : work.bytes.results) += cube.bytes();
}

void add_convolution(const RegisterSet& r, Work& work) {
    const std::uint64_t element = bytes_of_element(r.get<"CNA_CONV_CON1.PROC_PRECISION">());
    const std::uint64_t channels = r.get<"CNA_DATA_SIZE1.DATAIN_CHANNEL">();
    // A packed picture has no lanes that are empty.
    work.bytes.features += std::uint64_t{r.get<"CNA_FC_DATA_SIZE0.DMA_WIDTH">()} *
                           r.get<"CNA_FC_DATA_SIZE0.DMA_HEIGHT">() * packed_channels(r) * element;
    if (r.get<"CNA_CBUF_CON0.WEIGHT_REUSE">() == 0)
        work.bytes.weights += r.get<"CNA_WEIGHT_SIZE0.WEIGHT_BYTES">();
    // A step is a window's tap, a block of input channels and one of output channels.
    const std::uint64_t taps = std::uint64_t{r.get<"CNA_DATA_SIZE3.DATAOUT_ATOMICS">()} *
                               r.get<"CNA_WEIGHT_SIZE2.WEIGHT_WIDTH">() *
                               r.get<"CNA_WEIGHT_SIZE2.WEIGHT_HEIGHT">();
    if (r.get<"CNA_CONV_CON1.CONV_MODE">() == spec::value::conv_mode::depthwise_)
        work.array += taps * whole(channels, spec::int8_depthwise_lanes);
    else
        work.array += taps * whole(channels * element, spec::kernel_lanes) *
                      whole(r.get<"CNA_WEIGHT_SIZE2.WEIGHT_KERNELS">(), spec::int8_group_kernels);
}

/// Of BS and BN, from memory.
void add_operands_by_channel(const RegisterSet& r, Work& work) {
    constexpr std::uint32_t biases = 1U << spec::value::operand::alu_,
                            correction = 1U << spec::value::operand::correction_;
    const std::uint64_t channels = std::uint64_t{r.get<"DPU_DATA_CUBE_CHANNEL.ORIG_CHANNEL">()} + 1;
    const std::uint32_t bs = r.get<"DPU_RDMA_BRDMA_CFG.BRDMA_DATA_USE">();
    if (bs == biases)
        work.bytes.operands += channels * sizeof(std::int32_t);
    else if (bs != 0)
        work.bytes.operands += whole(channels, spec::operand_group_channels) *
                               (spec::operand_group_bytes -
                                ((bs & correction) == 0 ? spec::operand_correction_bytes : 0));
    if (r.get<"DPU_RDMA_NRDMA_CFG.NRDMA_DATA_USE">() != 0)
        work.bytes.operands += channels * sizeof(std::int16_t);
}

}  // namespace

BytesMoved& BytesMoved::operator+=(const BytesMoved& other) {
    features += other.features;
    weights += other.weights;
    operands += other.operands;
    commands += other.commands;
    results += other.results;
    return *this;
}

Work& Work::operator+=(const Work& other) {
    bytes += other.bytes;
    array += other.array;
    tasks += other.tasks;
    return *this;
}

Work work_of(const Task& task) {
    Work work;
    work.tasks = 1;
    work.bytes.commands = task.words * word_bytes;
    add_cubes(task, work);
    if ((task.blocks & Blocks::cna) != 0) add_convolution(task.registers, work);
    constexpr std::uint32_t both = Blocks::dpu | Blocks::dpu_rdma;
    if ((task.blocks & both) == both) add_operands_by_channel(task.registers, work);
    return work;
}

std::uint64_t cycles_of(std::span<const Work> cores) {
    std::uint64_t array = 0, bytes = 0;
    std::size_t tasks = 0;
    for (const Work& work : cores) {
        array = std::max(array, work.array);
        tasks = std::max(tasks, work.tasks);
        bytes += work.bytes.total();
    }
    const double memory =
        static_cast<double>(bytes) / (cores.size() > 1 ? spec::assumed::bytes_per_cycle_of_all_cores
                                                       : spec::assumed::bytes_per_cycle);
    return std::max(array, static_cast<std::uint64_t>(memory)) +
           tasks * static_cast<std::uint64_t>(spec::assumed::task_cycles);
}

double bytes_per_cycle(std::size_t cores) {
    if (cores <= 1) return spec::assumed::bytes_per_cycle;
    return spec::assumed::bytes_per_cycle_of_all_cores / static_cast<double>(cores);
}

}  // namespace reef::rk3588
