#include "edgetpu/compiler/forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "edgetpu/isa/form.h"

namespace reef::edgetpu::lowering {
namespace {

constexpr FormReason reasons[] = {
    {"input", "wide_to_narrow",
     "the strip of whole rows is stored as it arrives; the vendor stores rows one by one"},
    {"input", "mac", "the strip is copied to its place by one instruction, not row by row"},
    {"gather", "wide_to_narrow",
     "parts of several tiles are stored by one instruction; the vendor has one for each"},
    {"gather", "ring_receive_a",
     "parts of several tiles are received by one instruction; the vendor has one for each"},
};

Result<std::string> form_of_operation(const program::TypedInstruction& instruction) {
    const auto encoded = REEF_TRY(program::encode(instruction));
    return form_of({.info = &encoded.info(), .word = 0, .bytes = encoded.bytes()});
}

std::string reason_of(std::string_view part, std::string_view form) {
    const std::string_view name = form.substr(0, form.find(' '));
    for (const FormReason& r : reasons)
        if (r.part == part && r.instruction == name) return std::string(r.reason);
    return {};
}

}  // namespace

std::span<const FormReason> form_reasons() {
    return reasons;
}

Status count_forms(const Emitter& code, Forms& forms) {
    std::map<std::pair<std::string, std::string>, std::size_t> unproven;
    for (std::size_t i = 0; i < code.size(); ++i) {
        const std::string form = REEF_TRY(form_of_operation(code.code()[i]));
        ++forms.instructions;
        if (is_known_form(form))
            ++forms.known;
        else
            ++unproven[{std::string(code.part_of(i)), form}];
    }
    for (auto& [what, count] : unproven) {
        const auto& [part, form] = what;
        const auto same = [&](const UnprovenForm& f) { return f.part == part && f.form == form; };
        const auto known = std::ranges::find_if(forms.unproven, same);
        if (known != forms.unproven.end())
            known->count += count;
        else
            forms.unproven.push_back(
                {part, form, difference_to_known(form), reason_of(part, form), count});
    }
    return {};
}

Result<std::optional<UnprovenInstruction>> first_unproven(const Emitter& code) {
    for (std::size_t i = 0; i < code.size(); ++i) {
        std::string form = REEF_TRY(form_of_operation(code.code()[i]));
        if (!is_known_form(form)) return UnprovenInstruction{i, std::move(form)};
    }
    return std::optional<UnprovenInstruction>{};
}

}  // namespace reef::edgetpu::lowering
