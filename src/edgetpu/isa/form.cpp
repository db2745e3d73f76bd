#include "edgetpu/isa/form.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "reef_spec/edgetpu_forms.h"

namespace reef::edgetpu {
namespace {

/// Whether the program caches parameters, which the same instructions do, and a constant.
constexpr std::string_view no_modes[] = {"caching", "fill_value"};

std::string_view last_part(std::string_view name) {
    const auto dot = name.rfind('.');
    return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

class FormWriter {
  public:
    explicit FormWriter(const Instruction& instruction)
        : instruction_(instruction), text_(instruction.info->name) {}

    std::string run() {
        const auto& fields = instruction_.info->fields;
        const auto& groups = instruction_.info->groups;
        std::size_t next = 0;
        for (const FieldGroup& group : groups) {
            for (; next < group.first; ++next) add_field(fields[next]);
            add_group(group, fields.subspan(group.first, group.count));
            next = std::size_t{group.first} + group.count;
        }
        for (; next < fields.size(); ++next) add_field(fields[next]);
        return std::move(text_);
    }

  private:
    void add(std::string_view part) {
        text_ += ' ';
        text_ += part;
    }
    [[nodiscard]] std::uint64_t bits(const FieldInfo& field) const {
        return instruction_.bits(field);
    }
    /// Of the group's field with that last part; nothing when it has none.
    [[nodiscard]] std::optional<std::uint64_t> bits(std::span<const FieldInfo> fields,
                                                    std::string_view part) const {
        for (const FieldInfo& f : fields)
            if (last_part(f.name) == part) return bits(f);
        return std::nullopt;
    }
    static std::string value_name(const FieldInfo& field, std::uint64_t value) {
        const auto* known =
            field.kind == FieldKind::enumeration ? field.enumeration->find(value) : nullptr;
        return known != nullptr ? std::string(known->name) : fmt::format("{:#x}", value);
    }

    void add_group(const FieldGroup& group, std::span<const FieldInfo> fields) {
        switch (group.kind) {
            case GroupKind::wait:
                return add_wait(fields);
            case GroupKind::signal:
                if (bits(fields, "enable") == 1U)
                    add(fmt::format("{}@{}", last_part(group.name),
                                    bits(fields, "level").value_or(0)));
                return;
            case GroupKind::loop_nest:
            case GroupKind::loops:
                return add_nest(group, fields);
            case GroupKind::slot:
                for (const FieldInfo& f : fields)
                    if (last_part(f.name) == "op") add_mode(f);
                return;
            case GroupKind::plain:
                // A part that is off has no form.
                if (bits(fields, "enable") == 0U) return;
                for (const FieldInfo& f : fields) add_field(f);
                return;
        }
    }

    void add_wait(std::span<const FieldInfo> fields) {
        if (bits(fields, "enable") != 1U) return;
        std::string part = "wait ";
        for (const FieldInfo& f : fields)
            if (last_part(f.name) == "counter") part += value_name(f, bits(f));
        part += fmt::format("@{}", bits(fields, "level").value_or(0));
        if (bits(fields, "side") == 1U) part += " destination";
        add(part);
    }

    /// Whether every second group lies elsewhere is a mode, how far is a number.
    void add_nest(const FieldGroup& group, std::span<const FieldInfo> fields) {
        const auto at = [&](std::string_view part) { return last_of(fields, part); };
        if (const auto mask = at("mask"); mask != 0)
            add(fmt::format("{}.mask={:#x}", group.name, mask));
        if (at("rotate.size") != 0)
            add(fmt::format("{}.rotate@{}", group.name, at("rotate.level")));
        if (at("crop.level") != 0) add(fmt::format("{}.crop@{}", group.name, at("crop.level")));
    }
    [[nodiscard]] std::uint64_t last_of(std::span<const FieldInfo> fields,
                                        std::string_view part) const {
        for (const FieldInfo& f : fields)
            if (f.name.ends_with(part)) return bits(f);
        return 0;
    }

    void add_mode(const FieldInfo& field) {
        const auto value = bits(field);
        if (value == 0) return;
        if (field.kind == FieldKind::flag)
            add(field.name);
        else
            add(fmt::format("{}={}", field.name, value_name(field, value)));
    }

    void add_field(const FieldInfo& field) {
        const std::string_view part = last_part(field.name);
        switch (field.kind) {
            case FieldKind::flag:
            case FieldKind::enumeration:
            case FieldKind::set:
            case FieldKind::mask:
            case FieldKind::raw:
                if (std::ranges::find(no_modes, field.name) == std::end(no_modes)) add_mode(field);
                return;
            case FieldKind::unsigned_number:
                // So many rows in front of a group say what they are.
                if (part.ends_with("level") || field.name == "head.rows") add_mode(field);
                return;
            default:
                return;
        }
    }

    const Instruction& instruction_;
    std::string text_;
};

/// A wait with its counter is one part.
std::vector<std::string> parts_of(std::string_view form) {
    std::vector<std::string> parts;
    while (!form.empty()) {
        const auto end = form.find(' ');
        const std::string_view word = form.substr(0, end);
        const bool more = !parts.empty() && (parts.back() == "wait" || word == "destination");
        if (more)
            parts.back() += fmt::format(" {}", word);
        else
            parts.emplace_back(word);
        form.remove_prefix(end == std::string_view::npos ? form.size() : end + 1);
    }
    std::ranges::sort(parts);
    return parts;
}

std::vector<std::string> only_in(const std::vector<std::string>& a,
                                 const std::vector<std::string>& b) {
    std::vector<std::string> out;
    std::ranges::set_difference(a, b, std::back_inserter(out));
    return out;
}

}  // namespace

std::string form_of(const Instruction& instruction) {
    return FormWriter(instruction).run();
}

std::span<const std::string_view> known_forms() {
    return spec::known_forms;
}

bool is_known_form(std::string_view form) {
    return std::ranges::binary_search(known_forms(), form);
}

std::string difference_to_known(std::string_view form) {
    const auto wanted = parts_of(form);
    const std::string_view name = form.substr(0, form.find(' '));
    std::vector<std::string> more, less;
    bool found = false;
    for (const std::string_view known : known_forms()) {
        if (known.substr(0, known.find(' ')) != name) continue;
        const auto other = parts_of(known);
        auto added = only_in(wanted, other), missing = only_in(other, wanted);
        if (found && added.size() + missing.size() >= more.size() + less.size()) continue;
        found = true;
        more = std::move(added);
        less = std::move(missing);
    }
    if (!found) return "no known program has the instruction";
    std::string text;
    if (!more.empty()) text = fmt::format("with {}", fmt::join(more, ", "));
    if (!less.empty())
        text += fmt::format("{}without {}", text.empty() ? "" : "; ", fmt::join(less, ", "));
    return text;
}

}  // namespace reef::edgetpu
