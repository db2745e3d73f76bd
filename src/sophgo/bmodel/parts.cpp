#include "sophgo/bmodel/parts.h"

#include <fmt/format.h>

#include "reef/base/sha256.h"
#include "sophgo/bmodel/reports.h"

namespace reef::sophgo {
namespace {

template <class Part>
class BmodelPart : public Part {
  public:
    [[nodiscard]] std::string_view family() const override { return "sophgo"; }
    [[nodiscard]] std::string_view kind() const override { return "bmodel"; }
    [[nodiscard]] bool recognises(Bytes file) const override { return is_bmodel(file); }
};

class Inspector final : public BmodelPart<chip::FileInspector> {
  public:
    [[nodiscard]] Result<chip::FileReport> inspect(const SharedBytes& file,
                                                   chip::Detail detail) const override {
        return report_of(REEF_TRY(read_bmodel(file)), detail);
    }
};

class Checker final : public BmodelPart<chip::FileChecker> {
  public:
    [[nodiscard]] Result<chip::CheckReport> check(const SharedBytes& file) const override {
        return check_bmodel(REEF_TRY(read_bmodel(file)));
    }
};

class Comparer final : public BmodelPart<chip::FileComparer> {
  public:
    [[nodiscard]] Result<chip::FileDifferences> differences(const SharedBytes& a,
                                                            const SharedBytes& b) const override {
        return bmodel_differences(REEF_TRY(in_place(read_bmodel(a), "A")),
                                  REEF_TRY(in_place(read_bmodel(b), "B")));
    }
};

class Extractor final : public BmodelPart<chip::FileExtractor> {
  public:
    [[nodiscard]] Result<std::vector<chip::FilePart>> parts_of(
        const SharedBytes& file) const override {
        const Bmodel bmodel = REEF_TRY(read_bmodel(file));
        std::vector<chip::FilePart> parts;
        for (Blob& blob : blobs_of(bmodel)) {
            if (!bytes_of(bmodel, blob))
                return fail(Cause::bad_input,
                            fmt::format("{} bytes at {} leave the section of {}", blob.size,
                                        blob.start, bmodel.binary.size()),
                            blob.what, "the file is cut off");
            parts.push_back({std::move(blob.name), std::move(blob.what),
                             bmodel.binary.part(static_cast<std::size_t>(blob.start),
                                                static_cast<std::size_t>(blob.size))});
        }
        return parts;
    }
};

/// The older container of the cv18xx chips; of its inside only the header is read.
class CvimodelInspector final : public chip::FileInspector {
  public:
    static constexpr std::string_view magic = "CviModel";

    [[nodiscard]] std::string_view family() const override { return "sophgo"; }
    [[nodiscard]] std::string_view kind() const override { return "cvimodel"; }
    [[nodiscard]] bool recognises(Bytes file) const override {
        return as_text(file).starts_with(magic);
    }
    /// Header, 48 bytes: magic, u32 size of the tables, u8 major, u8 minor version, MD5 of the rest
    /// of the file, chip, padding.
    [[nodiscard]] Result<chip::FileReport> inspect(const SharedBytes& file,
                                                   chip::Detail) const override {
        constexpr std::size_t digest_bytes = 16, chip_bytes = 16;
        ByteReader reader(file.view());
        REEF_CHECK(reader.skip(magic.size()));
        const std::uint32_t tables = REEF_TRY(reader.u32());
        const unsigned major = REEF_TRY(reader.u8());
        const unsigned minor = REEF_TRY(reader.u8());
        const std::string digest = to_hex(REEF_TRY(reader.take(digest_bytes)));
        const auto chip_field = as_text(REEF_TRY(reader.take(chip_bytes)));
        const std::string chip(chip_field.substr(0, chip_field.find('\0')));
        if (tables > reader.remaining())
            return fail(Cause::bad_input,
                        fmt::format("tables of {} bytes in a file of {}", tables, file.size()),
                        "byte 8", "the file is cut off");
        chip::FileReport report;
        auto& section = report.sections.emplace_back(chip::Section{"File", {}, {}});
        section.add("version", fmt::format("{}.{}", major, minor));
        section.add("chip", chip);
        section.add("tables", fmt::format("{} bytes", tables));
        section.add("MD5", digest);
        section.lines.emplace_back(chip::Note{"only the header of this container is read"});
        report.document = {{"version", fmt::format("{}.{}", major, minor)},
                           {"chip", chip},
                           {"flatbuffer_bytes", tables},
                           {"md5", digest}};
        return report;
    }
};

}  // namespace

std::unique_ptr<chip::FileInspector> bmodel_inspector() {
    return std::make_unique<Inspector>();
}
std::unique_ptr<chip::FileChecker> bmodel_checker() {
    return std::make_unique<Checker>();
}
std::unique_ptr<chip::FileComparer> bmodel_comparer() {
    return std::make_unique<Comparer>();
}
std::unique_ptr<chip::FileExtractor> bmodel_extractor() {
    return std::make_unique<Extractor>();
}
std::unique_ptr<chip::FileInspector> cvimodel_inspector() {
    return std::make_unique<CvimodelInspector>();
}

}  // namespace reef::sophgo
