// Truncated, mutated and hostile packages: a clear error or a package that keeps every rule.
#include <flatbuffers/flatbuffers.h>
#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <limits>
#include <random>

#include "edgetpu/package/package_data.h"
#include "edgetpu/package/small_packages.h"
#include "reef/edgetpu/isa.h"
#include "reef/edgetpu/parameter_memory.h"
#include "reef_schema/darwinn_generated.h"

namespace reef::edgetpu {
namespace {

void expect_error_or_package(Bytes bytes) {
    const auto package = read_package(SharedBytes::copy_of(bytes));
    if (!package) {
        EXPECT_FALSE(package.error().what.empty());
        EXPECT_FALSE(package.error().hint.empty());
        return;
    }
    ASSERT_TRUE(validate(*package));
    EXPECT_GE(parameter_memory_of(*package).occupied_bytes.value_or(0), 0);
    const auto written = write_package(*package);
    if (!written) {
        ASSERT_FALSE(package->not_preserved.empty()) << written.error().message();
        return;
    }
    const auto again = read_package(SharedBytes::copy_of(*written));
    ASSERT_TRUE(again) << again.error().message();
    // A package with a NaN is not equal to itself.
    EXPECT_TRUE(*again == *package || *package != *package);
}

TEST(HostilePackage, TruncatedAtEveryLength) {
    const auto whole = write_package(test::rich_package()).value();
    for (std::size_t length = 0; length < whole.size(); ++length) {
        expect_error_or_package(Bytes(whole).first(length));
        if (testing::Test::HasFailure()) FAIL() << "at " << length;
    }
}

void mutate(const std::vector<std::byte>& seed, int count, std::uint32_t random_seed) {
    std::mt19937 random(random_seed);
    std::vector<std::size_t> places;  // most bytes are alignment
    for (std::size_t i = 0; i < seed.size(); ++i) {
        if (seed[i] != std::byte{0}) places.push_back(i);
    }
    for (int i = 0; i < count; ++i) {
        std::vector<std::byte> bytes = seed;
        const unsigned changes = 1 + random() % 4;
        for (unsigned k = 0; k < changes; ++k) {
            const std::size_t at =
                std::min(bytes.size() - 1, places[random() % places.size()] + random() % 3);
            const auto old = std::to_integer<std::uint8_t>(bytes[at]);
            const std::array<std::uint8_t, 5> values{static_cast<std::uint8_t>(random()),
                                                     static_cast<std::uint8_t>(old + 1),
                                                     static_cast<std::uint8_t>(old - 4), 0, 0xff};
            bytes[at] = std::byte{values[random() % values.size()]};
        }
        expect_error_or_package(bytes);
        if (testing::Test::HasFailure()) FAIL() << "mutation " << i << " of seed " << random_seed;
    }
}

TEST(HostilePackage, MutatedRichPackage) {
    mutate(write_package(test::rich_package()).value(), 20000, 1);
}
TEST(HostilePackage, MutatedTwoChips) {
    mutate(write_package(test::two_chip_package()).value(), 10000, 2);
}

TEST(HostilePackage, MutatedFiles) {
    REEF_SHARED_OR_SKIP(shared);
    for (const char* name : {"gabor_64x64_p4", "looming_64x64_3x3"}) {
        const auto path =
            shared / "data/edgetpu/templates" / (std::string(name) + "_edgetpu.tflite");
        for (const CompiledOperator& found : test::packages_in(path)) {
            mutate(write_package(found.package).value(), 3000, 3);
        }
    }
}

// A hundred thousand executables that are one executable.
TEST(HostilePackage, SharedExecutablesAreRefused) {
    const auto inner = write_package(test::rich_package()).value();
    flatbuffers::FlatBufferBuilder multi;
    const auto one = multi.CreateString(std::string(as_text(inner)));
    multi.Finish(
        schema::CreateMultiExecutable(multi, multi.CreateVector(std::vector(100'000, one))));
    flatbuffers::FlatBufferBuilder builder;
    const auto bytes = builder.CreateVector(multi.GetBufferPointer(), multi.GetSize());
    builder.Finish(schema::CreatePackage(builder, 0, bytes), schema::PackageIdentifier());
    const auto start = std::chrono::steady_clock::now();
    const auto package = read_package(SharedBytes::copy_of(
        std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()))));
    ASSERT_FALSE(package);
    EXPECT_THAT(package.error().message(), testing::HasSubstr("again and again"));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// Every transfer looks for its layer among many.
TEST(HostilePackage, ManyLayersAndTransfersTakeLittleTime) {
    Package package;
    Executable executable;
    executable.inputs.resize(50'000);
    executable.inputs.back().name = "last";
    const DmaHint hint{DmaDescriptorHint{{BaseAddress::input_activation, 0, "last", {}}, 0, 0},
                       Direction::infeed};
    executable.dma_hints = DmaHints{std::vector(50'000, hint), true};
    package.executables.push_back(std::move(executable));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(validate(package));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// A caching program that writes all rows of all tiles a hundred thousand times.
TEST(HostilePackage, RepeatedRowsAreNotCountedForLong) {
    InstructionBuilder receive(*find_instruction("ring_receive_a"));
    ASSERT_TRUE(receive.set("tiles", 0xffff));
    ASSERT_TRUE(receive.set("dst.stride0", 1));
    ASSERT_TRUE(receive.set("dst.limit0", parameter_rows_per_tile - 1));
    const auto memory_of = [&](int count) {
        std::vector<std::byte> stream;
        for (int i = 0; i < count; ++i) {
            stream.insert(stream.end(), receive.bytes().begin(), receive.bytes().end());
        }
        Executable executable;
        executable.type = ExecutableType::parameter_caching;
        executable.bitstreams.push_back({SharedBytes::copy_of(stream), {}});
        Package package;
        package.executables.push_back(std::move(executable));
        return parameter_memory_of(package);
    };
    EXPECT_EQ(memory_of(1).occupied_bytes, parameter_memory_bytes);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(memory_of(100'000).occupied_bytes, std::nullopt);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// A simulated host would take that memory.
TEST(HostilePackage, ScratchMemoryHasALimit) {
    for (const std::int32_t bytes :
         {-1, (64 << 20) + 1, std::numeric_limits<std::int32_t>::max()}) {
        Package package = test::rich_package();
        package.executables.at(0).scratch_size_bytes = bytes;
        const auto sound = validate(package);
        ASSERT_FALSE(sound) << bytes;
        EXPECT_THAT(sound.error().message(), testing::HasSubstr("scratch memory"));
    }
}

TEST(HostilePackage, PackagesNestOnlySoDeep) {
    Package package = test::rich_package();
    for (int depth = 0; depth < 3; ++depth) {
        Package outer;
        outer.multi_chip.push_back(std::move(package));
        package = std::move(outer);
    }
    const auto bytes = write_package(package);
    ASSERT_FALSE(bytes);
    EXPECT_THAT(bytes.error().message(), testing::HasSubstr("packages within packages"));
}

}  // namespace
}  // namespace reef::edgetpu
