#include "edgetpu/compiler/forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "edgetpu/isa/form.h"

namespace reef::edgetpu::lowering {
namespace {

/// By part of a program, or of any, and instruction: docs/edgetpu-compiler.md has the same table.
constexpr FormReason reasons[] = {
    {"", "fence",
     "it waits for no engine of the ring on which the next layer's parameters come, and leaves "
     "their counters"},
    {"", "narrow_to_wide",
     "rows of constants are copied between two stops, and nothing else waits for them"},
    {"", "mesh_north", "constants are filled in by a transfer of their own, which sends nothing"},
    {"ahead", "ring_receive_a",
     "parameters that come while another step computes have more slots than two, and wait for no "
     "room"},
    {"ahead", "ring_receive_b",
     "parameters that come while another step computes have more slots than two, and wait for no "
     "room"},
    {"average", "mac",
     "a window is summed up by the identity row, tap by tap; the vendor has pools in another "
     "layout"},
    {"average of all", "mac",
     "the whole image is summed up by the identity row; the vendor has pools in another layout"},
    {"average of all", "ring_receive_a",
     "parts of several tiles are received by one instruction; the vendor has one for each"},
    {"average of all", "wide_to_narrow",
     "parts of several tiles are stored by one instruction; the vendor has one for each"},
    {"combination", "mac",
     "its loops begin with the two operands and end with the words; those of the vendor's programs "
     "at hand have another order"},
    {"convolution", "mac",
     "rows of parameters lie still, sent ahead or spread by channels, in place of two slots that "
     "take turns; taps, strides and phases are loops of their own, whatever the shape"},
    {"convolution", "ring_receive_a",
     "as many visits' rows as fit lie one behind the other, in place of two slots that take turns"},
    {"convolution", "ring_receive_b",
     "as many visits' rows as fit lie one behind the other, in place of two slots that take turns"},
    {"convolution", "wide_to_narrow",
     "a group's factors and biases are taken when its first rows are there, in one loop with those "
     "of all groups"},
    {"copy", "mac",
     "the identity row is there since the program's beginning, so that nothing waits for it, and "
     "it signals at another level"},
    {"enlargement", "mac",
     "each phase of the larger image is a copy through the identity row, or a product with scaled "
     "ones; the vendor has an instruction for it"},
    {"function", "mac",
     "a table is applied by such a copy: the identity row is there since the program's beginning"},
    {"gather", "ring_receive_a",
     "parts of several tiles are received by one instruction; the vendor has one for each"},
    {"gather", "wide_to_narrow",
     "parts of several tiles are stored by one instruction; the vendor has one for each"},
    {"halo", "mac",
     "pixels that repeat the image's edge are copies of a row or column, apart from its transfers"},
    {"halo", "mesh_east",
     "runs of pixels move in place of pieces of 16 words, and wait once for what they send"},
    {"halo", "mesh_north",
     "runs of pixels move in place of pieces of 16 words, and wait once for what they send"},
    {"halo", "mesh_south",
     "runs of pixels move in place of pieces of 16 words, and wait once for what they send"},
    {"halo", "mesh_west",
     "runs of pixels move in place of pieces of 16 words, and wait once for what they send"},
    {"input", "mac",
     "a tile's columns are copied out of the strip by one instruction, as rows arrive or behind a "
     "stop, not row by row"},
    {"input", "wide_to_narrow",
     "the strip of whole rows is stored as it arrives; the vendor stores rows one by one"},
    {"lstm", "mac",
     "products of two tensors are all products of their words and then the diagonal, as elsewhere, "
     "here of 16 bits"},
    {"lstm", "narrow_to_wide",
     "rows of constants are copied between two stops; a step's inputs are taken from where a "
     "register says, and stay on the tile: the vendor sends them over a ring"},
    {"lstm", "ring_receive_b",
     "the recurrent layer's rows are received once and stay, so that nothing waits for room"},
    {"maximum", "max",
     "all words of a position are compared at once, in rows of four pixels each; the vendor's "
     "loops have more dimensions"},
    {"product", "mac",
     "all products of two words, of which the diagonal is taken, are one loop over the part of a "
     "tile"},
    {"rearrangement", "mac",
     "words are put together of single bytes of the whole image; the vendor has matrices for such "
     "moves"},
    {"rearrangement", "ring_receive_a",
     "parts of several tiles are received by one instruction; the vendor has one for each"},
    {"rearrangement", "wide_to_narrow",
     "parts of several tiles are stored by one instruction; the vendor has one for each"},
    {"softmax", "mac",
     "all of it is on one tile and behind stops; the vendor spreads it over four"},
    {"softmax", "max",
     "the largest value is found on one tile and behind stops; the vendor spreads it over four"},
    {"softmax", "narrow_to_wide",
     "rows are laid out on one tile, behind stops in place of waits; the vendor spreads them over "
     "four"},
    {"softmax", "sum",
     "the exponentials are summed up on one tile; the vendor spreads them over four"},
    {"sum", "mac", "where both operands are one tensor the loop over them does not move"},
};

std::string reason_of(std::string_view part, std::string_view form) {
    const std::string_view name = form.substr(0, form.find(' '));
    const FormReason* of_any = nullptr;
    for (const FormReason& r : reasons) {
        if (r.instruction != name) continue;
        if (r.part == part) return std::string(r.reason);
        if (r.part.empty()) of_any = &r;
    }
    return of_any == nullptr ? std::string() : std::string(of_any->reason);
}

}  // namespace

Result<std::string> form_of_operation(const program::TypedInstruction& instruction) {
    const auto encoded = REEF_TRY(program::encode(instruction));
    return form_of({.info = &encoded.info(), .word = 0, .bytes = encoded.bytes()});
}

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
