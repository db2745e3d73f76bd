#include "changed_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "reef/chip/parameters.h"
#include "reef/runtime/registry.h"
#include "support/compiled_session.h"

namespace reef::test {
namespace {

using model::Model;

const chip::ParameterReader& reader() {
    return *runtime::Registry::of_process().part<chip::ParameterReader>("edgetpu");
}

void expect_explained(const chip::ParameterAccount& account) {
    for (const auto& missing : account.missing) ADD_FAILURE() << "missing: " << missing.op;
    for (const auto& blob : account.blobs)
        for (const auto& range : blob.ranges) {
            EXPECT_EQ(range.state, chip::ParameterRange::State::equal)
                << range.size_bytes << " bytes at " << range.offset << " of " << blob.name << ": "
                << range.op << ", " << range.differing_bytes << " differ";
        }
}

/// Weights of the whole range, biases by a few steps.
Array other_numbers(Array array, std::mt19937& random) {
    if (array.type == ElementType::int32) {
        for (std::size_t i = 0; i + 4 <= array.data.size(); i += 4) {
            std::int32_t value;
            std::memcpy(&value, &array.data[i], 4);
            value += static_cast<std::int32_t>(random() % 201) - 100;
            std::memcpy(&array.data[i], &value, 4);
        }
        return array;
    }
    for (std::byte& weight : array.data) {
        weight = static_cast<std::byte>(random());
        // int8 weights are symmetric.
        if (array.type == ElementType::int8 && weight == std::byte{0x80}) weight = std::byte{0x81};
    }
    return array;
}

void replace(Model& plain, const std::string& name, const Array& array) {
    for (auto& tensor : plain.subgraphs.front().tensors) {
        if (tensor.name != name) continue;
        tensor.buffer = static_cast<std::uint32_t>(plain.buffers.size());
        plain.buffers.push_back(SharedBytes::copy_of(array.data));
    }
}

/// A TRANSPOSE_CONV may have some: of two rows of taps at a stride of two where the result has one
/// row, say. They are not stored.
bool has_taps_of_no_result(const Model& plain, const std::string& name) {
    const auto& graph = plain.subgraphs.front();
    return std::ranges::any_of(graph.operators, [&](const model::Operator& op) {
        return op.code.builtin == model::Op::transpose_conv &&
               graph.tensors[static_cast<std::size_t>(op.inputs[1])].name == name;
    });
}

}  // namespace

void expect_computes(const Model& plain, const Model& compiled, unsigned seed) {
    auto sessions = open_compared(plain, compiled);
    ASSERT_TRUE(sessions) << sessions.error().message();
    draw_inputs(sessions->chip, sessions->cpu, seed);
    ASSERT_TRUE(sessions->cpu.run());
    ASSERT_TRUE(sessions->chip.run());
    expect_equal_compiled_tensors(sessions->chip, sessions->cpu);
}

namespace {

/// Arrays that are set give the program of the other model, which has them, too, and are got again
/// with it.
void expect_replaced(chip::Parameters& parameters, const NamedArrays& arrays, const Model& other,
                     unsigned seed) {
    const auto set = parameters.set(arrays);
    ASSERT_TRUE(set) << set.error().message();
    const Model changed = parameters.model().value();
    expect_computes(other, changed, seed);
    const auto again = reader().open(other, changed);
    ASSERT_TRUE(again) << again.error().message();
    expect_explained((*again)->account());
    const auto read = (*again)->get();
    ASSERT_TRUE(read) << read.error().message();
    for (const auto& array : arrays) {
        if (has_taps_of_no_result(other, array.first)) continue;
        EXPECT_NE(std::ranges::find(*read, array), read->end()) << array.first;
    }
}

}  // namespace

ChangedWeights expect_weights_are_replaced(const Model& plain, const Model& compiled, unsigned seed,
                                           std::size_t most) {
    ChangedWeights done;
    auto opened = reader().open(plain, compiled);
    EXPECT_TRUE(opened) << opened.error().message();
    if (!opened) return done;
    const chip::ParameterAccount account = (*opened)->account();
    expect_explained(account);
    for (const auto& blob : account.blobs) done.bytes += blob.size_bytes;
    const auto got = (*opened)->get();
    EXPECT_TRUE(got) << got.error().message();
    if (!got) return done;
    EXPECT_TRUE((*opened)->set(*got));
    EXPECT_EQ((*opened)->model().value(), compiled);
    expect_computes(plain, compiled, seed);
    std::mt19937 random(seed);
    NamedArrays others;
    for (const auto& [name, array] : *got)
        if (array.type != ElementType::float32)
            others.emplace_back(name, other_numbers(array, random));
    std::ranges::shuffle(others, random);
    Model all = plain;
    for (const auto& [name, array] : others) replace(all, name, array);
    for (; done.changed < std::min(most, others.size()); ++done.changed) {
        const auto& [name, array] = others[done.changed];
        SCOPED_TRACE(name);
        Model one = plain;
        replace(one, name, array);
        expect_replaced(*reader().open(plain, compiled).value(), {others[done.changed]}, one, seed);
    }
    if (!others.empty()) expect_replaced(**opened, others, all, seed + 1);
    return done;
}

}  // namespace reef::test
