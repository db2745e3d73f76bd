// Largest values and sums of parameters, one result after the other: the same as TensorEngine.
#pragma once

#include <array>
#include <cstdint>

#include "result_words.h"
#include "tensor_engine.h"

namespace reef::edgetpu::sim {

class ReductionEngine {
  public:
    /// Rows of a rotating buffer that are given back together.
    static constexpr std::size_t most_rows_of_group = 64;

    /// Precondition: TensorPlan::reduces.
    ReductionEngine(const TensorOp& op, const TensorShape& shape);
    Outcome advance(Work& work);

  private:
    // Inline, as in engines.h.
    inline bool take_steps(Work& work, std::uint32_t steps);
    [[nodiscard]] inline std::uint32_t steps_at_once(const Work& work) const;
    inline void add(const TileMemory& memory, std::uint32_t parameter);
    inline bool finish(Work& work);
    inline void count_events(Work& work, std::uint32_t steps);

    const TensorOp* op_;
    const TensorShape* shape_;
    unsigned lanes_;  ///< that are computed
    std::int32_t zero_;
    NestCursor loops_;
    NestCursor par_;
    ResultWords results_;
    std::uint64_t step_ = 0;
    std::uint64_t step_of_result_ = 0;
    std::array<std::int32_t, lane_count> sums_;  ///< of the result that is begun
    std::array<std::uint32_t, most_rows_of_group> group_rows_;
    std::size_t rows_of_group_ = 0;
};

}  // namespace reef::edgetpu::sim
