#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "model/flatbuffer_survey.h"
#include "reef/edgetpu/package.h"
#include "reef_schema/darwinn_generated.h"

namespace reef::edgetpu {
namespace {

using flatbuffers::Offset;
using flatbuffers::Vector;

std::unexpected<Error> damaged(std::string what) {
    return fail(Cause::bad_input, std::move(what), {},
                "the package is damaged; compile the model again");
}

/// Verifies one level and looks for what the schema does not know.
template <typename T>
Result<const T*> open_level(Bytes bytes, const flatbuffers::TypeTable& type, const char* identifier,
                            std::string_view name, std::vector<std::string>& not_preserved) {
    if (bytes.size() < 8) return damaged(fmt::format("{} bytes are too few", bytes.size()));
    flatbuffers::Verifier::Options limits;
    limits.max_depth = 16;  // the schema's own nesting is 6
    limits.max_tables =
        static_cast<flatbuffers::uoffset_t>(std::min<std::size_t>(bytes.size() / 8, 1'000'000));
    const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) return damaged("more than 2 GiB");
    flatbuffers::Verifier verifier(data, bytes.size(), limits);
    if (!verifier.VerifyBuffer<T>(identifier)) {
        return damaged(
            fmt::format("no sound FlatBuffer: a table, vector or string is misplaced or "
                        "reaches past the {} bytes",
                        bytes.size()));
    }
    auto found =
        model::survey_flatbuffer(*flatbuffers::GetRoot<flatbuffers::Table>(data), type, name);
    if (found.misaligned != nullptr) {
        return damaged(
            fmt::format("the vector at byte {} is off its alignment", found.misaligned - data));
    }
    // No part of a package is referred to twice by the vendor's compiler.
    if (found.payload_bytes > std::uint64_t{2} * bytes.size()) {
        return damaged("the same vectors are referred to again and again");
    }
    std::ranges::move(found.unknown, std::back_inserter(not_preserved));
    return flatbuffers::GetRoot<T>(data);
}

template <typename T>
std::vector<T> vector_of(const Vector<T>* values) {
    if (values == nullptr) return {};
    return {values->begin(), values->end()};
}

std::string text_of(const flatbuffers::String* text) {
    return text == nullptr ? std::string() : text->str();
}

/// `convert` of each table; absent vectors read like empty ones.
template <typename T, typename Convert>
auto list_of(const Vector<Offset<T>>* tables, Convert&& convert) {
    std::vector<decltype(convert(*tables->Get(0)))> list;
    if (tables == nullptr) return list;
    list.reserve(tables->size());
    for (const T* table : *tables) list.push_back(convert(*table));
    return list;
}

/// A 64-bit field. An executable starts at a multiple of 4 bytes in memory, and of 8 only in its
/// own FlatBuffer, so the generated accessor may not be used.
template <typename T>
T wide_field(const schema::Executable& table, flatbuffers::voffset_t field) {
    const auto* address = reinterpret_cast<const flatbuffers::Table&>(table).GetAddressOf(field);
    T value = 0;
    if (address != nullptr) std::memcpy(&value, address, sizeof value);
    return value;
}

Meta meta_of(const schema::Meta* meta) {
    if (meta == nullptr) return {};
    return {static_cast<BaseAddress>(meta->desc()), meta->batch(), text_of(meta->name()),
            static_cast<AddressHalf>(meta->position())};
}

DmaHint hint_of(const schema::DmaHint& hint) {
    DmaHint out;
    out.direction = static_cast<Direction>(hint.direction());
    if (const auto* dma = hint.any_hint_as_DmaDescriptorHint()) {
        out.what =
            DmaDescriptorHint{meta_of(dma->meta()), dma->offset_in_bytes(), dma->size_in_bytes()};
    } else if (const auto* instructions = hint.any_hint_as_InstructionHint()) {
        out.what = InstructionHint{instructions->instruction_chunk_index()};
    } else if (const auto* interrupt = hint.any_hint_as_InterruptHint()) {
        out.what = InterruptHint{interrupt->type()};
    } else if (hint.any_hint_as_FenceHint() != nullptr) {
        out.what = FenceHint{};
    }
    return out;
}

std::optional<TensorShape> shape_of(const schema::TensorShape* shape) {
    if (shape == nullptr) return std::nullopt;
    TensorShape out;
    if (shape->dimension() == nullptr) return out;
    for (const schema::Range* range : *shape->dimension()) {
        out.push_back({range->start(), range->end()});
    }
    return out;
}

OutputLayout layout_of(const schema::OutputLayout& layout) {
    return {vector_of(layout.y_coordinate_to_linear_tile_id_map()),
            vector_of(layout.x_coordinate_to_linear_tile_id_map()),
            vector_of(layout.linearized_tile_byte_offset()),
            vector_of(layout.x_coordinate_to_local_byte_offset()),
            vector_of(layout.y_coordinate_to_local_y_offset()),
            vector_of(layout.x_coordinate_to_local_y_row_size())};
}

OutputShapeInfo shape_info_of(const schema::OutputShapeInfo& info) {
    const auto slice = [](const schema::TensorLayout& layout) {
        return TensorLayout{shape_of(layout.shape()), vector_of(layout.stride())};
    };
    return {list_of(info.slice_layout(), slice), vector_of(info.slice_offset())};
}

OutputLayer output_of(const schema::OutputLayer& output) {
    OutputLayer out;
    if (output.layout() != nullptr) out.layout = layout_of(*output.layout());
    out.data_type = static_cast<DataType>(output.data_type());
    if (output.shape_info() != nullptr) out.shape_info = shape_info_of(*output.shape_info());
    return out;
}

Layer layer_of(const schema::Layer& layer) {
    Layer out;
    out.name = text_of(layer.name());
    out.size_bytes = layer.size_bytes();
    out.y_dim = layer.y_dim();
    out.x_dim = layer.x_dim();
    out.z_dim = layer.z_dim();
    if (const auto* numerics = layer.numerics()) {
        out.numerics = Numerics{numerics->zero_point(), numerics->dequantization_factor()};
    }
    out.data_type = static_cast<DataType>(layer.data_type());
    if (const auto* output = layer.any_layer_as_OutputLayer()) {
        out.kind = output_of(*output);
    } else if (layer.any_layer_as_InputLayer() != nullptr) {
        out.kind = InputLayer{};
    }
    out.executions_per_inference = layer.execution_count_per_inference();
    out.cache_on_dram = layer.cache_on_dram();
    out.shape = shape_of(layer.shape());
    return out;
}

/// Reads every level; all of it lies in `whole`.
class Reader {
  public:
    explicit Reader(SharedBytes whole) : whole_(std::move(whole)) {}

    Result<Package> package(Bytes bytes, int depth) {
        Package out;
        const auto* table = REEF_TRY(open_level<schema::Package>(bytes, *schema::PackageTypeTable(),
                                                                 schema::PackageIdentifier(),
                                                                 "the package", out.not_preserved));
        out.min_runtime_version = table->min_runtime_version();
        out.compiler_version = text_of(table->compiler_version());
        out.keypair_version = table->keypair_version();
        out.virtual_chip_id = table->virtual_chip_id();
        out.model_identifier = text_of(table->model_identifier());
        out.signature = part(table->signature());
        if (const auto* multi = table->serialized_multi_executable()) {
            REEF_CHECK(in_place(executables(part(multi).view(), out), "multi-executable"));
        }
        if (table->multi_chip_package() == nullptr) return out;
        if (depth == deepest_multi_chip) return damaged("packages within packages within packages");
        for (const auto* chip : *table->multi_chip_package()) {
            const std::string place = fmt::format("chip {}", out.multi_chip.size());
            out.multi_chip.push_back(REEF_TRY(
                in_place(package(part(chip->serialized_package()).view(), depth + 1), place)));
            note(out.multi_chip.back().not_preserved, place, out);
        }
        return out;
    }

  private:
    SharedBytes part(const Vector<std::uint8_t>* bytes) const {
        if (bytes == nullptr || bytes->size() == 0) return {};
        return {std::as_bytes(std::span(bytes->data(), bytes->size())), whole_.owner()};
    }

    static void note(const std::vector<std::string>& clauses, const std::string& place,
                     Package& out) {
        for (const std::string& clause : clauses) {
            out.not_preserved.push_back(fmt::format("{}: {}", place, clause));
        }
    }

    Status executables(Bytes bytes, Package& out) {
        const auto* table = REEF_TRY(
            open_level<schema::MultiExecutable>(bytes, *schema::MultiExecutableTypeTable(), nullptr,
                                                "the multi-executable", out.not_preserved));
        if (table->serialized_executables() == nullptr) return {};
        for (const flatbuffers::String* one : *table->serialized_executables()) {
            const std::string place = fmt::format("executable {}", out.executables.size());
            std::vector<std::string> unknown;
            const Bytes inner = std::as_bytes(std::span(one->data(), one->size()));
            out.executables.push_back(REEF_TRY(in_place(executable(inner, unknown), place)));
            note(unknown, place, out);
        }
        return {};
    }

    Result<Executable> executable(Bytes bytes, std::vector<std::string>& unknown) const {
        const auto* table = REEF_TRY(open_level<schema::Executable>(
            bytes, *schema::ExecutableTypeTable(), nullptr, "the executable", unknown));
        using Field = schema::Executable::FlatBuffersVTableOffset;
        Executable out;
        out.type = static_cast<ExecutableType>(table->type());
        out.name = text_of(table->name());
        out.chip = text_of(table->chip());
        out.version = table->version();
        out.parameter_caching_token =
            wide_field<std::uint64_t>(*table, Field::VT_PARAMETER_CACHING_TOKEN);
        out.batch_size = table->batch_size();
        out.scratch_size_bytes = table->scratch_size_bytes();
        out.used_narrow_memory_bytes_per_tile = table->used_narrow_memory_bytes_per_tile();
        out.estimated_cycles = table->estimated_cycles();
        out.estimated_cycles_64bit =
            wide_field<std::int64_t>(*table, Field::VT_ESTIMATED_CYCLES_64BIT);
        out.use_tpu_dram_for_parameters = table->use_tpu_dram_for_parameters();
        out.serialized_model = part(table->serialized_model());
        out.parameters = part(table->parameters());
        out.bitstreams = list_of(table->instruction_bitstreams(), [this](const auto& stream) {
            const auto field = [](const schema::FieldOffset& offset) {
                return FieldOffset{meta_of(offset.meta()), offset.offset_bit()};
            };
            return InstructionBitstream{part(stream.bitstream()),
                                        list_of(stream.field_offsets(), field)};
        });
        if (const auto* hints = table->dma_hints()) {
            out.dma_hints =
                DmaHints{list_of(hints->hints(), hint_of), hints->fully_deterministic()};
        }
        out.inputs = list_of(table->input_layers(), layer_of);
        out.outputs = list_of(table->output_layers(), layer_of);
        return out;
    }

    SharedBytes whole_;
};

}  // namespace

Result<Package> read_package(const SharedBytes& bytes) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.view().data()) % 4 == 0;
    const SharedBytes whole = aligned ? bytes : SharedBytes::copy_of(bytes.view());
    Package package = REEF_TRY(in_place(Reader(whole).package(whole.view(), 0), "package"));
    if (auto sound = validate(package); !sound) {
        Error error = std::move(sound).error();
        error.cause = Cause::bad_input;
        return std::unexpected(std::move(error).with_hint("compile the model again"));
    }
    return package;
}

}  // namespace reef::edgetpu
