// A pipeline of chips gives the bytes of one.
#include "reef/chip/segments.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "compiler/random_network.h"
#include "reef/edgetpu/compiler.h"
#include "support/compiled_session.h"
#include "support/drawn_seeds.h"
#include "support/shared_data.h"

namespace reef {
namespace {

using model::OperatorRange;
using TensorsByName = std::map<std::string, std::vector<std::byte>>;

const std::string& name_of(const model::Subgraph& graph, model::TensorIndex i) {
    return graph.tensors[static_cast<std::size_t>(i)].name;
}

/// Tensors go on to later segments by name. What a segment gives is `expected`.
void run_next(const model::Model& segment, TensorsByName& tensors, const TensorsByName& expected) {
    auto session = runtime::Session::open(segment, {.devices = {"edgetpu:sim"}});
    ASSERT_TRUE(session) << session.error().message();
    const auto& graph = session->graph();
    for (std::size_t i = 0; i < session->input_count(); ++i) {
        const auto found = tensors.find(name_of(graph, graph.inputs[i]));
        ASSERT_NE(found, tensors.end()) << name_of(graph, graph.inputs[i]);
        std::ranges::copy(found->second, session->input(i).begin());
    }
    const auto ran = session->run();
    ASSERT_TRUE(ran) << ran.error().message();
    for (std::size_t i = 0; i < session->output_count(); ++i) {
        const std::string& name = name_of(graph, graph.outputs[i]);
        const Bytes bytes = session->output(i);
        tensors[name].assign(bytes.begin(), bytes.end());
        EXPECT_TRUE(tensors[name] == expected.at(name)) << name;
    }
}

/// What the network's one program gives, and on the CPU in its arithmetic what lies inside.
TensorsByName tensors_of_the_whole(const model::Model& plain, const model::Model& compiled,
                                   unsigned seed, TensorsByName& inputs) {
    TensorsByName all;
    auto sessions = test::open_compared(plain, compiled);
    EXPECT_TRUE(sessions) << sessions.error().message();
    test::draw_inputs(sessions->chip, sessions->cpu, seed);
    const auto& graph = sessions->cpu.graph();
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
        const Bytes bytes = sessions->cpu.input(i);
        inputs[name_of(graph, graph.inputs[i])].assign(bytes.begin(), bytes.end());
    }
    EXPECT_TRUE(sessions->cpu.run());
    EXPECT_TRUE(sessions->chip.run());
    test::expect_equal_compiled_tensors(sessions->chip, sessions->cpu);
    for (const model::Operator& op : graph.operators)
        for (const model::TensorIndex i : op.outputs) {
            if (i == model::absent_tensor) continue;
            const Bytes bytes = sessions->cpu.tensor(i);
            all[name_of(graph, i)].assign(bytes.begin(), bytes.end());
        }
    return all;
}

struct ChainTally {
    unsigned chains = 0, segments = 0, refused = 0;
    unsigned otherwise = 0;  ///< segments that would be placed otherwise, compiled by themselves
    [[nodiscard]] std::string text() const {
        return fmt::format(
            "{} chains of {} segments, of which {} by themselves are other programs; "
            "{} chains refused",
            chains, segments, otherwise, refused);
    }
};

bool same_placement(const std::vector<chip::CompiledOperator>& a,
                    const std::vector<chip::CompiledOperator>& b) {
    return std::ranges::equal(a, b, {}, &chip::CompiledOperator::on_chip,
                              &chip::CompiledOperator::on_chip);
}

/// Nothing where a range has nothing for the chip, or something that needs its neighbours to be
/// there.
std::vector<model::Model> segments_in(const model::Model& plain, const edgetpu::Compiled& whole,
                                      const std::vector<OperatorRange>& ranges, ChainTally& tally) {
    std::vector<model::Model> segments;
    for (const OperatorRange range : ranges) {
        const auto part = model::part_of(plain, range);
        if (!part) return {};
        const auto alone = edgetpu::compile(part->model, {});
        auto done =
            edgetpu::compile(part->model, chip::options_of_part({}, whole.operators, *part));
        if (!done) {
            EXPECT_EQ(done.error().cause, Cause::unsupported) << done.error().message();
            return {};
        }
        tally.otherwise += alone && same_placement(alone->operators, done->operators) ? 0 : 1;
        segments.push_back(std::move(done->model));
    }
    return segments;
}

void expect_bytes_of_one(const model::Model& plain, const std::vector<OperatorRange>& ranges,
                         unsigned seed, ChainTally& tally) {
    const auto whole = edgetpu::compile(plain, {});
    if (!whole) return;
    const auto segments = segments_in(plain, *whole, ranges, tally);
    if (segments.empty()) {
        ++tally.refused;
        return;
    }
    ++tally.chains;
    tally.segments += static_cast<unsigned>(segments.size());
    TensorsByName given;
    const auto expected = tensors_of_the_whole(plain, whole->model, seed, given);
    for (const auto& segment : segments) run_next(segment, given, expected);
}

TEST(CompileSegments, OfRandomNetworksGiveTheBytesOfTheWhole) {
    const auto seeds = test::drawn_seeds(60);
    ChainTally tally;
    for (unsigned seed = seeds.first; seed < seeds.end(); ++seed) {
        SCOPED_TRACE(seed);
        const auto plain =
            seed % 2 == 0 ? test::random_network(seed) : test::random_network_of_small_images(seed);
        const std::size_t operators = plain.subgraphs.front().operators.size();
        if (operators < 3) continue;
        const std::size_t first = 1 + seed % (operators - 2),
                          second = first + 1 + seed / 7 % (operators - first - 1);
        expect_bytes_of_one(plain,
                            {{0, first}, {first, second - first}, {second, operators - second}},
                            seed, tally);
    }
    fmt::print("{}\n", tally.text());
    EXPECT_GT(tally.chains, seeds.count / 3);
}

/// Where a segment that is searched for by itself leaves to the CPU what the whole has on the chip.
TEST(CompileSegments, OfDeepLabGiveTheBytesOfTheWhole) {
    REEF_SHARED_OR_SKIP(shared);
    const auto plain =
        test::load_model(shared / "data/models/deeplabv3_mnv2_dm05_pascal_quant.tflite");
    const std::size_t operators = plain.subgraphs.front().operators.size();
    ChainTally tally;
    for (const std::size_t border : {std::size_t{62}, std::size_t{63}, std::size_t{64}})
        expect_bytes_of_one(plain, {{0, 24}, {24, border - 24}, {border, operators - border}}, 3,
                            tally);
    fmt::print("{}\n", tally.text());
    EXPECT_GT(tally.otherwise, 0U);
    EXPECT_EQ(tally.chains, 3U);
}

/// As the command divides them.
TEST(CompileSegments, OfLikeTimeGiveTheBytesOfTheWhole) {
    ChainTally tally;
    for (unsigned seed = 1; seed <= 12; ++seed) {
        SCOPED_TRACE(seed);
        const auto plain = test::random_network(seed);
        const auto whole = edgetpu::compile(plain, {});
        if (!whole) continue;
        const auto cost = [&](const model::Part& part) -> Result<double> {
            return REEF_TRY(edgetpu::compile(part.model,
                                             chip::options_of_part({}, whole->operators, part)))
                .seconds();
        };
        const auto ranges = chip::segments_of(plain, 2 + seed % 2, cost);
        if (ranges) expect_bytes_of_one(plain, *ranges, seed, tally);
    }
    fmt::print("{}\n", tally.text());
    EXPECT_GE(tally.chains, 8U);
    EXPECT_EQ(tally.refused, 0U);
}

}  // namespace
}  // namespace reef
