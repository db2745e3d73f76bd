// The container that Sophgo's runtime loads: a header, a FlatBuffer, a section of bytes.
//
//   header 64 bytes, little endian: u32 magic, u32 header size, u32 FlatBuffer size, u64 binary
//   size, u32 reserved[11]; then the FlatBuffer (schema/bmodel.fbs), then the binary section.
//   Ranges in the FlatBuffer count from the start of the section.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef_schema/bmodel_generated.h"

namespace reef::sophgo {

struct BmodelHeader {
    static constexpr std::size_t bytes = 64;
    static constexpr std::uint32_t magic_number = 0xff55aaee;  ///< 0xff55aaff is another container
    std::uint32_t header_size = 0;
    std::uint32_t flatbuffer_size = 0;
    std::uint64_t binary_size = 0;  ///< runtimes before 2025 read its lower 32 bits alone
    bool reserved_are_zero = true;
};

struct Bmodel {
    BmodelHeader header;
    std::unique_ptr<const schema::ModelT> model;
    std::vector<std::string> net_names;  ///< different from each other: "small", "small (2)"
    std::vector<std::string> not_read;   ///< fields beyond the schema, one clause each
    std::vector<std::uint64_t> tables;   ///< the FlatBuffer, verified and in its alignment
    SharedBytes binary;                  ///< the section, as far as the file has it
    SharedBytes file;                    ///< all of it

    /// The FlatBuffer as it lies in the file.
    [[nodiscard]] Bytes table_bytes() const {
        return file.view().subspan(header.header_size, header.flatbuffer_size);
    }
    /// Of the section's first byte in the file.
    [[nodiscard]] std::uint64_t section_offset() const {
        return std::uint64_t{header.header_size} + header.flatbuffer_size;
    }
};

/// A range of the binary section that a table names. Several names may share one range.
struct Blob {
    enum class Kind : std::uint8_t { coefficients, commands, dynamic_code, module, other };
    Kind kind = Kind::other;
    std::string name;  ///< "net0/stage0/coeff.bin"; '/' separates, as files of `extract`
    std::string what;  ///< "net yolov5s stage 0: coefficients"
    std::uint64_t start = 0;
    std::uint64_t size = 0;
};

[[nodiscard]] bool is_bmodel(Bytes file);
/// Errors: bad_input for sizes beyond the file and broken tables; unsupported for tables of older
/// writers that are not known. Ranges are not checked here.
[[nodiscard]] Result<Bmodel> read_bmodel(const SharedBytes& file);

/// All ranges, in the order of the tables, without empty ones. Names are unique.
[[nodiscard]] std::vector<Blob> blobs_of(const Bmodel& bmodel);
/// Those of one stage, whose names begin with the prefix.
[[nodiscard]] std::vector<Blob> stage_blobs_of(const Bmodel& bmodel, std::size_t net,
                                               std::size_t stage);
/// "net0/stage0/".
[[nodiscard]] std::string stage_prefix(std::size_t net, std::size_t stage);
/// The bytes; nothing when the range leaves the section.
[[nodiscard]] std::optional<Bytes> bytes_of(const Bmodel& bmodel, const Blob& blob);

/// "float32", ...; "type 17" for numbers without a name.
[[nodiscard]] std::string data_type_name(std::uint32_t type);
/// Bits of an element; 0 for numbers without a name.
[[nodiscard]] unsigned data_type_bits(std::uint32_t type);
/// "basic", ...; "mode 9".
[[nodiscard]] std::string address_mode_name(std::int32_t mode);
/// "1x3x640x640".
[[nodiscard]] std::string shape_name(const schema::ShapeT& shape);
/// The chip takes its commands' module out of the file: every chip but the oldest.
[[nodiscard]] bool wants_kernel_module(const schema::ModelT& model);

}  // namespace reef::sophgo
