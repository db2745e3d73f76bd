#include <fmt/format.h>

#include <set>

#include "spec.h"
#include "xml.h"

namespace reef::specgen {
namespace {

Result<Register> read_register(const Element& element, const std::string& group, unsigned bits) {
    REEF_CHECK(only_attributes(element, {"name", "offset", "reset", "count"}));
    Register out{.name = REEF_TRY(attribute(element, "name")),
                 .group = group,
                 .offset = REEF_TRY(number(element, "offset")),
                 .bits = bits,
                 .count = 1,
                 .reset = std::nullopt,
                 .fields = {}};
    if (element.Attribute("count") != nullptr) out.count = REEF_TRY(number(element, "count"));
    if (out.count == 0) return fail_at(element, "a file has a register at least");
    if (element.Attribute("reset") != nullptr) out.reset = REEF_TRY(number(element, "reset"));
    std::uint64_t claimed = 0;
    for (const auto* e = element.FirstChildElement(); e; e = e->NextSiblingElement()) {
        if (std::string_view(e->Name()) != "field") return fail_at(*e, "unknown element");
        REEF_CHECK(only_attributes(*e, {"name", "at", "width", "grade"}));
        RegisterField field{REEF_TRY(attribute(*e, "name")), REEF_TRY(number(*e, "at")),
                            REEF_TRY(number(*e, "width")), REEF_TRY(grade_of(*e)), text_of(*e)};
        if (field.width == 0 || field.position + field.width > bits)
            return fail_at(*e, "field " + field.name + " leaves its register");
        const auto mask = (field.width == 64 ? ~0ull : (1ull << field.width) - 1) << field.position;
        if (claimed & mask) return fail_at(*e, "field " + field.name + " overlaps another");
        claimed |= mask;
        out.fields.push_back(std::move(field));
    }
    return out;
}

}  // namespace

Result<RegisterFile> read_registers(const std::string& xml) {
    tinyxml2::XMLDocument document;
    if (document.Parse(xml.data(), xml.size()) != tinyxml2::XML_SUCCESS)
        return fail(Cause::bad_input, document.ErrorStr());
    const auto* root = document.RootElement();
    if (!root || std::string_view(root->Name()) != "registers")
        return fail(Cause::bad_input, "the root must be <registers>");
    REEF_CHECK(only_attributes(*root, {"name", "title"}));
    RegisterFile file{.name = REEF_TRY(chip_name(*root)),
                      .title = REEF_TRY(attribute(*root, "title")),
                      .about = doc_of(*root),
                      .registers = {}};
    for (const auto* g = root->FirstChildElement(); g; g = g->NextSiblingElement()) {
        if (std::string_view(g->Name()) == "doc") continue;
        if (std::string_view(g->Name()) != "group") return fail_at(*g, "unknown element");
        const auto group = REEF_TRY(attribute(*g, "name"));
        const bool has_bits = g->Attribute("bits") != nullptr;
        const unsigned bits = has_bits ? REEF_TRY(number(*g, "bits")) : 64;
        if (bits != 32 && bits != 64) return fail_at(*g, "registers have 32 or 64 bits");
        std::set<std::string> names;
        for (const auto* e = g->FirstChildElement(); e; e = e->NextSiblingElement()) {
            if (std::string_view(e->Name()) != "register") return fail_at(*e, "unknown element");
            file.registers.push_back(REEF_TRY(read_register(*e, group, bits)));
            if (!names.insert(file.registers.back().name).second)
                return fail_at(*e, "the name occurs twice in its group");
        }
    }
    return file;
}

}  // namespace reef::specgen
