#include "copy_program.h"

#include <stdexcept>

#include "reef/edgetpu/assembly.h"

namespace reef::edgetpu::sim {

// Addresses: the upper word is the region that the simulator's host gives to parameters (1), the
// first input (3) and the first output (4).
std::string copy_program() {
    return R"(
start
fence tiles=all reset.counters=all engines=all notify=1
sync tiles=all reset.counters=all notified.count=1 notified.tiles=all engines=INFEED+OUTFEED

bundle alu=movi(s0,s0,0)
bundle alu=movi(s1,s0,1)
bundle alu=movi(s2,s0,256)
bundle alu=movi(s3,s0,2)
bundle store=descriptor(0,s0)
bundle store=descriptor(1,s1)
bundle store=descriptor(2,s2)
bundle store=descriptor(3,s3)
bundle store=fire(0,s0)

bundle alu=movi(s1,s0,3)
bundle alu=movi(s2,s0,64)
bundle alu=movi(s3,s0,1)
bundle store=descriptor(1,s1)
bundle store=descriptor(2,s2)
bundle store=descriptor(3,s3)
bundle store=fire(0,s0)

infeed source=parameters dst=0x0[1x4] dst.mask=1 signal.infeed=@0
infeed source=activations dst=0x0[1x8] dst.mask=1 signal.infeed=@0
ring_receive_a tiles=t0 seq=1 dst=0x0[1x1] signal.ring_read=@1
ring_push source=parameters src=0x0[1x4] src.mask=1 signal.pop=@0 wait0=PARAMETER_POP@0>=1+1 unknown_392=1 to_tiles=t0 message=63
ring_receive_a tiles=t0 seq=2 dst=0x810[1x1] signal.ring_read=@1
ring_push source=activations src=0x0[1x8] src.mask=1 signal.pop=@0 wait0=AVDATA_POP@0>=1+1 unknown_392=1 to_tiles=t0 message=15
wide_to_narrow tiles=t0 seq=3 src=0x810[1x1] dst=0x0[1x16] dst.mask=1 signal.written=@0 wait0=RING_READ_A@1>=2+1 row_level=1
mac tiles=t0 seq=4 loop=16 in=0x0[4x16] in.mask=1 out=0x80[4x16] out.mask=1 par=0x0[0x16] acc=0x0[0x16] unknown_1844=1 signal.avdata=@0 wait0=WIDE_TO_NARROW@0>=1+1 acc_internal=1 scale=1 clamp_max=255 lanes=3 last_lanes=3
mesh_east tiles=t0 seq=5 src=0x20[1x16] src.mask=1 signal.out=@0 wait0=AVDATA@0>=1+1
mesh_east tiles=t1 seq=5 dst=0x0[1x16] dst.mask=1 signal.in=@0
narrow_to_wide tiles=t0 seq=6 src=0x20[1x16] src.mask=1 dst=0x814[1x1] signal.narrow_to_wide=@1 wait0=AVDATA@0>=1+1 row_level=1
ring_send tiles=t0 seq=7 src=0x814[1x1] src.mask=1 signal.ring_write=@1 signal.producer=@1 wait0=NARROW_TO_WIDE@1>=1+1 to_scalar=1

bundle alu=movi(s1,s0,4)
bundle alu=movi(s3,s0,3)
bundle store=descriptor(1,s1)
bundle store=descriptor(3,s3)
bundle store=fire(0,s0)
ring_pop dst=0x0[0x8] signal.outfeed=@1 message=63 to_host=1
fence tiles=all seq=8 engines=all notify=1
sync notified.count=1 notified.tiles=all expected5=1 expected.counters=PRODUCER_A engines=INFEED+OUTFEED
halt last=1
end bits=128
)";
}

std::string interrupting_copy_program() {
    return with(copy_program(), "ring_pop dst",
                "bundle alu=movi(s3,s0,4)\n"
                "bundle store=descriptor(3,s3)\n"
                "bundle store=fire(0,s0)\n"
                "ring_pop dst");
}

std::string with(std::string text, std::string_view piece, std::string_view other) {
    const auto at = text.find(piece);
    if (at == std::string::npos || text.find(piece, at + 1) != std::string::npos)
        throw std::invalid_argument("not there just once: " + std::string(piece));
    return text.replace(at, piece.size(), other);
}

namespace {

// Lane l takes input l of the four: each lane has four bytes of the row.
SharedBytes identity_row() {
    std::vector<std::byte> row(256);
    for (std::size_t lane = 0; lane < 4; ++lane) row[4 * lane + lane] = std::byte{1};
    return SharedBytes::copy_of(row);
}

Layer layer(std::string name, bool output) {
    Layer layer;
    layer.name = std::move(name);
    layer.size_bytes = layer.z_dim = copied_bytes;
    layer.y_dim = layer.x_dim = 1;
    if (output)
        layer.kind = OutputLayer{};
    else
        layer.kind = InputLayer{};
    return layer;
}

}  // namespace

Package copy_package(std::string_view text, int narrow_bound) {
    auto bytes = assemble(text);
    if (!bytes) throw std::invalid_argument(bytes.error().message());
    Executable executable;
    executable.type = ExecutableType::stand_alone;
    executable.chip = "beagle";
    executable.used_narrow_memory_bytes_per_tile = narrow_bound;
    executable.bitstreams.push_back(
        {.instructions = SharedBytes::copy_of(*bytes), .field_offsets = {}});
    executable.parameters = identity_row();
    executable.inputs = {layer("in", false)};
    executable.outputs = {layer("out", true)};
    Package package;
    package.executables = {std::move(executable)};
    return package;
}

Package hinted_copy_package(std::string_view text) {
    Package package = copy_package(text);
    Executable& executable = package.executables[0];
    const auto moves = [](BaseAddress base, std::string layer, std::size_t bytes,
                          Direction direction) {
        return DmaHint{.what = DmaDescriptorHint{.meta = {.base = base,
                                                          .batch = 0,
                                                          .name = std::move(layer),
                                                          .half = AddressHalf::lower_32_bits},
                                                 .offset_bytes = 0,
                                                 .size_bytes = static_cast<int>(bytes)},
                       .direction = direction};
    };
    using enum BaseAddress;
    executable.dma_hints =
        DmaHints{.hints = {{.what = InstructionHint{0}},
                           moves(parameter, "", executable.parameters.size(), Direction::infeed),
                           moves(input_activation, "in", copied_bytes, Direction::infeed),
                           moves(output_activation, "out", copied_bytes, Direction::outfeed),
                           {.what = InterruptHint{0}}},
                 .fully_deterministic = true};
    return package;
}

}  // namespace reef::edgetpu::sim
