// Compiled networks give the bytes of the chip's arithmetic, and nothing that a watched run finds.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "compile/verification.h"
#include "compiler/random_network.h"
#include "edgetpu/compiler/outcome.h"
#include "edgetpu/compiler/residual_network.h"
#include "reef/base/file.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/layer_tensor.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/parameter_memory.h"
#include "reef/edgetpu/simulator.h"
#include "reef/model/builder.h"
#include "reef/model/operator_samples.h"
#include "reef/model/tflite.h"
#include "reef/runtime/session.h"
#include "support/compiled_session.h"
#include "support/drawn_seeds.h"
#include "support/shared_data.h"

namespace reef {
namespace {

/// A network that failed, to look at: into the folder REEF_COMPILER_KEEP, if there is one.
void keep(const model::Model& model, unsigned seed) {
    const char* folder = std::getenv("REEF_COMPILER_KEEP");
    if (folder == nullptr) return;
    const auto bytes = model::write_tflite(model);
    ASSERT_TRUE(bytes) << bytes.error().message();
    ASSERT_TRUE(write_file(fmt::format("{}/seed_{}.tflite", folder, seed), *bytes));
}

/// REEF_COMPILER_SEEDS networks from REEF_COMPILER_FIRST on.
TEST(CompileRandom, NetworksGiveTheBytesOfTheChipsArithmetic) {
    const auto [first, count] = test::drawn_seeds(350);
    std::size_t equal = 0, refused = 0, on_chip = 0, left = 0;
    for (unsigned seed = first; seed < first + count; ++seed) {
        const auto model = test::random_network(seed);
        const test::Outcome out = test::outcome_of(model, {.most_programs = 1 + seed % 3,
                                                           .keep_islands = true,
                                                           .stream_parameters = seed % 5 == 0});
        EXPECT_EQ(out.problem, "") << "seed " << seed;
        if (!out.problem.empty()) keep(model, seed);
        equal += out.compiled && out.problem.empty() ? 1 : 0;
        refused += out.compiled ? 0 : 1;
        if (!out.compiled) fmt::print("seed {}: {}\n", seed, out.refusal);
        on_chip += out.on_chip;
        left += out.left;
    }
    fmt::print(
        "seeds {} to {}: {} equal and clean, {} with nothing for the chip; {} operators on "
        "the chip, {} left\n",
        first, first + count - 1, equal, refused, on_chip, left);
    EXPECT_GE(10 * equal, 9 * count);
    EXPECT_GE(on_chip, 4 * left);
}

/// Layers that are spread over the tiles by channels; every third where the chip is small, too.
TEST(CompileRandom, NetworksOfSmallImagesGiveTheSameBytes) {
    const auto [first, count] = test::drawn_seeds(60);
    std::size_t spread = 0, equal = 0;
    for (unsigned seed = first; seed < first + count; ++seed) {
        const auto model = test::random_network_of_small_images(seed);
        const auto planned = edgetpu::compile(model, {.print_after = "spread"});
        if (!planned) continue;
        spread += planned->listing.find("; spread: ") != std::string::npos ? 1 : 0;
        edgetpu::CompileOptions options{.most_programs = 1 + seed % 3, .keep_islands = true};
        if (seed % 3 == 0)
            options.most_activation_bytes = planned->programs.front().narrow_bytes - 64;
        const test::Outcome out = test::outcome_of(model, options);
        const bool twice = out.problem.starts_with("finding: reads a second time");
        EXPECT_TRUE(out.problem.empty() || (seed % 3 == 0 && twice))
            << "seed " << seed << ": " << out.problem;
        if (!out.problem.empty() && !twice) keep(model, seed);
        equal += out.compiled && out.problem.empty() ? 1 : 0;
    }
    fmt::print("{} of {} equal and clean, {} with layers spread over the tiles\n", equal, count,
               spread);
    EXPECT_GE(3 * spread, count);
}

/// Images of which one or two fill the chip: bands where the network makes them necessary.
TEST(CompileRandom, NetworksOfLargeImagesGiveTheSameBytes) {
    const auto [first, six] = test::drawn_seeds(60);
    const unsigned count = six / 6;
    std::size_t equal = 0, refused = 0, on_chip = 0, left = 0, banded = 0;
    for (unsigned seed = first; seed < first + count; ++seed) {
        const auto model = test::random_network_of_large_images(seed);
        const test::Outcome out = test::outcome_of(model);
        const bool twice = out.problem.starts_with("finding: reads a second time");
        EXPECT_TRUE(out.problem.empty() || twice) << "seed " << seed << ": " << out.problem;
        if (!out.problem.empty() && !twice) keep(model, seed);
        equal += out.compiled && (out.problem.empty() || twice) ? 1 : 0;
        refused += out.compiled ? 0 : 1;
        banded += twice ? 1 : 0;
        on_chip += out.on_chip;
        left += out.left;
    }
    fmt::print(
        "seeds {} to {}: {} equal, {} of them in bands that share parameters, {} with nothing for "
        "the chip; {} operators on the chip, {} left\n",
        first, first + count - 1, equal, banded, refused, on_chip, left);
    EXPECT_GE(2 * equal, count);
}

/// Layers of one pixel whose rows lie still, on the tile that has the pixel and on others.
TEST(CompileRandom, NetworksThatDecideGiveTheSameBytes) {
    const auto [first, count] = test::drawn_seeds(80);
    std::size_t still = 0, elsewhere = 0, equal = 0;
    for (unsigned seed = first; seed < first + count; ++seed) {
        const auto model = test::random_deciding_network(seed);
        const auto planned = edgetpu::compile(model, {.print_after = "spread"});
        if (planned) {
            still += planned->listing.find("; rows lie still on tile") != std::string::npos ? 1 : 0;
            elsewhere += planned->listing.find(" alone at ") != std::string::npos ? 1 : 0;
        }
        const test::Outcome out = test::outcome_of(model, {.most_programs = 1 + seed % 3,
                                                           .keep_islands = true,
                                                           .stream_parameters = seed % 7 == 0});
        EXPECT_EQ(out.problem, "") << "seed " << seed;
        if (!out.problem.empty()) keep(model, seed);
        equal += out.compiled && out.problem.empty() ? 1 : 0;
    }
    fmt::print("{} of {} equal and clean; {} with rows that lie still, {} on several tiles\n",
               equal, count, still, elsewhere);
    EXPECT_GE(2 * still, count);
    // Of ten seeds it may be none.
    EXPECT_GE(10 * (elsewhere + 1), count);
}

/// States go on from run to run: of four, each begins where the one before ended.
TEST(CompileRandom, RecurrentNetworksGiveTheSameBytes) {
    const auto [first, count] = test::drawn_seeds(20);
    for (unsigned seed = first; seed < first + count; ++seed) {
        const auto model = test::random_recurrent_network(seed);
        const test::Outcome out = test::outcome_of(model);
        EXPECT_TRUE(out.compiled) << out.refusal;
        EXPECT_EQ(out.problem, "") << "seed " << seed;
        EXPECT_EQ(out.left, 0U) << "seed " << seed;
        if (!out.problem.empty()) keep(model, seed);
    }
}

std::vector<edgetpu::Package> packages_of(const model::Model& compiled) {
    std::vector<edgetpu::Package> packages;
    for (const auto& op : compiled.subgraphs.front().operators)
        if (edgetpu::is_compiled(op)) packages.push_back(edgetpu::package_of(op).value());
    return packages;
}

/// Any number of models take turns on one chip: each loads its parameters once.
TEST(CompileTogether, ModelsThatTakeTurnsKeepTheirParametersOnTheChip) {
    for (unsigned seed = 1; seed <= 12; ++seed) {
        SCOPED_TRACE(seed);
        std::vector<model::Model> plain;
        for (unsigned i = 0; i < 2 + seed % 2; ++i)
            plain.push_back(i == 1 ? test::random_network_of_small_images(seed)
                                   : test::random_network(100 * i + seed));
        const auto together = edgetpu::compile_together(plain, {});
        ASSERT_TRUE(together) << together.error().message();
        std::vector<edgetpu::ParameterRows> rows;
        std::set<std::uint64_t> tokens;
        for (std::size_t i = 0; i < plain.size(); ++i) {
            const auto& compiled = (*together)[i].model;
            const auto packages = packages_of(compiled);
            for (const auto& package : packages)
                for (const auto& executable : package.executables)
                    tokens.insert(executable.parameter_caching_token);
            const auto verified = tool::verify_compiled(plain[i], compiled, "edgetpu");
            ASSERT_TRUE(verified) << verified.error().message();
            EXPECT_EQ(verified->first_difference, "");
            EXPECT_TRUE(verified->findings.empty()) << verified->findings.front();
            const auto own = edgetpu::parameter_rows_of(
                                 *packages.front().find(edgetpu::ExecutableType::parameter_caching))
                                 .value();
            for (const auto& other : rows) EXPECT_FALSE(edgetpu::overlap(own, other));
            rows.push_back(own);
        }
        EXPECT_EQ(tokens.size(), 1U) << "a token of another makes the driver load them again";
    }
}

/// A program that caches nothing still holds a row, wherever the others leave room.
TEST(CompileTogether, StreamedModelsFindTheirRowBesideTheOthers) {
    const std::vector<model::Model> plain{test::random_network(3),
                                          test::random_network_of_small_images(4)};
    const auto together = edgetpu::compile_together(plain, {.stream_parameters = true});
    ASSERT_TRUE(together) << together.error().message();
    for (std::size_t i = 0; i < plain.size(); ++i) {
        SCOPED_TRACE(i);
        const auto verified = tool::verify_compiled(plain[i], (*together)[i].model, "edgetpu");
        ASSERT_TRUE(verified) << verified.error().message();
        EXPECT_EQ(verified->first_difference, "");
        EXPECT_TRUE(verified->findings.empty()) << verified->findings.front();
    }
}

/// On one simulated chip in turns, in an order that would show rows that another's run wrote over.
TEST(CompileTogether, RunningOneLeavesTheOthersRowsAlone) {
    const std::vector<model::Model> plain{
        test::random_network(3), test::random_network_of_small_images(4), test::random_network(5)};
    const auto together = edgetpu::compile_together(plain, {});
    ASSERT_TRUE(together) << together.error().message();
    edgetpu::Simulator chip;
    std::vector<edgetpu::SimulatedPackage> packages;
    std::vector<std::vector<std::vector<std::byte>>> first(plain.size());
    for (const auto& one : *together)
        packages.push_back(
            edgetpu::SimulatedPackage::prepare(packages_of(one.model).front()).value());
    for (const std::size_t turn : {0, 1, 2, 0, 2, 1, 0, 1, 2}) {
        const auto& e = packages[turn].executable();
        std::mt19937 random(7);
        std::vector<std::vector<std::byte>> inputs, outputs;
        for (const auto& layer : e.inputs)
            for (auto& b : inputs.emplace_back(edgetpu::tensor_bytes(layer).value()))
                b = static_cast<std::byte>(random());
        for (const auto& layer : e.outputs)
            outputs.emplace_back(edgetpu::tensor_bytes(layer).value());
        const std::vector<Bytes> in(inputs.begin(), inputs.end());
        const std::vector<MutableBytes> out(outputs.begin(), outputs.end());
        const auto done = packages[turn].run(chip, in, out);
        ASSERT_TRUE(done) << done.error().message();
        if (first[turn].empty()) first[turn] = outputs;
        EXPECT_EQ(outputs, first[turn]);
    }
}

/// Convolutions of one pixel, one behind the other.
model::Model chain_of(int layers) {
    constexpr std::int32_t side = 9, channels = 24;
    model::Builder b("a chain");
    const auto numbers = model::per_tensor(0.05F, 120);
    auto last = b.input("in", ElementType::uint8, {1, side, side, channels}, numbers);
    for (int i = 0; i < layers; ++i) {
        std::vector<std::uint8_t> weights(std::size_t{channels} * channels);
        for (std::size_t k = 0; k < weights.size(); ++k)
            weights[k] = static_cast<std::uint8_t>(k * 37 + static_cast<std::size_t>(i));
        const auto w =
            b.constant<std::uint8_t>("weights", ElementType::uint8, {channels, 1, 1, channels},
                                     weights, model::per_tensor(0.006F, 128));
        const auto out =
            b.tensor(fmt::format("t{}", i), ElementType::uint8, {1, side, side, channels}, numbers);
        b.add(model::Op::conv_2d, {last, w, model::absent_tensor}, {out},
              model::Conv2dOptions{.padding = model::Padding::valid, .stride_h = 1, .stride_w = 1});
        last = out;
    }
    b.output(last);
    return b.finish().value();
}

/// Whatever the number of streams, each is cut at the last full stop that it has room for.
TEST(CompileStreams, LongProgramsAreCutWhereverTheirStopsLie) {
    std::size_t most_streams = 0;
    for (const int layers : {150, 500, 900}) {
        SCOPED_TRACE(layers);
        const auto compiled = edgetpu::compile(chain_of(layers), {});
        ASSERT_TRUE(compiled) << compiled.error().message();
        std::size_t left = 0;
        for (const auto& op : compiled->operators) left += op.on_chip ? 0 : 1;
        EXPECT_EQ(left, 0U);
        const auto packages = packages_of(compiled->model);
        for (const auto& executable : packages.front().executables)
            most_streams = std::max(most_streams, executable.bitstreams.size());
    }
    EXPECT_GE(most_streams, 6U);
    const test::Outcome out = test::outcome_of(chain_of(150));
    EXPECT_EQ(out.problem, "");
}

/// Every layer asks for its own parameters, when it takes them: the next stream's instructions, and
/// what comes back from the host's memory, lie behind them on one way.
TEST(CompileStreams, ThatTakeParametersFromTheHostAskLayerByLayer) {
    constexpr int layers = 700;
    const auto plain = chain_of(layers);
    const test::Outcome out = test::outcome_of(plain, {.stream_parameters = true});
    EXPECT_EQ(out.problem, "");
    EXPECT_EQ(out.left, 0U);
    const auto compiled = edgetpu::compile(plain, {.stream_parameters = true});
    ASSERT_TRUE(compiled) << compiled.error().message();
    const auto packages = edgetpu::packages_of(compiled->model).value();
    const auto& computing = packages.front().package.executables.front();
    ASSERT_EQ(computing.type, edgetpu::ExecutableType::execution_only);
    EXPECT_GE(computing.bitstreams.size(), 3U);
    std::size_t bytes = 0;
    int asked = 0;
    for (const edgetpu::DmaHint& hint : computing.dma_hints->hints) {
        const auto* transfer = std::get_if<edgetpu::DmaDescriptorHint>(&hint.what);
        if (transfer == nullptr || transfer->meta.base != edgetpu::BaseAddress::parameter) continue;
        EXPECT_EQ(static_cast<std::size_t>(transfer->offset_bytes), bytes);
        bytes += static_cast<std::size_t>(transfer->size_bytes);
        ++asked;
    }
    EXPECT_EQ(asked, layers);
    EXPECT_EQ(bytes, computing.parameters.size());
}

/// A sum at the head of a stretch of bands: each tile computes its margins from both operands'
/// pixels on other tiles.
TEST(CompileBands, StretchesThatBeginWithTwoOperandsTakeBothMargins) {
    std::size_t cut = 0;
    for (const model::Op op : {model::Op::add, model::Op::mul, model::Op::maximum}) {
        SCOPED_TRACE(static_cast<int>(op));
        const auto model = test::residual_network(op);
        const auto whole = edgetpu::compile(model, {});
        ASSERT_TRUE(whole) << whole.error().message();
        for (const unsigned eighths : {5U, 6U, 7U}) {
            const test::Outcome out = test::outcome_of(
                model,
                {.most_activation_bytes = whole->programs.front().narrow_bytes * eighths / 8});
            const bool twice = out.problem.starts_with("finding: reads a second time");
            EXPECT_TRUE(out.problem.empty() || twice) << eighths << " eighths: " << out.problem;
            cut += twice ? 1 : 0;
        }
    }
    EXPECT_GE(cut, 3U);
}

/// The same on a chip that is made too small for them. Bands send their parameters once for each.
TEST(CompileRandom, NetworksInBandsGiveTheSameBytes) {
    const auto [first, count] = test::drawn_seeds(60);
    std::size_t banded = 0, refused = 0;
    for (unsigned seed = first; seed < first + count; ++seed) {
        const auto model = test::random_network(seed);
        const auto whole = edgetpu::compile(model, {});
        if (!whole) continue;
        const auto needed = whole->programs.front().narrow_bytes;
        const test::Outcome out =
            test::outcome_of(model, {.stream_parameters = seed % 7 == 0,
                                     .most_activation_bytes = needed * (4 + seed % 4) / 8});
        const bool twice = out.problem.starts_with("finding: reads a second time");
        EXPECT_TRUE(out.problem.empty() || twice) << "seed " << seed << ": " << out.problem;
        if (!out.problem.empty() && !twice) keep(model, seed);
        banded += twice ? 1 : 0;
        refused += out.compiled ? 0 : 1;
    }
    fmt::print("{} of {} in bands that share parameters, {} with nothing left for the chip\n",
               banded, count, refused);
    EXPECT_GE(20 * banded, count);
}

// Sanitizers make a strict run some ten times as slow.
#ifdef REEF_LARGE_PROGRAMS
constexpr int compared_variants = 4;
#else
constexpr int compared_variants = 25;
#endif

/// Files with a few other bytes, where they can be read: nothing but a refusal or a right program.
TEST(CompileRandom, DamagedModelsAreRefusedOrCompiled) {
    std::size_t read = 0, compiled = 0, compared = 0;
    for (unsigned seed = 1; seed <= 40; ++seed) {
        const auto network =
            seed % 4 == 0 ? test::random_recurrent_network(seed) : test::random_network(seed);
        const auto bytes = model::write_tflite(network).value();
        std::mt19937 random(seed);
        for (int variant = 0; variant < 25; ++variant) {
            auto damaged = bytes;
            for (int i = 0; i < 3; ++i)
                damaged[random() % damaged.size()] = static_cast<std::byte>(random());
            const auto model = model::read_tflite(SharedBytes::copy_of(damaged));
            if (!model) continue;
            ++read;
            const auto done = edgetpu::compile(*model, {.most_programs = 2, .keep_islands = true});
            compiled += done ? 1 : 0;
            if (!done) {
                EXPECT_EQ(done.error().hint.find("bug"), std::string::npos)
                    << "seed " << seed << ": " << done.error().message();
                continue;
            }
            // What the CPU cannot run either has no bytes to compare.
            if (variant % compared_variants != 0 || !runtime::Session::open(*model, {})) continue;
            ++compared;
            const test::Outcome out =
                test::outcome_of(*model, {.most_programs = 2, .keep_islands = true});
            EXPECT_EQ(out.problem, "") << "seed " << seed << ", variant " << variant;
            if (!out.problem.empty()) keep(*model, 1000 * seed + static_cast<unsigned>(variant));
        }
    }
    fmt::print("{} damaged models read, {} compiled, {} compared\n", read, compiled, compared);
    EXPECT_GE(compared, 80U / compared_variants);
}

/// Each alone makes a known LSTM one that no known program computes.
TEST(CompileRecurrent, WhatIsNotKnownIsRefusedByItsName) {
    using model::UnidirectionalSequenceLstmOptions;
    struct Edit {
        const char* reason;
        std::function<void(model::Model&, model::Operator&)> apply;
    };
    const auto option = [](auto change) {
        return [change](model::Model&, model::Operator& op) {
            change(std::get<UnidirectionalSequenceLstmOptions>(op.options));
        };
    };
    const auto numbers = [](std::size_t input, float scale) {
        return [=](model::Model& m, model::Operator& op) {
            m.subgraphs[0].tensors[static_cast<std::size_t>(op.inputs[input])].quantization =
                model::per_tensor(scale, 0);
        };
    };
    const std::vector<Edit> edits = {
        {"activation is not TANH", option([](auto& o) { o.activation = model::Activation::relu; })},
        {"limits the cell", option([](auto& o) { o.cell_clip = 1; })},
        {"steps of 2^-12", numbers(19, 0x1p-11F)},
        {"other scales", numbers(18, 0.5F)},
        {"peephole", [](auto&, auto& op) { op.inputs[9] = op.inputs[1]; }},
        {"input is missing", [](auto&, auto& op) { op.inputs[1] = model::absent_tensor; }},
        {"not computed", [](auto&, auto& op) { op.inputs[0] = op.inputs[5]; }},
        {"input is missing", [](auto&, auto& op) { op.inputs[0] = model::absent_tensor; }},
        {"hidden value has another scale",
         [](auto& m, auto& op) {
             auto& tensors = m.subgraphs[0].tensors;
             tensors.push_back(tensors[static_cast<std::size_t>(op.outputs[0])]);
             tensors.back().quantization = model::per_tensor(0.25F, 0);
             op.intermediates.assign(5, static_cast<model::TensorIndex>(tensors.size() - 1));
         }},
    };
    for (const Edit& edit : edits) {
        model::Model network = test::random_recurrent_network(1);
        auto& operators = network.subgraphs[0].operators;
        edit.apply(network, operators.front());
        const auto verdicts = edgetpu::mapping(network, {});
        if (!verdicts) {
            ADD_FAILURE() << edit.reason << ": " << verdicts.error().message();
            continue;
        }
        EXPECT_FALSE(verdicts->front().on_chip) << edit.reason;
        EXPECT_THAT(verdicts->front().reason, testing::HasSubstr(edit.reason));
    }
}

/// A repeated step moves the results of all of them on: where those are many, each step has
/// instructions of its own. The bytes are the same.
TEST(CompileRecurrent, StepsAreRepeatedWhereThatTakesLessTime) {
    struct Sizes {
        std::int32_t steps, units;
        bool repeats;
    };
    for (const auto [steps, units, repeats] : {Sizes{1, 20, false},
                                               {2, 20, true},
                                               {28, 20, true},
                                               {90, 6, true},
                                               {40, 240, true},
                                               {200, 180, false}}) {
        SCOPED_TRACE(fmt::format("{} steps of {} units", steps, units));
        const auto network = test::recurrent_network(7, steps, units);
        const test::Outcome out = test::outcome_of(network);
        EXPECT_TRUE(out.compiled) << out.refusal;
        EXPECT_EQ(out.problem, "");
        EXPECT_EQ(out.left, 0U);
        const auto compiled = edgetpu::compile(network, {.print_after = "emit"});
        ASSERT_TRUE(compiled);
        EXPECT_EQ(compiled->listing.find("branch ") != std::string::npos, repeats);
    }
}

/// Its channels are gathered in several shares, of 3 words of a pixel and the last of 1.
TEST(CompileAverages, OfMoreThanATileHoldsGiveTheSameBytes) {
    model::Builder builder("average");
    const auto numbers = model::per_tensor(0.05F, 100);
    const auto in = builder.input("in", ElementType::uint8, {1, 90, 110, 38}, numbers);
    const auto axes = builder.constant<std::int32_t>("axes", ElementType::int32, {2},
                                                     std::vector<std::int32_t>{1, 2});
    const auto out = builder.tensor("out", ElementType::uint8, {1, 1, 1, 38}, numbers);
    builder.add(model::Op::mean, {in, axes}, {out}, model::ReducerOptions{true});
    builder.output(out);
    const test::Outcome done = test::outcome_of(std::move(builder.finish()).value());
    EXPECT_TRUE(done.compiled) << done.refusal;
    EXPECT_EQ(done.problem, "");
}

/// What the page of operators calls taken is taken, and right.
TEST(CompileSamples, GiveTheBytesOfTheChipsArithmetic) {
    for (const ElementType type : {ElementType::uint8, ElementType::int8}) {
        const auto samples = model::operator_samples(type);
        ASSERT_TRUE(samples) << samples.error().message();
        for (const model::OperatorSample& sample : *samples) {
            SCOPED_TRACE(fmt::format("{} {}, {}", name_of(type), sample.name, sample.variant));
            const auto verdicts = edgetpu::mapping(sample.model, {});
            ASSERT_TRUE(verdicts) << verdicts.error().message();
            const test::Outcome out = test::outcome_of(sample.model);
            EXPECT_EQ(out.problem, "");
            const bool taken = std::ranges::all_of(*verdicts, &chip::CompiledOperator::on_chip);
            EXPECT_EQ(out.compiled && out.left == 0, taken) << out.refusal;
        }
    }
}

}  // namespace
}  // namespace reef
