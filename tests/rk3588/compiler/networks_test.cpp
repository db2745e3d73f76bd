// Published networks, operator by operator, each fed with what the CPU computed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "compiler/legalise.h"
#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "reef/model/tflite.h"
#include "reef/runtime/session.h"
#include "rk3588/compiler/chip_memory.h"
#include "rk3588/compiler/compile.h"
#include "rk3588/compiler/target.h"
#include "support/compiled_session.h"
#include "support/shared_data.h"

namespace reef {
namespace {

struct Network {
    const char* name;
    bool nrdma, round;          ///< what is assumed
    bool fuse;                  ///< sums with convolutions
    std::size_t operators;      ///< on the chip
    double worst_share, share;  ///< of equal bytes: of an operator, of all
    std::uint64_t most_bytes;   ///< moved
};

std::ostream& operator<<(std::ostream& out, const Network& n) {
    return out << n.name << (n.nrdma ? " nrdma" : "") << (n.round ? " round" : "")
               << (n.fuse ? " fused" : "");
}

struct Comparison {
    std::uint64_t equal = 0, all = 0;
    int most = 0;
    [[nodiscard]] double share() const {
        return static_cast<double>(equal) / static_cast<double>(all);
    }
};

Comparison compare(Bytes got, Bytes want, bool is_signed) {
    Comparison c;
    c.all = want.size();
    const auto value = [&](std::byte b) {
        const auto u = static_cast<std::uint8_t>(b);
        return is_signed ? int{static_cast<std::int8_t>(u)} : int{u};
    };
    for (std::size_t i = 0; i < want.size(); ++i) {
        c.equal += got[i] == want[i] ? 1 : 0;
        c.most = std::max(c.most, std::abs(value(got[i]) - value(want[i])));
    }
    return c;
}

/// A real picture where one is recorded, else a drawn one.
void fill_input(runtime::Session& cpu, const std::filesystem::path& shared, const char* name) {
    const auto path = shared / "data/cpu_golden" / (std::string(name) + ".npz");
    if (!std::filesystem::exists(path)) return test::draw_picture(cpu.input(0), 1);
    const auto file = read_file(path.string());
    ASSERT_TRUE(file);
    const auto arrays = read_npz(file->view());
    ASSERT_TRUE(arrays);
    for (const auto& [key, array] : *arrays)
        if (key == "in0") std::ranges::copy(array.data, cpu.input(0).begin());
}

/// What the operator reads: of a sum with a convolution in it, that one's input and the other
/// operand.
struct Reads {
    std::vector<compiler::ValueId> inputs;
    std::optional<compiler::ValueId> unrounded;  ///< the convolution's result, which nobody stores
};
Reads reads_of(const compiler::Graph& graph, const rk3588::Artifact& artifact, std::size_t node,
               bool fused) {
    const auto& inputs = graph.nodes[node].inputs;
    if (!fused || !std::holds_alternative<compiler::Sum>(graph.nodes[node].operation))
        return {inputs, {}};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto maker = graph.producer(inputs[i]);
        const bool there = !maker || std::ranges::find(artifact.operators, *maker,
                                                       &rk3588::ArtifactOperator::index) !=
                                         artifact.operators.end();
        if (!there && std::holds_alternative<compiler::Convolution>(graph.nodes[*maker].operation))
            return {{graph.nodes[*maker].inputs[0], inputs[1 - i]}, inputs[i]};
    }
    return {inputs, {}};
}

/// Where results are more than 1 apart, TFLite has cut the convolution's result off at the ends of
/// its type.
void expect_far_ones_are_cut_off(Bytes got, Bytes want, Bytes between, bool is_signed) {
    const int flip = is_signed ? 128 : 0;
    const auto number = [&](std::byte b) { return (std::to_integer<int>(b) + flip) % 256; };
    for (std::size_t i = 0; i < want.size(); ++i)
        if (std::abs(number(got[i]) - number(want[i])) > 1) {
            EXPECT_TRUE(number(between[i]) == 0 || number(between[i]) == 255) << i;
        }
}

class Networks : public testing::TestWithParam<Network> {};

TEST_P(Networks, EachOperatorIsTheCpusButForFewBytes) {
    REEF_SHARED_OR_SKIP(shared);
    const auto plain =
        test::load_model(shared / "data/models" / (std::string(GetParam().name) + ".tflite"));
    auto cpu = runtime::Session::open(plain, {.keep_all_tensors = true});
    ASSERT_TRUE(cpu) << cpu.error().message();
    fill_input(*cpu, shared, GetParam().name);
    ASSERT_TRUE(cpu->run());

    rk3588::Options numbers;
    numbers.assume_nrdma = GetParam().nrdma;
    numbers.assume_round = GetParam().round;
    numbers.fuse_sums = GetParam().fuse;
    const auto compiled = rk3588::compile(plain, numbers, {});
    ASSERT_TRUE(compiled) << compiled.error().message();
    auto graph = compiler::read_graph(plain);
    legalise(graph, {},
             std::int64_t{rk3588::lowering::most_kernel} * rk3588::lowering::most_kernel);

    Comparison total;
    std::size_t operators = 0;
    std::uint64_t moved = 0;
    double worst = 1;
    for (const auto& artifact : test::programs_of(compiled->model)) {
        test::ChipMemory chip(artifact);
        for (const auto& op : artifact.operators) {
            ++operators;
            if (op.tasks == 0) continue;
            const auto& node = graph.nodes[op.index];
            const auto reads = reads_of(graph, artifact, op.index, GetParam().fuse);
            const auto tensor = [&](compiler::ValueId id) {
                return cpu->tensor(static_cast<model::TensorIndex>(id));
            };
            for (std::size_t i = 0; i < op.inputs.size(); ++i)
                chip.write(op.inputs[i], tensor(reads.inputs[i]));
            const auto done = chip.run(op);
            ASSERT_TRUE(done) << op.index << " " << op.name << ": " << done.error().message();
            const auto got = chip.read(op.output);
            const Bytes want = tensor(node.outputs[0]);
            const auto c = compare(got, want, !op.output.flipped);
            if (reads.unrounded) {
                expect_far_ones_are_cut_off(got, want, tensor(*reads.unrounded),
                                            !op.output.flipped);
            } else {
                EXPECT_LE(c.most, 1) << op.index << " " << op.name;
            }
            EXPECT_GE(c.share(), GetParam().worst_share) << op.index << " " << op.name;
            worst = std::min(worst, c.share());
            total.equal += c.equal;
            total.all += c.all;
        }
        moved += chip.traffic().total();
    }
    EXPECT_EQ(operators, GetParam().operators);
    EXPECT_GE(total.share(), GetParam().share);
    EXPECT_LE(moved, GetParam().most_bytes);
    fmt::print("{}{}: {} operators, {:.3f} % of bytes equal, worst operator {:.3f} %, {} bytes\n",
               GetParam().name,
               fmt::format("{}{}{}", GetParam().nrdma ? " nrdma" : "",
                           GetParam().round ? " round" : "", GetParam().fuse ? " fused" : ""),
               operators, 100 * total.share(), 100 * worst, moved);
    // The compiler's count is the simulator's.
    std::uint64_t reported = 0;
    for (const auto& program : compiled->programs)
        for (const auto& op : program.operators) reported += op.bytes.total();
    EXPECT_EQ(reported, moved);
}

/// The whole network on the chip, from the recorded picture of a cat on.
TEST(ClassOfAPicture, IsTheCpus) {
    REEF_SHARED_OR_SKIP(shared);
    for (const char* name : {"mobilenet_v1_0.25_128_quant", "mobilenet_v1_0.5_160_quant",
                             "tf2_mobilenet_v2_1.0_224_ptq"}) {
        SCOPED_TRACE(name);
        const auto plain =
            test::load_model(shared / "data/models" / (std::string(name) + ".tflite"));
        ASSERT_TRUE(
            std::filesystem::exists(shared / "data/cpu_golden" / (std::string(name) + ".npz")));
        const auto compiled = rk3588::compile(plain, {}, {});
        ASSERT_TRUE(compiled) << compiled.error().message();
        const auto class_on = [&](const model::Model& model, const char* device) -> std::ptrdiff_t {
            runtime::SessionOptions options;
            options.devices = {{device}};
            auto session = runtime::Session::open(model, options);
            EXPECT_TRUE(session) << session.error().message();
            if (!session) return -1;
            fill_input(*session, shared, name);
            EXPECT_TRUE(session->run());
            const Bytes scores = session->output(0);
            const bool is_signed =
                session->graph()
                    .tensors[static_cast<std::size_t>(session->graph().outputs[0])]
                    .type == ElementType::int8;
            const auto best = std::ranges::max_element(scores, {}, [&](std::byte b) {
                return (std::to_integer<int>(b) + (is_signed ? 128 : 0)) % 256;
            });
            return best - scores.begin();
        };
        const auto on_cpu = class_on(plain, "cpu");
        EXPECT_GE(on_cpu, 281);  // cats are 281 to 285, with the class of what is none one more
        EXPECT_LE(on_cpu, 286);
        EXPECT_EQ(class_on(compiled->model, "rk3588:sim"), on_cpu);
    }
}

/// What is written is read again; the rest is refused in words.
TEST(EveryPlainModel, IsCompiledToWhatReadsOrRefused) {
    REEF_SHARED_OR_SKIP(shared);
    std::size_t compiled_models = 0;
    for (const char* folder : {"data/models", "data/edgetpu/wild", "data/edgetpu/templates"}) {
        EXPECT_TRUE(std::filesystem::exists(shared / folder)) << folder;
        for (const auto& path : test::shared_files(folder, ".tflite")) {
            if (path.stem().string().ends_with("_edgetpu")) continue;
            const auto compiled = rk3588::compile(test::load_model(path), {}, {});
            if (!compiled) {
                EXPECT_EQ(compiled.error().cause, Cause::unsupported)
                    << path << compiled.error().message();
                continue;
            }
            ++compiled_models;
            EXPECT_FALSE(test::programs_of(compiled->model).empty()) << path;
            if (HasFailure()) return;
        }
    }
    EXPECT_GE(compiled_models, 15U);
}

INSTANTIATE_TEST_SUITE_P(
    Published, Networks,
    testing::Values(
        Network{"mobilenet_v1_0.25_128_quant", false, false, false, 29, 0.996, 0.999, 1'539'000},
        Network{"mobilenet_v1_0.5_160_quant", false, false, false, 29, 0.996, 0.999, 4'063'000},
        Network{"deeplabv3_mnv2_dm05_pascal_quant", false, false, false, 67, 0.996, 0.999,
                50'450'000},
        Network{"tf2_mobilenet_v2_1.0_224_ptq", false, false, false, 64, 0.984, 0.992, 18'240'000},
        Network{"tf2_mobilenet_v2_1.0_224_ptq", true, false, false, 64, 0.996, 0.999, 18'280'000},
        Network{"posenet_mobilenet_v1_075_353_481_16_quant_decoder", false, false, false, 32, 0.958,
                0.992, 32'730'000},
        Network{"posenet_mobilenet_v1_075_353_481_16_quant_decoder", true, false, false, 32, 0.996,
                0.998, 32'760'000},
        // Four convolutions, whose scales lie far apart, stay with the CPU.
        Network{"movenet_single_pose_lightning_ptq", false, false, false, 87, 0.974, 0.995,
                19'170'000},
        // Sums take the convolution's sums before they are rounded: about a fifth of them differ.
        Network{"tf2_mobilenet_v2_1.0_224_ptq", true, false, true, 54, 0.77, 0.99, 17'790'000},
        Network{"deeplabv3_mnv2_dm05_pascal_quant", false, false, true, 57, 0.72, 0.99, 48'850'000},
        Network{"posenet_mobilenet_v1_075_353_481_16_quant_decoder", true, true, false, 32, 0.996,
                0.999, 32'760'000}),
    [](const auto& each) {
        std::string name = each.param.name;
        std::ranges::replace_if(
            name, [](char c) { return std::isalnum(c) == 0; }, '_');
        return name + (each.param.nrdma ? "_nrdma" : "") + (each.param.round ? "_round" : "") +
               (each.param.fuse ? "_fused" : "");
    });

}  // namespace
}  // namespace reef
