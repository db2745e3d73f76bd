// Packed weights of several kernels in one process.
#include "cpu/fast/shared_packing.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <latch>
#include <memory>
#include <new>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "cpu/fast/aligned_array.h"
#include "cpu/fast/matrix_product.h"
#include "support/sleeping_threads.h"

namespace reef::test {
namespace {

using cpu::PackedBytes;
using cpu::PackingForm;

PackingForm form_of(std::int64_t number) {
    return {PackingForm::Kind::matrix, {1, 2, number}};
}

SharedBytes weights_of(int first) {
    std::vector<std::byte> bytes(1000);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(first++);
    return SharedBytes::copy_of(bytes);
}

struct Packer {
    int times = 0;
    PackedBytes operator()(const SharedBytes& weights, const PackingForm& how = form_of(3)) {
        return cpu::share_packed(weights, how, weights.size(), [&](std::byte* to) {
            ++times;
            std::ranges::copy(weights.view(), to);
        });
    }
};

TEST(SharedPacking, EqualWeightsArePackedOnce) {
    Packer pack;
    const SharedBytes a = weights_of(1), same = weights_of(1), other = weights_of(2);
    const PackedBytes first = pack(a);
    EXPECT_EQ(pack(a), first);
    EXPECT_EQ(pack(same), first);
    EXPECT_EQ(pack.times, 1);
    EXPECT_NE(pack(other), first);
    EXPECT_NE(pack(a, form_of(4)), first);
    EXPECT_EQ(pack.times, 3);
}

TEST(SharedPacking, MemoryThatThereIsNotIsNoArray) {
    EXPECT_THROW(std::ignore = cpu::aligned_array<std::int32_t>(SIZE_MAX / 2), std::bad_alloc);
    EXPECT_NE(cpu::aligned_array<std::int32_t>(0), nullptr);
}

// A mapped file that is overwritten in place, as `cp` does, or a buffer that is filled anew.
TEST(SharedPacking, OverwrittenWeightsArePackedAnew) {
    Packer pack;
    const auto buffer = std::make_shared<std::vector<std::byte>>(1000, std::byte{20});
    const SharedBytes weights{*buffer, buffer};
    const PackedBytes before = pack(weights);
    std::ranges::fill(*buffer, std::byte{21});
    const SharedBytes untouched = SharedBytes::copy_of(*buffer);
    for (const SharedBytes* now : {&untouched, &weights, &untouched}) {
        const PackedBytes after = pack(*now);
        EXPECT_NE(after, before);
        EXPECT_EQ(*after, std::byte{21});
    }
    EXPECT_EQ(*before, std::byte{20});
    const SharedBytes old = SharedBytes::copy_of(std::vector<std::byte>(1000, std::byte{20}));
    EXPECT_EQ(pack(old), before);
}

TEST(SharedPacking, NobodyKeepsWhatNoKernelHolds) {
    Packer pack;
    const SharedBytes a = weights_of(3);
    PackedBytes packed = pack(a);
    const std::weak_ptr<const std::byte> left = packed;
    packed = nullptr;
    EXPECT_TRUE(left.expired());
    packed = pack(a);
    EXPECT_EQ(pack.times, 2);
}

// What is packed of them can be compared when the weights can not.
TEST(SharedPacking, WeightsThatAreGonePackToTheSame) {
    Packer pack;
    const PackedBytes first = pack(weights_of(4));
    const SharedBytes same = weights_of(4);
    EXPECT_EQ(pack(same), first);
    EXPECT_EQ(pack.times, 2);
    EXPECT_EQ(pack(weights_of(4)), first);
    EXPECT_EQ(pack.times, 2);
    EXPECT_NE(pack(weights_of(10)), first);
}

TEST(SharedPacking, ThreadsThatAskAtOnceGetOne) {
    constexpr std::size_t threads = 4;
    const SharedBytes weights[2] = {weights_of(11), weights_of(11)};
    std::atomic<int> times = 0;
    std::latch start(threads);
    std::array<PackedBytes, threads> packed;
    {
        std::vector<std::jthread> running;
        for (std::size_t i = 0; i < threads; ++i)
            running.emplace_back([&, i] {
                start.arrive_and_wait();
                packed[i] = cpu::share_packed(weights[i % 2], form_of(5), 1000, [&](std::byte*) {
                    ++times;
                    // So that the others ask meanwhile.
                    std::this_thread::sleep_for(std::chrono::milliseconds(50));
                });
            });
    }
    EXPECT_EQ(times, 1);
    for (const PackedBytes& one : packed) EXPECT_EQ(one, packed[0]);
}

// Nothing is held while one thread packs: others pack other weights.
TEST(SharedPacking, PackingsOfDifferentWeightsDoNotWait) {
    Packer inner;
    const SharedBytes outer_weights = weights_of(12), weights = weights_of(13);
    PackedBytes other;
    const PackedBytes outer = cpu::share_packed(outer_weights, form_of(6), 1000, [&](std::byte*) {
        std::jthread([&] { other = inner(weights); }).join();
    });
    EXPECT_NE(other, nullptr);
    EXPECT_NE(other, outer);
}

TEST(SharedPacking, WhoWaitsForOneThatFailsPacks) {
    const SharedBytes weights = weights_of(14);
    Packer pack;
    PackedBytes second;
    std::promise<pid_t> asks;
    std::jthread other;
    bool waited = false;
    const auto fails = [&](std::byte*) {
        other = std::jthread([&] {
            asks.set_value(::gettid());
            second = pack(weights);
        });
        waited = falls_asleep(asks.get_future().get());
        throw std::bad_alloc();
    };
    EXPECT_THROW((void)cpu::share_packed(weights, form_of(3), 1000, fails), std::bad_alloc);
    other.join();
    EXPECT_TRUE(waited);
    EXPECT_NE(second, nullptr);
    EXPECT_EQ(pack.times, 1);
    EXPECT_EQ(pack(weights), second);
}

TEST(SharedPacking, WhoPackedFirstMayGoFirst) {
    Packer pack;
    auto a = std::make_unique<SharedBytes>(weights_of(6));
    const PackedBytes first = pack(*a);
    const SharedBytes same = weights_of(6);
    EXPECT_EQ(pack(same), first);
    a = nullptr;
    EXPECT_EQ(pack(weights_of(6)), first);
    EXPECT_EQ(pack.times, 1);
}

// Biases are not packed with the weights, and may differ.
TEST(SharedPacking, MatricesOfEqualWeightsAreOne) {
    const cpu::MatrixFunctions* functions = cpu::matrix_functions();
    if (functions == nullptr) GTEST_SKIP() << "a target without vectors packs nothing";
    const auto weights_of_matrix = [&](int first, std::int32_t bias) {
        cpu::Convolution c;
        c.type = ElementType::int8;
        c.in_channels = c.depth = 50;
        c.out_channels = 20;
        c.weights = weights_of(first);
        c.bias.assign(20, bias);
        c.multipliers.assign(20, {});
        cpu::PackedMatrix packed =
            cpu::lay_out_matrix(c, functions->group, functions->widest_block);
        cpu::pack_matrix(c, packed);
        return std::pair{packed.weights, c.weights};
    };
    const auto a = weights_of_matrix(7, 1), same = weights_of_matrix(7, 2);
    const auto other = weights_of_matrix(8, 1);
    EXPECT_NE(a.first, nullptr);
    EXPECT_EQ(same.first, a.first);
    EXPECT_NE(other.first, a.first);
}

// What becomes float32 is decided where sums are stored.
TEST(SharedPacking, HybridMatricesShareWithQuantisedOnes) {
    const cpu::MatrixFunctions* functions = cpu::matrix_functions();
    if (functions == nullptr) GTEST_SKIP() << "a target without vectors packs nothing";
    cpu::Convolution quantised;
    quantised.type = ElementType::int8;
    quantised.in_channels = quantised.depth = 50;
    quantised.out_channels = 20;
    quantised.weights = weights_of(9);
    quantised.bias.assign(20, 0);
    quantised.multipliers.assign(20, {});
    cpu::Convolution hybrid = quantised;
    hybrid.weights = weights_of(9);
    hybrid.floats = cpu::FloatSums{.bias = std::vector<float>(20), .clamp = {-1, 1}};
    const auto packed = [&](const cpu::Convolution& c) {
        auto matrix = cpu::lay_out_matrix(c, functions->group, functions->widest_block);
        if (c.floats)
            matrix.float_output = cpu::float_output_of(*c.floats, std::vector{1.0F}, matrix.blocks);
        cpu::pack_matrix(c, matrix);
        return matrix.weights;
    };
    const auto first = packed(quantised);
    EXPECT_NE(first, nullptr);
    EXPECT_EQ(packed(hybrid), first);
}

TEST(SharedPacking, WeightsWithoutAnOwnerAreNotShared) {
    Packer pack;
    const SharedBytes owned = weights_of(5);
    const SharedBytes bare(owned.view(), nullptr);
    const PackedBytes first = pack(bare);
    EXPECT_NE(pack(bare), first);
    EXPECT_EQ(pack.times, 2);
}

}  // namespace
}  // namespace reef::test
