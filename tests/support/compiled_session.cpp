#include "support/compiled_session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "reef/edgetpu/numerics.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/parameter_plan.h"
#include "reef/model/tflite.h"

namespace reef::test {
namespace {

model::TensorIndex named(const model::Subgraph& graph, const std::string& name) {
    for (std::size_t i = 0; i < graph.tensors.size(); ++i)
        if (graph.tensors[i].name == name) return static_cast<model::TensorIndex>(i);
    return model::absent_tensor;
}

}  // namespace

model::Model load_model(const std::filesystem::path& path) {
    auto model = model::load_tflite(path.string());
    EXPECT_TRUE(model) << (model ? "" : model.error().message());
    return model ? std::move(*model) : model::Model{};
}

Result<ComparedSessions> open_compared(const model::Model& plain, const model::Model& compiled) {
    auto cpu = REEF_TRY(runtime::Session::open(
        plain, {.arithmetic = &edgetpu::arithmetic(),
                .in_arithmetic = REEF_TRY(edgetpu::operators_on_chip(plain, compiled)),
                .keep_all_tensors = true}));
    auto chip = REEF_TRY(
        runtime::Session::open(compiled, {.devices = {"edgetpu:sim"}, .keep_all_tensors = true}));
    return ComparedSessions{std::move(cpu), std::move(chip)};
}

void draw_picture(MutableBytes bytes, unsigned seed) {
    std::mt19937 random(seed);
    int value = 128;
    for (auto& byte : bytes) {
        value += static_cast<int>(random() % 31) - 15;
        value = std::clamp(value, 0, 255);
        byte = static_cast<std::byte>(value);
    }
}

namespace {

/// A picture's values as float32 from -1 to 1.
void draw_numbers(MutableBytes bytes, unsigned seed) {
    std::vector<std::byte> picture(bytes.size() / sizeof(float));
    draw_picture(picture, seed);
    for (std::size_t i = 0; i < picture.size(); ++i) {
        const float value = static_cast<float>(std::to_integer<int>(picture[i])) / 127.5F - 1;
        std::memcpy(&bytes[i * sizeof value], &value, sizeof value);
    }
}

}  // namespace

void draw_inputs(runtime::Session& one, runtime::Session& other, unsigned seed) {
    ASSERT_EQ(one.input_count(), other.input_count());
    for (std::size_t i = 0; i < one.input_count(); ++i) {
        const auto tensor = static_cast<std::size_t>(one.graph().inputs[i]);
        const unsigned own_seed = seed + 10 * static_cast<unsigned>(i);
        const ElementType type = one.graph().tensors[tensor].type;
        if (type == ElementType::float32)
            draw_numbers(one.input(i), own_seed);
        else if (type == ElementType::int32)
            std::ranges::fill(one.input(i), std::byte{0});
        else
            draw_picture(one.input(i), own_seed);
        ASSERT_EQ(one.input(i).size(), other.input(i).size());
        std::ranges::copy(one.input(i), other.input(i).begin());
    }
}

std::size_t expect_equal_compiled_tensors(const runtime::Session& chip,
                                          const runtime::Session& cpu) {
    std::size_t compared = 0, most_values = 0;
    for (const auto& op : chip.graph().operators) {
        if (!edgetpu::is_compiled(op)) continue;
        for (const auto index : op.outputs) {
            const auto& name = chip.graph().tensors[static_cast<std::size_t>(index)].name;
            const auto other = named(cpu.graph(), name);
            if (other == model::absent_tensor) {
                ADD_FAILURE() << "the plain model has no tensor " << name;
                continue;
            }
            const Bytes got = chip.tensor(index);
            const Bytes want = cpu.tensor(other);
            EXPECT_EQ(got.size(), want.size()) << name;
            const auto differs = std::ranges::mismatch(got, want);
            EXPECT_EQ(differs.in1 - got.begin(), std::ssize(got)) << "first difference in " << name;
            most_values = std::max(most_values, std::set(want.begin(), want.end()).size());
            ++compared;
        }
    }
    EXPECT_GT(compared, 0U);
    return most_values;
}

}  // namespace reef::test
