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

/// Of a TRANSPOSE_CONV, along one axis: whether the chip stores the taps there. Of two rows of taps
/// at a stride of two, one is in no result of one row.
bool has_result(std::int32_t tap, std::int32_t stride, std::int32_t front, std::int32_t results) {
    return ((tap - front) % stride + stride) % stride < results;
}

std::int32_t front_of_result(model::Padding padding, std::int32_t in, std::int32_t out,
                             std::int32_t taps, std::int32_t stride) {
    if (padding != model::Padding::same) return 0;
    return std::max((in - 1) * stride + taps - out, 0) / 2;
}

/// The array as it is got again: taps of no result are not stored, and read as zero bytes.
Array as_stored(const Model& plain, const NamedArrays::value_type& array) {
    Array stored = array.second;
    const auto& graph = plain.subgraphs.front();
    const auto tensor = [&](model::TensorIndex index) -> const model::Tensor& {
        return graph.tensors[static_cast<std::size_t>(index)];
    };
    for (const model::Operator& op : graph.operators) {
        if (op.code.builtin != model::Op::transpose_conv) continue;
        if (tensor(op.inputs[1]).name != array.first) continue;
        const auto& options = std::get<model::TransposeConvOptions>(op.options);
        const auto &shape = tensor(op.inputs[1]).shape, &in = tensor(op.inputs[2]).shape,
                   &out = tensor(op.outputs[0]).shape;
        const auto seen = [&](std::size_t axis, std::size_t tap) {
            const std::int32_t stride = axis == 1 ? options.stride_h : options.stride_w;
            return has_result(
                static_cast<std::int32_t>(tap), stride,
                front_of_result(options.padding, in[axis], out[axis], shape[axis], stride),
                out[axis]);
        };
        for (std::size_t i = 0; i < stored.data.size(); ++i) {
            const std::size_t at = i / static_cast<std::size_t>(shape[3]);
            const auto columns = static_cast<std::size_t>(shape[2]);
            const auto rows = static_cast<std::size_t>(shape[1]);
            if (!seen(1, at / columns % rows) || !seen(2, at % columns)) stored.data[i] = {};
        }
    }
    return stored;
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
        const auto found = std::ranges::find(*read, array.first, &NamedArrays::value_type::first);
        ASSERT_NE(found, read->end()) << array.first;
        EXPECT_TRUE(found->second == as_stored(other, array)) << array.first;
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
