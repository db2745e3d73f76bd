#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <sstream>

#include "spec.h"
#include "xml.h"

namespace reef::specgen {
namespace {

// Limits of the tables in reef/hw.
constexpr unsigned most_instruction_bits = 512 * 8;
constexpr unsigned most_opcode_bits = 16;
// A field is read with one 64-bit load at a whole byte.
constexpr unsigned load_bits = 64;
constexpr unsigned widest_field = 56;

using Parameters = std::map<std::string, unsigned>;

std::string numbered(std::string text, unsigned index) {
    for (auto at = text.find("{i}"); at != std::string::npos; at = text.find("{i}"))
        text.replace(at, 3, std::to_string(index));
    return text;
}

Field bits_named(std::string name, unsigned position, unsigned width) {
    Field field;
    field.name = std::move(name);
    field.position = position;
    field.width = width;
    field.kind = "raw";
    field.grade = "guess";
    field.meaning = "Unknown.";
    field.seen = {0};
    return field;
}

// Numbers in ascending order, "FIRST..LAST" among them.
Result<std::vector<unsigned>> number_list(const Element& element, const std::string& text) {
    constexpr std::size_t most = 64;
    std::vector<unsigned> all;
    std::istringstream items(text);
    for (std::string item; items >> item;) {
        const auto dots = item.find("..");
        const unsigned first = REEF_TRY(parse_number(element, item.substr(0, dots)));
        const unsigned last = dots == std::string::npos
                                  ? first
                                  : REEF_TRY(parse_number(element, item.substr(dots + 2)));
        if (last < first || (!all.empty() && first <= all.back()))
            return fail_at(element, fmt::format("'{}' is not in ascending order", item));
        if (all.size() + (last - first) >= most)
            return fail_at(element, fmt::format("more than {} values", most));
        for (unsigned value = first; value <= last; ++value) all.push_back(value);
    }
    return all;
}

// "seen" with all values of known programs, or "only" with the one.
Status read_seen(const Element& element, Field& field) {
    const char* only = element.Attribute("only");
    const char* seen = element.Attribute("seen");
    if (only != nullptr && seen != nullptr) return fail_at(element, "only and seen");
    if (only != nullptr) field.seen = {REEF_TRY(parse_number(element, only))};
    if (seen != nullptr) {
        field.seen = REEF_TRY(number_list(element, seen));
        if (field.seen.size() < 2) return fail_at(element, "seen has at least two values");
    }
    for (const unsigned value : field.seen)
        if (field.width < 32 && value >> field.width != 0)
            return fail_at(element, fmt::format("{} does not hold {}", field.name, value));
    return {};
}

class Reader {
  public:
    Result<Isa> read(const Element& root);

  private:
    struct Builder {
        Instruction instruction;
        std::vector<Field> claims;  // opcode and space
        Place opcode, space;
    };

    Status read_space(const Element& element);
    Status read_instruction(const Element& element);
    Status read_children(const Element& parent, Builder& builder, unsigned depth);
    Status add_child(const Element& child, Builder& builder, unsigned depth);
    Status add_use(const Element& use, Builder& builder);
    static Result<Parameters> parameters_of(const Element& use, const Element& record);
    static Result<std::string> group_kind(const Element& record);
    Status add_repeat(const Element& repeat, Builder& builder);
    Result<Field> read_field(const Element& element, const Parameters& parameters, unsigned index);
    Status set_type(const Element& element, Field& field);
    Status apply_override(const Element& element, const std::string& prefix,
                          std::span<Field> fields);
    static Result<unsigned> width_of(const Element& element, const Parameters& parameters);
    Result<unsigned> space_of(const Element& instruction) const;
    Status keep_places(const Element& element, const Builder& builder);
    Status lay_out(const Element& element, Builder& builder) const;

    Isa isa_;
    std::map<std::string, const Element*> records_;
    std::map<std::string, const Element*> layouts_;
};

Result<Isa> Reader::read(const Element& root) {
    if (std::string_view(root.Name()) != "isa") return fail_at(root, "the root must be <isa>");
    REEF_CHECK(only_attributes(root, {"name", "title", "wordbits"}));
    isa_.name = REEF_TRY(chip_name(root));
    isa_.title = REEF_TRY(attribute(root, "title"));
    isa_.word_bits = REEF_TRY(number(root, "wordbits"));
    if (isa_.word_bits == 0 || isa_.word_bits % load_bits != 0 ||
        isa_.word_bits > most_instruction_bits)
        return fail_at(root, fmt::format("words must have a multiple of {} bits", load_bits));
    for (const auto* e = root.FirstChildElement(); e; e = e->NextSiblingElement()) {
        const std::string_view kind = e->Name();
        if (kind == "doc") {
            isa_.about = text_of(*e);
        } else if (kind == "enum") {
            isa_.enumerations.push_back(REEF_TRY(read_enumeration(*e)));
        } else if (kind == "space") {
            REEF_CHECK(read_space(*e));
        } else if (kind == "record" || kind == "layout") {
            REEF_CHECK(kind == "record" ? only_attributes(*e, {"name", "kind"})
                                        : only_attributes(*e, {"name"}));
            auto& known = kind == "record" ? records_ : layouts_;
            if (!known.emplace(REEF_TRY(attribute(*e, "name")), e).second)
                return fail_at(*e, "the name occurs twice");
            if (kind == "record") isa_.records.push_back({e->Attribute("name"), doc_of(*e)});
        } else if (kind == "instruction") {
            REEF_CHECK(read_instruction(*e));
        } else {
            return fail_at(*e, "unknown element");
        }
    }
    if (isa_.instructions.empty()) return fail_at(root, "there are no instructions");
    return std::move(isa_);
}

Status Reader::read_space(const Element& element) {
    REEF_CHECK(only_attributes(element, {"is", "name"}));
    if (REEF_TRY(number(element, "is")) != isa_.spaces.size())
        return fail_at(element, "spaces count up from 0");
    isa_.spaces.push_back(REEF_TRY(attribute(element, "name")));
    return {};
}

Result<unsigned> Reader::space_of(const Element& instruction) const {
    if (isa_.spaces.empty()) return 0;
    const auto name = REEF_TRY(attribute(instruction, "space"));
    const auto space = std::ranges::find(isa_.spaces, name);
    if (space == isa_.spaces.end()) return fail_at(instruction, "unknown space " + name);
    return static_cast<unsigned>(space - isa_.spaces.begin());
}

// Programs are read from front to back: what an instruction is stands in one place in all of them.
Status Reader::keep_places(const Element& element, const Builder& builder) {
    if (builder.opcode.width == 0 || (builder.space.width == 0) != isa_.spaces.empty())
        return fail_at(element, "opcode and space need a place");
    for (const auto& place : {builder.opcode, builder.space})
        if (place.width > most_opcode_bits || place.position + place.width > load_bits)
            return fail_at(element,
                           fmt::format("opcode and space stand in the first {} bits", load_bits));
    if (isa_.spaces.size() >> builder.space.width > 1)
        return fail_at(element, "the spaces do not fit their bits");
    if (builder.instruction.opcode >> builder.opcode.width != 0)
        return fail_at(element, "the opcode does not fit its bits");
    if (isa_.instructions.empty()) {
        isa_.opcode = builder.opcode;
        isa_.space = builder.space;
    }
    if (builder.opcode != isa_.opcode || builder.space != isa_.space)
        return fail_at(element, "opcode and space stand elsewhere than in the instructions before");
    return {};
}

}  // namespace

Result<Enumeration> read_enumeration(const Element& element) {
    REEF_CHECK(only_attributes(element, {"name", "grade", "meaning"}));
    Enumeration out{.name = REEF_TRY(attribute(element, "name")),
                    .meaning = attribute_or(element, "meaning", ""),
                    .grade = REEF_TRY(grade_of(element)),
                    .values = {}};
    std::set<unsigned> values;
    std::set<std::string> names;
    for (const auto* e = element.FirstChildElement(); e; e = e->NextSiblingElement()) {
        if (std::string_view(e->Name()) != "value") return fail_at(*e, "unknown element");
        REEF_CHECK(only_attributes(*e, {"is", "name"}));
        EnumValue value{REEF_TRY(number(*e, "is")), REEF_TRY(attribute(*e, "name")), text_of(*e)};
        if (!values.insert(value.value).second || !names.insert(value.name).second)
            return fail_at(*e, "the value or name occurs twice");
        out.values.push_back(std::move(value));
    }
    return out;
}

namespace {

Status Reader::read_instruction(const Element& element) {
    REEF_CHECK(only_attributes(element, {"space", "opcode", "name", "words", "grade"}));
    Builder builder;
    auto& out = builder.instruction;
    out.name = REEF_TRY(attribute(element, "name"));
    out.space = REEF_TRY(space_of(element));
    out.opcode = REEF_TRY(number(element, "opcode"));
    out.words = REEF_TRY(number(element, "words"));
    out.grade = REEF_TRY(grade_of(element));
    const unsigned longest_words = most_instruction_bits / isa_.word_bits;
    if (out.words == 0 || out.words > longest_words)
        return fail_at(element, fmt::format("words must be 1 to {}", longest_words));
    for (const auto& other : isa_.instructions) {
        if (other.name == out.name || (other.space == out.space && other.opcode == out.opcode))
            return fail_at(element, "the name or opcode occurs twice");
    }
    REEF_CHECK(read_children(element, builder, 0));
    REEF_CHECK(keep_places(element, builder));
    REEF_CHECK(lay_out(element, builder));
    isa_.instructions.push_back(std::move(out));
    return {};
}

Status Reader::read_children(const Element& parent, Builder& builder, unsigned depth) {
    if (depth > 8) return fail_at(parent, "layouts include one another too deeply");
    for (const auto* e = parent.FirstChildElement(); e; e = e->NextSiblingElement())
        REEF_CHECK(add_child(*e, builder, depth));
    return {};
}

Status Reader::add_child(const Element& child, Builder& builder, unsigned depth) {
    const std::string_view kind = child.Name();
    auto& fields = builder.instruction.fields;
    if (kind == "doc") {
        builder.instruction.meaning = text_of(child);
    } else if (kind == "include") {
        const auto layout = layouts_.find(REEF_TRY(attribute(child, "layout")));
        if (layout == layouts_.end()) return fail_at(child, "unknown layout");
        REEF_CHECK(read_children(*layout->second, builder, depth + 1));
    } else if (kind == "field") {
        auto field = REEF_TRY(read_field(child, {}, 0));
        field.position = REEF_TRY(number(child, "at"));
        fields.push_back(std::move(field));
    } else if (kind == "opcode" || kind == "space") {
        REEF_CHECK(only_attributes(child, {"at", "width"}));
        auto& place = kind == "opcode" ? builder.opcode : builder.space;
        place = {REEF_TRY(number(child, "at")), REEF_TRY(number(child, "width"))};
        builder.claims.push_back(bits_named(std::string(kind), place.position, place.width));
    } else if (kind == "use") {
        REEF_CHECK(add_use(child, builder));
    } else if (kind == "repeat") {
        REEF_CHECK(add_repeat(child, builder));
    } else {
        return fail_at(child, "unknown element");
    }
    return {};
}

Status Reader::add_repeat(const Element& repeat, Builder& builder) {
    REEF_CHECK(only_attributes(repeat, {"count", "at"}));
    const unsigned count = REEF_TRY(number(repeat, "count"));
    unsigned position = REEF_TRY(number(repeat, "at"));
    for (unsigned i = 0; i < std::min(count, 64u); ++i) {
        for (const auto* e = repeat.FirstChildElement("field"); e;
             e = e->NextSiblingElement("field")) {
            auto field = REEF_TRY(read_field(*e, {}, i));
            field.position = position;
            position += field.width;
            builder.instruction.fields.push_back(std::move(field));
        }
    }
    return {};
}

// The values that a use gives for its record's parameters; refuses what neither of them has.
Result<Parameters> Reader::parameters_of(const Element& use, const Element& record) {
    std::set<std::string_view> known = {"record", "name", "at",   "unit", "space",
                                        "grade",  "note", "only", "seen"};
    Parameters parameters;
    for (const auto* p = record.FirstChildElement("parameter"); p;
         p = p->NextSiblingElement("parameter")) {
        const auto key = REEF_TRY(attribute(*p, "name"));
        parameters[key] = REEF_TRY(number(use, key.c_str()));
        known.insert(p->Attribute("name"));
    }
    for (const auto* a = use.FirstAttribute(); a; a = a->Next())
        if (!known.contains(a->Name()))
            return fail_at(use, fmt::format("unknown attribute {}", a->Name()));
    return parameters;
}

Result<std::string> Reader::group_kind(const Element& record) {
    static const std::set<std::string> kinds = {"loop_nest", "loops", "wait",
                                                "signal",    "slot",  "plain"};
    auto kind = attribute_or(record, "kind", "plain");
    if (!kinds.contains(kind)) return fail_at(record, "unknown kind " + kind);
    return kind;
}

Status Reader::add_use(const Element& use, Builder& builder) {
    const auto record = records_.find(REEF_TRY(attribute(use, "record")));
    if (record == records_.end()) return fail_at(use, "unknown record");
    const auto name = REEF_TRY(attribute(use, "name"));
    const auto parameters = REEF_TRY(parameters_of(use, *record->second));
    auto& fields = builder.instruction.fields;
    Group group{name, REEF_TRY(group_kind(*record->second)), fields.size(), 0, 0};
    unsigned position = REEF_TRY(number(use, "at"));
    const auto add = [&](const Element& element, unsigned index) -> Status {
        auto field = REEF_TRY(read_field(element, parameters, index));
        field.name = name + "." + field.name;
        field.position = position;
        position += field.width;
        if (field.unit == "unit") field.unit = attribute_or(use, "unit", "");
        if (use.Attribute("grade")) field.grade = REEF_TRY(grade_of(use));
        if (use.Attribute("note")) field.note = use.Attribute("note");
        REEF_CHECK(read_seen(use, field));
        fields.push_back(std::move(field));
        return {};
    };
    for (const auto* e = record->second->FirstChildElement(); e; e = e->NextSiblingElement()) {
        const std::string_view kind = e->Name();
        if (kind == "field") {
            REEF_CHECK(add(*e, 0));
        } else if (kind == "repeat") {
            const auto count = REEF_TRY(attribute(*e, "count"));
            group.dimensions = parameters.contains(count) ? parameters.at(count)
                                                          : REEF_TRY(parse_number(*e, count));
            for (unsigned i = 0; i < std::min(group.dimensions, 64u); ++i) {
                for (const auto* f = e->FirstChildElement(); f; f = f->NextSiblingElement())
                    REEF_CHECK(add(*f, i));
            }
        } else if (kind != "doc" && kind != "parameter") {
            return fail_at(*e, "unknown element");
        }
    }
    group.count = fields.size() - group.first;
    for (const auto* e = use.FirstChildElement(); e; e = e->NextSiblingElement())
        REEF_CHECK(apply_override(*e, name + ".", std::span(fields).subspan(group.first)));
    builder.instruction.groups.push_back(std::move(group));
    return {};
}

Status Reader::apply_override(const Element& element, const std::string& prefix,
                              std::span<Field> fields) {
    if (std::string_view(element.Name()) != "override") return fail_at(element, "unknown element");
    REEF_CHECK(only_attributes(element, {"field", "grade", "note", "only", "seen"}));
    const auto name = prefix + REEF_TRY(attribute(element, "field"));
    const auto field = std::ranges::find(fields, name, &Field::name);
    if (field == fields.end()) return fail_at(element, "the record has no field " + name);
    if (element.Attribute("grade")) field->grade = REEF_TRY(grade_of(element));
    if (element.Attribute("note")) field->note = element.Attribute("note");
    return read_seen(element, *field);
}

Result<unsigned> Reader::width_of(const Element& element, const Parameters& parameters) {
    auto text = REEF_TRY(attribute(element, "width"));
    unsigned sum = 0;
    while (!text.empty()) {
        const auto plus = text.find('+');
        const auto term = text.substr(0, plus);
        const auto parameter = parameters.find(term);
        sum += parameter != parameters.end() ? parameter->second
                                             : REEF_TRY(parse_number(element, term));
        text = plus == std::string::npos ? "" : text.substr(plus + 1);
    }
    if (sum == 0 || sum > widest_field)
        return fail_at(element, fmt::format("a field has 1 to {} bits", widest_field));
    return sum;
}

Status Reader::set_type(const Element& element, Field& field) {
    static const std::map<std::string, std::string> kinds = {{"unsigned", "unsigned_number"},
                                                             {"signed", "signed_number"},
                                                             {"flag", "flag"},
                                                             {"address", "address"},
                                                             {"mask", "mask"},
                                                             {"float", "float32"},
                                                             {"tiles", "tiles"},
                                                             {"register", "register_number"},
                                                             {"limit", "limit"}};
    const auto type = REEF_TRY(attribute(element, "type"));
    if (const auto kind = kinds.find(type); kind != kinds.end()) {
        field.kind = kind->second;
        if (field.kind == "flag" && field.width != 1) return fail_at(element, "a flag has 1 bit");
        if (field.kind == "float32" && field.width != 32)
            return fail_at(element, "a float has 32 bits");
        return {};
    }
    const auto colon = type.find(':');
    field.enumeration = colon == std::string::npos ? "" : type.substr(colon + 1);
    const bool set = type.starts_with("set:");
    if (!set && !type.starts_with("enum:")) return fail_at(element, "unknown type " + type);
    const auto e = std::ranges::find(isa_.enumerations, field.enumeration, &Enumeration::name);
    if (e == isa_.enumerations.end()) return fail_at(element, "unknown enumeration in " + type);
    for (const auto& value : e->values) {
        if (set ? value.value >= field.width : (value.value >> field.width) != 0)
            return fail_at(element,
                           fmt::format("{} does not fit {} bits", value.name, field.width));
    }
    field.kind = set ? "set" : "enumeration";
    return {};
}

Result<Field> Reader::read_field(const Element& element, const Parameters& parameters,
                                 unsigned index) {
    if (std::string_view(element.Name()) != "field") return fail_at(element, "unknown element");
    REEF_CHECK(only_attributes(
        element, {"name", "at", "width", "type", "unit", "grade", "note", "only", "seen"}));
    Field field;
    field.name = numbered(REEF_TRY(attribute(element, "name")), index);
    field.width = REEF_TRY(width_of(element, parameters));
    REEF_CHECK(set_type(element, field));
    field.unit = attribute_or(element, "unit", "");
    field.grade = REEF_TRY(grade_of(element));
    field.note = attribute_or(element, "note", "");
    REEF_CHECK(read_seen(element, field));
    field.meaning = numbered(text_of(element), index);
    if (field.meaning.empty()) return fail_at(element, "a sentence for the meaning is missing");
    return field;
}

// Sorts the fields, refuses overlaps and fields beyond the end, makes gaps into raw fields.
Status Reader::lay_out(const Element& element, Builder& builder) const {
    auto& instruction = builder.instruction;
    const unsigned bits = instruction.words * isa_.word_bits;
    std::vector<const Field*> owner(bits, nullptr);
    std::set<std::string> names;
    const auto claim = [&](const Field& field) -> Status {
        if (field.position + field.width > bits)
            return fail_at(element,
                           fmt::format("field {} (bits {} to {}) ends beyond bit {}", field.name,
                                       field.position, field.position + field.width - 1, bits - 1));
        for (unsigned b = field.position; b < field.position + field.width; ++b) {
            if (owner[b])
                return fail_at(element, fmt::format("fields {} and {} overlap at bit {}",
                                                    owner[b]->name, field.name, b));
            owner[b] = &field;
        }
        if (!names.insert(field.name).second)
            return fail_at(element, "field " + field.name + " occurs twice");
        return {};
    };
    for (const auto& field : instruction.fields) REEF_CHECK(claim(field));
    for (const auto& field : builder.claims) REEF_CHECK(claim(field));
    std::vector<Field> gaps;
    for (unsigned b = 0; b < bits;) {
        unsigned end = b;
        while (end < bits && !owner[end] && end - b < widest_field) ++end;
        if (end > b) gaps.push_back(bits_named(fmt::format("raw[{}+{}]", b, end - b), b, end - b));
        b = std::max(end, b + 1);
    }
    std::vector<std::string> first_names;
    for (const auto& group : instruction.groups)
        first_names.push_back(instruction.fields[group.first].name);
    std::ranges::move(gaps, std::back_inserter(instruction.fields));
    std::ranges::sort(instruction.fields, {}, &Field::position);
    for (std::size_t g = 0; g < first_names.size(); ++g) {
        const auto first = std::ranges::find(instruction.fields, first_names[g], &Field::name);
        instruction.groups[g].first = static_cast<std::size_t>(first - instruction.fields.begin());
    }
    std::ranges::sort(instruction.groups, {}, &Group::first);
    return {};
}

}  // namespace

Result<Isa> read_isa(const std::string& xml) {
    tinyxml2::XMLDocument document;
    if (document.Parse(xml.data(), xml.size()) != tinyxml2::XML_SUCCESS)
        return fail(Cause::bad_input, document.ErrorStr());
    if (!document.RootElement()) return fail(Cause::bad_input, "the file has no element");
    return Reader().read(*document.RootElement());
}

}  // namespace reef::specgen
