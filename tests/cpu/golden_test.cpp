// Every computed tensor of the reference models against TFLite 2.9's, byte for byte.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iostream>
#include <map>

#include "cpu/prepare/arithmetic.h"
#include "cpu/simd_targets.h"
#include "edgetpu/numerics/forms.h"
#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "reef/edgetpu/numerics.h"
#include "reef/model/tflite.h"
#include "support/cpu_executor.h"
#include "support/shared_data.h"

namespace reef::cpu {
namespace {

constexpr std::int64_t float_tolerance_ulp = 4;

/// The models that have golden tensors; a test checks that the folder holds these and no others.
constexpr const char* golden_models[] = {
    "bright_16x16",
    "color_red_64x64",
    "deeplabv3_mnv2_dm05_pascal_quant",
    "gabor_64x64_7k_4o_2s",
    "gabor_64x64_p4",
    "keras_lstm_mnist_ptq",
    "looming_64x64_3x3",
    "mobilenet_v1_0.25_128_quant",
    "mobilenet_v1_0.5_160_quant",
    "movenet_single_pose_lightning_ptq",
    "split_concat",
    "tf2_mobilenet_v2_1.0_224_ptq",
};

std::filesystem::path model_path(const std::filesystem::path& shared, const std::string& name) {
    const auto file = name + ".tflite";
    const auto plain = shared / "data" / "models" / file;
    return exists(plain) ? plain : shared / "data" / "edgetpu" / "templates" / file;
}

/// "in0" gives 0 for prefix "in"; nothing for other names.
std::optional<int> number_after(std::string_view name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return std::nullopt;
    int number = 0;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, number);
    if (error != std::errc{} || stop != end) return std::nullopt;
    return number;
}

/// Distance in representable numbers; equal numbers (and both zeros) are 0 apart.
std::int64_t ulp_apart(float a, float b) {
    if (std::isnan(a) || std::isnan(b))
        return std::isnan(a) && std::isnan(b) ? 0 : std::numeric_limits<std::int64_t>::max();
    const auto ordered = [](float value) {
        const auto bits = std::bit_cast<std::int32_t>(value);
        return static_cast<std::int64_t>(bits < 0 ? std::int32_t{INT32_MIN} - bits : bits);
    };
    return std::abs(ordered(a) - ordered(b));
}

struct Difference {
    std::size_t different = 0;  ///< elements that break the rule
    std::size_t floats = 0;     ///< float32 elements compared
    std::size_t inexact = 0;    ///< float32 elements that are not equal, whatever the tolerance
    std::size_t first = 0;      ///< index of the first different element
    std::int64_t most_ulp = 0;
};

Difference compare(const Array& expected, Bytes actual) {
    Difference result;
    const std::size_t width = *size_of(expected.type);
    const std::size_t count = expected.data.size() / width;
    if (expected.type == ElementType::float32) result.floats = count;
    for (std::size_t i = 0; i < count; ++i) {
        const std::byte* want = expected.data.data() + i * width;
        const std::byte* have = actual.data() + i * width;
        if (std::memcmp(want, have, width) == 0) continue;
        bool wrong = true;
        if (expected.type == ElementType::float32) {
            float a = 0;
            float b = 0;
            std::memcpy(&a, want, sizeof(a));
            std::memcpy(&b, have, sizeof(b));
            const std::int64_t apart = ulp_apart(a, b);
            result.most_ulp = std::max(result.most_ulp, apart);
            wrong = apart > float_tolerance_ulp;
            ++result.inexact;
        }
        if (wrong && result.different++ == 0) result.first = i;
    }
    return result;
}

/// The operator that writes a tensor, or "a graph input".
std::string producer(const graph::Executor& executor, model::TensorIndex index) {
    const model::Subgraph& graph = executor.graph();
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (std::ranges::find(graph.operators[i].outputs, index) !=
            graph.operators[i].outputs.end())
            return model::place_of(graph, i) + " (" + executor.placements()[i].kernel + ")";
    }
    return "a graph input";
}

/// The position of a tensor's producer, so that the first wrong tensor is reported first.
std::size_t step_of(const model::Subgraph& graph, model::TensorIndex index) {
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (std::ranges::find(graph.operators[i].outputs, index) !=
            graph.operators[i].outputs.end())
            return i;
    }
    return 0;
}

struct GoldenCase {
    std::string model;
    KernelSet kernels = KernelSet::reference;
    int threads = 1;
};

std::ostream& operator<<(std::ostream& out, const GoldenCase& golden) {
    return out << golden.model << (golden.kernels == KernelSet::fast ? " fast " : " reference ")
               << golden.threads;
}

std::string case_name(const testing::TestParamInfo<GoldenCase>& info) {
    std::string name = info.param.model;
    std::ranges::replace_if(
        name, [](char c) { return std::isalnum(c) == 0; }, '_');
    return fmt::format("{}_{}_{}", name,
                       info.param.kernels == KernelSet::fast ? "fast" : "reference",
                       info.param.threads);
}

std::vector<GoldenCase> all_cases() {
    std::vector<GoldenCase> cases;
    for (const char* model : golden_models)
        for (const KernelSet kernels : {KernelSet::reference, KernelSet::fast})
            for (const int threads : {1, 2}) cases.push_back({model, kernels, threads});
    return cases;
}

class Golden : public testing::TestWithParam<GoldenCase> {
  protected:
    /// Loads the model and its golden arrays.
    void load(const std::filesystem::path& shared) {
        auto model = model::load_tflite(model_path(shared, GetParam().model).string());
        ASSERT_TRUE(model) << model.error().message();
        model_ = std::move(*model);
        const auto file =
            read_file((shared / "data" / "cpu_golden" / (GetParam().model + ".npz")).string());
        ASSERT_TRUE(file) << file.error().message();
        auto arrays = read_npz(file->view());
        ASSERT_TRUE(arrays) << arrays.error().message();
        arrays_ = std::move(*arrays);
    }

    /// The whole network on the golden inputs.
    void run() {
        auto executor = test::on_cpu(model_, {.kernels = GetParam().kernels,
                                              .threads = GetParam().threads,
                                              .keep_all_tensors = true});
        ASSERT_TRUE(executor) << executor.error().message();
        executor_ = std::make_unique<graph::Executor>(std::move(*executor));
        std::size_t fed = 0;
        for (const auto& [name, array] : arrays_) {
            const auto input = number_after(name, "in");
            if (!input) continue;
            ASSERT_LT(static_cast<std::size_t>(*input), executor_->input_count());
            const MutableBytes place = executor_->input(static_cast<std::size_t>(*input));
            ASSERT_EQ(place.size(), array.data.size()) << name;
            std::ranges::copy(array.data, place.begin());
            ++fed;
        }
        ASSERT_EQ(fed, executor_->input_count());
        const Status status = executor_->run();
        ASSERT_TRUE(status) << status.error().message();
    }

    /// Golden tensors in the order in which operators write them.
    [[nodiscard]] std::vector<std::pair<model::TensorIndex, const Array*>> tensors() const {
        std::vector<std::pair<model::TensorIndex, const Array*>> result;
        for (const auto& [name, array] : arrays_)
            if (const auto index = number_after(name, "t")) result.emplace_back(*index, &array);
        std::ranges::sort(result, {}, [&](const auto& entry) {
            return std::pair(step_of(executor_->graph(), entry.first), entry.first);
        });
        return result;
    }

    /// The golden bytes of a tensor; null for one that has none.
    [[nodiscard]] const Array* golden(model::TensorIndex index) const {
        for (const auto& [name, array] : arrays_)
            if (number_after(name, "t") == index) return &array;
        const std::vector<model::TensorIndex>& inputs = model_.subgraphs[0].inputs;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            if (inputs[i] != index) continue;
            for (const auto& [name, array] : arrays_)
                if (number_after(name, "in") == static_cast<int>(i)) return &array;
        }
        return nullptr;
    }

    /// The model reduced to one operator, with its computed inputs as graph inputs.
    [[nodiscard]] model::Model with_one_operator(std::size_t index) const {
        model::Model single = model_;
        model::Subgraph& graph = single.subgraphs[0];
        const model::Operator op = graph.operators[index];
        graph.operators = {op};
        graph.inputs.clear();
        for (const model::TensorIndex input : op.inputs) {
            if (input == model::absent_tensor || golden(input) == nullptr) continue;
            if (std::ranges::find(graph.inputs, input) == graph.inputs.end())
                graph.inputs.push_back(input);
        }
        graph.outputs = op.outputs;
        single.signatures.clear();
        return single;
    }

    void check_operator(std::size_t index);

    model::Model model_;
    NamedArrays arrays_;
    std::unique_ptr<graph::Executor> executor_;
};

class GoldenOnEveryTarget : public Golden {};

TEST_P(Golden, EveryTensorEqualsTheReference) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_NO_FATAL_FAILURE(load(shared));
    ASSERT_NO_FATAL_FAILURE(run());
    std::size_t compared = 0;
    std::size_t wrong = 0;
    std::size_t floats = 0;
    std::size_t inexact = 0;
    std::int64_t most_ulp = 0;
    for (const auto& [index, expected] : tensors()) {
        ASSERT_LT(static_cast<std::size_t>(index), executor_->graph().tensors.size());
        const model::Tensor& tensor = executor_->graph().tensors[static_cast<std::size_t>(index)];
        ASSERT_EQ(expected->type, tensor.type) << "tensor " << index;
        ASSERT_EQ(expected->data.size(), executor_->tensor(index).size()) << "tensor " << index;
        const Difference difference = compare(*expected, executor_->tensor(index));
        ++compared;
        floats += difference.floats;
        inexact += difference.inexact;
        most_ulp = std::max(most_ulp, difference.most_ulp);
        if (difference.inexact > 0)
            std::cout << fmt::format(
                "{} by {}: {} of {} float32 elements differ, by {} ulp at most\n",
                model::place_of_tensor(executor_->graph(), index), producer(*executor_, index),
                difference.inexact, difference.floats, difference.most_ulp);
        if (difference.different == 0) continue;
        if (wrong++ > 0) continue;
        ADD_FAILURE() << model::place_of_tensor(executor_->graph(), index) << " by "
                      << producer(*executor_, index) << ": " << difference.different << " of "
                      << expected->element_count() << " elements differ, first at index "
                      << difference.first;
    }
    EXPECT_EQ(wrong, 0U) << "tensors of " << compared << " differ";
    // The archive holds the fed inputs and computed tensors, and nothing else.
    EXPECT_EQ(compared + executor_->input_count(), arrays_.size());
    RecordProperty("tensors", static_cast<int>(compared));
    // As docs/exactness.md says; one that differs belongs there, with the reason.
    EXPECT_EQ(inexact, 0U) << "float32 elements, by " << most_ulp << " ulp at most";
    RecordProperty("float32_elements", fmt::format("{}", floats));
    RecordProperty("float32_inexact", fmt::format("{}", inexact));
    RecordProperty("float32_most_ulp", fmt::format("{}", most_ulp));
    std::cout << fmt::format("{} tensors; {} float32 elements, {} of them not equal\n", compared,
                             floats, inexact);
}

TEST_P(Golden, EveryComputedTensorHasAReference) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_NO_FATAL_FAILURE(load(shared));
    ASSERT_NO_FATAL_FAILURE(run());
    std::map<model::TensorIndex, const Array*> given;
    for (const auto& entry : tensors()) given.insert(entry);
    std::size_t computed = 0;
    for (const model::Operator& op : executor_->graph().operators) {
        for (const model::TensorIndex index : op.outputs) {
            EXPECT_TRUE(given.contains(index)) << model::place_of_tensor(executor_->graph(), index);
            ++computed;
        }
    }
    EXPECT_EQ(computed, given.size());
}

void Golden::check_operator(std::size_t index) {
    const model::Model single = with_one_operator(index);
    const std::string place = model::place_of(model_.subgraphs[0], index);
    auto executor =
        test::on_cpu(single, {.kernels = GetParam().kernels, .threads = GetParam().threads});
    ASSERT_TRUE(executor) << place << ": " << executor.error().message();
    for (std::size_t i = 0; i < executor->input_count(); ++i) {
        const Array& array = *golden(executor->graph().inputs[i]);
        ASSERT_EQ(array.data.size(), executor->input(i).size()) << place;
        std::ranges::copy(array.data, executor->input(i).begin());
    }
    const Status status = executor->run();
    ASSERT_TRUE(status) << place << ": " << status.error().message();
    for (std::size_t i = 0; i < executor->output_count(); ++i) {
        const Array* expected = golden(executor->graph().outputs[i]);
        ASSERT_NE(expected, nullptr) << place;
        ASSERT_EQ(expected->data.size(), executor->output(i).size()) << place;
        const Difference difference = compare(*expected, executor->output(i));
        EXPECT_EQ(difference.different, 0U)
            << place << " (" << executor->placements()[0].kernel << ") output " << i << ": of "
            << expected->element_count() << " elements, first at index " << difference.first;
    }
}

// Kernels for every instruction set of this machine, not for its best alone.
TEST_P(GoldenOnEveryTarget, EveryTensorEqualsTheReference) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_NO_FATAL_FAILURE(load(shared));
    test::on_every_target([&] {
        ASSERT_NO_FATAL_FAILURE(run());
        std::size_t compared = 0;
        for (const auto& [index, expected] : tensors()) {
            const Difference difference = compare(*expected, executor_->tensor(index));
            ++compared;
            ASSERT_EQ(difference.different + difference.inexact, 0U)
                << model::place_of_tensor(executor_->graph(), index) << " by "
                << producer(*executor_, index) << ", first at index " << difference.first;
        }
        EXPECT_EQ(compared + executor_->input_count(), arrays_.size());
    });
}

// On golden inputs each, so that a wrong operator does not hide those behind it.
TEST_P(Golden, EveryOperatorAloneEqualsTheReference) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_NO_FATAL_FAILURE(load(shared));
    for (std::size_t i = 0; i < model_.subgraphs[0].operators.size(); ++i) check_operator(i);
}

/// Largest difference of two tensors of one 8-bit type.
int most_apart(ElementType type, Bytes a, Bytes b) {
    const auto number = [&](std::byte value) {
        const auto bits = std::to_integer<std::uint8_t>(value);
        return type == ElementType::int8 ? int{static_cast<std::int8_t>(bits)} : int{bits};
    };
    int most = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        most = std::max(most, std::abs(number(a[i]) - number(b[i])));
    return most;
}

class GoldenOnEdgetpu : public Golden {
  protected:
    /// Layers alone on golden inputs, in the Edge TPU's arithmetic.
    void check_operator(std::size_t index) {
        const model::Model single = with_one_operator(index);
        const std::string place = model::place_of(model_.subgraphs[0], index);
        auto executor = test::on_cpu(
            single, {.kernels = GetParam().kernels, .arithmetic = &edgetpu::arithmetic()});
        ASSERT_TRUE(executor) << place << ": " << executor.error().message();
        for (std::size_t i = 0; i < executor->input_count(); ++i)
            std::ranges::copy(golden(executor->graph().inputs[i])->data,
                              executor->input(i).begin());
        ASSERT_TRUE(executor->run()) << place;
        for (std::size_t i = 0; i < executor->output_count(); ++i) {
            const Array& expected = *golden(executor->graph().outputs[i]);
            EXPECT_LE(most_apart(expected.type, expected.data, executor->output(i)), 1)
                << place << " (" << executor->placements()[0].kernel << ") output " << i;
        }
    }
};

// A layer whose scale, clamp or zero point were wrong would be further away than its rounding.
TEST_P(GoldenOnEdgetpu, EveryKnownOperatorAloneIsWithinOneOfTheReference) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_NO_FATAL_FAILURE(load(shared));
    const model::Subgraph& graph = model_.subgraphs[0];
    const auto on_cpu = edgetpu::numerics::reasons_for_cpu(model_, graph);
    std::size_t checked = 0;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (!on_cpu[i].empty() ||
            edgetpu::arithmetic().find(graph.operators[i].code.builtin) == nullptr)
            continue;
        // Its gates end at the hidden state's range, +-1, on the chip; CompiledSession compares it
        // with the vendor's program.
        if (graph.operators[i].code.builtin == model::Op::unidirectional_sequence_lstm) continue;
        ASSERT_NO_FATAL_FAILURE(check_operator(i));
        ++checked;
    }
    EXPECT_GT(checked, 0U);
}

std::vector<GoldenCase> edgetpu_cases() {
    std::vector<GoldenCase> cases = all_cases();
    std::erase_if(cases, [](const GoldenCase& golden) { return golden.threads != 1; });
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenOnEdgetpu, testing::ValuesIn(edgetpu_cases()), case_name);

std::vector<GoldenCase> fast_cases() {
    std::vector<GoldenCase> cases = all_cases();
    std::erase_if(cases, [](const GoldenCase& golden) {
        return golden.kernels != KernelSet::fast || golden.threads != 1;
    });
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenOnEveryTarget, testing::ValuesIn(fast_cases()), case_name);

INSTANTIATE_TEST_SUITE_P(Models, Golden, testing::ValuesIn(all_cases()), case_name);

TEST(GoldenFolder, HoldsTheListedModels) {
    REEF_SHARED_OR_SKIP(shared);
    std::vector<std::string> found;
    for (const auto& path : test::shared_files("data/cpu_golden", ".npz"))
        found.push_back(path.stem().string());
    EXPECT_EQ(found, std::vector<std::string>(std::begin(golden_models), std::end(golden_models)));
    EXPECT_TRUE(is_directory(shared / "data" / "cpu_golden"));
}

TEST(GoldenCompare, CountsWhatDiffers) {
    EXPECT_EQ(ulp_apart(1.0F, std::nextafter(1.0F, 2.0F)), 1);
    EXPECT_EQ(ulp_apart(0.0F, -0.0F), 0);
    EXPECT_EQ(ulp_apart(std::nextafter(0.0F, 1.0F), std::nextafter(0.0F, -1.0F)), 2);
    const Array expected{ElementType::int8, {4}, {std::byte{1}, std::byte{2}, std::byte{3}, {}}};
    const std::byte actual[] = {std::byte{1}, std::byte{9}, std::byte{3}, std::byte{9}};
    const Difference difference = compare(expected, actual);
    EXPECT_EQ(difference.different, 2U);
    EXPECT_EQ(difference.first, 1U);
    EXPECT_EQ(difference.floats, 0U);
}

TEST(GoldenCompare, CountsInexactFloatsWithinAndBeyondTheTolerance) {
    const std::vector<float> want{1.0F, 2.0F, 3.0F};
    std::vector<float> have = want;
    have[1] = std::nextafter(2.0F, 3.0F);
    have[2] = 3.5F;
    const Bytes wanted = std::as_bytes(std::span(want));
    const Array expected{ElementType::float32, {3}, {wanted.begin(), wanted.end()}};
    const Difference difference = compare(expected, std::as_bytes(std::span(have)));
    EXPECT_EQ(difference.floats, 3U);
    EXPECT_EQ(difference.inexact, 2U);
    EXPECT_EQ(difference.different, 1U);
    EXPECT_EQ(difference.first, 2U);
    EXPECT_GT(difference.most_ulp, float_tolerance_ulp);
}

}  // namespace
}  // namespace reef::cpu
