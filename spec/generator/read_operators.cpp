#include <fmt/format.h>

#include <set>

#include "spec.h"
#include "xml.h"

namespace reef::specgen {

Result<OperatorList> read_operators(const std::string& xml) {
    tinyxml2::XMLDocument document;
    if (document.Parse(xml.data(), xml.size()) != tinyxml2::XML_SUCCESS)
        return fail(Cause::bad_input, document.ErrorStr());
    const auto* root = document.RootElement();
    if (!root || std::string_view(root->Name()) != "operators")
        return fail(Cause::bad_input, "the root must be <operators>");
    REEF_CHECK(only_attributes(*root, {"name", "title"}));
    OperatorList list{.name = REEF_TRY(chip_name(*root)),
                      .title = REEF_TRY(attribute(*root, "title")),
                      .about = doc_of(*root),
                      .operators = {}};
    std::set<std::string> names;
    for (const auto* e = root->FirstChildElement(); e; e = e->NextSiblingElement()) {
        if (std::string_view(e->Name()) == "doc") continue;
        if (std::string_view(e->Name()) != "operator") return fail_at(*e, "unknown element");
        REEF_CHECK(only_attributes(*e, {"name", "grade"}));
        OperatorRow row{REEF_TRY(attribute(*e, "name")), REEF_TRY(attribute(*e, "grade")),
                        text_of(*e)};
        if (row.grade != "seen" && row.grade != "documented")
            return fail_at(*e, "grade " + row.grade + " is neither seen nor documented");
        if (!names.insert(row.name).second) return fail_at(*e, "the operator occurs twice");
        list.operators.push_back(std::move(row));
    }
    return list;
}

}  // namespace reef::specgen
