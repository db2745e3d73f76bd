#include <fmt/format.h>

#include "edgetpu/inspect/inspection.h"
#include "reef/edgetpu/estimate.h"
#include "reef/edgetpu/parameter_memory.h"

namespace reef::edgetpu {
namespace {

using chip::Array;
using chip::Object;
using chip::Value;

void append(Object& object, Object more) {
    for (auto& member : more) object.push_back(std::move(member));
}

Object members_of(const Meta& meta) {
    return {{"base", to_string(meta.base)},
            {"layer", meta.name},
            {"batch", meta.batch},
            {"half", to_string(meta.half)}};
}

Array bitstreams_of(const Executable& executable) {
    Array streams;
    for (const auto& stream : executable.bitstreams) {
        Array fields;
        for (const auto& field : stream.field_offsets) {
            Object one{{"bit", field.offset_bit}};
            append(one, members_of(field.meta));
            fields.emplace_back(std::move(one));
        }
        streams.emplace_back(
            Object{{"bytes", stream.instructions.size()}, {"address_fields", std::move(fields)}});
    }
    return streams;
}

Object step_of(const DmaHint& hint) {
    Object step{{"direction", to_string(hint.direction)}};
    if (const auto* transfer = std::get_if<DmaDescriptorHint>(&hint.what)) {
        step.emplace_back("step", "transfer");
        append(step, members_of(transfer->meta));
        step.emplace_back("offset_bytes", transfer->offset_bytes);
        step.emplace_back("size_bytes", transfer->size_bytes);
    } else if (const auto* instructions = std::get_if<InstructionHint>(&hint.what)) {
        step.emplace_back("step", "instructions");
        step.emplace_back("bitstream", instructions->bitstream);
    } else if (const auto* interrupt = std::get_if<InterruptHint>(&hint.what)) {
        step.emplace_back("step", "wait");
        step.emplace_back("interrupt", interrupt->interrupt);
    } else {
        step.emplace_back("step", std::holds_alternative<FenceHint>(hint.what) ? "fence" : "none");
    }
    return step;
}

Value value_of(const std::optional<DmaHints>& hints) {
    if (!hints) return {};
    Array steps;
    for (const auto& hint : hints->hints) steps.emplace_back(step_of(hint));
    return Object{{"fully_deterministic", hints->fully_deterministic}, {"steps", std::move(steps)}};
}

Value value_of(const std::optional<TensorShape>& shape) {
    if (!shape) return {};
    Array ranges;
    for (const auto& range : *shape)
        ranges.emplace_back(Object{{"start", range.start}, {"end", range.end}});
    return ranges;
}

Value value_of(const OutputLayout* layout) {
    if (layout == nullptr) return {};
    return Object{{"y_to_tile", layout->y_to_tile},
                  {"x_to_tile", layout->x_to_tile},
                  {"tile_byte_offset", layout->tile_byte_offset},
                  {"x_to_local_byte", layout->x_to_local_byte},
                  {"y_to_local_y", layout->y_to_local_y},
                  {"x_to_local_row_bytes", layout->x_to_local_row_bytes}};
}

Value value_of(const std::optional<OutputShapeInfo>& shape) {
    if (!shape) return {};
    Array layouts;
    for (const auto& slice : shape->slice_layout)
        layouts.emplace_back(Object{{"shape", value_of(slice.shape)}, {"stride", slice.stride}});
    return Object{{"layouts", std::move(layouts)}, {"offsets", shape->slice_offset}};
}

Value value_of(const OutputLayer* output) {
    if (output == nullptr) return {};
    return Object{{"data_type", to_string(output->data_type)},
                  {"layout", value_of(output->layout ? &*output->layout : nullptr)},
                  {"slices", value_of(output->shape_info)}};
}

Value value_of(const std::optional<Numerics>& numerics) {
    if (!numerics) return {};
    return Object{{"scale", numerics->dequantization_factor}, {"zero_point", numerics->zero_point}};
}

Array layers_of(const std::vector<Layer>& layers) {
    Array list;
    for (const Layer& layer : layers)
        list.emplace_back(Object{{"name", layer.name},
                                 {"size_bytes", layer.size_bytes},
                                 {"y", layer.y_dim},
                                 {"x", layer.x_dim},
                                 {"z", layer.z_dim},
                                 {"data_type", to_string(layer.data_type)},
                                 {"numerics", value_of(layer.numerics)},
                                 {"executions_per_inference", layer.executions_per_inference},
                                 {"cache_on_dram", layer.cache_on_dram},
                                 {"shape", value_of(layer.shape)},
                                 {"output", value_of(std::get_if<OutputLayer>(&layer.kind))}});
    return list;
}

Object document_of(const Executable& executable) {
    Object counts;
    for (const auto& [name, count] : count_instructions(executable))
        counts.emplace_back(name, count);
    return {{"type", to_string(executable.type)},
            {"name", executable.name},
            {"version", executable.version},
            {"chip", executable.chip},
            {"token", fmt::format("{:#018x}", executable.parameter_caching_token)},
            {"batch_size", executable.batch_size},
            {"scratch_bytes", executable.scratch_size_bytes},
            {"narrow_memory_bytes_per_tile", executable.used_narrow_memory_bytes_per_tile},
            {"estimated_cycles", executable.estimated_cycles},
            {"estimated_cycles_64bit", executable.estimated_cycles_64bit},
            {"parameters_in_dram", executable.use_tpu_dram_for_parameters},
            {"parameter_bytes", executable.parameters.size()},
            {"serialized_model_bytes", executable.serialized_model.size()},
            {"bitstreams", bitstreams_of(executable)},
            {"instructions", std::move(counts)},
            {"dma_hints", value_of(executable.dma_hints)},
            {"inputs", layers_of(executable.inputs)},
            {"outputs", layers_of(executable.outputs)}};
}

Object memory_of(const Package& package) {
    const auto memory = parameter_memory_of(package);
    Object out{{"bytes", parameter_memory_bytes}, {"cached_bytes", memory.cached_bytes}};
    out.emplace_back("occupied_bytes",
                     memory.occupied_bytes ? Value(*memory.occupied_bytes) : Value());
    out.emplace_back("free_bytes", memory.occupied_bytes
                                       ? Value(parameter_memory_bytes - *memory.occupied_bytes)
                                       : Value());
    out.emplace_back("streamed_bytes", memory.streamed_bytes);
    return out;
}

/// Null where no program computes, or none that can be followed.
Value estimate_of(const Package& package) {
    const auto time = estimate(package);
    if (!time) return {};
    return Object{{"cycles", time->computing.cycles},
                  {"cached_s", time->cached_seconds},
                  {"first_s", time->first_seconds},
                  {"counted_once", time->computing.counted_once}};
}

Object document_of(const Package& package) {
    const InferenceTraffic traffic = traffic_of(package);
    Array executables;
    for (const Executable& executable : package.executables)
        executables.emplace_back(document_of(executable));
    Array chips;
    for (const Package& chip : package.multi_chip) chips.emplace_back(document_of(chip));
    return {{"compiler_version", package.compiler_version},
            {"min_runtime_version", package.min_runtime_version},
            {"model_identifier", package.model_identifier},
            {"keypair_version", package.keypair_version},
            {"virtual_chip_id", package.virtual_chip_id},
            {"signature_bytes", package.signature.size()},
            {"unknown", package.not_preserved},
            {"parameter_memory", memory_of(package)},
            {"estimate", estimate_of(package)},
            {"bytes_per_inference", Object{{"instructions", traffic.instructions},
                                           {"inputs", traffic.inputs},
                                           {"parameters", traffic.parameters},
                                           {"outputs", traffic.outputs}}},
            {"executables", std::move(executables)},
            {"chips", std::move(chips)}};
}

}  // namespace

Object ModelInspection::document() const {
    Object out{{"compiled", is_compiled()}};
    if (!is_compiled()) {
        out.emplace_back("hint", not_compiled());
    } else if (!compiled_) {
        out.emplace_back("error", compiled_.error().message());
    } else {
        Array packages;
        for (const auto& compiled : *compiled_) {
            Object package{{"subgraph", compiled.subgraph}, {"operator", compiled.index}};
            append(package, document_of(compiled.package));
            packages.emplace_back(std::move(package));
        }
        out.emplace_back("packages", std::move(packages));
    }
    return out;
}

}  // namespace reef::edgetpu
