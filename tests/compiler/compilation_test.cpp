// The loop of every chip's compiler, for a chip that is none.
#include "compiler/compilation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "reef/model/builder.h"

namespace reef::compiler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view program_name = "drawer";
constexpr std::array<std::string_view, 1> own_passes{"fill"};

/// Takes every sum; the drawer is too small for those of `unfit`.
class DrawerTarget final : public Target {
  public:
    [[nodiscard]] std::string refusal(const Graph&, const Node& node) const override {
        return std::holds_alternative<Sum>(node.operation) ? "" : "it is no sum";
    }
};

class Drawer final : public Backend {
  public:
    std::set<std::size_t> unfit;  ///< nodes that lower() refuses
    std::string beyond;           ///< behind the place of that refusal
    Cause cause = Cause::unsupported;
    std::size_t usual = 1;
    bool far = false;                 ///< the CPU is always sooner
    std::vector<std::size_t> filled;  ///< nodes of the programs of this attempt
    unsigned attempts = 1;

    [[nodiscard]] std::string_view chip() const override { return "the drawer"; }
    [[nodiscard]] const Target& target() const override { return target_; }
    [[nodiscard]] std::int64_t most_taps() const override { return 9; }
    [[nodiscard]] std::size_t usual_programs() const override { return usual; }
    [[nodiscard]] bool is_compiled(const model::Operator& op) const override {
        return op.code.custom == program_name;
    }
    [[nodiscard]] Result<ProgramOperator> lower(const Graph& graph, const Program& program,
                                                Passes& passes) override {
        REEF_CHECK(passes.begin(own_passes[0]));
        for (const std::size_t node : program.nodes)
            if (unfit.contains(node))
                return fail(cause, "the drawer is full",
                            model::place_of(graph.subgraph(), node) + beyond);
        filled.insert(filled.end(), program.nodes.begin(), program.nodes.end());
        passes.print(own_passes[0], [&] { return std::to_string(program.nodes.size()); });
        return ProgramOperator{
            {.builtin = model::Op::custom, .custom = std::string(program_name), .version = 1}, {}};
    }
    [[nodiscard]] std::string sooner_on_cpu(const Graph&, const Program& program,
                                            std::size_t number) const override {
        return far ? "the drawer is far: " + std::to_string(number) + " of " +
                         std::to_string(program.nodes.size())
                   : "";
    }
    void forget() override {
        filled.clear();
        ++attempts;
    }

  private:
    DrawerTarget target_;
};

/// Operators 0, 1 and 3 are sums, 2 is none.
model::Model sums() {
    const auto numbers = model::per_tensor(0.05F, 3);
    model::Builder builder("sums");
    const auto tensor = [&](const char* name) {
        return builder.tensor(name, ElementType::uint8, {1, 4, 4, 8}, numbers);
    };
    const auto in = builder.input("in", ElementType::uint8, {1, 4, 4, 8}, numbers);
    const auto a = tensor("a"), b = tensor("b"), c = tensor("c"), d = tensor("d");
    builder.add(model::Op::add, {in, in}, {a}, model::AddOptions{});
    builder.add(model::Op::add, {in, a}, {b}, model::AddOptions{});
    builder.add(model::Op::logistic, {b}, {c});
    builder.add(model::Op::add, {c, c}, {d}, model::AddOptions{});
    builder.output(d);
    return builder.finish().value();
}

std::vector<std::string> reasons(const std::vector<chip::CompiledOperator>& operators) {
    std::vector<std::string> out;
    for (const auto& op : operators) {
        EXPECT_EQ(op.on_chip, op.reason.empty());
        out.push_back(op.reason);
    }
    return out;
}

TEST(Compilation, ProgramsStandForWhatTheyCompute) {
    Drawer drawer;
    drawer.usual = 2;
    const auto done = compile(sums(), drawer, own_passes, {});
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_THAT(drawer.filled, ElementsAre(0, 1, 3));
    EXPECT_THAT(reasons(done->operators), ElementsAre("", "", "it is no sum", ""));
    ASSERT_EQ(done->model.subgraphs[0].operators.size(), 3U);
    EXPECT_EQ(done->model.subgraphs[0].operators[0].code.custom, program_name);
    EXPECT_EQ(done->model.subgraphs[0].operators[1].code.builtin, model::Op::logistic);
    EXPECT_EQ(done->model.subgraphs[0].operators[2].code.custom, program_name);
    EXPECT_EQ(compile(done->model, drawer, own_passes, {}).error().cause, Cause::bad_input);
    EXPECT_EQ(mapping(done->model, drawer, {}).error().cause, Cause::bad_input);
}

TEST(Compilation, AsManyProgramsAsAskedForOrAsUsual) {
    Drawer drawer;
    ASSERT_TRUE(compile(sums(), drawer, own_passes, {}));
    EXPECT_THAT(drawer.filled, ElementsAre(0, 1));
    Drawer two;
    ASSERT_TRUE(compile(sums(), two, own_passes, {.most_programs = 2}));
    EXPECT_THAT(two.filled, ElementsAre(0, 1, 3));
}

TEST(Compilation, WhatDoesNotFitIsLeftOutAndTheRestCompiledAnew) {
    // The error may lie deeper than the operator.
    for (const char* beyond : {"", ": tensor 'b'"}) {
        Drawer drawer;
        drawer.unfit = {1};
        drawer.beyond = beyond;
        const auto done = compile(sums(), drawer, own_passes, {.most_programs = 2});
        ASSERT_TRUE(done) << done.error().message();
        EXPECT_EQ(drawer.attempts, 2U);
        EXPECT_THAT(drawer.filled, ElementsAre(0, 3));
        EXPECT_THAT(reasons(done->operators),
                    ElementsAre("", "the drawer is full", "it is no sum", ""));
    }
}

/// The program with the most work stays, however far the chip is.
TEST(Compilation, SmallIslandsAreLeftToTheCpu) {
    Drawer drawer;
    drawer.far = true;
    const auto done = compile(sums(), drawer, own_passes, {.most_programs = 2});
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_EQ(drawer.attempts, 2U);
    EXPECT_THAT(drawer.filled, ElementsAre(0, 1));
    EXPECT_THAT(reasons(done->operators),
                ElementsAre("", "", "it is no sum", "the drawer is far: 1 of 1"));
}

/// A part of a network follows what the whole has on the chip.
TEST(Compilation, FollowsAnotherCompilation) {
    Drawer drawer;
    drawer.usual = 2;
    drawer.far = true;
    const std::vector<chip::CompiledOperator> whole{{0, "ADD", false, "it lies in the way"},
                                                    {1, "ADD", true, ""},
                                                    {2, "LOGISTIC", false, "it is no sum"},
                                                    {3, "ADD", true, ""}};
    const auto done = compile(sums(), drawer, own_passes, {.placed_as = whole});
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_THAT(drawer.filled, ElementsAre(1, 3));
    EXPECT_EQ(done->operators, whole);
    EXPECT_EQ(mapping(sums(), drawer, {.most_programs = 2, .placed_as = whole}).value(), whole);
}

TEST(Compilation, RefusesWhatCannotFollow) {
    Drawer drawer;
    auto whole = compile(sums(), drawer, own_passes, {})->operators;
    drawer.unfit = {1};
    const auto full = compile(sums(), drawer, own_passes, {.placed_as = whole});
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().cause, Cause::unsupported);
    EXPECT_THAT(full.error().message(), HasSubstr("operator 1 ADD: the drawer is full"));
    whole[2] = {2, "LOGISTIC", true, ""};
    const auto none = compile(sums(), drawer, own_passes, {.placed_as = whole});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().cause, Cause::unsupported);
    EXPECT_THAT(none.error().message(),
                HasSubstr("operator 2 LOGISTIC: it is to be on the chip: it is no sum"));
    whole.pop_back();
    for (const Cause cause :
         {compile(sums(), drawer, own_passes, {.placed_as = whole}).error().cause,
          mapping(sums(), drawer, {.placed_as = whole}).error().cause})
        EXPECT_EQ(cause, Cause::bad_argument);
}

TEST(Compilation, NothingLeftNamesEveryReason) {
    Drawer drawer;
    drawer.unfit = {0, 1, 3};
    const auto done = compile(sums(), drawer, own_passes, {.most_programs = 2});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().cause, Cause::unsupported);
    EXPECT_EQ(drawer.attempts, 4U);
    EXPECT_EQ(done.error().what,
              "no operator is left for the drawer:\n  operator 0 ADD: the drawer is full\n"
              "  operator 1 ADD: the drawer is full\n  operator 2 LOGISTIC: it is no sum\n"
              "  operator 3 ADD: the drawer is full");
}

TEST(Compilation, OtherErrorsEndIt) {
    Drawer drawer;
    drawer.unfit = {1};
    drawer.cause = Cause::bad_input;
    EXPECT_EQ(compile(sums(), drawer, own_passes, {}).error().cause, Cause::bad_input);
    EXPECT_EQ(drawer.attempts, 1U);
}

TEST(Compilation, PassesAreToldPrintedAndCancelled) {
    EXPECT_THAT(with_common_passes(own_passes),
                ElementsAre("read", "legalise", "partition", "fill"));
    std::vector<std::string> told;
    std::atomic<bool> cancelled = false;
    chip::CompileOptions options;
    options.progress = [&](std::string_view pass) {
        told.emplace_back(pass);
        if (pass == "partition") cancelled = true;
    };
    Drawer drawer;
    ASSERT_TRUE(compile(sums(), drawer, own_passes, options));
    EXPECT_THAT(told, ElementsAre("read", "legalise", "partition", "fill"));
    options.cancelled = &cancelled;
    cancelled = false;
    EXPECT_EQ(compile(sums(), drawer, own_passes, options).error().cause, Cause::cancelled);

    const auto listing = [&](const std::string& pass) {
        Drawer each;
        each.unfit = {1};
        const auto done =
            compile(sums(), each, own_passes, {.most_programs = 2, .print_after = pass});
        return done ? done->listing : done.error().message();
    };
    // Of the last attempt alone: a program of operator 0, one of operator 3.
    EXPECT_EQ(listing("fill"), "11");
    EXPECT_THAT(listing("partition"), HasSubstr("program 0: operators 0\n  in 'in'\n  out 'a'\n"));
    EXPECT_THAT(listing("read"), HasSubstr("ADD"));
    const auto before = [&](const std::string& pass) {
        Drawer each;
        const auto done = compile(sums(), each, own_passes, {.print_before = pass});
        return done ? done->listing : done.error().message();
    };
    EXPECT_THAT(before("fill"), HasSubstr("program 0: operators 0 1\n"));
    EXPECT_THAT(before("legalise"), HasSubstr("ADD"));
    EXPECT_THAT(before("read"), HasSubstr("nothing is there before 'read'"));
    EXPECT_THAT(before("emit"), HasSubstr("passes are read, legalise, partition, fill"));
    Drawer both;
    EXPECT_EQ(compile(sums(), both, own_passes, {.print_after = "read", .print_before = "fill"})
                  .error()
                  .cause,
              Cause::bad_argument);
    EXPECT_THAT(listing("emit"), HasSubstr("passes are read, legalise, partition, fill"));
}

TEST(Compilation, AMappingAsksThePredicatesAlone) {
    Drawer drawer;
    drawer.unfit = {1};
    const auto verdicts = mapping(sums(), drawer, {.most_programs = 2});
    ASSERT_TRUE(verdicts) << verdicts.error().message();
    EXPECT_THAT(reasons(*verdicts), ElementsAre("", "", "it is no sum", ""));
    EXPECT_TRUE(drawer.filled.empty());
}

}  // namespace
}  // namespace reef::compiler
