#include "rk3588/small_tasks.h"

namespace reef::rk3588::test {
namespace {

void set_dpu_cube(RegisterSet& set, unsigned width, unsigned height, unsigned channels,
                  unsigned step) {
    const unsigned whole = (channels + step - 1) / step * step;
    set.set<"DPU_DATA_CUBE_WIDTH.WIDTH">(width - 1);
    set.set<"DPU_DATA_CUBE_HEIGHT.HEIGHT">(height - 1);
    set.set<"DPU_DATA_CUBE_CHANNEL.CHANNEL">(whole - 1);
    set.set<"DPU_DATA_CUBE_CHANNEL.ORIG_CHANNEL">(channels - 1);
    set.set<"DPU_WDMA_SIZE_0.CHANNEL_WDMA">(whole - 1);
    set.set<"DPU_WDMA_SIZE_1.WIDTH_WDMA">(width - 1);
    set.set<"DPU_WDMA_SIZE_1.HEIGHT_WDMA">(height - 1);
    set.set<"DPU_RDMA_DATA_CUBE_WIDTH.WIDTH">(width - 1);
    set.set<"DPU_RDMA_DATA_CUBE_HEIGHT.HEIGHT">(height - 1);
    set.set<"DPU_RDMA_DATA_CUBE_CHANNEL.CHANNEL">(whole - 1);
    set.set<"DPU_DST_SURF_STRIDE.DST_SURF_STRIDE">(width * height);
    set.set<"DPU_RDMA_ERDMA_CFG.ERDMA_DISABLE">(1);
    set.write(register_named("DPU_BS_CFG"), 0x53);
    set.write(register_named("DPU_BN_CFG"), 0x53);
    set.write(register_named("DPU_EW_CFG"), 0x383);
    set.set<"DPU_OUT_CVT_SCALE.OUT_CVT_SCALE">(1);
}

}  // namespace

std::uint32_t SmallProgram::add(std::vector<std::byte> bytes) {
    const std::uint32_t address = next_;
    next_ += static_cast<std::uint32_t>((bytes.size() + 0xfff) / 0x1000 * 0x1000) + 0x1000;
    auto& buffer = buffers_[address] = std::move(bytes);
    if (!memory.add(address, buffer)) std::abort();
    return address;
}

Result<sim::RunReport> SmallProgram::run(const RegisterSet& registers, std::uint32_t blocks,
                                         const sim::Switches& switches) {
    if (!machine_) machine_ = std::make_unique<sim::Machine>(memory, switches);
    const auto words = REEF_TRY(task_words(registers, blocks));
    return machine_->run(add_numbers(words), words.size());
}

Result<sim::RunReport> SmallProgram::run(const FunctionEntries& entries,
                                         const RegisterSet& registers, std::uint32_t blocks,
                                         const sim::Switches& switches) {
    if (!machine_) machine_ = std::make_unique<sim::Machine>(memory, switches);
    auto words = entries.words();
    const auto others = REEF_TRY(task_words(registers, blocks));
    words.insert(words.end(), others.begin(), others.end());
    return machine_->run(add_numbers(words), words.size());
}

std::vector<std::uint64_t> FunctionEntries::words() const {
    constexpr std::uint32_t write_le = 0x20000, write_lo = 0x30000;
    constexpr RegisterIndex access = register_named("DPU_LUT_ACCESS_CFG"),
                            data = register_named("DPU_LUT_ACCESS_DATA");
    std::vector<std::uint64_t> words;
    for (const auto& [first, table] : {std::pair(write_le, &le), std::pair(write_lo, &lo)}) {
        words.push_back(register_word(access, first));
        for (const std::int16_t v : *table)
            words.push_back(register_word(data, static_cast<std::uint16_t>(v)));
    }
    return words;
}

unsigned SmallConvolution::out_width() const {
    return (width + pad_left + pad_right - ((kernel_width - 1) * dilation + 1)) / stride + 1;
}

unsigned SmallConvolution::out_height() const {
    return (height + pad_top + pad_bottom - ((kernel_height - 1) * dilation + 1)) / stride + 1;
}

RegisterSet SmallConvolution::registers() const {
    RegisterSet set;
    const unsigned ow = out_width(), oh = out_height(), atoms = lanes() / 16;
    const unsigned made = depthwise ? (channels + 63) / 64 * 64 : (kernels + 31) / 32 * 32;
    const unsigned of_kernel = kernel_width * kernel_height * lanes();
    const unsigned known_kernels = depthwise ? 1 : kernels;
    set.set<"CNA_CONV_CON1.CONV_MODE">(depthwise ? 3 : 0);
    set.set<"CNA_CONV_CON3.CONV_X_STRIDE">(stride);
    set.set<"CNA_CONV_CON3.CONV_Y_STRIDE">(stride);
    set.set<"CNA_CONV_CON3.ATROUS_X_DILATION">(dilation - 1);
    set.set<"CNA_CONV_CON3.ATROUS_Y_DILATION">(dilation - 1);
    set.set<"CNA_DATA_SIZE0.DATAIN_WIDTH">(width);
    set.set<"CNA_DATA_SIZE0.DATAIN_HEIGHT">(height);
    set.set<"CNA_DATA_SIZE1.DATAIN_CHANNEL">(lanes());
    set.set<"CNA_DATA_SIZE1.DATAIN_CHANNEL_REAL">(lanes() - 1);
    set.set<"CNA_DATA_SIZE2.DATAOUT_WIDTH">(ow);
    set.set<"CNA_DATA_SIZE3.DATAOUT_ATOMICS">(ow * oh);
    set.set<"CNA_WEIGHT_SIZE0.WEIGHT_BYTES">(of_kernel * known_kernels);
    set.set<"CNA_WEIGHT_SIZE1.WEIGHT_BYTES_PER_KERNEL">(of_kernel);
    set.set<"CNA_WEIGHT_SIZE2.WEIGHT_WIDTH">(kernel_width);
    set.set<"CNA_WEIGHT_SIZE2.WEIGHT_HEIGHT">(kernel_height);
    set.set<"CNA_WEIGHT_SIZE2.WEIGHT_KERNELS">(known_kernels);
    set.set<"CNA_CBUF_CON0.DATA_BANK">(data_banks);
    set.set<"CNA_CBUF_CON0.WEIGHT_BANK">(weight_banks);
    set.set<"CNA_CBUF_CON1.DATA_ENTRIES">((width * atoms * 16 + 63) / 64);
    set.set<"CNA_CVT_CON0.CVT_BYPASS">(1);
    set.set<"CNA_PAD_CON0.PAD_LEFT">(pad_left);
    set.set<"CNA_PAD_CON0.PAD_TOP">(pad_top);
    set.set<"CNA_PAD_CON1.PAD_VALUE">(pad_value);
    set.set<"CNA_FEATURE_DATA_ADDR.FEATURE_BASE_ADDR">(features);
    set.set<"CNA_DMA_CON1.LINE_STRIDE">(4 * width);
    set.set<"CNA_DMA_CON2.SURF_STRIDE">(std::int64_t{width} * height - 4 * std::int64_t{width});
    set.set<"CNA_FC_DATA_SIZE0.DMA_WIDTH">(width);
    set.set<"CNA_FC_DATA_SIZE0.DMA_HEIGHT">(height);
    set.set<"CNA_FC_DATA_SIZE1.DMA_CHANNEL">(lanes());
    set.set<"CNA_DCOMP_ADDR0.DECOMPRESS_ADDR0">(weights);
    set.set<"CORE_MISC_CFG.QD_EN">(1);
    set.set<"CORE_MISC_CFG.DW_EN">(depthwise ? 1 : 0);
    set.set<"CORE_DATAOUT_SIZE_0.DATAOUT_WIDTH">(ow - 1);
    set.set<"CORE_DATAOUT_SIZE_0.DATAOUT_HEIGHT">(oh - 1);
    set.set<"CORE_DATAOUT_SIZE_1.DATAOUT_CHANNEL">(made - 1);
    set_dpu_cube(set, ow, oh, results_channels(), depthwise ? 64 : 32);
    const unsigned surfaces = depthwise ? 4 : 2;
    set.write(register_named("DPU_FEATURE_MODE_CFG"), depthwise ? 0x1fc : 0x1e4);
    set.set<"DPU_DST_BASE_ADDR.DST_BASE_ADDR">(results);
    set.set<"DPU_SURFACE_ADD.SURF_ADD">(surfaces * ow * oh);
    set.write(register_named("DPU_BS_CFG"), 0x20150);
    set.set<"DPU_BS_OW_CFG.SIZE_E_0">(surfaces - 1);
    set.set<"DPU_BS_OW_CFG.SIZE_E_1">(surfaces - 1);
    set.set<"DPU_BS_OW_CFG.SIZE_E_2">(surfaces - 1);
    set.set<"DPU_BS_OW_OP.OW_OP">(-weight_zero);
    set.set<"DPU_RDMA_BRDMA_CFG.BRDMA_DATA_USE">(1);
    set.set<"DPU_RDMA_BS_BASE_ADDR.BS_BASE_ADDR">(biases);
    set.write(register_named("DPU_RDMA_FEATURE_MODE_CFG"), depthwise ? 0x7816 : 0x7810);
    return set;
}

RegisterSet flying_copy(unsigned width, unsigned height, unsigned channels, std::uint32_t from,
                        std::uint32_t to) {
    RegisterSet set;
    set_dpu_cube(set, width, height, channels, 16);
    set.write(register_named("DPU_FEATURE_MODE_CFG"), 0x1e5);
    set.set<"DPU_DST_BASE_ADDR.DST_BASE_ADDR">(to);
    set.set<"DPU_SURFACE_ADD.SURF_ADD">(width * height);
    set.set<"DPU_BS_OW_CFG.OD_BYPASS">(1);
    set.set<"DPU_RDMA_SRC_BASE_ADDR.SRC_BASE_ADDR">(from);
    set.write(register_named("DPU_RDMA_FEATURE_MODE_CFG"), 0x7801);
    return set;
}

RegisterSet flying_function(unsigned width, unsigned height, unsigned channels, std::uint32_t from,
                            std::uint32_t to) {
    RegisterSet set = flying_copy(width, height, channels, from, to);
    set.write(register_named("DPU_EW_CFG"), 0x302);
    set.write(register_named("DPU_LUT_CFG"), 0x68);
    set.write(register_named("DPU_LUT_INFO"), 0x40400);
    set.set<"DPU_LUT_LE_START.LUT_LE_START">(-64);
    set.set<"DPU_LUT_LO_END.LUT_LO_END">(64);
    set.set<"DPU_LUT_LE_SLOPE_SCALE.LUT_LE_SLOPE_UFLOW_SCALE">(-3);
    set.set<"DPU_LUT_LE_SLOPE_SHIFT.LUT_LE_SLOPE_UFLOW_SHIFT">(1);
    set.set<"DPU_LUT_LO_SLOPE_SCALE.LUT_LO_SLOPE_OFLOW_SCALE">(1);
    set.set<"DPU_LUT_LO_SLOPE_SHIFT.LUT_LO_SLOPE_OFLOW_SHIFT">(2);
    set.set<"DPU_LUT_LO_SLOPE_SCALE.LUT_LO_SLOPE_UFLOW_SCALE">(2);
    set.set<"DPU_LUT_LO_SLOPE_SHIFT.LUT_LO_SLOPE_UFLOW_SHIFT">(3);
    return set;
}

RegisterSet pooling(unsigned width, unsigned height, unsigned channels, unsigned kernel,
                    unsigned stride, std::uint32_t method, std::uint32_t from, std::uint32_t to) {
    RegisterSet set;
    const unsigned ow = (width - kernel) / stride + 1, oh = (height - kernel) / stride + 1;
    set.set<"PPU_DATA_CUBE_IN_WIDTH.CUBE_IN_WIDTH">(width - 1);
    set.set<"PPU_DATA_CUBE_IN_HEIGHT.CUBE_IN_HEIGHT">(height - 1);
    set.set<"PPU_DATA_CUBE_IN_CHANNEL.CUBE_IN_CHANNEL">(channels - 1);
    set.set<"PPU_DATA_CUBE_OUT_WIDTH.CUBE_OUT_WIDTH">(ow - 1);
    set.set<"PPU_DATA_CUBE_OUT_HEIGHT.CUBE_OUT_HEIGHT">(oh - 1);
    set.set<"PPU_DATA_CUBE_OUT_CHANNEL.CUBE_OUT_CHANNEL">(channels - 1);
    set.set<"PPU_OPERATION_MODE_CFG.POOLING_METHOD">(method);
    set.set<"PPU_OPERATION_MODE_CFG.FLYING_MODE">(1);
    set.set<"PPU_POOLING_KERNEL_CFG.KERNEL_WIDTH">(kernel - 1);
    set.set<"PPU_POOLING_KERNEL_CFG.KERNEL_HEIGHT">(kernel - 1);
    set.set<"PPU_POOLING_KERNEL_CFG.KERNEL_STRIDE_WIDTH">(stride - 1);
    set.set<"PPU_POOLING_KERNEL_CFG.KERNEL_STRIDE_HEIGHT">(stride - 1);
    set.set<"PPU_RECIP_KERNEL_WIDTH.RECIP_KERNEL_WIDTH">(65536 / kernel);
    set.set<"PPU_RECIP_KERNEL_HEIGHT.RECIP_KERNEL_HEIGHT">(65536 / kernel);
    set.set<"PPU_DST_BASE_ADDR.DST_BASE_ADDR">(to / 16);
    set.set<"PPU_DST_SURF_STRIDE.DST_SURF_STRIDE">(ow * oh);
    set.set<"PPU_DATA_FORMAT.INDEX_ADD">(ow * oh);
    set.set<"PPU_RDMA_CUBE_IN_WIDTH.CUBE_IN_WIDTH">(width - 1);
    set.set<"PPU_RDMA_CUBE_IN_HEIGHT.CUBE_IN_HEIGHT">(height - 1);
    set.set<"PPU_RDMA_CUBE_IN_CHANNEL.CUBE_IN_CHANNEL">(channels - 1);
    set.set<"PPU_RDMA_SRC_BASE_ADDR.SRC_BASE_ADDR">(from);
    set.set<"PPU_RDMA_SRC_LINE_STRIDE.SRC_LINE_STRIDE">(width);
    set.set<"PPU_RDMA_SRC_SURF_STRIDE.SRC_SURF_STRIDE">(width * height);
    set.set<"PPU_RDMA_DATA_FORMAT.IN_PRECISION">(1);
    return set;
}

}  // namespace reef::rk3588::test
