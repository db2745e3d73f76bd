#include "model/flatbuffer_survey.h"

#include <fmt/format.h>

#include <algorithm>

namespace reef::model {
namespace {

using flatbuffers::ReadScalar;
using flatbuffers::Table;
using flatbuffers::TypeCode;
using flatbuffers::TypeTable;
using flatbuffers::voffset_t;

/// Walks a verified FlatBuffer along the schema's type tables. Visits exactly what the verifier
/// visited, so that the verifier's limits on depth and number of tables hold here too.
class Walker {
  public:
    /// A step of the way down: field `name`, and its element `index` unless negative.
    struct Step {
        const Step* outer;
        const char* name;
        std::int64_t index;
    };

    explicit Walker(std::string_view root_name) : root_name_(root_name) {}

    void visit(const Table& table, const TypeTable& type, const Step* where) {
        note_newer_fields(table, type, where);
        for (std::size_t i = 0; i < type.num_elems; ++i) {
            const voffset_t at = table.GetOptionalFieldOffset(slot(i));
            if (at == 0) continue;
            const Step step{where, type.names[i], -1};
            visit_field(table, type, i, reinterpret_cast<const std::uint8_t*>(&table) + at, step);
        }
    }

    [[nodiscard]] FlatbufferSurvey take() { return std::move(found_); }

  private:
    static voffset_t slot(std::size_t field) {
        return flatbuffers::FieldIndexToOffset(static_cast<voffset_t>(field));
    }
    static const std::uint8_t* follow(const std::uint8_t* offset) {
        return offset + ReadScalar<flatbuffers::uoffset_t>(offset);
    }
    static const Table& table_at(const std::uint8_t* offset) {
        return *reinterpret_cast<const Table*>(follow(offset));
    }

    void note_newer_fields(const Table& table, const TypeTable& type, const Step* where) {
        const std::uint8_t* vtable = table.GetVTable();
        const std::size_t vtable_size = ReadScalar<voffset_t>(vtable);
        for (std::size_t i = type.num_elems; slot(i) + sizeof(voffset_t) <= vtable_size; ++i) {
            if (ReadScalar<voffset_t>(vtable + slot(i)) == 0) continue;
            note(where, fmt::format("field {}", i));
        }
    }

    void visit_field(const Table& table, const TypeTable& type, std::size_t i,
                     const std::uint8_t* value, Step step) {
        const TypeCode code = type.type_codes[i];
        const auto base = static_cast<flatbuffers::ElementaryType>(code.base_type);
        const TypeTable* inner =
            code.sequence_ref >= 0 ? type.type_refs[code.sequence_ref]() : nullptr;
        if (code.is_repeating) {
            visit_vector(follow(value), base, inner, step);
        } else if (base == flatbuffers::ET_STRING) {
            add_string(value);
        } else if (base == flatbuffers::ET_SEQUENCE && inner->st == flatbuffers::ST_UNION) {
            const auto member = table.GetField<std::uint8_t>(slot(i - 1), 0);
            visit_union(table_at(value), *inner, member, step);
        } else if (base == flatbuffers::ET_SEQUENCE && inner->st == flatbuffers::ST_TABLE) {
            visit(table_at(value), *inner, &step);  // a struct stands in the table itself
        }
    }

    void add_string(const std::uint8_t* offset) {
        found_.payload_bytes += ReadScalar<flatbuffers::uoffset_t>(follow(offset));
    }

    static std::size_t alignment_of(flatbuffers::ElementaryType base, const TypeTable* inner) {
        if (base != flatbuffers::ET_SEQUENCE || inner->st != flatbuffers::ST_STRUCT) {
            return flatbuffers::InlineSize(base, inner);
        }
        std::size_t widest = 1;
        for (std::size_t i = 0; i < inner->num_elems; ++i) {
            const auto member =
                static_cast<flatbuffers::ElementaryType>(inner->type_codes[i].base_type);
            widest = std::max(widest, flatbuffers::InlineSize(member, nullptr));
        }
        return widest;
    }

    void visit_vector(const std::uint8_t* vector, flatbuffers::ElementaryType base,
                      const TypeTable* inner, Step step) {
        const auto count = ReadScalar<flatbuffers::uoffset_t>(vector);
        const std::size_t element_size = flatbuffers::InlineSize(base, inner);
        found_.payload_bytes += std::uint64_t{count} * element_size;
        // The verifier looks at the length's alignment only.
        const std::uint8_t* first = vector + sizeof(count);
        const std::size_t alignment = alignment_of(base, inner);
        if (count > 0 && reinterpret_cast<std::uintptr_t>(first) % alignment != 0) {
            found_.misaligned = first;
        }
        if (base == flatbuffers::ET_STRING) {
            for (std::uint32_t i = 0; i < count; ++i) add_string(first + i * element_size);
        }
        if (base != flatbuffers::ET_SEQUENCE || inner->st == flatbuffers::ST_STRUCT) return;
        for (std::uint32_t i = 0; i < count; ++i) {
            step.index = i;
            const std::uint8_t* element = vector + sizeof(count) + i * sizeof(count);
            visit(table_at(element), *inner, &step);
        }
    }

    void visit_union(const Table& table, const TypeTable& members, std::uint8_t member,
                     const Step& step) {
        if (member == 0) return;  // a value without a type: nobody can read it
        if (member >= members.num_elems) {
            note(&step, fmt::format("union member {}", member));
            return;
        }
        visit(table, *members.type_refs[members.type_codes[member].sequence_ref](), &step);
    }

    void note(const Step* where, const std::string& what) {
        constexpr std::size_t most = 16;
        if (found_.unknown.size() > most) return;
        if (found_.unknown.size() == most) {
            found_.unknown.emplace_back("and more");
            return;
        }
        std::string path;
        for (; where != nullptr; where = where->outer) {
            const std::string index = where->index < 0 ? "" : fmt::format("[{}]", where->index);
            path = fmt::format("{}{}{}{}", where->name, index, path.empty() ? "" : ".", path);
        }
        found_.unknown.push_back(fmt::format("{} of {}", what, path.empty() ? root_name_ : path));
    }

    std::string_view root_name_;
    FlatbufferSurvey found_;
};

}  // namespace

FlatbufferSurvey survey_flatbuffer(const Table& root, const TypeTable& type,
                                   std::string_view name) {
    Walker walker(name);
    walker.visit(root, type, nullptr);
    return walker.take();
}

}  // namespace reef::model
