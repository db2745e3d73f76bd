#include "sophgo/bmodel/container.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "model/flatbuffer_survey.h"

namespace reef::sophgo {
namespace {

constexpr std::uint32_t second_magic = 0xff55aaff;
constexpr std::array<std::pair<std::string_view, unsigned>, 11> data_types = {{{"float32", 32},
                                                                               {"float16", 16},
                                                                               {"int8", 8},
                                                                               {"uint8", 8},
                                                                               {"int16", 16},
                                                                               {"uint16", 16},
                                                                               {"int32", 32},
                                                                               {"uint32", 32},
                                                                               {"bfloat16", 16},
                                                                               {"int4", 4},
                                                                               {"uint4", 4}}};
constexpr std::array<std::string_view, 6> address_modes = {"basic",       "io_alone", "io_tag",
                                                           "io_tag_fuse", "io_reloc", "in_reuse"};

std::uint32_t first_word(Bytes file) {
    return ByteReader(file).u32().value_or(0);
}

Result<BmodelHeader> read_header(Bytes file) {
    ByteReader reader(file);
    BmodelHeader header;
    if (const auto magic = REEF_TRY(reader.u32()); magic != header.magic_number)
        return fail(Cause::unsupported, fmt::format("magic number {:#010x}", magic), "byte 0",
                    "files that begin with 0xff55aaee are read");
    header.header_size = REEF_TRY(reader.u32());
    header.flatbuffer_size = REEF_TRY(reader.u32());
    header.binary_size = REEF_TRY(reader.u64());
    if (header.header_size != BmodelHeader::bytes)
        return fail(
            Cause::unsupported,
            fmt::format("a header of {} bytes, not {}", header.header_size, BmodelHeader::bytes),
            "byte 4");
    while (reader.offset() < BmodelHeader::bytes)
        if (REEF_TRY(reader.u32()) != 0) header.reserved_are_zero = false;
    if (header.flatbuffer_size > file.size() - BmodelHeader::bytes)
        return fail(
            Cause::bad_input,
            fmt::format("tables of {} bytes in a file of {}", header.flatbuffer_size, file.size()),
            "byte 8", "the file is cut off, or encrypted");
    return header;
}

/// The verified FlatBuffer in memory of its alignment.
Status read_tables(Bytes tables, Bmodel& out) {
    // The library wants its buffer aligned, and the file may stand anywhere in memory.
    out.tables.resize((tables.size() + 7) / 8);
    std::ranges::copy(tables, std::as_writable_bytes(std::span(out.tables)).begin());
    const auto* data = reinterpret_cast<const std::uint8_t*>(out.tables.data());
    flatbuffers::Verifier verifier(data, tables.size());
    if (tables.size() < 8 || !verifier.VerifyBuffer<schema::Model>(nullptr))
        return fail(Cause::bad_input, "the tables are no valid FlatBuffer",
                    fmt::format("byte {}", BmodelHeader::bytes),
                    "the file is damaged, or its tables are encrypted");
    auto found = model::survey_flatbuffer(*flatbuffers::GetRoot<flatbuffers::Table>(data),
                                          *schema::ModelTypeTable(), "the tables");
    if (found.misaligned != nullptr)
        return fail(Cause::bad_input, "a vector of the tables is off its alignment",
                    fmt::format("byte {}", BmodelHeader::bytes + (found.misaligned - data)),
                    "the file is damaged");
    // Some thousand references to one long vector would be unpacked into as many copies.
    if (found.payload_bytes > std::uint64_t{16} * tables.size())
        return fail(Cause::bad_input, "the tables refer to the same vectors again and again",
                    fmt::format("byte {}", BmodelHeader::bytes), "the file is damaged");
    out.not_read = std::move(found.unknown);
    return {};
}

Result<std::unique_ptr<const schema::ModelT>> unpack(const schema::Model& root) {
    for (const auto* net : *root.net())
        if ((net->net_static() != nullptr && net->net_static()->size() > 0) ||
            (net->net_dynamic() != nullptr && net->net_dynamic()->size() > 0))
            return fail(Cause::unsupported,
                        "a net in the tables net_static or net_dynamic of old writers",
                        "net " + net->name()->str(), "compile it with a newer toolchain");
    return std::unique_ptr<const schema::ModelT>(root.UnPack());
}

/// A net whose name another one has, too, is known by its number among them.
std::vector<std::string> different_names(const schema::ModelT& model) {
    std::vector<std::string> out;
    std::set<std::string> taken;
    std::map<std::string, std::size_t> again;
    for (const auto& net : model.net) {
        std::string name = net->name;
        std::size_t& number = again[name];
        while (!taken.insert(name).second) name = fmt::format("{} ({})", net->name, ++number + 1);
        out.push_back(std::move(name));
    }
    return out;
}

/// Names and kinds of the ranges that one place of the tables holds.
class BlobCollector {
  public:
    std::vector<Blob> blobs;

    void add(Blob::Kind kind, std::string name, std::string what, const schema::Binary* range) {
        if (range == nullptr || range->size() == 0) return;
        blobs.push_back({kind, std::move(name), std::move(what), range->start(), range->size()});
    }
    void add_group(const std::string& name, const std::string& what,
                   const schema::CmdGroupT& group) {
        add(Blob::Kind::commands, name + "tiu.bin", what + ": TIU commands",
            group.binary_bdc.get());
        add(Blob::Kind::commands, name + "gdma.bin", what + ": GDMA commands",
            group.binary_gdma.get());
    }
    void add_groups(const std::string& name, const std::string& what,
                    const std::vector<std::unique_ptr<schema::CmdGroupT>>& groups) {
        for (std::size_t i = 0; i < groups.size(); ++i)
            add_group(fmt::format("{}group{}/", name, i), fmt::format("{} group {}", what, i),
                      *groups[i]);
    }
    void add_list(const std::string& name, const std::string& what, std::string_view engine,
                  const std::vector<schema::Binary>& ranges) {
        for (std::size_t i = 0; i < ranges.size(); ++i)
            add(Blob::Kind::commands, fmt::format("{}{}{}.bin", name, engine, i),
                fmt::format("{}: {} commands {}", what, engine, i), &ranges[i]);
    }
    void add_subnet(const std::string& name, const std::string& what,
                    const schema::SubNetT& subnet) {
        add_groups(name, what, subnet.cmd_group);
        for (std::size_t c = 0; c < subnet.core_commands.size(); ++c) {
            const auto& core = *subnet.core_commands[c];
            const std::string at = fmt::format("{}core{}/", name, c);
            const std::string text = fmt::format("{} core {}", what, c);
            add_groups(at, text, core.gdma_tiu_commands);
            add_list(at, text, "sdma", core.sdma_commands);
            add_list(at, text, "hau", core.hau_commands);
            add_list(at, text, "cdma", core.cdma_commands);
        }
        for (std::size_t p = 0; p < subnet.cpu_param.size(); ++p) {
            const auto& param = *subnet.cpu_param[p];
            add(Blob::Kind::other, fmt::format("{}cpu{}.bin", name, p),
                fmt::format("{}: parameters of CPU layer {}", what, p), param.binary_param.get());
            for (std::size_t k = 0; k < param.cpu_const.size(); ++k)
                add(Blob::Kind::other, fmt::format("{}cpu{}_const{}.bin", name, p, k),
                    fmt::format("{}: constant {} of CPU layer {}", what, k, p),
                    param.cpu_const[k]->const_data.get());
        }
    }
    void add_stage(const std::string& name, const std::string& what,
                   const schema::NetParameterT& stage) {
        if (stage.coeff_mem)
            add(Blob::Kind::coefficients, name + "coeff.bin", what + ": coefficients",
                stage.coeff_mem->binary_coeff.get());
        add_groups(name, what, stage.cmd_group);
        for (std::size_t s = 0; s < stage.sub_net.size(); ++s)
            add_subnet(fmt::format("{}subnet{}/", name, s), fmt::format("{} subnet {}", what, s),
                       *stage.sub_net[s]);
        add(Blob::Kind::dynamic_code, name + "dynamic.bin", what + ": code for dynamic shapes",
            stage.binary_ir.get());
        add(Blob::Kind::other, name + "profile.bin", what + ": profile", stage.net_profile.get());
        add(Blob::Kind::other, name + "statistics.bin", what + ": statistics",
            stage.net_stat.get());
        add(Blob::Kind::other, name + "tensor_location.bin", what + ": places of tensors",
            stage.tensor_loc.get());
    }
};

}  // namespace

bool is_bmodel(Bytes file) {
    const std::uint32_t word = first_word(file);
    return word == BmodelHeader::magic_number || word == second_magic;
}

Result<Bmodel> read_bmodel(const SharedBytes& file) {
    Bmodel bmodel;
    bmodel.header = REEF_TRY(read_header(file.view()));
    bmodel.file = file;
    REEF_CHECK(read_tables(bmodel.table_bytes(), bmodel));
    bmodel.model = REEF_TRY(unpack(*flatbuffers::GetRoot<schema::Model>(bmodel.tables.data())));
    bmodel.net_names = different_names(*bmodel.model);
    const std::size_t left = file.size() - bmodel.section_offset();
    bmodel.binary = file.part(
        bmodel.section_offset(),
        static_cast<std::size_t>(std::min<std::uint64_t>(left, bmodel.header.binary_size)));
    return bmodel;
}

std::vector<Blob> blobs_of(const Bmodel& bmodel) {
    BlobCollector collector;
    const schema::ModelT& model = *bmodel.model;
    for (std::size_t n = 0; n < model.net.size(); ++n) {
        const auto& net = *model.net[n];
        for (std::size_t s = 0; s < net.parameter.size(); ++s)
            collector.add_stage(stage_prefix(n, s),
                                fmt::format("net {} stage {}", bmodel.net_names[n], s),
                                *net.parameter[s]);
    }
    if (model.kernel_module)
        collector.add(Blob::Kind::module, "kernel_module.so",
                      "kernel module " + model.kernel_module->file_name,
                      model.kernel_module->binary.get());
    if (model.cpuop_module)
        collector.add(Blob::Kind::module, "cpuop_module.so",
                      "module of CPU layers " + model.cpuop_module->file_name,
                      model.cpuop_module->binary.get());
    collector.add(Blob::Kind::module, "backend.so", "backend library", model.lib_backend.get());
    return std::move(collector.blobs);
}

std::vector<Blob> stage_blobs_of(const Bmodel& bmodel, std::size_t net, std::size_t stage) {
    BlobCollector collector;
    collector.add_stage(stage_prefix(net, stage),
                        fmt::format("net {} stage {}", bmodel.net_names[net], stage),
                        *bmodel.model->net[net]->parameter[stage]);
    return std::move(collector.blobs);
}

std::string stage_prefix(std::size_t net, std::size_t stage) {
    return fmt::format("net{}/stage{}/", net, stage);
}

std::optional<Bytes> bytes_of(const Bmodel& bmodel, const Blob& blob) {
    const std::uint64_t section = bmodel.binary.size();
    if (blob.start > section || blob.size > section - blob.start) return std::nullopt;
    return bmodel.binary.view().subspan(static_cast<std::size_t>(blob.start),
                                        static_cast<std::size_t>(blob.size));
}

std::string data_type_name(std::uint32_t type) {
    return type < data_types.size() ? std::string(data_types[type].first)
                                    : fmt::format("type {}", type);
}

unsigned data_type_bits(std::uint32_t type) {
    return type < data_types.size() ? data_types[type].second : 0;
}

std::string address_mode_name(std::int32_t mode) {
    return mode >= 0 && static_cast<std::size_t>(mode) < address_modes.size()
               ? std::string(address_modes[static_cast<std::size_t>(mode)])
               : fmt::format("mode {}", mode);
}

std::string shape_name(const schema::ShapeT& shape) {
    return shape.dim.empty() ? "scalar" : fmt::format("{}", fmt::join(shape.dim, "x"));
}

bool wants_kernel_module(const schema::ModelT& model) {
    return model.chip != "BM1682" && model.chip != "BM1684";
}

}  // namespace reef::sophgo
