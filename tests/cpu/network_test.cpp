// The executor on whole networks: memory, allocations, state.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "cpu/simd_targets.h"
#include "reef/base/file.h"
#include "reef/model/tflite.h"
#include "run_model.h"
#include "support/counted_allocations.h"
#include "support/cpu_executor.h"
#include "support/resident_pages.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace reef::cpu {
namespace {

model::Model load(const std::filesystem::path& path) {
    auto model = model::load_tflite(path.string());
    if (!model) throw std::runtime_error(model.error().message());
    return std::move(*model);
}

/// The model files that hold, or do not hold, a program for the Edge TPU.
std::vector<std::filesystem::path> models(const std::filesystem::path& shared, bool compiled,
                                          const std::vector<const char*>& folders = {
                                              "data/models", "data/edgetpu/templates"}) {
    std::vector<std::filesystem::path> result;
    for (const char* folder : folders) {
        for (const auto& entry : std::filesystem::directory_iterator(shared / folder)) {
            const auto& path = entry.path();
            if (path.extension() == ".tflite" &&
                path.stem().string().ends_with("_edgetpu") == compiled)
                result.push_back(path);
        }
    }
    std::ranges::sort(result);
    return result;
}

TEST(Networks, ArenasAreCloseToTheBound) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_FALSE(models(shared, false).empty());
    for (const auto& path : models(shared, false)) {
        const auto executor = test::on_cpu(load(path), {});
        ASSERT_TRUE(executor) << path << ": " << executor.error().message();
        const graph::MemoryReport& memory = executor->memory();
        fmt::print("{:45} arena {:8} bound {:8} state {:6} packed {:8}\n", path.stem().string(),
                   memory.arena_bytes, memory.lower_bound_bytes, memory.variable_bytes,
                   memory.packed_bytes);
        EXPECT_GE(memory.arena_bytes, memory.lower_bound_bytes) << path;
        // Each tensor starts at a multiple of 64 bytes.
        EXPECT_LE(memory.arena_bytes, memory.lower_bound_bytes * 101 / 100 + 512) << path;
    }
}

TEST(Networks, PackedWeightsAreAtMostATenthLargerThanTheFile) {
    REEF_SHARED_OR_SKIP(shared);
    // What a few channels are padded to, and the stages of layers that have hardly any weights.
    constexpr std::size_t of_small_layers = 4096;
    for (const auto& path : models(shared, false)) {
        const model::Model model = load(path);
        const std::size_t file_bytes = std::filesystem::file_size(path);
        test::on_every_target([&] {
            const auto plan = graph::Executor::plan(model, test::executor_options({}));
            ASSERT_TRUE(plan) << path << ": " << plan.error().message();
            fmt::print("{:45} {:12} packed {:8} of {:8}: {:.2f}\n", path.stem().string(),
                       cpu::simd_target(), plan->packed_bytes, file_bytes,
                       static_cast<double>(plan->packed_bytes) / static_cast<double>(file_bytes));
            EXPECT_LE(plan->packed_bytes, file_bytes * 11 / 10 + of_small_layers) << path;
        });
    }
}

/// Of constants that are larger than a few pages.
struct ConstantPages {
    std::size_t resident = 0, all = 0;
};
ConstantPages constant_pages(const model::Model& model) {
    ConstantPages sum;
    for (const SharedBytes& buffer : model.buffers) {
        if (buffer.size() < (std::size_t{1} << 15U)) continue;
        sum.resident += test::resident_pages(buffer.view());
        sum.all += test::pages(buffer.view());
    }
    return sum;
}

/// The model's file, written at once: the system may keep such a file in pieces of up to two
/// mebibytes, each of which is mapped as a whole.
std::string written_at_once(const std::filesystem::path& path,
                            const test::TemporaryFolder& folder) {
    std::string copy = folder.file(path.filename().string());
    if (auto written = write_file(copy, read_file(path.string()).value().view()); !written)
        throw std::runtime_error(written.error().message());
    return copy;
}

TEST(Networks, WeightsThatArePackedLeaveTheFilesPages) {
    REEF_SHARED_OR_SKIP(shared);
    const test::TemporaryFolder folder;
    std::size_t tried = 0;
    for (const auto& original : models(shared, false)) {
        for (const std::filesystem::path& path : {original, {written_at_once(original, folder)}}) {
            const model::Model model = load(path);
            for (const SharedBytes& buffer : model.buffers)  // reads them all
                ASSERT_TRUE(buffer == SharedBytes::copy_of(buffer.view())) << path;
            // A system that is short of memory may have taken some again.
            ASSERT_GE(constant_pages(model).resident, constant_pages(model).all / 2) << path;
            auto executor = test::on_cpu(model, {});
            ASSERT_TRUE(executor) << path << ": " << executor.error().message();
            ASSERT_TRUE(executor->run()) << path;
            const ConstantPages pages = constant_pages(model);
            if (pages.all == 0 || executor->memory().packed_bytes < pages.all * 2048) continue;
            ++tried;
            fmt::print("{:45} {} of {} pages\n", path.stem().string(), pages.resident, pages.all);
            // The first and the last of each may hold others' bytes, too.
            EXPECT_LE(pages.resident, pages.all / 4) << path;
        }
    }
    EXPECT_GE(tried, 12U);
}

TEST(Networks, ThePlanIsWhatCreateTakes) {
    REEF_SHARED_OR_SKIP(shared);
    for (const auto& path : models(shared, false)) {
        const model::Model model = load(path);
        for (const KernelSet kernels : {KernelSet::reference, KernelSet::fast}) {
            const auto plan = graph::Executor::plan(
                model, test::executor_options({.kernels = kernels, .threads = 2}));
            const auto executor = test::on_cpu(model, {.kernels = kernels, .threads = 2});
            ASSERT_TRUE(plan && executor) << path;
            EXPECT_TRUE(*plan == executor->memory()) << path;
        }
    }
}

TEST(Networks, ASecondRunGivesTheSameAgain) {
    REEF_SHARED_OR_SKIP(shared);
    std::mt19937 random(12);
    for (const auto& path : models(shared, false)) {
        auto executor = test::on_cpu(load(path), {});
        ASSERT_TRUE(executor) << path << ": " << executor.error().message();
        std::vector<std::vector<std::byte>> inputs;
        for (std::size_t i = 0; i < executor->input_count(); ++i) {
            inputs.push_back(test::random_bytes(random, executor->input(i).size()));
            std::ranges::copy(inputs.back(), executor->input(i).begin());
        }
        std::vector<std::vector<std::byte>> first;
        for (int run = 0; run < 2; ++run) {
            executor->reset_state();
            ASSERT_TRUE(executor->run()) << path;
            for (std::size_t i = 0; i < inputs.size(); ++i)
                EXPECT_TRUE(std::ranges::equal(executor->input(i), inputs[i])) << path << " " << i;
            for (std::size_t i = 0; i < executor->output_count(); ++i) {
                const Bytes output = executor->output(i);
                if (run == 0)
                    first.emplace_back(output.begin(), output.end());
                else
                    EXPECT_TRUE(std::ranges::equal(output, first[i])) << path << " " << i;
            }
        }
        // Outputs stay while the next inputs are written.
        for (std::size_t i = 0; i < inputs.size(); ++i)
            std::ranges::fill(executor->input(i), std::byte{0});
        for (std::size_t i = 0; i < executor->output_count(); ++i)
            EXPECT_TRUE(std::ranges::equal(executor->output(i), first[i])) << path << " " << i;
    }
}

TEST(Networks, RunsDoNotAllocate) {
    if (!test::allocations_are_counted())
        GTEST_SKIP() << "allocations cannot be counted in this build";
    REEF_SHARED_OR_SKIP(shared);
    {
        const std::size_t before = test::allocations();
        // Volatile, or the compiler leaves out what is freed unused.
        void* volatile held = std::malloc(1);
        std::free(held);
        int* volatile number = new int;
        delete number;
        EXPECT_EQ(test::allocations() - before, 2U) << "the count does not work";
    }
    for (const auto& path : models(shared, false)) {
        for (const KernelSet kernels : {KernelSet::reference, KernelSet::fast}) {
            auto executor = test::on_cpu(load(path), {.kernels = kernels});
            ASSERT_TRUE(executor) << path << ": " << executor.error().message();
            const std::size_t before = test::allocations();
            const Status status = executor->run();
            const std::size_t after = test::allocations();
            ASSERT_TRUE(status) << path << ": " << status.error().message();
            EXPECT_EQ(after - before, 0U) << path;
        }
    }
}

model::Model hybrid_network() {
    model::Builder b("hybrid");
    std::vector<std::int8_t> numbers(5000);
    for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = static_cast<std::int8_t>(i * 37 % 255);
    const auto weights = [&](const std::vector<std::int32_t>& shape, std::size_t scales,
                             std::int32_t axis) {
        std::size_t count = 1;
        for (const std::int32_t length : shape) count *= static_cast<std::size_t>(length);
        model::Quantization q;
        q.scale.assign(scales, 0.01F);
        q.zero_point.assign(scales, 0);
        q.axis = axis;
        return b.constant<std::int8_t>("weights", ElementType::int8, shape,
                                       std::span<const std::int8_t>(numbers).first(count), q);
    };
    constexpr auto f32 = ElementType::float32;
    const auto in = b.input("in", f32, {1, 9, 9, 3});
    const auto wide = b.tensor("wide", f32, {1, 9, 9, 20});
    b.add(model::Op::conv_2d, {in, weights({20, 3, 3, 3}, 20, 0)}, {wide},
          model::Conv2dOptions{.padding = model::Padding::same, .stride_h = 1, .stride_w = 1});
    const auto deep = b.tensor("deep", f32, {1, 5, 5, 20});
    b.add(
        model::Op::depthwise_conv_2d, {wide, weights({1, 3, 3, 20}, 20, 3)}, {deep},
        model::DepthwiseConv2dOptions{
            .padding = model::Padding::same, .stride_h = 2, .stride_w = 2, .depth_multiplier = 1});
    const auto out = b.tensor("out", f32, {1, 7});
    b.add(model::Op::fully_connected, {deep, weights({7, 500}, 1, 0)}, {out},
          model::FullyConnectedOptions{});
    b.output(out);
    auto model = b.finish();
    if (!model) throw std::runtime_error(model.error().message());
    return std::move(*model);
}

model::Model hybrid_recurrent_network() {
    model::Builder b("hybrid");
    constexpr auto f32 = ElementType::float32;
    const auto weights = [&](std::int32_t rows, std::int32_t columns) {
        const std::vector<std::int8_t> numbers(static_cast<std::size_t>(rows * columns), 9);
        return b.constant<std::int8_t>("weights", ElementType::int8, {rows, columns},
                                       std::span<const std::int8_t>(numbers),
                                       model::per_tensor(0.01F, 0));
    };
    const auto in = b.input("in", f32, {2, 3, 4});
    const auto product = b.tensor("product", f32, {2, 3, 5});
    b.add(model::Op::batch_matmul, {in, weights(4, 5)}, {product}, model::BatchMatMulOptions{});
    std::vector<model::TensorIndex> inputs{product};
    for (const std::int32_t width : {5, 6})
        for (int gate = 0; gate < 4; ++gate) inputs.push_back(weights(6, width));
    inputs.insert(inputs.end(), 9, model::absent_tensor);
    for (int state = 0; state < 2; ++state) inputs.push_back(b.variable("state", f32, {2, 6}, {}));
    const auto out = b.tensor("out", f32, {2, 3, 6});
    b.add(model::Op::unidirectional_sequence_lstm, inputs, {out},
          model::UnidirectionalSequenceLstmOptions{.activation = model::Activation::tanh});
    const auto row = b.input("row", f32, {2, 4});
    const auto units = b.tensor("units", f32, {2, 3});
    b.add(model::Op::svdf,
          {row, weights(6, 4), weights(6, 5), model::absent_tensor,
           b.variable("memory", f32, {2, 30}, {})},
          {units}, model::SvdfOptions{.rank = 2});
    b.output(out);
    b.output(units);
    auto model = b.finish();
    if (!model) throw std::runtime_error(model.error().message());
    return std::move(*model);
}

TEST(Networks, HybridRunsDoNotAllocate) {
    for (const KernelSet kernels : {KernelSet::reference, KernelSet::fast})
        for (const model::Model& model : {hybrid_network(), hybrid_recurrent_network()}) {
            auto executor = test::on_cpu(model, {.kernels = kernels});
            ASSERT_TRUE(executor) << executor.error().message();
            for (std::size_t i = 0; i < executor->input_count(); ++i)
                std::ranges::fill(executor->input(i), std::byte{0x3F});
            const std::size_t before = test::allocations();
            const Status status = executor->run();
            const std::size_t after = test::allocations();
            ASSERT_TRUE(status) << status.error().message();
            EXPECT_EQ(after - before, 0U);
        }
}

/// Every input: numbers from -1 to 1, or any bytes.
void draw_inputs(graph::Executor& executor, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> number(-1, 1);
    for (std::size_t i = 0; i < executor.input_count(); ++i) {
        const auto tensor = static_cast<std::size_t>(executor.graph().inputs[i]);
        const MutableBytes input = executor.input(i);
        if (executor.graph().tensors[tensor].type == ElementType::float32) {
            for (std::size_t at = 0; at < input.size(); at += sizeof(float)) {
                const float value = number(random);
                std::memcpy(input.data() + at, &value, sizeof(value));
            }
        } else {
            std::ranges::copy(test::random_bytes(random, input.size()), input.begin());
        }
    }
}

std::vector<std::vector<std::byte>> outputs_of(const graph::Executor& executor) {
    std::vector<std::vector<std::byte>> outputs;
    for (std::size_t i = 0; i < executor.output_count(); ++i)
        outputs.emplace_back(executor.output(i).begin(), executor.output(i).end());
    return outputs;
}

// Networks as their users publish them, by other people's exporters.
TEST(Networks, PublishedOnesRunAndThreadsChangeNothing) {
    REEF_SHARED_OR_SKIP(shared);
    const auto published = models(shared, false, {"data/edgetpu/wild"});
    ASSERT_GE(published.size(), 12U);
    for (const auto& path : published) {
        SCOPED_TRACE(path.filename());
        std::vector<std::vector<std::byte>> first;
        for (const int threads : {1, 2}) {
            auto executor = test::on_cpu(load(path), {.threads = threads});
            ASSERT_TRUE(executor) << executor.error().message();
            draw_inputs(*executor, 17);
            const std::size_t before = test::allocations();
            const Status ran = executor->run();
            const std::size_t after = test::allocations();
            ASSERT_TRUE(ran) << ran.error().message();
            if (threads == 1) {
                EXPECT_EQ(after - before, 0U);
            }
            if (threads == 1)
                first = outputs_of(*executor);
            else
                EXPECT_EQ(outputs_of(*executor), first);
        }
    }
}

// Their float32 operators are those around and behind the quantised ones.
TEST(Networks, PublishedOnesGiveTheBytesOfTheReferenceKernels) {
    REEF_SHARED_OR_SKIP(shared);
    for (const auto& path : models(shared, false, {"data/edgetpu/wild"})) {
        SCOPED_TRACE(path.filename());
        const model::Model model = load(path);
        const auto run = [&](KernelSet kernels, std::vector<std::vector<std::byte>>& outputs) {
            auto executor = test::on_cpu(model, {.kernels = kernels, .threads = 2});
            ASSERT_TRUE(executor) << executor.error().message();
            draw_inputs(*executor, 18);
            const Status ran = executor->run();
            ASSERT_TRUE(ran) << ran.error().message();
            outputs = outputs_of(*executor);
        };
        std::vector<std::vector<std::byte>> plain, fast;
        ASSERT_NO_FATAL_FAILURE(run(KernelSet::reference, plain));
        test::on_every_target([&] {
            ASSERT_NO_FATAL_FAILURE(run(KernelSet::fast, fast));
            EXPECT_EQ(fast, plain);
        });
    }
}

TEST(Networks, StateIsKeptUntilReset) {
    REEF_SHARED_OR_SKIP(shared);
    auto executor =
        test::on_cpu(load(shared / "data" / "models" / "keras_lstm_mnist_ptq.tflite"), {});
    ASSERT_TRUE(executor) << executor.error().message();
    EXPECT_GT(executor->memory().variable_bytes, 0U);
    const auto run = [&] {
        std::ranges::fill(executor->input(0), std::byte{200});
        EXPECT_TRUE(executor->run());
        const Bytes output = executor->output(0);
        return std::vector<std::byte>(output.begin(), output.end());
    };
    const auto state = [&] {
        std::vector<std::byte> bytes;
        for (std::size_t i = 0; i < executor->graph().tensors.size(); ++i) {
            if (!executor->graph().tensors[i].is_variable) continue;
            const Bytes tensor = executor->tensor(static_cast<model::TensorIndex>(i));
            bytes.insert(bytes.end(), tensor.begin(), tensor.end());
        }
        return bytes;
    };
    const auto at_start = state();
    const auto first = run();
    const auto after_first = state();
    EXPECT_NE(after_first, at_start);
    run();
    executor->reset_state();
    EXPECT_EQ(state(), at_start);
    EXPECT_EQ(run(), first);
    EXPECT_EQ(state(), after_first);
}

TEST(Networks, CompiledModelsAreRefusedByName) {
    REEF_SHARED_OR_SKIP(shared);
    const auto compiled = models(shared, true);
    for (const auto& path : compiled) {
        const auto executor = test::on_cpu(load(path), {});
        ASSERT_FALSE(executor) << path;
        EXPECT_EQ(executor.error().cause, Cause::unsupported);
        EXPECT_NE(executor.error().place.find("edgetpu-custom-op"), std::string::npos)
            << executor.error().message();
    }
    EXPECT_GE(compiled.size(), 10U);
}

}  // namespace
}  // namespace reef::cpu
