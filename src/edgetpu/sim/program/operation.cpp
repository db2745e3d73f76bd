#include "edgetpu/sim/program/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "edgetpu/program/codec.h"
#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu::sim {
namespace {

std::string place_of(const Instruction& source) {
    return fmt::format("word {:#06x} {}", source.word, source.info->name);
}

std::unexpected<Error> not_modelled(const Instruction& instruction, std::string_view what,
                                    std::string_view needed) {
    return fail(Cause::unsupported, fmt::format("not modelled: {}", what), place_of(instruction),
                std::string(needed));
}

template <typename Typed>
Prepared<Typed> prepared(const Typed& typed) {
    Prepared<Typed> out{typed};
    out.waits.least_level = Nest::most_dimensions + 1;
    for (const auto& wait : typed.wait) {
        if (!wait.enabled) continue;
        out.waits.all[out.waits.count++] = wait;
        out.waits.least_level = std::min(out.waits.least_level, wait.level);
    }
    return out;
}

MeshTransfer mesh(const program::Mesh& typed) {
    MeshTransfer m{prepared(typed)};
    m.sends = m.src.moves();
    m.receives = m.dst.moves() || m.fills;
    // A transfer of a single word has no mark that tells its direction: assumed from which of the
    // two addresses is set.
    if (!m.sends && !m.receives) (m.dst.base != 0 ? m.receives : m.sends) = true;
    return m;
}

TensorOp tensor_loops(const program::TensorLoops& typed, TensorKind kind) {
    TensorOp t{prepared(typed)};
    t.kind = kind;
    t.reduction_steps = typed.steps_of_result();
    return t;
}

TensorOp tensor(const program::Tensor& typed, TensorKind kind) {
    TensorOp t = tensor_loops(typed, kind);
    t.clamp_max = typed.clamp_max;
    t.clamp_min = typed.clamp_min;
    t.start_value = typed.initial;
    t.out_zero = typed.out_zero;
    t.bias = typed.bias;
    t.lane_scale = typed.lane_scale;
    t.table_odd = typed.table_odd != 0;
    return t;
}

TensorOp resize(const program::Resize& typed) {
    TensorOp t = tensor_loops(typed, TensorKind::resize);
    t.resize = {typed.x, typed.y, typed.pixel_stride, typed.row_stride, typed.unknown_2093};
    t.clamp_max = 255;
    return t;
}

/// The operation of a typed instruction; refuses what no known program shows.
struct Prepare {
    const Instruction& source;

    Result<Operation> operator()(const Sync& o) const { return o; }
    Result<Operation> operator()(const Fence& o) const { return o; }
    Result<Operation> operator()(const program::LoadTable& o) const { return o.table; }
    Result<Operation> operator()(const program::Infeed& o) const { return prepared(o); }
    Result<Operation> operator()(const program::RingPush& o) const {
        return RingPush{prepared(o), 4 * o.message_words};
    }
    Result<Operation> operator()(const program::RingPop& o) const {
        return RingPop{prepared(o), 4 * o.message_words};
    }
    Result<Operation> operator()(const program::RingSend& o) const { return RingSend{prepared(o)}; }
    Result<Operation> operator()(const program::RingReceive& o) const { return prepared(o); }
    Result<Operation> operator()(const program::NarrowToWide& o) const { return prepared(o); }
    Result<Operation> operator()(const program::WideToNarrow& o) const { return prepared(o); }
    Result<Operation> operator()(const program::Mesh& o) const { return mesh(o); }
    Result<Operation> operator()(const program::Resize& o) const { return resize(o); }
    Result<Operation> operator()(const program::Tensor& o) const {
        switch (o.kind) {
            case program::TensorKind::mac:
                return tensor(o, TensorKind::mac);
            case program::TensorKind::max:
                return tensor(o, TensorKind::max);
            case program::TensorKind::sum:
                return tensor(o, TensorKind::sum);
            default:
                return not_modelled(source, fmt::format("tile opcode {:#04x}", source.info->opcode),
                                    "no known program uses it; its arithmetic is unknown");
        }
    }
    Result<Operation> operator()(const auto&) const { return ScalarWork{}; }
};

Result<Operation> checked(const Instruction& source, const program::Operation& typed) {
    auto operation = std::visit(Prepare{source}, typed);
    if (!operation) return operation;
    Status status = check_forms(source, typed);
    if (status) status = check_modes(source, *operation);
    if (status) status = check_limits(*operation);
    if (!status) return std::unexpected(std::move(status.error()).in(place_of(source)));
    return operation;
}

}  // namespace

Result<Operation> operation_of(const Instruction& source) {
    return checked(source, program::decode(source).operation);
}

namespace {

bool is_fixed(const program::Operation& operation) {
    return std::visit(
        []<typename Op>(const Op& op) {
            if constexpr (std::is_same_v<Op, Fence>)
                return !op.gate.enabled;
            else if constexpr (requires { op.work; })
                return !op.work.gate.enabled && op.work.base_register == 0 &&
                       !op.work.tiles_indirect;
            else
                return false;
        },
        operation);
}

std::uint8_t lines_of(const ProgramInstruction& at) {
    constexpr std::size_t before = sizeof at - sizeof at.operation;
    const std::size_t size =
        before + std::visit([](const auto& op) { return sizeof op; }, at.operation);
    return static_cast<std::uint8_t>((size + cache_line_bytes - 1) / cache_line_bytes);
}

}  // namespace

Result<Stream> translate(Bytes bytes, std::uint32_t first_number) {
    Stream stream;
    const auto decoded = REEF_TRY(decode(bytes));
    stream.at_word.assign(bytes.size() / word_bytes, Stream::no_instruction);
    stream.instructions.reserve(decoded.size());
    stream.dispatches.reserve(decoded.size());
    for (const auto& source : decoded) {
        auto& at = stream.instructions.emplace_back();
        at.source = source;
        const auto typed = program::decode(source).operation;
        at.operation = REEF_TRY(checked(source, typed));
        at.number = first_number + static_cast<std::uint32_t>(stream.instructions.size() - 1);
        at.tiles = program::tiles_of(typed);
        at.engine = engine_of(at.operation);
        at.fixed = is_fixed(typed);
        at.lines = lines_of(at);
        stream.dispatches.push_back(at);
        stream.at_word[source.word] = static_cast<std::uint32_t>(stream.instructions.size() - 1);
    }
    return stream;
}

}  // namespace reef::edgetpu::sim
