#include "reef/edgetpu/transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "reef_spec/edgetpu_isa.h"

namespace reef::edgetpu {
namespace {

// Tag is the description's dma_tag.
constexpr bool is_tag(Tag tag, unsigned value) {
    return static_cast<unsigned>(tag) == value;
}
static_assert(is_tag(Tag::instructions, spec::value::dma_tag::instructions_) &&
              is_tag(Tag::input_activations, spec::value::dma_tag::input_activations_) &&
              is_tag(Tag::parameters, spec::value::dma_tag::parameters_) &&
              is_tag(Tag::output_activations, spec::value::dma_tag::output_activations_) &&
              is_tag(Tag::interrupt_0, spec::value::dma_tag::interrupt_0_) &&
              is_tag(Tag::interrupt_3, spec::value::dma_tag::interrupt_3_));

std::optional<std::size_t> index_of(const std::vector<Layer>& layers, std::string_view name) {
    const auto found = std::ranges::find(layers, name, &Layer::name);
    if (found == layers.end()) return std::nullopt;
    return static_cast<std::size_t>(found - layers.begin());
}

/// Adds what a hint says.
struct AddHint {
    TransferPlanner& planner;
    Direction direction;

    Status operator()(const FenceHint&) const {
        planner.add_fence();
        return {};
    }
    Status operator()(const InterruptHint& hint) const {
        return planner.add_interrupt(hint.interrupt);
    }
    Status operator()(const InstructionHint& hint) const {
        return planner.add_stream(static_cast<std::size_t>(hint.bitstream));
    }
    Status operator()(const DmaDescriptorHint& hint) const {
        if (hint.offset_bytes < 0 || hint.size_bytes < 0)
            return fail(Cause::bad_input,
                        fmt::format("{} bytes at {}", hint.size_bytes, hint.offset_bytes));
        if (hint.meta.base == BaseAddress::scratch)
            return fail(Cause::unsupported,
                        fmt::format("not modelled: {} transfer of {}", to_string(direction),
                                    to_string(hint.meta.base)),
                        {}, "such hints do not tell directions apart; the program does");
        return planner.add_transfer(hint.meta.base, hint.meta.name, direction,
                                    static_cast<std::size_t>(hint.offset_bytes),
                                    static_cast<std::size_t>(hint.size_bytes));
    }
    Status operator()(const auto&) const {
        return fail(Cause::bad_input, "neither a transfer, an interrupt nor a fence");
    }
};

std::string place_of(const Executable& executable) {
    return fmt::format("{} executable", to_string(executable.type));
}

/// The upper half of the base address of what `meta` names.
std::optional<std::uint32_t> region_of(const Executable& executable, const Meta& meta) {
    const auto layer = [&](const std::vector<Layer>& layers,
                           std::size_t first) -> std::optional<std::uint32_t> {
        const auto index = index_of(layers, meta.name);
        if (!index) return std::nullopt;
        return static_cast<std::uint32_t>(first_layer_region + first + *index);
    };
    switch (meta.base) {
        case BaseAddress::parameter:
            return parameter_region;
        case BaseAddress::scratch:
            return scratch_region;
        case BaseAddress::input_activation:
            return layer(executable.inputs, 0);
        case BaseAddress::output_activation:
            return layer(executable.outputs, executable.inputs.size());
    }
    return std::nullopt;
}

/// Precondition: the 32 bits lie in `bytes`.
void set_32_bits(std::span<std::byte> bytes, std::size_t bit, std::uint32_t value) {
    std::uint64_t window = 0;
    const std::size_t first = bit / 8, shift = bit % 8;
    const std::size_t size = shift == 0 ? 4 : 5;
    std::memcpy(&window, bytes.data() + first, size);
    window &= ~(std::uint64_t{0xffffffff} << shift);
    window |= std::uint64_t{value} << shift;
    std::memcpy(bytes.data() + first, &window, size);
}

}  // namespace

TransferPlanner::TransferPlanner(const Executable& executable) : executable_(&executable) {
    const auto bytes_of = [](const Layer& layer) {
        return static_cast<std::size_t>(std::max(layer.size_bytes, 0));
    };
    for (const Layer& layer : executable.inputs) plan_.input_bytes.push_back(bytes_of(layer));
    for (const Layer& layer : executable.outputs) plan_.output_bytes.push_back(bytes_of(layer));
}

Status TransferPlanner::add_stream(std::size_t bitstream) {
    const auto& streams = executable_->bitstreams;
    if (bitstream >= streams.size())
        return fail(Cause::bad_input, fmt::format("bitstream {} of {}", bitstream, streams.size()));
    plan_.transfers.push_back({.kind = Transfer::Kind::send,
                               .tag = Tag::instructions,
                               .index = bitstream,
                               .size = streams[bitstream].instructions.size()});
    return {};
}

Status TransferPlanner::add_interrupt(int interrupt) {
    if (interrupt < 0 || interrupt > 3)
        return fail(Cause::bad_input, fmt::format("interrupt {}, there are 4", interrupt));
    const auto tag = static_cast<Tag>(static_cast<int>(Tag::interrupt_0) + interrupt);
    plan_.transfers.push_back({.kind = Transfer::Kind::wait, .tag = tag});
    return {};
}

void TransferPlanner::add_fence() {
    plan_.transfers.push_back({.kind = Transfer::Kind::fence});
}

Status TransferPlanner::add_transfer(BaseAddress base, std::string_view layer, Direction direction,
                                     std::size_t offset, std::size_t size) {
    const bool to_chip = direction == Direction::infeed;
    Transfer transfer{.kind = to_chip ? Transfer::Kind::send : Transfer::Kind::receive,
                      .tag = to_chip ? Tag::input_activations : Tag::output_activations,
                      .offset = offset,
                      .size = size};
    const auto within = [&](std::size_t bytes, std::string_view what) -> Status {
        if (offset <= bytes && size <= bytes - offset) return {};
        return fail(Cause::bad_input, fmt::format("bytes {} to {} of {} {} bytes", offset,
                                                  offset + size, bytes, what));
    };
    if (base == BaseAddress::scratch) {
        transfer.scratch = true;
        const int bytes = std::max(executable_->scratch_size_bytes, 0);
        REEF_CHECK(within(static_cast<std::size_t>(bytes), "scratch"));
    } else if (base == BaseAddress::parameter && to_chip) {
        transfer.tag = Tag::parameters;
        REEF_CHECK(within(executable_->parameters.size(), "parameter"));
    } else if (base == BaseAddress::input_activation && to_chip) {
        REEF_CHECK(add_layer(layer, executable_->inputs, plan_.input_bytes, transfer));
    } else if (base == BaseAddress::output_activation && !to_chip) {
        REEF_CHECK(add_layer(layer, executable_->outputs, plan_.output_bytes, transfer));
    } else {
        return fail(Cause::unsupported, fmt::format("not modelled: {} transfer of {}",
                                                    to_string(direction), to_string(base)));
    }
    plan_.transfers.push_back(transfer);
    return {};
}

Status TransferPlanner::add_layer(std::string_view name, const std::vector<Layer>& layers,
                                  std::vector<std::size_t>& bytes, Transfer& transfer) const {
    /// Room for a transfer beyond its layer: the padding that the chip's units of 8 bytes need, or
    /// a hostile file's hint.
    constexpr std::size_t most_padding = 4096;
    const auto index = index_of(layers, name);
    if (!index) return fail(Cause::bad_input, fmt::format("no layer {}", name));
    transfer.index = *index;
    const auto size = static_cast<std::size_t>(std::max(layers[*index].size_bytes, 0));
    const std::size_t end = transfer.offset + transfer.size;
    if (end > size + most_padding || end < transfer.offset)
        return fail(Cause::bad_input, fmt::format("bytes {} to {} of layer {} with {} bytes",
                                                  transfer.offset, end, name, size));
    bytes[*index] = std::max(bytes[*index], end);
    return {};
}

TransferPlan TransferPlanner::take(bool complete) && {
    plan_.complete = complete;
    return std::move(plan_);
}

std::string to_string(Tag tag) {
    const auto* known = spec::dma_tag_enumeration.find(static_cast<unsigned>(tag));
    if (known != nullptr) return std::string(known->meaning);
    return fmt::format("tag {}", static_cast<unsigned>(tag));
}

std::size_t TransferPlan::stream_bytes(Tag tag) const {
    std::size_t bytes = 0;
    for (const Transfer& transfer : transfers) {
        if (transfer.tag == tag) bytes += transfer.size;
    }
    return bytes;
}

Result<TransferPlan> plan_transfers(const Executable& executable) {
    const std::string place = place_of(executable);
    if (!executable.dma_hints) {
        return fail(Cause::unsupported, "not modelled: an executable without DMA hints", place,
                    "compile the model with a compiler that writes them (version 2 or later)");
    }
    TransferPlanner planner(executable);
    const auto& hints = executable.dma_hints->hints;
    for (std::size_t i = 0; i < hints.size(); ++i) {
        REEF_CHECK(in_place(std::visit(AddHint{planner, hints[i].direction}, hints[i].what),
                            fmt::format("{}: DMA hint {}", place, i)));
    }
    return std::move(planner).take(executable.dma_hints->fully_deterministic);
}

Result<std::vector<std::byte>> sent_stream(const Executable& executable, const TransferPlan& plan,
                                           Tag tag,
                                           std::span<const std::vector<std::byte>> packed_inputs) {
    if (packed_inputs.size() != executable.inputs.size()) {
        return fail(Cause::bad_argument,
                    fmt::format("{} inputs given, {} needed", packed_inputs.size(),
                                executable.inputs.size()),
                    place_of(executable));
    }
    std::vector<std::byte> stream;
    stream.reserve(plan.stream_bytes(tag));
    for (const Transfer& transfer : plan.transfers) {
        if (transfer.kind != Transfer::Kind::send || transfer.tag != tag) continue;
        if (transfer.scratch)
            return fail(Cause::bad_argument, "the chip makes the bytes of scratch memory",
                        place_of(executable));
        Bytes bytes = executable.parameters.view();
        if (tag == Tag::instructions) {
            bytes = executable.bitstreams[transfer.index].instructions.view();
        } else if (tag == Tag::input_activations) {
            bytes = packed_inputs[transfer.index];
        }
        if (transfer.offset + transfer.size > bytes.size()) {
            return fail(Cause::bad_argument,
                        fmt::format("input {} has {} packed bytes, {} needed", transfer.index,
                                    bytes.size(), transfer.offset + transfer.size),
                        place_of(executable));
        }
        const Bytes part = bytes.subspan(transfer.offset, transfer.size);
        stream.insert(stream.end(), part.begin(), part.end());
    }
    return stream;
}

Result<std::vector<std::vector<std::byte>>> cut_output_stream(const TransferPlan& plan,
                                                              Bytes stream) {
    const std::size_t expected = plan.stream_bytes(Tag::output_activations);
    if (stream.size() != expected) {
        return fail(Cause::bad_argument, fmt::format("an output stream of {} bytes, {} expected",
                                                     stream.size(), expected));
    }
    std::vector<std::vector<std::byte>> layers;
    for (const std::size_t bytes : plan.output_bytes) layers.emplace_back(bytes);
    for (const Transfer& transfer : plan.transfers) {
        if (transfer.kind != Transfer::Kind::receive) continue;
        if (!transfer.scratch)
            std::ranges::copy(
                stream.first(transfer.size),
                layers[transfer.index].begin() + static_cast<std::ptrdiff_t>(transfer.offset));
        stream = stream.subspan(transfer.size);
    }
    return layers;
}

Result<std::vector<std::vector<std::byte>>> pack_inputs(const Executable& executable,
                                                        const TransferPlan& plan,
                                                        std::span<const Bytes> tensors) {
    if (tensors.size() != executable.inputs.size()) {
        return fail(
            Cause::bad_argument,
            fmt::format("{} inputs given, {} needed", tensors.size(), executable.inputs.size()),
            place_of(executable));
    }
    std::vector<std::vector<std::byte>> packed;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const std::size_t tensor = REEF_TRY(tensor_bytes(executable.inputs[i]));
        packed.emplace_back(std::max(plan.input_bytes[i], tensor));
        REEF_CHECK(in_place(pack_input(executable.inputs[i], tensors[i], packed.back()),
                            place_of(executable)));
    }
    return packed;
}

Result<std::vector<std::byte>> with_base_addresses(const Executable& executable,
                                                   std::size_t bitstream) {
    const InstructionBitstream& source = executable.bitstreams[bitstream];
    const Bytes view = source.instructions.view();
    std::vector<std::byte> bytes(view.begin(), view.end());
    for (std::size_t i = 0; i < source.field_offsets.size(); ++i) {
        const FieldOffset& field = source.field_offsets[i];
        const std::string place =
            fmt::format("{}: bitstream {}: field offset {}", place_of(executable), bitstream, i);
        const auto region = region_of(executable, field.meta);
        if (!region) {
            return fail(
                Cause::bad_input,
                fmt::format("no layer {} for its {}", field.meta.name, to_string(field.meta.base)),
                place);
        }
        if (field.offset_bit < 0 ||
            static_cast<std::size_t>(field.offset_bit) + 32 > bytes.size() * 8) {
            return fail(Cause::bad_input,
                        fmt::format("bit {} of {}", field.offset_bit, bytes.size() * 8), place);
        }
        set_32_bits(bytes, static_cast<std::size_t>(field.offset_bit),
                    field.meta.half == AddressHalf::upper_32_bits ? *region : 0);
    }
    return bytes;
}

std::optional<AddressPlace> place_of_address(const Executable& executable, std::uint64_t address) {
    const std::uint64_t region = address >> 32U;
    const auto offset = static_cast<std::size_t>(address & 0xffffffffU);
    if (region == parameter_region) return AddressPlace{BaseAddress::parameter, 0, offset};
    if (region == scratch_region) return AddressPlace{BaseAddress::scratch, 0, offset};
    if (region < first_layer_region) return std::nullopt;
    const std::size_t layer = region - first_layer_region;
    const std::size_t inputs = executable.inputs.size();
    if (layer < inputs) return AddressPlace{BaseAddress::input_activation, layer, offset};
    if (layer - inputs >= executable.outputs.size()) return std::nullopt;
    return AddressPlace{BaseAddress::output_activation, layer - inputs, offset};
}

}  // namespace reef::edgetpu
