// The container of compiled Edge TPU programs: what a custom operator of a compiled model holds.
//
// custom options (a FlexBuffer, key "4") -> Package (FlatBuffer, identifier DWN1) ->
// MultiExecutable -> Executables, each level a FlatBuffer of its own that is verified before
// anything is read from it. Fields and their numbers: schema/darwinn.fbs. Everything a package
// holds is kept, so that reading and writing lose nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::edgetpu {

/// The name of the custom operators that hold a Package.
inline constexpr std::string_view custom_operator_name = "edgetpu-custom-op";

// Enumerations keep numbers that Reef has no name for; to_string gives "type 7" for those.

/// How an executable is run.
enum class ExecutableType : std::int16_t {
    stand_alone = 0,        ///< everything in one program, parameters streamed every time
    parameter_caching = 1,  ///< loads parameters into the chip's memory, once per token
    execution_only = 2,     ///< computes, with the parameters that were cached before
};
/// "STAND_ALONE", "PARAMETER_CACHING", "EXECUTION_ONLY".
[[nodiscard]] std::string to_string(ExecutableType type);

/// The region that an address points into.
enum class BaseAddress : std::int16_t {
    output_activation = 0,
    input_activation = 1,
    parameter = 2,
    scratch = 3,
};
[[nodiscard]] std::string to_string(BaseAddress base);

enum class AddressHalf : std::int16_t { lower_32_bits = 0, upper_32_bits = 1 };
[[nodiscard]] std::string to_string(AddressHalf half);

/// An element type on the chip. The chip computes in unsigned 8 bits; a model's int8 is XOR 0x80.
enum class DataType : std::int16_t {
    fixed_point8 = 0,
    fixed_point16 = 1,
    signed_fixed_point32 = 2,
    bfloat = 3,
    half = 4,
    single = 5,
    signed_fixed_point8 = 8,
    signed_fixed_point16 = 9,
};
[[nodiscard]] std::string to_string(DataType type);
/// Bytes of one element; nothing for types without a name here.
[[nodiscard]] std::optional<std::size_t> size_of(DataType type);

/// What a place in the instructions or a transfer refers to.
struct Meta {
    BaseAddress base = BaseAddress::output_activation;
    std::int32_t batch = 0;
    std::string name;  ///< of the layer, for input and output activations
    AddressHalf half = AddressHalf::lower_32_bits;
    friend bool operator==(const Meta&, const Meta&) = default;
};

/// A 32-bit immediate in the instructions that the host overwrites with half a base address.
struct FieldOffset {
    Meta meta;
    std::int32_t offset_bit = 0;  ///< first bit, from the bitstream's start
    friend bool operator==(const FieldOffset&, const FieldOffset&) = default;
};

struct InstructionBitstream {
    SharedBytes instructions;
    std::vector<FieldOffset> field_offsets;
    friend bool operator==(const InstructionBitstream&, const InstructionBitstream&) = default;
};

// -- DMA hints: what the host does for one run, in this order
// --------------------------------------

/// Transfers `size_bytes` from `offset_bytes` on, of the region or layer that `meta` names.
struct DmaDescriptorHint {
    Meta meta;
    std::int32_t offset_bytes = 0;
    std::int32_t size_bytes = 0;
    friend bool operator==(const DmaDescriptorHint&, const DmaDescriptorHint&) = default;
};
/// Sends one instruction bitstream.
struct InstructionHint {
    std::int32_t bitstream = 0;  ///< index into Executable::bitstreams
    friend bool operator==(const InstructionHint&, const InstructionHint&) = default;
};
/// Waits for an interrupt of the scalar core.
struct InterruptHint {
    std::int16_t interrupt = 0;  ///< 0 to 3
    friend bool operator==(const InterruptHint&, const InterruptHint&) = default;
};
/// Waits for everything before it.
struct FenceHint {
    friend bool operator==(const FenceHint&, const FenceHint&) = default;
};

enum class Direction : std::int16_t {
    infeed = 0,   ///< host to chip
    outfeed = 1,  ///< chip to host
};
[[nodiscard]] std::string to_string(Direction direction);

struct DmaHint {
    /// monostate: a hint without a kind.
    std::variant<std::monostate, DmaDescriptorHint, InstructionHint, InterruptHint, FenceHint> what;
    Direction direction = Direction::infeed;
    friend bool operator==(const DmaHint&, const DmaHint&) = default;
};

struct DmaHints {
    std::vector<DmaHint> hints;
    bool fully_deterministic = false;
    friend bool operator==(const DmaHints&, const DmaHints&) = default;
};

// -- Layers ---------------------------------------------------------------------------------------

/// Where element (y, x, z) of an output is in the layer's bytes:
///   tile = y_to_tile[y] + x_to_tile[x]
///   byte = tile_byte_offset[tile] + y_to_local_y[y] * x_to_local_row_bytes[x]
///          + x_to_local_byte[x] + z
/// Source: facts measured against TFLite's outputs, exact.
struct OutputLayout {
    std::vector<std::int32_t> y_to_tile;             ///< YCoordinateToLinearTileIdMap
    std::vector<std::int32_t> x_to_tile;             ///< XCoordinateToLinearTileIdMap
    std::vector<std::int32_t> tile_byte_offset;      ///< LinearizedTileByteOffset
    std::vector<std::int32_t> x_to_local_byte;       ///< XCoordinateToLocalByteOffset
    std::vector<std::int32_t> y_to_local_y;          ///< YCoordinateToLocalYOffset
    std::vector<std::int32_t> x_to_local_row_bytes;  ///< XCoordinateToLocalYRowSize
    friend bool operator==(const OutputLayout&, const OutputLayout&) = default;
};

/// Indices of one dimension, both ends included.
struct Range {
    std::int32_t start = 0;
    std::int32_t end = 0;
    friend bool operator==(const Range&, const Range&) = default;
};
using TensorShape = std::vector<Range>;

struct TensorLayout {
    std::optional<TensorShape> shape;
    std::vector<std::int32_t> stride;
    friend bool operator==(const TensorLayout&, const TensorLayout&) = default;
};

struct OutputShapeInfo {
    std::vector<TensorLayout> slice_layout;
    std::vector<std::int32_t> slice_offset;
    friend bool operator==(const OutputShapeInfo&, const OutputShapeInfo&) = default;
};

/// real = dequantization_factor * (q - zero_point)
struct Numerics {
    std::int32_t zero_point = 0;
    float dequantization_factor = 0;
    friend bool operator==(const Numerics&, const Numerics&) = default;
};

struct InputLayer {
    friend bool operator==(const InputLayer&, const InputLayer&) = default;
};
struct OutputLayer {
    std::optional<OutputLayout> layout;
    DataType data_type = DataType::fixed_point8;
    std::optional<OutputShapeInfo> shape_info;
    friend bool operator==(const OutputLayer&, const OutputLayer&) = default;
};

/// An input or output of an executable, as the chip sees it.
struct Layer {
    std::string name;             ///< of the tensor in the plain model
    std::int32_t size_bytes = 0;  ///< as transferred, with padding
    std::int32_t y_dim = 0;
    std::int32_t x_dim = 0;
    std::int32_t z_dim = 0;
    std::optional<Numerics> numerics;
    DataType data_type = DataType::fixed_point8;
    std::variant<std::monostate, OutputLayer, InputLayer> kind;
    std::int32_t executions_per_inference = 1;
    bool cache_on_dram = false;
    std::optional<TensorShape> shape;

    /// Null for an input or an output without a layout.
    [[nodiscard]] const OutputLayout* layout() const;
    friend bool operator==(const Layer&, const Layer&) = default;
};

// -- Executables and packages ---------------------------------------------------------------------

struct Executable {
    ExecutableType type = ExecutableType::stand_alone;
    std::string name;
    std::string chip;  ///< "beagle": the Edge TPU
    std::int32_t version = 0;
    std::uint64_t parameter_caching_token = 0;  ///< equal tokens share the chip's memory
    std::int32_t batch_size = 0;
    std::int32_t scratch_size_bytes = 0;
    std::int32_t used_narrow_memory_bytes_per_tile = 0;
    std::int32_t estimated_cycles = 0;
    std::int64_t estimated_cycles_64bit = 0;
    bool use_tpu_dram_for_parameters = false;
    SharedBytes serialized_model;
    std::vector<InstructionBitstream> bitstreams;
    SharedBytes parameters;
    std::optional<DmaHints> dma_hints;
    std::vector<Layer> inputs;
    std::vector<Layer> outputs;

    [[nodiscard]] const Layer* find_input(std::string_view layer) const;
    [[nodiscard]] const Layer* find_output(std::string_view layer) const;
    friend bool operator==(const Executable&, const Executable&) = default;
};

struct Package {
    std::int32_t min_runtime_version = 0;
    std::string compiler_version;
    std::int32_t keypair_version = 0;
    std::int32_t virtual_chip_id = 0;
    std::string model_identifier;
    SharedBytes signature;
    std::vector<Executable> executables;  ///< in the order of the file
    std::vector<Package> multi_chip;      ///< one per chip, for models split over several
    /// What the bytes hold that is newer than Reef's schema and thus not here, one clause each.
    /// write_package refuses such a package.
    std::vector<std::string> not_preserved;

    /// The first of that type, or null.
    [[nodiscard]] const Executable* find(ExecutableType type) const;
    [[nodiscard]] Executable* find(ExecutableType type);
    friend bool operator==(const Package&, const Package&) = default;
};

/// The executable that takes inputs and gives outputs: EXECUTION_ONLY, else STAND_ALONE.
/// Errors: bad_input when the package holds only parameters.
[[nodiscard]] Result<const Executable*> computing_executable(const Package& package);

/// The rules that every readable package keeps:
/// - 32 bits at each field offset lie in their bitstream; instruction hints name a bitstream;
/// - transfers have no negative offset or size, parameter transfers lie in the parameters, input
///   and output transfers name a layer;
/// - layers have no negative size; an output layout has an entry for each y and x, all entries
///   >= 0 and each tile in tile_byte_offset;
/// - scratch memory has at most 64 MiB;
/// - packages hold packages at most two levels deep.
/// Errors: bad_argument with the place.
[[nodiscard]] Status validate(const Package& package);
/// Levels of packages within a package; one is in use, for models split over several chips.
inline constexpr int deepest_multi_chip = 2;

/// Instructions, parameters and other byte fields are views into `bytes`, which the Package keeps
/// alive; bytes that do not start at a multiple of 4 are copied once as a whole.
/// Errors: bad_input with the level and place.
[[nodiscard]] Result<Package> read_package(const SharedBytes& bytes);

/// Deterministic. read_package(write_package(p)) == p, but the bytes need not be those of the
/// vendor's compiler: tables are arranged differently. Bytes and nested FlatBuffers start at
/// multiples of 4096, as the vendor's compiler places parameters and executables.
/// Errors: bad_argument when validate() refuses; unsupported when something would be lost
/// (Package::not_preserved) or the package would exceed 1 GiB.
[[nodiscard]] Result<std::vector<std::byte>> write_package(const Package& package);

/// A custom operator of a compiled model and its program.
struct CompiledOperator {
    std::size_t subgraph = 0;
    std::size_t index = 0;  ///< of the operator in its subgraph
    std::string place;      ///< "subgraph 0: operator 2 edgetpu-custom-op"
    Package package;
};

[[nodiscard]] bool is_compiled(const model::Operator& op);
/// The package in one operator's custom options. Precondition: is_compiled(op).
[[nodiscard]] Result<Package> package_of(const model::Operator& op);
/// All packages of a model, in execution order of each subgraph; empty for a plain model.
[[nodiscard]] Result<std::vector<CompiledOperator>> packages_of(const model::Model& model);

/// Puts `package` in place of the one in the operator's custom options, whose other entries stay.
/// On failure the operator is as it was. Errors: those of write_package; bad_input when the
/// options are no FlexBuffer map; unsupported for entries other than numbers, strings, blobs and
/// vectors of numbers.
/// Precondition: is_compiled(op).
[[nodiscard]] Status replace_package(model::Operator& op, const Package& package);

}  // namespace reef::edgetpu
