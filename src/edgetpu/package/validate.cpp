#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "reef/edgetpu/package.h"

namespace reef::edgetpu {
namespace {

/// The host keeps it for the chip. Known programs have at most 672 bytes.
constexpr std::int32_t most_scratch_bytes = 64 << 20;

std::unexpected<Error> broken(std::string what, std::string place) {
    return fail(Cause::bad_argument, std::move(what), std::move(place));
}

bool any_negative(const std::vector<std::int32_t>& values) {
    return std::ranges::any_of(values, [](std::int32_t value) { return value < 0; });
}

std::int64_t largest(const std::vector<std::int32_t>& values) {
    return values.empty() ? -1 : *std::ranges::max_element(values);
}

Status check_bitstream(const InstructionBitstream& stream) {
    constexpr std::int64_t immediate_bits = 32;
    const auto bits = static_cast<std::int64_t>(stream.instructions.size()) * 8;
    for (std::size_t i = 0; i < stream.field_offsets.size(); ++i) {
        const std::int64_t at = stream.field_offsets[i].offset_bit;
        if (at >= 0 && at + immediate_bits <= bits) continue;
        return broken(fmt::format("32 bits at bit {} of {} bits of instructions", at, bits),
                      fmt::format("field offset {}", i));
    }
    return {};
}

/// What transfers may refer to.
struct Regions {
    std::set<std::string_view> inputs;
    std::set<std::string_view> outputs;
    std::int64_t parameter_bytes = 0;
    std::size_t bitstreams = 0;
};

Regions regions_of(const Executable& executable) {
    Regions regions;
    for (const Layer& layer : executable.inputs) regions.inputs.insert(layer.name);
    for (const Layer& layer : executable.outputs) regions.outputs.insert(layer.name);
    regions.parameter_bytes = static_cast<std::int64_t>(executable.parameters.size());
    regions.bitstreams = executable.bitstreams.size();
    return regions;
}

Status check_transfer(const Regions& regions, const DmaDescriptorHint& transfer) {
    const std::int64_t offset = transfer.offset_bytes;
    const std::int64_t size = transfer.size_bytes;
    if (offset < 0 || size < 0) {
        return broken(fmt::format("a transfer of {} bytes from byte {}", size, offset), {});
    }
    if (transfer.meta.base == BaseAddress::parameter && offset + size > regions.parameter_bytes) {
        return broken(fmt::format("a transfer of {} bytes from byte {} of {} bytes of parameters",
                                  size, offset, regions.parameter_bytes),
                      {});
    }
    const std::string& name = transfer.meta.name;
    if (transfer.meta.base == BaseAddress::input_activation && !regions.inputs.contains(name)) {
        return broken(fmt::format("a transfer of the input layer '{}', which is none", name), {});
    }
    if (transfer.meta.base == BaseAddress::output_activation && !regions.outputs.contains(name)) {
        return broken(fmt::format("a transfer of the output layer '{}', which is none", name), {});
    }
    return {};
}

Status check_hint(const Regions& regions, const DmaHint& hint) {
    if (const auto* transfer = std::get_if<DmaDescriptorHint>(&hint.what)) {
        return check_transfer(regions, *transfer);
    }
    const auto* instructions = std::get_if<InstructionHint>(&hint.what);
    if (instructions == nullptr) return {};
    const std::int64_t index = instructions->bitstream;
    if (index >= 0 && static_cast<std::size_t>(index) < regions.bitstreams) return {};
    return broken(fmt::format("instruction bitstream {} of {}", index, regions.bitstreams), {});
}

Status check_layout(const Layer& layer, const OutputLayout& layout) {
    const auto y = static_cast<std::size_t>(layer.y_dim);
    const auto x = static_cast<std::size_t>(layer.x_dim);
    if (layout.y_to_tile.size() != y || layout.y_to_local_y.size() != y) {
        return broken(fmt::format("an output layout without an entry for each of {} rows", y), {});
    }
    if (layout.x_to_tile.size() != x || layout.x_to_local_byte.size() != x ||
        layout.x_to_local_row_bytes.size() != x) {
        return broken(fmt::format("an output layout without an entry for each of {} columns", x),
                      {});
    }
    for (const auto* entries :
         {&layout.y_to_tile, &layout.x_to_tile, &layout.tile_byte_offset, &layout.x_to_local_byte,
          &layout.y_to_local_y, &layout.x_to_local_row_bytes}) {
        if (any_negative(*entries)) return broken("a negative entry in an output layout", {});
    }
    const std::int64_t tile = largest(layout.y_to_tile) + largest(layout.x_to_tile);
    const auto tiles = static_cast<std::int64_t>(layout.tile_byte_offset.size());
    if (y > 0 && x > 0 && tile >= tiles) {
        return broken(fmt::format("an output layout with tile {} of {}", tile, tiles), {});
    }
    return {};
}

Status check_layer(const Layer& layer) {
    if (layer.size_bytes < 0 || layer.y_dim < 0 || layer.x_dim < 0 || layer.z_dim < 0) {
        return broken(fmt::format("a layer of {} bytes for {} x {} x {} elements", layer.size_bytes,
                                  layer.y_dim, layer.x_dim, layer.z_dim),
                      {});
    }
    const OutputLayout* layout = layer.layout();
    return layout == nullptr ? Status() : check_layout(layer, *layout);
}

Status check_layers(const std::vector<Layer>& layers, std::string_view kind) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
        REEF_CHECK(in_place(check_layer(layers[i]), fmt::format("{} {}", kind, i)));
    }
    return {};
}

Status check_executable(const Executable& executable) {
    if (executable.scratch_size_bytes < 0 || executable.scratch_size_bytes > most_scratch_bytes) {
        return broken(fmt::format("scratch memory of {} bytes, 0 to {} are possible",
                                  executable.scratch_size_bytes, most_scratch_bytes),
                      {});
    }
    for (std::size_t i = 0; i < executable.bitstreams.size(); ++i) {
        REEF_CHECK(
            in_place(check_bitstream(executable.bitstreams[i]), fmt::format("bitstream {}", i)));
    }
    REEF_CHECK(check_layers(executable.inputs, "input layer"));
    REEF_CHECK(check_layers(executable.outputs, "output layer"));
    if (!executable.dma_hints) return {};
    const auto& hints = executable.dma_hints->hints;
    const Regions regions = regions_of(executable);
    for (std::size_t i = 0; i < hints.size(); ++i) {
        REEF_CHECK(in_place(check_hint(regions, hints[i]), fmt::format("DMA hint {}", i)));
    }
    return {};
}

Status check_package(const Package& package, int depth) {
    for (std::size_t i = 0; i < package.executables.size(); ++i) {
        REEF_CHECK(in_place(check_executable(package.executables[i]),
                            fmt::format("package: executable {}", i)));
    }
    if (!package.multi_chip.empty() && depth == deepest_multi_chip) {
        return broken("packages within packages within packages", "package");
    }
    for (std::size_t i = 0; i < package.multi_chip.size(); ++i) {
        REEF_CHECK(
            in_place(check_package(package.multi_chip[i], depth + 1), fmt::format("chip {}", i)));
    }
    return {};
}

}  // namespace

Status validate(const Package& package) {
    return check_package(package, 0);
}

}  // namespace reef::edgetpu
