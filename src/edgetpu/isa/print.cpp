#include <bit>

#include "edgetpu/isa/line_text.h"
#include "edgetpu/isa/loop_nest.h"
#include "reef/edgetpu/assembly.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu {
namespace {

std::string_view enum_name(const Enumeration& enumeration, std::uint64_t value) {
    for (const auto& v : enumeration.values) {
        if (v.value == value) return v.name;
    }
    return {};
}

void put_tiles(TextWriter& out, std::uint64_t tiles) {
    constexpr unsigned count = spec::tile_count;
    if (tiles == (1U << count) - 1) return out.put("all");
    bool first = true;
    for (unsigned t = 0; t < count; ++t) {
        if (!(tiles >> t & 1)) continue;
        unsigned last = t;
        while (last + 1 < count && (tiles >> (last + 1) & 1)) ++last;
        if (!first) out.put('+');
        first = false;
        out.put('t');
        out.decimal(std::int64_t{t});
        if (last > t) {
            out.put("-t");
            out.decimal(std::int64_t{last});
        }
        t = last;
    }
}

// Names joined by "+", "all" less the names that are missing when those are fewer, or the number
// when a bit has no name.
void put_set(TextWriter& out, const Enumeration& set, std::uint64_t bits, unsigned width) {
    std::uint64_t named = 0;
    for (const auto& v : set.values) named |= std::uint64_t{1} << v.value;
    if (bits & ~named) return out.hex(bits);
    const auto all = ~std::uint64_t{0} >> (64 - width);
    const bool inverse = all == named && 2 * std::popcount(bits) > std::popcount(all);
    const auto shown = inverse ? all & ~bits : bits;
    if (inverse) out.put("all");
    bool separate = inverse;
    for (const auto& v : set.values) {
        if (!(shown >> v.value & 1)) continue;
        if (separate) out.put(inverse ? '-' : '+');
        separate = true;
        out.put(v.name);
    }
}

void put_float(TextWriter& out, std::uint64_t bits) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (value != value) return out.hex(bits);  // a NaN has more than one pattern
    out.decimal(value);
}

void put_value(TextWriter& out, Bytes bytes, const FieldInfo& field, bool symbolic) {
    const auto bits = field_bits(bytes, field);
    switch (field.kind) {
        case FieldKind::signed_number:
            return out.decimal(field_value(bytes, field));
        case FieldKind::float32:
            return put_float(out, bits);
        case FieldKind::tiles:
            if (symbolic && bits) return put_tiles(out, bits);
            return out.hex(bits);
        case FieldKind::set:
            if (symbolic && bits) return put_set(out, *field.enumeration, bits, field.width);
            return out.hex(bits);
        case FieldKind::enumeration:
            if (symbolic) {
                if (const auto name = enum_name(*field.enumeration, bits); !name.empty())
                    return out.put(name);
            }
            return out.decimal(static_cast<std::int64_t>(bits));
        case FieldKind::register_number:
            if (symbolic) out.put('s');
            return out.decimal(static_cast<std::int64_t>(bits));
        case FieldKind::address:
        case FieldKind::mask:
        case FieldKind::raw:
            return out.hex(bits);
        case FieldKind::unsigned_number:
        case FieldKind::flag:
        case FieldKind::limit:
            return out.decimal(static_cast<std::int64_t>(bits));
    }
}

void put_name(TextWriter& out, std::string_view name, Grade grade, bool symbolic) {
    out.put(' ');
    out.put(name);
    if (symbolic && grade == Grade::guess) out.put('?');
    out.put('=');
}

class InstructionPrinter {
  public:
    InstructionPrinter(TextWriter& out, const InstructionInfo& info, Bytes bytes)
        : out_(out), info_(info), bytes_(bytes) {}

    void plain() {
        for (const auto& field : info_.fields) put_field(field, false);
    }

    void symbolic() {
        auto group = info_.groups.begin();
        for (std::size_t f = 0; f < info_.fields.size();) {
            if (group != info_.groups.end() && f == group->first) f += fold(*group++);
            // A group that ends where the next one begins.
            if (group != info_.groups.end() && f == group->first) continue;
            if (f < info_.fields.size()) put_field(info_.fields[f++], true);
        }
    }

  private:
    void put_field(const FieldInfo& field, bool symbolic) {
        if (field_bits(bytes_, field) == 0) return;
        const auto grade = field.kind == FieldKind::raw ? Grade::exact : field.grade;
        put_name(out_, field.name, grade, symbolic);
        put_value(out_, bytes_, field, symbolic);
    }

    // Writes the group as one item and gives the number of its fields that are then written.
    std::size_t fold(const FieldGroup& group) {
        switch (group.kind) {
            case GroupKind::loop_nest:
                return fold_nest(group);
            case GroupKind::loops:
                return fold_loops(group);
            case GroupKind::wait:
                return fold_wait(group);
            case GroupKind::signal:
                return fold_signal(group);
            case GroupKind::slot:
                return fold_slot(group);
            case GroupKind::plain:
                break;
        }
        return 0;
    }

    std::uint64_t bits(const FieldGroup& group, std::size_t index) const {
        return field_bits(bytes_, info_.fields[group.first + index]);
    }
    void name(const FieldGroup& group) {
        put_name(out_, group.name, info_.fields[group.first].grade, true);
    }

    std::size_t fold_nest(const FieldGroup& group) {
        const std::size_t folded = 1 + 2 * std::size_t{group.dimensions};
        std::uint64_t any = 0;
        for (std::size_t f = 0; f < folded; ++f) any |= bits(group, f);
        if (!any) return folded;
        const auto nest = read_loop_nest(bytes_, info_, group);
        const auto strides = strides_of(nest);
        unsigned last = nest.dimensions;
        while (last > 0 && strides[last - 1] == 0 && nest.count[last - 1] == 1) --last;
        name(group);
        out_.hex(static_cast<std::uint64_t>(nest.base));
        for (unsigned d = 0; d < last; ++d) {
            out_.put('[');
            out_.decimal(static_cast<std::int64_t>(strides[d]));
            out_.put('x');
            out_.decimal(std::int64_t{nest.count[d]});
            out_.put(']');
        }
        return folded;
    }

    std::size_t fold_loops(const FieldGroup& group) {
        std::size_t last = group.dimensions;
        while (last > 0 && bits(group, last - 1) == 0) --last;
        if (last == 0) return group.dimensions;
        name(group);
        for (std::size_t d = 0; d < last; ++d) {
            if (d > 0) out_.put('x');
            out_.decimal(static_cast<std::int64_t>(bits(group, d) + 1));
        }
        return group.dimensions;
    }

    std::size_t fold_wait(const FieldGroup& group) {
        const auto fields = info_.fields.subspan(group.first, group.count);
        const auto counter = enum_name(*fields[0].enumeration, bits(group, 0));
        if (bits(group, 4) == 0 || counter.empty()) return 0;
        name(group);
        out_.put(counter);
        out_.put('@');
        out_.decimal(field_value(bytes_, fields[1]));
        out_.put(">=");
        out_.decimal(field_value(bytes_, fields[2]));
        out_.put('+');
        out_.decimal(field_value(bytes_, fields[3]));
        if (group.count > 5 && bits(group, 5)) out_.put(",destination");
        return group.count;
    }

    std::size_t fold_signal(const FieldGroup& group) {
        if (bits(group, 0) == 0) return 0;
        name(group);
        out_.put('@');
        out_.decimal(static_cast<std::int64_t>(bits(group, 1)));
        return group.count;
    }

    std::size_t fold_slot(const FieldGroup& group) {
        const auto fields = info_.fields.subspan(group.first, group.count);
        const auto operation = enum_name(*fields[0].enumeration, bits(group, 0));
        if (bits(group, 0) == 0 || operation.empty()) return 0;
        put_name(out_, group.name, fields[0].grade, true);
        out_.put(operation);
        for (std::size_t f = 1; f < fields.size(); ++f) {
            out_.put(f == 1 ? '(' : ',');
            put_value(out_, bytes_, fields[f], true);
        }
        out_.put(')');
        return group.count;
    }

    TextWriter& out_;
    const InstructionInfo& info_;
    Bytes bytes_;
};

void put_data(TextWriter& out, Bytes bytes) {
    const bool word = bytes.size() == word_bytes;
    out.put(word ? ".word 0x" : ".bytes ");
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const auto byte = bytes[word ? bytes.size() - 1 - i : i];
        out.hex_digits(std::to_integer<std::uint64_t>(byte), 2);
    }
}

void append_field(const Instruction& instruction, const FieldInfo& field,
                  const TextOptions& options, std::string& text) {
    TextWriter out(text);
    out.begin_line();
    put_value(out, instruction.bytes, field, options.symbolic);
    out.end_line();
}

}  // namespace

void put_line(TextWriter& out, const Instruction& instruction, const TextOptions& options) {
    if (options.addresses) {
        out.put("0x");
        out.hex_digits(instruction.word, instruction.word >> 16 ? 8 : 4);
        out.put(": ");
    }
    if (!instruction.info) return put_data(out, instruction.bytes);
    out.put(instruction.info->name);
    InstructionPrinter printer(out, *instruction.info, instruction.bytes);
    options.symbolic ? printer.symbolic() : printer.plain();
}

void append_text(const Instruction& instruction, const TextOptions& options, std::string& out) {
    TextWriter writer(out);
    writer.begin_line();
    put_line(writer, instruction, options);
    writer.end_line();
}

std::string field_text(const Instruction& instruction, const FieldInfo& field,
                       const TextOptions& options) {
    std::string text;
    append_field(instruction, field, options, text);
    return text;
}

}  // namespace reef::edgetpu
