// The tensor engine by blocks of positions: the same results as TensorEngine, many steps at a time.
#pragma once

#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <vector>

#include "tensor_engine.h"
#include "tensor_kernels.h"
#include "tensor_plan.h"
#include "tensor_quads.h"

namespace reef::edgetpu::sim {

/// What plans need of a TensorScratch, in values of its arrays.
struct ScratchSizes {
    std::size_t weights = 0;
    std::size_t rows = 0;
    std::size_t reduction = 0;

    /// Precondition: plan.fast.
    void include(const TensorPlan& plan);
};

/// Memory of the engine's work within one advance(); made for the largest plans of a program.
struct TensorScratch {
    /// Positions that are computed at once.
    static constexpr std::size_t most_positions = QuadKernels::most_positions;

    std::array<std::uint32_t, most_positions> positions;  ///< bytes of narrow memory
    alignas(64) std::array<std::int32_t, lane_count> zeros;
    OutputRows stage;
    QuadParameters quads;
    std::vector<const std::uint8_t*> quad_rows;
    std::vector<std::uint8_t> quad_quarters;
    hwy::AlignedFreeUniquePtr<std::uint8_t[]> quad_bytes;
    hwy::AlignedFreeUniquePtr<std::int16_t[]> rows;
    hwy::AlignedFreeUniquePtr<std::int16_t[]> weights;
    hwy::AlignedFreeUniquePtr<std::int32_t[]> sums;
    hwy::AlignedFreeUniquePtr<std::uint8_t[]> values;
    ScratchSizes kept{};

    void reserve(const ScratchSizes& sizes);
};

/// What a tile's tensor engine keeps between instructions.
struct TensorState {
    Sums sums;  ///< of the plain engine
    /// Sums of positions that take several blocks: a row of the plan's lanes each.
    std::vector<std::int32_t> parts;

    /// For so many live positions and values of parts; kernels read whole vectors.
    void reserve(std::size_t positions, std::size_t values) {
        sums.resize(std::max(sums.size(), positions));
        parts.resize(std::max(parts.size(), values + lane_count));
    }
};

class FastTensorEngine {
  public:
    /// Precondition: plan.fast. `state` has room for the instruction's live positions, the scratch
    /// of every Work for the plan.
    FastTensorEngine(const TensorOp& op, const TensorShape& shape, const TensorPlan& plan,
                     TensorState& state);
    Outcome advance(Work& work);

  private:
    // Inline, as in engines.h.

    /// One block's place in the walk.
    struct Block {
        std::uint64_t position = 0;
        std::uint64_t group = 0;
        bool first = false;  ///< of its positions' sums
        bool last = false;
    };

    /// Index of the first that holds back the next block; as many as there are: none does.
    [[nodiscard]] inline std::size_t unmet_wait(const TileCounters& counters) const;
    [[nodiscard]] inline std::uint16_t needed_by(std::size_t wait) const;
    [[nodiscard]] inline Block block() const;
    inline bool read_zeros(const TileMemory& memory, std::uint64_t group);
    inline bool set_stage(const TileMemory& memory, std::uint64_t group);
    [[nodiscard]] inline bool halfwords_fit(const TileMemory& memory) const;
    [[nodiscard]] inline bool prepare(const Work& work, const Block& block);
    inline void pack(const TileMemory& memory);
    inline void point_at_rows(const TileMemory& memory);
    inline void multiply(const TileMemory& memory, std::size_t count, bool add, std::int32_t* sums);
    inline void run_block(Work& work, const Block& block);
    inline void finish(Work& work, const Block& block, const std::int32_t* sums, NestCursor& acc,
                       std::size_t count);
    inline void keep_sums(TileMemory& memory, const std::int32_t* sums, NestCursor& acc,
                          std::size_t count) const;
    inline void store(Work& work, std::size_t count, unsigned words, std::size_t stride);
    inline void store_words(TileMemory& memory, const std::uint8_t* values, std::size_t words);
    [[nodiscard]] inline NestCursor plain_out() const;
    inline void count_events(Work& work);
    inline Outcome hand_over(Work& work, bool moved);

    const TensorOp* op_;
    const TensorShape* shape_;
    const TensorPlan* plan_;
    TensorState* state_;
    TensorScratch* scratch_ = nullptr;  ///< of this advance()
    const TensorKernels* kernels_;
    const QuadKernels* quads_;  ///< null: the instruction's products are of pairs
    StepForm form_;
    unsigned used_lanes_;  ///< that can be seen; the plan's are rounded up
    NestCursor in_;
    NestCursor par_;
    NestCursor acc_;
    NestCursor position_;
    NestCursor out_;                 ///< of the plan
    std::uint64_t words_ = 0;        ///< stored
    std::uint64_t crop_events_ = 0;  ///< of a nest that crops, in this store()
    std::uint32_t step_ = 0;
    /// Whose zero points and output rows are laid out, in this advance().
    std::optional<std::uint64_t> prepared_group_;
    std::bitset<wide_rows> group_rows_;  ///< of rotating parameters, used by the current group
    /// Goes on where values came that the fast way has no room for.
    std::optional<TensorEngine> plain_;
};

}  // namespace reef::edgetpu::sim
