#include "rk3588/stream/task_work.h"

#include <algorithm>

#include "reef/rk3588/command_words.h"
#include "reef_spec/rk3588_machine.h"

namespace reef::rk3588 {
namespace {

std::uint64_t whole(std::uint64_t value, std::uint64_t step) {
    return (value + step - 1) / step;
}

std::uint64_t bytes_of_element(std::uint32_t precision) {
    using namespace spec::value::precision;
    if (precision == int32_ || precision == fp32_) return 4;
    return precision == int8_ ? 1 : 2;
}

/// Surfaces of so many pixels.
std::uint64_t cube_bytes(std::uint64_t pixels, std::uint64_t channels, std::uint64_t element) {
    return pixels * whole(channels * element, spec::atom_bytes) * spec::atom_bytes;
}

void add_convolution(const RegisterSet& r, Work& work) {
    const std::uint64_t element = bytes_of_element(r.get<"CNA_CONV_CON1.PROC_PRECISION">());
    const std::uint64_t pixels = std::uint64_t{r.get<"CNA_FC_DATA_SIZE0.DMA_WIDTH">()} *
                                 r.get<"CNA_FC_DATA_SIZE0.DMA_HEIGHT">();
    const std::uint64_t channels = r.get<"CNA_DATA_SIZE1.DATAIN_CHANNEL">();
    // A packed picture has no lanes that are empty.
    constexpr std::uint32_t packed_before_first = 7;
    const std::uint32_t packed = r.get<"CNA_CONV_CON1.ARGB_IN">();
    work.bytes.features += packed > packed_before_first
                               ? pixels * (packed - packed_before_first) * element
                               : cube_bytes(pixels, channels, element);
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

void add_operands(const RegisterSet& r, std::uint64_t pixels, std::uint64_t channels,
                  std::uint64_t element, Work& work) {
    constexpr std::uint32_t biases = 1U << spec::value::operand::alu_,
                            correction = 1U << spec::value::operand::correction_;
    const std::uint32_t bs = r.get<"DPU_RDMA_BRDMA_CFG.BRDMA_DATA_USE">();
    if (bs == biases)
        work.bytes.operands += channels * sizeof(std::int32_t);
    else if (bs != 0)
        work.bytes.operands += whole(channels, spec::operand_group_channels) *
                               (spec::operand_group_bytes -
                                ((bs & correction) == 0 ? spec::operand_correction_bytes : 0));
    if (r.get<"DPU_RDMA_NRDMA_CFG.NRDMA_DATA_USE">() != 0)
        work.bytes.operands += channels * sizeof(std::int16_t);
    const std::uint64_t cube = cube_bytes(pixels, channels, element);
    if (r.get<"DPU_RDMA_FEATURE_MODE_CFG.FLYING_MODE">() != 0) work.bytes.operands += cube;
    if (r.get<"DPU_RDMA_ERDMA_CFG.ERDMA_DISABLE">() == 0) work.bytes.operands += cube;
}

void add_results(const RegisterSet& r, std::uint32_t blocks, Work& work) {
    const std::uint64_t pixels = (std::uint64_t{r.get<"DPU_DATA_CUBE_WIDTH.WIDTH">()} + 1) *
                                 (std::uint64_t{r.get<"DPU_DATA_CUBE_HEIGHT.HEIGHT">()} + 1);
    const std::uint64_t channels = std::uint64_t{r.get<"DPU_DATA_CUBE_CHANNEL.ORIG_CHANNEL">()} + 1;
    const auto in = bytes_of_element(r.get<"DPU_DATA_FORMAT.PROC_PRECISION">());
    const auto out = bytes_of_element(r.get<"DPU_DATA_FORMAT.OUT_PRECISION">());
    work.bytes.results += cube_bytes(pixels, channels, out);
    if ((blocks & Blocks::dpu_rdma) != 0) add_operands(r, pixels, channels, in, work);
}

void add_pool(const RegisterSet& r, Work& work) {
    const std::uint64_t element = bytes_of_element(r.get<"PPU_DATA_FORMAT.PROC_PRECISION">());
    const std::uint64_t in = (std::uint64_t{r.get<"PPU_DATA_CUBE_IN_WIDTH.CUBE_IN_WIDTH">()} + 1) *
                             (std::uint64_t{r.get<"PPU_DATA_CUBE_IN_HEIGHT.CUBE_IN_HEIGHT">()} + 1);
    const std::uint64_t out =
        (std::uint64_t{r.get<"PPU_DATA_CUBE_OUT_WIDTH.CUBE_OUT_WIDTH">()} + 1) *
        (std::uint64_t{r.get<"PPU_DATA_CUBE_OUT_HEIGHT.CUBE_OUT_HEIGHT">()} + 1);
    const std::uint64_t channels =
        std::uint64_t{r.get<"PPU_DATA_CUBE_IN_CHANNEL.CUBE_IN_CHANNEL">()} + 1;
    work.bytes.operands += cube_bytes(in, channels, element);
    work.bytes.results += cube_bytes(out, channels, element);
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
    if ((task.blocks & Blocks::cna) != 0) add_convolution(task.registers, work);
    if ((task.blocks & Blocks::dpu) != 0) add_results(task.registers, task.blocks, work);
    if ((task.blocks & Blocks::ppu) != 0) add_pool(task.registers, work);
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
