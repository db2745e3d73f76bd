#include "inputs/model_session.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>

#include "outputs/text_table.h"
#include "reef/model/tflite.h"
#include "verbs/verb.h"

namespace reef::tool {

void add_device_options(CLI::App& app, DeviceOptions& options) {
    app.add_option(
           "--device", options.device,
           "Device to run on: cpu; edgetpu:sim, or edgetpu:sim:NAME for a simulated stick of that "
           "name; edgetpu:usb or edgetpu:usb:PORT (reef list shows the ports)")
        ->capture_default_str();
    app.add_flag("--require-npu", options.require_npu,
                 "Fail when an operator would run on the CPU");
    app.add_option("--kernels", options.kernels, "CPU kernels: fast or reference")
        ->check(CLI::IsMember({"fast", "reference"}))
        ->type_name("SET")
        ->capture_default_str();
    app.add_option("--arithmetic", options.arithmetic,
                   "How the CPU computes what the Edge TPU's compiler would place on that chip: "
                   "tflite, or edgetpu (float32 scales, ties to even)")
        ->check(CLI::IsMember({"tflite", "edgetpu"}))
        ->type_name("RULES")
        ->capture_default_str();
    app.add_option("--threads,--num_threads", options.threads,
                   "threads of the CPU and of a simulated chip, 1 to 256")
        ->check(CLI::Range(1, 256))
        ->type_name("N")
        ->capture_default_str();
    app.add_flag("--standard-clock", options.standard_clock,
                 "Throttle the clock of a stick at edgetpu:usb");
    app.add_option("--firmware", options.firmware,
                   "Firmware for a stick at edgetpu:usb that has none")
        ->type_name("FILE");
}

std::string arithmetic_of(const DeviceOptions& options) {
    return options.device == "cpu" ? options.arithmetic : "edgetpu";
}

runtime::SessionOptions session_options(const DeviceOptions& options) {
    return {.device = options.device,
            .kernels =
                options.kernels == "reference" ? cpu::KernelSet::reference : cpu::KernelSet::fast,
            .arithmetic = options.arithmetic == "edgetpu" ? cpu::Arithmetic::edgetpu
                                                          : cpu::Arithmetic::tflite,
            .threads = options.threads,
            .require_npu = options.require_npu,
            .firmware = options.firmware,
            .maximum_clock = !options.standard_clock};
}

Result<OpenModel> open_model(const std::string& path, const runtime::SessionOptions& options) {
    // First, so that a mistyped device is not hidden behind what is wrong with the model.
    (void)REEF_TRY(runtime::DeviceUri::parse(options.device));
    const auto begin = std::chrono::steady_clock::now();
    model::Model model = REEF_TRY(model::load_tflite(path));
    auto session = runtime::Session::open(model, options);
    if (!session) {
        Error error = std::move(session.error());
        const bool about_device = exit_for(error.cause) == Exit::device;
        return std::unexpected(about_device ? std::move(error) : std::move(error).in(path));
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

Result<InputBytes> inputs_or_random(const model::Subgraph& graph,
                                    const std::vector<std::string>& specs, std::uint64_t seed) {
    return specs.empty() ? random_inputs(graph, seed) : load_inputs(graph, specs);
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
    const auto counters = session.chip_counters();
    if (!counters) return {};
    return fmt::format("parameters loaded {}, evicted {}; {} after a fault",
                       plural(counters->parameter_loads, "time"),
                       plural(counters->evictions, "time"),
                       plural(counters->recoveries, "restart"));
}

Json chip_json(const runtime::Session& session) {
    const auto counters = session.chip_counters();
    if (!counters) return nullptr;
    return {{"runs", counters->runs},
            {"parameter_loads", counters->parameter_loads},
            {"evictions", counters->evictions},
            {"recoveries", counters->recoveries}};
}

}  // namespace reef::tool
