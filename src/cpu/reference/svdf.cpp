// SVDF: filters over the input, whose last results a state tensor keeps, and weights over that
// time; `rank` filters make one output unit. int8 with an int16 state, float32, or float32 on int8
// weights, of which those over time are float32 in each run and exact sums are taken of the others.
//
// Float32 sums run from first to last here, in TFLite in four lanes: as in batch_matmul.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include "cpu/prepare/dot_product.h"
#include "cpu/prepare/hybrid.h"
#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"
#include "graph/packed_inputs.h"

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

    [[nodiscard]] static const State* time(const Frame& frame) {
        return frame.in<State>(svdf_time);
    }
    [[nodiscard]] static Result<const Value*> row(std::span<const Value> x, const Frame&) {
        return x.data();
    }
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

    [[nodiscard]] static const float* time(const Frame& frame) {
        return frame.in<float>(svdf_time);
    }
    [[nodiscard]] static Result<const float*> row(std::span<const float> x, const Frame&) {
        return x.data();
    }
    [[nodiscard]] static float feature(const float* x, const float* w, std::size_t count) {
        return dot_product(x, w, count);
    }
    [[nodiscard]] static float plus(float a, float b) { return a + b; }
    [[nodiscard]] float value(float sum) const { return std::clamp(sum, clamp.min, clamp.max); }
};

struct HybridSvdf : FloatSvdf {
    using Weight = std::int8_t;
    struct Row {
        const std::int16_t* steps;
        float scale;  ///< times the weights'
    };
    bool asymmetric = false;
    float weight_scale = 1;
    float time_scale = 1;
    SharedBytes time_weights = {};  ///< none once they are packed
    std::vector<float> times = {};

    void pack() {
        times.reserve(time_weights.size());
        for (const std::byte weight : time_weights.view())
            times.push_back(static_cast<float>(std::to_integer<std::int8_t>(weight)) * time_scale);
        time_weights = {};
    }
    [[nodiscard]] const float* time(const Frame&) const { return times.data(); }
    [[nodiscard]] Status expect(std::span<const float> rows, std::size_t depth) const {
        return expect_steps(rows, depth, asymmetric);
    }
    [[nodiscard]] Result<Row> row(std::span<const float> x, const Frame& frame) const {
        auto* steps = reinterpret_cast<std::int16_t*>(frame.scratch.data());
        const float scale = REEF_TRY(write_steps(x, asymmetric, steps));
        return Row{steps, scale * weight_scale};
    }
    [[nodiscard]] static float feature(const Row& x, const std::int8_t* w, std::size_t count) {
        return static_cast<float>(dot_product(x.steps, w, count)) * x.scale;
    }
};

template <typename Arithmetic>
class SvdfKernel final : public Kernel, public graph::PacksInputs {
  public:
    using Value = typename Arithmetic::Value;
    using State = typename Arithmetic::State;
    using Bias = typename Arithmetic::Bias;
    static constexpr bool hybrid = std::is_same_v<Arithmetic, HybridSvdf>;

    SvdfKernel(Arithmetic arithmetic, SvdfSizes sizes)
        : arithmetic_(std::move(arithmetic)), sizes_(sizes) {}
    [[nodiscard]] std::string name() const override {
        return hybrid ? "svdf hybrid" : "svdf reference";
    }
    [[nodiscard]] std::size_t scratch_bytes() const override {
        return hybrid ? sizes_.depth * sizeof(std::int16_t) : 0;
    }
    [[nodiscard]] std::size_t packed_bytes() const override {
        return hybrid ? sizes_.filters * sizes_.memory * sizeof(float) : 0;
    }
    [[nodiscard]] bool reads_input(std::size_t i) const override {
        return !hybrid || i != svdf_time;
    }
    void pack() override {
        if constexpr (hybrid) arithmetic_.pack();
    }

    [[nodiscard]] Status run(const Frame& frame) override {
        // Before any state has changed.
        if constexpr (hybrid)
            REEF_CHECK(arithmetic_.expect({frame.in<float>(0), sizes_.batches * sizes_.depth},
                                          sizes_.depth));
        for (std::size_t batch = 0; batch < sizes_.batches; ++batch) {
            State* state = frame.state<State>(svdf_state) + batch * sizes_.filters * sizes_.memory;
            const Value* x = frame.in<Value>(0) + batch * sizes_.depth;
            remember(frame, REEF_TRY(arithmetic_.row({x, sizes_.depth}, frame)), state);
            Value* out = frame.out<Value>(0) + batch * sizes_.units();
            for (std::size_t unit = 0; unit < sizes_.units(); ++unit)
                out[unit] = arithmetic_.value(recall(frame, unit, state));
        }
        return {};
    }

  private:
    /// The oldest result of every filter goes, the newest comes last.
    void remember(const Frame& frame, const auto& x, State* state) const {
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
        const State* weights = arithmetic_.time(frame);
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
    if (__builtin_mul_overflow(std::int64_t{features[0]} * time[1], input[0], &state) ||
        op.input(svdf_state).element_count() != state)
        return fail(Cause::bad_input,
                    fmt::format("a state of {}", model::shape_text(op.input(svdf_state).shape)));
    if (op.has_input(svdf_bias)) REEF_CHECK(expect_shape(op.input(svdf_bias), "the bias", {units}));
    REEF_CHECK(expect_shape(op.output(0), "output 0", {input[0], units}));
    return SvdfSizes{static_cast<std::size_t>(input[0]), static_cast<std::size_t>(input[1]),
                     static_cast<std::size_t>(features[0]), static_cast<std::size_t>(time[1]),
                     static_cast<std::size_t>(rank)};
}

constexpr const char* feature_weights = "the feature weights";
constexpr const char* time_weights = "the time weights";

Status expect_weight_types(const OperatorView& op, ElementType features, ElementType time) {
    REEF_CHECK(expect_type(op.input(svdf_features), feature_weights, {features}));
    return expect_type(op.input(svdf_time), time_weights, {time});
}
Status expect_other_types(const OperatorView& op, ElementType state, ElementType bias) {
    if (op.has_input(svdf_bias)) REEF_CHECK(expect_type(op.input(svdf_bias), "the bias", {bias}));
    REEF_CHECK(expect_type(op.input(svdf_state), "the state", {state}));
    return expect_type(op.output(0), "output 0", {op.input(0).type});
}

PreparedKernel integer_svdf(const OperatorView& op, SvdfSizes sizes) {
    REEF_CHECK(expect_weight_types(op, ElementType::int8, ElementType::int16));
    REEF_CHECK(expect_other_types(op, ElementType::int16, ElementType::int32));
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

PreparedKernel hybrid_svdf(const OperatorView& op, SvdfSizes sizes, FloatSvdf floats,
                           bool asymmetric) {
    HybridSvdf hybrid{floats};
    hybrid.asymmetric = asymmetric;
    hybrid.weight_scale = REEF_TRY(hybrid_weight_scale(op, svdf_features, feature_weights));
    hybrid.time_scale = REEF_TRY(hybrid_weight_scale(op, svdf_time, time_weights));
    hybrid.time_weights = op.shared_constant(svdf_time);
    return std::make_unique<SvdfKernel<HybridSvdf>>(std::move(hybrid), sizes);
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
    REEF_CHECK(expect_other_types(op, ElementType::float32, ElementType::float32));
    const FloatSvdf floats{REEF_TRY(float_activation_range(given.activation))};
    if (op.input(svdf_features).type == ElementType::int8)
        return hybrid_svdf(op, sizes, floats, given.asymmetric_quantize_inputs);
    REEF_CHECK(expect_weight_types(op, ElementType::float32, ElementType::float32));
    return std::make_unique<SvdfKernel<FloatSvdf>>(floats, sizes);
}

}  // namespace reef::cpu
