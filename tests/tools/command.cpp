#include "command.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "reef/base/file.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"

namespace reef::tool {
namespace {

using model::Builder;
using model::Op;

std::vector<std::byte> finished(Builder& builder) {
    auto model = builder.finish();
    if (!model) throw std::runtime_error(model.error().message());
    auto file = model::write_tflite(*model);
    if (!file) throw std::runtime_error(file.error().message());
    return *file;
}

std::vector<std::byte> picture_model_file() {
    Builder builder("a picture's pixels as scores");
    const auto quantization = model::per_tensor(1.0F / 255, 0);
    const auto image = builder.input("image", ElementType::uint8, {1, 2, 2, 3}, quantization);
    const std::array<std::int32_t, 2> shape = {1, 12};
    const auto shape_tensor =
        builder.constant("shape", ElementType::int32, {2}, std::span<const std::int32_t>(shape));
    const auto scores = builder.tensor("scores", ElementType::uint8, {1, 12}, quantization);
    builder.add(Op::reshape, {image, shape_tensor}, {scores}, model::ReshapeOptions{{1, 12}});
    builder.output(scores);
    return finished(builder);
}

std::vector<std::byte> two_input_model_file() {
    Builder builder("relu(left + right)");
    const auto left = builder.input("left", ElementType::float32, {1, 4});
    const auto right = builder.input("right", ElementType::float32, {1, 4});
    const auto sum = builder.tensor("sum", ElementType::float32, {1, 4});
    const auto result = builder.tensor("result", ElementType::float32, {1, 4});
    builder.add(Op::add, {left, right}, {sum}, model::AddOptions{});
    builder.add(Op::relu, {sum}, {result});
    builder.output(result);
    return finished(builder);
}

}  // namespace

test::ProcessResult reef_command(std::vector<std::string> arguments,
                                 const test::ProcessOptions& options) {
    arguments.insert(arguments.begin(), REEF_COMMAND);
    return test::run_process(arguments, options);
}

CommandTest::CommandTest()
    : picture_model(write("picture.tflite", picture_model_file())),
      two_input_model(write("two.tflite", two_input_model_file())) {}

std::string CommandTest::write(const std::string& name, Bytes contents) const {
    const std::string path = file(name);
    if (auto written = write_file(path, contents); !written) {
        throw std::runtime_error(written.error().message());
    }
    return path;
}

std::string CommandTest::write(const std::string& name, std::string_view contents) const {
    return write(name, as_bytes(contents));
}

std::string CommandTest::write_array(const std::string& name, const Array& array) const {
    return write(name, write_npy(array).value());
}

bool CommandTest::exists(const std::string& name) const {
    return std::filesystem::exists(file(name));
}

std::vector<std::string> CommandTest::listing() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
        names.push_back(entry.path().string());
    }
    std::ranges::sort(names);
    return names;
}

void CommandTest::expect_error(std::vector<std::string> arguments, int exit_code,
                               const std::string& words,
                               const test::ProcessOptions& options) const {
    const std::vector<std::string> before = listing();
    const test::ProcessResult result = reef_command(arguments, options);
    const std::string line = testing::PrintToString(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << line << result.err;
    EXPECT_EQ(result.out, "") << line;
    EXPECT_THAT(result.err, testing::HasSubstr(words)) << line;
    EXPECT_TRUE(result.err.starts_with("reef")) << result.err;
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    EXPECT_TRUE(result.err.ends_with('\n')) << result.err;
    EXPECT_EQ(listing(), before) << line;
}

std::string CommandTest::expect_ok(std::vector<std::string> arguments,
                                   const test::ProcessOptions& options) const {
    const test::ProcessResult result = reef_command(arguments, options);
    EXPECT_EQ(result.exit_code, 0) << testing::PrintToString(arguments) << result.err;
    EXPECT_EQ(result.err, "") << testing::PrintToString(arguments);
    return result.out;
}

Array float_array(std::vector<std::int64_t> shape, const std::vector<float>& values) {
    Array array{ElementType::float32, std::move(shape), {}};
    array.data.resize(values.size() * sizeof(float));
    if (!values.empty()) std::memcpy(array.data.data(), values.data(), array.data.size());
    return array;
}

Array byte_array(std::vector<std::int64_t> shape, const std::vector<std::uint8_t>& values) {
    Array array{ElementType::uint8, std::move(shape), {}};
    array.data.resize(values.size());
    if (!values.empty()) std::memcpy(array.data.data(), values.data(), array.data.size());
    return array;
}

}  // namespace reef::tool
