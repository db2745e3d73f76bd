// Truncated, mutated and hostile files: a clear error or a model that keeps every rule, never more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "model/small_models.h"
#include "reef/base/file.h"
#include "reef/model/cost.h"
#include "reef/model/tflite.h"
#include "reef_schema/tflite_generated.h"
#include "support/shared_data.h"

namespace reef::model {
namespace {

using testing::HasSubstr;

/// An error with a text, or a model that validates, costs and (unless refused by name) writes to a
/// file that reads and writes to the same bytes.
void expect_error_or_model(const std::vector<std::byte>& bytes) {
    prefetch_tables(bytes);  // reads what is not verified
    const auto model = read_tflite(SharedBytes::copy_of(bytes));
    if (!model) {
        EXPECT_FALSE(model.error().what.empty());
        return;
    }
    ASSERT_TRUE(validate(*model));
    for (const Subgraph& graph : model->subgraphs) EXPECT_GE(cost_of(*model, graph).macs, 0);
    const auto written = write_tflite(*model);
    if (!written) {
        ASSERT_FALSE(model->not_preserved.empty()) << written.error().message();
        return;
    }
    const auto again = read_tflite(SharedBytes::copy_of(*written));
    ASSERT_TRUE(again) << again.error().message();
    // A model with a NaN is not equal to itself.
    EXPECT_TRUE(*again == *model || *model != *model);
    EXPECT_EQ(write_tflite(*again).value(), *written);
}

TEST(Truncated, AtEveryLength) {
    const auto whole = write_tflite(test::rich_model()).value();
    for (std::size_t length = 0; length < whole.size(); ++length) {
        const std::vector<std::byte> part(whole.begin(),
                                          whole.begin() + static_cast<std::ptrdiff_t>(length));
        const auto model = read_tflite(SharedBytes::copy_of(part));
        // What follows the last byte in use is alignment.
        if (length + 32 < whole.size()) {
            ASSERT_FALSE(model) << length;
            EXPECT_FALSE(model.error().hint.empty());
        }
        expect_error_or_model(part);
    }
}

void mutate(std::vector<std::byte> seed, int count, std::uint32_t random_seed) {
    std::mt19937 random(random_seed);
    for (int i = 0; i < count; ++i) {
        std::vector<std::byte> bytes = seed;
        const unsigned changes = 1 + random() % 4;
        for (unsigned k = 0; k < changes; ++k) {
            // Values near those that offsets and lengths hold find more than uniform ones.
            const std::size_t at = random() % bytes.size();
            const auto old = std::to_integer<std::uint8_t>(bytes[at]);
            const std::array<std::uint8_t, 5> values{static_cast<std::uint8_t>(random()),
                                                     static_cast<std::uint8_t>(old + 1),
                                                     static_cast<std::uint8_t>(old - 4), 0, 0xff};
            bytes[at] = std::byte{values[random() % values.size()]};
        }
        expect_error_or_model(bytes);
        if (testing::Test::HasFailure()) FAIL() << "mutation " << i << " of seed " << random_seed;
    }
}

TEST(Mutated, RichModel) {
    mutate(write_tflite(test::rich_model()).value(), 20000, 1);
}
TEST(Mutated, PlainModel) {
    mutate(write_tflite(test::plain_model()).value(), 20000, 2);
}

TEST(Mutated, Templates) {
    REEF_SHARED_OR_SKIP(shared);
    for (const auto* name : {"gabor_64x64_7k_4o_2s", "gabor_64x64_p4", "looming_64x64_3x3"}) {
        const auto path = shared / "data/edgetpu/templates" / (std::string(name) + ".tflite");
        const SharedBytes file = read_file(path.string()).value();
        mutate({file.view().begin(), file.view().end()}, 7000, 3);
    }
}

// -- Small files that stand for much --------------------------------------------------------------

SharedBytes finished(flatbuffers::FlatBufferBuilder& b, flatbuffers::Offset<schema::Model> root) {
    schema::FinishModelBuffer(b, root);
    return SharedBytes::copy_of(std::as_bytes(std::span(b.GetBufferPointer(), b.GetSize())));
}

void expect_quick_refusal(const SharedBytes& file, const std::string& what) {
    const auto start = std::chrono::steady_clock::now();
    const auto model = read_tflite(file);
    ASSERT_FALSE(model);
    EXPECT_THAT(model.error().message(), HasSubstr(what));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// 100 000 tensors that are one tensor, whose shape has 100 000 sizes: 40 GB when copied out.
TEST(Expansion, SharedTensorsAreRefused) {
    flatbuffers::FlatBufferBuilder b;
    const auto buffers = b.CreateVector(std::vector{schema::CreateBuffer(b)});
    const auto shape = b.CreateVector(std::vector<std::int32_t>(100'000, 1));
    const auto tensor = schema::CreateTensor(b, shape);
    const auto tensors = b.CreateVector(std::vector(100'000, tensor));
    const auto graph = schema::CreateSubGraph(b, tensors);
    const auto graphs = b.CreateVector(std::vector{graph});
    expect_quick_refusal(finished(b, schema::CreateModel(b, 3, 0, graphs, 0, buffers)),
                         "stand for");
}

// Subgraphs that are one subgraph, with tensors that are one tensor: a billion visits.
TEST(Expansion, SharedSubgraphsAreRefused) {
    flatbuffers::FlatBufferBuilder b;
    const auto buffers = b.CreateVector(std::vector{schema::CreateBuffer(b)});
    const auto tensors = b.CreateVector(std::vector(30'000, schema::CreateTensor(b)));
    const auto graph = schema::CreateSubGraph(b, tensors);
    const auto graphs = b.CreateVector(std::vector(30'000, graph));
    expect_quick_refusal(finished(b, schema::CreateModel(b, 3, 0, graphs, 0, buffers)),
                         "not a sound FlatBuffer");
}

// One operator code with a name of a megabyte, used 20 000 times.
TEST(Expansion, SharedNamesAreRefused) {
    flatbuffers::FlatBufferBuilder b;
    const auto buffers = b.CreateVector(std::vector{schema::CreateBuffer(b)});
    const auto name = b.CreateString(std::string(1'000'000, 'n'));
    const auto codes = b.CreateVector(std::vector{schema::CreateOperatorCode(b, 32, name, 1, 32)});
    std::vector<flatbuffers::Offset<schema::Operator>> operators;
    for (int i = 0; i < 20'000; ++i) operators.push_back(schema::CreateOperator(b));
    const auto graph = schema::CreateSubGraph(b, 0, 0, 0, b.CreateVector(operators));
    const auto graphs = b.CreateVector(std::vector{graph});
    expect_quick_refusal(finished(b, schema::CreateModel(b, 3, codes, graphs, 0, buffers)),
                         "referred to too often");
}

// Buffers that are all the whole file.
TEST(Expansion, SharedOutsideDataAreRefused) {
    flatbuffers::FlatBufferBuilder b;
    std::vector<flatbuffers::Offset<schema::Buffer>> list;
    for (int i = 0; i < 20'000; ++i) list.push_back(schema::CreateBuffer(b, 0, 9, 200'000));
    const auto buffers = b.CreateVector(list);
    expect_quick_refusal(finished(b, schema::CreateModel(b, 3, 0, 0, 0, buffers)),
                         "referred to too often");
}

// Half a million inputs against half a million outputs: not one by one.
TEST(Expansion, ManyInputsAndOutputsTakeLittleTime) {
    flatbuffers::FlatBufferBuilder b;
    const auto buffers = b.CreateVector(std::vector{schema::CreateBuffer(b)});
    const auto codes = b.CreateVector(std::vector{schema::CreateOperatorCode(b)});
    const auto tensors =
        b.CreateVector(std::vector{schema::CreateTensor(b), schema::CreateTensor(b)});
    const auto inputs = b.CreateVector(std::vector<std::int32_t>(500'000, 0));
    const auto outputs = b.CreateVector(std::vector<std::int32_t>(500'000, 1));
    const auto op = schema::CreateOperator(b, 0, inputs, outputs);
    const auto graph = schema::CreateSubGraph(b, tensors, 0, 0, b.CreateVector(std::vector{op}));
    const auto graphs = b.CreateVector(std::vector{graph});
    const auto file = finished(b, schema::CreateModel(b, 3, codes, graphs, 0, buffers));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(read_tflite(file));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace reef::model
