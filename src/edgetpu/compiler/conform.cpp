#include "edgetpu/compiler/conform.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "edgetpu/compiler/emitter.h"
#include "edgetpu/compiler/forms.h"
#include "edgetpu/isa/form.h"

namespace reef::edgetpu::lowering {
namespace {

// A form as numbers.

struct NestForm {
    std::uint32_t mask = 0;
    std::optional<unsigned> rotate, crop;  ///< levels
};

struct WaitForm {
    std::string counter;
    unsigned level = 0;
    bool destination = false;
};

struct Form {
    std::string_view text;
    std::map<std::string, NestForm> nests;
    std::map<std::string, unsigned> signals;  ///< levels
    std::map<std::string, unsigned> numbers;  ///< group_level, reduction_mask, row_level
    std::vector<WaitForm> waits;
    std::vector<std::string> modes;  ///< sorted
};

constexpr std::string_view named_numbers[] = {"group_level", "reduction_mask", "row_level"};

unsigned number_of(std::string_view text) {
    const bool hexadecimal = text.starts_with("0x");
    if (hexadecimal) text.remove_prefix(2);
    unsigned value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
    return value;
}

std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words;
    while (!text.empty()) {
        const auto end = std::min(text.find(' '), text.size());
        words.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return words;
}

void add_part(Form& form, std::string_view word) {
    const auto dot = word.find('.'), at = word.find('@'), equals = word.find('=');
    const std::string name(word.substr(0, std::min(dot, std::min(at, equals))));
    const std::string_view what = dot == std::string_view::npos ? "" : word.substr(dot + 1);
    if (what.starts_with("mask=")) {
        form.nests[name].mask = number_of(word.substr(equals + 1));
    } else if (what.starts_with("rotate@")) {
        form.nests[name].rotate = number_of(word.substr(at + 1));
    } else if (what.starts_with("crop@")) {
        form.nests[name].crop = number_of(word.substr(at + 1));
    } else if (dot == std::string_view::npos && at != std::string_view::npos) {
        form.signals[name] = number_of(word.substr(at + 1));
    } else if (std::ranges::find(named_numbers, std::string_view(name)) !=
                   std::end(named_numbers) &&
               dot == std::string_view::npos) {
        form.numbers[name] = number_of(word.substr(equals + 1));
    } else {
        form.modes.emplace_back(word);
    }
}

Form parse(std::string_view text) {
    Form form{.text = text, .nests = {}, .signals = {}, .numbers = {}, .waits = {}, .modes = {}};
    const auto words = words_of(text);
    for (std::size_t i = 1; i < words.size(); ++i) {
        if (words[i] == "destination" && !form.waits.empty()) {
            form.waits.back().destination = true;
        } else if (words[i] == "wait" && i + 1 < words.size()) {
            const std::string_view wait = words[++i];
            const auto at = wait.find('@');
            form.waits.push_back(
                {std::string(wait.substr(0, at)), number_of(wait.substr(at + 1)), false});
        } else {
            add_part(form, words[i]);
        }
    }
    std::ranges::sort(form.modes);
    return form;
}

/// Of an instruction, by its name.
std::span<const Form> known_forms_of(std::string_view name) {
    static const auto& all = *new std::map<std::string, std::vector<Form>, std::less<>>([] {
        std::map<std::string, std::vector<Form>, std::less<>> by_name;
        for (const std::string_view text : known_forms())
            by_name[std::string(text.substr(0, text.find(' ')))].push_back(parse(text));
        return by_name;
    }());
    const auto found = all.find(name);
    return found == all.end() ? std::span<const Form>() : found->second;
}

/// How much two forms differ.
std::size_t distance(std::string_view a, std::string_view b) {
    auto one = words_of(a), other = words_of(b);
    std::ranges::sort(one);
    std::ranges::sort(other);
    std::vector<std::string_view> difference;
    std::ranges::set_symmetric_difference(one, other, std::back_inserter(difference));
    return difference.size();
}

// An instruction's nests and what refers to their dimensions.

/// A level of the instruction and that of the form, which must be above the same dimensions.
struct Levels {
    unsigned now = 0, then = 0;
};

struct NestPart {
    std::string_view name;
    LoopNest* nest = nullptr;
    bool counts_alone = false;  ///< the loops
    bool may_rotate = false;    ///< where that says nothing of rows of wide memory
    unsigned fixed = 0;         ///< the lowest dimensions, which mean something by their place
};

/// A dimension of the instruction that must have a place in the form.
struct Pin {
    unsigned now = 0, then = 0;
};

struct SignalPart {
    std::string_view name;
    program::Signal* signal = nullptr;
    LoopNest* nest = nullptr;
    bool may_change = false;  ///< which passes count
    bool may_begin = false;   ///< to count, where it does not
};

struct Parts {
    std::vector<NestPart> nests;
    std::vector<SignalPart> signals;
    std::span<program::Wait> waits;
    LoopNest* row_nest = nullptr;  ///< of row_level
    unsigned* row_level = nullptr;
    program::Tensor* tensor = nullptr;
    [[nodiscard]] LoopNest* nest_of(const WaitForm& wait) const {
        if (tensor != nullptr) return &tensor->loops;
        return wait.destination || nests.size() == 1 ? nests.back().nest : nests.front().nest;
    }
};

Parts parts_of(program::Tensor& op) {
    Parts parts{.nests = {{"loop", &op.loops, true},
                          {"in", &op.in, false, true},
                          {"out", &op.out},
                          {"par", &op.par},
                          {"acc", &op.acc}},
                .signals = {},
                .waits = op.wait,
                .tensor = &op};
    // What fills scaling memory and rows of zero points waits for results that used them.
    const bool alone = op.acc_internal && !op.bias && !op.lane_scale && !op.par_zero_rows;
    parts.signals = {{"avdata", &op.avdata, &op.out, alone},
                     {"parameters", &op.parameters, &op.par, false, !op.par.rotates()},
                     {"partial_sums", &op.partial_sums, &op.loops}};
    return parts;
}

Parts parts_of(program::Mesh& op) {
    return {.nests = {{"src", &op.src}, {"dst", &op.dst}},
            .signals = {{"out", &op.out, &op.src}, {"in", &op.in, &op.dst}},
            .waits = op.wait};
}

Parts parts_of(program::NarrowToWide& op) {
    // The side of a transposed matrix, and what is cropped.
    const unsigned fixed = op.format == spec::RowFormat::plain_ ? 0 : 2;
    return {.nests = {{"src", &op.src, false, false, fixed}, {"dst", &op.dst}},
            .signals = {{"narrow_to_wide", &op.written, &op.dst}},
            .waits = op.wait,
            .row_nest = &op.src,
            .row_level = &op.row_level};
}

Parts parts_of(program::WideToNarrow& op) {
    return {.nests = {{"src", &op.src}, {"dst", &op.dst}},
            .signals = {{"written", &op.written, &op.dst}},
            .waits = op.wait,
            .row_nest = &op.dst,
            .row_level = &op.row_level};
}

Parts parts_of(program::RingReceive& op) {
    return {.nests = {{"dst", &op.dst}},
            .signals = {{"ring_read", &op.ring_read, &op.dst}},
            .waits = op.wait};
}

/// What a nest must be, and what it is.
struct Target {
    NestPart part;
    NestForm form;
    std::vector<Levels> levels;
    std::vector<Pin> pins;
    std::optional<std::uint32_t> reduction_now, reduction_then;
};

/// A dimension of more than one pass.
struct Moving {
    unsigned place = 0;
    std::int32_t stride = 0;
    std::uint32_t count = 1;
};

std::vector<Moving> moving_of(const LoopNest& nest) {
    std::vector<Moving> out;
    const Strides strides = strides_of(nest);
    for (unsigned d = 0; d < nest.dimensions; ++d)
        if (nest.count[d] > 1)
            out.push_back({d, static_cast<std::int32_t>(strides[d]), nest.count[d]});
    return out;
}

class Embedding {
  public:
    explicit Embedding(const Target& target)
        : target_(target), moving_(moving_of(*target.part.nest)) {}

    /// New places of the dimensions, if there are any.
    std::optional<std::vector<unsigned>> find() {
        if (extend(0)) return places_;
        return std::nullopt;
    }
    [[nodiscard]] const std::vector<Moving>& moving() const { return moving_; }

  private:
    bool extend(unsigned from) {
        const std::size_t next = places_.size();
        if (next == moving_.size()) return levels_agree();
        for (unsigned p = from; p < target_.part.nest->dimensions; ++p) {
            if (!may_lie(moving_[next], p)) continue;
            places_.push_back(p);
            if (extend(p + 1)) return true;
            places_.pop_back();
        }
        return false;
    }
    [[nodiscard]] bool may_lie(const Moving& d, unsigned place) const {
        for (const Pin& pin : target_.pins)
            if ((d.place == pin.now) != (place == pin.then)) return false;
        if (target_.part.counts_alone)
            return (*target_.reduction_now >> d.place & 1U) ==
                   (*target_.reduction_then >> place & 1U);
        return (d.stride != 0) == ((target_.form.mask >> place & 1U) != 0);
    }
    [[nodiscard]] bool levels_agree() const {
        return std::ranges::all_of(target_.levels, [&](const Levels& l) {
            std::size_t now = 0, then = 0;
            for (std::size_t i = 0; i < moving_.size(); ++i) {
                now += moving_[i].place < l.now ? 1 : 0;
                then += places_[i] < l.then ? 1 : 0;
            }
            return now == then;
        });
    }

    const Target& target_;
    std::vector<Moving> moving_;
    std::vector<unsigned> places_;
};

/// Whether the nest's own rotation and crop can be those of the form; what must keep its place for
/// them is noted.
bool add_levels(Target& target) {
    const LoopNest& nest = *target.part.nest;
    const NestForm& form = target.form;
    for (unsigned d = 0; d < target.part.fixed; ++d) target.pins.push_back({d, d});
    if ((nest.crop_level != 0) != form.crop.has_value()) return false;
    if (form.crop) {
        target.pins.push_back({nest.crop_dimension, nest.crop_dimension});
        target.pins.push_back({nest.crop_level, *form.crop});
    }
    if (nest.rotates()) {
        if (!form.rotate || (nest.rotate_level == 0) != (*form.rotate == 0)) return false;
        target.levels.push_back({nest.rotate_level, *form.rotate});
    } else if (form.rotate) {
        if (!target.part.may_rotate) return false;
        // All of it is one group.
        target.levels.push_back({LoopNest::most_dimensions, *form.rotate});
    }
    return true;
}

/// The nest in its new dimensions. Where it did not rotate, no pass comes to a second group.
void rebuild(const Target& target, const std::vector<Moving>& moving,
             const std::vector<unsigned>& places) {
    LoopNest& nest = *target.part.nest;
    std::vector<Dimension> dimensions(nest.dimensions);
    for (unsigned d = 0; d < nest.dimensions; ++d)
        if ((target.form.mask >> d & 1U) != 0) dimensions[d].stride = spec::narrow_word_bytes;
    for (std::size_t i = 0; i < moving.size(); ++i)
        dimensions[places[i]] = {moving[i].stride, moving[i].count};
    if (target.part.counts_alone) {
        for (unsigned d = 0; d < nest.dimensions; ++d) nest.count[d] = dimensions[d].count;
    } else {
        LoopNest other = lowering::nest(nest.dimensions, nest.base, dimensions);
        other.rotate_size = nest.rotate_size;
        other.crop_count = nest.crop_count;
        other.crop_left_out = nest.crop_left_out;
        other.crop_dimension = nest.crop_dimension;
        nest = other;
        if (target.form.rotate) {
            nest.rotate_level = *target.form.rotate;
            if (!nest.rotates()) nest.rotate_size = spec::narrow_word_bytes;
        }
    }
    if (target.form.crop) nest.crop_level = *target.form.crop;
}

unsigned value_or_0(const std::map<std::string, unsigned>& values, std::string_view name) {
    const auto found = values.find(std::string(name));
    return found == values.end() ? 0 : found->second;
}

unsigned counter_called(std::string_view name) {
    const auto* enumeration =
        spec::instructions[spec::op::mac].fields[spec::field::mac::wait0_counter].enumeration;
    constexpr unsigned most_counters = 32;
    for (unsigned value = 0; value < most_counters; ++value)
        if (const auto* known = enumeration->find(value); known != nullptr && known->name == name)
            return value;
    return most_counters;
}

class Conformer {
  public:
    /// `then`: of the same modes.
    Conformer(Parts parts, const Form& then) : parts_(std::move(parts)), then_(then) {}

    /// Changes what the parts point to; half of it where it gives false.
    bool run() {
        for (const NestPart& part : parts_.nests) {
            const auto form = then_.nests.find(std::string(part.name));
            targets_.push_back(
                {part, form == then_.nests.end() ? NestForm{} : form->second, {}, {}, {}, {}});
            if (!add_levels(targets_.back())) return false;
        }
        return set_waits() && set_signals() && set_numbers() && set_nests();
    }

  private:
    Target& target_of(const LoopNest* nest) {
        return *std::ranges::find_if(targets_,
                                     [&](const Target& t) { return t.part.nest == nest; });
    }

    /// The instruction's own in the form's order; between them such that are met from the start.
    bool set_waits() {
        if (then_.waits.size() > parts_.waits.size()) return false;
        std::vector<program::Wait> own;
        for (const program::Wait& w : parts_.waits)
            if (w.enabled) own.push_back(w);
        std::vector<program::Wait> all(parts_.waits.size());
        for (std::size_t i = 0; i < then_.waits.size(); ++i) {
            const WaitForm& form = then_.waits[i];
            const unsigned counter = counter_called(form.counter);
            const auto same = std::ranges::find_if(own, [&](const program::Wait& w) {
                return w.counter == counter && w.destination == form.destination;
            });
            if (same == own.end()) {
                if (!counts_from_stops(counter)) return false;
                all[i] = wait_for(counter, form.level, 0, 0);
                all[i].destination = form.destination;
                continue;
            }
            all[i] = *same;
            all[i].level = static_cast<std::uint8_t>(form.level);
            target_of(parts_.nest_of(form)).levels.push_back({same->level, form.level});
            own.erase(same);
        }
        std::ranges::copy(all, parts_.waits.begin());
        return own.empty();
    }
    static bool counts_from_stops(unsigned counter) {
        return counter < 32 && (all_but_producers >> counter & 1U) != 0;
    }

    bool set_signals() {
        for (const SignalPart& s : parts_.signals) {
            const auto form = then_.signals.find(std::string(s.name));
            const bool counts = form != then_.signals.end();
            if (!s.signal->enabled && !counts) continue;
            if (s.signal->enabled != counts && !(counts ? s.may_begin : s.may_change)) return false;
            if (s.signal->enabled && counts && !s.may_change)
                target_of(s.nest).levels.push_back({s.signal->level, form->second});
            *s.signal = counts ? signal_at(form->second) : program::Signal{};
        }
        return true;
    }

    bool set_numbers() {
        if (parts_.row_level != nullptr) {
            const unsigned row = value_or_0(then_.numbers, "row_level");
            if ((*parts_.row_level == 0) != (row == 0)) return false;
            target_of(parts_.row_nest).levels.push_back({*parts_.row_level, row});
            *parts_.row_level = row;
        }
        if (parts_.tensor == nullptr) return true;
        Target& loops = target_of(&parts_.tensor->loops);
        loops.reduction_now = parts_.tensor->reduction_mask;
        loops.reduction_then = value_or_0(then_.numbers, "reduction_mask");
        const unsigned group = value_or_0(then_.numbers, "group_level");
        if (groups_differ(*parts_.tensor))
            loops.levels.push_back({parts_.tensor->group_level, group});
        parts_.tensor->reduction_mask = *loops.reduction_then;
        parts_.tensor->group_level = group;
        return true;
    }

    /// Whether it matters where one output group ends and the next begins.
    static bool groups_differ(const program::Tensor& op) {
        return op.lanes != op.last_lanes || op.par_zero_rows || op.bias || op.lane_scale;
    }

    bool set_nests() {
        for (const Target& target : targets_) {
            Embedding embedding(target);
            const auto places = embedding.find();
            if (!places) return false;
            rebuild(target, embedding.moving(), *places);
        }
        return true;
    }

    Parts parts_;
    const Form& then_;
    std::vector<Target> targets_;
};

template <typename Op>
bool conform_op(program::Operation& operation, const Op& op) {
    if constexpr (requires(Op & o) { parts_of(o); }) {
        const auto text = form_of_operation({operation});
        if (!text || is_known_form(*text)) return text.has_value();
        const Form now = parse(*text);
        std::vector<std::pair<std::size_t, const Form*>> candidates;
        for (const Form& form : known_forms_of(program::info_of(operation).name))
            if (form.modes == now.modes) candidates.emplace_back(distance(*text, form.text), &form);
        std::ranges::stable_sort(candidates, {}, [](const auto& c) { return c.first; });
        for (const auto& [unused, form] : candidates) {
            Op other = op;
            if (!Conformer(parts_of(other), *form).run()) continue;
            const auto changed = form_of_operation({other});
            if (!changed || *changed != form->text) continue;
            operation = other;
            return true;
        }
    }
    return false;
}

}  // namespace

bool conform(program::Operation& operation) {
    return std::visit([&](const auto& op) { return conform_op(operation, op); },
                      program::Operation(operation));
}

}  // namespace reef::edgetpu::lowering
