#include "reef/base/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace reef {
namespace {

using testing::HasSubstr;

constexpr ElementType npy_types[] = {
    ElementType::float16,   ElementType::float32,    ElementType::float64, ElementType::int8,
    ElementType::int16,     ElementType::int32,      ElementType::int64,   ElementType::uint8,
    ElementType::uint16,    ElementType::uint32,     ElementType::uint64,  ElementType::boolean,
    ElementType::complex64, ElementType::complex128,
};

Array random_array(std::mt19937& random, ElementType type, std::vector<std::int64_t> shape) {
    Array array{type, std::move(shape), {}};
    array.data.resize(static_cast<std::size_t>(array.element_count()) * size_of(type).value());
    for (std::byte& byte : array.data) byte = static_cast<std::byte>(random());
    return array;
}

/// A file of the given version around a header text, without padding.
std::vector<std::byte> npy(std::string_view header, std::string_view elements, int version = 1) {
    std::string file = "\x93NUMPY";
    file += static_cast<char>(version);
    file += '\0';
    for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
        file += static_cast<char>(header.size() >> (8 * i));
    }
    file += header;
    file += elements;
    const Bytes bytes = as_bytes(file);
    return {bytes.begin(), bytes.end()};
}

std::string error_of(std::string_view header, std::string_view elements = "") {
    const auto array = read_npy(npy(header, elements));
    return array ? "no error" : array.error().message();
}

template <typename T>
std::vector<T> values_of(const Array& array) {
    std::vector<T> values(array.data.size() / sizeof(T));
    std::memcpy(values.data(), array.data.data(), array.data.size());
    return values;
}

TEST(Npy, WritesExactlyWhatNumpyWrites) {
    Array array{ElementType::int16, {2, 1}, {}};
    array.data = {std::byte{1}, std::byte{0}, std::byte{2}, std::byte{0}};
    const auto file = write_npy(array);
    ASSERT_TRUE(file);
    std::string expected = "\x93NUMPY\x01";
    expected += '\0';
    expected += '\x76';
    expected += '\0';
    expected += "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 1), }";
    expected.resize(127, ' ');
    expected += '\n';
    expected += std::string("\1\0\2\0", 4);
    EXPECT_EQ(as_text(*file), expected);
}

TEST(Npy, RoundTripsEveryTypeInBothOrders) {
    std::mt19937 random(7);
    const std::vector<std::vector<std::int64_t>> shapes{
        {}, {0}, {1}, {5}, {3, 4}, {0, 3}, {2, 3, 4}, {1, 7, 1, 2}, {2, 2, 2, 2, 3}};
    for (const ElementType type : npy_types) {
        for (const auto& shape : shapes) {
            const Array array = random_array(random, type, shape);
            for (const Order order : {Order::c, Order::fortran}) {
                const auto file = write_npy(array, order);
                ASSERT_TRUE(file) << file.error().message();
                EXPECT_EQ((file->size() - array.data.size()) % 64, 0u);
                const auto again = read_npy(*file);
                ASSERT_TRUE(again) << again.error().message();
                EXPECT_EQ(*again, array) << name_of(type);
            }
        }
    }
}

TEST(Npy, ReadsFortranOrderIntoCOrder) {
    // 2 x 3 with element (r, c) = 10 r + c, columns first in the file.
    const auto array = read_npy(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}",
                                    std::string("\x00\x0a\x01\x0b\x02\x0c", 6)));
    ASSERT_TRUE(array) << array.error().message();
    EXPECT_THAT(values_of<std::uint8_t>(*array), testing::ElementsAre(0, 1, 2, 10, 11, 12));
}

TEST(Npy, ConvertsBigEndian) {
    const auto integers = read_npy(npy("{'descr': '>i4', 'fortran_order': False, 'shape': (2,)}",
                                       std::string("\0\0\1\2\xff\xff\xff\xfe", 8)));
    ASSERT_TRUE(integers);
    EXPECT_THAT(values_of<std::int32_t>(*integers), testing::ElementsAre(258, -2));
    // A complex number is two floats, each in its own byte order.
    const auto complex = read_npy(npy("{'descr': '>c8', 'fortran_order': False, 'shape': ()}",
                                      std::string("\x3f\x80\0\0\xc0\0\0\0", 8)));
    ASSERT_TRUE(complex);
    EXPECT_THAT(values_of<float>(*complex), testing::ElementsAre(1.0f, -2.0f));
    EXPECT_TRUE(complex->shape.empty());
}

TEST(Npy, AcceptsTheFormsPythonAccepts) {
    const std::string elements(12, 'x');
    for (const char* header : {
             "{'descr': '|u1', 'fortran_order': False, 'shape': (3L, 4), }    \n",
             "{\"shape\":(3,4,),\"fortran_order\":False,\"descr\":\"|u1\"}",
             "  {  'fortran_order' : False ,\n'shape' : ( 3 , 4L ) , 'descr' : 'u1' }",
         }) {
        for (const int version : {1, 2, 3}) {
            const auto array = read_npy(npy(header, elements, version));
            ASSERT_TRUE(array) << array.error().message();
            EXPECT_EQ(array->shape, (std::vector<std::int64_t>{3, 4}));
            EXPECT_EQ(array->type, ElementType::uint8);
        }
    }
}

TEST(Npy, RefusesMalformedHeadersWithTheOffset) {
    EXPECT_EQ(error_of("{'descr': '|u1', 'fortran_order': False, 'shape': (3)}"),
              ".npy header: a shape that is not a tuple, as (3,) at byte offset 63");
    EXPECT_EQ(error_of("{'descr': '|u1', 'fortran_order': 0, 'shape': (3,)}"),
              ".npy header: expected True or False at byte offset 44");
    EXPECT_EQ(error_of("{'descr': '|u1', 'shape': (3,)}"),
              ".npy header: no 'fortran_order' at byte offset 41");
    const std::pair<const char*, const char*> cases[] = {
        {"", "expected '{'"},
        {"{", "expected a quoted string"},
        {"{'descr", "a string without an end"},
        {"{'descr' '|u1'}", "expected ':'"},
        {"{'descr': '|u1' 'shape': (3,)}", "expected ',' or '}'"},
        {"{'descr': '|\\x751'}", "a string with an escape"},
        {"{'descr': '|u1', 'descr': '|u1'}", "a second 'descr'"},
        {"{'colour': 3}", "a key other than descr"},
        {"{'shape': (-3,)}", "a negative dimension"},
        {"{'shape': (03,)}", "a dimension with leading zeros"},
        {"{'shape': (9223372036854775808,)}", "a dimension beyond 63 bits"},
        {"{'shape': (,)}", "expected a dimension"},
        {"{'shape': (3 4)}", "expected ',' or ')'"},
        {"{'shape': 3}", "expected '('"},
        {"{'fortran_order': False, 'shape': ()}", "no 'descr'"},
        {"{'descr': '|u1', 'fortran_order': False}", "no 'shape'"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': ()} x", "text after the dictionary"},
        {"{'descr': '|i4', 'fortran_order': False, 'shape': ()}", "dtype '|i4' has no byte order"},
    };
    for (const auto& [header, text] : cases) {
        const auto array = read_npy(npy(header, ""));
        ASSERT_FALSE(array) << header;
        EXPECT_EQ(array.error().cause, Cause::bad_input) << header;
        EXPECT_THAT(array.error().message(), HasSubstr(text)) << header;
    }
}

TEST(Npy, RefusesOtherDtypesByName) {
    const std::pair<const char*, const char*> cases[] = {
        {"'|O'", "dtype '|O' (Python objects)"},
        {"'|S7'", "dtype '|S7' (byte strings)"},
        {"'<U3'", "dtype '<U3' (Unicode strings)"},
        {"'|V8'", "dtype '|V8' (void or structured items)"},
        {"'<M8[ns]'", "dtype '<M8[ns]' (datetime64)"},
        {"'<f16'", "dtype '<f16' (a float width without an element type here)"},
        {"''", "dtype '' (an unknown kind)"},
        {"[('x', '<f4'), ('y', '<f4')]", "a structured .npy dtype"},
        {"('<f4', (2,))", "a subarray .npy dtype"},
    };
    for (const auto& [descr, text] : cases) {
        const auto array = read_npy(npy(std::string("{'descr': ") + descr + "}", ""));
        ASSERT_FALSE(array) << descr;
        EXPECT_EQ(array.error().cause, Cause::unsupported) << descr;
        EXPECT_THAT(array.error().message(), HasSubstr(text)) << descr;
    }
}

TEST(Npy, RefusesSizesBeforeAllocating) {
    const auto header = [](const char* shape) {
        return std::string("{'descr': '<f8', 'fortran_order': False, 'shape': ") + shape + "}";
    };
    EXPECT_THAT(error_of(header("(1152921504606846976,)")), HasSubstr("beyond 63 bits"));
    EXPECT_THAT(error_of(header("(4294967296, 4294967296)")), HasSubstr("beyond 63 bits"));
    EXPECT_THAT(error_of(header("(0, 4294967296, 4294967296)")), HasSubstr("beyond 63 bits"));
    EXPECT_THAT(error_of(header("(1152921504606846975,)")),
                HasSubstr("needs 9223372036854775800 bytes of elements, 0 follow"));
    EXPECT_THAT(error_of(header("(1,)"), "123456789"), HasSubstr("needs 8 bytes of elements, 9"));
    std::string many = "(";
    for (int i = 0; i < 65; ++i) many += "1,";
    EXPECT_THAT(error_of(header((many + ")").c_str())), HasSubstr("more than 64 dimensions"));
}

TEST(Npy, RefusesOtherFilesAndVersions) {
    EXPECT_THAT(read_npy(as_bytes("PK\3\4 something else")).error().message(),
                HasSubstr("not a .npy file"));
    EXPECT_THAT(read_npy({}).error().message(), HasSubstr("not a .npy file"));
    const auto version = read_npy(npy("{}", "", 4));
    ASSERT_FALSE(version);
    EXPECT_EQ(version.error().cause, Cause::unsupported);
    EXPECT_EQ(version.error().message(), ".npy version 4.0 (versions 1.0, 2.0 and 3.0 are read)");
}

TEST(Npy, EveryTruncationIsAnError) {
    std::mt19937 random(3);
    const auto file = write_npy(random_array(random, ElementType::float32, {2, 3}));
    ASSERT_TRUE(file);
    for (std::size_t size = 0; size < file->size(); ++size) {
        EXPECT_FALSE(read_npy(Bytes(*file).first(size))) << size;
    }
}

TEST(Npy, RefusesInconsistentArrays) {
    const auto error = [](const Array& array) { return write_npy(array).error(); };
    const Array short_data{ElementType::float32, {2}, std::vector<std::byte>(7)};
    EXPECT_EQ(error(short_data).cause, Cause::bad_argument);
    EXPECT_EQ(error(short_data).message(), "an array whose shape needs 8 bytes has 7");
    EXPECT_EQ(error({ElementType::uint8, {-1}, {}}).cause, Cause::bad_argument);
    EXPECT_EQ(error({ElementType::bfloat16, {}, std::vector<std::byte>(2)}).cause,
              Cause::unsupported);
    EXPECT_THAT(error({ElementType::string, {}, {}}).message(),
                HasSubstr("an array of element type string as .npy"));
}

}  // namespace
}  // namespace reef
