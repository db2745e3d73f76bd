#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "spec.h"
#include "xml.h"

namespace reef::specgen {
namespace {

template <typename Real>
Result<Real> real(const Element& element, std::string_view text) {
    Real value = 0;
    const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || stop != text.data() + text.size())
        return fail_at(element, fmt::format("'{}' is not a number", text));
    return value;
}

Result<Size> read_size(const Element& e) {
    REEF_CHECK(only_attributes(e, {"name", "is", "unit", "grade"}));
    return Size{REEF_TRY(attribute(e, "name")), REEF_TRY(address(e, "is")),
                REEF_TRY(attribute(e, "unit")), REEF_TRY(grade_of(e)), text_of(e)};
}

Result<Assumption> read_assumption(const Element& e) {
    REEF_CHECK(only_attributes(e, {"name", "title", "is", "unit"}));
    Assumption out{REEF_TRY(attribute(e, "name")), REEF_TRY(attribute(e, "title")),
                   REEF_TRY(real<double>(e, REEF_TRY(attribute(e, "is")))),
                   REEF_TRY(attribute(e, "unit")), text_of(e)};
    if (out.source.empty()) return fail_at(e, "an assumption needs its source");
    return out;
}

Result<Polynomial> read_polynomial(const Element& e) {
    const std::string text = REEF_TRY(attribute(e, "is"));
    std::string_view left = text;
    Polynomial out;
    while (!left.empty()) {
        const auto end = left.find(' ');
        out.push_back(REEF_TRY(real<float>(e, left.substr(0, end))));
        left = end == std::string_view::npos ? std::string_view{} : left.substr(end + 1);
    }
    return out;
}

Result<Function> read_function(const Element& element) {
    REEF_CHECK(only_attributes(element, {"name", "least", "most", "grade", "meaning"}));
    Function out{REEF_TRY(attribute(element, "name")),
                 REEF_TRY(real<float>(element, REEF_TRY(attribute(element, "least")))),
                 REEF_TRY(real<float>(element, REEF_TRY(attribute(element, "most")))),
                 REEF_TRY(grade_of(element)),
                 REEF_TRY(attribute(element, "meaning")),
                 {},
                 {}};
    if (!(out.least < out.most)) return fail_at(element, "least must be below most");
    for (const auto* e = element.FirstChildElement(); e; e = e->NextSiblingElement()) {
        if (std::string_view(e->Name()) != "segment") return fail_at(*e, "unknown element");
        REEF_CHECK(only_attributes(*e, {"below", "is"}));
        if (out.breaks.size() < out.segments.size())
            return fail_at(*e, "the segment before this one has no end");
        out.segments.push_back(REEF_TRY(read_polynomial(*e)));
        if (e->Attribute("below") == nullptr) continue;
        const float border = REEF_TRY(real<float>(*e, REEF_TRY(attribute(*e, "below"))));
        if (!out.breaks.empty() && !(border > out.breaks.back()))
            return fail_at(*e, "breaks must ascend");
        out.breaks.push_back(border);
    }
    if (out.segments.empty() || out.breaks.size() + 1 != out.segments.size())
        return fail_at(element, "a function has segments, the last of which has no end");
    return out;
}

// Functions of one chip are tables for the same hardware.
Status check_size(const Element& element, const Function& first, const Function& f) {
    if (f.segments.size() != first.segments.size())
        return fail_at(element, fmt::format("a function has {} segments", first.segments.size()));
    for (const Polynomial& p : f.segments)
        if (p.size() != first.segments[0].size())
            return fail_at(element,
                           fmt::format("a segment has {} terms", first.segments[0].size()));
    return {};
}

}  // namespace

Result<MachineFacts> read_machine(const std::string& xml) {
    tinyxml2::XMLDocument document;
    if (document.Parse(xml.data(), xml.size()) != tinyxml2::XML_SUCCESS)
        return fail(Cause::bad_input, document.ErrorStr());
    const auto* root = document.RootElement();
    if (!root || std::string_view(root->Name()) != "machine")
        return fail(Cause::bad_input, "the root must be <machine>");
    REEF_CHECK(only_attributes(*root, {"name", "title"}));
    MachineFacts facts;
    facts.name = REEF_TRY(chip_name(*root));
    facts.title = REEF_TRY(attribute(*root, "title"));
    facts.about = doc_of(*root);
    std::set<std::string> names;
    for (const auto* e = root->FirstChildElement(); e; e = e->NextSiblingElement()) {
        const std::string_view kind = e->Name();
        if (kind == "doc") continue;
        if (kind == "size") {
            facts.sizes.push_back(REEF_TRY(read_size(*e)));
        } else if (kind == "enum") {
            facts.enumerations.push_back(REEF_TRY(read_enumeration(*e)));
        } else if (kind == "assumption") {
            facts.assumptions.push_back(REEF_TRY(read_assumption(*e)));
        } else if (kind == "function") {
            facts.functions.push_back(REEF_TRY(read_function(*e)));
            REEF_CHECK(check_size(*e, facts.functions.front(), facts.functions.back()));
        } else {
            return fail_at(*e, "unknown element");
        }
        if (!names.insert(REEF_TRY(attribute(*e, "name"))).second)
            return fail_at(*e, "the name occurs twice");
    }
    return facts;
}

}  // namespace reef::specgen
