// The networks made from formulas against the files of the same networks made elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "reef/apps/robotics.h"
#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "reef/model/tflite.h"
#include "reef/runtime/session.h"
#include "support/shared_data.h"

namespace reef::apps {
namespace {

using model::Subgraph;
using model::Tensor;

/// What a quantisation means: scales and zero points; the axis only where it matters.
void expect_same_quantization(const Tensor& ours, const Tensor& theirs, const std::string& what) {
    const auto a = ours.quantization.value_or(model::Quantization{});
    const auto b = theirs.quantization.value_or(model::Quantization{});
    EXPECT_EQ(a.scale, b.scale) << what;
    EXPECT_EQ(a.zero_point, b.zero_point) << what;
    if (b.per_channel()) {
        EXPECT_EQ(a.axis, b.axis) << what;
    }
}

void expect_same_tensor(const model::Model& a, const Tensor& ours, const model::Model& b,
                        const Tensor& theirs, const std::string& what) {
    EXPECT_EQ(ours.shape, theirs.shape) << what;
    EXPECT_EQ(ours.type, theirs.type) << what;
    EXPECT_EQ(ours.is_variable, theirs.is_variable) << what;
    expect_same_quantization(ours, theirs, what);
    EXPECT_TRUE(std::ranges::equal(a.constant(ours), b.constant(theirs))) << what << ": data";
}

/// Pairs up tensors by the operators' inputs and outputs, so that numbering and names do not
/// matter, and compares every pair.
class GraphComparison {
  public:
    GraphComparison(const model::Model& ours, const model::Model& theirs)
        : ours_(ours),
          theirs_(theirs),
          a_(ours.subgraphs.at(0)),
          b_(theirs.subgraphs.at(0)),
          partner_(a_.tensors.size()) {}

    void run() {
        ASSERT_EQ(ours_.subgraphs.size(), theirs_.subgraphs.size());
        expect_same_list(a_.inputs, b_.inputs, "graph inputs");
        ASSERT_EQ(a_.operators.size(), b_.operators.size());
        for (std::size_t i = 0; i < a_.operators.size(); ++i) {
            const auto& mine = a_.operators[i];
            const auto& other = b_.operators[i];
            const std::string place = place_of(b_, i);
            EXPECT_EQ(mine.code.name(), other.code.name()) << place;
            EXPECT_EQ(mine.code.version, other.code.version) << place;
            EXPECT_EQ(mine.options, other.options) << place;
            expect_same_list(mine.inputs, other.inputs, place + " inputs");
            expect_same_list(mine.outputs, other.outputs, place + " outputs");
        }
        expect_same_list(a_.outputs, b_.outputs, "graph outputs");
        EXPECT_TRUE(std::ranges::all_of(partner_, [](const auto& p) { return p.has_value(); }))
            << "tensors that nobody uses";
    }

  private:
    void expect_same_list(const std::vector<model::TensorIndex>& mine,
                          const std::vector<model::TensorIndex>& other, const std::string& place) {
        ASSERT_EQ(mine.size(), other.size()) << place;
        for (std::size_t i = 0; i < mine.size(); ++i) {
            auto& partner = partner_.at(static_cast<std::size_t>(mine[i]));
            if (partner) {
                EXPECT_EQ(*partner, other[i]) << place << ": another tensor at " << i;
                continue;
            }
            partner = other[i];
            expect_same_tensor(ours_, a_.tensors[static_cast<std::size_t>(mine[i])], theirs_,
                               b_.tensors.at(static_cast<std::size_t>(other[i])),
                               place + " " + std::to_string(i));
        }
    }

    const model::Model& ours_;
    const model::Model& theirs_;
    const Subgraph& a_;
    const Subgraph& b_;
    std::vector<std::optional<model::TensorIndex>> partner_;
};

void expect_same_graph(const model::Model& ours, const std::filesystem::path& file) {
    const auto theirs = model::load_tflite(file.string());
    ASSERT_TRUE(theirs) << theirs.error().message();
    EXPECT_EQ(ours.subgraphs.at(0).tensors.size(), theirs->subgraphs.at(0).tensors.size());
    GraphComparison(ours, *theirs).run();
}

const Array* find(const NamedArrays& arrays, const std::string& name) {
    for (const auto& [key, array] : arrays) {
        if (key == name) return &array;
    }
    return nullptr;
}

/// Feeds in0 and compares the output with the recorded tensor, byte for byte, with both kernel
/// sets, after the model went through its file form.
void expect_golden_output(const model::Model& built, const std::filesystem::path& golden,
                          const std::string& last_tensor) {
    const auto file = model::write_tflite(built);
    ASSERT_TRUE(file) << file.error().message();
    const auto read = model::read_tflite(SharedBytes::copy_of(*file));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(*read, built);
    const auto bytes = read_file(golden.string());
    ASSERT_TRUE(bytes) << bytes.error().message();
    const auto arrays = read_npz(bytes->view());
    ASSERT_TRUE(arrays) << arrays.error().message();
    const Array* input = find(*arrays, "in0");
    const Array* expected = find(*arrays, last_tensor);
    ASSERT_TRUE(input != nullptr && expected != nullptr);
    for (const auto kernels : {cpu::KernelSet::reference, cpu::KernelSet::fast}) {
        runtime::SessionOptions options;
        options.kernels = kernels;
        auto session = runtime::Session::open(*read, options);
        ASSERT_TRUE(session) << session.error().message();
        ASSERT_EQ(session->input(0).size(), input->data.size());
        std::ranges::copy(input->data, session->input(0).begin());
        const auto status = session->run();
        ASSERT_TRUE(status) << status.error().message();
        EXPECT_TRUE(std::ranges::equal(session->output(0), expected->data));
    }
}

template <typename T>
T value_of(Result<T> result) {
    EXPECT_TRUE(result) << result.error().message();
    return std::move(result).value();
}

const std::string templates = "data/edgetpu/templates";
const std::string goldens = "data/cpu_golden";

TEST(LoomingModel, IsTheGraphOfTheReferenceFile) {
    REEF_SHARED_OR_SKIP(shared);
    expect_same_graph(value_of(looming_model({})), shared / templates / "looming_64x64_3x3.tflite");
}

TEST(LoomingModel, GivesTheRecordedOutput) {
    REEF_SHARED_OR_SKIP(shared);
    expect_golden_output(value_of(looming_model({})), shared / goldens / "looming_64x64_3x3.npz",
                         "t0014");
}

TEST(GaborModel, IsTheGraphOfTheReferenceFile) {
    REEF_SHARED_OR_SKIP(shared);
    expect_same_graph(value_of(gabor_model({})),
                      shared / templates / "gabor_64x64_7k_4o_2s.tflite");
}

TEST(GaborModel, GivesTheRecordedOutput) {
    REEF_SHARED_OR_SKIP(shared);
    expect_golden_output(value_of(gabor_model({})), shared / goldens / "gabor_64x64_7k_4o_2s.npz",
                         "t0005");
}

TEST(PooledGaborModel, IsTheGraphOfTheReferenceFile) {
    REEF_SHARED_OR_SKIP(shared);
    GaborOptions options;
    options.pool = 4;
    expect_same_graph(value_of(gabor_model(options)), shared / templates / "gabor_64x64_p4.tflite");
}

TEST(PooledGaborModel, GivesTheRecordedOutput) {
    REEF_SHARED_OR_SKIP(shared);
    GaborOptions options;
    options.pool = 4;
    expect_golden_output(value_of(gabor_model(options)), shared / goldens / "gabor_64x64_p4.npz",
                         "t0006");
}

TEST(LoomingModel, WorksAtOtherSizes) {
    for (const auto& [height, width] : {std::pair{3, 6}, {48, 96}, {63, 65}, {7, 200}}) {
        auto session = runtime::Session::open(
            value_of(looming_model({.height = height, .width = width, .scales = {}})), {});
        ASSERT_TRUE(session) << session.error().message();
        // A bright square in the middle of a dark picture: no edges in the corner zones but those
        // of the picture's own border, which SAME padding makes against zeros.
        auto input = session->input(0);
        std::ranges::fill(input, std::byte{0});
        for (int y = height / 3 + 1; y + 1 < height / 3 * 2; ++y) {
            for (int x = width / 3 + 1; x + 1 < width / 3 * 2; ++x) {
                input[static_cast<std::size_t>(y * width + x)] = std::byte{255};
            }
        }
        ASSERT_TRUE(session->run());
        ASSERT_EQ(session->output(0).size(), looming_zones);
        if (height < 20 || width < 20) continue;
        std::array<std::uint8_t, looming_zones> zones{};
        std::ranges::copy(session->output(0), std::as_writable_bytes(std::span(zones)).begin());
        EXPECT_GT(zones[4], 20);
        EXPECT_EQ(zones[0], 0);
        EXPECT_EQ(tau(zones), max_tau);
    }
}

TEST(GaborModel, AnswersToLinesOfItsOrientation) {
    GaborOptions options;
    options.height = 32;
    options.width = 40;
    auto session = runtime::Session::open(value_of(gabor_model(options)), {});
    ASSERT_TRUE(session) << session.error().message();
    for (const bool vertical : {false, true}) {
        auto input = session->input(0);
        for (int i = 0; i < 32 * 40; ++i) {
            const bool on_line = vertical ? i % 40 == 20 : i / 40 == 16;
            input[static_cast<std::size_t>(i)] =
                std::byte{on_line ? std::uint8_t{60} : std::uint8_t{0}};
        }
        ASSERT_TRUE(session->run());
        const auto* middle = session->output(0).data() + (16 * 40 + 20) * 8;
        const auto along = static_cast<int>(middle[vertical ? 2 : 0]);
        const auto across = static_cast<int>(middle[vertical ? 0 : 2]);
        EXPECT_GT(along, 2 * across + 10) << (vertical ? "vertical" : "horizontal");
    }
}

}  // namespace
}  // namespace reef::apps
