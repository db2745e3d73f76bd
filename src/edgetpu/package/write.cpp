#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>

#include <algorithm>

#include "reef/edgetpu/package.h"
#include "reef_schema/darwinn_generated.h"

namespace reef::edgetpu {
namespace {

using flatbuffers::DetachedBuffer;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
template <typename T>
using OffsetOfVector = Offset<flatbuffers::Vector<T>>;
template <typename T>
using OffsetOfTables = OffsetOfVector<Offset<T>>;

/// The vendor's alignment of parameters, executables and multi-executables.
constexpr std::size_t page = 4096;
constexpr std::uint64_t largest_package = std::uint64_t{1} << 30;

// -- Size -----------------------------------------------------------------------------------------

/// No less than what FlatBuffers add to a table or vector.
constexpr std::uint64_t table_overhead = 128;

std::uint64_t size_of_layers(const std::vector<Layer>& layers) {
    std::uint64_t size = 0;
    for (const Layer& layer : layers) {
        size += 8 * table_overhead + layer.name.size();
        if (layer.shape) size += 8 * layer.shape->size();
        const auto* output = std::get_if<OutputLayer>(&layer.kind);
        if (output == nullptr) continue;
        if (const OutputLayout* layout = layer.layout()) {
            for (const auto* list :
                 {&layout->y_to_tile, &layout->x_to_tile, &layout->tile_byte_offset,
                  &layout->x_to_local_byte, &layout->y_to_local_y, &layout->x_to_local_row_bytes}) {
                size += 4 * list->size();
            }
        }
        if (!output->shape_info) continue;
        size += 4 * output->shape_info->slice_offset.size();
        for (const TensorLayout& slice : output->shape_info->slice_layout) {
            size += 2 * table_overhead + 4 * slice.stride.size();
            if (slice.shape) size += 8 * slice.shape->size();
        }
    }
    return size;
}

std::uint64_t size_of_executable(const Executable& executable) {
    std::uint64_t size = 4 * page + executable.name.size() + executable.chip.size() +
                         executable.serialized_model.size() + executable.parameters.size() +
                         size_of_layers(executable.inputs) + size_of_layers(executable.outputs);
    for (const InstructionBitstream& stream : executable.bitstreams) {
        size += 2 * table_overhead + stream.instructions.size();
        for (const FieldOffset& field : stream.field_offsets) {
            size += 2 * table_overhead + field.meta.name.size();
        }
    }
    if (!executable.dma_hints) return size;
    for (const DmaHint& hint : executable.dma_hints->hints) {
        size += 3 * table_overhead;
        const auto* transfer = std::get_if<DmaDescriptorHint>(&hint.what);
        if (transfer != nullptr) size += transfer->meta.name.size();
    }
    return size;
}

/// An upper bound of the package's bytes.
std::uint64_t size_bound(const Package& package) {
    std::uint64_t size = 4 * page + package.compiler_version.size() +
                         package.model_identifier.size() + package.signature.size();
    for (const Executable& executable : package.executables) size += size_of_executable(executable);
    for (const Package& chip : package.multi_chip) size += page + size_bound(chip);
    return size;
}

// -- Parts: what is empty or at its default is left out
// --------------------------------------------

DetachedBuffer finished(FlatBufferBuilder& builder, Offset<void> root,
                        const char* identifier = nullptr) {
    builder.Finish(root, identifier);
    return builder.Release();
}

Bytes view_of(const DetachedBuffer& buffer) {
    return std::as_bytes(std::span(buffer.data(), buffer.size()));
}

Offset<flatbuffers::String> text(FlatBufferBuilder& builder, const std::string& value) {
    return value.empty() ? Offset<flatbuffers::String>() : builder.CreateString(value);
}

OffsetOfVector<std::uint8_t> byte_vector(FlatBufferBuilder& builder, Bytes bytes,
                                         std::size_t alignment) {
    if (bytes.empty()) return 0;
    builder.PreAlign(bytes.size(), alignment);
    return builder.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

OffsetOfVector<std::int32_t> numbers(FlatBufferBuilder& builder,
                                     const std::vector<std::int32_t>& values) {
    return values.empty() ? OffsetOfVector<std::int32_t>() : builder.CreateVector(values);
}

/// `make` of each element.
template <typename T, typename Element, typename Make>
OffsetOfTables<T> tables(FlatBufferBuilder& builder, const std::vector<Element>& elements,
                         Make&& make) {
    if (elements.empty()) return 0;
    std::vector<Offset<T>> offsets;
    offsets.reserve(elements.size());
    for (const Element& element : elements) offsets.push_back(make(builder, element));
    return builder.CreateVector(offsets);
}

Offset<schema::Meta> meta(FlatBufferBuilder& builder, const Meta& value) {
    return schema::CreateMeta(builder, static_cast<std::int16_t>(value.base), value.batch,
                              text(builder, value.name), static_cast<std::int16_t>(value.half));
}

Offset<schema::InstructionBitstream> bitstream(FlatBufferBuilder& builder,
                                               const InstructionBitstream& stream) {
    const auto field = [](FlatBufferBuilder& b, const FieldOffset& offset) {
        return schema::CreateFieldOffset(b, meta(b, offset.meta), offset.offset_bit);
    };
    const auto fields = tables<schema::FieldOffset>(builder, stream.field_offsets, field);
    return schema::CreateInstructionBitstream(
        builder, byte_vector(builder, stream.instructions.view(), 16), fields);
}

struct Hint {
    schema::AnyHint type = schema::AnyHint::NONE;
    Offset<void> value;
};

Hint any_hint(FlatBufferBuilder& builder, const DmaHint& hint) {
    if (const auto* dma = std::get_if<DmaDescriptorHint>(&hint.what)) {
        const auto table = schema::CreateDmaDescriptorHint(builder, meta(builder, dma->meta),
                                                           dma->offset_bytes, dma->size_bytes);
        return {schema::AnyHint::DmaDescriptorHint, table.Union()};
    }
    if (const auto* instructions = std::get_if<InstructionHint>(&hint.what)) {
        return {schema::AnyHint::InstructionHint,
                schema::CreateInstructionHint(builder, instructions->bitstream).Union()};
    }
    if (const auto* interrupt = std::get_if<InterruptHint>(&hint.what)) {
        return {schema::AnyHint::InterruptHint,
                schema::CreateInterruptHint(builder, interrupt->interrupt).Union()};
    }
    if (std::holds_alternative<FenceHint>(hint.what)) {
        return {schema::AnyHint::FenceHint, schema::CreateFenceHint(builder).Union()};
    }
    return {};
}

Offset<schema::DmaHint> dma_hint(FlatBufferBuilder& builder, const DmaHint& hint) {
    const Hint any = any_hint(builder, hint);
    return schema::CreateDmaHint(builder, any.type, any.value,
                                 static_cast<std::int16_t>(hint.direction));
}

Offset<schema::DmaHints> dma_hints(FlatBufferBuilder& builder,
                                   const std::optional<DmaHints>& hints) {
    if (!hints) return 0;
    const auto list = tables<schema::DmaHint>(builder, hints->hints, dma_hint);
    return schema::CreateDmaHints(builder, list, hints->fully_deterministic);
}

// -- Layers ---------------------------------------------------------------------------------------

Offset<schema::TensorShape> tensor_shape(FlatBufferBuilder& builder,
                                         const std::optional<TensorShape>& shape) {
    if (!shape) return 0;
    std::vector<schema::Range> ranges;
    for (const Range& range : *shape) ranges.emplace_back(range.start, range.end);
    return schema::CreateTensorShape(builder,
                                     ranges.empty() ? 0 : builder.CreateVectorOfStructs(ranges));
}

Offset<schema::OutputLayout> output_layout(FlatBufferBuilder& builder,
                                           const std::optional<OutputLayout>& layout) {
    if (!layout) return 0;
    const auto y_to_tile = numbers(builder, layout->y_to_tile);
    const auto x_to_tile = numbers(builder, layout->x_to_tile);
    const auto tile_byte = numbers(builder, layout->tile_byte_offset);
    const auto x_to_byte = numbers(builder, layout->x_to_local_byte);
    const auto y_to_y = numbers(builder, layout->y_to_local_y);
    const auto x_to_row = numbers(builder, layout->x_to_local_row_bytes);
    return schema::CreateOutputLayout(builder, y_to_tile, x_to_tile, tile_byte, x_to_byte, y_to_y,
                                      x_to_row);
}

Offset<schema::OutputShapeInfo> shape_info(FlatBufferBuilder& builder,
                                           const std::optional<OutputShapeInfo>& info) {
    if (!info) return 0;
    const auto slice = [](FlatBufferBuilder& b, const TensorLayout& layout) {
        const auto shape = tensor_shape(b, layout.shape);
        return schema::CreateTensorLayout(b, shape, numbers(b, layout.stride));
    };
    const auto slices = tables<schema::TensorLayout>(builder, info->slice_layout, slice);
    return schema::CreateOutputShapeInfo(builder, slices, numbers(builder, info->slice_offset));
}

Offset<void> layer_kind(FlatBufferBuilder& builder, const Layer& layer) {
    if (const auto* output = std::get_if<OutputLayer>(&layer.kind)) {
        const auto layout = output_layout(builder, output->layout);
        const auto info = shape_info(builder, output->shape_info);
        return schema::CreateOutputLayer(builder, layout,
                                         static_cast<std::int16_t>(output->data_type), info)
            .Union();
    }
    if (std::holds_alternative<InputLayer>(layer.kind)) {
        return schema::CreateInputLayer(builder).Union();
    }
    return 0;
}

schema::AnyLayer layer_kind_type(const Layer& layer) {
    if (std::holds_alternative<OutputLayer>(layer.kind)) return schema::AnyLayer::OutputLayer;
    if (std::holds_alternative<InputLayer>(layer.kind)) return schema::AnyLayer::InputLayer;
    return schema::AnyLayer::NONE;
}

Offset<schema::Layer> layer_table(FlatBufferBuilder& builder, const Layer& layer) {
    const auto name = text(builder, layer.name);
    Offset<schema::NumericsConstants> numerics;
    if (layer.numerics) {
        numerics = schema::CreateNumericsConstants(builder, layer.numerics->zero_point,
                                                   layer.numerics->dequantization_factor);
    }
    const auto kind = layer_kind(builder, layer);
    const auto shape = tensor_shape(builder, layer.shape);
    return schema::CreateLayer(builder, name, layer.size_bytes, layer.y_dim, layer.x_dim,
                               layer.z_dim, numerics, static_cast<std::int16_t>(layer.data_type),
                               layer_kind_type(layer), kind, layer.executions_per_inference,
                               layer.cache_on_dram, shape);
}

// -- Levels ---------------------------------------------------------------------------------------

DetachedBuffer executable_bytes(const Executable& executable) {
    FlatBufferBuilder builder(size_of_executable(executable));
    const auto name = text(builder, executable.name);
    const auto chip = text(builder, executable.chip);
    const auto nested_model = byte_vector(builder, executable.serialized_model.view(), page);
    const auto streams =
        tables<schema::InstructionBitstream>(builder, executable.bitstreams, bitstream);
    const auto hints = dma_hints(builder, executable.dma_hints);
    const auto inputs = tables<schema::Layer>(builder, executable.inputs, layer_table);
    const auto outputs = tables<schema::Layer>(builder, executable.outputs, layer_table);
    const auto parameters = byte_vector(builder, executable.parameters.view(), page);
    const auto root = schema::CreateExecutable(
        builder, executable.version, name, nested_model, executable.batch_size,
        executable.scratch_size_bytes, streams, parameters, hints, inputs, outputs, chip,
        executable.estimated_cycles, executable.used_narrow_memory_bytes_per_tile,
        static_cast<std::int16_t>(executable.type), executable.parameter_caching_token,
        executable.use_tpu_dram_for_parameters, executable.estimated_cycles_64bit);
    return finished(builder, root.Union());
}

DetachedBuffer multi_executable_bytes(const std::vector<Executable>& executables) {
    std::uint64_t size = page;
    for (const Executable& executable : executables) size += size_of_executable(executable);
    FlatBufferBuilder builder(size);
    const auto add = [](FlatBufferBuilder& b, const Executable& executable) {
        const auto bytes = executable_bytes(executable);
        b.PreAlign(bytes.size() + 1, page);  // a string's zero comes after it
        return b.CreateString(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    const auto list = tables<flatbuffers::String>(builder, executables, add);
    return finished(builder, schema::CreateMultiExecutable(builder, list).Union());
}

DetachedBuffer package_bytes(const Package& package) {
    FlatBufferBuilder builder(size_bound(package));
    OffsetOfVector<std::uint8_t> executables;
    if (!package.executables.empty()) {
        const DetachedBuffer all = multi_executable_bytes(package.executables);
        executables = byte_vector(builder, view_of(all), page);
    }
    const auto signature = byte_vector(builder, package.signature.view(), 1);
    const auto compiler = text(builder, package.compiler_version);
    const auto chip = [](FlatBufferBuilder& b, const Package& one) {
        const DetachedBuffer bytes = package_bytes(one);
        return schema::CreateSerializedPackage(b, byte_vector(b, view_of(bytes), page));
    };
    const auto chips = tables<schema::SerializedPackage>(builder, package.multi_chip, chip);
    const auto identifier = text(builder, package.model_identifier);
    const auto root = schema::CreatePackage(builder, package.min_runtime_version, executables,
                                            signature, package.keypair_version, compiler,
                                            package.virtual_chip_id, chips, identifier);
    return finished(builder, root.Union(), schema::PackageIdentifier());
}

}  // namespace

Result<std::vector<std::byte>> write_package(const Package& package) {
    if (!package.not_preserved.empty()) {
        return fail(Cause::unsupported,
                    fmt::format("the package holds what Reef would lose: {}",
                                fmt::join(package.not_preserved, "; ")),
                    {}, "it comes from a compiler newer than this version of Reef knows");
    }
    REEF_CHECK(validate(package));
    if (size_bound(package) > largest_package) {
        return fail(Cause::unsupported, "the package would exceed 1 GiB");
    }
    const DetachedBuffer buffer = package_bytes(package);
    const Bytes bytes = view_of(buffer);
    std::vector<std::byte> out;
    out.reserve(bytes.size() + 1);  // a zero ends it where it is written as a string
    out.assign(bytes.begin(), bytes.end());
    return out;
}

}  // namespace reef::edgetpu
