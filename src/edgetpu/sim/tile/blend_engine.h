// Bilinear blends, a position at a time: the same results as TensorEngine.
#pragma once

#include "result_words.h"

namespace reef::edgetpu::sim {

class BlendEngine {
  public:
    /// Precondition: TensorPlan::blends.
    explicit BlendEngine(const TensorOp& op)
        : op_(&op), loops_(op.loops), in_(op.in), results_(op) {}
    Outcome advance(Work& work);

  private:
    bool position(Work& work);

    const TensorOp* op_;
    NestCursor loops_;
    NestCursor in_;
    ResultWords results_;
};

}  // namespace reef::edgetpu::sim
