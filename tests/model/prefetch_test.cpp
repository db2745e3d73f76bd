// What of a large model comes from the disk when only its tables are read.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "reef/base/file.h"
#include "reef/model/builder.h"
#include "reef/model/tflite.h"
#include "support/temporary_folder.h"

namespace reef::model {
namespace {

constexpr std::int32_t layers = 8, channels = 512;

/// Fully connected layers of 256 KiB each.
std::vector<std::byte> large_model() {
    Builder builder("large");
    const auto scale = per_tensor(0.5F, 0);
    auto last = builder.input("in", ElementType::int8, {1, channels}, scale);
    const std::vector<std::int8_t> weights(std::size_t{channels} * channels, 1);
    for (int i = 0; i < layers; ++i) {
        const std::string name = "layer" + std::to_string(i);
        // Equal constants would be one buffer.
        auto own = weights;
        own[0] = static_cast<std::int8_t>(i + 2);
        const auto constant = builder.constant<std::int8_t>(name + "/weights", ElementType::int8,
                                                            {channels, channels}, own, scale);
        const auto out = builder.tensor(name, ElementType::int8, {1, channels}, scale);
        builder.add(Op::fully_connected, {last, constant}, {out}, FullyConnectedOptions{});
        last = out;
    }
    builder.output(last);
    return write_tflite(builder.finish().value()).value();
}

std::size_t pages_of(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page;
}

/// In memory, of a file that is mapped.
std::size_t resident_pages(Bytes mapped) {
    std::vector<unsigned char> in_memory(pages_of(mapped.size()));
    EXPECT_EQ(mincore(const_cast<std::byte*>(mapped.data()), mapped.size(), in_memory.data()), 0);
    return static_cast<std::size_t>(
        std::ranges::count_if(in_memory, [](unsigned char page) { return (page & 1) != 0; }));
}

/// False where the file system keeps them (tmpfs).
bool drop_pages(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    fdatasync(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    close(file);
    return resident_pages(read_file(path, FileAccess::scattered).value().view()) == 0;
}

/// What comes in after it was asked for: nothing more for a while.
std::size_t settled_pages(Bytes mapped) {
    std::size_t before = 0, now = resident_pages(mapped);
    while (now != before) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        before = std::exchange(now, resident_pages(mapped));
    }
    return now;
}

struct Prefetch : testing::Test {
    void SetUp() override {
        ASSERT_TRUE(write_file(path, model));
        if (!drop_pages(path)) GTEST_SKIP() << "the temporary folder's files stay in memory";
    }

    test::TemporaryFolder folder;
    std::string path = folder.file("large.tflite");
    std::vector<std::byte> model = large_model();
};

TEST_F(Prefetch, ReadsTheTablesAndLeavesTheWeights) {
    const auto file = read_file(path, FileAccess::scattered).value();
    prefetch_tables(file.view());
    const std::size_t asked = settled_pages(file.view());
    EXPECT_GT(asked, 0U);
    EXPECT_LT(asked, pages_of(model.size()) / 16);
    // Which is all that reading needs.
    ASSERT_TRUE(read_tflite(file));
    EXPECT_LE(resident_pages(file.view()), asked + 2);
}

TEST_F(Prefetch, IsAdviceOnly) {
    const auto file = read_file(path, FileAccess::scattered).value();
    EXPECT_EQ(read_tflite(file).value(), read_tflite(SharedBytes::copy_of(model)).value());
}

}  // namespace
}  // namespace reef::model
