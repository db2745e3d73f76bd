#include "sophgo/bmodel/table_differences.h"

#include <flatbuffers/minireflect.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace reef::sophgo {
namespace {

using flatbuffers::ElementaryType;
using flatbuffers::ReadScalar;
using flatbuffers::Table;
using flatbuffers::TypeTable;

/// What stands at a place of the tables.
struct Kind {
    ElementaryType base = flatbuffers::ET_UINT;
    const TypeTable* inner = nullptr;  ///< of a table or struct
    const char* name = "";             ///< of the field

    [[nodiscard]] bool is_table() const {
        return inner != nullptr && inner->st == flatbuffers::ST_TABLE;
    }
    [[nodiscard]] std::size_t bytes() const { return flatbuffers::InlineSize(base, inner); }
};

Kind kind_of(const TypeTable& type, std::size_t field) {
    const flatbuffers::TypeCode code = type.type_codes[field];
    return {static_cast<ElementaryType>(code.base_type),
            code.sequence_ref >= 0 ? type.type_refs[code.sequence_ref]() : nullptr,
            type.names[field]};
}

const std::uint8_t* field_of(const Table* table, std::size_t field) {
    const auto slot = flatbuffers::FieldIndexToOffset(static_cast<flatbuffers::voffset_t>(field));
    return table == nullptr ? nullptr : table->GetAddressOf(slot);
}

const std::uint8_t* follow(const std::uint8_t* offset) {
    return offset == nullptr ? nullptr : offset + ReadScalar<flatbuffers::uoffset_t>(offset);
}

const Table* table_at(const std::uint8_t* offset) {
    return reinterpret_cast<const Table*>(follow(offset));
}

/// A vector's elements in the file; none where there is no vector.
struct Elements {
    const std::uint8_t* first = nullptr;
    std::uint32_t count = 0;
    std::size_t step = 0;

    Elements(const std::uint8_t* offset, std::size_t bytes) : step(bytes) {
        if (offset == nullptr) return;
        count = ReadScalar<flatbuffers::uoffset_t>(follow(offset));
        first = follow(offset) + sizeof(flatbuffers::uoffset_t);
    }
    [[nodiscard]] const std::uint8_t* at(std::size_t i) const { return first + i * step; }
};

std::string number_text(const std::uint8_t* at, ElementaryType base) {
    const auto text = [at]<class Number>(Number) {
        return fmt::format("{}", ReadScalar<Number>(at));
    };
    switch (base) {
        case flatbuffers::ET_CHAR:
            return fmt::format("{}", int{ReadScalar<std::int8_t>(at)});
        case flatbuffers::ET_SHORT:
            return text(std::int16_t{});
        case flatbuffers::ET_USHORT:
            return text(std::uint16_t{});
        case flatbuffers::ET_INT:
            return text(std::int32_t{});
        case flatbuffers::ET_UINT:
            return text(std::uint32_t{});
        case flatbuffers::ET_LONG:
            return text(std::int64_t{});
        case flatbuffers::ET_ULONG:
            return text(std::uint64_t{});
        case flatbuffers::ET_FLOAT:
            return text(float{});
        case flatbuffers::ET_DOUBLE:
            return text(double{});
        default:
            return fmt::format("{}", unsigned{ReadScalar<std::uint8_t>(at)});
    }
}

/// Of fields whose default is not 0.
std::string default_text(std::string_view name) {
    if (name == "scale") return fmt::format("{}", schema::TensorT().scale);
    return name == "id" ? fmt::format("{}", schema::SubNetT().id) : "0";
}

/// "base_addr_id 1, addr_offset 2".
std::string struct_text(const std::uint8_t* at, const TypeTable& type) {
    std::string text;
    for (std::size_t i = 0; i < type.num_elems; ++i)
        text += fmt::format("{}{} {}", i == 0 ? "" : ", ", type.names[i],
                            number_text(at + type.values[i], kind_of(type, i).base));
    return text;
}

/// Of a number, a string or a struct; "-" for an empty string, as for none.
std::string value_text(const std::uint8_t* at, const Kind& kind) {
    if (kind.base == flatbuffers::ET_STRING) {
        if (at == nullptr) return "-";
        // Times end with a line feed.
        std::string text = reinterpret_cast<const flatbuffers::String*>(follow(at))->str();
        text.resize(text.find_last_not_of("\n ") + 1);
        return text.empty() ? "-" : text;
    }
    if (kind.inner != nullptr) return at == nullptr ? "-" : struct_text(at, *kind.inner);
    const std::string_view name = kind.name;
    if (name == "data_type") return data_type_name(at ? ReadScalar<std::uint32_t>(at) : 0);
    if (name == "addr_mode") return address_mode_name(at ? ReadScalar<std::int32_t>(at) : 0);
    if (kind.base == flatbuffers::ET_ULONG && (name.ends_with("_addr") || name == "address"))
        return fmt::format("{:#x}", at ? ReadScalar<std::uint64_t>(at) : 0);
    return at == nullptr ? default_text(name) : number_text(at, kind.base);
}

/// All of them where they are few.
std::string list_text(const Elements& elements, const Kind& kind) {
    constexpr std::uint32_t most = 8;
    if (elements.count == 0) return "-";
    if (elements.count > most) return fmt::format("{} values", elements.count);
    std::string text;
    for (std::uint32_t i = 0; i < elements.count; ++i)
        text += fmt::format("{}{}", i == 0 ? "" : ", ", value_text(elements.at(i), kind));
    return text;
}

class TableComparer {
  public:
    std::vector<Differing> found;

    /// `place`: in front of the fields' names. `without`: a field that is left out.
    void tables(const Table* a, const Table* b, const TypeTable& type, const std::string& place,
                std::string_view without = {}) {
        for (std::size_t i = 0; i < type.num_elems; ++i) {
            const Kind kind = kind_of(type, i);
            const std::uint8_t* left = field_of(a, i);
            const std::uint8_t* right = field_of(b, i);
            if ((left == nullptr && right == nullptr) || kind.name == without ||
                kind.inner == schema::BinaryTypeTable())
                continue;
            if (type.type_codes[i].is_repeating != 0)
                vectors(left, right, kind, place + kind.name);
            else if (kind.is_table())
                tables(table_at(left), table_at(right), *kind.inner, place + kind.name + ".");
            else
                values(left, right, kind, place + kind.name);
        }
    }

  private:
    void add(const std::string& what, std::string a, std::string b) {
        if (a != b) found.push_back({what, std::move(a), std::move(b)});
    }

    void values(const std::uint8_t* a, const std::uint8_t* b, const Kind& kind,
                const std::string& what) {
        add(what, value_text(a, kind), value_text(b, kind));
    }

    void vectors(const std::uint8_t* a, const std::uint8_t* b, const Kind& kind,
                 const std::string& what) {
        const Elements left(a, kind.bytes()), right(b, kind.bytes());
        if (!kind.is_table() && kind.base != flatbuffers::ET_STRING)
            return lists(left, right, kind, what);
        add(what, fmt::format("{}", left.count), fmt::format("{}", right.count));
        for (std::uint32_t i = 0; i < std::min(left.count, right.count); ++i) {
            const std::string at = fmt::format("{}[{}]", what, i);
            if (kind.is_table())
                tables(table_at(left.at(i)), table_at(right.at(i)), *kind.inner, at + ".");
            else
                values(left.at(i), right.at(i), kind, at);
        }
    }

    /// Of numbers or structs.
    void lists(const Elements& a, const Elements& b, const Kind& kind, const std::string& what) {
        std::uint32_t same = 0;
        while (same < std::min(a.count, b.count) &&
               std::memcmp(a.at(same), b.at(same), a.step) == 0)
            ++same;
        if (same == a.count && same == b.count) return;
        std::string left = list_text(a, kind), right = list_text(b, kind);
        if (left == right) right = fmt::format("as many, others from value {} on", same);
        add(what, std::move(left), std::move(right));
    }
};

const schema::Model& root_of(const Bmodel& bmodel) {
    return *flatbuffers::GetRoot<schema::Model>(bmodel.tables.data());
}

template <class T>
const Table* as_table(const T* table) {
    return reinterpret_cast<const Table*>(table);
}

std::uint32_t stages_of(const schema::Net& net) {
    return net.parameter() == nullptr ? 0 : net.parameter()->size();
}

void compare_nets(const schema::Net& a, const schema::Net& b, const std::string& name,
                  TableComparer& out) {
    out.tables(as_table(&a), as_table(&b), *schema::NetTypeTable(), name + ": ", "parameter");
    const std::uint32_t left = stages_of(a), right = stages_of(b);
    if (left != right)
        out.found.push_back({name + ": stages", fmt::format("{}", left), fmt::format("{}", right)});
    for (std::uint32_t s = 0; s < std::min(left, right); ++s)
        out.tables(as_table(a.parameter()->Get(s)), as_table(b.parameter()->Get(s)),
                   *schema::NetParameterTypeTable(), fmt::format("{} stage {}: ", name, s));
}

/// The net's number of each name.
std::map<std::string_view, std::uint32_t> numbers_of(const Bmodel& bmodel) {
    std::map<std::string_view, std::uint32_t> out;
    for (std::uint32_t n = 0; n < bmodel.net_names.size(); ++n) out.emplace(bmodel.net_names[n], n);
    return out;
}

}  // namespace

std::vector<Differing> table_differences(const Bmodel& a, const Bmodel& b) {
    const schema::Model &left = root_of(a), &right = root_of(b);
    TableComparer out;
    out.tables(as_table(&left), as_table(&right), *schema::ModelTypeTable(), {}, "net");
    const auto in_a = numbers_of(a), in_b = numbers_of(b);
    for (const std::string& name : a.net_names) {
        const schema::Net& net = *left.net()->Get(in_a.at(name));
        if (const auto other = in_b.find(name); other != in_b.end())
            compare_nets(net, *right.net()->Get(other->second), "net " + name, out);
        else
            out.found.push_back(
                {"net " + name + ": stages", fmt::format("{}", stages_of(net)), "-"});
    }
    for (const std::string& name : b.net_names)
        if (!in_a.contains(name))
            out.found.push_back({"net " + name + ": stages", "-",
                                 fmt::format("{}", stages_of(*right.net()->Get(in_b.at(name))))});
    return std::move(out.found);
}

}  // namespace reef::sophgo
