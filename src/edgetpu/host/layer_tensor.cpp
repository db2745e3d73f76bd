#include "reef/edgetpu/layer_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/simd.h"
#include "edgetpu/host/copy_rows.h"
#include "edgetpu/host/flip.h"

namespace reef::edgetpu {
namespace {

/// The byte of element (y, x, 0), by the tables. Precondition: checked(layer).
std::size_t position_byte(const OutputLayout& layout, std::size_t y, std::size_t x) {
    const auto tile = static_cast<std::size_t>(layout.y_to_tile[y] + layout.x_to_tile[x]);
    return static_cast<std::size_t>(layout.tile_byte_offset[tile]) +
           static_cast<std::size_t>(layout.y_to_local_y[y]) *
               static_cast<std::size_t>(layout.x_to_local_row_bytes[x]) +
           static_cast<std::size_t>(layout.x_to_local_byte[x]);
}

Status check_tables(const OutputLayout& layout, std::size_t rows, std::size_t columns) {
    const auto covers = [](const std::vector<std::int32_t>& table, std::size_t size) {
        return table.size() >= size &&
               std::ranges::all_of(table, [](std::int32_t entry) { return entry >= 0; });
    };
    if (!covers(layout.y_to_tile, rows) || !covers(layout.y_to_local_y, rows) ||
        !covers(layout.x_to_tile, columns) || !covers(layout.x_to_local_byte, columns) ||
        !covers(layout.x_to_local_row_bytes, columns) || !covers(layout.tile_byte_offset, 0)) {
        return fail(Cause::bad_input,
                    fmt::format("the output layout does not cover {} x {} positions with entries "
                                ">= 0",
                                rows, columns));
    }
    const auto highest = [](const std::vector<std::int32_t>& table, std::size_t size) {
        return size == 0 ? 0 : std::int64_t{*std::ranges::max_element(table)};
    };
    if (rows * columns != 0 &&
        highest(layout.y_to_tile, rows) + highest(layout.x_to_tile, columns) >=
            static_cast<std::int64_t>(layout.tile_byte_offset.size())) {
        return fail(Cause::bad_input,
                    fmt::format("the output layout names a tile beyond its {} tiles",
                                layout.tile_byte_offset.size()));
    }
    return {};
}

struct Shape {
    std::size_t rows, columns, position_bytes, wire_bytes;
    std::size_t positions() const { return rows * columns; }
    std::size_t bytes() const { return positions() * position_bytes; }
};

Result<Shape> shape_of(const Layer& layer) {
    const auto bytes = REEF_TRY(tensor_bytes(layer));
    Shape shape{.rows = static_cast<std::size_t>(layer.y_dim),
                .columns = static_cast<std::size_t>(layer.x_dim),
                .position_bytes = 0,
                .wire_bytes = static_cast<std::size_t>(layer.size_bytes)};
    if (shape.positions() != 0) shape.position_bytes = bytes / shape.positions();
    return shape;
}

/// Every position's byte range lies in the layer.
Status check_output(const Layer& layer, const Shape& shape) {
    const OutputLayout* layout = layer.layout();
    if (layout == nullptr) {
        if (shape.bytes() <= shape.wire_bytes) return {};
        return fail(Cause::bad_input, fmt::format("{} bytes do not hold its tensor of {} bytes",
                                                  shape.wire_bytes, shape.bytes()));
    }
    REEF_CHECK(check_tables(*layout, shape.rows, shape.columns));
    // Of the layouts with 16-bit elements that are known (one position, 20 elements), the tables
    // count elements where the layer counts bytes; it shows only from the second position on.
    if (shape.positions() > 1 && size_of(layer.data_type) != std::size_t{1}) {
        return fail(Cause::unsupported,
                    fmt::format("not modelled: the layout of 16-bit elements at {} positions",
                                shape.positions()),
                    {}, "keep this operator on the CPU");
    }
    for (std::size_t y = 0; y < shape.rows; ++y) {
        for (std::size_t x = 0; x < shape.columns; ++x) {
            if (position_byte(*layout, y, x) + shape.position_bytes > shape.wire_bytes) {
                return fail(Cause::bad_input,
                            fmt::format("position ({}, {}) ends at byte {} of {}", y, x,
                                        position_byte(*layout, y, x) + shape.position_bytes,
                                        shape.wire_bytes));
            }
        }
    }
    return {};
}

std::string place_of(const Layer& layer) {
    return fmt::format("layer {}", layer.name);
}

}  // namespace

Result<ElementType> element_type_of(const Layer& layer) {
    switch (layer.data_type) {
        case DataType::fixed_point8:
            return ElementType::uint8;
        case DataType::signed_fixed_point8:
            return ElementType::int8;
        case DataType::fixed_point16:
            return ElementType::uint16;
        case DataType::signed_fixed_point16:
            return ElementType::int16;
        default:
            return fail(Cause::unsupported,
                        fmt::format("not modelled: {} elements", to_string(layer.data_type)),
                        place_of(layer), "8 and 16-bit elements are");
    }
}

Result<std::size_t> tensor_bytes(const Layer& layer) {
    const auto element = *size_of(REEF_TRY(element_type_of(layer)));
    if (layer.executions_per_inference != 1) {
        return fail(Cause::unsupported,
                    fmt::format("not modelled: a layer that runs {} times per inference",
                                layer.executions_per_inference),
                    place_of(layer), "compile the model with a batch of 1");
    }
    constexpr std::uint64_t limit = std::uint64_t{1} << 31;
    std::uint64_t bytes = element;
    for (const std::int32_t dimension : {layer.y_dim, layer.x_dim, layer.z_dim}) {
        if (dimension < 0) {
            return fail(Cause::bad_input, fmt::format("dimension {}", dimension), place_of(layer));
        }
        bytes *= static_cast<std::uint64_t>(dimension);
        if (bytes >= limit) {
            return fail(Cause::bad_input,
                        fmt::format("{} x {} x {} elements are more than 2 GiB", layer.y_dim,
                                    layer.x_dim, layer.z_dim),
                        place_of(layer));
        }
    }
    if (layer.size_bytes < 0) {
        return fail(Cause::bad_input, fmt::format("{} bytes", layer.size_bytes), place_of(layer));
    }
    return static_cast<std::size_t>(bytes);
}

Status pack_input(const Layer& layer, Bytes tensor, MutableBytes wire) {
    const std::size_t bytes = REEF_TRY(tensor_bytes(layer));
    if (tensor.size() != bytes) {
        return fail(Cause::bad_argument,
                    fmt::format("{} bytes given, the tensor has {}", tensor.size(), bytes),
                    place_of(layer));
    }
    if (wire.size() < bytes) {
        return fail(Cause::bad_argument,
                    fmt::format("{} bytes do not hold its {} bytes", wire.size(), bytes),
                    place_of(layer));
    }
    if (bytes != 0) std::memcpy(wire.data(), tensor.data(), bytes);
    host::flip(wire.first(bytes), host::flip_pattern(layer.data_type));
    std::ranges::fill(wire.subspan(bytes), std::byte{0});
    return {};
}

Status unpack_output_by_formula(const Layer& layer, Bytes wire, MutableBytes tensor) {
    const Shape shape = REEF_TRY(shape_of(layer));
    REEF_CHECK(in_place(check_output(layer, shape), place_of(layer)));
    if (wire.size() < shape.wire_bytes || tensor.size() != shape.bytes()) {
        return fail(Cause::bad_argument,
                    fmt::format("{} and {} bytes given, the layer has {} and its tensor {}",
                                wire.size(), tensor.size(), shape.wire_bytes, shape.bytes()),
                    place_of(layer));
    }
    const OutputLayout* layout = layer.layout();
    std::size_t to = 0;
    for (std::size_t y = 0; y < shape.rows; ++y) {
        for (std::size_t x = 0; x < shape.columns; ++x) {
            const std::size_t from = layout == nullptr ? to : position_byte(*layout, y, x);
            for (std::size_t z = 0; z < shape.position_bytes; ++z) {
                const auto pattern = host::flip_pattern(layer.data_type) >> (8 * (z % 8));
                tensor[to++] = wire[from + z] ^ static_cast<std::byte>(pattern & 0xff);
            }
        }
    }
    return {};
}

Result<OutputUnpacker> OutputUnpacker::prepare(const Layer& layer) {
    const Shape shape = REEF_TRY(shape_of(layer));
    REEF_CHECK(in_place(check_output(layer, shape), place_of(layer)));
    OutputUnpacker unpacker;
    unpacker.flip_ = host::flip_pattern(layer.data_type);
    unpacker.wire_bytes_ = shape.wire_bytes;
    const OutputLayout* layout = layer.layout();
    for (std::size_t y = 0; y < shape.rows; ++y) {
        for (std::size_t x = 0; x < shape.columns; ++x) {
            const std::size_t from = layout == nullptr
                                         ? (y * shape.columns + x) * shape.position_bytes
                                         : position_byte(*layout, y, x);
            unpacker.append(from, shape.position_bytes);
        }
    }
    unpacker.group();
    apply_simd_choice();
    return unpacker;
}

void OutputUnpacker::append(std::size_t wire, std::size_t bytes) {
    if (bytes == 0) return;
    if (!rows_.empty() && rows_.back().wire + rows_.back().row_bytes == wire) {
        rows_.back().row_bytes += bytes;
    } else {
        rows_.push_back({.wire = wire,
                         .wire_stride = 0,
                         .tensor = tensor_bytes_,
                         .row_bytes = bytes,
                         .count = 1});
    }
    tensor_bytes_ += bytes;
}

void OutputUnpacker::group() {
    std::vector<Rows> grouped;
    for (const Rows& row : rows_) {
        if (!grouped.empty()) {
            Rows& last = grouped.back();
            const std::size_t stride = row.wire - last.wire - (last.count - 1) * last.wire_stride;
            const bool forward = row.wire > last.wire + (last.count - 1) * last.wire_stride;
            if (row.row_bytes == last.row_bytes && forward &&
                (last.count == 1 || stride == last.wire_stride)) {
                last.wire_stride = stride;
                ++last.count;
                continue;
            }
        }
        grouped.push_back(row);
    }
    rows_ = std::move(grouped);
}

void OutputUnpacker::run(Bytes wire, MutableBytes tensor) const {
    assert(wire.size() >= wire_bytes_ && tensor.size() == tensor_bytes_);
    host::copy_rows(rows_, wire, tensor, flip_);
}

}  // namespace reef::edgetpu
