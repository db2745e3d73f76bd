#include "inputs/drawn_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <span>
#include <utility>

#include "inputs/model_session.h"
#include "reef/runtime/session.h"

namespace reef::tool {
namespace {

using model::TensorIndex;

std::size_t place_of(TensorIndex index) {
    return static_cast<std::size_t>(index);
}

bool is_wide_integer(ElementType type) {
    return type == ElementType::int32 || type == ElementType::int64 ||
           type == ElementType::uint32 || type == ElementType::uint64;
}

void fill_random(std::mt19937_64& random, ElementType type, std::span<std::byte> bytes) {
    const std::size_t size = *size_of(type);
    for (std::size_t i = 0; i < bytes.size(); i += size) {
        const std::uint64_t word = random();
        if (type == ElementType::float32) {
            const float value = static_cast<float>(word >> 40) / static_cast<float>(1U << 23) - 1;
            std::memcpy(&bytes[i], &value, size);
        } else if (type == ElementType::float64) {
            const double value = static_cast<double>(word >> 11) / 0x1p52 - 1;
            std::memcpy(&bytes[i], &value, size);
        } else if (size <= 2 && type != ElementType::boolean) {
            std::memcpy(&bytes[i], &word, size);
        } else {
            bytes[i] = static_cast<std::byte>(word >> 63);
        }
    }
}

/// Integers of 32 and 64 bits whose values decide whether an operator can run.
class Roles {
  public:
    explicit Roles(const model::Subgraph& graph)
        : graph_(graph), index_(graph.tensors.size(), false), divisor_(index_) {
        for (std::size_t o = graph.operators.size(); o-- > 0;) look_at(graph.operators[o]);
    }

    [[nodiscard]] bool is_index(TensorIndex i) const { return index_[place_of(i)]; }
    [[nodiscard]] bool is_divisor(TensorIndex i) const { return divisor_[place_of(i)]; }
    /// Of the tensor whose shape `i` is; null when it is none.
    [[nodiscard]] const std::vector<std::int32_t>* shape_of(TensorIndex i) const {
        for (const auto& op : graph_.operators)
            if (op.code.builtin == model::Op::reshape && operand(op, 1) == i &&
                !op.outputs.empty() && op.outputs.front() != model::absent_tensor)
                return &graph_.tensors[place_of(op.outputs.front())].shape;
        return nullptr;
    }

  private:
    static TensorIndex operand(const model::Operator& op, std::size_t at) {
        return at < op.inputs.size() ? op.inputs[at] : model::absent_tensor;
    }

    void mark(std::vector<bool>& as, TensorIndex i) {
        if (i != model::absent_tensor && is_wide_integer(graph_.tensors[place_of(i)].type))
            as[place_of(i)] = true;
    }

    /// Operators behind it have been looked at.
    void look_at(const model::Operator& op) {
        using model::Op;
        if (op.code.builtin == Op::gather_nd) mark(index_, operand(op, 1));
        if (op.code.builtin == Op::floor_div || op.code.builtin == Op::floor_mod)
            mark(divisor_, operand(op, 1));
        const bool makes_index = std::ranges::any_of(
            op.outputs, [&](TensorIndex i) { return i != model::absent_tensor && is_index(i); });
        if (makes_index)
            for (const TensorIndex i : op.inputs) mark(index_, i);
    }

    const model::Subgraph& graph_;
    std::vector<bool> index_, divisor_;
};

/// Over and over, in integers of so many bytes.
void fill_with(std::vector<std::byte>& bytes, std::size_t size,
               std::span<const std::int32_t> values) {
    if (values.empty()) return;
    for (std::size_t i = 0; i * size < bytes.size(); ++i) {
        const std::int64_t value = values[i % values.size()];
        std::memcpy(&bytes[i * size], &value, size);
    }
}

/// Writes what an index, a divisor and a shape must be over what was drawn.
void make_legal(const Roles& roles, const model::Subgraph& graph, TensorIndex index,
                std::vector<std::byte>& bytes) {
    const model::Tensor& tensor = graph.tensors[place_of(index)];
    if (!is_wide_integer(tensor.type)) return;
    const std::size_t size = *size_of(tensor.type);
    if (const auto* shape = roles.shape_of(index))
        fill_with(bytes, size, *shape);
    else if (roles.is_divisor(index))
        fill_with(bytes, size, std::array{1});
    else if (roles.is_index(index))
        fill_with(bytes, size, std::array{0});
}

}  // namespace

Result<InputBytes> random_inputs(const model::Subgraph& graph, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const Roles roles(graph);
    InputBytes inputs;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
        const model::Tensor& tensor = graph.tensors[place_of(graph.inputs[i])];
        const auto size = tensor.byte_count();
        const bool half =
            tensor.type == ElementType::float16 || tensor.type == ElementType::bfloat16;
        if (!size || half || tensor.type == ElementType::complex64 ||
            tensor.type == ElementType::complex128) {
            return fail(Cause::unsupported,
                        fmt::format("no random bytes for {}", describe_input(graph, i)), {},
                        "give it with --input");
        }
        inputs.emplace_back(static_cast<std::size_t>(*size));
        fill_random(random, tensor.type, inputs.back());
        make_legal(roles, graph, graph.inputs[i], inputs.back());
    }
    return inputs;
}

Result<InputBytes> random_inputs_of_part(const model::Model& whole, const model::PartEnds& ends,
                                         std::uint64_t seed) {
    auto session = REEF_TRY(runtime::Session::open(whole, {.keep_all_tensors = true}));
    const InputBytes inputs = REEF_TRY(random_inputs(session.graph(), seed));
    set_inputs(session, inputs);
    if (auto ran = session.run(); !ran)
        return std::unexpected(of_random_inputs(std::move(ran.error()), session.graph()));
    InputBytes given;
    for (const TensorIndex i : ends.inputs) {
        const Bytes bytes = session.tensor(i);
        given.emplace_back(bytes.begin(), bytes.end());
    }
    return given;
}

Result<InputBytes> inputs_or_random(const model::Subgraph& graph,
                                    const std::vector<std::string>& specs, std::uint64_t seed) {
    return specs.empty() ? random_inputs(graph, seed) : load_inputs(graph, specs);
}

Error of_random_inputs(Error error, const model::Subgraph& graph) {
    const auto wide = std::ranges::find_if(graph.inputs, [&](TensorIndex i) {
        return is_wide_integer(graph.tensors[place_of(i)].type);
    });
    if (wide == graph.inputs.end() || error.cause != Cause::bad_input || !error.hint.empty())
        return error;
    const auto position = static_cast<std::size_t>(wide - graph.inputs.begin());
    return std::move(error).with_hint(
        fmt::format("inputs were drawn at random, {} among them: give them with --input",
                    describe_input(graph, position)));
}

}  // namespace reef::tool
