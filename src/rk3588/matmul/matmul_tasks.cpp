#include "rk3588/matmul/matmul_tasks.h"

#include <array>

#include "reef_spec/rk3588_machine.h"
#include "rk3588/regs/register_order.h"

namespace reef::rk3588::matmul {
namespace {

/// The blocks in the order of the closed library's products: pointers, CNA, CORE, DPU.
constexpr auto order = in_order<104>(
    std::array{registers("DPU_S_POINTER"), registers("CNA_CONV_CON1", "CNA_FC_DATA_SIZE1"),
               registers("CNA_DCOMP_CTRL", "CNA_PAD_CON1"),
               registers("CORE_MISC_CFG", "CORE_UNDOCUMENTED_3030"),
               registers("DPU_FEATURE_MODE_CFG", "DPU_LUT_LO_SLOPE_SHIFT")});
constexpr std::size_t task_words_count = order.size() + spec::tail_words;
constexpr std::uint32_t task_blocks = Blocks::cna | Blocks::core | Blocks::dpu;
/// Tasks begin at such multiples.
constexpr std::size_t word_step = spec::task_alignment_bytes / sizeof(std::uint64_t);
constexpr std::size_t pitch = (task_words_count + word_step - 1) / word_step * word_step;

constexpr std::int64_t atom_size = static_cast<std::int64_t>(spec::atom_bytes);

std::int64_t i(std::size_t n) {
    return static_cast<std::int64_t>(n);
}

/// Rows of A one below the other: their bytes are the channels of single pixels.
void set_features(RegisterSet& r, const ProductShape& s, const ProductTask& t) {
    constexpr std::int64_t entry = spec::data_entry_bytes;
    const std::int64_t row_bytes = i(t.k * s.element_bytes());
    const std::int64_t line = i(s.stored_k() * s.element_bytes()) / atom_size;
    const bool half = s.elements == MatrixElements::fp16;
    const std::int64_t precision =
        half ? spec::value::precision::fp16_ : spec::value::precision::int8_;
    r.set<"CNA_CONV_CON1.IN_PRECISION">(precision);
    r.set<"CNA_CONV_CON1.PROC_PRECISION">(precision);
    r.set<"CNA_CONV_CON1.GROUP_LINE_OFF">(1);
    r.set<"CNA_CONV_CON2.FEATURE_GRAINS">(i(t.rows + spec::product_spare_grains));
    r.set<"CNA_CONV_CON3.CONV_X_STRIDE">(1);
    r.set<"CNA_CONV_CON3.CONV_Y_STRIDE">(1);
    r.set<"CNA_DATA_SIZE0.DATAIN_WIDTH">(1);
    r.set<"CNA_DATA_SIZE0.DATAIN_HEIGHT">(i(t.rows));
    r.set<"CNA_DATA_SIZE1.DATAIN_CHANNEL">(i(t.k));
    r.set<"CNA_DATA_SIZE1.DATAIN_CHANNEL_REAL">(i(t.k) - 1);
    r.set<"CNA_DATA_SIZE2.DATAOUT_WIDTH">(1);
    r.set<"CNA_DATA_SIZE3.DATAOUT_ATOMICS">(i(t.rows));
    r.set<"CNA_CBUF_CON0.DATA_BANK">(t.data_banks);
    r.set<"CNA_CBUF_CON0.WEIGHT_BANK">(t.weight_banks);
    r.set<"CNA_CBUF_CON0.WEIGHT_REUSE">(t.keeps_weights ? 1 : 0);
    r.set<"CNA_CBUF_CON1.DATA_ENTRIES">((row_bytes + entry - 1) / entry);
    r.set<"CNA_CVT_CON0.CVT_BYPASS">(1);
    r.set<"CNA_CVT_CON0.CVT_TYPE">(1);
    r.set<"CNA_CVT_CON0.DATA_SIGN">(1);
    r.set<"CNA_CVT_CON1.CVT_SCALE0">(1);
    r.set<"CNA_CVT_CON2.CVT_SCALE1">(1);
    r.set<"CNA_CVT_CON3.CVT_SCALE2">(1);
    r.set<"CNA_CVT_CON4.CVT_SCALE3">(1);
    r.set<"CNA_DMA_CON0.DATA_BURST_LEN">(spec::longest_burst);
    r.set<"CNA_DMA_CON0.WEIGHT_BURST_LEN">(spec::longest_burst);
    r.set<"CNA_DMA_CON1.LINE_STRIDE">(line);
    // The next atom of a row is the next surface.
    r.set<"CNA_DMA_CON2.SURF_STRIDE">(0);
    r.set<"CNA_FC_DATA_SIZE0.DMA_WIDTH">(1);
    r.set<"CNA_FC_DATA_SIZE0.DMA_HEIGHT">(i(t.rows));
    r.set<"CNA_FC_DATA_SIZE1.DMA_CHANNEL">(i(t.k));
}

void set_weights(RegisterSet& r, const ProductShape& s, const ProductTask& t) {
    const std::int64_t kernel = i(t.k * s.element_bytes());
    r.set<"CNA_WEIGHT_SIZE0.WEIGHT_BYTES">(kernel * i(t.columns));
    r.set<"CNA_WEIGHT_SIZE1.WEIGHT_BYTES_PER_KERNEL">(kernel);
    r.set<"CNA_WEIGHT_SIZE2.WEIGHT_WIDTH">(1);
    r.set<"CNA_WEIGHT_SIZE2.WEIGHT_HEIGHT">(1);
    r.set<"CNA_WEIGHT_SIZE2.WEIGHT_KERNELS">(i(t.columns));
}

/// All stages off; sums of four bytes go out as they are, row by row.
void set_results(RegisterSet& r, const ProductShape& s, const ProductTask& t) {
    constexpr std::int64_t to_memory = 2;
    const bool half = s.elements == MatrixElements::fp16;
    const std::int64_t in = half ? spec::value::precision::fp16_ : spec::value::precision::int8_;
    const std::int64_t out = half ? spec::value::precision::fp32_ : spec::value::precision::int32_;
    const std::int64_t planes = half ? 4 : 8;
    r.set<"CORE_MISC_CFG.PROC_PRECISION">(in);
    r.set<"CORE_DATAOUT_SIZE_0.DATAOUT_HEIGHT">(i(t.rows) - 1);
    r.set<"CORE_DATAOUT_SIZE_1.DATAOUT_CHANNEL">(i(t.columns) - 1);
    r.set<"DPU_S_POINTER.POINTER_PP_EN">(1);
    r.set<"DPU_S_POINTER.EXECUTER_PP_EN">(1);
    r.set<"DPU_S_POINTER.POINTER_PP_MODE">(1);
    r.set<"DPU_FEATURE_MODE_CFG.OUTPUT_MODE">(to_memory);
    r.set<"DPU_FEATURE_MODE_CFG.BURST_LEN">(spec::longest_burst);
    r.set<"DPU_DATA_FORMAT.IN_PRECISION">(in);
    r.set<"DPU_DATA_FORMAT.PROC_PRECISION">(in);
    r.set<"DPU_DATA_FORMAT.OUT_PRECISION">(out);
    // Surfaces of one row follow each other; the notch leads to the next row.
    const std::int64_t row_atoms = i(s.stored_n()) * 4 / atom_size;
    r.set<"DPU_DST_SURF_STRIDE.DST_SURF_STRIDE">(1);
    r.set<"DPU_SURFACE_ADD.SURF_ADD">(planes);
    r.set<"DPU_DATA_CUBE_NOTCH_ADDR.NOTCH_ADDR_0">(row_atoms - 1);
    r.set<"DPU_DATA_CUBE_NOTCH_ADDR.NOTCH_ADDR_1">(row_atoms - 1);
    r.set<"DPU_DATA_CUBE_HEIGHT.HEIGHT">(i(t.rows) - 1);
    r.set<"DPU_DATA_CUBE_CHANNEL.ORIG_CHANNEL">(i(t.columns) - 1);
    r.set<"DPU_DATA_CUBE_CHANNEL.CHANNEL">(i(t.columns) - 1);
    r.set<"DPU_WDMA_SIZE_0.CHANNEL_WDMA">(i(t.columns) - 1);
    r.set<"DPU_WDMA_SIZE_1.HEIGHT_WDMA">(i(t.rows) - 1);
    r.set<"DPU_BS_CFG.BS_BYPASS">(1);
    r.set<"DPU_BS_CFG.BS_ALU_BYPASS">(1);
    r.set<"DPU_BS_CFG.BS_MUL_BYPASS">(1);
    r.set<"DPU_BS_CFG.BS_RELU_BYPASS">(1);
    r.set<"DPU_BS_OW_CFG.OD_BYPASS">(1);
    r.set<"DPU_BS_OW_CFG.SIZE_E_0">(planes - 1);
    r.set<"DPU_BS_OW_CFG.SIZE_E_1">(planes - 1);
    r.set<"DPU_BS_OW_CFG.SIZE_E_2">(planes - 1);
    r.set<"DPU_BN_CFG.BN_BYPASS">(1);
    r.set<"DPU_BN_CFG.BN_ALU_BYPASS">(1);
    r.set<"DPU_BN_CFG.BN_MUL_BYPASS">(1);
    r.set<"DPU_BN_CFG.BN_RELU_BYPASS">(1);
    r.set<"DPU_EW_CFG.EW_BYPASS">(1);
    r.set<"DPU_EW_CFG.EW_OP_BYPASS">(1);
    r.set<"DPU_EW_CFG.EW_LUT_BYPASS">(1);
    r.set<"DPU_EW_CFG.EW_OP_CVT_BYPASS">(1);
    r.set<"DPU_EW_CFG.EW_RELU_BYPASS">(1);
    r.set<"DPU_EW_CVT_SCALE_VALUE.EW_OP_CVT_SCALE">(1);
    r.set<"DPU_OUT_CVT_SCALE.OUT_CVT_SCALE">(1);
}

RegisterSet registers_of(const ProductShape& s, const ProductTask& t, const MatrixPlaces& places) {
    RegisterSet r;
    set_features(r, s, t);
    set_weights(r, s, t);
    set_results(r, s, t);
    const std::size_t bytes = s.element_bytes();
    r.set<"CNA_FEATURE_DATA_ADDR.FEATURE_BASE_ADDR">(
        i(places.a + (t.first_row * s.stored_k() + t.first_k) * bytes));
    // Stretches of B's rows in front are complete; in this one, kernels of so many lanes.
    r.set<"CNA_DCOMP_ADDR0.DECOMPRESS_ADDR0">(
        i(places.b + (t.first_k * s.stored_n() + t.first_column * t.k) * bytes));
    const std::size_t of_stretch = s.stored_m() * s.stored_n();
    r.set<"DPU_DST_BASE_ADDR.DST_BASE_ADDR">(
        i(places.c + (t.k_tile * of_stretch + t.first_row * s.stored_n() + t.first_column) *
                         sizeof(std::int32_t)));
    return r;
}

}  // namespace

std::size_t word_count(const ProductPlan& plan) {
    std::size_t tasks = 0;
    for (const auto& core : plan.cores) tasks += core.size();
    return tasks * pitch;
}

Result<ProductWords> product_words(const ProductShape& shape, const ProductPlan& plan,
                                   const MatrixPlaces& places, std::uint32_t commands) {
    ProductWords out;
    for (const auto& tasks : plan.cores) {
        auto& core = out.cores.emplace_back();
        for (std::size_t t = 0; t < tasks.size(); ++t) {
            NextTask next;
            const std::size_t first = out.words.size(), behind = first + pitch;
            if (t + 1 < tasks.size())
                next = {static_cast<std::uint32_t>(commands + behind * sizeof(std::uint64_t)),
                        static_cast<std::uint32_t>(task_words_count)};
            const auto words = REEF_TRY(
                task_words(registers_of(shape, tasks[t], places), order, task_blocks, next));
            out.words.insert(out.words.end(), words.begin(), words.end());
            out.words.resize(behind, 0);
            core.push_back({static_cast<std::uint32_t>(first),
                            static_cast<std::uint32_t>(task_words_count), task_blocks});
        }
    }
    return out;
}

}  // namespace reef::rk3588::matmul
