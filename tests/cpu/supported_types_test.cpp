// The sentence about a kernel's limits names the element types that it takes, no more and no fewer.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "cpu/plain/operator_case.h"
#include "cpu/prepare/kernel.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"

namespace reef::plain {
namespace {

constexpr auto all_types = {u8, i8, i16, i32, i64, f32};

/// That a sentence names, of those that cases are drawn of.
std::set<ElementType> named(std::string_view sentence) {
    if (sentence.starts_with("any ")) return all_types;
    std::set<ElementType> out;
    if (sentence.starts_with("8, 16, 32 and 64-bit integers")) out = {u8, i8, i16, i32, i64};
    std::string word;
    for (const char c : std::string(sentence) + " ") {
        if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
            word += c;
            continue;
        }
        if (const auto type = element_type_from(word); type && name_of(*type) == word)
            out.insert(*type);
        word.clear();
    }
    return out;
}

bool taken(const OperatorCase& one) {
    const auto model = model_of(one);
    return model && graph::Executor::create(*model, {.placers = {cpu::placer()}}).has_value();
}

/// Of the first input that is no constant.
ElementType type_of_data(const OperatorCase& one) {
    return std::ranges::find(one.inputs, Role::input, &Values::role)->type;
}

/// The case with its data, results and weights of type `from` in another type.
OperatorCase in_another_type(OperatorCase one, ElementType from, ElementType to) {
    for (auto* values : {&one.inputs, &one.intermediates})
        for (Values& v : *values)
            if (v.type == from) {
                v.type = to;
                for (double& x : v.stored) x = std::clamp(x, 0.0, 100.0);
            }
    for (Expected& e : one.outputs)
        if (e.type == from) e.type = to;
    return one;
}

TEST(SupportedTypes, SentencesNameWhatIsTaken) {
    constexpr std::uint64_t seeds = 40;
    std::size_t taken_cases = 0, refused_cases = 0;
    for (const NamedMaker& maker : all_makers()) {
        const auto* entry = cpu::find_kernel({.builtin = maker.op, .custom = {}});
        ASSERT_NE(entry, nullptr);
        const auto types = named(entry->supports);
        SCOPED_TRACE(model::builtin_name(maker.op) + ": " + std::string(entry->supports));
        ASSERT_FALSE(types.empty());
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
            Choices choices(seed);
            const OperatorCase drawn = maker.make(choices);
            ASSERT_TRUE(taken(drawn)) << seed;
            ++taken_cases;
            const ElementType from = type_of_data(drawn);
            EXPECT_TRUE(types.contains(from)) << name_of(from) << " is taken, seed " << seed;
            for (const ElementType to : all_types) {
                if (types.contains(to)) continue;
                EXPECT_FALSE(taken(in_another_type(drawn, from, to)))
                    << name_of(to) << " is taken, seed " << seed;
                ++refused_cases;
            }
            if (testing::Test::HasFailure()) break;
        }
    }
    EXPECT_GT(taken_cases, 2000U);
    EXPECT_GT(refused_cases, 2000U);
}

bool names_hybrids(std::string_view sentence) {
    return std::ranges::any_of(std::to_array<std::string_view>({"float32 on int8 weights",
                                                                "float32 on constant int8 weights",
                                                                "float32 times constant int8"}),
                               [&](std::string_view words) { return sentence.contains(words); });
}

/// Float32 activations with int8 weights, and neither of another type.
TEST(SupportedTypes, HybridsThatSentencesNameAreTaken) {
    constexpr std::uint64_t seeds = 40;
    for (const NamedMaker& maker : hybrid_makers()) {
        const std::string_view sentence =
            cpu::find_kernel({.builtin = maker.op, .custom = {}})->supports;
        SCOPED_TRACE(model::builtin_name(maker.op) + ": " + std::string(sentence));
        EXPECT_TRUE(names_hybrids(sentence));
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
            Choices choices(seed);
            const OperatorCase drawn = maker.make(choices);
            ASSERT_TRUE(taken(drawn)) << seed;
            for (const ElementType to : {u8, i16, i32, i64}) {
                EXPECT_FALSE(taken(in_another_type(drawn, i8, to)))
                    << "weights of " << name_of(to) << " are taken, seed " << seed;
                EXPECT_FALSE(taken(in_another_type(drawn, f32, to)))
                    << "activations of " << name_of(to) << " are taken, seed " << seed;
            }
            if (testing::Test::HasFailure()) break;
        }
    }
}

TEST(SupportedTypes, SentencesWithHybridsHaveCasesOfThem) {
    const auto hybrids = hybrid_makers();
    for (const cpu::KernelEntry& entry : cpu::kernel_registry())
        EXPECT_EQ(names_hybrids(entry.supports),
                  std::ranges::find(hybrids, entry.op, &NamedMaker::op) != hybrids.end())
            << entry.supports;
}

/// Every type that a sentence lists is drawn, and so taken, in some case.
TEST(SupportedTypes, EveryNamedTypeIsTaken) {
    constexpr std::uint64_t seeds = 150;
    for (const NamedMaker& maker : all_makers()) {
        const auto* entry = cpu::find_kernel({.builtin = maker.op, .custom = {}});
        if (entry->supports.starts_with("any ")) continue;
        std::set<ElementType> drawn;
        for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
            Choices choices(seed);
            const OperatorCase one = maker.make(choices);
            for (const Values& v : one.inputs) drawn.insert(v.type);
            for (const Expected& e : one.outputs) drawn.insert(e.type);
        }
        for (const ElementType type : named(entry->supports))
            EXPECT_TRUE(drawn.contains(type))
                << model::builtin_name(maker.op) << " of " << name_of(type);
    }
}

}  // namespace
}  // namespace reef::plain
