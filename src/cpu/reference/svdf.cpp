// SVDF: filters over the input, whose last results a state tensor keeps, and weights over that
// time; `rank` filters make one output unit. int8 with an int16 state, or float32.
//
// Float32 sums run from first to last here, in TFLite in four lanes: as in batch_matmul.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "cpu/prepare/dot_product.h"
#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {
namespace {

constexpr std::size_t svdf_features = 1, svdf_time = 2, svdf_bias = 3, svdf_state = 4;

struct SvdfSizes {
    std::size_t batches = 0, depth = 0, filters = 0, memory = 0, rank = 0;
    [[nodiscard]] std::size_t units() const { return filters / rank; }
};

struct IntegerSvdf {
    using Value = std::int8_t;
    using Weight = std::int8_t;
    using State = std::int16_t;
    using Bias = std::int32_t;
    std::int32_t zero_in = 0, zero_out = 0;
    Multiplier to_state, to_output;

    [[nodiscard]] State feature(const Value* x, const Weight* w, std::size_t count) const {
        const std::int32_t sum = dot_product(x, w, count, zero_in);
        return static_cast<State>(
            std::clamp(multiply_by_quantized_multiplier(sum, to_state), -32768, 32767));
    }
    [[nodiscard]] static Bias plus(Bias a, Bias b) {
        return static_cast<Bias>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
    }
    [[nodiscard]] Value value(Bias sum) const {
        const std::int64_t scaled =
            std::int64_t{multiply_by_quantized_multiplier(sum, to_output)} + zero_out;
        return static_cast<Value>(std::clamp<std::int64_t>(scaled, -128, 127));
    }
};

struct FloatSvdf {
    using Value = float;
    using Weight = float;
    using State = float;
    using Bias = float;
    Limits<float> clamp;

    [[nodiscard]] static float feature(const float* x, const float* w, std::size_t count) {
        return dot_product(x, w, count);
    }
    [[nodiscard]] static float plus(float a, float b) { return a + b; }
    [[nodiscard]] float value(float sum) const { return std::clamp(sum, clamp.min, clamp.max); }
};

template <typename Arithmetic>
class SvdfKernel final : public Kernel {
  public:
    using State = typename Arithmetic::State;
    using Bias = typename Arithmetic::Bias;

    SvdfKernel(Arithmetic arithmetic, SvdfSizes sizes) : arithmetic_(arithmetic), sizes_(sizes) {}
    [[nodiscard]] std::string name() const override { return "svdf reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        for (std::size_t batch = 0; batch < sizes_.batches; ++batch) {
            State* state = frame.state<State>(svdf_state) + batch * sizes_.filters * sizes_.memory;
            remember(frame, batch, state);
            auto* out = frame.out<typename Arithmetic::Value>(0) + batch * sizes_.units();
            for (std::size_t unit = 0; unit < sizes_.units(); ++unit)
                out[unit] = arithmetic_.value(recall(frame, unit, state));
        }
        return {};
    }

  private:
    /// The oldest result of every filter goes, the newest comes last.
    void remember(const Frame& frame, std::size_t batch, State* state) const {
        const auto* x = frame.in<typename Arithmetic::Value>(0) + batch * sizes_.depth;
        const auto* weights = frame.in<typename Arithmetic::Weight>(svdf_features);
        for (std::size_t filter = 0; filter < sizes_.filters; ++filter) {
            State* row = state + filter * sizes_.memory;
            std::copy(row + 1, row + sizes_.memory, row);
            row[sizes_.memory - 1] =
                arithmetic_.feature(x, weights + filter * sizes_.depth, sizes_.depth);
        }
    }

    [[nodiscard]] Bias recall(const Frame& frame, std::size_t unit, const State* state) const {
        Bias sum = frame.inputs[svdf_bias] == nullptr ? Bias{0} : frame.in<Bias>(svdf_bias)[unit];
        const State* weights = frame.in<State>(svdf_time);
        for (std::size_t r = 0; r < sizes_.rank; ++r) {
            const std::size_t at = (unit * sizes_.rank + r) * sizes_.memory;
            sum = arithmetic_.plus(sum, dot_product(state + at, weights + at, sizes_.memory));
        }
        return sum;
    }

    Arithmetic arithmetic_;
    SvdfSizes sizes_;
};

Result<SvdfSizes> check_svdf(const OperatorView& op, std::int32_t rank) {
    const auto& input = op.input(0).shape;
    const auto& features = op.input(svdf_features).shape;
    const auto& time = op.input(svdf_time).shape;
    if (input.size() != 2 || features.size() != 2 || time.size() != 2 || features[1] != input[1] ||
        time[0] != features[0] || time[1] < 1 || rank < 1 || features[0] % rank != 0)
        return fail(Cause::bad_input,
                    fmt::format("an input of {}, features of {}, time of {} and rank {}",
                                model::shape_text(input), model::shape_text(features),
                                model::shape_text(time), rank));
    // Sums of int8 products stay below 2^31.
    constexpr std::int32_t deepest = 1 << 15;
    if (input[1] > deepest)
        return fail(Cause::unsupported,
                    fmt::format("an input of {}, more than {}", input[1], deepest));
    const std::int32_t units = features[0] / rank;
    if (!op.input(svdf_state).is_variable)
        return fail(Cause::bad_input, "a state that is not a variable tensor");
    std::int64_t state = 0;
    if (__builtin_mul_overflow(features[0], time[1], &state) ||
        op.input(svdf_state).element_count() != input[0] * state)
        return fail(Cause::bad_input,
                    fmt::format("a state of {}", model::shape_text(op.input(svdf_state).shape)));
    if (op.has_input(svdf_bias)) REEF_CHECK(expect_shape(op.input(svdf_bias), "the bias", {units}));
    REEF_CHECK(expect_shape(op.output(0), "output 0", {input[0], units}));
    return SvdfSizes{static_cast<std::size_t>(input[0]), static_cast<std::size_t>(input[1]),
                     static_cast<std::size_t>(features[0]), static_cast<std::size_t>(time[1]),
                     static_cast<std::size_t>(rank)};
}

Status expect_svdf_types(const OperatorView& op, ElementType features, ElementType time,
                         ElementType bias) {
    REEF_CHECK(expect_type(op.input(svdf_features), "the feature weights", {features}));
    REEF_CHECK(expect_type(op.input(svdf_time), "the time weights", {time}));
    if (op.has_input(svdf_bias)) REEF_CHECK(expect_type(op.input(svdf_bias), "the bias", {bias}));
    REEF_CHECK(expect_type(op.input(svdf_state), "the state", {time}));
    return expect_type(op.output(0), "output 0", {op.input(0).type});
}

PreparedKernel integer_svdf(const OperatorView& op, SvdfSizes sizes) {
    REEF_CHECK(expect_svdf_types(op, ElementType::int8, ElementType::int16, ElementType::int32));
    const auto in = REEF_TRY(per_tensor_parameters(op.input(0)));
    const auto features = REEF_TRY(per_tensor_parameters(op.input(svdf_features)));
    const auto time = REEF_TRY(per_tensor_parameters(op.input(svdf_time)));
    const auto state = REEF_TRY(per_tensor_parameters(op.input(svdf_state)));
    const auto out = REEF_TRY(per_tensor_parameters(op.output(0)));
    if (features.zero_point != 0 || time.zero_point != 0 || state.zero_point != 0)
        return fail(Cause::unsupported, "weights or a state with a zero point");
    return std::make_unique<SvdfKernel<IntegerSvdf>>(
        IntegerSvdf{in.zero_point, out.zero_point,
                    REEF_TRY(checked_multiplier(in.scale * features.scale / state.scale)),
                    REEF_TRY(checked_multiplier(state.scale * time.scale / out.scale))},
        sizes);
}

}  // namespace

PreparedKernel prepare_svdf(const OperatorView& op, const PrepareOptions& /*options*/) {
    REEF_CHECK(op.expect_counts(1, 5, 1));
    const auto given = REEF_TRY(op.options<model::SvdfOptions>());
    for (const std::size_t needed : {std::size_t{0}, svdf_features, svdf_time, svdf_state})
        if (!op.has_input(needed))
            return fail(Cause::bad_input, fmt::format("input {} is missing", needed));
    const SvdfSizes sizes = REEF_TRY(check_svdf(op, given.rank));
    REEF_CHECK(expect_type(op.input(0), "input 0", {ElementType::int8, ElementType::float32}));
    if (op.input(0).type == ElementType::int8) {
        if (given.activation != model::Activation::relu)
            return fail(Cause::unsupported, "an int8 SVDF without the activation RELU");
        return integer_svdf(op, sizes);
    }
    REEF_CHECK(
        expect_svdf_types(op, ElementType::float32, ElementType::float32, ElementType::float32));
    return std::make_unique<SvdfKernel<FloatSvdf>>(
        FloatSvdf{REEF_TRY(float_activation_range(given.activation))}, sizes);
}

}  // namespace reef::cpu
