// Where the data of real programs come from, in numbers that their models fix.
#include "edgetpu/trace/data_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "reef/edgetpu/isa.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::edgetpu::trace {
namespace {

using Kind = DataOrigin::Kind;

Package package_of(const std::filesystem::path& path) {
    const auto model = model::load_tflite(path.string());
    EXPECT_TRUE(model) << path;
    return packages_of(*model).value().at(0).package;
}

std::vector<DataOrigin> of_kind(const std::vector<DataOrigin>& origins, Kind kind) {
    std::vector<DataOrigin> found;
    std::ranges::copy_if(origins, std::back_inserter(found),
                         [&](const DataOrigin& origin) { return origin.kind == kind; });
    return found;
}

std::vector<DataOrigin> inputs_of(const TensorFlow& flow) {
    std::vector<DataOrigin> all;
    for (const auto& part : flow.in) all.insert(all.end(), part.begin(), part.end());
    return all;
}

TEST(DataFlow, OneLayerReadsTheHostAndAllItsParameters) {
    REEF_SHARED_OR_SKIP(shared);
    const auto package = package_of(shared / "data/edgetpu/templates/dense_256_edgetpu.tflite");
    const auto flow = data_flow(package);
    ASSERT_TRUE(flow) << flow.error().message();
    ASSERT_EQ(flow->tensors.size(), 1U);
    const TensorFlow& layer = flow->tensors[0];
    for (const DataOrigin& origin : inputs_of(layer)) {
        EXPECT_EQ(origin, (DataOrigin{Kind::input, 0, 0}));
    }
    // Four groups of 64 outputs: a row of factors, a row of zero points, 64 rows of weights.
    constexpr std::size_t row = 256, group = 66 * row;
    std::set<std::size_t> rows, expected;
    for (const DataOrigin& origin : layer.parameters) {
        EXPECT_EQ(origin.kind, Kind::parameters);
        rows.insert(origin.offset);
    }
    for (std::size_t g = 0; g < 4; ++g)
        for (std::size_t r = 2; r < 66; ++r) expected.insert(g * group + r * row);
    EXPECT_EQ(rows, expected);
    EXPECT_EQ(layer.scaling.size(), 4U);
    for (const DataOrigin& origin : layer.scaling) EXPECT_EQ(origin.offset % group, 0U);
    ASSERT_EQ(flow->outputs.size(), 1U);
    EXPECT_EQ(flow->outputs[0].all, std::vector{(DataOrigin{Kind::tensor, 0, 0})});
    EXPECT_EQ(flow->outputs[0].by_channels.size(), 64U);
}

// Two convolutions of the picture, their squares, the sum of these.
TEST(DataFlow, SumsKnowTheirOperands) {
    REEF_SHARED_OR_SKIP(shared);
    const auto flow =
        data_flow(package_of(shared / "data/edgetpu/templates/looming_64x64_3x3_edgetpu.tflite"));
    ASSERT_TRUE(flow) << flow.error().message();
    const auto& sum = flow->tensors.at(8);
    ASSERT_EQ(sum.place.word, 0x1f3U);
    for (std::size_t half = 0; half < 2; ++half) {
        ASSERT_EQ(of_kind(sum.in[2 * half], Kind::tensor).size(), 1U);
        EXPECT_EQ(sum.in[2 * half], sum.in[2 * half + 1]);
    }
    EXPECT_NE(sum.in[0], sum.in[2]);
    // The matrix of the factors is made of constants.
    EXPECT_EQ(of_kind(sum.parameters, Kind::fill).size(), sum.parameters.size());
    // Squares multiply what they read with itself.
    const auto& square = flow->tensors.at(6);
    EXPECT_EQ(of_kind(square.parameters, Kind::tensor), std::vector{square.in[0].at(0)});
}

/// Rows that an instruction reads, by their place in all parameters.
std::set<std::pair<std::size_t, std::size_t>> rows_of(const TensorFlow& flow) {
    std::set<std::pair<std::size_t, std::size_t>> rows;
    for (const DataOrigin& origin : flow.parameters)
        if (origin.kind == Kind::parameters) rows.emplace(origin.index, origin.offset);
    return rows;
}

TEST(DataFlow, LayersReadTheirOwnRows) {
    REEF_SHARED_OR_SKIP(shared);
    for (const char* name : {"mobilenet_v1_0.25_128_quant", "mobilenet_v1_0.5_160_quant"}) {
        SCOPED_TRACE(name);
        const auto flow =
            data_flow(package_of(shared / "data/models" / (std::string(name) + "_edgetpu.tflite")));
        ASSERT_TRUE(flow) << flow.error().message();
        std::vector<std::set<std::pair<std::size_t, std::size_t>>> layers;
        for (const TensorFlow& one : flow->tensors) {
            const auto rows = rows_of(one);
            if (rows.empty()) continue;
            const auto same = std::ranges::find_if(layers, [&](const auto& layer) {
                return std::ranges::any_of(rows, [&](auto row) { return layer.contains(row); });
            });
            if (same == layers.end())
                layers.push_back(rows);
            else
                same->insert(rows.begin(), rows.end());
        }
        // 28 layers and the table of the softmax; no instruction joins two of them.
        EXPECT_GE(layers.size(), 28U);
        for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
            for (std::size_t j = i + 1; j < layers.size(); ++j) {
                EXPECT_TRUE(std::ranges::none_of(
                    layers[i], [&](auto row) { return layers[j].contains(row); }));
            }
        }
    }
}

/// Bytes of the computing program's layers that only choose: each lane takes at most one byte of
/// the input, with weight 1, or stays 0. Rows of a group lie behind each other, its biases before
/// them.
class Selections {
  public:
    explicit Selections(const Package& package) : package_(package) {
        for (const auto& executable : package.executables)
            chosen_.emplace_back(executable.parameters.size());
    }

    void add(const TensorFlow& flow, const Instruction& mac) {
        const auto lanes =
            static_cast<std::size_t>(std::max(*mac.value("lanes"), *mac.value("last_lanes")) + 1);
        const std::size_t stored = lanes <= 4 ? 4 : (lanes + 15) / 16 * 16;
        std::map<std::size_t, std::size_t> rows;  // offset, executable
        for (const DataOrigin& row : of_kind(flow.parameters, Kind::parameters))
            rows.emplace(row.offset, row.index);
        if (rows.empty() || *mac.value("par_zero") != 0) return;
        std::vector<std::pair<std::size_t, std::size_t>> bytes;
        std::vector<int> taken(stored);
        const std::size_t rows_of_sum = steps_of(mac);
        std::size_t row = 0;
        for (const auto& [offset, executable] : rows) {
            if (row++ % rows_of_sum == 0) taken.assign(stored, 0);
            const Bytes blob = package_.executables[executable].parameters.view();
            if (offset + 4 * stored > blob.size()) return;
            for (std::size_t i = 0; i < 4 * stored; ++i) {
                const int weight = std::to_integer<int>(blob[offset + i]);
                if (weight > 1 || (taken[i / 4] += weight) > 1) return;
                bytes.emplace_back(executable, offset + i);
            }
        }
        for (const DataOrigin& bias : of_kind(flow.scaling, Kind::parameters)) {
            const Bytes blob = package_.executables[bias.index].parameters.view();
            for (std::size_t i = bias.offset; i < bias.offset + 4 * stored; ++i) {
                if (blob[i] != std::byte{0}) return;
                bytes.emplace_back(bias.index, i);
            }
        }
        for (const auto& [executable, at] : bytes) chosen_[executable][at] = true;
    }

    /// Bytes of a stretch that belong to no selection and are not 0.
    [[nodiscard]] std::size_t others(std::size_t executable, std::size_t from,
                                     std::size_t to) const {
        const Bytes blob = package_.executables[executable].parameters.view();
        std::size_t count = 0;
        for (std::size_t i = from; i < to; ++i)
            count += !chosen_[executable][i] && blob[i] != std::byte{0} ? 1 : 0;
        return count;
    }

  private:
    /// Steps of one result, each with a row.
    static std::size_t steps_of(const Instruction& mac) {
        std::size_t steps = 1;
        for (unsigned level = 0; level < 8; ++level) {
            const auto limit = *mac.value("loop.limit" + std::to_string(level));
            if ((*mac.value("reduction_mask") >> level & 1) != 0)
                steps *= static_cast<std::size_t>(limit) + 1;
        }
        return steps;
    }

    const Package& package_;
    std::vector<std::vector<bool>> chosen_;
};

Selections selections_of(const Package& package) {
    Selections selections(package);
    const auto flow = data_flow(package).value();
    const auto& streams = package.find(ExecutableType::execution_only)->bitstreams;
    for (const TensorFlow& one : flow.tensors) {
        const auto program = decode(streams.at(one.place.bitstream).instructions.view()).value();
        const auto at = std::ranges::find(program, one.place.word, &Instruction::word);
        if (at->info->name == "mac") selections.add(one, *at);
    }
    return selections;
}

// What weights do not explain are matrices that put channels in their places.
TEST(DataFlow, ParametersOfNoLayerAreSelections) {
    REEF_SHARED_OR_SKIP(shared);
    const auto split = package_of(shared / "data/models/split_concat_edgetpu.tflite");
    ASSERT_EQ(split.executables.at(1).parameters.size(), 192U);
    EXPECT_EQ(selections_of(split).others(1, 0, 192), 0U);
    const auto lstm = package_of(shared / "data/models/keras_lstm_mnist_ptq_edgetpu.tflite");
    const auto selections = selections_of(lstm);
    ASSERT_EQ(lstm.executables.at(1).parameters.size(), 43968U);
    EXPECT_EQ(selections.others(1, 0, 0x1e40), 0U);
    EXPECT_EQ(selections.others(1, 0x3840, 0x8640), 0U);
    // The gates between them are no selections.
    EXPECT_GT(selections.others(1, 0x1e40, 0x3840), 4000U);
}

TEST(DataFlow, RefusesAPackageThatComputesNothing) {
    REEF_SHARED_OR_SKIP(shared);
    auto package = package_of(shared / "data/edgetpu/templates/dense_256_edgetpu.tflite");
    std::erase_if(package.executables, [](const Executable& one) {
        return one.type != ExecutableType::parameter_caching;
    });
    const auto flow = data_flow(package);
    ASSERT_FALSE(flow);
    EXPECT_THAT(flow.error().message(), testing::HasSubstr("no executable that computes"));
}

}  // namespace
}  // namespace reef::edgetpu::trace
