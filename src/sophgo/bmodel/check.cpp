#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "reef/base/sha256.h"
#include "sophgo/bmodel/reports.h"

namespace reef::sophgo {
namespace {

using chip::Finding;

void check_header(const Bmodel& bmodel, std::vector<Finding>& out) {
    const auto& header = bmodel.header;
    const std::uint64_t there = bmodel.file.size() - bmodel.section_offset();
    if (header.binary_size != there)
        out.push_back({"size", "header",
                       fmt::format("the binary section has {} bytes, the file {} for it",
                                   header.binary_size, there),
                       header.binary_size > there});
    if (!header.reserved_are_zero)
        out.push_back({"reserved", "header", "reserved words are not zero", false});
    if (header.binary_size > 0xffffffff)
        out.push_back({"old-runtimes", "header",
                       "the binary section is larger than 4 GiB: runtimes from before 2025 read "
                       "its size wrongly",
                       false});
}

/// Sums that are the largest number are none.
void check_memory(const Bmodel& bmodel, std::vector<Finding>& out) {
    const BmodelMemory memory = memory_of(bmodel);
    for (const auto& [name, bytes] :
         {std::pair("device memory", memory.device()), std::pair("host memory", memory.host())})
        if (bytes == std::numeric_limits<std::uint64_t>::max())
            out.push_back(
                {"memory", name, "the sizes in the tables add up to more than 64 bits hold", true});
}

void check_ranges(const Bmodel& bmodel, const std::vector<Blob>& blobs, std::vector<Finding>& out) {
    std::vector<const Blob*> sorted;
    for (const Blob& blob : blobs) {
        if (!bytes_of(bmodel, blob))
            out.push_back({"bounds", blob.what,
                           fmt::format("{} bytes at {} leave the section of {}", blob.size,
                                       blob.start, bmodel.binary.size()),
                           true});
        else
            sorted.push_back(&blob);
    }
    std::ranges::sort(sorted, {}, [](const Blob* b) { return std::pair(b->start, b->size); });
    for (std::size_t i = 1; i < sorted.size(); ++i) {
        const Blob& a = *sorted[i - 1];
        const Blob& b = *sorted[i];
        const bool same = a.start == b.start && a.size == b.size;
        if (!same && b.start < a.start + a.size)
            out.push_back({"overlap", b.what,
                           fmt::format("its range at {} begins inside that of {}", b.start, a.what),
                           true});
    }
    const bool section = bmodel.section_offset() % 4096 == 0;
    const bool all = std::ranges::all_of(sorted, [](auto* b) { return b->start % 4096 == 0; });
    if (!section || !all)
        out.push_back({"alignment", section ? "" : "header",
                       "not 4 KB aligned: the runtime copies what it could map", false});
}

void check_coefficients(const Bmodel& bmodel, const std::string& place, const std::string& name,
                        const schema::CoeffMemT& coeff, const std::vector<Blob>& blobs,
                        std::vector<Finding>& out) {
    const auto blob = std::ranges::find(blobs, name, &Blob::name);
    if (blob == blobs.end()) return;
    if (coeff.encrypt_mode != 0) {
        out.push_back({"coefficients", place, "encrypted: nothing was compared", false});
        return;
    }
    for (const auto& one : coeff.location)
        if (one->offset > blob->size || one->size > blob->size - one->offset)
            out.push_back({"location", place,
                           fmt::format("{}: {} bytes at {} leave the coefficients' {}", one->name,
                                       one->size, one->offset, blob->size),
                           true});
    const auto bytes = bytes_of(bmodel, *blob);
    if (!bytes) return;
    if (coeff.check_code.empty()) {
        out.push_back({"coefficients", place, "without SHA-256: nothing was compared", false});
        return;
    }
    const Sha256 found = sha256(*bytes);
    if (!std::ranges::equal(found, coeff.check_code))
        out.push_back({"coefficients", place,
                       fmt::format("their SHA-256 is {}, the tables say {}", to_hex(found),
                                   to_hex(std::as_bytes(std::span(coeff.check_code)))),
                       true});
}

/// Nothing when no 64 bits hold their number.
std::optional<std::uint64_t> bytes_for(const schema::ShapeT& shape, unsigned bits) {
    std::uint64_t product = bits;
    for (const std::uint64_t dim : shape.dim)
        if (__builtin_mul_overflow(product, dim, &product)) return std::nullopt;
    return product / 8 + (product % 8 != 0 ? 1 : 0);
}

void check_tensors(const std::string& place,
                   const std::vector<std::unique_ptr<schema::TensorT>>& tensors,
                   std::vector<Finding>& out) {
    for (const auto& tensor : tensors) {
        const unsigned bits = data_type_bits(tensor->data_type);
        if (bits == 0)
            out.push_back({"data-type", fmt::format("{}: {}", place, tensor->name),
                           fmt::format("data type {} has no name", tensor->data_type), true});
        // 0: no part of a cascade; 1 to 4: model_tool shows such ones.
        if (tensor->hidden < 0 || tensor->hidden > 4)
            out.push_back(
                {"hidden", fmt::format("{}: {}", place, tensor->name),
                 fmt::format("hidden is {}: whether a cascade's user sees it is not known",
                             tensor->hidden),
                 false});
        if (tensor->size == 0 || bits == 0) continue;
        for (const auto& shape : tensor->shape) {
            const auto wanted = bytes_for(*shape, bits);
            if (!wanted || *wanted > tensor->size)
                out.push_back({"tensor-size", fmt::format("{}: {}", place, tensor->name),
                               fmt::format("{} bytes do not hold [{}] of {}", tensor->size,
                                           shape_name(*shape), data_type_name(tensor->data_type)),
                               true});
        }
    }
}

}  // namespace

chip::CheckReport check_bmodel(const Bmodel& bmodel) {
    chip::CheckReport report;
    const auto blobs = blobs_of(bmodel);
    check_header(bmodel, report.findings);
    for (const std::string& clause : bmodel.not_read)
        report.findings.push_back(
            {"not-read", "tables", clause + ": newer than this version of Reef", false});
    check_memory(bmodel, report.findings);
    check_ranges(bmodel, blobs, report.findings);
    const auto& nets = bmodel.model->net;
    std::size_t stages = 0;
    for (std::size_t n = 0; n < nets.size(); ++n) {
        for (std::size_t s = 0; s < nets[n]->parameter.size(); ++s, ++stages) {
            const auto& stage = *nets[n]->parameter[s];
            const std::string place = fmt::format("net {} stage {}", bmodel.net_names[n], s);
            if (stage.coeff_mem)
                check_coefficients(bmodel, place, fmt::format("net{}/stage{}/coeff.bin", n, s),
                                   *stage.coeff_mem, blobs, report.findings);
            check_tensors(place, stage.input_tensor, report.findings);
            check_tensors(place, stage.output_tensor, report.findings);
        }
    }
    if (!bmodel.model->kernel_module && wants_kernel_module(*bmodel.model))
        report.findings.push_back({"kernel-module",
                                   {},
                                   "none: the runtime takes the one that is installed with it",
                                   false});
    report.document = {{"nets", nets.size()}, {"stages", stages}, {"ranges", blobs.size()}};
    auto& section = report.sections.emplace_back(chip::Section{"Checked", {}, {}});
    section.add("nets, stages", fmt::format("{}, {}", nets.size(), stages));
    section.add("ranges", std::to_string(blobs.size()));
    return report;
}

}  // namespace reef::sophgo
