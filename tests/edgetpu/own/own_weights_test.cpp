// Weights of what Reef's own compiler made: every byte is explained, every tensor can be replaced.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>

#include "changed_weights.h"
#include "compiler/random_network.h"
#include "own_models.h"
#include "reef/edgetpu/compiled_parameters.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/package.h"
#include "reef/model/builder.h"
#include "reef/model/operator_samples.h"
#include "support/drawn_seeds.h"

namespace reef::edgetpu {
namespace {

constexpr std::size_t all_tensors = 1000;

bool has_program(const model::Model& compiled) {
    const auto packages = packages_of(compiled);
    EXPECT_TRUE(packages) << packages.error().message();
    return packages && !packages->empty();
}

TEST(OwnWeights, OfEveryNetworkAreReplaced) {
    std::size_t changed = 0;
    for (const test::OwnModel& one : test::own_models()) {
        SCOPED_TRACE(one.name);
        changed +=
            test::expect_weights_are_replaced(one.plain, one.compiled, 3, all_tensors).changed;
    }
    EXPECT_GE(changed, 40U);
}

/// Of networks of each operator that the compiler takes.
TEST(OwnWeights, OfEveryOperatorAreReplaced) {
    std::size_t changed = 0, networks = 0;
    for (const ElementType type : {ElementType::uint8, ElementType::int8}) {
        const auto samples = model::operator_samples(type).value();
        for (const model::OperatorSample& sample : samples) {
            SCOPED_TRACE(fmt::format("{} {}, {}", name_of(type), sample.name, sample.variant));
            for (const bool conservative : {false, true}) {
                const auto compiled = compile(sample.model, {.known_forms_only = conservative});
                if (!compiled || !has_program(compiled->model)) continue;
                changed +=
                    test::expect_weights_are_replaced(sample.model, compiled->model, 5, all_tensors)
                        .changed;
                ++networks;
            }
        }
    }
    EXPECT_GT(networks, 200U);
    EXPECT_GT(changed, 50U);
}

/// The programs of a network lie beside one another in the chip's memory, and stay so.
TEST(OwnWeights, ProgramsOfANetworkKeepOneToken) {
    const test::OwnModel& one = test::own_models().back();
    const auto token_of = [](const CompiledOperator& op) {
        return op.package.executables.front().parameter_caching_token;
    };
    const auto before = packages_of(one.compiled).value();
    ASSERT_EQ(before.size(), 2U);
    ASSERT_EQ(token_of(before[0]), token_of(before[1]));
    auto opened = CompiledParameters::open(one.plain, one.compiled).value();
    NamedArrays arrays = opened.get().value();
    arrays.resize(1);
    std::ranges::reverse(arrays.front().second.data);
    ASSERT_TRUE(opened.set(arrays));
    const auto after = packages_of(opened.model().value()).value();
    EXPECT_NE(token_of(after[0]), token_of(before[0]));
    EXPECT_EQ(token_of(after[0]), token_of(after[1]));
}

/// Another first dimension, with zeros for what is more.
void make_rows(model::Model& model, model::TensorIndex index, std::int32_t rows) {
    auto& tensor = model.subgraphs.front().tensors.at(static_cast<std::size_t>(index));
    const Bytes before = model.constant(tensor);
    tensor.shape.front() = rows;
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.byte_count().value()));
    std::copy_n(before.begin(), std::min(before.size(), bytes.size()), bytes.begin());
    model.buffers.push_back(SharedBytes::copy_of(bytes));
    tensor.buffer = static_cast<std::uint32_t>(model.buffers.size() - 1);
}

/// Bytes of a layer are never written to an array of another size, nor an array over a layer's end.
TEST(OwnWeights, PlainModelsWithOtherBiasesAreRefused) {
    std::size_t refused = 0;
    for (const test::OwnModel& one : test::own_models())
        for (const model::Operator& op : one.plain.subgraphs.front().operators) {
            if (op.code.builtin != model::Op::conv_2d || op.inputs.size() < 3) continue;
            model::Model other = one.plain;
            make_rows(other, op.inputs[2], 257);
            auto opened = CompiledParameters::open(other, one.compiled);
            if (!opened) continue;
            const auto got = opened->get();
            ASSERT_FALSE(got) << one.name;
            EXPECT_NE(got.error().message().find("a bias of 257 elements"), std::string::npos)
                << got.error().message();
            const auto& bias =
                other.subgraphs.front().tensors.at(static_cast<std::size_t>(op.inputs[2]));
            const std::vector<std::int32_t> ones(257, 1);
            const auto bytes = std::as_bytes(std::span(ones));
            EXPECT_FALSE(opened->set(
                {{bias.name, Array{ElementType::int32, {257}, {bytes.begin(), bytes.end()}}}}));
            ++refused;
        }
    EXPECT_GE(refused, 5U);
}

/// Of which one tensor is weights and bias at once, as damaged files have it.
TEST(OwnWeights, BiasesOfOtherTypesAreRefused) {
    std::size_t refused = 0;
    for (const test::OwnModel& one : test::own_models())
        for (std::size_t i = 0; i < one.plain.subgraphs.front().operators.size(); ++i) {
            model::Model other = one.plain;
            model::Operator& op = other.subgraphs.front().operators[i];
            const bool layer = op.code.builtin == model::Op::conv_2d ||
                               op.code.builtin == model::Op::depthwise_conv_2d;
            if (!layer || op.inputs.size() < 3) continue;
            auto& tensors = other.subgraphs.front().tensors;
            const model::Tensor& bias = tensors[static_cast<std::size_t>(op.inputs[2])];
            model::Tensor bytes = tensors[static_cast<std::size_t>(op.inputs[1])];
            bytes.shape = bias.shape;
            bytes.name = "bias of bytes";
            tensors.push_back(bytes);
            op.inputs[2] = static_cast<model::TensorIndex>(tensors.size() - 1);
            const auto opened = CompiledParameters::open(other, one.compiled);
            const auto got = opened ? opened->get() : std::unexpected(opened.error());
            ASSERT_FALSE(got) << one.name;
            ++refused;
        }
    EXPECT_GE(refused, 5U);
}

/// Bytes of an array are as many as its shape says.
TEST(OwnWeights, ArraysOfOtherBytesThanTheirShapesAreRefused) {
    const test::OwnModel& one = test::own_models().front();
    auto opened = CompiledParameters::open(one.plain, one.compiled);
    ASSERT_TRUE(opened) << opened.error().message();
    auto arrays = opened->get().value();
    for (auto& [name, array] : arrays) array.data.resize(array.data.size() + 4);
    const auto set = opened->set(arrays);
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().cause, Cause::bad_argument);
}

/// Selections of channels would take gigabytes.
TEST(OwnWeights, PlainModelsWithImpossiblyManyChannelsAreRefused) {
    model::Builder builder("blocks");
    const auto numbers = model::per_tensor(0.05F, 3);
    const auto in = builder.input("in", ElementType::int8, {1, 6, 6, 16}, numbers);
    const auto out = builder.tensor("out", ElementType::int8, {1, 12, 12, 4}, numbers);
    builder.add(model::Op::depth_to_space, {in}, {out},
                model::DepthToSpaceOptions{.block_size = 2});
    builder.output(out);
    model::Model plain = builder.finish().value();
    const auto compiled = compile(plain, {.keep_islands = true});
    ASSERT_TRUE(compiled) << compiled.error().message();
    ASSERT_TRUE(CompiledParameters::open(plain, compiled->model));
    for (auto& tensor : plain.subgraphs.front().tensors)
        if (tensor.name == "in") tensor.shape[3] = 16711688;
    const auto opened = CompiledParameters::open(plain, compiled->model);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().cause, Cause::unsupported);
    EXPECT_NE(opened.error().message().find("'in' is 1x6x6x16711688"), std::string::npos)
        << opened.error().message();
}

TEST(OwnWeights, GatesOfUnequalShapesAreNoGates) {
    std::size_t tried = 0;
    for (unsigned seed = 1; seed < 20; ++seed) {
        const model::Model plain = test::recurrent_network(seed, 3, 8);
        const auto compiled = compile(plain, {});
        if (!compiled || !has_program(compiled->model)) continue;
        model::Model other = plain;
        for (const model::Operator& op : other.subgraphs.front().operators) {
            if (op.code.builtin != model::Op::unidirectional_sequence_lstm) continue;
            make_rows(other, op.inputs[1], 15);
            make_rows(other, op.inputs[2], 1);
        }
        const auto opened = CompiledParameters::open(other, compiled->model);
        if (!opened) continue;
        const auto got = opened->get();
        for (const auto& [name, array] : got ? *got : NamedArrays{})
            EXPECT_EQ(name.find("gate"), std::string::npos) << name;
        ++tried;
    }
    EXPECT_GT(tried, 0U);
}

TEST(OwnWeights, OfRandomNetworksAreReplaced) {
    using Maker = model::Model (*)(unsigned);
    constexpr std::array<Maker, 4> makers = {
        test::random_network, test::random_network_of_small_images, test::random_deciding_network,
        test::random_recurrent_network};
    const auto seeds = test::drawn_seeds(40);
    std::size_t bytes = 0, changed = 0, networks = 0;
    for (unsigned seed = seeds.first; seed < seeds.end(); ++seed)
        for (std::size_t kind = 0; kind < makers.size(); ++kind) {
            SCOPED_TRACE(fmt::format("network of kind {}, seed {}", kind, seed));
            const model::Model plain = makers[kind](seed);
            const auto compiled = compile(plain, test::options_in_turn(seed));
            if (!compiled || !has_program(compiled->model)) continue;
            const auto done = test::expect_weights_are_replaced(plain, compiled->model, seed, 2);
            bytes += done.bytes;
            changed += done.changed;
            ++networks;
        }
    fmt::print("{} networks: {} bytes of parameters, {} tensors replaced alone\n", networks, bytes,
               changed);
    EXPECT_GT(networks, 3 * seeds.count);
}

}  // namespace
}  // namespace reef::edgetpu
