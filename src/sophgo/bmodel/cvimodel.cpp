// The older container of the cv18xx chips; of its inside only the header is read.
#include <fmt/format.h>

#include "reef/base/sha256.h"
#include "sophgo/bmodel/md5.h"
#include "sophgo/bmodel/parts.h"

namespace reef::sophgo {
namespace {

/// 48 bytes: magic, u32 size of the tables, u8 major, u8 minor version, MD5 of the rest of the
/// file, chip, padding.
struct CvimodelHeader {
    std::uint32_t table_bytes = 0;
    unsigned major = 0, minor = 0;
    std::string md5, chip;
    Bytes rest;  ///< what the MD5 is of

    [[nodiscard]] std::string version() const { return fmt::format("{}.{}", major, minor); }
};

constexpr std::string_view cvimodel_magic = "CviModel";

Result<CvimodelHeader> read_cvimodel(const SharedBytes& file) {
    constexpr std::size_t digest_bytes = 16, chip_bytes = 16, padding = 2;
    ByteReader reader(file.view());
    CvimodelHeader header;
    REEF_CHECK(reader.skip(cvimodel_magic.size()));
    header.table_bytes = REEF_TRY(reader.u32());
    header.major = REEF_TRY(reader.u8());
    header.minor = REEF_TRY(reader.u8());
    header.md5 = to_hex(REEF_TRY(reader.take(digest_bytes)));
    const auto chip = as_text(REEF_TRY(reader.take(chip_bytes)));
    header.chip = chip.substr(0, chip.find('\0'));
    REEF_CHECK(reader.skip(padding));
    header.rest = REEF_TRY(reader.take(reader.remaining()));
    if (header.table_bytes > header.rest.size())
        return fail(
            Cause::bad_input,
            fmt::format("tables of {} bytes in a file of {}", header.table_bytes, file.size()),
            "byte 8", "the file is cut off");
    return header;
}

template <class Part>
class CvimodelPart : public Part {
  public:
    [[nodiscard]] std::string_view family() const override { return "sophgo"; }
    [[nodiscard]] std::string_view kind() const override { return "cvimodel"; }
    [[nodiscard]] std::string_view ending() const override { return "cvimodel"; }
    [[nodiscard]] bool recognises(Bytes file) const override {
        return as_text(file).starts_with(cvimodel_magic);
    }
};

class CvimodelInspector final : public CvimodelPart<chip::FileInspector> {
  public:
    [[nodiscard]] Result<chip::FileReport> inspect(const SharedBytes& file,
                                                   chip::Detail) const override {
        const CvimodelHeader header = REEF_TRY(read_cvimodel(file));
        chip::FileReport report;
        auto& section = report.sections.emplace_back(chip::Section{"File", {}, {}});
        section.add("version", header.version());
        section.add("chip", header.chip);
        section.add("tables", fmt::format("{} bytes", header.table_bytes));
        section.add("MD5", header.md5);
        section.lines.emplace_back(
            chip::Note{"only the header of this container is read; reef check compares the MD5"});
        report.document = {{"version", header.version()},
                           {"chip", header.chip},
                           {"flatbuffer_bytes", header.table_bytes},
                           {"md5", header.md5}};
        return report;
    }
};

class CvimodelChecker final : public CvimodelPart<chip::FileChecker> {
  public:
    [[nodiscard]] Result<chip::CheckReport> check(const SharedBytes& file) const override {
        const CvimodelHeader header = REEF_TRY(read_cvimodel(file));
        const Md5 digest = md5(header.rest);
        const std::string is = to_hex(std::as_bytes(std::span(digest)));
        chip::CheckReport report;
        if (is != header.md5)
            report.findings.push_back({"md5", "header",
                                       fmt::format("it says {}, the {} bytes behind it have {}",
                                                   header.md5, header.rest.size(), is),
                                       true});
        auto& section = report.sections.emplace_back(chip::Section{"Checked", {}, {}});
        section.add("chip", header.chip);
        section.add("bytes", fmt::format("{}, all by their MD5", header.rest.size()));
        report.document = {{"chip", header.chip}, {"bytes", header.rest.size()}, {"md5", is}};
        return report;
    }
};

}  // namespace

std::unique_ptr<chip::FileInspector> cvimodel_inspector() {
    return std::make_unique<CvimodelInspector>();
}
std::unique_ptr<chip::FileChecker> cvimodel_checker() {
    return std::make_unique<CvimodelChecker>();
}

}  // namespace reef::sophgo
