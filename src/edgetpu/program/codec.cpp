#include "edgetpu/program/codec.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "edgetpu/program/members.h"

namespace reef::edgetpu::program {
namespace {

constexpr std::size_t instruction_count = std::size(spec::instructions);

/// Whether all instructions that begin with a gate, or with what tile instructions share, have
/// those fields at the places that members.h takes them from.
constexpr bool same_beginnings() {
    const auto same = [](const InstructionInfo& info, unsigned field) {
        const auto& shared = spec::mac_fields[field];
        return info.fields[field].name == shared.name &&
               info.fields[field].position == shared.position &&
               info.fields[field].width == shared.width;
    };
    for (const auto& info : spec::instructions) {
        for (const unsigned field :
             {shared_field::gate, shared_field::predicate, shared_field::sense})
            if (!same(info, field)) return false;
        if (info.space == Space::scalar || info.name == "fence") continue;
        for (const unsigned field :
             {shared_field::tiles, shared_field::base_register, shared_field::tiles_register,
              shared_field::tiles_indirect, shared_field::seq, shared_field::caching})
            if (!same(info, field)) return false;
    }
    return true;
}
static_assert(same_beginnings());

/// Members from fields.
class Reader {
  public:
    static constexpr bool reads = true;
    explicit Reader(const Instruction& instruction) : instruction_(&instruction) {}

    template <typename T>
    void operator()(unsigned index, T& member) const {
        const FieldInfo& field = instruction_->info->fields[index];
        if constexpr (std::is_same_v<T, float>) {
            member = std::bit_cast<float>(static_cast<std::uint32_t>(instruction_->bits(field)));
        } else {
            const auto value = instruction_->value(field);
            member = static_cast<T>(field.kind == FieldKind::limit ? value + 1 : value);
        }
    }
    void last(unsigned index, std::uint32_t& count) const {
        (*this)(index, count);
        ++count;
    }
    static void dimensions(unsigned, LoopNest& nest, unsigned dimensions) {
        nest.dimensions = dimensions;
    }
    static void counts_alone(unsigned, LoopNest& nest, unsigned dimensions) {
        nest.dimensions = dimensions;
    }
    static void absent(unsigned, std::string_view, bool&) {}

  private:
    const Instruction* instruction_;
};

/// Fields from members; keeps the first error.
class Writer {
  public:
    static constexpr bool reads = false;
    explicit Writer(InstructionBuilder& builder) : builder_(&builder) {}

    template <typename T>
    void operator()(unsigned index, const T& member) {
        if constexpr (std::is_same_v<T, float>) {
            set(index, std::bit_cast<std::uint32_t>(member));
        } else if constexpr (std::is_enum_v<T>) {
            set(index, static_cast<std::int64_t>(std::to_underlying(member)));
        } else if (field(index).kind == FieldKind::limit) {
            set_count(index, static_cast<std::int64_t>(member));
        } else {
            set(index, static_cast<std::int64_t>(member));
        }
    }
    void last(unsigned index, std::uint32_t count) { set_count(index, count); }
    void dimensions(unsigned first, const LoopNest& nest, unsigned dimensions) {
        bool beyond = nest.dimensions != dimensions;
        for (unsigned d = dimensions; d < LoopNest::most_dimensions; ++d)
            beyond = beyond || nest.step[d] != 0 || nest.count[d] != 1;
        if (beyond) refuse(first, fmt::format("a nest of other than {} dimensions", dimensions));
    }
    void counts_alone(unsigned first, const LoopNest& nest, unsigned dimensions_) {
        dimensions(first, nest, dimensions_);
        LoopNest counts{.dimensions = nest.dimensions, .count = nest.count};
        counts.crop_level = nest.crop_level;
        counts.crop_count = nest.crop_count;
        if (counts != nest) refuse(first, "loops have counts and a crop and nothing else");
    }
    void absent(unsigned index, std::string_view what, bool present) {
        if (present) refuse(index, fmt::format("this wait has no place for {}", what));
    }

    void set(unsigned index, std::int64_t value) {
        keep(set_field(builder_->bytes(), field(index), value));
    }
    /// Any bits that the field has room for, of whatever kind it is.
    void set_bits(unsigned index, std::uint64_t bits) {
        if (bits >> field(index).width != 0)
            return refuse(index,
                          fmt::format("{:#x} does not fit {} bits", bits, field(index).width));
        set_field_bits(builder_->bytes(), field(index), bits);
    }
    [[nodiscard]] Status take() { return std::move(status_); }

  private:
    [[nodiscard]] const FieldInfo& field(unsigned index) const {
        return builder_->info().fields[index];
    }
    void set_count(unsigned index, std::int64_t count) {
        const auto most = std::int64_t{1} << field(index).width;
        if (count < 1 || count > most)
            return refuse(index, fmt::format("a count of {}, of 1 to {}", count, most));
        set(index, count - 1);
    }
    void refuse(unsigned index, std::string what) {
        keep(fail(Cause::bad_argument, std::move(what), std::string(field(index).name)));
    }
    void keep(Status status) {
        if (status_ && !status) status_ = std::move(status);
    }

    InstructionBuilder* builder_;
    Status status_;
};

/// Notes which fields are members'.
class Witness {
  public:
    static constexpr bool reads = false;
    explicit Witness(std::size_t fields) : held(fields) {}

    void operator()(unsigned index, const auto&) { held[index] = true; }
    void last(unsigned index, std::uint32_t) { held[index] = true; }
    static void dimensions(unsigned, const LoopNest&, unsigned) {}
    static void counts_alone(unsigned, const LoopNest&, unsigned) {}
    static void absent(unsigned, std::string_view, bool) {}

    std::vector<bool> held;
};

/// An operation of the instruction's kind, all members as they begin.
Operation operation_of(std::size_t index) {
    switch (index) {
        case spec::op::bundle:
            return Bundle{};
        case spec::op::halt:
            return Halt{};
        case spec::op::branch:
            return Branch{};
        case spec::op::loop:
            return Loop{};
        case spec::op::sync:
            return Sync{};
        case spec::op::infeed:
            return Infeed{};
        case spec::op::ring_push:
            return RingPush{};
        case spec::op::ring_pop:
            return RingPop{};
        case spec::op::start:
            return Start{};
        case spec::op::end:
            return End{};
        case spec::op::tensor_0:
            return Tensor{{}, TensorKind::unseen_0};
        case spec::op::mac:
            return Tensor{{}, TensorKind::mac};
        case spec::op::max:
            return Tensor{{}, TensorKind::max};
        case spec::op::sum:
            return Tensor{{}, TensorKind::sum};
        case spec::op::tensor_4:
            return Tensor{{}, TensorKind::unseen_4};
        case spec::op::resize:
            return Resize{};
        case spec::op::ring_send:
            return RingSend{};
        case spec::op::ring_receive_a:
            return RingReceive{.ring = Ring::a};
        case spec::op::ring_receive_b:
            return RingReceive{.ring = Ring::b};
        case spec::op::narrow_to_wide:
            return NarrowToWide{};
        case spec::op::wide_to_narrow:
            return WideToNarrow{};
        case spec::op::mesh_south:
            return Mesh{.to = Direction::south};
        case spec::op::mesh_west:
            return Mesh{.to = Direction::west};
        case spec::op::mesh_north:
            return Mesh{.to = Direction::north};
        case spec::op::mesh_east:
            return Mesh{.to = Direction::east};
        case spec::op::load_table:
            return LoadTable{};
        default:
            return Fence{};
    }
}
static_assert(spec::op::fence + 1 == instruction_count, "operation_of() knows them all");

/// Which instruction an operation is.
struct IndexOf {
    unsigned operator()(const Bundle&) const { return spec::op::bundle; }
    unsigned operator()(const Halt&) const { return spec::op::halt; }
    unsigned operator()(const Branch&) const { return spec::op::branch; }
    unsigned operator()(const Loop&) const { return spec::op::loop; }
    unsigned operator()(const Sync&) const { return spec::op::sync; }
    unsigned operator()(const Infeed&) const { return spec::op::infeed; }
    unsigned operator()(const RingPush&) const { return spec::op::ring_push; }
    unsigned operator()(const RingPop&) const { return spec::op::ring_pop; }
    unsigned operator()(const Start&) const { return spec::op::start; }
    unsigned operator()(const End&) const { return spec::op::end; }
    unsigned operator()(const Tensor& o) const {
        constexpr unsigned by_kind[] = {spec::op::mac, spec::op::max, spec::op::sum,
                                        spec::op::tensor_0, spec::op::tensor_4};
        return by_kind[std::to_underlying(o.kind)];
    }
    unsigned operator()(const Resize&) const { return spec::op::resize; }
    unsigned operator()(const RingSend&) const { return spec::op::ring_send; }
    unsigned operator()(const RingReceive& o) const {
        return o.ring == Ring::a ? spec::op::ring_receive_a : spec::op::ring_receive_b;
    }
    unsigned operator()(const NarrowToWide&) const { return spec::op::narrow_to_wide; }
    unsigned operator()(const WideToNarrow&) const { return spec::op::wide_to_narrow; }
    unsigned operator()(const Mesh& o) const {
        constexpr unsigned by_direction[] = {spec::op::mesh_south, spec::op::mesh_west,
                                             spec::op::mesh_north, spec::op::mesh_east};
        return by_direction[std::to_underlying(o.to)];
    }
    unsigned operator()(const LoadTable&) const { return spec::op::load_table; }
    unsigned operator()(const Fence&) const { return spec::op::fence; }
};

/// A field that no member holds, and its bits in known programs: the least, if there are several.
struct Unheld {
    std::uint16_t field;
    std::uint64_t usual;
};
using UnheldFields = std::array<std::vector<Unheld>, instruction_count>;

const UnheldFields& unheld_fields() {
    // Never destroyed: a chip may compute on a thread of its own until the process ends.
    static const auto& all = *new UnheldFields([] {
        UnheldFields out;
        for (std::size_t i = 0; i < instruction_count; ++i) {
            const auto held = members_of(operation_of(i));
            for (std::size_t f = 0; f < held.size(); ++f)
                if (const auto& seen = spec::instructions[i].fields[f].seen; !held[f])
                    out[i].push_back(
                        {static_cast<std::uint16_t>(f), seen.empty() ? 0 : seen.front()});
        }
        return out;
    }());
    return all;
}

}  // namespace

const InstructionInfo& info_of(const Operation& operation) {
    return spec::instructions[std::visit(IndexOf{}, operation)];
}

std::vector<bool> members_of(const Operation& operation) {
    Witness witness(info_of(operation).fields.size());
    std::visit([&](const auto& o) { members(witness, o); }, operation);
    return std::move(witness.held);
}

TileSet tiles_of(const Operation& operation) {
    return std::visit(
        [](const auto& o) -> TileSet {
            if constexpr (requires { o.work; }) return o.work.tiles;
            if constexpr (std::is_same_v<decltype(o), const Fence&>) return o.tiles;
            return 0;
        },
        operation);
}

TypedInstruction decode(const Instruction& instruction) {
    const auto index = static_cast<std::size_t>(instruction.info - spec::instructions);
    TypedInstruction out{operation_of(index)};
    Reader reader(instruction);
    std::visit([&](auto& o) { members(reader, o); }, out.operation);
    if (auto* copy = std::get_if<NarrowToWide>(&out.operation))
        copy->src.crop_dimension = cropped_dimension(copy->format);
    for (const auto& [field, usual] : unheld_fields()[index])
        if (const auto bits = instruction.bits(instruction.info->fields[field]); bits != usual)
            out.others.push_back({field, bits});
    return out;
}

Result<std::vector<TypedInstruction>> decode_stream(Bytes stream) {
    const auto instructions = REEF_TRY(edgetpu::decode(stream));
    std::vector<TypedInstruction> out;
    out.reserve(instructions.size());
    for (const auto& instruction : instructions) out.push_back(decode(instruction));
    return out;
}

Result<InstructionBuilder> encode(const TypedInstruction& instruction) {
    const auto& info = info_of(instruction.operation);
    InstructionBuilder builder(info);
    Writer writer(builder);
    std::visit([&](const auto& o) { members(writer, o); }, instruction.operation);
    if (const auto* copy = std::get_if<NarrowToWide>(&instruction.operation);
        copy != nullptr && copy->src.crop_dimension != cropped_dimension(copy->format))
        return fail(Cause::bad_argument, "the crop of src is of another dimension",
                    std::string(info.name));
    const auto& unheld = unheld_fields()[static_cast<std::size_t>(&info - spec::instructions)];
    for (const auto& [field, usual] : unheld)
        if (usual != 0) writer.set_bits(field, usual);
    for (const auto& [field, bits] : instruction.others) {
        const bool known =
            std::ranges::any_of(unheld, [&, f = field](const Unheld& u) { return u.field == f; });
        if (!known)
            return fail(Cause::bad_argument, fmt::format("field {} is a member's, or none", field),
                        std::string(info.name));
        writer.set_bits(field, bits);
    }
    REEF_CHECK(in_place(writer.take(), info.name));
    return builder;
}

}  // namespace reef::edgetpu::program
