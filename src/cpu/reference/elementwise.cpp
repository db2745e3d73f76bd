#include "cpu/reference/elementwise.h"

#include <fmt/format.h>

#include <limits>

#include "cpu/reference/float_runs.h"
#include "cpu/reference/unary.h"

namespace reef::cpu {

namespace {

Result<Broadcast> check_pair(const OperatorView& op, std::initializer_list<ElementType> types) {
    REEF_CHECK(op.expect_counts(2, 2, 1));
    REEF_CHECK(expect_type(op.input(0), "input 0", types));
    auto broadcast = REEF_TRY(Broadcast::of(op.input(0).shape, op.input(1).shape));
    REEF_CHECK(expect_shape(op.output(0), "output 0", broadcast.output_shape()));
    return broadcast;
}

}  // namespace

Result<Broadcast> check_binary(const OperatorView& op, std::initializer_list<ElementType> types) {
    auto broadcast = REEF_TRY(check_pair(op, types));
    if (op.input(1).type != op.input(0).type || op.output(0).type != op.input(0).type)
        return fail(Cause::bad_input,
                    fmt::format("types {} and {} give {}, all three must be the same",
                                name_of(op.input(0).type), name_of(op.input(1).type),
                                name_of(op.output(0).type)));
    return broadcast;
}

Result<Broadcast> check_comparison(const OperatorView& op,
                                   std::initializer_list<ElementType> types) {
    auto broadcast = REEF_TRY(check_pair(op, types));
    REEF_CHECK(expect_type(op.output(0), "output 0", {ElementType::boolean}));
    if (op.input(1).type != op.input(0).type)
        return fail(Cause::bad_input,
                    fmt::format("{} is compared with {}", name_of(op.input(0).type),
                                name_of(op.input(1).type)));
    return broadcast;
}

PreparedKernel fast_float_binary(const char* name, Broadcast broadcast, FloatBinary what,
                                 Limits<float> clamp) {
    return binary_run_kernel<float>(
        std::string(name) + " fast " + std::string(simd_target()), std::move(broadcast),
        [what, clamp](const float* a, std::size_t a_step, const float* b, std::size_t b_step,
                      float* out, std::size_t count) {
            float_binary_fast(what, a, a_step, b, b_step, out, count, clamp);
        });
}

PreparedKernel fast_float_binary(const char* name, Broadcast broadcast, FloatBinary what) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    return fast_float_binary(name, std::move(broadcast), what, {-infinity, infinity});
}

PreparedKernel fast_float_function(const char* name, const OperatorView& op, FloatFunction what) {
    return unary_run_kernel<float, float>(std::string(name) + " fast " + std::string(simd_target()),
                                          op,
                                          [what](const float* in, float* out, std::size_t count) {
                                              float_function_fast(what, in, out, count);
                                          });
}

}  // namespace reef::cpu
