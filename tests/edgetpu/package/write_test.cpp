// read -> write -> read gives an equal package, and equal packages give equal bytes.
#include <flatbuffers/flexbuffers.h>
#include <gmock/gmock.h>

#include "edgetpu/package/package_data.h"
#include "edgetpu/package/small_packages.h"
#include "reef/model/flexbuffer.h"
#include "reef_schema/darwinn_generated.h"

namespace reef::edgetpu {
namespace {

using testing::HasSubstr;

void expect_round_trip(const Package& package) {
    const auto bytes = write_package(package);
    ASSERT_TRUE(bytes) << bytes.error().message();
    const auto again = read_package(SharedBytes::copy_of(*bytes));
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_TRUE(*again == package);
    EXPECT_EQ(write_package(*again).value(), *bytes);
}

TEST(WritePackage, RichPackage) {
    expect_round_trip(test::rich_package());
}
TEST(WritePackage, TwoChips) {
    expect_round_trip(test::two_chip_package());
}
TEST(WritePackage, EmptyPackage) {
    expect_round_trip(Package());
}

TEST(WritePackage, UnalignedBytesReadToo) {
    const auto bytes = write_package(test::rich_package()).value();
    for (std::size_t shift = 1; shift < 8; ++shift) {
        std::vector<std::byte> moved(shift);
        moved.insert(moved.end(), bytes.begin(), bytes.end());
        const SharedBytes shared = SharedBytes::copy_of(moved);
        const auto package = read_package(shared.part(shift, bytes.size()));
        ASSERT_TRUE(package) << package.error().message();
        EXPECT_TRUE(*package == test::rich_package());
    }
}

TEST(WritePackage, EveryCompiledFile) {
    REEF_SHARED_OR_SKIP(shared);
    const auto files = test::compiled_files();
    ASSERT_EQ(files.size(), 20U) << shared;
    for (const auto& path : files) {
        SCOPED_TRACE(path.filename().string());
        for (const CompiledOperator& found : test::packages_in(path)) {
            expect_round_trip(found.package);
        }
    }
}

// Parameters and executables start at pages of 4096 bytes, as in the vendor's files.
TEST(WritePackage, KeepsTheVendorsAlignment) {
    const auto bytes = write_package(test::rich_package()).value();
    EXPECT_EQ(bytes.size() % 4096, 0U);
    const SharedBytes shared = SharedBytes::copy_of(bytes);
    const auto package = read_package(shared).value();
    for (const Executable& executable : package.executables) {
        EXPECT_EQ((executable.parameters.view().data() - shared.view().data()) % 4096, 0);
    }
}

TEST(WritePackage, RefusesWhatBreaksTheRules) {
    Package package = test::rich_package();
    package.executables[0].bitstreams[0].field_offsets[1].offset_bit = 481;
    auto bytes = write_package(package);
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().message(),
              "package: executable 0: bitstream 0: field offset 1: 32 bits at bit 481 of 512 bits "
              "of instructions");

    package = test::rich_package();
    package.executables[0].outputs[0].y_dim = 3;
    bytes = write_package(package);
    ASSERT_FALSE(bytes);
    EXPECT_THAT(bytes.error().message(), HasSubstr("output layer 0: an output layout without"));

    package = test::rich_package();
    package.executables[1].parameters = {};
    bytes = write_package(package);
    ASSERT_FALSE(bytes);
    EXPECT_THAT(bytes.error().message(), HasSubstr("executable 1: DMA hint 1: a transfer of 100"));
}

// A file of a newer compiler: field 8 of Package, which this schema does not have.
TEST(WritePackage, NewerFieldsAreNamedAndNotDropped) {
    flatbuffers::FlatBufferBuilder builder;
    const auto start = builder.StartTable();
    builder.AddElement<std::int32_t>(flatbuffers::FieldIndexToOffset(0), 14, 0);
    builder.AddElement<std::int32_t>(flatbuffers::FieldIndexToOffset(8), 7, 0);
    const auto root = builder.EndTable(start);
    builder.Finish(flatbuffers::Offset<schema::Package>(root), schema::PackageIdentifier());
    const auto package = read_package(SharedBytes::copy_of(
        std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()))));
    ASSERT_TRUE(package) << package.error().message();
    EXPECT_EQ(package->min_runtime_version, 14);
    EXPECT_THAT(package->not_preserved, testing::ElementsAre("field 8 of the package"));
    const auto bytes = write_package(*package);
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().cause, Cause::unsupported);
    EXPECT_THAT(bytes.error().message(), HasSubstr("field 8 of the package"));
}

// -- In a model -----------------------------------------------------------------------------------

TEST(ReplacePackage, OtherOptionsStay) {
    model::Operator op = test::compiled_operator(test::rich_package());
    Package changed = test::rich_package();
    changed.executables[0].name = "another";
    changed.executables[0].parameters =
        SharedBytes::copy_of(std::vector<std::byte>(70000, std::byte{7}));
    const auto status = replace_package(op, changed);
    ASSERT_TRUE(status) << status.error().message();
    EXPECT_TRUE(package_of(op).value() == changed);
    const Bytes options = op.custom_options.view();
    const auto map = model::read_flexbuffer(options).value();
    EXPECT_EQ(map.entries().size(), 5U);
    EXPECT_EQ(map.integer("1").value(), 0);
    EXPECT_EQ(map.integer("5").value(), -1);
    const auto root =
        flexbuffers::GetRoot(reinterpret_cast<const std::uint8_t*>(options.data()), options.size());
    ASSERT_EQ(root.AsMap()["6"].AsVector().size(), 1U);
    EXPECT_EQ(root.AsMap()["6"].AsVector()[0].AsInt64(), 18);
    EXPECT_EQ(root.AsMap()["7"].AsVector().size(), 0U);
}

TEST(ReplacePackage, RefusesOptionsThatItCannotCopy) {
    flexbuffers::Builder builder;
    builder.Map([&] {
        builder.String("4", "package");
        builder.Map("8", [&] { builder.Int("x", 1); });
    });
    builder.Finish();
    model::Operator op;
    op.code.custom = std::string(custom_operator_name);
    op.custom_options = SharedBytes::copy_of(std::as_bytes(std::span(builder.GetBuffer())));
    const SharedBytes before = op.custom_options;
    const auto status = replace_package(op, test::rich_package());
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().cause, Cause::unsupported);
    EXPECT_THAT(status.error().message(), HasSubstr("the option '8' holds a map"));
    EXPECT_TRUE(op.custom_options == before);
}

TEST(ReplacePackage, InEveryCompiledFile) {
    REEF_SHARED_OR_SKIP(shared);
    const auto files = test::compiled_files();
    ASSERT_EQ(files.size(), 20U) << shared;
    for (const auto& path : files) {
        SCOPED_TRACE(path.filename().string());
        model::Model model = model::load_tflite(path.string()).value();
        auto compiled = packages_of(model).value();
        for (CompiledOperator& found : compiled) {
            found.package.model_identifier = "changed";
            auto& op = model.subgraphs[found.subgraph].operators[found.index];
            const auto status = replace_package(op, found.package);
            ASSERT_TRUE(status) << status.error().message();
        }
        const auto file = model::write_tflite(model);
        ASSERT_TRUE(file) << file.error().message();
        const auto again = model::read_tflite(SharedBytes::copy_of(*file));
        ASSERT_TRUE(again) << again.error().message();
        compiled = packages_of(*again).value();
        ASSERT_FALSE(compiled.empty());
        for (const CompiledOperator& found : compiled) {
            EXPECT_EQ(found.package.model_identifier, "changed");
        }
        EXPECT_TRUE(*again == model);
    }
}

}  // namespace
}  // namespace reef::edgetpu
