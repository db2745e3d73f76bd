// Reef's kernels of float32 activations and int8 weights against TensorFlow Lite itself:
// REEF_TFLITE_LIBRARY names its library. REEF_FIRST_SEED and REEF_SEEDS choose the cases.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <map>

#include "cpu/plain/operator_case.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"
#include "support/drawn_seeds.h"
#include "tflite_child.h"
#include "with_tflite.h"

namespace reef::peers {
namespace {

using plain::OperatorCase;

constexpr std::size_t runs = 3;

/// The case's input, and for what has a state the same numbers in another order.
std::vector<TensorBytes> inputs_of_runs(const OperatorCase& one) {
    std::vector<TensorBytes> all(runs);
    for (const plain::Values& values : one.inputs) {
        if (values.role != plain::Role::input) continue;
        auto bytes = plain::stored_bytes(values);
        for (TensorBytes& inputs : all) {
            inputs.push_back(bytes);
            std::ranges::rotate(bytes, bytes.begin() + std::ssize(bytes) / 8 * 4);
        }
    }
    return all;
}

Result<std::vector<TensorBytes>> run_reef(const model::Model& model,
                                          std::span<const TensorBytes> inputs,
                                          cpu::KernelSet kernels) {
    auto executor =
        REEF_TRY(graph::Executor::create(model, {.placers = {cpu::placer({.kernels = kernels})}}));
    std::vector<TensorBytes> all;
    for (const TensorBytes& run : inputs) {
        for (std::size_t i = 0; i < run.size(); ++i)
            std::ranges::copy(run[i], executor.input(i).begin());
        REEF_CHECK(executor.run());
        const Bytes output = executor.output(0);
        all.push_back({{output.begin(), output.end()}});
    }
    return all;
}

std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
    std::vector<float> floats(bytes.size() / sizeof(float));
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    return floats;
}

/// What all cases of an operator showed.
struct HybridFindings {
    int compared = 0, equal = 0;
    std::size_t elements = 0, different = 0;
    double farthest = 0;  ///< in the unit of the kernel's bound
    double most_apart = 0;
    std::string farthest_at = {};
    std::map<std::string, int> refusals = {};
};

/// Of the case's own bound where the run begins with no state; a later one has the largest of all.
double distance_of(const OperatorCase& one, std::size_t run, std::size_t i, double apart) {
    if (run == 0) return plain::float_distance(one, 0, i, apart);
    const auto& sizes = one.outputs[0].magnitude;
    const auto largest = static_cast<std::size_t>(std::ranges::max_element(sizes) - sizes.begin());
    return plain::float_distance(one, 0, largest, apart) / static_cast<double>(run + 1);
}

void compare_floats(const OperatorCase& one, std::uint64_t seed, std::size_t run,
                    const std::vector<float>& ours, const std::vector<float>& theirs,
                    HybridFindings& found) {
    ASSERT_EQ(ours.size(), theirs.size());
    found.elements += ours.size();
    for (std::size_t i = 0; i < ours.size(); ++i) {
        if (ours[i] == theirs[i]) continue;
        ++found.different;
        const double apart =
            std::abs(static_cast<double>(ours[i]) - static_cast<double>(theirs[i]));
        found.most_apart = std::max(found.most_apart, apart);
        const double distance = distance_of(one, run, i, apart);
        if (distance <= found.farthest) continue;
        found.farthest = distance;
        found.farthest_at = fmt::format("seed {}, run {}, float {}: {}, theirs {}", seed, run, i,
                                        ours[i], theirs[i]);
    }
}

/// How far results may be apart, in the unit of the kernel's bound. Of two operators sums of
/// float32 are added in another order there, and functions are approximations; TFLite for 64-bit
/// ARM rounds a product and the sum with it once.
double hybrids_apart(model::Op op) {
    if (op == model::Op::svdf || op == model::Op::unidirectional_sequence_lstm) return 1;
#if defined(__aarch64__)
    return 2;
#else
    return 0;
#endif
}

/// What TFLite 2.9 does not compute, though it says nothing; "" for what it does.
std::string why_no_answer(const OperatorCase& one) {
    if (one.op == model::Op::depthwise_conv_2d && one.inputs.size() < 3)
        return "it reads a bias that is not there";
    if (one.op != model::Op::batch_matmul) return {};
    const auto& options = std::get<model::BatchMatMulOptions>(one.options);
    const auto& a = one.inputs[0].shape;
    const auto& out = one.outputs[0].shape;
    const std::int32_t rows = out[out.size() - 2];
    const std::int32_t depth = options.adj_x ? a[a.size() - 2] : a.back();
    const auto& b = one.inputs[1].shape;
    const bool several = std::any_of(b.begin(), b.end() - 2, [](std::int32_t n) { return n > 1; });
    // Its memory for the rows' scales is that of the columns'.
    if (rows > depth || (rows == depth && several && options.asymmetric_quantize_inputs))
        return "it writes over its own memory";
    if (std::count_if(out.begin(), out.end() - 2, [](std::int32_t n) { return n > 1; }) > 1)
        return "it takes the scales of another matrix";
    return {};
}

/// What it says, or how it ends, where a bias is missing.
bool wants_a_bias(model::Op op, std::string_view says) {
    if (op == model::Op::conv_2d) return says.contains("has_bias was not true");
    return op == model::Op::unidirectional_sequence_lstm &&
           (says.contains("was optional but was expected") || says.contains("ended by signal 11"));
}

void try_hybrid(const OperatorCase& one, std::uint64_t seed, HybridFindings& found) {
    if (const std::string why = why_no_answer(one); !why.empty()) {
        ++found.refusals[why];
        return;
    }
    const auto model = plain::model_of(one);
    ASSERT_TRUE(model);
    const auto inputs = inputs_of_runs(one);
    const auto theirs = run_tflite_child(*model, inputs);
    if (!theirs) {
        const std::string& says = theirs.error().what;
        ++found.refusals[says];
        EXPECT_TRUE(wants_a_bias(one.op, says)) << "seed " << seed << ": " << says;
        return;
    }
    ++found.compared;
    const std::size_t before = found.different;
    for (const cpu::KernelSet kernels : {cpu::KernelSet::reference, cpu::KernelSet::fast}) {
        const auto ours = run_reef(*model, inputs, kernels);
        ASSERT_TRUE(ours) << ours.error().message() << ", seed " << seed;
        for (std::size_t r = 0; r < inputs.size(); ++r)
            compare_floats(one, seed, r, floats_of((*ours)[r][0]), floats_of((*theirs)[r][0]),
                           found);
    }
    if (found.different == before) ++found.equal;
}

class TfliteHybrids : public WithTflite, public testing::WithParamInterface<plain::NamedMaker> {};

TEST_P(TfliteHybrids, KeepTheRule) {
    const auto [first, seeds] = test::operator_seeds(400);
    HybridFindings found;
    for (unsigned seed = first; seed < first + seeds && !HasFailure(); ++seed) {
        plain::Choices choices(seed);
        try_hybrid(GetParam().make(choices), seed, found);
    }
    std::cout << fmt::format(
        "{}: {} cases compared, {} equal in every bit; {} of {} floats differ, by {:.3g}, and "
        "by {:.3f} units of the bound, at most ({})\n",
        model::builtin_name(GetParam().op), found.compared, found.equal, found.different,
        found.elements, found.most_apart, found.farthest, found.farthest_at);
    for (const auto& [why, count] : found.refusals)
        std::cout << fmt::format("  {} without an answer there: {}\n", count, why);
    // Half of the LSTMs that are drawn have no answer there.
    EXPECT_GE(3 * found.compared, static_cast<int>(seeds));
    EXPECT_LE(found.farthest, hybrids_apart(GetParam().op)) << found.farthest_at;
}

std::string hybrid_name(const testing::TestParamInfo<plain::NamedMaker>& info) {
    return model::builtin_name(info.param.op);
}

INSTANTIATE_TEST_SUITE_P(Operators, TfliteHybrids, testing::ValuesIn(plain::hybrid_makers()),
                         hybrid_name);

}  // namespace
}  // namespace reef::peers
