#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>

#include "reef/base/sha256.h"
#include "reef/base/text.h"
#include "sophgo/bmodel/md5.h"
#include "sophgo/bmodel/reports.h"

namespace reef::sophgo {
namespace {

using chip::Array;
using chip::Object;
using chip::Section;

std::string exact(std::uint64_t bytes) {
    // What a broken file claims may be more.
    constexpr auto most = std::uint64_t{std::numeric_limits<std::int64_t>::max()};
    const auto shown = static_cast<std::int64_t>(std::min(bytes, most));
    return fmt::format("{} ({} bytes)", bytes_text(shown), bytes);
}

std::string without_line_end(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

/// `at_most`: of a stage for dynamic shapes.
std::string tensor_text(const schema::TensorT& tensor, bool at_most = false) {
    std::vector<std::string> shapes;
    for (const auto& shape : tensor.shape) shapes.push_back(shape_name(*shape));
    return fmt::format("{}, {}[{}], {}, scale {}, zero point {}", tensor.name,
                       at_most ? "at most " : "", fmt::join(shapes, "], ["),
                       data_type_name(tensor.data_type), tensor.scale, tensor.zero_point);
}

bool has_dynamic_inputs(const schema::NetParameterT& stage) {
    return stage.is_dynamic != 0 && (stage.n_dynamic != 0 || stage.h_w_dynamic != 0);
}

Object tensor_object(const schema::TensorT& tensor) {
    Array shapes;
    for (const auto& shape : tensor.shape) shapes.emplace_back(shape->dim);
    return {{"name", tensor.name},
            {"type", data_type_name(tensor.data_type)},
            {"shapes", std::move(shapes)},
            {"bytes", tensor.size},
            {"address", tensor.device_addr},
            {"scale", tensor.scale},
            {"zero_point", tensor.zero_point},
            {"store_mode", tensor.gmem_stmode},
            {"hidden", tensor.hidden},
            {"index", tensor.index}};
}

Array tensors(const std::vector<std::unique_ptr<schema::TensorT>>& list) {
    Array out;
    for (const auto& tensor : list) out.emplace_back(tensor_object(*tensor));
    return out;
}

std::size_t cores_of(const schema::NetParameterT& stage) {
    std::size_t cores = std::max<std::size_t>(stage.core_num, 1);
    for (const auto& subnet : stage.sub_net) cores = std::max(cores, subnet->core_commands.size());
    return cores;
}

std::pair<std::uint64_t, std::uint64_t> command_counts(const schema::NetParameterT& stage) {
    std::uint64_t tiu = 0, gdma = 0;
    const auto add = [&](const auto& groups) {
        for (const auto& group : groups) {
            tiu += group->bdc_num;
            gdma += group->gdma_num;
        }
    };
    bool in_subnets = false;
    for (const auto& subnet : stage.sub_net) {
        add(subnet->cmd_group);
        for (const auto& core : subnet->core_commands) add(core->gdma_tiu_commands);
        in_subnets = in_subnets || !subnet->cmd_group.empty() || !subnet->core_commands.empty();
    }
    // Old writers give the same commands twice.
    if (!in_subnets) add(stage.cmd_group);
    return {tiu, gdma};
}

Section stage_section(const Bmodel& bmodel, std::size_t n, std::size_t s) {
    const auto& net = *bmodel.model->net[n];
    const auto& stage = *net.parameter[s];
    const bool dynamic = stage.is_dynamic != 0;
    Section section{fmt::format("Net {} stage {}", n, s),
                    fmt::format("[{}]  {}", bmodel.net_names[n], dynamic ? "dynamic" : "static"),
                    {}};
    section.add("address mode", address_mode_name(net.addr_mode));
    if (net.cascade)
        section.add("device", fmt::format("{}, step {} of {}", net.cascade->device_id,
                                          net.cascade->step, net.cascade->main_name));
    section.add("cores", std::to_string(cores_of(stage)));
    section.add("subnets", std::to_string(stage.sub_net.size()));
    for (const auto& tensor : stage.input_tensor)
        section.add("input", tensor_text(*tensor, has_dynamic_inputs(stage)));
    for (const auto& tensor : stage.output_tensor) section.add("output", tensor_text(*tensor));
    if (stage.coeff_mem && stage.coeff_mem->binary_coeff)
        section.add("coefficients",
                    fmt::format("{} at {:#x}{}", exact(stage.coeff_mem->binary_coeff->size()),
                                stage.coeff_mem->address,
                                stage.coeff_mem->encrypt_mode != 0 ? ", encrypted" : ""));
    const auto [tiu, gdma] = command_counts(stage);
    section.add("commands",
                fmt::format("{}: {} TIU, {} GDMA", exact(command_bytes(bmodel, n, s)), tiu, gdma));
    if (stage.binary_ir && stage.binary_ir->size() > 0)
        section.add("dynamic code", exact(stage.binary_ir->size()));
    section.add("activations",
                fmt::format("{} at {:#x}", exact(activation_bytes(stage)), stage.ctx_addr));
    if (stage.io_size > 0)
        section.add("inputs, outputs",
                    fmt::format("{} at {:#x}", exact(stage.io_size), stage.io_addr));
    return section;
}

Object stage_object(const Bmodel& bmodel, std::size_t n, std::size_t s) {
    const auto& stage = *bmodel.model->net[n]->parameter[s];
    const auto [tiu, gdma] = command_counts(stage);
    Object object = {{"dynamic", stage.is_dynamic != 0},
                     {"dynamic_inputs", has_dynamic_inputs(stage)},
                     {"cores", cores_of(stage)},
                     {"subnets", stage.sub_net.size()},
                     {"inputs", tensors(stage.input_tensor)},
                     {"outputs", tensors(stage.output_tensor)},
                     {"command_bytes", command_bytes(bmodel, n, s)},
                     {"tiu_commands", tiu},
                     {"gdma_commands", gdma},
                     {"activation_address", stage.ctx_addr},
                     {"activation_bytes", activation_bytes(stage)},
                     {"io_address", stage.io_addr},
                     {"io_bytes", stage.io_size},
                     {"dynamic_code_bytes", stage.binary_ir ? stage.binary_ir->size() : 0},
                     {"host_bytes", std::uint64_t{stage.cpu_mem_size} * sizeof(float)}};
    if (stage.coeff_mem && stage.coeff_mem->binary_coeff) {
        const auto& coeff = *stage.coeff_mem;
        Array places;
        for (const auto& one : coeff.location)
            places.emplace_back(
                Object{{"name", one->name}, {"offset", one->offset}, {"bytes", one->size}});
        object.emplace_back("coefficients",
                            Object{{"address", coeff.address},
                                   {"bytes", coeff.binary_coeff->size()},
                                   {"sha256", to_hex(std::as_bytes(std::span(coeff.check_code)))},
                                   {"encrypted", coeff.encrypt_mode != 0},
                                   {"locations", std::move(places)}});
    }
    return object;
}

Section blob_section(const std::vector<Blob>& blobs) {
    Section section{"Binary section", {}, {}};
    chip::Table table{{{"what"}, {"start", true}, {"bytes", true}}, {}, 0};
    for (const Blob& blob : blobs)
        table.rows.push_back({blob.what, std::to_string(blob.start), std::to_string(blob.size)});
    section.lines.emplace_back(std::move(table));
    return section;
}

std::string device_text(const BmodelMemory& memory) {
    return fmt::format("{} (coefficients {}, commands {}, runtime {})", memory.device(),
                       memory.coefficients, memory.commands, memory.runtime);
}

std::string host_text(const BmodelMemory& memory) {
    return fmt::format("{} (coefficients {}, runtime {})", memory.host(), memory.host_coefficients,
                       memory.host_runtime);
}

Object memory_object(const BmodelMemory& memory) {
    return {{"coefficients", memory.coefficients},
            {"commands", memory.commands},
            {"runtime", memory.runtime},
            {"host", memory.host()},
            {"host_coefficients", memory.host_coefficients},
            {"host_runtime", memory.host_runtime}};
}

/// Empty when it is not in the file.
std::string module_md5(const Bmodel& bmodel) {
    const schema::Binary& range = *bmodel.model->kernel_module->binary;
    const auto bytes = bytes_of(bmodel, {Blob::Kind::module, {}, {}, range.start(), range.size()});
    if (!bytes) return {};
    const Md5 digest = md5(*bytes);
    return to_hex(std::as_bytes(std::span(digest)));
}

std::string module_text(const Bmodel& bmodel) {
    const auto& module = bmodel.model->kernel_module;
    if (!module) return "none";
    const std::string digest = module_md5(bmodel);
    return fmt::format("{}, {}, mode {}, {}", module->file_name, exact(module->binary->size()),
                       module->mode, digest.empty() ? "not in the file" : "MD5 " + digest);
}

Object module_object(const Bmodel& bmodel) {
    const auto& module = bmodel.model->kernel_module;
    return {{"bytes", module->binary->size()}, {"mode", module->mode}, {"md5", module_md5(bmodel)}};
}

Section file_section(const Bmodel& bmodel) {
    const auto& model = *bmodel.model;
    Section section{"File", {}, {}};
    section.add("version", fmt::format("{}.{}", model.type, model.version));
    section.add("chip", model.device_num > 1
                            ? fmt::format("{}, {} devices", model.chip, model.device_num)
                            : model.chip);
    section.add("created", without_line_end(model.time));
    section.add("tables", exact(bmodel.header.flatbuffer_size));
    for (const std::string& clause : bmodel.not_read)
        section.add("not read", clause + ": newer than this version of Reef");
    section.add("binary", fmt::format("{}, {}4 KB aligned", exact(bmodel.header.binary_size),
                                      bmodel.section_offset() % 4096 == 0 ? "" : "not "));
    section.add("kernel module", module_text(bmodel));
    if (model.cpuop_module)
        section.add("CPU module", fmt::format("{}, {}", model.cpuop_module->file_name,
                                              exact(model.cpuop_module->binary->size())));
    const BmodelMemory memory = memory_of(bmodel);
    section.add("device memory", device_text(memory));
    section.add("host memory", host_text(memory));
    if (const BmodelMemory tool = memory_by_model_tool(bmodel); tool != memory)
        section.add("model_tool", fmt::format("counts otherwise: device {}, host {}",
                                              device_text(tool), host_text(tool)));
    return section;
}

/// Networks that several devices run: what of their parts the user sees, by device and number.
struct CascadeTensors {
    using Place = std::pair<std::uint32_t, std::int32_t>;
    std::multimap<Place, const schema::TensorT*> inputs, outputs;
};

std::map<std::string, CascadeTensors> cascades_of(const schema::ModelT& model) {
    // The vendor's tool takes `hidden` for an input of the cascade when it is 1 or 3, for an output
    // when it is 2 or 4.
    std::map<std::string, CascadeTensors> out;
    for (const auto& net : model.net) {
        if (!net->cascade || net->cascade->main_name.empty() || net->parameter.empty()) continue;
        CascadeTensors& cascade = out[net->cascade->main_name];
        const auto& stage = *net->parameter.front();
        for (const auto* list : {&stage.input_tensor, &stage.output_tensor})
            for (const auto& tensor : *list) {
                const CascadeTensors::Place place{net->cascade->device_id, tensor->index};
                if (tensor->hidden == 1 || tensor->hidden == 3)
                    cascade.inputs.emplace(place, tensor.get());
                if (tensor->hidden == 2 || tensor->hidden == 4)
                    cascade.outputs.emplace(place, tensor.get());
            }
    }
    return out;
}

Section cascade_section(const std::string& name, const CascadeTensors& cascade) {
    Section section{"Cascade", fmt::format("[{}]", name), {}};
    for (const auto& [title, list] :
         {std::pair("input", &cascade.inputs), std::pair("output", &cascade.outputs)})
        for (const auto& [place, tensor] : *list)
            section.add(title, fmt::format("device {}: {}", place.first, tensor_text(*tensor)));
    return section;
}

Array cascade_tensors(const std::multimap<CascadeTensors::Place, const schema::TensorT*>& list) {
    Array out;
    for (const auto& [place, tensor] : list) {
        Object object = tensor_object(*tensor);
        object.emplace_back("device", place.first);
        out.emplace_back(std::move(object));
    }
    return out;
}

Array cascade_objects(const schema::ModelT& model) {
    Array out;
    for (const auto& [name, cascade] : cascades_of(model))
        out.emplace_back(Object{{"name", name},
                                {"inputs", cascade_tensors(cascade.inputs)},
                                {"outputs", cascade_tensors(cascade.outputs)}});
    return out;
}

}  // namespace

chip::FileReport report_of(const Bmodel& bmodel, chip::Detail detail) {
    const auto& model = *bmodel.model;
    chip::FileReport report;
    report.sections.push_back(file_section(bmodel));
    Array nets;
    for (std::size_t n = 0; n < model.net.size(); ++n) {
        Array stages;
        for (std::size_t s = 0; s < model.net[n]->parameter.size(); ++s) {
            report.sections.push_back(stage_section(bmodel, n, s));
            stages.emplace_back(stage_object(bmodel, n, s));
        }
        nets.emplace_back(Object{{"name", model.net[n]->name},
                                 {"address_mode", address_mode_name(model.net[n]->addr_mode)},
                                 {"stages", std::move(stages)}});
    }
    for (const auto& [name, cascade] : cascades_of(model))
        report.sections.push_back(cascade_section(name, cascade));
    const auto blobs = blobs_of(bmodel);
    if (detail == chip::Detail::all) report.sections.push_back(blob_section(blobs));
    Array ranges;
    for (const Blob& blob : blobs)
        ranges.emplace_back(
            Object{{"name", blob.name}, {"start", blob.start}, {"bytes", blob.size}});
    report.document = {
        {"version", model.type + "." + model.version},
        {"chip", model.chip},
        {"devices", model.device_num},
        {"created", without_line_end(model.time)},
        {"flatbuffer_bytes", bmodel.header.flatbuffer_size},
        {"not_read", bmodel.not_read},
        {"binary_bytes", bmodel.header.binary_size},
        {"aligned", bmodel.section_offset() % 4096 == 0},
        {"kernel_module",
         model.kernel_module ? chip::Value(model.kernel_module->file_name) : chip::Value()},
        {"kernel_module_binary",
         model.kernel_module ? chip::Value(module_object(bmodel)) : chip::Value()},
        {"memory", memory_object(memory_of(bmodel))},
        {"memory_by_model_tool", memory_object(memory_by_model_tool(bmodel))},
        {"cascades", cascade_objects(model)},
        {"nets", std::move(nets)},
        {"ranges", std::move(ranges)}};
    return report;
}

}  // namespace reef::sophgo
