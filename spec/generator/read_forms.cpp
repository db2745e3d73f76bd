#include <fmt/format.h>

#include <set>

#include "spec.h"
#include "xml.h"

namespace reef::specgen {

Result<FormList> read_forms(const std::string& xml) {
    tinyxml2::XMLDocument document;
    if (document.Parse(xml.data(), xml.size()) != tinyxml2::XML_SUCCESS)
        return fail(Cause::bad_input, document.ErrorStr());
    const auto* root = document.RootElement();
    if (!root || std::string_view(root->Name()) != "forms")
        return fail(Cause::bad_input, "the root must be <forms>");
    REEF_CHECK(only_attributes(*root, {"name", "title"}));
    FormList list{.name = REEF_TRY(chip_name(*root)),
                  .title = REEF_TRY(attribute(*root, "title")),
                  .about = doc_of(*root),
                  .forms = {}};
    std::set<std::string> texts;
    for (const auto* e = root->FirstChildElement(); e; e = e->NextSiblingElement()) {
        if (std::string_view(e->Name()) == "doc") continue;
        if (std::string_view(e->Name()) != "form") return fail_at(*e, "unknown element");
        REEF_CHECK(only_attributes(*e, {"seen", "files"}));
        FormRow row{text_of(*e), REEF_TRY(number(*e, "seen")), REEF_TRY(number(*e, "files"))};
        if (row.text.empty()) return fail_at(*e, "a form has a text");
        if (row.files == 0 || row.seen < row.files)
            return fail_at(*e, "a form is seen in a file at least, and once in each");
        if (!texts.insert(row.text).second) return fail_at(*e, "the form occurs twice");
        list.forms.push_back(std::move(row));
    }
    return list;
}

}  // namespace reef::specgen
