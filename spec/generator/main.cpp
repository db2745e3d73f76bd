// reef_specgen WHAT IN.xml OUT: writes a header or a page from a hardware description.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "spec.h"

namespace {

using reef::Result;
using namespace reef::specgen;

Result<std::string> generate(std::string_view what, const std::string& xml) {
    if (what == "isa-header") return isa_header(REEF_TRY(read_isa(xml)));
    if (what == "isa-page") return isa_page(REEF_TRY(read_isa(xml)));
    if (what == "registers-header") return registers_header(REEF_TRY(read_registers(xml)));
    if (what == "registers-page") return registers_page(REEF_TRY(read_registers(xml)));
    if (what == "operators-header") return operators_header(REEF_TRY(read_operators(xml)));
    if (what == "operators-page") return operators_page(REEF_TRY(read_operators(xml)));
    if (what == "forms-header") return forms_header(REEF_TRY(read_forms(xml)));
    if (what == "forms-page") return forms_page(REEF_TRY(read_forms(xml)));
    if (what == "machine-header") return machine_header(REEF_TRY(read_machine(xml)));
    if (what == "machine-page") return machine_page(REEF_TRY(read_machine(xml)));
    return reef::fail(reef::Cause::bad_argument, fmt::format("unknown product '{}'", what));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        fmt::print(stderr,
                   "usage: reef_specgen isa-header|isa-page|registers-header|registers-page|"
                   "operators-header|operators-page|machine-header|machine-page|"
                   "forms-header|forms-page IN.xml OUT\n");
        return 2;
    }
    std::ifstream in(argv[2], std::ios::binary);
    std::stringstream xml;
    xml << in.rdbuf();
    if (!in) {
        fmt::print(stderr, "reef_specgen: {}: cannot be read\n", argv[2]);
        return 1;
    }
    const auto text = generate(argv[1], xml.str());
    if (!text) {
        fmt::print(stderr, "reef_specgen: {}: {}\n", argv[2], text.error().message());
        return 1;
    }
    std::ofstream out(argv[3], std::ios::binary);
    out << *text;
    out.close();
    if (!out) {
        fmt::print(stderr, "reef_specgen: {}: cannot be written\n", argv[3]);
        return 1;
    }
    return 0;
}
