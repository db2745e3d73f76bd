#include "edgetpu/compiler/embed.h"

#include <fmt/format.h>

#include <memory>

#include "edgetpu/package/own_compiler.h"
#include "reef/base/sha256.h"

namespace reef::edgetpu::lowering {
namespace {

constexpr const char* chip_name = "beagle";

SharedBytes shared(std::vector<std::byte> bytes) {
    auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
    return {*owner, owner};
}

DmaHint transfer(BaseAddress base, std::string name, std::size_t bytes, Direction direction,
                 std::size_t offset = 0) {
    return {DmaDescriptorHint{.meta = {.base = base, .name = std::move(name)},
                              .offset_bytes = static_cast<std::int32_t>(offset),
                              .size_bytes = static_cast<std::int32_t>(bytes)},
            direction};
}

DataType type_of(const compiler::Value& value) {
    switch (value.type) {
        case ElementType::int8:
            return DataType::signed_fixed_point8;
        case ElementType::int16:
            return DataType::signed_fixed_point16;
        default:
            return DataType::fixed_point8;
    }
}

Layer layer_of(const Plan& plan, const Port& port, std::size_t bytes) {
    const Tensor& t = plan.tensors[port.tensor];
    const auto& value = plan.graph->values[port.value];
    const std::int32_t channels =
        (t.layout == Layout::channels ? t.all_channels : t.channels) / t.element_bytes;
    Layer layer;
    layer.name = value.name;
    layer.size_bytes = static_cast<std::int32_t>(bytes);
    layer.y_dim = t.height;
    layer.x_dim = t.width;
    layer.z_dim = channels;
    layer.numerics = Numerics{t.zero, t.scale};
    layer.data_type = type_of(value);
    layer.shape = TensorShape{{0, 0}, {0, t.height - 1}, {0, t.width - 1}, {0, channels - 1}};
    return layer;
}

std::size_t grid_index(const Spans& spans, std::int32_t at) {
    std::size_t i = 0;
    while (at < spans[i].begin || at >= spans[i].end) ++i;
    return i;
}

OutputLayout layout_of(const Tensor& t, const Emission::Output& out) {
    OutputLayout layout;
    for (std::int32_t y = 0; y < t.height; ++y) {
        const std::size_t row = grid_index(t.own_rows, y);
        layout.y_to_tile.push_back(static_cast<std::int32_t>(row * grid));
        layout.y_to_local_y.push_back(y - t.own_rows[row].begin);
    }
    for (std::int32_t x = 0; x < t.width; ++x) {
        const std::size_t column = grid_index(t.own_columns, x);
        const Span& own = t.own_columns[column];
        // The vendor's tables count elements.
        const auto pixel = static_cast<std::int32_t>(t.pixel_bytes()) / t.element_bytes;
        layout.x_to_tile.push_back(static_cast<std::int32_t>(column));
        layout.x_to_local_byte.push_back((x - own.begin) * pixel);
        layout.x_to_local_row_bytes.push_back(own.size() * pixel);
    }
    for (const auto& offset : out.offsets)
        layout.tile_byte_offset.push_back(static_cast<std::int32_t>(offset.value_or(out.bytes)) /
                                          t.element_bytes);
    return layout;
}

Executable executable_of(ExecutableType type, Emitter::Program program,
                         std::vector<std::byte> parameters) {
    Executable e;
    e.type = type;
    e.chip = chip_name;
    e.batch_size = 1;
    for (auto& stream : program.streams)
        e.bitstreams.push_back({shared(std::move(stream.bytes)), std::move(stream.fields)});
    e.parameters = shared(std::move(parameters));
    e.dma_hints = DmaHints{.hints = {}, .fully_deterministic = true};
    return e;
}

/// Hints in the order of the program's transfers, each behind the instructions that ask for it.
class HintWriter {
  public:
    HintWriter(Executable& executable, std::vector<Emitter::Transfer> transfers)
        : executable_(executable), transfers_(std::move(transfers)) {}

    /// Behind those of the parameters that are asked for before. `fenced`: what came before is
    /// there when it begins.
    void add(DmaHint hint, bool fenced = false) {
        while (transfers_[next_].parameters) {
            const Emitter::Transfer& one = transfers_[next_];
            append(transfer(BaseAddress::parameter, {}, one.bytes, Direction::infeed, one.offset),
                   false);
        }
        append(std::move(hint), fenced);
    }

  private:
    void append(DmaHint hint, bool fenced) {
        for (; sent_ <= transfers_[next_].stream; ++sent_)
            executable_.dma_hints->hints.push_back(
                {InstructionHint{static_cast<std::int32_t>(sent_)}});
        ++next_;
        if (fenced) executable_.dma_hints->hints.push_back({FenceHint{}, Direction::infeed});
        executable_.dma_hints->hints.push_back(std::move(hint));
    }

    Executable& executable_;
    std::vector<Emitter::Transfer> transfers_;
    std::size_t next_ = 0, sent_ = 0;
};

/// What a step moves between tiles and host.
void add_hints_of(const Plan& plan, const Step& step, HintWriter& hints) {
    const bool out = std::holds_alternative<SpillStep>(step.kind);
    if (const auto* input = std::get_if<InputStep>(&step.kind)) {
        hints.add(transfer(BaseAddress::input_activation, plan.graph->values[input->value].name,
                           plan.tensors[step.out].input_bytes(), Direction::infeed));
    } else if (moves_to_host(step)) {
        const Tensor& there = plan.tensors[out ? step.out : step.in[0]];
        hints.add(transfer(BaseAddress::scratch, {}, there.host_bytes,
                           out ? Direction::outfeed : Direction::infeed, there.base),
                  !out);
    }
}

/// It is made of what is cached.
std::uint64_t token_of_all(const Programs& programs) {
    std::vector<Bytes> all{programs.cached};
    const auto add = [&](const Emitter::Program& program) {
        for (const auto& stream : program.streams) all.emplace_back(stream.bytes);
    };
    if (programs.caching) add(*programs.caching);
    add(programs.computing);
    return token_of(all);
}

Executable computing(const Plan& plan, Programs& programs) {
    const auto transfers = programs.computing.transfers;
    Executable e = executable_of(ExecutableType::execution_only, std::move(programs.computing),
                                 std::move(programs.streamed));
    e.name = "model";
    e.used_narrow_memory_bytes_per_tile = static_cast<std::int32_t>(plan.narrow_bytes);
    e.scratch_size_bytes = static_cast<std::int32_t>(plan.host_bytes);
    HintWriter hints(e, transfers);
    for (const Port& port : plan.inputs) {
        Layer layer = layer_of(plan, port, plan.tensors[port.tensor].input_bytes());
        layer.kind = InputLayer{};
        e.inputs.push_back(std::move(layer));
    }
    for (const Step& step : plan.steps) add_hints_of(plan, step, hints);
    for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
        const Port& port = plan.outputs[i];
        const auto& out = programs.outputs[i];
        Layer layer = layer_of(plan, port, out.bytes);
        layer.name = output_name(plan, port);
        layer.kind = OutputLayer{.layout = layout_of(plan.tensors[port.tensor], out),
                                 .data_type = layer.data_type,
                                 .shape_info = {}};
        hints.add(
            transfer(BaseAddress::output_activation, layer.name, out.bytes, Direction::outfeed));
        e.outputs.push_back(std::move(layer));
    }
    hints.add({InterruptHint{0}, Direction::outfeed});
    return e;
}

Executable caching(Programs& programs) {
    const auto transfers = programs.caching->transfers;
    Executable e = executable_of(ExecutableType::parameter_caching, std::move(*programs.caching),
                                 std::move(programs.cached));
    e.name = "parameters";
    HintWriter hints(e, transfers);
    hints.add({InterruptHint{0}, Direction::outfeed});
    return e;
}

}  // namespace

std::uint64_t token_of(std::span<const Bytes> parts) {
    const auto digest = sha256_of(parts);
    std::uint64_t token = 0;
    for (std::size_t i = 0; i < sizeof token; ++i) token |= std::uint64_t{digest[i]} << 8 * i;
    return token | 1U;
}

Package package_of(const Plan& plan, Programs programs, const EmbedOptions& options) {
    const std::uint64_t token = options.token ? *options.token : token_of_all(programs);
    Package package;
    package.min_runtime_version = options.runtime_version;
    package.compiler_version = own_compiler_version;
    package.executables.push_back(computing(plan, programs));
    if (programs.caching) package.executables.push_back(caching(programs));
    for (Executable& e : package.executables) e.parameter_caching_token = token;
    return package;
}

std::string to_text(const Package& package) {
    std::string text = fmt::format("package for runtime {}, by {}\n", package.min_runtime_version,
                                   package.compiler_version);
    for (const Executable& e : package.executables) {
        text += fmt::format("{} '{}': token {:#018x}, {} bytes of parameters", to_string(e.type),
                            e.name, e.parameter_caching_token, e.parameters.size());
        if (e.type == ExecutableType::execution_only)
            text += fmt::format(", {} bytes of each tile, {} of scratch memory",
                                e.used_narrow_memory_bytes_per_tile, e.scratch_size_bytes);
        text += fmt::format(", {} hints\n", e.dma_hints ? e.dma_hints->hints.size() : 0);
        for (const auto& stream : e.bitstreams)
            text += fmt::format("  stream: {} bytes of instructions, {} fields for addresses\n",
                                stream.instructions.size(), stream.field_offsets.size());
        const auto add = [&](const char* what, const std::vector<Layer>& layers) {
            for (const Layer& l : layers)
                text += fmt::format("  {} '{}': {}x{}x{}, {} bytes\n", what, l.name, l.y_dim,
                                    l.x_dim, l.z_dim, l.size_bytes);
        };
        add("in", e.inputs);
        add("out", e.outputs);
    }
    return text;
}

}  // namespace reef::edgetpu::lowering
