// Everything that reads compiled models, on programs of Reef's own compiler: no reference data.
#include "own_models.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "edgetpu/program/codec.h"
#include "edgetpu/program/encode_stream.h"
#include "reef/chip/debugger.h"
#include "reef/chip/disassembler.h"
#include "reef/chip/inspector.h"
#include "reef/chip/parameters.h"
#include "reef/chip/retargeter.h"
#include "reef/chip/traffic.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/package.h"
#include "reef/hw/program_diff.h"
#include "reef/model/operator_samples.h"
#include "reef/runtime/layer_dump.h"
#include "reef/runtime/registry.h"
#include "support/compiled_session.h"
#include "support/temporary_folder.h"

namespace reef::edgetpu {
namespace {

using test::OwnModel;

template <class Part>
const Part& part() {
    return *runtime::Registry::of_process().part<Part>("edgetpu");
}

/// Calls check(model) for each, of which there are enough.
template <typename Check>
void for_each_model(Check check) {
    ASSERT_EQ(test::own_models().size(), 11U);
    for (const OwnModel& one : test::own_models()) {
        SCOPED_TRACE(one.name);
        check(one);
        if (testing::Test::HasFatalFailure()) return;
    }
}

std::vector<chip::Program> programs_of(const OwnModel& one) {
    auto programs = part<chip::Disassembler>().programs_of(one.compiled);
    EXPECT_TRUE(programs) << programs.error().message();
    return programs ? std::move(*programs) : std::vector<chip::Program>{};
}

TEST(OwnModels, TextAndTypesGiveTheSameBytes) {
    const auto& disassembler = part<chip::Disassembler>();
    std::size_t streams = 0;
    for_each_model([&](const OwnModel& one) {
        for (const chip::Program& program : programs_of(one)) {
            std::vector<Bytes> views;
            for (const SharedBytes& stream : program.streams) {
                const Bytes bytes = stream.view();
                views.push_back(bytes);
                ++streams;
                for (const bool symbolic : {false, true}) {
                    const auto again =
                        disassembler.assemble(disassembler.text_of(bytes, {.symbolic = symbolic}));
                    ASSERT_TRUE(again) << again.error().message();
                    ASSERT_EQ(again->size(), 1U);
                    EXPECT_TRUE(std::ranges::equal(again->front().bytes, bytes));
                }
                const auto typed = program::decode_stream(bytes);
                ASSERT_TRUE(typed) << typed.error().message();
                const auto encoded = program::encode_stream(*typed);
                ASSERT_TRUE(encoded) << encoded.error().message();
                EXPECT_TRUE(std::ranges::equal(*encoded, bytes));
                EXPECT_TRUE(hw::diff_programs(disassembler.instruction_set(), bytes, bytes,
                                              disassembler.numbering())
                                .identical);
            }
            const auto check = disassembler.check(views);
            EXPECT_TRUE(check.followed);
            EXPECT_TRUE(check.faults.empty()) << check.faults.front().what;
            EXPECT_TRUE(check.unmodelled.empty()) << check.unmodelled.front().what;
        }
    });
    EXPECT_GE(streams, 8U);
}

TEST(OwnModels, AreInspected) {
    for_each_model([](const OwnModel& one) {
        const auto inspection = part<chip::Inspector>().inspect(one.compiled);
        EXPECT_TRUE(inspection->is_compiled());
        EXPECT_FALSE(inspection->sections(chip::Detail::all).empty());
        EXPECT_FALSE(inspection->document().empty());
        const auto& placements = inspection->placements();
        ASSERT_FALSE(placements.empty());
        EXPECT_TRUE(std::ranges::any_of(placements[0], &chip::OperatorPlacement::on_chip));
    });
}

/// Of the weights that the plain model holds none are missing, and every byte is explained.
TEST(OwnModels, EveryLayersParametersAreFound) {
    std::size_t equal = 0, unexplained = 0;
    for_each_model([&](const OwnModel& one) {
        const auto opened = part<chip::ParameterReader>().open(one.plain, one.compiled);
        ASSERT_TRUE(opened) << opened.error().message();
        const chip::ParameterAccount account = (*opened)->account();
        for (const auto& missing : account.missing) ADD_FAILURE() << missing.op;
        for (const auto& blob : account.blobs)
            for (const auto& range : blob.ranges) {
                EXPECT_EQ(range.differing_bytes, 0U) << range.op;
                (range.state == chip::ParameterRange::State::equal ? equal : unexplained) +=
                    range.size_bytes;
            }
    });
    EXPECT_GT(equal, 0U);
    EXPECT_EQ(unexplained, 0U);
}

/// Weights of more than one element: what the program has of the network's own. (Factors of the
/// channels of an image are in the scales.)
std::vector<std::string> numbers_of(const model::Model& plain) {
    std::vector<std::string> names;
    const auto& graph = plain.subgraphs.front();
    for (const auto& op : graph.operators) {
        if (op.code.builtin != model::Op::conv_2d &&
            op.code.builtin != model::Op::depthwise_conv_2d &&
            op.code.builtin != model::Op::fully_connected)
            continue;
        const auto& constant = graph.tensors[static_cast<std::size_t>(op.inputs[1])];
        if (plain.constant(constant).size() > 1) names.push_back(constant.name);
    }
    return names;
}

/// Of networks of each operator that the compiler takes.
TEST(OwnModels, NumbersOfEveryOperatorAreFound) {
    std::size_t found = 0, arrays = 0;
    for (const ElementType type : {ElementType::uint8, ElementType::int8}) {
        const auto samples = model::operator_samples(type).value();
        for (const model::OperatorSample& sample : samples) {
            SCOPED_TRACE(fmt::format("{} {}, {}", name_of(type), sample.name, sample.variant));
            const auto compiled = compile(sample.model, {});
            if (!compiled || packages_of(compiled->model).value().empty()) continue;
            const auto opened = part<chip::ParameterReader>().open(sample.model, compiled->model);
            ASSERT_TRUE(opened) << opened.error().message();
            for (const auto& missing : (*opened)->account().missing) ADD_FAILURE() << missing.op;
            const auto got = (*opened)->get();
            ASSERT_TRUE(got) << got.error().message();
            for (const std::string& name : numbers_of(sample.model)) {
                EXPECT_TRUE(std::ranges::any_of(*got, [&](const auto& array) {
                    return array.first == name;
                })) << name;
                ++arrays;
            }
            ASSERT_TRUE((*opened)->set(*got));
            EXPECT_EQ((*opened)->model().value(), compiled->model);
            ++found;
        }
    }
    EXPECT_GT(found, 100U);
    EXPECT_GT(arrays, 20U);
}

TEST(OwnModels, ParametersAreReadAndReplaced) {
    std::size_t changed = 0;
    for_each_model([&](const OwnModel& one) {
        auto opened = part<chip::ParameterReader>().open(one.plain, one.compiled);
        ASSERT_TRUE(opened) << opened.error().message();
        chip::Parameters& parameters = **opened;
        auto arrays = parameters.get();
        ASSERT_TRUE(arrays) << arrays.error().message();
        ASSERT_TRUE(parameters.set(*arrays));
        EXPECT_EQ(parameters.model().value(), one.compiled);
        const auto weights = std::ranges::find_if(*arrays, [](const auto& array) {
            return array.second.type == ElementType::int8 && array.second.data.size() > 1;
        });
        if (weights == arrays->end()) return;
        std::ranges::reverse(weights->second.data);
        ASSERT_TRUE(parameters.set({*weights}));
        EXPECT_NE(parameters.model().value(), one.compiled);
        // Other weights do not tell which of two orders of taps and channels they are in.
        if (one.name == "wide" || one.name == "grouped" || one.name == "two_programs") return;
        const auto again =
            part<chip::ParameterReader>().open(one.plain, parameters.model().value());
        ASSERT_TRUE(again) << again.error().message();
        const auto read = (*again)->get();
        ASSERT_TRUE(read) << read.error().message();
        EXPECT_EQ(*read, *arrays);
        ++changed;
    });
    EXPECT_GE(changed, 2U);
}

/// As the vendor's programs are; of a program that retargeting does not understand, the reason is
/// told and nothing is made.
TEST(OwnModels, AreRetargetedToTheirOwnSource) {
    std::size_t done = 0, refused = 0;
    for_each_model([&](const OwnModel& one) {
        const auto result = part<chip::Retargeter>().retarget(
            {.compiled = one.compiled, .target = one.plain, .source = &one.plain});
        if (!result) {
            EXPECT_EQ(result.error().cause, Cause::unsupported) << result.error().message();
            fmt::print("{}: {}\n", one.name, result.error().message());
            ++refused;
            return;
        }
        EXPECT_EQ(result->model, one.compiled);
        EXPECT_EQ(result->changed_instructions, 0U);
        EXPECT_EQ(result->changed_parameter_bytes, 0U);
        ++done;
    });
    fmt::print("{} given back, {} refused\n", done, refused);
    EXPECT_GE(done, 1U);
}

TEST(OwnModels, GiveTheBytesOfTheChipsArithmetic) {
    for_each_model([](const OwnModel& one) {
        auto sessions = test::open_compared(one.plain, one.compiled);
        ASSERT_TRUE(sessions) << sessions.error().message();
        test::draw_inputs(sessions->chip, sessions->cpu, 7);
        ASSERT_TRUE(sessions->cpu.run());
        ASSERT_TRUE(sessions->chip.run());
        test::expect_equal_compiled_tensors(sessions->chip, sessions->cpu);
    });
}

/// Every layer that can be told is equal to a tensor of the plain model.
TEST(OwnModels, LayersAreThePlainModelsTensors) {
    std::size_t gathered = 0, layers = 0, compared = 0;
    for_each_model([&](const OwnModel& one) {
        auto sessions = test::open_compared(one.plain, one.compiled);
        ASSERT_TRUE(sessions) << sessions.error().message();
        test::draw_inputs(sessions->chip, sessions->cpu, 11);
        ASSERT_TRUE(sessions->cpu.run());
        ASSERT_TRUE(sessions->chip.run());
        const auto dump = runtime::dump_layers(one.compiled, sessions->chip, &one.plain);
        ASSERT_TRUE(dump) << dump.error().message();
        layers += dump->layers.size();
        for (const runtime::DumpedLayer& layer : dump->layers) {
            if (!layer.layer.problem.empty()) continue;
            ++gathered;
            if (!layer.match || !layer.match->comparable || layer.match->by_place) continue;
            const Bytes plain = sessions->cpu.tensor(layer.match->tensor);
            EXPECT_TRUE(std::ranges::equal(layer.tensor.data, plain)) << layer.plain_op;
            ++compared;
        }
    });
    fmt::print("{} of {} layers gathered, {} compared\n", gathered, layers, compared);
    EXPECT_GE(compared, 35U);
}

/// Of the graph's inputs, all the same byte.
chip::TrafficRuns runs_of(const OwnModel& one, unsigned byte) {
    return {
        .model = one.compiled,
        .place = one.name,
        .inputs =
            [byte](const model::Subgraph& graph) -> Result<std::vector<std::vector<std::byte>>> {
            std::vector<std::vector<std::byte>> inputs;
            for (const auto index : graph.inputs) {
                const auto& tensor = graph.tensors[static_cast<std::size_t>(index)];
                inputs.emplace_back(static_cast<std::size_t>(tensor.byte_count().value()),
                                    static_cast<std::byte>(byte));
            }
            return inputs;
        }};
}

TEST(OwnModels, TrafficIsRecordedAndReplayed) {
    const auto& recorder = part<chip::TrafficRecorder>();
    const test::TemporaryFolder folder;
    for (const std::size_t i : {0U, 1U, 6U}) {
        const OwnModel& one = test::own_models().at(i);
        for (const char* device : {"edgetpu:sim", "edgetpu:null"}) {
            SCOPED_TRACE(one.name + " on " + device);
            const auto recorded = recorder.record(device, runs_of(one, 3));
            ASSERT_TRUE(recorded) << recorded.error().message();
            ASSERT_TRUE(recorded->done) << recorded->done.error().message();
            const std::string path = folder.file("traffic.log");
            ASSERT_TRUE(recorded->traffic->write(path));
            const auto read = recorder.read(path);
            ASSERT_TRUE(read) << read.error().message();
            EXPECT_EQ((*read)->view().value(), recorded->traffic->view().value());
            EXPECT_TRUE((*read)->holds_transfers().value());
            EXPECT_TRUE((*read)->replay(runs_of(one, 3)).value().as_recorded);
            EXPECT_FALSE((*read)->replay(runs_of(one, 4)).value().as_recorded);
            EXPECT_TRUE((*read)->start({}).value().whole());
        }
    }
}

chip::DebugRequest debug_request(const OwnModel& one, std::optional<std::size_t> op) {
    return {.device = "edgetpu:sim",
            .model = &one.compiled,
            .place = one.name,
            .inputs = runs_of(one, 90).inputs,
            .firmware = {},
            .op = op};
}

/// Its outputs at the end are those of the same operator in a session.
void expect_outputs_of_session(chip::Debugger& debugger, const OwnModel& one, std::size_t index) {
    auto session = runtime::Session::open(one.compiled,
                                          {.devices = {"edgetpu:sim"}, .keep_all_tensors = true});
    ASSERT_TRUE(session) << session.error().message();
    std::ranges::fill(session->input(0), std::byte{90});
    ASSERT_TRUE(session->run());
    const auto& op = session->graph().operators[index];
    const auto outputs = debugger.outputs().value();
    ASSERT_EQ(outputs.size(), op.outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i)
        EXPECT_TRUE(std::ranges::equal(outputs[i], session->tensor(op.outputs[i])));
}

TEST(OwnModels, AreDebugged) {
    const OwnModel& one = test::own_models().front();
    auto target = part<chip::DebuggerOpener>().open(debug_request(one, {}));
    ASSERT_TRUE(target) << target.error().message();
    EXPECT_EQ(target->program, "");
    chip::Debugger& debugger = *target->debugger;
    EXPECT_FALSE(debugger.streams().empty());
    EXPECT_FALSE(debugger.layers().empty());
    const auto at = debugger.layers().front().instructions.front();
    ASSERT_TRUE(debugger.add_breakpoint(chip::WordBreak{.at = at}));
    auto stop = debugger.run(chip::RunUntil::breakpoint, 1);
    ASSERT_TRUE(stop) << stop.error().message();
    EXPECT_EQ(stop->reason, chip::RunStop::Reason::breakpoint);
    ASSERT_TRUE(debugger.delete_breakpoint(1));
    stop = debugger.run(chip::RunUntil::breakpoint, 1);
    ASSERT_TRUE(stop) << stop.error().message();
    EXPECT_EQ(stop->reason, chip::RunStop::Reason::ended);
    expect_outputs_of_session(debugger, one, packages_of(one.compiled).value().at(0).index);
}

TEST(OwnModels, AnyOfSeveralProgramsIsDebugged) {
    const OwnModel& one = test::own_models().back();
    const auto packages = packages_of(one.compiled).value();
    ASSERT_EQ(packages.size(), 2U);
    for (const std::size_t which : {0U, 1U}) {
        auto target = part<chip::DebuggerOpener>().open(debug_request(one, packages[which].index));
        ASSERT_TRUE(target) << target.error().message();
        EXPECT_THAT(target->program, testing::HasSubstr(" 0 and 2"));
        const auto stop = target->debugger->run(chip::RunUntil::breakpoint, 1);
        ASSERT_TRUE(stop) << stop.error().message();
        EXPECT_EQ(stop->reason, chip::RunStop::Reason::ended);
        expect_outputs_of_session(*target->debugger, one, packages[which].index);
    }
    const auto none = part<chip::DebuggerOpener>().open(debug_request(one, 1));
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().cause, Cause::bad_argument);
    EXPECT_THAT(none.error().message(), testing::HasSubstr("0 and 2"));
}

}  // namespace
}  // namespace reef::edgetpu
