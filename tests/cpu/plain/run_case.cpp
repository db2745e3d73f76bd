#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "cpu/plain/operator_case.h"
#include "cpu/prepare/kernel.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"

namespace reef::plain {
namespace {

template <typename T>
void append(std::vector<std::byte>& bytes, double value) {
    const T number = static_cast<T>(value);
    const auto* first = reinterpret_cast<const std::byte*>(&number);
    bytes.insert(bytes.end(), first, first + sizeof(T));
}

/// Precondition: float16 has the value.
std::uint16_t half_bits(double value) {
    const std::uint32_t sign = std::signbit(value) ? 0x8000U : 0;
    if (value == 0) return static_cast<std::uint16_t>(sign);
    const int exponent = std::max(std::ilogb(value), -14);
    const auto steps = static_cast<std::uint32_t>(std::ldexp(std::abs(value), 10 - exponent));
    // The leading one of a normal number adds to its exponent.
    return static_cast<std::uint16_t>(sign + (static_cast<std::uint32_t>(exponent + 14) << 10) +
                                      steps);
}

template <typename T>
double number_at(Bytes bytes, std::size_t i) {
    T value{};
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return static_cast<double>(value);
}

double stored_at(ElementType type, Bytes bytes, std::size_t i) {
    switch (type) {
        case ElementType::uint8:
        case ElementType::boolean:
            return number_at<std::uint8_t>(bytes, i);
        case ElementType::int8:
            return number_at<std::int8_t>(bytes, i);
        case ElementType::int16:
            return number_at<std::int16_t>(bytes, i);
        case ElementType::int32:
            return number_at<std::int32_t>(bytes, i);
        case ElementType::int64:
            return number_at<std::int64_t>(bytes, i);
        default:
            return number_at<float>(bytes, i);
    }
}

model::Quantization quantisation(const Values& values) {
    if (values.scales.empty()) return {};
    if (values.scales.size() == 1) return model::per_tensor(values.scales[0], values.zero);
    return model::per_channel(values.scales, values.axis);
}

model::TensorIndex add_tensor(model::Builder& builder, const Values& values) {
    switch (values.role) {
        case Role::absent:
            return model::absent_tensor;
        case Role::state:
            return builder.variable("state", values.type, values.shape, quantisation(values));
        case Role::constant:
            return builder.constant_bytes("constant", values.type, values.shape,
                                          stored_bytes(values), quantisation(values));
        default:
            return builder.input("in", values.type, values.shape, quantisation(values));
    }
}

using Outputs = std::vector<std::vector<std::byte>>;

Result<Outputs> run(const model::Model& model, const OperatorCase& one, cpu::KernelSet kernels,
                    int threads) {
    auto executor = REEF_TRY(graph::Executor::create(
        model, {.placers = {cpu::placer({.kernels = kernels})}, .threads = threads}));
    std::size_t input = 0;
    for (const Values& values : one.inputs)
        if (values.role == Role::input)
            std::ranges::copy(stored_bytes(values), executor.input(input++).begin());
    REEF_CHECK(executor.run());
    Outputs outputs;
    for (std::size_t i = 0; i < executor.output_count(); ++i)
        outputs.emplace_back(executor.output(i).begin(), executor.output(i).end());
    return outputs;
}

/// One unit of `error` at element i, as a distance.
double float_unit(const cpu::FloatError& error, const Expected& want, std::size_t i) {
    constexpr double half_ulp_of_one = 0x1p-24;
    if (error.unit == cpu::FloatError::Unit::terms)
        return half_ulp_of_one * want.terms * std::max(want.magnitude[i], 0x1p-100);
    const auto value = static_cast<float>(std::abs(want.real[i]));
    return static_cast<double>(std::nextafter(value, std::numeric_limits<float>::infinity())) -
           static_cast<double>(value);
}

/// Compares one element; `most` grows to its distance.
bool float_holds(const cpu::FloatError& error, const Expected& want, std::size_t i, double got,
                 double& most) {
    using Unit = cpu::FloatError::Unit;
    if (error.unit == Unit::exact || error.unit == Unit::rounded)
        return got == static_cast<double>(static_cast<float>(want.real[i]));
    const double distance = std::abs(got - want.real[i]) / float_unit(error, want, i);
    most = std::max(most, distance);
    return distance <= error.most;
}

bool integer_holds(const Expected& want, std::size_t i, double got, double& most) {
    if (want.steps == 0) return got == want.real[i];
    const auto [low, high] = range_of(want.type);
    const double steps = std::clamp(
        want.real[i] / static_cast<double>(want.scale) + static_cast<double>(want.zero), low, high);
    most = std::max(most, std::abs(got - steps));
    return std::abs(got - steps) <= want.steps;
}

std::string check(const OperatorCase& one, const Outputs& outputs, Outcome& outcome) {
    const cpu::FloatError error = cpu::find_kernel({.builtin = one.op, .custom = {}})->float_error;
    for (std::size_t o = 0; o < one.outputs.size(); ++o) {
        const Expected& want = one.outputs[o];
        const bool is_float = want.type == ElementType::float32;
        for (std::size_t i = 0; i < want.real.size(); ++i) {
            const double got = stored_at(want.type, outputs[o], i);
            if (is_float ? float_holds(error, want, i, got, outcome.most_float)
                         : integer_holds(want, i, got, outcome.most_steps))
                continue;
            return fmt::format("output {} of {}, element {}: {} for {} (scale {}, zero point {})",
                               o, model::shape_text(want.shape), i, got, want.real[i], want.scale,
                               want.zero);
        }
    }
    return {};
}

bool integers_only(const OperatorCase& one) {
    return std::ranges::none_of(one.outputs,
                                [](const Expected& e) { return e.type == ElementType::float32; });
}

}  // namespace

std::vector<std::byte> stored_bytes(const Values& values) {
    std::vector<std::byte> bytes;
    for (const double value : values.stored) {
        switch (values.type) {
            case ElementType::uint8:
                append<std::uint8_t>(bytes, value);
                break;
            case ElementType::int8:
                append<std::int8_t>(bytes, value);
                break;
            case ElementType::int16:
                append<std::int16_t>(bytes, value);
                break;
            case ElementType::int32:
                append<std::int32_t>(bytes, value);
                break;
            case ElementType::int64:
                append<std::int64_t>(bytes, value);
                break;
            case ElementType::boolean:
                append<std::uint8_t>(bytes, value);
                break;
            case ElementType::float16:
                append<std::uint16_t>(bytes, half_bits(value));
                break;
            default:
                append<float>(bytes, value);
        }
    }
    return bytes;
}

Result<model::Model> model_of(const OperatorCase& one) {
    model::Builder builder("one operator");
    std::vector<model::TensorIndex> inputs, outputs, intermediates;
    for (const Values& values : one.inputs) inputs.push_back(add_tensor(builder, values));
    for (const Values& values : one.intermediates)
        intermediates.push_back(
            builder.tensor("intermediate", values.type, values.shape, quantisation(values)));
    for (const Expected& output : one.outputs)
        outputs.push_back(builder.tensor("out", output.type, output.shape,
                                         output.scale > 0
                                             ? model::per_tensor(output.scale, output.zero)
                                             : model::Quantization{}));
    builder.add(one.op, inputs, outputs, one.options);
    for (const auto output : outputs) builder.output(output);
    model::Model model = REEF_TRY(builder.finish());
    model.subgraphs[0].operators[0].intermediates = std::move(intermediates);
    return model;
}

Outcome run_case(const OperatorCase& one) {
    Outcome outcome;
    const auto model = model_of(one);
    if (!model) return {model.error().message()};
    const auto plain = run(*model, one, cpu::KernelSet::reference, 1);
    if (!plain) return {plain.error().message()};
    outcome.wrong = check(one, *plain, outcome);
    if (!outcome.wrong.empty()) return outcome;
    const auto fast = run(*model, one, cpu::KernelSet::fast, 2);
    if (!fast) return {fast.error().message()};
    outcome.wrong = check(one, *fast, outcome);
    if (outcome.wrong.empty() && integers_only(one) && *plain != *fast)
        outcome.wrong = "the kernel sets differ";
    if (!outcome.wrong.empty()) outcome.wrong += " (fast kernels)";
    return outcome;
}

double float_distance(const OperatorCase& one, std::size_t output, std::size_t i, double distance) {
    const cpu::FloatError error = cpu::find_kernel({.builtin = one.op, .custom = {}})->float_error;
    return distance / float_unit(error, one.outputs[output], i);
}

double float_bound(model::Op op) {
    using Unit = cpu::FloatError::Unit;
    const cpu::FloatError error = cpu::find_kernel({.builtin = op, .custom = {}})->float_error;
    return error.unit == Unit::exact || error.unit == Unit::rounded ? 0 : error.most;
}

std::vector<NamedMaker> all_makers() {
    std::vector<NamedMaker> all;
    for (const auto group :
         {elementwise_makers(), comparison_makers(), movement_makers(), border_makers(),
          reduction_makers(), window_makers(), product_makers()})
        all.insert(all.end(), group.begin(), group.end());
    return all;
}

std::vector<NamedMaker> hybrid_makers() {
    std::vector<NamedMaker> all;
    for (const auto group : {hybrid_product_makers(), hybrid_recurrent_makers()})
        all.insert(all.end(), group.begin(), group.end());
    return all;
}

}  // namespace reef::plain
