#include "inspect/file_text.h"

#include "inspect/chip_text.h"
#include "outputs/model_text.h"
#include "reef/base/text.h"

namespace reef::tool {

void print_file_report(Console& console, const std::string& path, std::size_t bytes,
                       std::string_view kind, const chip::FileReport& report) {
    console.print("{}  {}, {}\n", console.heading(printable(file_name(path))),
                  bytes_text(static_cast<std::int64_t>(bytes)), kind);
    for (const chip::Section& section : report.sections) print_section(console, section);
}

Json file_report_json(std::string_view verb, const std::string& path, std::size_t bytes,
                      std::string_view kind, const chip::FileReport& report) {
    Json document = json_document(verb);
    document["file"] = path;
    document["bytes"] = bytes;
    document["kind"] = kind;
    document.update(tool::to_json(chip::Value(report.document)));
    return document;
}

}  // namespace reef::tool
