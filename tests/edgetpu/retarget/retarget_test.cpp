// Compiled programs re-emitted for other plain models, compared with what the vendor's compiler
// wrote for those.
#include "reef/edgetpu/retarget.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "edgetpu/params/pairs.h"
#include "edgetpu/program/codec.h"
#include "edgetpu/retarget/other_numbers.h"
#include "edgetpu/retarget/program_alignment.h"
#include "reef/edgetpu/package.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::edgetpu {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string movenet = "movenet_single_pose_lightning_ptq";

model::Model load(const std::filesystem::path& path) {
    return model::load_tflite(path.string()).value();
}

/// A compiled model of the reference data and its plain source.
struct Known {
    model::Model plain;
    model::Model compiled;
};

Known load_known(const std::filesystem::path& folder, const std::string& name) {
    return {load(folder / (name + ".tflite")), load(folder / (name + "_edgetpu.tflite"))};
}

/// The token is no function of the program: it names a run of the compiler.
RetargetOptions token_of(const model::Model& compiled) {
    return {packages_of(compiled).value().at(0).package.executables[0].parameter_caching_token};
}

void expect_unchanged(const Result<Retargeted>& result, const model::Model& compiled) {
    ASSERT_TRUE(result) << result.error().message();
    EXPECT_EQ(result->model, compiled);
    EXPECT_EQ(result->changed_instructions, 0U);
    EXPECT_EQ(result->changed_parameter_bytes, 0U);
}

/// Calls check(name, plain, compiled) for every pair of the reference data.
template <typename Check>
void for_every_pair(Check check) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(std::filesystem::exists(shared));
    for (const test::CompiledPair& pair : test::compiled_pairs()) {
        SCOPED_TRACE(pair.name);
        check(pair.name, load(pair.plain), load(pair.compiled));
    }
}

TEST(Retarget, GivesEveryCompiledModelBackForItsOwnSource) {
    // Of operators whose values are not known, the program does not say that they are the target's.
    const std::set<std::string> unreadable = {movenet, "keras_lstm_mnist_ptq", "split_concat"};
    for_every_pair([&](const auto& name, const model::Model& plain, const model::Model& compiled) {
        expect_unchanged(retarget(compiled, plain, plain, {}), compiled);
        const auto alone = retarget(compiled, plain, {});
        if (!unreadable.contains(name)) return expect_unchanged(alone, compiled);
        ASSERT_FALSE(alone);
        EXPECT_THAT(alone.error().message(),
                    HasSubstr("whether its quantisation differs cannot be read"));
    });
}

TEST(Retarget, FindsEveryLayersValuesInTheInstructions) {
    for_every_pair(
        [](const std::string& name, const model::Model& plain, const model::Model& compiled) {
            const auto on_chip = operators_on_chip(plain, compiled).value();
            const auto parts = plan_parameters(plain, on_chip).value();
            const auto operators = packages_of(compiled).value();
            const auto instructions = tensor_instructions(operators).value();
            std::size_t found = 0, layers = 0, layers_found = 0;
            const auto roles = requantisations(plain, on_chip, parts);
            for (const Requantisation& role : roles) {
                const bool held = std::ranges::any_of(
                    instructions, [&](const auto& one) { return holds(one.instruction, role); });
                found += held ? 1 : 0;
                if (role.form != Requantisation::Form::layer) continue;
                ++layers;
                layers_found += held ? 1 : 0;
            }
            const auto known = std::ranges::count_if(instructions, [&](const auto& one) {
                return std::ranges::any_of(
                    roles, [&](const auto& role) { return holds(one.instruction, role); });
            });
            fmt::print("{}: {} of {} layers, {} of {} roles, {} of {} instructions\n", name,
                       layers_found, layers, found, roles.size(), known, instructions.size());
            EXPECT_EQ(layers_found, layers);
        });
}

// The accumulator moves on after each result, so that its rotation says how many steps one takes,
// whatever the mask says; the simulator sums by the same rule.
TEST(Retarget, TakesAReductionFromTheRotationBeforeTheMask) {
    program::Tensor mac;
    mac.loops.count = {4, 3, 2, 1, 1, 1, 1, 1};
    mac.acc.count = mac.loops.count;
    mac.reduction_mask = 1;
    const auto takes = [&](std::uint64_t steps) {
        const auto bits = program::encode({mac}).value();
        const auto decoded = decode(bits.bytes()).value();
        Requantisation layer;
        layer.steps = steps;
        return has_shape_of(decoded.at(0), layer);
    };
    EXPECT_TRUE(takes(4));
    EXPECT_FALSE(takes(12));
    mac.acc.rotate_size = 4;
    mac.acc.rotate_level = 2;
    EXPECT_TRUE(takes(12));
    EXPECT_FALSE(takes(4));
}

/// The executables of `ours`, and what a runtime reads of its tensors, are those of `theirs`.
void expect_same_program(const model::Model& ours, const model::Model& theirs) {
    const auto expected = packages_of(theirs).value();
    const auto operators = packages_of(ours).value();
    ASSERT_EQ(operators.size(), expected.size());
    for (std::size_t op = 0; op < operators.size(); ++op) {
        const auto& x = operators[op].package.executables;
        const auto& y = expected[op].package.executables;
        ASSERT_EQ(x.size(), y.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
            SCOPED_TRACE(to_string(y[i].type));
            EXPECT_EQ(x[i].parameters, y[i].parameters);
            EXPECT_EQ(x[i].bitstreams, y[i].bitstreams);
            EXPECT_EQ(x[i].inputs, y[i].inputs);
            EXPECT_EQ(x[i].outputs, y[i].outputs);
            EXPECT_EQ(x[i].dma_hints, y[i].dma_hints);
            EXPECT_EQ(x[i], y[i]);
        }
    }
    const auto& a = ours.subgraphs[0].tensors;
    const auto& b = theirs.subgraphs[0].tensors;
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].name, b[i].name);
        ASSERT_EQ(a[i].quantization.has_value(), b[i].quantization.has_value());
        if (!a[i].quantization) continue;
        EXPECT_EQ(a[i].quantization->scale, b[i].quantization->scale);
        EXPECT_EQ(a[i].quantization->zero_point, b[i].quantization->zero_point);
    }
}

TEST(Retarget, GivesTheVendorsExecutablesForOtherColours) {
    REEF_SHARED_OR_SKIP(shared);
    const auto folder = shared / "data/edgetpu/templates";
    const std::vector<std::string> colours = {"red", "green", "white"};
    for (const std::string& from : colours) {
        for (const std::string& to : colours) {
            SCOPED_TRACE(from + " to " + to);
            const Known known = load_known(folder, "color_" + from + "_64x64");
            const auto [target, vendor] = load_known(folder, "color_" + to + "_64x64");
            const RetargetOptions options = token_of(vendor);
            const auto with = retarget(known.compiled, known.plain, target, options);
            ASSERT_TRUE(with) << with.error().message();
            expect_same_program(with->model, vendor);
            const auto without = retarget(known.compiled, target, options);
            ASSERT_TRUE(without) << without.error().message();
            expect_same_program(without->model, vendor);
        }
    }
}

/// There and back again: what was rewritten is found again, and nothing that the target overwrote
/// was needed.
void expect_way_back(const Known& known, const model::Model& target, const model::Model& there,
                     bool readable_alone = true) {
    const RetargetOptions options = token_of(known.compiled);
    expect_unchanged(
        readable_alone ? retarget(there, target, {}) : retarget(there, target, target, {}), there);
    const auto back = retarget(there, target, known.plain, options);
    ASSERT_TRUE(back) << back.error().message();
    expect_same_program(back->model, known.compiled);
}

TEST(Retarget, ChangesEveryNumberThereAndBack) {
    REEF_SHARED_OR_SKIP(shared);
    // With the number of seeds.
    const std::vector<std::pair<std::string, unsigned>> names = {
        {"data/edgetpu/templates/dense_256", 3},
        {"data/edgetpu/templates/dense_1024", 3},
        {"data/edgetpu/templates/gabor_64x64_7k_4o_2s", 3},
        {"data/edgetpu/templates/gabor_64x64_p4", 3},
        {"data/edgetpu/templates/bright_16x16", 3},
        {"data/edgetpu/templates/color_white_64x64", 3},
        {"data/edgetpu/templates/looming_64x64_3x3", 3},
        {"data/models/mobilenet_v1_0.25_128_quant", 3},
        {"data/models/mobilenet_v1_0.5_160_quant", 3},
#ifdef REEF_LARGE_PROGRAMS
        {"data/models/deeplabv3_mnv2_dm05_pascal_quant", 1},
        {"data/models/posenet_mobilenet_v1_075_353_481_16_quant_decoder", 1},
#endif
    };
    for (const auto& [name, seeds] : names) {
        const Known known = load_known(shared, name);
        for (unsigned seed = 2; seed < 2 + seeds; ++seed) {
            SCOPED_TRACE(fmt::format("{}, seed {}", name, seed));
            const auto target = test::with_other_numbers(known.plain, seed);
            const RetargetOptions options = token_of(known.compiled);
            const auto with = retarget(known.compiled, known.plain, target, options);
            ASSERT_TRUE(with) << with.error().message();
            EXPECT_GT(with->changed_instructions, 0U);
            EXPECT_GT(with->changed_parameter_bytes, 0U);
            const auto without = retarget(known.compiled, target, options);
            ASSERT_TRUE(without) << without.error().message();
            EXPECT_EQ(without->model, with->model);
            EXPECT_EQ(without->changed_instructions, with->changed_instructions);
            EXPECT_EQ(without->changed_parameter_bytes, with->changed_parameter_bytes);
            expect_way_back(known, target, with->model);
            const auto back = retarget(with->model, known.plain, options);
            ASSERT_TRUE(back) << back.error().message();
            expect_same_program(back->model, known.compiled);
        }
    }
}

TEST(Retarget, ChangesSigmoidsResizesAndRescalings) {
    REEF_SHARED_OR_SKIP(shared);
    const Known known = load_known(shared / "data/models", movenet);
    const auto& plain = known.plain;
    auto target = plain;
    const auto quantization = [&](model::TensorIndex index) -> model::Quantization& {
        return *target.subgraphs[0].tensors[static_cast<std::size_t>(index)].quantization;
    };
    for (const model::Operator& op : plain.subgraphs[0].operators) {
        if (op.code.builtin == model::Op::logistic) {
            quantization(op.inputs[0]).scale[0] *= 1.25F;
            quantization(op.inputs[0]).zero_point[0] -= 20;
        } else if (op.code.builtin == model::Op::resize_bilinear) {
            quantization(op.inputs[0]).scale[0] *= 0.75F;
            quantization(op.outputs[0]).scale[0] *= 0.75F;
        } else if (op.code.builtin == model::Op::quantize && op.inputs[0] != 0) {
            const auto in = quantization(op.inputs[0]).scale;
            if (in.size() == 1 && in != quantization(op.outputs[0]).scale) {
                quantization(op.outputs[0]).scale[0] *= 1.5F;
            }
        }
    }
    const auto there = retarget(known.compiled, plain, target, {});
    ASSERT_TRUE(there) << there.error().message();
    // Sigmoids and the rescaling; what makes or takes their and the resizes' inputs.
    EXPECT_GE(there->changed_instructions, 9U);
    expect_way_back(known, target, there->model, false);
}

/// Bits of a constant that the instructions of a program fill memory with.
std::multiset<std::int64_t> fill_values(const model::Model& compiled) {
    std::multiset<std::int64_t> values;
    const auto operators = packages_of(compiled).value();
    for (const CompiledOperator& op : operators) {
        for (const Executable& executable : op.package.executables) {
            for (const InstructionBitstream& stream : executable.bitstreams) {
                const auto instructions = decode(stream.instructions.view()).value();
                for (const Instruction& one : instructions) {
                    if (one.value("fill") == 1) values.insert(*one.value("fill_value"));
                }
            }
        }
    }
    return values;
}

TEST(Retarget, FillsBordersWithTheInputsZeroPoint) {
    REEF_SHARED_OR_SKIP(shared);
    auto [target, compiled] = load_known(shared / "data/models", "mobilenet_v1_0.25_128_quant");
    auto& graph = target.subgraphs[0];
    graph.tensors[static_cast<std::size_t>(graph.inputs[0])].quantization->zero_point = {100};
    const auto before = fill_values(compiled);
    ASSERT_GT(before.count(0x80808080), 0U);
    const auto result = retarget(compiled, target, {});
    ASSERT_TRUE(result) << result.error().message();
    const auto after = fill_values(result->model);
    EXPECT_EQ(after.count(0x80808080), 0U);
    EXPECT_EQ(after.count(0x64646464), before.count(0x80808080));
}

TEST(Retarget, NoticesOtherScalesOfTheSameWeights) {
    REEF_SHARED_OR_SKIP(shared);
    auto [target, compiled] = load_known(shared / "data/edgetpu/templates", "color_red_64x64");
    auto& graph = target.subgraphs[0];
    for (const model::Operator& op : graph.operators) {
        if (op.code.builtin != model::Op::conv_2d) continue;
        graph.tensors[static_cast<std::size_t>(op.inputs[1])].quantization->scale[0] *= 2;
    }
    const auto result = retarget(compiled, target, {});
    ASSERT_TRUE(result) << result.error().message();
    EXPECT_EQ(result->changed_instructions, 1U);
    EXPECT_EQ(result->changed_parameter_bytes, 0U);
}

TEST(Retarget, RefusesToGuessWithoutTheSource) {
    REEF_SHARED_OR_SKIP(shared);
    const auto folder = shared / "data/models";
    const Known known = load_known(folder, movenet);
    const auto result = retarget(known.compiled, test::with_other_numbers(known.plain, 1), {});
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message(),
                AllOf(HasSubstr("operator 2 SUB: whether its quantisation differs cannot be read"),
                      HasSubstr("--like")));

    const auto small = load(folder / "mobilenet_v1_0.25_128_quant.tflite");
    const auto large =
        retarget(load(folder / "mobilenet_v1_0.5_160_quant_edgetpu.tflite"), small, {});
    ASSERT_FALSE(large);
    EXPECT_THAT(large.error().message(),
                HasSubstr("another architecture: the compiled model takes"));
}

TEST(Retarget, RefusesWithTheReason) {
    REEF_SHARED_OR_SKIP(shared);
    const auto folder = shared / "data/edgetpu/templates";
    const auto [red, compiled] = load_known(folder, "color_red_64x64");
    const auto other = retarget(compiled, red, load(folder / "bright_64x64.tflite"), {});
    ASSERT_FALSE(other);
    EXPECT_THAT(other.error().message(), HasSubstr("another architecture"));

    const auto wrong = retarget(compiled, load(folder / "color_white_64x64.tflite"), red, {});
    ASSERT_FALSE(wrong);
    EXPECT_THAT(wrong.error().message(),
                HasSubstr("operator 1 CONV_2D: no instruction holds its scales"));

    const auto [dense, dense_compiled] = load_known(folder, "dense_256");
    auto heavier = dense;
    auto& weights =
        heavier.subgraphs[0]
            .tensors[static_cast<std::size_t>(heavier.subgraphs[0].operators[1].inputs[1])];
    const Bytes old = heavier.constant(weights);
    std::vector<std::byte> changed(old.begin(), old.end());
    changed[0] ^= std::byte{1};
    weights.buffer = static_cast<std::uint32_t>(heavier.buffers.size());
    heavier.buffers.push_back(SharedBytes::copy_of(changed));
    const auto from_other_weights = retarget(dense_compiled, heavier, dense, {});
    ASSERT_FALSE(from_other_weights);
    EXPECT_THAT(from_other_weights.error().message(),
                HasSubstr("1 bytes of its parameters are not those of the source"));

    auto biased = red;
    auto& tensors = biased.subgraphs[0].tensors;
    for (const model::Operator& op : biased.subgraphs[0].operators) {
        if (op.code.builtin != model::Op::conv_2d) continue;
        const std::array<std::byte, 4> one{std::byte{1}};
        tensors[static_cast<std::size_t>(op.inputs[2])].buffer =
            static_cast<std::uint32_t>(biased.buffers.size());
        biased.buffers.push_back(SharedBytes::copy_of(one));
    }
    const auto lacking = retarget(compiled, red, biased, {});
    ASSERT_FALSE(lacking);
    EXPECT_THAT(lacking.error().message(), HasSubstr("operator 1 CONV_2D: the model needs a bias"));
}

// Equal weights and scales, but one of the two pools: what a program holds of the one is true of
// the other.
TEST(Retarget, RefusesAnArchitectureWhoseValuesItHolds) {
    REEF_SHARED_OR_SKIP(shared);
    const auto folder = shared / "data/edgetpu/wild";
    const Known pooled = load_known(folder, "libredge__gabor_128x128_p4");
    const Known whole = load_known(folder, "libredge__gabor_128x128_7k_4o_2s");
    const auto refusal = [](const Result<Retargeted>& result) {
        return result ? std::string() : result.error().message();
    };
    const auto other = AllOf(HasSubstr("another architecture: the compiled model gives"),
                             HasSubstr("uint8 1x32x32x8"), HasSubstr("uint8 1x128x128x8"));
    EXPECT_THAT(refusal(retarget(pooled.compiled, whole.plain, {})), other);
    EXPECT_THAT(refusal(retarget(whole.compiled, pooled.plain, {})), other);
    EXPECT_THAT(refusal(retarget(pooled.compiled, whole.plain, whole.plain, {})), other);
    expect_unchanged(retarget(pooled.compiled, pooled.plain, {}), pooled.compiled);
    expect_unchanged(retarget(whole.compiled, whole.plain, {}), whole.compiled);
}

TEST(Retarget, RefusesProgramsThatRunInCircles) {
    REEF_SHARED_OR_SKIP(shared);
    const auto [plain, compiled] = load_known(shared / "data/edgetpu/templates", "dense_256");
    const auto place = packages_of(compiled).value().at(0);
    Package package = place.package;
    auto& stream = package.executables[0].bitstreams[0].instructions;
    std::vector<std::byte> bytes(stream.view().begin(), stream.view().end());
    const auto instructions = decode(stream.view()).value();
    const auto bundle =
        std::ranges::find(instructions, &spec::instructions[spec::op::bundle], &Instruction::info);
    ASSERT_NE(bundle, instructions.end());
    const auto branch = program::encode({program::Branch{}}).value();
    std::ranges::copy(branch.bytes(),
                      bytes.begin() + static_cast<std::ptrdiff_t>(bundle->word * word_bytes));
    stream = SharedBytes::copy_of(bytes);
    model::Model endless = compiled;
    ASSERT_TRUE(replace_package(endless.subgraphs[place.subgraph].operators[place.index], package));
    for (const auto& result : {retarget(endless, plain, {}), retarget(endless, plain, plain, {})}) {
        ASSERT_FALSE(result);
        EXPECT_THAT(result.error().message(), HasSubstr("no halt within"));
    }
}

// What Reef's compiler emits for copies, SOFTMAX and RESIZE_BILINEAR means nothing in another one's
// program.
TEST(Retarget, RulesOfReefsOwnProgramsHoldForThoseAlone) {
    constexpr float unlimited = std::numeric_limits<float>::infinity();
    program::Tensor copy;
    copy.scale = 1;
    copy.clamp_max = unlimited;
    copy.clamp_min = -unlimited;
    program::Tensor moved = copy;
    moved.in_zero = moved.out_zero = 3;
    program::Tensor distance = copy;
    distance.in_zero = distance.initial = 1;
    distance.out_zero = 255;
    distance.clamp_min = -255;
    distance.clamp_max = 0;
    program::Tensor sixteenths = copy;
    sixteenths.scale = 1.0F / 16;
    const auto independent = [](const program::Tensor& tensor, bool own) {
        const auto bits = program::encode({tensor}).value();
        return independent_of_quantization(decode(bits.bytes()).value().at(0), own);
    };
    for (const bool own : {false, true}) EXPECT_TRUE(independent(copy, own));
    for (const program::Tensor& tensor : {moved, distance, sixteenths}) {
        EXPECT_TRUE(independent(tensor, true));
        EXPECT_FALSE(independent(tensor, false));
    }
}

TEST(Retarget, RefusesTheVendorsProgramWithACopyOfReefs) {
    REEF_SHARED_OR_SKIP(shared);
    const auto [plain, compiled] = load_known(shared / "data/edgetpu/templates", "gabor_64x64_p4");
    const auto target = test::with_other_numbers(plain, 3, test::Change::all);
    ASSERT_TRUE(retarget(compiled, plain, target, {}));
    const auto place = packages_of(compiled).value().at(0);
    Package package = place.package;
    auto& stream = package.find(ExecutableType::execution_only)->bitstreams.front().instructions;
    std::vector<std::byte> bytes(stream.view().begin(), stream.view().end());
    const auto instructions = decode(stream.view()).value();
    const auto first = std::ranges::find_if(instructions, requantises);
    ASSERT_NE(first, instructions.end());
    auto changed = program::decode(*first);
    auto& tensor = std::get<program::Tensor>(changed.operation);
    tensor.par_zero = tensor.initial = 0;
    tensor.in_zero = tensor.out_zero = 3;
    tensor.scale = 1;
    tensor.clamp_max = std::numeric_limits<float>::infinity();
    tensor.clamp_min = -tensor.clamp_max;
    const auto encoded = program::encode(changed).value();
    std::ranges::copy(encoded.bytes(),
                      bytes.begin() + static_cast<std::ptrdiff_t>(first->word * word_bytes));
    stream = SharedBytes::copy_of(bytes);
    model::Model foreign = compiled;
    ASSERT_TRUE(replace_package(foreign.subgraphs[place.subgraph].operators[place.index], package));
    const auto result = retarget(foreign, plain, target, {});
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message(),
                AllOf(HasSubstr("its values belong to no operator"), HasSubstr(name_of(*first))));
}

/// `plain` with another scale for the outputs of all operators of a kind.
model::Model with_other_outputs(model::Model plain, model::Op kind) {
    auto& graph = plain.subgraphs[0];
    for (const model::Operator& op : graph.operators) {
        if (op.code.builtin != kind) continue;
        auto& tensor = graph.tensors[static_cast<std::size_t>(op.outputs[0])];
        if (tensor.quantization && tensor.quantization->quantized())
            tensor.quantization->scale[0] *= 2;
    }
    return plain;
}

TEST(Retarget, RefusesOperatorsWhoseValuesItDoesNotKnow) {
    REEF_SHARED_OR_SKIP(shared);
    const Known known = load_known(shared / "data/models", movenet);
    const auto message_for = [&](model::Op kind) -> std::string {
        const auto result =
            retarget(known.compiled, known.plain, with_other_outputs(known.plain, kind), {});
        EXPECT_FALSE(result);
        return result ? std::string() : result.error().message();
    };
    EXPECT_THAT(
        message_for(model::Op::resize_bilinear),
        HasSubstr("operator 71 RESIZE_BILINEAR: its quantisation differs, and it rescales"));
    EXPECT_THAT(message_for(model::Op::sub), HasSubstr("operator 2 SUB: its quantisation differs"));
}

/// The output of an operator of a kind, in a plain model.
model::Quantization& output_of(model::Model& plain, model::Op kind) {
    auto& graph = plain.subgraphs[0];
    const auto op = std::ranges::find_if(
        graph.operators, [&](const model::Operator& one) { return one.code.builtin == kind; });
    return *graph.tensors[static_cast<std::size_t>(op->outputs[0])].quantization;
}

TEST(Retarget, RefusesAnotherOutputOfSoftmax) {
    REEF_SHARED_OR_SKIP(shared);
    for (const std::string name :
         {"data/models/mobilenet_v1_0.25_128_quant", "data/edgetpu/templates/color_red_64x64"}) {
        SCOPED_TRACE(name);
        const Known known = load_known(shared, name);
        model::Model scaled = known.plain, shifted = known.plain;
        output_of(scaled, model::Op::softmax).scale[0] *= 2;
        output_of(shifted, model::Op::softmax).zero_point[0] += 5;
        for (const auto& target : {scaled, shifted})
            for (const auto& result : {retarget(known.compiled, known.plain, target, {}),
                                       retarget(known.compiled, target, {})}) {
                ASSERT_FALSE(result);
                EXPECT_THAT(result.error().message(),
                            AllOf(HasSubstr("SOFTMAX"), HasSubstr("output's scale is not 1/256")));
            }
    }
}

TEST(Retarget, RefusesScalesThatAreNotPositiveAndSparseWeights) {
    REEF_SHARED_OR_SKIP(shared);
    for (const std::string name :
         {"data/models/mobilenet_v1_0.25_128_quant", "data/edgetpu/templates/dense_256"}) {
        SCOPED_TRACE(name);
        const Known known = load_known(shared, name);
        const auto changed = [&](const auto& change) {
            model::Model target = known.plain;
            auto& graph = target.subgraphs[0];
            for (const model::Operator& op : graph.operators)
                if (op.inputs.size() > 1)
                    change(graph.tensors[static_cast<std::size_t>(op.inputs[1])]);
            return target;
        };
        const auto expect_refused = [&](const model::Model& target, const std::string& words) {
            for (const auto& result : {retarget(known.compiled, known.plain, target, {}),
                                       retarget(known.compiled, target, known.plain, {}),
                                       retarget(known.compiled, target, {})}) {
                ASSERT_FALSE(result);
                EXPECT_THAT(result.error().message(), HasSubstr(words));
            }
        };
        expect_refused(changed([](model::Tensor& weights) {
                           if (weights.quantization && weights.quantization->quantized())
                               weights.quantization->scale[0] = 0;
                       }),
                       "has scale 0, not a positive number");
        expect_refused(changed([](model::Tensor& weights) { weights.sparsity.emplace(); }),
                       "values in sparse form");
    }
}

}  // namespace
}  // namespace reef::edgetpu
