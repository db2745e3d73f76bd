#include <fmt/format.h>

#include "inspect/edgetpu.h"

namespace reef::tool {
namespace {

using edgetpu::Executable;
using edgetpu::Layer;

Json meta_json(const edgetpu::Meta& meta) {
    return {{"base", edgetpu::to_string(meta.base)},
            {"layer", meta.name},
            {"batch", meta.batch},
            {"half", edgetpu::to_string(meta.half)}};
}

Json bitstreams_json(const Executable& executable) {
    Json streams = Json::array();
    for (const auto& stream : executable.bitstreams) {
        Json fields = Json::array();
        for (const auto& field : stream.field_offsets) {
            Json json{{"bit", field.offset_bit}};
            json.update(meta_json(field.meta));
            fields.push_back(std::move(json));
        }
        streams.push_back(
            {{"bytes", stream.instructions.size()}, {"address_fields", std::move(fields)}});
    }
    return streams;
}

Json hint_json(const edgetpu::DmaHint& hint) {
    Json json{{"direction", edgetpu::to_string(hint.direction)}};
    if (const auto* transfer = std::get_if<edgetpu::DmaDescriptorHint>(&hint.what)) {
        json["step"] = "transfer";
        json.update(meta_json(transfer->meta));
        json["offset_bytes"] = transfer->offset_bytes;
        json["size_bytes"] = transfer->size_bytes;
    } else if (const auto* instructions = std::get_if<edgetpu::InstructionHint>(&hint.what)) {
        json["step"] = "instructions";
        json["bitstream"] = instructions->bitstream;
    } else if (const auto* interrupt = std::get_if<edgetpu::InterruptHint>(&hint.what)) {
        json["step"] = "wait";
        json["interrupt"] = interrupt->interrupt;
    } else {
        json["step"] = std::holds_alternative<edgetpu::FenceHint>(hint.what) ? "fence" : "none";
    }
    return json;
}

Json hints_json(const std::optional<edgetpu::DmaHints>& hints) {
    if (!hints) return nullptr;
    Json steps = Json::array();
    for (const auto& hint : hints->hints) steps.push_back(hint_json(hint));
    return {{"fully_deterministic", hints->fully_deterministic}, {"steps", std::move(steps)}};
}

Json shape_json(const std::optional<edgetpu::TensorShape>& shape) {
    if (!shape) return nullptr;
    Json json = Json::array();
    for (const auto& range : *shape) json.push_back({{"start", range.start}, {"end", range.end}});
    return json;
}

Json layout_json(const edgetpu::OutputLayout& layout) {
    return {{"y_to_tile", layout.y_to_tile},
            {"x_to_tile", layout.x_to_tile},
            {"tile_byte_offset", layout.tile_byte_offset},
            {"x_to_local_byte", layout.x_to_local_byte},
            {"y_to_local_y", layout.y_to_local_y},
            {"x_to_local_row_bytes", layout.x_to_local_row_bytes}};
}

Json output_json(const edgetpu::OutputLayer& output) {
    Json json{{"data_type", edgetpu::to_string(output.data_type)},
              {"layout", nullptr},
              {"slices", nullptr}};
    if (output.layout) json["layout"] = layout_json(*output.layout);
    if (!output.shape_info) return json;
    Json slices = Json::array();
    for (const auto& slice : output.shape_info->slice_layout) {
        slices.push_back({{"shape", shape_json(slice.shape)}, {"stride", slice.stride}});
    }
    json["slices"] = {{"layouts", std::move(slices)}, {"offsets", output.shape_info->slice_offset}};
    return json;
}

Json layers_json(const std::vector<Layer>& layers) {
    Json list = Json::array();
    for (const Layer& layer : layers) {
        Json json{{"name", layer.name},
                  {"size_bytes", layer.size_bytes},
                  {"y", layer.y_dim},
                  {"x", layer.x_dim},
                  {"z", layer.z_dim},
                  {"data_type", edgetpu::to_string(layer.data_type)},
                  {"numerics", nullptr},
                  {"executions_per_inference", layer.executions_per_inference},
                  {"cache_on_dram", layer.cache_on_dram},
                  {"shape", shape_json(layer.shape)},
                  {"output", nullptr}};
        if (layer.numerics) {
            json["numerics"] = {{"scale", layer.numerics->dequantization_factor},
                                {"zero_point", layer.numerics->zero_point}};
        }
        if (const auto* output = std::get_if<edgetpu::OutputLayer>(&layer.kind)) {
            json["output"] = output_json(*output);
        }
        list.push_back(std::move(json));
    }
    return list;
}

Json executable_json(const Executable& executable) {
    Json counts = Json::object();
    for (const auto& [name, count] : count_instructions(executable)) counts[name] = count;
    return {{"type", edgetpu::to_string(executable.type)},
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
            {"bitstreams", bitstreams_json(executable)},
            {"instructions", std::move(counts)},
            {"dma_hints", hints_json(executable.dma_hints)},
            {"inputs", layers_json(executable.inputs)},
            {"outputs", layers_json(executable.outputs)}};
}

Json package_json(const edgetpu::Package& package) {
    const auto memory = edgetpu::parameter_memory_of(package);
    const InferenceTraffic traffic = traffic_of(package);
    Json json{{"compiler_version", package.compiler_version},
              {"min_runtime_version", package.min_runtime_version},
              {"model_identifier", package.model_identifier},
              {"keypair_version", package.keypair_version},
              {"virtual_chip_id", package.virtual_chip_id},
              {"signature_bytes", package.signature.size()},
              {"unknown", package.not_preserved}};
    json["parameter_memory"] = {{"bytes", edgetpu::parameter_memory_bytes},
                                {"cached_bytes", memory.cached_bytes},
                                {"occupied_bytes", nullptr},
                                {"free_bytes", nullptr},
                                {"streamed_bytes", memory.streamed_bytes}};
    if (memory.occupied_bytes) {
        json["parameter_memory"]["occupied_bytes"] = *memory.occupied_bytes;
        json["parameter_memory"]["free_bytes"] =
            edgetpu::parameter_memory_bytes - *memory.occupied_bytes;
    }
    json["bytes_per_inference"] = {{"instructions", traffic.instructions},
                                   {"inputs", traffic.inputs},
                                   {"parameters", traffic.parameters},
                                   {"outputs", traffic.outputs}};
    json["executables"] = Json::array();
    for (const Executable& executable : package.executables) {
        json["executables"].push_back(executable_json(executable));
    }
    json["chips"] = Json::array();
    for (const edgetpu::Package& chip : package.multi_chip) {
        json["chips"].push_back(package_json(chip));
    }
    return json;
}

}  // namespace

Json edgetpu_json(const EdgetpuReport& report) {
    Json json{{"compiled", report.is_compiled()}};
    if (!report.is_compiled()) {
        json["hint"] = not_compiled_text;
        return json;
    }
    if (!report.compiled) {
        json["error"] = report.compiled.error().message();
        return json;
    }
    json["packages"] = Json::array();
    for (const auto& compiled : *report.compiled) {
        Json package{{"subgraph", compiled.subgraph}, {"operator", compiled.index}};
        package.update(package_json(compiled.package));
        json["packages"].push_back(std::move(package));
    }
    return json;
}

}  // namespace reef::tool
