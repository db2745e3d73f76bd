// Runs the real reef command, and builds the small models that its tests feed it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reef/base/npy.h"
#include "reef/model/graph.h"
#include "support/process.h"
#include "support/temporary_folder.h"

namespace reef::tool {

[[nodiscard]] test::ProcessResult reef_command(std::vector<std::string> arguments,
                                               const test::ProcessOptions& options = {});

/// A test with a folder of its own, small models and input files in it.
class CommandTest : public ::testing::Test {
    test::TemporaryFolder folder_;  // before the models, which are written into it

  protected:
    CommandTest();

    [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }
    std::string write(const std::string& name, Bytes contents) const;
    std::string write(const std::string& name, std::string_view contents) const;
    std::string write_array(const std::string& name, const Array& array) const;
    [[nodiscard]] bool exists(const std::string& name) const;

    /// The command fails with that exit code, prints nothing on standard output and one line with
    /// `words` on standard error, and adds no file to the folder.
    void expect_error(std::vector<std::string> arguments, int exit_code, const std::string& words,
                      const test::ProcessOptions& options = {}) const;
    /// The command succeeds without a word on standard error; gives its standard output.
    std::string expect_ok(std::vector<std::string> arguments,
                          const test::ProcessOptions& options = {}) const;

    /// "image" 1x2x2x3 uint8 (scale 1/255) -> RESHAPE -> "scores" 1x12 uint8.
    std::string picture_model;
    /// "left" and "right" 1x4 float32 -> ADD -> "sum" -> RELU -> "result".
    std::string two_input_model;

  private:
    [[nodiscard]] std::vector<std::string> listing() const;
};

/// float32 elements.
[[nodiscard]] Array float_array(std::vector<std::int64_t> shape, const std::vector<float>& values);
[[nodiscard]] Array byte_array(std::vector<std::int64_t> shape,
                               const std::vector<std::uint8_t>& values);

}  // namespace reef::tool
