// final.mlir: reading, cutting, checking, bisecting. The checker is held against a second opinion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "final_mlir/demo_network.h"
#include "reef/base/file.h"
#include "reef/sophgo/bisect.h"
#include "reef/sophgo/final_engine.h"
#include "sophgo/final/check.h"
#include "sophgo/final/parts.h"
#include "sophgo/final/plan.h"
#include "sophgo/final_text.h"
#include "sophgo/memory_oracle.h"
#include "support/shared_data.h"

namespace reef::sophgo {
namespace {

using testing::HasSubstr;

struct Sample {
    std::string name, text;
};

/// The network made here, then the published ones where they are.
const std::vector<Sample>& samples() {
    static const std::vector<Sample> all = [] {
        std::vector<Sample> list = {{"small", tool::demo_network()}};
        for (const char* folder : {"data/sophgo/final", "data/sophgo/old_2022"})
            for (const auto& path : test::shared_files(folder, ".mlir"))
                list.push_back({path.filename().string(),
                                std::string(as_text(read_file(path).value().view()))});
        return list;
    }();
    return all;
}

Result<Cut> cut_at(const std::string& text, std::vector<std::string> names, bool keep = false) {
    CutRequest request;
    request.at = std::move(names);
    request.keep_group_results = keep;
    return engine().cut(text, request);
}

TEST(Final, PrintsBackAsItWas) {
    std::size_t named = 0;
    for (const auto& [name, text] : samples()) {
        const auto printed = engine().print(text);
        ASSERT_TRUE(printed) << name << printed.error().message();
        if (name == "qwen_lm_head.final.mlir") {
            // MLIR numbers results that the vendor's operator names.
            const std::string numbered = replaced(
                replaced(replaced(text, "%values, %indices =", "%2:2 ="), "%indices", "%2#1"),
                "%values", "%2#0");
            EXPECT_EQ(*printed, numbered);
            ++named;
        } else {
            EXPECT_TRUE(*printed == text) << name;
        }
    }
    EXPECT_EQ(named, test::shared_folder() ? 1U : 0U);
    if (test::shared_required()) {
        EXPECT_EQ(samples().size(), 11U);
    }
}

TEST(Final, CoefficientSizesAreTheFiles) {
    for (const auto& [name, text] : samples()) {
        const auto program = engine().read(text).value();
        for (const auto& device : program.devices)
            EXPECT_EQ(coefficient_bytes(program, device), device.coefficients.size) << name;
    }
}

TEST(Final, NothingIsFoundInFilesThatAreRight) {
    for (const auto& [name, text] : samples()) {
        const auto program = engine().read(text).value();
        EXPECT_TRUE(faults_of(program).empty()) << name << faults_of(program).front();
        EXPECT_EQ(MemoryOracle::harm_of(program), "") << name;
        EXPECT_FALSE(report_of(program, chip::Detail::all).sections.empty());
    }
}

/// By name; the first of that name.
std::map<std::string, std::string> types_by_name(const FinalProgram& program) {
    std::map<std::string, std::string> out;
    for (const Value& value : program.values)
        if (value.address) out.emplace(value.name, value.type);
    return out;
}

void expect_same_places(const FinalProgram& before, const Cut& cut, const std::string& where) {
    const auto old = types_by_name(before);
    std::string moved;
    for (const std::string& note : cut.notes) moved += note + "\n";
    for (const auto& [name, type] : types_by_name(cut.program)) {
        if (name.empty() || type == (old.contains(name) ? old.at(name) : "")) continue;
        EXPECT_THAT(moved, HasSubstr("moved to")) << where << " " << name;
    }
}

TEST(Final, EveryOperatorCanBeCutAt) {
    std::size_t cuts = 0;
    for (const auto& [name, text] : samples()) {
        const auto before = engine().read(text).value();
        for (const Unit& unit : units_of(before)) {
            for (const std::string& tensor : unit.names) {
                const auto cut = cut_at(text, {tensor}, cuts % 2 == 1);
                ASSERT_TRUE(cut) << name << " " << tensor << ": " << cut.error().message();
                EXPECT_TRUE(faults_of(cut->program).empty()) << name << " " << tensor;
                EXPECT_EQ(MemoryOracle::harm_of(cut->program), "") << name << " " << tensor;
                EXPECT_EQ(engine().print(cut->text).value(), cut->text);
                if (!before.outputs.empty()) {
                    EXPECT_EQ(cut->program.outputs, std::vector{tensor});
                }
                expect_same_places(before, *cut, name + " " + tensor);
                ++cuts;
            }
        }
    }
    EXPECT_GE(cuts, test::shared_folder() ? 230U : 6U);
}

TEST(Final, SeveralOutputsAreWholeAtTheEnd) {
    std::mt19937 random(5);
    std::size_t done = 0;
    for (const auto& [name, text] : samples()) {
        const auto units = units_of(engine().read(text).value());
        std::vector<std::string> tensors;
        for (const Unit& unit : units)
            tensors.insert(tensors.end(), unit.names.begin(), unit.names.end());
        for (int trial = 0; trial < 8 && tensors.size() > 2; ++trial) {
            std::set<std::string> chosen;
            while (chosen.size() < 2) chosen.insert(tensors[random() % tensors.size()]);
            const auto cut = cut_at(text, {chosen.begin(), chosen.end()});
            if (!cut) {
                // Refused by name: its memory is an input's.
                EXPECT_THAT(cut.error().message(), HasSubstr("would have to move")) << name;
                continue;
            }
            EXPECT_EQ(MemoryOracle::harm_of(cut->program), "") << name;
            EXPECT_EQ(cut->program.devices[0].main()->returned.size(), 2U);
            ++done;
        }
    }
    EXPECT_GE(done, test::shared_folder() ? 40U : 6U);
}

TEST(Final, GroupsAreMended) {
    const std::string text = tool::demo_network();
    const auto cut = cut_at(text, {"conv"}).value();
    EXPECT_THAT(cut.text, HasSubstr("flow = [-1, 0, 1, 2, -2, 3, -3, 4]"));
    EXPECT_THAT(cut.text, HasSubstr("self_down_overlap_op = [], self_up_overlap_op = []"));
    EXPECT_THAT(cut.text, testing::Not(HasSubstr("subfunc_1")));
    EXPECT_THAT(cut.text, testing::Not(HasSubstr("matrix")));
    EXPECT_THAT(cut.text, HasSubstr("module.outputs = [\"conv\"]"));
    EXPECT_THAT(cut.text, HasSubstr("next_index = array<i32: -1>"));
    EXPECT_THAT(cut.text, HasSubstr("module.coeff_size = 8192"));
    EXPECT_EQ(cut.weights, (std::vector<std::string>{"kernel", "bias"}));
    const auto kept = cut_at(text, {"conv"}, true).value();
    EXPECT_THAT(kept.text, HasSubstr("\"tpu.Reshape\"(%4#1) {flatten_start_dim = -1 : i64, shape = "
                                     "[]}"));
    EXPECT_THAT(kept.text, HasSubstr("flow = [-1, 0, 1, 2, -2, 3, -3, 5, 4, 6]"));
}

TEST(Final, WhatCannotBeCutIsRefusedByName) {
    const std::string text = tool::demo_network();
    const auto message = [&](std::vector<std::string> at) {
        const auto cut = cut_at(text, std::move(at));
        return cut ? std::string("cut") : cut.error().message();
    };
    EXPECT_THAT(message({"load_kernel"}),
                HasSubstr("is inside a tpu.Group, which is cut as a whole "
                          "(cut at 'conv' or 'relu')"));
    EXPECT_THAT(message({"x"}), HasSubstr("'x' is an input of the network"));
    EXPECT_THAT(message({"nothing"}), HasSubstr("no operator computes 'nothing'"));
    EXPECT_THAT(message({"conv", "conv"}), HasSubstr("'conv' is named twice"));
    const auto tagged = replaced(text, "\"basic\"", "\"io_tag\"");
    EXPECT_THAT(cut_at(tagged, {"conv"}).error().message(), HasSubstr("module.addr_mode io_tag"));
    const auto lowered = replaced(text, "TPU_ADDRESSED", "TPU_LOWERED");
    EXPECT_THAT(engine().read(lowered).error().message(), HasSubstr("in state TPU_LOWERED"));
    const auto endless = replaced(text, "      return %6 : ", "      \"tpu.Yield\"(%6) : ");
    EXPECT_FALSE(engine().read(endless));
    EXPECT_THAT(engine().read("module {").error().message(), HasSubstr("line 1"));
}

TEST(Final, WhatFuzzingFoundIsRefused) {
    const std::string text = tool::demo_network();
    // Nothing behind the last byte may be read: a mapped file ends where its page does.
    const std::vector<char> exact(text.begin(), text.end());
    EXPECT_TRUE(engine().read({exact.data(), exact.size()}));
    const auto stray = replaced(text, "    func.func @subfunc_1",
                                "    %9 = \"top.Weight\"() : () -> tensor<4xf32> loc(#loc)\n"
                                "    func.func @subfunc_1");
    EXPECT_THAT(engine().read(stray).error().message(), HasSubstr("stands in no function"));
    const auto far = replaced(text, "module.coeff_addr = 4294967296", "module.coeff_addr = -64");
    EXPECT_THAT(engine().read(far).error().message(), HasSubstr("beyond every chip's memory"));
    const auto planless = replaced(text, "module.coeff_addr", "module.addr_of_coeff");
    EXPECT_THAT(engine().read(planless).error().message(), HasSubstr("has no address plan"));
    // An operator of main whose call's result nobody reads after the cut.
    auto idle = replaced(text, "      %2 = call @subfunc_1(%1)",
                         "      \"tpu.Idle\"(%1) : (tensor<1x128x!quant.uniform<i8:f32, "
                         "5.000000e-01>, 4294987776 : i64>) -> () loc(#loc)\n"
                         "      %2 = call @subfunc_1(%1)");
    EXPECT_TRUE(cut_at(idle, {"conv"}));
    const auto away = replaced(text, ", 4294987776 : i64>", ", 9223372036854775807 : i64>");
    EXPECT_THAT(engine().read(away).error().message(), HasSubstr("beyond every chip's memory"));
}

/// Lines taken out, doubled or cut, words changed: whatever comes is read or refused.
TEST(Final, AnyTextIsReadOrRefused) {
    std::mt19937 random(9);
    const std::string good = tool::demo_network();
    std::size_t cuts = 0;
    for (int trial = 0; trial < 300; ++trial) {
        std::string text = good;
        std::size_t at = random() % text.size();
        switch (random() % 8) {
            case 0: {
                const std::size_t begin = text.rfind('\n', at) + 1;
                text.erase(begin, text.find('\n', at) + 1 - begin);
                break;
            }
            case 1:
                text.insert(at, text.substr(random() % text.size(), random() % 20));
                break;
            case 2:
                text.erase(at, 1 + random() % 8);
                break;
            case 3:
                text[at] = "abx%#(){}<>\",:"[random() % 14];
                break;
            default:
                // A number that is another one is still MLIR.
                at = text.find_first_of("0123456789", at);
                if (at != std::string::npos) text[at] = static_cast<char>('0' + random() % 10);
        }
        const auto program = engine().read(text);
        if (!program) continue;
        (void)check_program(*program);
        (void)report_of(*program, chip::Detail::all);
        for (const char* tensor : {"conv", "scores", "flat"})
            if (cut_at(text, {tensor})) ++cuts;
    }
    EXPECT_GT(cuts, 30U);
}

/// All values that must move together: a group's result, its Store and Yield, arguments of calls.
std::vector<ValueIndex> moves_with(const FinalProgram& program, ValueIndex value) {
    std::vector<ValueIndex> out = {value};
    const auto add = [&](ValueIndex a, ValueIndex b) {
        for (const auto& [here, other] : {std::pair(a, b), std::pair(b, a)})
            if (std::ranges::find(out, here) != out.end() &&
                std::ranges::find(out, other) == out.end())
                out.push_back(other);
    };
    for (int round = 0; round < 8; ++round)
        for (const auto& device : program.devices)
            for (const auto& function : device.functions)
                for (const auto& op : function.operators) {
                    if (op.is("tpu.Reshape")) add(op.operands[0], op.results[0]);
                    if (op.is("tpu.Group"))
                        for (std::size_t i = 0; i < op.results.size(); ++i)
                            add(op.body.back().operands[i], op.results[i]);
                    if (const auto* callee = device.find(callee_of(op)); callee != nullptr) {
                        for (std::size_t i = 0; i < op.operands.size(); ++i)
                            add(op.operands[i], callee->arguments[i]);
                        for (std::size_t i = 0; i < op.results.size(); ++i)
                            add(op.results[i], callee->returned[i]);
                    }
                }
    return out;
}

/// One fault: a buffer moved, two swapped, a region shortened, a value moved without its class.
FinalProgram planted(const FinalProgram& good, std::mt19937& random) {
    FinalProgram bad = good;
    std::vector<ValueIndex> places;
    for (ValueIndex i = 0; i < good.values.size(); ++i)
        if (good.values[i].in_memory() && *good.values[i].address >= good.devices[0].neurons.start)
            places.push_back(i);
    const auto any = [&] { return places[random() % places.size()]; };
    const auto move = [&](ValueIndex value, std::uint64_t to, bool all) {
        for (const ValueIndex one : all ? moves_with(good, value) : std::vector{value})
            if (bad.values[one].address) bad.values[one].address = to;
    };
    auto& device = bad.devices[0];
    const ValueIndex a = any(), b = any();
    switch (random() % 5) {
        case 0:
            move(a, *good.values[b].address, true);
            break;
        case 1:
            move(a, *good.values[a].address + 4096 * (random() % 64), true);
            break;
        case 2:
            move(a, *good.values[b].address, true);
            move(b, *good.values[a].address, true);
            break;
        case 3:
            if (random() % 2 == 0)
                device.neurons.size -=
                    std::min<std::uint64_t>(device.neurons.size, 4096 * (1 + random() % 16));
            else
                device.coefficients.size -= std::min<std::uint64_t>(device.coefficients.size, 4096);
            break;
        default:
            move(a, *good.values[b].address, false);
    }
    return bad;
}

TEST(Final, PlantedFaultsAreFoundAndOnlyThose) {
    std::mt19937 random(11);
    std::size_t harmful = 0, found = 0, harmless = 0, reported = 0;
    std::string first;
    for (const auto& [name, text] : samples()) {
        const auto good = engine().read(text).value();
        for (int trial = 0; trial < 150; ++trial) {
            const auto bad = planted(good, random);
            const std::string harm = MemoryOracle::harm_of(bad);
            const auto faults = faults_of(bad);
            if (harm.empty()) {
                ++harmless;
                if (!faults.empty()) ++reported;
                if (!faults.empty() && first.empty())
                    first = name + ": reported: " + faults.front();
            } else {
                ++harmful;
                if (!faults.empty()) ++found;
                if (faults.empty() && first.empty()) first = name + ": missed: " + harm;
            }
        }
    }
    RecordProperty("harmful", static_cast<int>(harmful));
    RecordProperty("found", static_cast<int>(found));
    std::printf("plantings: %zu harmful, %zu found; %zu harmless, %zu reported\n", harmful, found,
                harmless, reported);
    EXPECT_GE(static_cast<double>(found), 0.99 * static_cast<double>(harmful)) << first;
    EXPECT_EQ(reported, 0U) << first;
    EXPECT_GT(harmful, 50U);
    EXPECT_GT(harmless, 5U);
}

TEST(Final, BisectionNamesTheFault) {
    std::mt19937 random(3);
    std::vector<FinalProgram> programs;
    for (const auto& [name, text] : samples()) {
        // Numbers for the largest would take gigabytes.
        auto program = engine().read(text).value();
        for (Value& value : program.values)
            if (!value.shape.empty()) value.shape = {16};
        programs.push_back(std::move(program));
    }
    for (int trial = 0; trial < 200; ++trial) {
        const FinalProgram& program = programs[random() % programs.size()];
        const NamedArrays reference = tool::demo_tensors(program, {});
        const std::string fault = reference[random() % reference.size()].first;
        const auto found =
            bisect(program, reference, tool::demo_tensors(program, fault), {}).value();
        ASSERT_TRUE(found.first_wrong) << program.name << " " << fault;
        EXPECT_EQ(program.at(found.tensors[*found.first_wrong].value).name, fault) << program.name;
        EXPECT_EQ(found.compared, found.tensors.size());
        EXPECT_FALSE(bisect(program, reference, reference, {}).value().first_wrong);
    }
}

/// By asking, as --run does: a cut is wrong when the faulty unit is in it.
TEST(Final, BisectionByRunsNamesTheFault) {
    std::size_t trials = 0, asked_of_large = 0, all_of_large = 0;
    for (const auto& [name, text] : samples()) {
        const auto units = units_of(engine().read(text).value());
        for (std::size_t fault = 0; fault < units.size(); ++fault) {
            if (units[fault].names.empty()) continue;
            std::set<std::size_t> wrong = {fault};
            for (std::size_t i = fault + 1; i < units.size(); ++i)
                for (const std::size_t before : units[i].before)
                    if (wrong.contains(before)) wrong.insert(i);
            std::size_t asked = 0;
            const auto found = first_wrong_unit(units, [&](const Unit& unit) -> Result<bool> {
                ++asked;
                return wrong.contains(static_cast<std::size_t>(&unit - units.data()));
            });
            ASSERT_TRUE(found && *found) << name << " " << units[fault].names[0];
            EXPECT_EQ(**found, fault) << name;
            EXPECT_LE(asked, units.size()) << name << " " << units[fault].names[0];
            ++trials;
            // Of a handful there is nothing to halve.
            if (units.size() < 16) continue;
            asked_of_large += asked;
            all_of_large += units.size();
        }
    }
    EXPECT_LE(asked_of_large, all_of_large / 2) << "it halves";
    EXPECT_GT(trials, 4U);
}

/// Positions in a group's body from which a result is computed, found forwards: what a planted
/// fault spoils.
std::set<ValueIndex> spoiled_by(const Operator& group, std::size_t fault) {
    std::set<ValueIndex> bad;
    for (std::size_t i = fault; i < group.body.size(); ++i) {
        const Operator& op = group.body[i];
        const bool reads = std::ranges::any_of(
            op.operands, [&](ValueIndex operand) { return bad.contains(operand); });
        if (i == fault || reads) bad.insert(op.results.begin(), op.results.end());
    }
    return bad;
}

/// A fault in any operator of any group: it is among the suspects, and they are not all operators
/// where a result of the group is right.
TEST(Final, SuspectsInAGroupHoldTheFault) {
    std::size_t groups = 0, faults = 0, named = 0, all = 0, left = 0;
    for (const auto& [name, text] : samples()) {
        const auto program = engine().read(text).value();
        for (const Unit& unit : units_of(program)) {
            const Operator& group = *unit.op;
            if (!group.is("tpu.Group")) continue;
            ++groups;
            for (std::size_t fault = 0; fault < group.body.size(); ++fault) {
                const Operator& op = group.body[fault];
                if (op.is("tpu.Load") || op.is("tpu.Store") || op.is("tpu.Yield")) continue;
                const auto bad = spoiled_by(group, fault);
                const auto is_bad = [&](const std::string& result) {
                    for (const ValueIndex yielded : group.body.back().operands)
                        if (program.at(yielded).name == result && bad.contains(yielded))
                            return true;
                    return false;
                };
                const auto suspects = suspects_in(
                    program, unit,
                    [&](const Unit& one) -> Result<bool> { return is_bad(one.names.at(0)); });
                ASSERT_TRUE(suspects);
                EXPECT_TRUE(std::ranges::find(*suspects, &op) != suspects->end())
                    << name << " " << program.at(op.results[0]).name;
                ++faults;
                named += suspects->size() == 1 ? 1 : 0;
                left += suspects->size();
                all += group.body.size();
            }
        }
    }
    std::printf("%zu groups, %zu faults: %zu named, %.1f of %.1f operators left\n", groups, faults,
                named, static_cast<double>(left) / static_cast<double>(faults),
                static_cast<double>(all) / static_cast<double>(faults));
    EXPECT_GT(named, 0U);
    EXPECT_LT(2 * left, all);
}

TEST(Similarity, CountsEveryElement) {
    const auto floats = [](std::vector<float> numbers) {
        Array array{ElementType::float32, {static_cast<std::int64_t>(numbers.size())}, {}};
        const auto bytes = std::as_bytes(std::span(numbers));
        array.data.assign(bytes.begin(), bytes.end());
        return array;
    };
    const float nan = std::nanf("");
    const Value plain;
    EXPECT_TRUE(similarity(floats({1, nan}), floats({1, nan}), plain)->within({}));
    EXPECT_FALSE(similarity(floats({1, 2}), floats({1, nan}), plain)->within({}));
    EXPECT_FALSE(similarity(floats({1, 2}), floats({1}), plain));
    std::vector<float> many(1000, 1.0F);
    auto other = many;
    other[777] = 1000;
    EXPECT_FALSE(similarity(floats(many), floats(other), plain)->within({}));
    Value quantised;
    quantised.quantisation = UniformQuantisation{{0.5}, {2}, {}};
    const Array stored{ElementType::int8, {2}, {std::byte{4}, std::byte{0xfe}}};
    EXPECT_TRUE(similarity(floats({1, -2}), stored, quantised)->within({1, 1}));
}

TEST(FinalFiles, AreKnownByTheirText) {
    EXPECT_TRUE(is_final_mlir(as_bytes(tool::demo_network())));
    EXPECT_FALSE(is_final_mlir(as_bytes(std::string_view("module {}"))));
    EXPECT_FALSE(is_final_mlir(as_bytes(std::string_view("# module.chip"))) &&
                 is_final_mlir(as_bytes(std::string_view("hello module.chip"))));
}

}  // namespace
}  // namespace reef::sophgo
