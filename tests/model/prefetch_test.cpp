// What of a large model comes from the disk when only its tables are read.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

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

/// Waits, for a busy disk, until so many have come in.
bool come_in(Bytes mapped, std::size_t pages) {
    for (int i = 0; i < 600 && resident_pages(mapped) < pages; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return resident_pages(mapped) >= pages;
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
    std::size_t needed = 0;
    {
        const auto file = read_file(path, FileAccess::scattered).value();
        ASSERT_TRUE(read_tflite(file));
        needed = resident_pages(file.view());
    }
    EXPECT_LT(needed, pages_of(model.size()) / 16);
    ASSERT_TRUE(drop_pages(path));
    const auto file = read_file(path, FileAccess::scattered).value();
    prefetch_tables(file.view());
    EXPECT_TRUE(come_in(file.view(), needed));
    ASSERT_TRUE(read_tflite(file));
    EXPECT_LT(resident_pages(file.view()), pages_of(model.size()) / 16);
}

TEST_F(Prefetch, IsAdviceOnly) {
    const auto file = read_file(path, FileAccess::scattered).value();
    EXPECT_EQ(read_tflite(file).value(), read_tflite(SharedBytes::copy_of(model)).value());
}

}  // namespace
}  // namespace reef::model
