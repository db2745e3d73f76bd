// What a cut must keep and what a check must find, one rule after the other, on networks of a few
// operators.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "final_mlir/demo_network.h"
#include "reef/base/file.h"
#include "reef/sophgo/bisect.h"
#include "reef/sophgo/final_engine.h"
#include "sophgo/final_network.h"
#include "sophgo/final_text.h"
#include "sophgo/memory_oracle.h"
#include "support/shared_data.h"

namespace reef::sophgo {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(FinalRules, TypesAgreeAlongCalls) {
    const std::string text = tool::demo_network();
    auto program = engine().read(text).value();
    EXPECT_THAT(faults_of(program), IsEmpty());
    for (Value& value : program.values)
        if (value.name == "flat") {
            value.address = *value.address + 4096;
            break;
        }
    EXPECT_THAT(faults_of(program),
                Contains(HasSubstr("call-types: call of subfunc_1: operands 0")));
    // Types alone are MLIR's to refuse.
    const auto other =
        with(text, "      return %2 : tensor<1x10xf32", "      return %2 : tensor<1x11xf32");
    EXPECT_FALSE(engine().read(other));
}

TEST(FinalRules, InputsAreTheHosts) {
    const Network two{
        .operators = op("a", "tpu.Active", "%arg0", at(0), at(2), "a") +
                     op("b", "tpu.Add", "%a, %arg1", at(2) + ", " + at(1), at(3), "b"),
        .outputs = {{"%b", at(3)}},
        .names = {"b"},
        .inputs = 2};
    const std::string text = two.text();
    EXPECT_THAT(found_in(text), IsEmpty());
    const auto cut = right_cut(text, {"a"});
    ASSERT_TRUE(cut) << cut.error().message();
    EXPECT_THAT(cut->text, HasSubstr("module.inputs = [\"x\"]"));
    EXPECT_THAT(cut->text, HasSubstr("@main(%arg0: tensor<1x16xf32> loc(unknown)) -> "));
    EXPECT_THAT(cut->text, HasSubstr("call @subfunc_0(%0) : "));
    EXPECT_THAT(cut->notes, Contains("'y' is no input any more"));

    EXPECT_THAT(found_in(with(text, "\"top.Input\"(%arg1)", "\"top.Input\"(%arg0)")),
                Contains(HasSubstr("inputs: argument 0 of main: read 2 times")));
    EXPECT_THAT(found_in(with(text, "\"top.Input\"(%arg1)", "\"top.Input\"(%arg0)")),
                Contains(HasSubstr("inputs: argument 1 of main: no top.Input reads it")));
    EXPECT_THAT(found_in(with(with(text, "%arg1: tensor<1x16xf32> ",
                                   "%arg1: tensor<1x16xf32, 4295098368 : i64> "),
                              "\"top.Input\"(%arg1) : (tensor<1x16xf32>)",
                              "\"top.Input\"(%arg1) : (tensor<1x16xf32, 4295098368 : i64>)")),
                Contains(HasSubstr("inputs: argument 1 of main: it has an address")));
    EXPECT_THAT(
        found_in(with(text, "module.inputs = [\"x\", \"y\"]", "module.inputs = [\"x\", \"z\"]")),
        ElementsAre(HasSubstr("inputs: z: named in module.inputs, but main has no such input"),
                    HasSubstr("inputs: y: module.inputs does not name it")));
}

TEST(FinalRules, OutputsAreNamed) {
    const std::string text = chain().text();
    EXPECT_THAT(right_cut(text, {"b"})->text, HasSubstr("module.outputs = [\"b\"]"));
    EXPECT_THAT(
        found_in(with(text, "module.outputs = [\"c\"]", "module.outputs = [\"b\"]")),
        ElementsAre(HasSubstr("outputs: b: named in module.outputs, but main does not return"),
                    HasSubstr("outputs: c: module.outputs does not name it")));
}

/// A copy for debugging is an output that nobody lists; a cut leaves it behind.
TEST(FinalRules, DumpedTensorsAreOutputsToo) {
    const Network net{.operators = op("a", "tpu.Active", "%arg0", at(0), at(1), "a") +
                                   op("d", "tpu.OutBuffer", "%a", at(1), at(3), "a_dump") +
                                   op("b", "tpu.Active", "%a", at(1), at(2), "b"),
                      .outputs = {{"%b", at(2)}, {"%d", at(3)}},
                      .names = {"b", "a_dump"}};
    const std::string text =
        with(net.text(), "module.outputs = [\"b\", \"a_dump\"]", "module.outputs = [\"b\"]");
    EXPECT_THAT(found_in(text), IsEmpty());
    EXPECT_THAT(right_cut(text, {"b"})->text, Not(HasSubstr("tpu.OutBuffer")));
    EXPECT_THAT(found_in(with(text, "tpu.OutBuffer", "tpu.Cast")),
                ElementsAre(HasSubstr("outputs: a_dump: module.outputs does not name it")));
}

TEST(FinalRules, GroupsStoreWhatTheyGive) {
    auto program = engine().read(tool::demo_network()).value();
    for (Value& value : program.values)
        if (value.name == "conv" && value.address) {
            value.type += "?";
            break;
        }
    EXPECT_THAT(faults_of(program), Contains(HasSubstr("group: tpu.Group conv: result 0 is")));
}

TEST(FinalRules, ResultsOfGroupsAreRead) {
    const std::string text = tool::demo_network();
    const auto unread = with(text, "\"tpu.Add\"(%4#0, %4#1)", "\"tpu.Add\"(%4#0, %4#0)");
    const std::string types =
        "tensor<1x8x4x4x!quant.uniform<i8:f32, 5.000000e-01>, 4294991872 : i64>, "
        "tensor<1x8x4x4x!quant.uniform<i8:f32, 5.000000e-01>, 4294995968 : i64>) -> "
        "tensor<1x8x4x4x!quant.uniform<i8:f32, 5.000000e-01>, 4294987776 : i64>";
    const auto typed = with(unread, types, with(types, "4294995968", "4294991872"));
    EXPECT_THAT(found_in(typed),
                ElementsAre(HasSubstr("group: tpu.Group conv: nobody reads its result relu")));
    // A cut mends it: the result goes, or a Reshape reads it.
    EXPECT_THAT(right_cut(typed, {"scores"})->notes,
                Contains("'relu' is no longer stored: nobody reads it"));
    EXPECT_THAT(right_cut(typed, {"scores"}, true)->notes,
                Contains("'relu' keeps its memory by a Reshape"));
}

TEST(FinalRules, WhatGroupsRunOfNeighboursIsListedTwice) {
    const std::string text = tool::demo_network();
    const auto program = engine().read(text).value();
    const auto& operators = program.devices[0].find("subfunc_0")->operators;
    const auto* first = &*std::ranges::find(operators, "tpu.Group", &Operator::kind);
    EXPECT_THAT(first->overlaps.other_up, ElementsAre(-2, 1));
    EXPECT_TRUE(first->overlaps.self_up.empty());
    EXPECT_THAT(faults_of(program), IsEmpty());

    EXPECT_THAT(
        found_in(with(text, "other_up_overlap_op = [-2, 1]", "other_up_overlap_op = []")),
        ElementsAre("group-overlap: tpu.Group conv: left to the group before: 1; run there: "
                    "nothing"));
    EXPECT_THAT(found_in(with(text, "self_up_overlap_op = [1]", "self_up_overlap_op = []")),
                ElementsAre("group-overlap: tpu.Group conv: left to the group before: nothing; run "
                            "there: 1"));
    EXPECT_THAT(
        found_in(with(text, "self_down_overlap_op = [], self_up_overlap_op = [1]",
                      "self_down_overlap_op = [6], self_up_overlap_op = [1]")),
        ElementsAre("group-overlap: tpu.Group conv: left to the group behind: 6; run there: "
                    "nothing"));
    EXPECT_THAT(
        found_in(with(text, "other_up_overlap_op = [-2, 1]", "other_up_overlap_op = [-4, 1]")),
        ElementsAre(HasSubstr("it runs operators of a neighbour in row 4 of 3")));
    // Both sides agree on what is nobody's, or in no row.
    EXPECT_THAT(
        found_in(with(with(text, "other_up_overlap_op = [-2, 1]", "other_up_overlap_op = [-2, 99]"),
                      "self_up_overlap_op = [1]", "self_up_overlap_op = [99]")),
        ElementsAre(HasSubstr("id 99 to a neighbour, which is no tpu.Load of it")));
    EXPECT_THAT(
        found_in(with(text, "other_up_overlap_op = [-2, 1]", "other_up_overlap_op = [1, -2]")),
        ElementsAre(HasSubstr("id 1 of a neighbour stands in no row")));
    // The neighbour goes; the one that ran its Load runs it no more.
    const auto cut = right_cut(text, {"x_i8"}).value();
    EXPECT_THAT(cut.text, HasSubstr("other_up_overlap_op = [],"));
    EXPECT_THAT(cut.text, Not(HasSubstr("other_up_overlap_op = [-2, 1]")));
    EXPECT_THAT(cut.notes, Contains("no group overlaps a neighbour any more"));
    // Nothing goes: they stay.
    EXPECT_THAT(right_cut(text, {"scores"})->text, HasSubstr("other_up_overlap_op = [-2, 1]"));
}

TEST(FinalRules, IdsOfAGroupCountWithoutGaps) {
    const std::string text = tool::demo_network();
    // Of the Store of conv, id 4, nothing is left; Active and its Store were 5 and 6.
    const auto cut =
        right_cut(with(text, "\"tpu.Add\"(%4#0, %4#1)", "\"tpu.Add\"(%4#1, %4#1)"), {"relu"});
    EXPECT_FALSE(cut) << "types disagree";
    const auto relu = right_cut(text, {"relu"}).value();
    EXPECT_THAT(relu.text, HasSubstr("flow = [-1, 0, 1, 2, -2, 3, -3, 4, 5]"));
    EXPECT_THAT(relu.text, HasSubstr("#tpu.lg<out_addr = 0, out_size = 64, id = 5, stage = 0>"));
    EXPECT_THAT(relu.text, Not(HasSubstr("id = 6, ")));

    EXPECT_THAT(found_in(with(text, "-3, 5, 4, 6]", "-3, 5, 4, 5]")),
                ElementsAre(HasSubstr("flow: tpu.Group conv: id 5 twice")));
    EXPECT_THAT(found_in(with(text, "-2, 3, -3", "-2, 3, -4")),
                ElementsAre(HasSubstr("row -4 follows -2")));
    EXPECT_THAT(found_in(with(text, "5, 4, 6]", "5, 4]")),
                ElementsAre(HasSubstr("id 6 is missing")));
    EXPECT_THAT(found_in(with(text, "5, 4, 6]", "5, 4, 6, 7]")),
                ElementsAre(HasSubstr("no operator has id 7")));
    EXPECT_THAT(found_in(with(with(text, "5, 4, 6]", "5, 4, 8]"), "id = 6,", "id = 8,")),
                ElementsAre(HasSubstr("the ids of 7 operators are not 0 to 6")));
    EXPECT_THAT(found_in(with(text, "id = 6,", "id = 5,")),
                ElementsAre(HasSubstr("two operators with id 5")));
}

/// [0]: the code generator makes the schedule itself.
TEST(FinalRules, GroupsWithoutRowsStayWhole) {
    const std::string text =
        with(tool::demo_network(), "flow = [-1, 0, 1, 2, -2, 3, -3, 5, 4, 6]", "flow = [0]");
    const auto cut =
        right_cut(with(with(text, "other_up_overlap_op = [-2, 1]", "other_up_overlap_op = []"),
                       "self_up_overlap_op = [1]", "self_up_overlap_op = []"),
                  {"conv"});
    ASSERT_TRUE(cut) << cut.error().message();
    EXPECT_THAT(cut->text, HasSubstr("flow = [0]"));
    EXPECT_THAT(cut->notes, Contains("'relu' keeps its memory by a Reshape"));
}

TEST(FinalRules, OutputsOutliveWhatIsWrittenLater) {
    const std::string text = chain().text();
    const auto cut = right_cut(text, {"a", "c"});
    ASSERT_TRUE(cut) << cut.error().message();
    EXPECT_THAT(cut->notes, Contains(HasSubstr("'a' moved to 0x100021000: a later operator")));
    EXPECT_EQ(cut->program.devices[0].neurons.size, 0x12000U) << "a free block, and one for it";
    EXPECT_THAT(right_cut(text, {"a", "b"})->notes, Not(Contains(HasSubstr("moved"))));
    EXPECT_THAT(cut->text, HasSubstr("module.outputs = [\"a\", \"c\"]"));
}

TEST(FinalRules, WhatLiesTogetherMovesTogether) {
    // a is read by two Reshapes, one of which is read by another; d takes their memory.
    Network net{.operators = op("a", "tpu.Active", "%arg0", at(0), at(1), "a") +
                             op("r", "tpu.Reshape", "%a", at(1), at(1), "r") +
                             op("q", "tpu.Reshape", "%r", at(1), at(1), "q") +
                             op("s", "tpu.Reshape", "%a", at(1), at(1), "s") +
                             op("b", "tpu.Add", "%q, %s", at(1) + ", " + at(1), at(2), "b") +
                             op("d", "tpu.Active", "%b", at(2), at(1), "d"),
                .outputs = {{"%d", at(1)}},
                .names = {"d"}};
    const auto cut = right_cut(net.text(), {"r", "d"});
    ASSERT_TRUE(cut) << cut.error().message();
    for (const Value& value : cut->program.values)
        if (value.name == "a" || value.name == "r" || value.name == "q" || value.name == "s") {
            EXPECT_EQ(value.address, 0x100021000U) << value.name;
        }
    EXPECT_THAT(found_in(with(net.text(), "%b = \"tpu.Add\"(%q, %s) : (" + at(1),
                              "%b = \"tpu.Add\"(%q, %s) : (" + at(1))),
                IsEmpty());
    auto program = engine().read(net.text()).value();
    for (Value& value : program.values)
        if (value.name == "q") value.address = neuron_start + 0x5000;
    EXPECT_THAT(faults_of(program),
                Contains(HasSubstr("reshape: tpu.Reshape q: it moves nothing, but")));

    // An operator that works in its operand's memory cannot follow.
    net.operators = op("a", "tpu.Active", "%arg0", at(0), at(1), "a") +
                    op("i", "tpu.Insert", "%a, %arg0", at(1) + ", " + at(0), at(1), "i") +
                    op("b", "tpu.Active", "%i", at(1), at(2), "b") +
                    op("d", "tpu.Active", "%b", at(2), at(1), "d");
    const auto fixed = right_cut(net.text(), {"i", "d"});
    ASSERT_FALSE(fixed);
    EXPECT_THAT(fixed.error().message(),
                HasSubstr("'i' would have to move, and tpu.Insert works in its operand's memory"));
}

/// x in block 0 is the region of inputs and outputs.
Network alone(std::uint64_t io, std::uint64_t io_size) {
    Network net{.operators = op("a", "tpu.Active", "%arg0", at(0), at(1), "a") +
                             op("b", "tpu.Active", "%a", at(1), at(2), "b") +
                             op("c", "tpu.Active", "%b", at(2), at(0), "c"),
                .outputs = {{"%c", at(0)}},
                .names = {"c"},
                .mode = "io_alone"};
    net.regions = fmt::format(
        "module.neuron_addr = {} : i64, module.neuron_size = 61440 : i64, module.io_addr = {} : "
        "i64, "
        "module.io_size = {} : i64",
        neuron_start + 0x1000, io, io_size);
    return net;
}

TEST(FinalRules, TheRuntimeFindsOutputsOfRegionsAlone) {
    const std::string text = alone(neuron_start, 0x1000).text();
    EXPECT_THAT(found_in(text), IsEmpty());
    EXPECT_THAT(right_cut(text, {"c"})->text, HasSubstr("module.addr_mode = \"io_alone\""));
    const auto basic = right_cut(text, {"b"}).value();
    EXPECT_THAT(basic.text, HasSubstr("module.addr_mode = \"basic\""));
    EXPECT_THAT(basic.text, HasSubstr("module.neuron_addr = 4295032832 : i64"));
    EXPECT_EQ(basic.program.devices[0].neurons.size, 0x10000U);
    EXPECT_FALSE(basic.program.devices[0].io);
    auto program = engine().read(text).value();
    program.devices[0].io->start += 0x100000;
    EXPECT_THAT(faults_of(program), Contains(HasSubstr("io: c: an output outside the region")));

    // An output in the region that a later operator takes moves out of it: basic, too.
    Network taken = alone(neuron_start, 0x2000);
    taken.operators = op("a", "tpu.Active", "%arg0", at(0), at(1), "a") +
                      op("b", "tpu.Active", "%a", at(1), at(2), "b") +
                      op("c", "tpu.Active", "%b", at(2), at(1), "c");
    taken.outputs = {{"%c", at(1)}};
    taken.regions =
        with(taken.regions, fmt::format("module.neuron_addr = {}", neuron_start + 0x1000),
             fmt::format("module.neuron_addr = {}", neuron_start + 0x2000));
    const auto moved = right_cut(taken.text(), {"a", "c"});
    ASSERT_TRUE(moved) << moved.error().message();
    EXPECT_EQ(moved->program.address_mode, "basic");
}

TEST(FinalRules, OutputsMoveIntoTheirRegionWhereItIsFarAway) {
    // As chips that mark regions in the address: the region begins 16 GB on.
    const std::uint64_t far = neuron_start + (1ULL << 34);
    const auto at_far = fmt::format("tensor<1x16xf32, {} : i64>", far);
    Network net = alone(far, 0x1000);
    net.outputs = {{"%c", at_far}};
    net.operators = op("a", "tpu.Active", "%arg0", at(0), at(1), "a") +
                    op("b", "tpu.Active", "%a", at(1), at(2), "b") +
                    op("c", "tpu.Active", "%b", at(2), at_far, "c");
    net.regions = with(net.regions, fmt::format("module.neuron_addr = {}", neuron_start + 0x1000),
                       fmt::format("module.neuron_addr = {}", neuron_start));
    const auto cut = right_cut(net.text(), {"b"});
    ASSERT_TRUE(cut) << cut.error().message();
    EXPECT_EQ(cut->program.address_mode, "io_alone");
    EXPECT_EQ(cut->program.devices[0].io->size, 0x3000U);
    EXPECT_THAT(cut->notes,
                Contains(HasSubstr("'b' moved to 0x500012000: outputs lie in the region")));
    // What a later operator would take moves there at once.
    net.operators = op("a", "tpu.Active", "%arg0", at(0), at(1), "a") +
                    op("b", "tpu.Active", "%a", at(1), at(2), "b") +
                    op("c", "tpu.Active", "%b", at(2), at(1), "c");
    net.outputs = {{"%c", at(1)}};
    const auto taken = right_cut(net.text(), {"a", "c"});
    ASSERT_TRUE(taken) << taken.error().message();
    EXPECT_EQ(taken->program.devices[0].io->size, 0x5000U);
    EXPECT_EQ(taken->program.devices[0].neurons.size, cut->program.devices[0].neurons.size);
    EXPECT_THAT(taken->notes, Contains(HasSubstr("'a' moved to 0x500012000: a later operator")));
    EXPECT_EQ(std::ranges::count_if(taken->notes,
                                    [](const auto& note) { return note.starts_with("'a' moved"); }),
              1);
    // Close in front of the activations there is no place.
    const std::string text = alone(neuron_start - 0x1000, 0x1000).text();
    const auto refused = right_cut(
        with(text, at(0), fmt::format("tensor<1x16xf32, {} : i64>", neuron_start - 0x1000)), {"b"});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("behind which nothing is free"));
}

TEST(FinalRules, LaterFunctionsAndCallsGo) {
    const auto cut = right_cut(tool::demo_network(), {"sum"}).value();
    EXPECT_EQ(cut.program.devices[0].functions.size(), 2U);
    EXPECT_THAT(cut.program.devices[0].find("subfunc_0")->next, ElementsAre(-1));
    // The first function goes: the second becomes the first.
    auto text = tool::demo_network();
    text = with(text, "%2 = call @subfunc_1(%1)", "%2 = call @subfunc_1(%1)");
    const auto kept = right_cut(text, {"scores"}).value();
    EXPECT_THAT(kept.program.devices[0].find("subfunc_0")->next, ElementsAre(1));
    EXPECT_EQ(kept.program.devices[0].find("subfunc_1")->id, 1);
}

/// Two functions that need nothing of each other; the first passes one of its arguments on, too.
std::string two_functions(bool passes) {
    const std::string first_types = passes ? fmt::format("{}, {}", at(2), at(0)) : at(2);
    return fmt::format(
        R"(module @net attributes {{module.addr_mode = "basic", module.chip = "bm1684x", module.inputs = ["x", "y"], module.outputs = ["b"], module.state = "TPU_ADDRESSED"}} {{
module @net attributes {{module.coeff_addr = {0} : i64, module.coeff_size = 0 : i64, module.neuron_addr = {1} : i64, module.neuron_size = 65536 : i64}} {{
func.func @main(%arg0: tensor<1x16xf32>, %arg1: tensor<1x16xf32>) -> {5} {{
%x = "top.Input"(%arg0) : (tensor<1x16xf32>) -> {2} loc("x")
%y = "top.Input"(%arg1) : (tensor<1x16xf32>) -> {3} loc("y")
%r{6} = call @subfunc_0(%x) : ({2}) -> ({7})
%b = call @subfunc_1(%y, {8}) : ({3}, {9}) -> {5}
return %b : {5}
}}
func.func @subfunc_0(%arg0: {2} loc("x")) -> ({7}) attributes {{id = 0 : i64, mode = #tpu<run_mode TPU_STATIC>, next_index = array<i32: 1>}} {{
%a = "tpu.Active"(%arg0) : ({2}) -> {4} loc("a")
return %a{10} : {7}
}}
func.func @subfunc_1(%arg0: {3} loc("y"), %arg1: {9} loc("{11}")) -> {5} attributes {{id = 1 : i64, mode = #tpu<run_mode TPU_STATIC>, next_index = array<i32: -1>}} {{
%c = "tpu.Active"(%arg0) : ({3}) -> {12} loc("c")
%b = "tpu.Add"(%c, %arg1) : ({12}, {9}) -> {5} loc("b")
return %b : {5}
}}
}}
}}
)",
        coefficient_start, neuron_start, at(0), at(1), at(2), at(4), passes ? ":2" : "",
        first_types, passes ? "%r#1" : "%r", passes ? at(0) : at(2), passes ? ", %arg0" : "",
        passes ? "x" : "a", at(3));
}

TEST(FinalRules, FunctionsThatNothingNeedsGo) {
    EXPECT_THAT(found_in(two_functions(false)), IsEmpty());
    const auto cut = right_cut(two_functions(false), {"c"});
    ASSERT_TRUE(cut) << cut.error().message();
    const DeviceProgram& device = cut->program.devices[0];
    EXPECT_EQ(device.find("subfunc_0"), nullptr);
    EXPECT_EQ(device.find("subfunc_1")->id, 0);
    EXPECT_THAT(device.find("subfunc_1")->next, ElementsAre(-1));
    EXPECT_EQ(device.find("subfunc_1")->arguments.size(), 1U);
    EXPECT_THAT(cut->program.inputs, ElementsAre("y"));
}

TEST(FinalRules, ArgumentsThatArePassedOnStay) {
    EXPECT_THAT(found_in(two_functions(true)), IsEmpty());
    const auto whole = right_cut(two_functions(true), {"b"});
    ASSERT_TRUE(whole) << whole.error().message();
    const Function& first = *whole->program.devices[0].find("subfunc_0");
    ASSERT_EQ(first.returned.size(), 1U) << "a is read by nobody";
    EXPECT_EQ(first.returned, first.arguments);
    const auto both = right_cut(two_functions(true), {"a", "b"});
    ASSERT_TRUE(both) << both.error().message();
    EXPECT_EQ(both->program.devices[0].find("subfunc_0")->returned.size(), 2U);
}

/// At its own outputs nothing is cut, and not a byte changes: but weights that nobody reads go.
TEST(FinalRules, ACutAtTheOutputsLeavesEverything) {
    std::vector<std::string> texts = {tool::demo_network()};
    for (const char* folder : {"data/sophgo/final", "data/sophgo/old_2022"})
        for (const auto& path : test::shared_files(folder, ".mlir"))
            texts.emplace_back(as_text(read_file(path).value().view()));
    std::size_t same = 0;
    for (const std::string& text : texts) {
        const auto program = engine().read(text).value();
        std::vector<std::string> outputs;
        for (const ValueIndex value : program.devices[0].main()->returned)
            outputs.push_back(program.at(value).name);
        const auto cut = right_cut(text, outputs);
        ASSERT_TRUE(cut) << program.name << cut.error().message();
        EXPECT_THAT(cut->notes, IsEmpty());
        if (text.find("placeholder = true") != std::string::npos) continue;
        EXPECT_TRUE(cut->text == engine().print(text).value()) << program.name;
        ++same;
    }
    EXPECT_EQ(same, test::shared_folder() ? 10U : 1U);
}

TEST(FinalRules, WhatNobodyUsesGoes) {
    const Network net{
        .operators =
            "%w = \"top.Weight\"() : () -> tensor<1x16xf32, 4294967296 : i64> loc(\"w\")\n"
            "%t = \"tpu.Buffer\"() : () -> " +
            at(5) + " loc(\"t\")\n" + op("a", "tpu.Active", "%arg0", at(0), at(1), "a") +
            op("b", "tpu.Add", "%a, %w, %t",
               at(1) + ", tensor<1x16xf32, 4294967296 : i64>, " + at(5), at(2), "b"),
        .outputs = {{"%b", at(2)}},
        .names = {"b"}};
    const std::string text = with(net.text(), "module.coeff_size = 0", "module.coeff_size = 4096");
    EXPECT_THAT(found_in(text), IsEmpty());
    const auto cut = right_cut(text, {"a"}).value();
    for (const char* gone : {"top.None", "top.Weight", "tpu.Buffer"})
        EXPECT_THAT(cut.text, Not(HasSubstr(gone)));
    EXPECT_THAT(cut.text, HasSubstr("module.coeff_size = 0 : i64"));
    EXPECT_THAT(found_in(with(text, "module.coeff_size = 4096", "module.coeff_size = 63")),
                ElementsAre(HasSubstr("coefficients: top.Weight w")));
}

TEST(FinalRules, UnitsAreNotTakenApart) {
    Network net{.operators = group("p", "%arg0", at(0), at(1), "p", "flow = [0]") +
                             group("q", "%arg0", at(0), at(2), "q", "flow = [0]") +
                             op("m", "tpu.SliceMerge", "%p, %q", at(1) + ", " + at(2), at(3), "m"),
                .outputs = {{"%m", at(3)}},
                .names = {"m"}};
    const auto part = right_cut(net.text(), {"q"});
    ASSERT_FALSE(part);
    EXPECT_THAT(part.error().message(),
                HasSubstr("'q' is a part of what SliceMerge puts together (cut at 'm')"));
    EXPECT_TRUE(right_cut(net.text(), {"m"}));
    for (const char* kind : {"tpu.If", "tpu.Loop", "tpu.CoreParallel", "tpu.GroupParallel"}) {
        net.operators = fmt::format(
            "%m = \"{}\"(%arg0) ({{\n{}\"tpu.Yield\"(%n) : ({}) -> () "
            "loc(unknown)\n}}) : ({}) -> {} loc(\"m\")\n",
            kind, op("n", "tpu.Active", "%arg0", at(0), at(3), "n"), at(3), at(0), at(3));
        const auto inside = right_cut(net.text(), {"n"});
        ASSERT_FALSE(inside) << kind;
        EXPECT_THAT(inside.error().message(),
                    HasSubstr(fmt::format(
                        "'n' is inside a {}, which is cut as a whole (cut at 'm')", kind)));
    }
}

TEST(FinalRules, OutputsInTheChipsOwnMemoryMove) {
    const std::string l2 = fmt::format("tensor<1x16xf32, {} : i64>", 30ULL << 40);
    Network net{.operators = op("a", "tpu.Active", "%arg0", at(0), l2, "a") +
                             op("b", "tpu.Active", "%a", l2, at(2), "b"),
                .outputs = {{"%b", at(2)}},
                .names = {"b"},
                .chip = "bm1690"};
    EXPECT_THAT(found_in(net.text()), IsEmpty());
    for (const auto& names : {std::vector<std::string>{"a"}, std::vector<std::string>{"a", "b"}}) {
        const auto cut = right_cut(net.text(), names);
        ASSERT_TRUE(cut) << cut.error().message();
        EXPECT_THAT(cut->notes, Contains(HasSubstr("'a' moved to 0x100021000")));
    }
    net.chip = "bm1688";
    EXPECT_THAT(found_in(net.text()), ElementsAre(HasSubstr("region: tpu.Active a")));
    // Another chip's shared memory has another tag.
    net.chip = "bm1684x2";
    const std::string shared =
        fmt::format("tensor<1x16xf32, {} : i64>", (28ULL << 40) + (1ULL << 36));
    net.operators = op("a", "tpu.Active", "%arg0", at(0), shared, "a") +
                    op("b", "tpu.Active", "%a", shared, at(2), "b");
    EXPECT_THAT(found_in(net.text()), IsEmpty());
    EXPECT_THAT(right_cut(net.text(), {"a"})->notes, Contains(HasSubstr("'a' moved to")));
}

TEST(FinalRules, OutputsKeepTheirTypes) {
    const auto cut = right_cut(tool::demo_network(), {"relu"}).value();
    const Value& output = cut.program.at(cut.program.devices[0].main()->returned[0]);
    EXPECT_EQ(output.element, "!quant.uniform<i8:f32, 5.000000e-01>");
    ASSERT_TRUE(output.quantisation);
    EXPECT_EQ(output.quantisation->scales, std::vector{0.5});
}

TEST(FinalRules, WhatIsNotAlignedIsTold) {
    auto program = engine().read(chain().text()).value();
    for (Value& value : program.values)
        if (value.name == "b") value.address = *value.address + 64;
    EXPECT_THAT(faults_of(program), IsEmpty());
    EXPECT_THAT(findings_of(program, false),
                ElementsAre("alignment: tpu.Active b: 0x100012040 is not 4 KB aligned"));
    program.devices[0].neurons.start -= 64;
    EXPECT_THAT(findings_of(program, false), Contains(HasSubstr("alignment: module.neuron_addr")));
}

TEST(FinalRules, NetworksThatAreNotCutAreNamed) {
    const std::string text = tool::demo_network();
    for (const char* mode : {"LOOP", "SWITCH", "MERGE"})
        EXPECT_THAT(right_cut(with(text, "id = 1 : i64, mode = #tpu<run_mode TPU_STATIC>",
                                   fmt::format("id = 1 : i64, mode = #tpu<run_mode {}>", mode)),
                              {"scores"})
                        .error()
                        .message(),
                    HasSubstr(fmt::format("a function of mode {} is not cut", mode)));
    for (const char* mode : {"io_tag", "io_tag_fuse", "io_reloc"})
        EXPECT_THAT(right_cut(with(text, "\"basic\"", fmt::format("\"{}\"", mode)), {"conv"})
                        .error()
                        .message(),
                    HasSubstr(fmt::format("module.addr_mode {} is not cut", mode)));
    const std::size_t inner = text.find("  module @small"),
                      end = text.rfind("  } loc(#loc)\n} loc(#loc)");
    ASSERT_NE(end, std::string::npos);
    const std::string device = text.substr(inner, end + 14 - inner);
    auto two = text;
    two.insert(end + 14, with(device, "module @small", "module @other"));
    EXPECT_THAT(right_cut(two, {"conv"}).error().message(),
                HasSubstr("a network of 2 devices is not cut"));
}

Array floats(const std::vector<float>& numbers) {
    Array array{ElementType::float32, {static_cast<std::int64_t>(numbers.size())}, {}};
    const auto bytes = std::as_bytes(std::span(numbers));
    array.data.assign(bytes.begin(), bytes.end());
    return array;
}

TEST(FinalRules, EachChannelHasItsScale) {
    const std::string quantised =
        with(tool::demo_network(), "!quant.uniform<i8:f32, 5.000000e-01>",
             "!quant.uniform<i8:f32:1, {1.0:1,2.0,4.0,8.0,1.0,1.0,1.0,1.0:-3}>");
    const auto program = engine().read(
        with(quantised, "1x128x!quant.uniform<i8:f32:1, {1.0:1,2.0,4.0,8.0,1.0,1.0,1.0,1.0:-3}>",
             "1x128xi8"));
    ASSERT_TRUE(program) << program.error().message();
    const auto value = std::ranges::find(program->values, "conv", &Value::name);
    ASSERT_TRUE(value->quantisation);
    EXPECT_EQ(value->quantisation->axis, 1U);
    Value one = *value;
    one.shape = {1, 2, 2};
    one.quantisation = UniformQuantisation{{1, 4}, {1, -2}, 1};
    Array stored{
        ElementType::int8, {1, 2, 2}, {std::byte{2}, std::byte{3}, std::byte{0}, std::byte{0xff}}};
    EXPECT_TRUE(similarity(floats({1, 2, 8, 4}), stored, one)->within({1, 1}));
    EXPECT_FALSE(similarity(floats({2, 3, 0, -1}), stored, one)->within({}));
    // Two integers are real numbers as well: an offset makes nothing similar.
    Array other = stored;
    other.data[2] = std::byte{0xfc};
    EXPECT_FALSE(similarity(stored, other, one)->within({}));
    one.shape = {1, 4};
    EXPECT_THAT(similarity(floats({1, 2, 8, 4}), stored, one).error().what,
                HasSubstr("2 scales do not belong to"));
}

TEST(FinalRules, WhatWasNotComparedIsNamed) {
    const auto program = engine().read(tool::demo_network()).value();
    NamedArrays reference = tool::demo_tensors(program, {}),
                actual = tool::demo_tensors(program, "conv");
    reference.emplace_back("x", floats({1, 2}));
    actual.emplace_back("x", floats({1, 3}));
    const auto without = [&](const std::set<std::string>& gone) {
        NamedArrays left = actual;
        std::erase_if(left, [&](const auto& one) { return gone.contains(one.first); });
        return bisect(program, reference, left, {}).value();
    };
    const auto names = [&](const Bisection& found) {
        std::vector<std::string> out;
        for (const std::size_t i : not_compared_before(program, found, *found.first_wrong))
            out.push_back(program.at(found.tensors[i].value).name);
        return out;
    };
    EXPECT_THAT(names(without({})), IsEmpty());
    const auto blind = without({"conv", "relu", "sum"});
    EXPECT_EQ(program.at(blind.tensors[*blind.first_wrong].value).name, "flat");
    EXPECT_THAT(names(blind), ElementsAre("conv", "relu", "sum"));
    EXPECT_THAT(names(without({"conv", "relu", "sum", "flat"})),
                ElementsAre("conv", "relu", "sum", "flat"));
    // Inputs are compared as well.
    ASSERT_EQ(blind.inputs.size(), 1U);
    EXPECT_EQ(blind.inputs[0].verdict, Verdict::wrong);
}

}  // namespace
}  // namespace reef::sophgo
