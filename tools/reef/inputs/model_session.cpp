#include "inputs/model_session.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <string_view>

#include "inputs/chips.h"
#include "inputs/option_values.h"
#include "outputs/exit.h"
#include "outputs/text_table.h"
#include "reef/chip/layers.h"
#include "reef/model/names.h"
#include "reef/model/tflite.h"
#include "reef/runtime/arithmetic.h"
#include "reef/runtime/layer_dump.h"
#include "reef/runtime/registry.h"

namespace reef::tool {
namespace {

/// " at FAMILY:BACKEND": those that have the option.
std::string of_devices_with(std::string_view option) {
    const auto devices = runtime::Registry::of_process().devices_with_option(option);
    return devices.empty() ? std::string() : " at " + runtime::in_a_row(devices, "or");
}

/// "tflite, or FAMILY (what is different)".
std::string arithmetics_text() {
    std::string text = "tflite";
    for (const auto* chip : runtime::Registry::of_process().parts<runtime::ChipArithmetic>())
        text += fmt::format(", or {} ({})", chip->family(), chip->sentence());
    return text;
}

}  // namespace

std::vector<std::string> arithmetics() {
    std::vector<std::string> names = {"tflite"};
    for (const auto* chip : runtime::Registry::of_process().parts<runtime::ChipArithmetic>())
        names.emplace_back(chip->family());
    return names;
}

void add_device_options(CLI::App& app, DeviceOptions& options) {
    app.add_option(
           "--device", options.device,
           fmt::format("Device to run on: {} (reef list shows those that are there, reef list "
                       "--drivers their options)",
                       runtime::in_a_row(runtime::Registry::of_process().forms(), "or")))
        ->join(device_separator)
        ->capture_default_str();
    app.add_flag("--require-npu", options.require_npu,
                 "Fail when an operator would run on the CPU");
    app.add_option("--kernels", options.kernels, "CPU kernels: fast or reference")
        ->check(CLI::IsMember({"fast", "reference"}))
        ->type_name("SET")
        ->capture_default_str();
    app.add_option("--arithmetic", options.arithmetic,
                   "How the CPU computes what a chip's compiler would place on that chip: " +
                       arithmetics_text())
        ->check(CLI::IsMember(arithmetics()))
        ->type_name("RULES")
        ->capture_default_str();
    app.add_option("--placed-as", options.placed_as,
                   "With --arithmetic: the compiled model whose operators on the chip are computed "
                   "so, and the others as TFLite does (default: those that the chip's vendor "
                   "would place there)")
        ->type_name("COMPILED");
    app.add_option(
           "--threads,--num_threads", options.threads,
           "threads of the CPU, of which runs of some milliseconds take one where more are no "
           "faster, and of a simulated chip, 1 to 256")
        ->check(whole_number(1, 256))
        ->type_name("N")
        ->capture_default_str();
    app.add_flag("--standard-clock", options.standard_clock,
                 "Throttle the clock of a stick" + of_devices_with("clock"));
    app.add_option("--firmware", options.firmware,
                   fmt::format("Firmware for a stick{} that has none", of_devices_with("firmware")))
        ->type_name("FILE");
}

std::string family_of_device(const DeviceOptions& options) {
    return options.device.substr(0, options.device.find(':'));
}

std::string arithmetic_of(const DeviceOptions& options) {
    if (options.device == "cpu") return options.arithmetic;
    return family_of_device(options);
}

namespace {

std::vector<std::string> devices_of(const DeviceOptions& options) {
    std::vector<std::string> devices;
    std::string_view left = options.device;
    while (true) {
        const std::size_t end = left.find(device_separator);
        devices.emplace_back(left.substr(0, end));
        if (end == std::string_view::npos) return devices;
        left.remove_prefix(end + 1);
    }
}

/// A flag of the command that is an option of some devices.
struct DeviceFlag {
    std::string_view option;
    const char* refusal;  ///< of a device that has no such option
    const char* hint;     ///< with the first device that has it
};
constexpr DeviceFlag device_flags[] = {
    {"strict", "device {} has no strict runs", "only {} watches what a program does"},
    {"clock", "device {} has no clock to throttle", "--standard-clock is for a stick at {}"},
    {"firmware", "device {} takes no firmware", "--firmware is for a stick at {}"},
};

bool has_option(const runtime::Registry::Found& device, std::string_view option) {
    return std::ranges::any_of(device.driver->options(), [&](const runtime::OptionInfo& info) {
        return info.name == option &&
               (info.backends.empty() ||
                std::ranges::find(info.backends, device.uri.backend) != info.backends.end());
    });
}

/// Flags hold for those of the devices that have the option; one at least must.
Status fit_flags(std::vector<runtime::DeviceChoice>& devices, const runtime::Registry& registry) {
    for (const DeviceFlag& flag : device_flags) {
        std::string without;
        bool asked = false, fits = false;
        for (auto& choice : devices) {
            const auto option =
                std::ranges::find(choice.options, flag.option, &runtime::Option::name);
            if (option == choice.options.end()) continue;
            asked = true;
            const auto found = REEF_TRY(registry.find(choice.uri));
            if (has_option(found, flag.option)) {
                fits = true;
            } else {
                without += fmt::format("{}{}", without.empty() ? "" : ", ", found.uri.device());
                choice.options.erase(option);
            }
        }
        if (!asked || fits) continue;
        const auto having = registry.devices_with_option(flag.option);
        return fail(
            Cause::bad_argument, fmt::format(fmt::runtime(flag.refusal), without), {},
            having.empty() ? std::string() : fmt::format(fmt::runtime(flag.hint), having.front()));
    }
    return {};
}

}  // namespace

std::string device_text(const DeviceOptions& options) {
    std::string text = options.device;
    std::ranges::replace(text, device_separator, ',');
    return text;
}

bool any_device_has(const DeviceOptions& options, runtime::Capability capability) {
    return std::ranges::any_of(devices_of(options), [&](const std::string& device) {
        const auto found = runtime::Registry::of_process().find(device);
        return found && found->backend->has(capability);
    });
}

runtime::SessionOptions session_options(const DeviceOptions& options) {
    std::vector<runtime::Option> of_device;
    if (options.strict) of_device.push_back({"strict", true});
    if (options.standard_clock) of_device.push_back({"clock", std::string("standard")});
    if (!options.firmware.empty()) of_device.push_back({"firmware", options.firmware});
    std::vector<runtime::DeviceChoice> devices;
    for (auto& device : devices_of(options)) devices.emplace_back(std::move(device), of_device);
    const auto* chip =
        runtime::Registry::of_process().part<runtime::ChipArithmetic>(options.arithmetic);
    return {.devices = std::move(devices),
            .kernels =
                options.kernels == "reference" ? cpu::KernelSet::reference : cpu::KernelSet::fast,
            .arithmetic = chip != nullptr ? &chip->arithmetic() : nullptr,
            .threads = options.threads,
            .require_npu = options.require_npu};
}

namespace {

/// Whether the operators that a compiled model leaves to the CPU are the plain model's, by the
/// names of what they compute.
bool is_of(const model::Model& compiled, const model::Model& plain) {
    std::set<std::string_view> names;
    const auto& graph = plain.subgraphs.front();
    for (const model::Operator& op : graph.operators)
        for (const model::TensorIndex i : op.outputs)
            names.insert(graph.tensors[static_cast<std::size_t>(i)].name);
    const auto& left = compiled.subgraphs.front();
    return std::ranges::all_of(left.operators, [&](const model::Operator& op) {
        return std::ranges::all_of(op.outputs, [&](model::TensorIndex i) {
            return names.contains(left.tensors[static_cast<std::size_t>(i)].name);
        });
    });
}

/// By operator of the plain model, what options.placed_as has on the chip. Compilers find tensors
/// by distinct names.
Result<std::vector<bool>> placement_of(const DeviceOptions& options, const model::Model& model) {
    const auto compiled = REEF_TRY(model::load_tflite(options.placed_as));
    const std::string& path = options.placed_as;
    const auto renamed = model::with_distinct_names(model);
    const model::Model& plain = renamed ? *renamed : model;
    const auto* gatherer =
        REEF_TRY(in_place(part_for<chip::LayerGatherer>(compiled, "--placed-as"), path));
    if (const auto family = family_of(compiled); family != options.arithmetic)
        return fail(Cause::bad_input,
                    fmt::format("the model is compiled for {}, and the arithmetic is that of {}",
                                family, options.arithmetic),
                    path);
    const auto source = runtime::plain_model_of(compiled, plain);
    if (!source || !is_of(compiled, plain))
        return fail(Cause::bad_input, "it is not compiled from the model that runs", path,
                    "give the file that a compiler made of that model");
    if (source->subgraphs.front().operators.size() != plain.subgraphs.front().operators.size())
        return fail(Cause::bad_input, "a segment of a pipeline places a part of the model alone",
                    path,
                    "give the model that was compiled as a whole: its segments have on the chip "
                    "what it has");
    return in_place(gatherer->on_chip(compiled, plain), path);
}

Status check_placed_as(const DeviceOptions& options) {
    if (options.placed_as.empty() || options.arithmetic != DeviceOptions{}.arithmetic) return {};
    return fail(Cause::bad_argument, "--placed-as belongs to --arithmetic", {},
                with_example_chip("add --arithmetic CHIP"));
}

}  // namespace

Result<OpenModel> open_model(const std::string& path, const DeviceOptions& device, Kept kept) {
    runtime::SessionOptions options = session_options(device);
    options.keep_all_tensors = kept == Kept::all_tensors;
    const auto& registry = runtime::Registry::of_process();
    // First, so that a mistyped device is not hidden behind what is wrong with the model.
    for (const auto& one : options.devices) (void)REEF_TRY(registry.find(one.uri));
    REEF_CHECK(check_placed_as(device));
    const auto begin = std::chrono::steady_clock::now();
    auto model = REEF_TRY(model::load_tflite(path));
    if (!device.placed_as.empty() && !is_compiled(model))
        options.in_arithmetic = REEF_TRY(placement_of(device, model));
    OpenModel opened = REEF_TRY(open_model(std::move(model), path, std::move(options)));
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    opened.seconds = taken.count();
    return opened;
}

Result<OpenModel> open_model(model::Model model, const std::string& name,
                             runtime::SessionOptions options) {
    const auto begin = std::chrono::steady_clock::now();
    auto fits = fit_flags(options.devices, runtime::Registry::of_process());
    auto session = fits ? runtime::Session::open(model, options)
                        : Result<runtime::Session>(std::unexpected(std::move(fits.error())));
    if (!session) {
        Error error = std::move(session.error());
        const bool about_device = exit_for(error.cause) == Exit::device;
        return std::unexpected(about_device ? std::move(error) : std::move(error).in(name));
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    return OpenModel{std::move(model), std::move(*session), taken.count()};
}

void set_inputs(runtime::Session& session, const InputBytes& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        // Not std::ranges::copy: compiled for size, it goes byte by byte.
        if (!inputs[i].empty())
            std::memcpy(session.input(i).data(), inputs[i].data(), inputs[i].size());
    }
}

Result<double> timed_run(runtime::Session& session, graph::RunObserver* observer) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    REEF_CHECK(session.run(observer));
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string placement_summary(const runtime::Session& session) {
    struct Count {
        std::string device;
        std::string kernel;
        std::size_t count = 0;
    };
    std::vector<Count> counts;
    for (const runtime::PlacedOperator& op : session.placements()) {
        auto found = std::ranges::find_if(
            counts, [&](const Count& c) { return c.device == op.device && c.kernel == op.kernel; });
        if (found == counts.end()) found = counts.insert(found, Count{op.device, op.kernel, 0});
        found->count += 1;
    }
    std::ranges::sort(counts, [](const Count& a, const Count& b) {
        return a.count != b.count ? a.count > b.count : a.kernel < b.kernel;
    });
    std::string text;
    for (const Count& c : counts) {
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", c.count, c.kernel);
    }
    return text;
}

void print_placements(Console& console, const runtime::Session& session) {
    TextTable table({{"#", Align::right}, {"operator"}, {"device"}, {"kernel"}, {"reason"}});
    for (const runtime::PlacedOperator& op : session.placements()) {
        table.add({std::to_string(op.index), op.name, op.device, op.kernel, op.reason});
    }
    table.print(console);
}

Json placements_json(const runtime::Session& session) {
    Json placements = Json::array();
    for (const runtime::PlacedOperator& op : session.placements()) {
        placements.push_back({{"index", op.index},
                              {"operator", op.name},
                              {"device", op.device},
                              {"kernel", op.kernel},
                              {"reason", op.reason}});
    }
    return placements;
}

std::string chip_summary(const runtime::Session& session) {
    const auto counters = session.counters();
    if (!counters) return {};
    return fmt::format("parameters loaded {}, evicted {}; {} after a fault",
                       plural(counters->parameter_loads, "time"),
                       plural(counters->evictions, "time"),
                       plural(counters->recoveries, "restart"));
}

Json chip_json(const runtime::Session& session) {
    const auto counters = session.counters();
    if (!counters) return nullptr;
    return {{"runs", counters->runs},
            {"parameter_loads", counters->parameter_loads},
            {"evictions", counters->evictions},
            {"recoveries", counters->recoveries}};
}

}  // namespace reef::tool
