#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "reef/base/sha256.h"
#include "reef/base/text.h"
#include "sophgo/bmodel/reports.h"

namespace reef::sophgo {
namespace {

using chip::Array;
using chip::Object;
using chip::Section;

std::string exact(std::uint64_t bytes) {
    return fmt::format("{} ({} bytes)", bytes_text(static_cast<std::int64_t>(bytes)), bytes);
}

std::string without_line_end(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

std::string tensor_text(const schema::TensorT& tensor) {
    std::vector<std::string> shapes;
    for (const auto& shape : tensor.shape) shapes.push_back(shape_name(*shape));
    return fmt::format("{}, [{}], {}, scale {}, zero point {}", tensor.name,
                       fmt::join(shapes, "], ["), data_type_name(tensor.data_type), tensor.scale,
                       tensor.zero_point);
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
                    fmt::format("[{}]  {}", net.name, dynamic ? "dynamic" : "static"),
                    {}};
    section.add("address mode", address_mode_name(net.addr_mode));
    if (net.cascade)
        section.add("device", fmt::format("{}, step {} of {}", net.cascade->device_id,
                                          net.cascade->step, net.cascade->main_name));
    section.add("cores", std::to_string(cores_of(stage)));
    section.add("subnets", std::to_string(stage.sub_net.size()));
    for (const auto& tensor : stage.input_tensor) section.add("input", tensor_text(*tensor));
    for (const auto& tensor : stage.output_tensor) section.add("output", tensor_text(*tensor));
    if (stage.coeff_mem && stage.coeff_mem->binary_coeff)
        section.add("coefficients",
                    fmt::format("{} at {:#x}{}", exact(stage.coeff_mem->binary_coeff->size()),
                                stage.coeff_mem->address,
                                stage.coeff_mem->encrypt_mode != 0 ? ", encrypted" : ""));
    const auto [tiu, gdma] = command_counts(stage);
    section.add("commands",
                fmt::format("{}: {} TIU, {} GDMA", exact(command_bytes(bmodel, n, s)), tiu, gdma));
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
                     {"host_bytes", stage.cpu_mem_size}};
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

Section file_section(const Bmodel& bmodel) {
    const auto& model = *bmodel.model;
    Section section{"File", {}, {}};
    section.add("version", fmt::format("{}.{}", model.type, model.version));
    section.add("chip", model.device_num > 1
                            ? fmt::format("{}, {} devices", model.chip, model.device_num)
                            : model.chip);
    section.add("created", without_line_end(model.time));
    section.add("tables", exact(bmodel.header.flatbuffer_size));
    section.add("binary", fmt::format("{}, {}4 KB aligned", exact(bmodel.header.binary_size),
                                      bmodel.section_offset() % 4096 == 0 ? "" : "not "));
    if (model.kernel_module)
        section.add("kernel module", fmt::format("{}, {}", model.kernel_module->file_name,
                                                 exact(model.kernel_module->binary->size())));
    if (model.cpuop_module)
        section.add("CPU module", fmt::format("{}, {}", model.cpuop_module->file_name,
                                              exact(model.cpuop_module->binary->size())));
    const BmodelMemory memory = memory_of(bmodel);
    section.add("device memory", fmt::format("{} (coefficients {}, commands {}, runtime {})",
                                             memory.coefficients + memory.commands + memory.runtime,
                                             memory.coefficients, memory.commands, memory.runtime));
    section.add("host memory", std::to_string(memory.host));
    return section;
}

}  // namespace

std::uint64_t activation_bytes(const schema::NetParameterT& stage) {
    std::uint64_t sum = 0;
    for (const std::uint64_t size : stage.ctx_sizes) sum += size;
    return stage.ctx_sizes.empty() ? stage.ctx_size : sum;
}

std::uint64_t command_bytes(const Bmodel& bmodel, std::size_t net, std::size_t stage) {
    const std::string prefix = fmt::format("net{}/stage{}/", net, stage);
    const bool in_subnets = std::ranges::any_of(blobs_of(bmodel), [&](const Blob& blob) {
        return blob.kind == Blob::Kind::commands && blob.name.starts_with(prefix + "subnet");
    });
    std::set<std::pair<std::uint64_t, std::uint64_t>> ranges;
    for (const Blob& blob : blobs_of(bmodel))
        if (blob.kind == Blob::Kind::commands && blob.name.starts_with(prefix) &&
            (!in_subnets || blob.name.starts_with(prefix + "subnet")))
            ranges.emplace(blob.start, blob.size);
    std::uint64_t sum = 0;
    for (const auto& [start, size] : ranges) sum += size;
    return sum;
}

BmodelMemory memory_of(const Bmodel& bmodel) {
    BmodelMemory memory;
    std::map<std::string, std::uint64_t> coefficients;
    const auto& nets = bmodel.model->net;
    for (std::size_t n = 0; n < nets.size(); ++n) {
        for (std::size_t s = 0; s < nets[n]->parameter.size(); ++s) {
            const auto& stage = *nets[n]->parameter[s];
            memory.commands += command_bytes(bmodel, n, s);
            memory.runtime = std::max(memory.runtime, activation_bytes(stage) + stage.io_size);
            memory.host = std::max<std::uint64_t>(memory.host, stage.cpu_mem_size);
            if (!stage.coeff_mem || !stage.coeff_mem->binary_coeff) continue;
            const auto& range = *stage.coeff_mem->binary_coeff;
            const auto& code = stage.coeff_mem->check_code;
            coefficients[code.empty() ? std::to_string(range.start())
                                      : to_hex(std::as_bytes(std::span(code)))] = range.size();
        }
    }
    for (const auto& [code, size] : coefficients) memory.coefficients += size;
    return memory;
}

chip::FileReport report_of(const Bmodel& bmodel, chip::Detail detail) {
    const auto& model = *bmodel.model;
    const BmodelMemory memory = memory_of(bmodel);
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
        {"binary_bytes", bmodel.header.binary_size},
        {"aligned", bmodel.section_offset() % 4096 == 0},
        {"kernel_module",
         model.kernel_module ? chip::Value(model.kernel_module->file_name) : chip::Value()},
        {"memory", Object{{"coefficients", memory.coefficients},
                          {"commands", memory.commands},
                          {"runtime", memory.runtime},
                          {"host", memory.host}}},
        {"nets", std::move(nets)},
        {"ranges", std::move(ranges)}};
    return report;
}

}  // namespace reef::sophgo
