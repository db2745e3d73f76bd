#include "edgetpu/usb/small_program.h"

#include <stdexcept>

namespace reef::edgetpu::usb::test {
namespace {

SharedBytes filled(std::size_t size, std::uint8_t value) {
    return SharedBytes::copy_of(std::vector<std::byte>(size, std::byte{value}));
}

DmaHint moves(BaseAddress base, std::string layer, int size, Direction direction) {
    return {.what = DmaDescriptorHint{.meta = {.base = base,
                                               .batch = 0,
                                               .name = std::move(layer),
                                               .half = AddressHalf::lower_32_bits},
                                      .offset_bytes = 0,
                                      .size_bytes = size},
            .direction = direction};
}

Layer layer_of(std::string name, int size, bool output) {
    Layer layer;
    layer.name = std::move(name);
    layer.size_bytes = layer.z_dim = size;
    layer.y_dim = layer.x_dim = 1;
    if (output) {
        layer.kind = OutputLayer{};
    } else {
        layer.kind = InputLayer{};
    }
    return layer;
}

constexpr int first_output = 40;

}  // namespace

Package small_package(std::uint64_t token, std::uint8_t variant, int second_output) {
    using enum BaseAddress;
    Executable caching;
    caching.type = ExecutableType::parameter_caching;
    caching.parameter_caching_token = token;
    caching.bitstreams.push_back({.instructions = filled(64, variant), .field_offsets = {}});
    caching.parameters = filled(300, static_cast<std::uint8_t>(variant + 100));
    caching.dma_hints = DmaHints{.hints = {{.what = InstructionHint{0}},
                                           moves(parameter, "", 300, Direction::infeed),
                                           {.what = InterruptHint{0}}},
                                 .fully_deterministic = true};

    Executable main;
    main.type = ExecutableType::execution_only;
    main.parameter_caching_token = token;
    main.bitstreams.push_back({.instructions = filled(96, variant),
                               .field_offsets = {{.meta = {.base = input_activation,
                                                           .batch = 0,
                                                           .name = "in",
                                                           .half = AddressHalf::upper_32_bits},
                                                  .offset_bit = 70}}});
    main.inputs = {layer_of("in", 50, false)};
    main.outputs = {layer_of("a", first_output, true), layer_of("b", second_output, true)};
    main.dma_hints =
        DmaHints{.hints = {{.what = InstructionHint{0}},
                           moves(input_activation, "in", 56, Direction::infeed),
                           moves(output_activation, "a", first_output, Direction::outfeed),
                           moves(output_activation, "b", second_output, Direction::outfeed),
                           {.what = InterruptHint{0}}},
                 .fully_deterministic = true};
    // Half of the variants wait for everything sent before they ask for outputs.
    if (variant % 2 == 0) {
        auto& hints = main.dma_hints->hints;
        hints.insert(hints.begin() + 2, DmaHint{.what = FenceHint{}});
    }
    Package package;
    package.executables = {main, caching};
    return package;
}

std::shared_ptr<const Program> small_program(std::uint64_t token, std::uint8_t variant) {
    auto program = Program::prepare(small_package(token, variant));
    if (!program) throw std::runtime_error(program.error().message());
    return *program;
}

std::unique_ptr<ChipCore> small_core(int second_output) {
    std::vector<Executable> executables;
    for (std::uint8_t variant = 0; variant < 4; ++variant) {
        const Package package = small_package(0, variant, second_output);
        executables.insert(executables.end(), package.executables.begin(),
                           package.executables.end());
    }
    auto core = NullCore::of(executables);
    if (!core) throw std::runtime_error(core.error().message());
    return std::move(*core);
}

namespace {

const std::vector<std::byte>& small_input() {
    static const std::vector<std::byte> bytes(50, std::byte{1});
    return bytes;
}

Status check_outputs(Bytes a, Bytes b) {
    auto expected = static_cast<unsigned>(a[0]);
    for (const Bytes output : {a, b}) {
        for (const std::byte byte : output) {
            if (static_cast<unsigned>(byte) != (expected & 0xff)) {
                return fail(Cause::bad_input, "the outputs are not the null core's stream");
            }
            expected += 7;
        }
    }
    return {};
}

}  // namespace

Status run_small(Device& device, const std::shared_ptr<const Program>& program) {
    std::vector<std::byte> a(first_output), b(small_output);
    const Bytes inputs[] = {small_input()};
    const MutableBytes outputs[] = {a, b};
    REEF_CHECK(device.run(program, inputs, outputs));
    return check_outputs(a, b);
}

Status start_small(Device& device, const std::shared_ptr<const Program>& program) {
    const Bytes inputs[] = {small_input()};
    return device.start(program, inputs);
}

Status finish_small(Device& device) {
    std::vector<std::byte> a(first_output), b(small_output);
    const MutableBytes outputs[] = {a, b};
    REEF_CHECK(device.finish(outputs));
    return check_outputs(a, b);
}

std::vector<std::byte> any_firmware() {
    std::vector<std::byte> bytes(2000);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 >> 3);
    return bytes;
}

}  // namespace reef::edgetpu::usb::test
