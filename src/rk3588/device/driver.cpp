#include "rk3588/device/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "reef/runtime/registry.h"
#include "rk3588/device/drm_device.h"
#include "rk3588/device/npu_program.h"
#include "rk3588/device/ports.h"
#include "rk3588/device/sim_device.h"
#include "rk3588/drm/simulated_kernel.h"

namespace reef::rk3588 {
namespace {

using runtime::Capability;
using runtime::OptionType;

constexpr const char *rounding = "output_rounding", *operands = "depthwise_operands",
                     *by_register = "register", *to_even = "even", *away = "away", *of_64 = "64",
                     *of_48 = "48", *lanes = "weight_lanes", *padded = "padded", *real = "real",
                     *padding = "direct_padding", *first = "first", *second = "second",
                     *averages = "average_rounding", *down = "down", *start = "start",
                     *interpolation = "interpolation", *nearest = "nearest", *planes = "planes",
                     *of_model = "model", *all_planes = "all", *each_task = "task",
                     *chain = "chain", *sram = "sram", *on = "on", *off = "off", *kernel = "kernel",
                     *of_system = "system", *simulated = "simulated";

sim::Switches switches_of(const runtime::OptionValues& options) {
    sim::Switches switches;
    using Rounding = sim::Switches::OutputRounding;
    const std::string how(options.text(rounding));
    switches.output_rounding = how == to_even ? Rounding::half_to_even
                               : how == away  ? Rounding::half_away
                                              : Rounding::by_register;
    if (options.text(operands) == of_48)
        switches.depthwise_operands = sim::Switches::DepthwiseOperands::bytes_48;
    if (options.text(lanes) == real) switches.lanes = sim::Switches::Lanes::real;
    if (options.text(padding) == second)
        switches.direct_pad_lanes = sim::Switches::PadLanes::second_byte;
    if (options.text(averages) == down)
        switches.average_rounding = sim::Switches::AverageRounding::down;
    if (options.text(interpolation) == down)
        switches.interpolation = sim::Switches::Interpolation::down;
    if (options.text(planes) == all_planes) switches.planes = sim::Switches::Planes::all;
    return switches;
}

drm::KernelDriver driver_of(const runtime::DeviceUri& device) {
    return device.backend == name_of(drm::KernelDriver::rocket) ? drm::KernelDriver::rocket
                                                                : drm::KernelDriver::rknpu;
}

std::string uri_of(drm::KernelDriver driver, const std::string& node) {
    return runtime::DeviceUri{
        .family = "rk3588", .backend = std::string(name_of(driver)), .name = node}
        .text();
}

std::vector<runtime::BackendInfo> known_backends() {
    return {{.backend = "sim",
             .sentence = "simulated cores, which execute command words from memory alone",
             .naming = runtime::Naming::optional,
             .name_means = "NAME",
             .capabilities = {Capability::computes, Capability::simulated, Capability::layers}},
            {.backend = "rknpu",
             .sentence = "the cores behind the vendor's kernel driver, 0.9.6 to 0.9.8",
             .naming = runtime::Naming::optional,
             .name_means = "NODE",
             .capabilities = {Capability::computes},
             .one_per_process = true},
            {.backend = "rocket",
             .sentence = "the cores behind the mainline kernel's driver, since Linux 6.18",
             .naming = runtime::Naming::optional,
             .name_means = "NODE",
             .capabilities = {Capability::computes},
             .one_per_process = true}};
}

/// What is not known of the cores.
std::vector<runtime::OptionInfo> options_of_cores() {
    return {{.name = rounding,
             .type = OptionType::choice,
             .standard = by_register,
             .sentence = "how the output converter rounds a half: as CVT_ROUND says, or always "
                         "to even or away from zero",
             .choices = {by_register, to_even, away},
             .backends = {"sim"}},
            {.name = operands,
             .type = OptionType::choice,
             .standard = of_64,
             .sentence = "bytes of the operands of 8 channels in depthwise convolutions with "
                         "factors by channel",
             .choices = {of_64, of_48},
             .backends = {"sim"}},
            {.name = lanes,
             .type = OptionType::choice,
             .standard = padded,
             .sentence = "lanes of weights where a convolution has 17 to 31 channels: 32, or "
                         "as many as channels",
             .choices = {padded, real},
             .backends = {"sim"}},
            {.name = padding,
             .type = OptionType::choice,
             .standard = first,
             .sentence = "which byte of PAD_VALUE pads odd channels below 32 of direct "
                         "convolutions",
             .choices = {first, second},
             .backends = {"sim"}},
            {.name = averages,
             .type = OptionType::choice,
             .standard = to_even,
             .sentence = "how the pooling unit rounds averages of int8: halves to even, or all "
                         "down",
             .choices = {to_even, down},
             .backends = {"sim"}},
            {.name = interpolation,
             .type = OptionType::choice,
             .standard = nearest,
             .sentence = "how a function by table rounds between two entries and beyond the "
                         "last: to the nearest, halves away from zero, or down",
             .choices = {nearest, down},
             .backends = {"sim"}},
            {.name = planes,
             .type = OptionType::choice,
             .standard = of_model,
             .sentence = "which planes of results are written where the arrays make more "
                         "channels than the model has: the model's, or all of them",
             .choices = {of_model, all_planes},
             .backends = {"sim"}}};
}

/// How programs get to the cores behind a kernel's driver.
std::vector<runtime::OptionInfo> options_of_kernels() {
    return {{.name = start,
             .type = OptionType::choice,
             .standard = each_task,
             .sentence = "what the kernel starts: each task, or the first of each operator's, "
                         "which are chained",
             .choices = {each_task, chain},
             .backends = {"rknpu"}},
            {.name = sram,
             .type = OptionType::choice,
             .standard = off,
             .sentence = "whether programs that were compiled for the chip's SRAM get it",
             .choices = {off, on},
             .backends = {"rknpu"}},
            {.name = kernel,
             .type = OptionType::choice,
             .standard = of_system,
             .sentence = "whose driver is called: this machine's, or one in this process in "
                         "front of a simulated core",
             .choices = {of_system, simulated},
             .backends = {"rknpu", "rocket"}}};
}

std::vector<runtime::OptionInfo> known_options() {
    auto all = options_of_cores();
    std::ranges::move(options_of_kernels(), std::back_inserter(all));
    return all;
}

runtime::PlacementWords placement_words() {
    return {.taken = "compiled for the RK3588",
            .left = "the RK3588 runs what was compiled for it",
            .chip = "the RK3588",
            .make = "compile it for the RK3588 (`target` rk3588)",
            .elsewhere = "run it with `device` rk3588:sim"};
}

std::unexpected<Error> other_tensors(std::string what, std::string place) {
    return fail(Cause::bad_input, std::move(what), std::move(place),
                "the program is another operator's: compile the model anew");
}

/// The program's tensors have the operator's bytes.
Status check_tensors(const model::Subgraph& graph, const std::vector<model::TensorIndex>& tensors,
                     const std::vector<Cube>& cubes, std::string_view what) {
    if (tensors.size() != cubes.size())
        return other_tensors(
            fmt::format("the program has {}, the operator {}", cubes.size(), tensors.size()),
            fmt::format("{}s", what));
    for (std::size_t i = 0; i < cubes.size(); ++i) {
        const auto place = fmt::format("{} {}", what, i);
        if (tensors[i] < 0) return other_tensors("it is not given", place);
        const auto& tensor = graph.tensors[static_cast<std::size_t>(tensors[i])];
        const auto type = cubes[i].flipped ? ElementType::uint8 : ElementType::int8;
        if (tensor.type != type)
            return other_tensors(fmt::format("the program has {}, the model {}", name_of(type),
                                             name_of(tensor.type)),
                                 place);
        if (static_cast<std::uint64_t>(tensor.element_count()) != cubes[i].elements())
            return other_tensors(fmt::format("the program has {} elements, the model {}",
                                             cubes[i].elements(), tensor.element_count()),
                                 place);
    }
    return {};
}

}  // namespace

Driver::Driver()
    : backends_(known_backends()), options_(known_options()), words_(placement_words()) {}

runtime::Enumeration Driver::enumerate() const {
    runtime::Enumeration found{.devices = {{"rk3588:sim", "ready", "simulated"}}, .buses = {}};
    for (const auto driver : {drm::KernelDriver::rknpu, drm::KernelDriver::rocket})
        for (const auto& node : drm::find_nodes(*drm::system_kernel(), driver))
            found.devices.push_back({uri_of(driver, node), "ready", "RK3588 NPU"});
    return found;
}

bool Driver::is_compiled(const model::Operator& op) const {
    return rk3588::is_compiled(op);
}

Result<std::shared_ptr<const runtime::Program>> Driver::prepare(const runtime::DeviceUri&,
                                                                const runtime::OptionValues&,
                                                                const model::Subgraph& graph,
                                                                const model::Operator& op) const {
    auto program = std::make_shared<NpuProgram>();
    program->artifact = REEF_TRY(read_artifact(op.custom_options.view()));
    REEF_CHECK(check_tensors(graph, op.inputs, program->artifact.inputs, "input"));
    REEF_CHECK(check_tensors(graph, op.outputs, program->artifact.outputs, "output"));
    return program;
}

Result<std::shared_ptr<runtime::Device>> Driver::open(const runtime::DeviceUri& device,
                                                      const runtime::OptionValues& options,
                                                      int) const {
    if (device.backend == "sim") return make_sim_device(device.device(), switches_of(options));
    auto port = REEF_TRY(open_port_of(device, options));
    std::string uri = uri_of(driver_of(device), port->node());
    return make_drm_device(std::move(uri), std::move(port), sram_of(device, options));
}

std::shared_ptr<drm::Kernel> kernel_of(const runtime::DeviceUri& device,
                                       const runtime::OptionValues& options) {
    if (options.text(kernel) != simulated) return drm::system_kernel();
    return std::make_shared<drm::SimulatedKernel>(drm::SimulatedBoard{.driver = driver_of(device)});
}

Sram sram_of(const runtime::DeviceUri& device, const runtime::OptionValues& options) {
    const bool is_on =
        driver_of(device) == drm::KernelDriver::rknpu && options.text(sram) == std::string_view(on);
    return is_on ? Sram::on : Sram::off;
}

Result<std::unique_ptr<drm::Port>> open_port_of(const runtime::DeviceUri& device,
                                                const runtime::OptionValues& options,
                                                std::shared_ptr<drm::Kernel> on_kernel) {
    const auto driver = driver_of(device);
    const bool chained =
        driver == drm::KernelDriver::rknpu && options.text(start) == std::string_view(chain);
    return drm::open_port(std::move(on_kernel), driver, device.name,
                          chained ? drm::Start::chain : drm::Start::each_task);
}

Result<std::unique_ptr<drm::Port>> open_port_of(const runtime::DeviceUri& device,
                                                const runtime::OptionValues& options) {
    if (device.backend == "sim") return drm::make_sim_port(switches_of(options));
    return open_port_of(device, options, kernel_of(device, options));
}

Result<std::unique_ptr<drm::Port>> open_port_of(std::string_view device) {
    const auto found = REEF_TRY(runtime::Registry::of_process().find(device));
    if (found.driver->family() != "rk3588")
        return fail(Cause::bad_argument, fmt::format("'{}' is no RK3588", device), {},
                    "rk3588:sim is one, rk3588:rknpu and rk3588:rocket are boards");
    const auto options = REEF_TRY(runtime::OptionValues::check(found.driver->options(), found.uri));
    return open_port_of(found.uri, options);
}

bool Driver::shares(const runtime::DeviceUri& device, const runtime::OptionValues& options) const {
    return device.backend == "sim" || options.text(kernel) != simulated;
}

}  // namespace reef::rk3588
