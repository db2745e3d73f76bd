#include "reef/model/flexbuffer.h"

#include <flatbuffers/flexbuffers.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::model {
namespace {

using testing::HasSubstr;
using Flex = flexbuffers::Builder;

std::vector<std::uint8_t> flex_map(const std::function<void(Flex&)>& fill) {
    Flex builder;
    builder.Map([&] { fill(builder); });
    builder.Finish();
    return builder.GetBuffer();
}

Bytes bytes_of(const std::vector<std::uint8_t>& buffer) {
    return std::as_bytes(std::span(buffer));
}

template <typename T>
T get(const FlexMap& map, std::string_view key) {
    return std::get<T>(*map.find(key));
}

TEST(Flexbuffer, EveryKindOfValue) {
    const std::vector<std::uint8_t> blob{9, 8, 7};
    const auto buffer = flex_map([&](Flex& b) {
        b.Null("null");
        b.Bool("yes", true);
        b.Int("int", -300);
        b.UInt("uint", 70000);
        b.UInt("huge", ~std::uint64_t{0});
        b.Float("float", 0.25F);
        b.Double("double", 1e300);
        b.IndirectInt("far_int", -5);
        b.IndirectUInt("far_uint", 6);
        b.IndirectDouble("far_double", 0.1);
        b.String("text", "abc");
        b.Blob("blob", blob);
        b.Vector("vector", [&] { b.Int(1); });
        b.TypedVector("typed", [&] { b.Int(1); });
        b.Map("map", [&] { b.Int("k", 1); });
    });
    const FlexMap map = read_flexbuffer(bytes_of(buffer)).value();
    EXPECT_EQ(map.entries().size(), 15U);
    EXPECT_TRUE(std::holds_alternative<std::monostate>(*map.find("null")));
    EXPECT_TRUE(get<bool>(map, "yes"));
    EXPECT_EQ(get<std::int64_t>(map, "int"), -300);
    EXPECT_EQ(get<std::int64_t>(map, "uint"), 70000);
    EXPECT_EQ(get<FlexOther>(map, "huge").kind, "unsigned above 2^63");
    EXPECT_EQ(get<double>(map, "float"), 0.25);
    EXPECT_EQ(get<double>(map, "double"), 1e300);
    EXPECT_EQ(get<std::int64_t>(map, "far_int"), -5);
    EXPECT_EQ(get<std::int64_t>(map, "far_uint"), 6);
    EXPECT_EQ(get<double>(map, "far_double"), 0.1);
    EXPECT_EQ(get<std::string_view>(map, "text"), "abc");
    EXPECT_EQ(as_text(map.bytes("blob").value()), "\x09\x08\x07");
    EXPECT_EQ(as_text(map.bytes("text").value()), "abc");
    EXPECT_EQ(get<FlexOther>(map, "vector").kind, "vector");
    EXPECT_EQ(get<FlexOther>(map, "typed").kind, "typed vector");
    EXPECT_EQ(get<FlexOther>(map, "map").kind, "map");
}

TEST(Flexbuffer, NumbersComeInTheKindAskedFor) {
    const auto buffer = flex_map([](Flex& b) {
        b.Int("three", 3);
        b.Bool("yes", true);
        b.Double("half", 0.5);
        b.String("text", "5");
    });
    const FlexMap map = read_flexbuffer(bytes_of(buffer)).value();
    EXPECT_EQ(map.real("three").value(), 3.0);
    EXPECT_EQ(map.boolean("three").value(), true);
    EXPECT_EQ(map.integer("yes").value(), 1);
    EXPECT_EQ(map.real("half").value(), 0.5);
    EXPECT_EQ(map.integer("half").error().message(), "the option 'half' is no integer");
    EXPECT_EQ(map.real("text").error().cause, Cause::bad_input);
    EXPECT_EQ(map.bytes("three").error().message(), "the option 'three' is no string or blob");
    EXPECT_EQ(map.integer("four").error().cause, Cause::not_found);
    EXPECT_EQ(map.find("four"), nullptr);
}

// The library's own reader as the oracle: maps of random keys and integers, of every width.
TEST(Flexbuffer, AgreesWithTheLibrary) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 500; ++round) {
        const auto buffer = flex_map([&](Flex& b) {
            const std::size_t count = random() % 20;
            for (std::size_t i = 0; i < count; ++i) {
                const std::string key = fmt::format("k{}{:x<{}}", i, "", random() % 40);
                const auto value = static_cast<std::int64_t>(random()) >> (random() % 64);
                if (random() % 2 == 0)
                    b.Int(key.c_str(), value);
                else
                    b.String(key.c_str(), std::string(random() % 300, 's'));
            }
        });
        const auto oracle = flexbuffers::GetRoot(buffer).AsMap();
        const FlexMap map = read_flexbuffer(bytes_of(buffer)).value();
        ASSERT_EQ(map.entries().size(), oracle.size());
        for (std::size_t i = 0; i < oracle.size(); ++i) {
            EXPECT_EQ(map.entries()[i].first, oracle.Keys()[i].AsKey());
            const FlexValue& value = map.entries()[i].second;
            if (oracle.Values()[i].IsString()) {
                EXPECT_EQ(std::get<std::string_view>(value), oracle.Values()[i].AsString().c_str());
            } else {
                EXPECT_EQ(std::get<std::int64_t>(value), oracle.Values()[i].AsInt64());
            }
        }
    }
}

TEST(Flexbuffer, TruncatedAndMutatedNeverReadOutside) {
    const auto whole = flex_map([](Flex& b) {
        b.Int("max_detections", 20);
        b.Double("score_threshold", 0.25);
        b.String("4", std::string(300, 'p'));
        b.IndirectDouble("far", 0.1);
    });
    for (std::size_t length = 0; length < whole.size(); ++length) {
        // Heap copies of the exact size let AddressSanitizer see every byte read past the end.
        const std::vector<std::uint8_t> front(whole.begin(),
                                              whole.begin() + static_cast<std::ptrdiff_t>(length));
        (void)read_flexbuffer(bytes_of(front));
        const std::vector<std::uint8_t> back(whole.end() - static_cast<std::ptrdiff_t>(length),
                                             whole.end());
        (void)read_flexbuffer(bytes_of(back));
    }
    std::mt19937 random(2);
    for (int i = 0; i < 20000; ++i) {
        std::vector<std::uint8_t> bytes = whole;
        for (unsigned k = 0; k < 1 + random() % 3; ++k) {
            bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
        }
        const auto map = read_flexbuffer(bytes_of(bytes));
        if (!map) {
            EXPECT_THAT(map.error().message(), HasSubstr("no sound FlexBuffer"));
        }
    }
}

TEST(Flexbuffer, OtherRootsAreRefused) {
    Flex builder;
    builder.Int(5);
    builder.Finish();
    EXPECT_THAT(read_flexbuffer(bytes_of(builder.GetBuffer())).error().message(),
                HasSubstr("the root has type 1, not map"));
    EXPECT_THAT(read_flexbuffer({}).error().message(), HasSubstr("too short"));
}

TEST(Flexbuffer, OptionsOfRealModels) {
    REEF_SHARED_OR_SKIP(shared);
    ASSERT_TRUE(std::filesystem::is_directory(shared / "data/models"));
    std::size_t programs = 0;
    std::size_t decoders = 0;
    for (const auto& path : test::shared_files("data/models", ".tflite")) {
        const Model model = load_tflite(path.string()).value();
        for (const Operator& op : model.subgraphs[0].operators) {
            if (op.code.builtin != Op::custom) continue;
            const FlexMap map = read_flexbuffer(op.custom_options.view()).value();
            // A program's package is a text under "4"; decoders have numbers alone.
            if (const auto package = map.bytes("4")) {
                ++programs;
                EXPECT_EQ(as_text(package->subspan(4, 4)), "DWN1");
            } else {
                ++decoders;
                EXPECT_EQ(map.integer("max_detections").value(), 20);
            }
        }
    }
    EXPECT_EQ(programs, 10U);
    EXPECT_EQ(decoders, 3U);
}

}  // namespace
}  // namespace reef::model
