// Bilinear blends, a position at a time: the same results as TensorEngine.
#pragma once

#include "tensor_engine.h"

namespace reef::edgetpu::sim {

class BlendEngine {
  public:
    /// Precondition: TensorPlan::blends.
    explicit BlendEngine(const TensorOp& op)
        : op_(&op), loops_(op.loops), in_(op.in), out_(op.out) {}
    Outcome advance(Work& work);

  private:
    bool position(Work& work);

    const TensorOp* op_;
    NestCursor loops_;
    NestCursor in_;
    NestCursor out_;
};

}  // namespace reef::edgetpu::sim
