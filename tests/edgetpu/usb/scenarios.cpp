#include "edgetpu/usb/scenarios.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <ostream>
#include <stdexcept>

#include "edgetpu/usb/protocol.h"
#include "edgetpu/usb/recording_items.h"
#include "reef/base/file.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace reef::edgetpu::usb::test {
namespace {

template <class T>
T required(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message());
    return std::move(*result);
}

std::filesystem::path data() {
    return reef::test::shared_folder().value() / "data";
}

}  // namespace

const std::vector<Scenario>& scenarios() {
    const std::string dense = "edgetpu/templates/dense_256_edgetpu.tflite";
    const auto model = [](const std::string& name) { return "models/" + name + "_edgetpu.tflite"; };
    const std::string mobilenet = "mobilenet_v1_0.25_128_quant",
                      deeplab = "deeplabv3_mnv2_dm05_pascal_quant",
                      posenet = "posenet_mobilenet_v1_075_353_481_16_quant_decoder",
                      other = "mobilenet_v1_0.5_160_quant";
    static const std::vector<Scenario> all = {
        {.name = "dense_256", .models = {dense}, .runs = {0, 0}, .boots = true},
        {.name = "dense_256_app", .models = {dense}, .runs = {0, 0}},
        {.name = "dense_256_std",
         .models = {dense},
         .runs = {0, 0},
         .performance = Performance::high},
        {.name = "dense_256_usb2", .models = {dense}, .runs = {0, 0}, .speed = Speed::high},
        {.name = mobilenet, .models = {model(mobilenet)}, .runs = {0, 0}},
        {.name = deeplab, .models = {model(deeplab)}, .runs = {0, 0}},
        {.name = posenet, .models = {model(posenet)}, .runs = {0, 0}},
        {.name = "two_cocompiled",
         .models = {model(mobilenet + "_cocompiled_with_" + other), model(other)},
         .runs = {0, 1, 1, 0}},
    };
    return all;
}

std::string test_name(const Scenario& scenario) {
    std::string name = scenario.name;
    std::ranges::replace(name, '.', '_');
    return name;
}

void PrintTo(const Scenario& scenario, std::ostream* out) {
    *out << scenario.name;
}

Golden golden(const Scenario& scenario) {
    const auto path = data() / "edgetpu/usb" / scenario.name;
    // The parts are NAME.log.gz and NAME.log.bin.gz.
    Golden out{.recording = required(read_recording(path.string() + ".log")),
               .wire = {},
               .firmware = {},
               .inputs = {},
               .instructions = {}};
    std::ifstream wire(path.string() + ".wire");
    for (std::string line; std::getline(wire, line);) out.wire.push_back(line);

    const auto items = required(parse_recording(out.recording));
    std::vector<std::byte> stream;
    for (const RecordedItem& item : items.items) {
        if (item.kind == RecordedItem::Kind::control && item.setup.request_type == dfu_write &&
            item.setup.request == dfu_download) {
            out.firmware.insert(out.firmware.end(), item.data.begin(), item.data.end());
        } else if (item.kind == RecordedItem::Kind::out) {
            stream.insert(stream.end(), item.data.begin(), item.data.end());
        }
    }
    for (std::size_t at = 0; at + header_bytes <= stream.size();) {
        std::uint32_t header[2];
        std::memcpy(header, stream.data() + at, sizeof header);
        at += header_bytes;
        const auto begin = stream.begin() + static_cast<std::ptrdiff_t>(at);
        const auto tag = static_cast<Tag>(header[1]);
        if (tag == Tag::input_activations) out.inputs.emplace_back(begin, begin + header[0]);
        if (tag == Tag::instructions) out.instructions.emplace_back(begin, begin + header[0]);
        at += header[0];
    }
    return out;
}

std::vector<std::string> wire_of_a_stick(const Golden& golden) {
    constexpr std::string_view sleep = "ctrl 40 01 a318 0001 4 5c00c5";
    std::vector<std::string> wire = golden.wire;
    for (std::string& line : wire) {
        if (line.starts_with(sleep)) line[sleep.size() - 6] = '0';
    }
    return wire;
}

Package package_in(const std::string& model) {
    const auto loaded = required(model::load_tflite((data() / model).string()));
    return required(packages_of(loaded)).at(0).package;
}

std::vector<Package> packages_for(const Scenario& scenario, const Golden& golden) {
    std::vector<Package> packages;
    for (const std::string& model : scenario.models) packages.push_back(package_in(model));
    if (packages.size() == 2) {
        // Instructions were sent for: caching 0, execution 0, caching 1, execution 1, ...
        const std::uint64_t token = packages[0].executables.at(0).parameter_caching_token;
        for (Executable& executable : packages[1].executables) {
            const bool caching = executable.type == ExecutableType::parameter_caching;
            executable.parameter_caching_token = token;
            executable.bitstreams.at(0).instructions =
                SharedBytes::copy_of(golden.instructions.at(caching ? 2 : 3));
        }
    }
    return packages;
}

std::shared_ptr<SimulatedBus> stick_for(const Scenario& scenario, const Golden& golden) {
    std::vector<Executable> executables;
    for (const Package& package : packages_for(scenario, golden)) {
        executables.insert(executables.end(), package.executables.begin(),
                           package.executables.end());
    }
    auto bus = std::make_shared<SimulatedBus>();
    StickOptions options;
    options.speed = scenario.speed;
    options.has_firmware = !scenario.boots;
    bus->plug(options, required(NullCore::of(executables)));
    return bus;
}

Result<std::vector<std::vector<std::vector<std::byte>>>> play(const Scenario& scenario,
                                                              const Golden& golden,
                                                              const std::shared_ptr<Bus>& bus) {
    const reef::test::TemporaryFolder folder;
    const std::string firmware = (folder.path() / "firmware.bin").string();
    if (scenario.boots) REEF_CHECK(write_file(firmware, golden.firmware));
    DeviceOptions options;
    options.performance = scenario.performance;
    options.firmware = firmware;
    options.run_deadline = no_deadline;
    auto device = REEF_TRY(Device::open(bus, options));
    std::vector<std::shared_ptr<const Program>> programs;
    for (const Package& package : packages_for(scenario, golden)) {
        programs.push_back(REEF_TRY(Program::prepare(package)));
    }
    std::vector<std::vector<std::vector<std::byte>>> all;
    for (std::size_t run = 0; run < scenario.runs.size(); ++run) {
        const auto& program = programs[scenario.runs[run]];
        // All of these have one uint8 input.
        const std::size_t size = tensor_bytes(program->inputs().at(0)).value();
        const Bytes inputs[] = {Bytes(golden.inputs.at(run)).first(size)};
        std::vector<std::vector<std::byte>> tensors;
        std::vector<MutableBytes> outputs;
        for (const Layer& layer : program->outputs()) {
            tensors.emplace_back(tensor_bytes(layer).value());
        }
        for (auto& tensor : tensors) outputs.emplace_back(tensor);
        REEF_CHECK(device->run(program, inputs, outputs));
        all.push_back(std::move(tensors));
    }
    return all;
}

}  // namespace reef::edgetpu::usb::test
