// What one inference costs the host: the USB driver on a device that answers at once, in processor
// time, next to memcpy of the bytes that travel.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "reef/edgetpu/usb/device.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/model/tflite.h"

namespace reef::edgetpu::usb {
namespace {

double processor_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// The best of 20 means of many calls, in us: the machine may be busy.
template <class Work>
double microseconds(Work&& work, int times) {
    double best = 1e9;
    for (int round = 0; round < 20; ++round) {
        const double start = processor_seconds();
        for (int i = 0; i < times; ++i) work();
        best = std::min(best, (processor_seconds() - start) / times * 1e6);
    }
    return best;
}

double memcpy_microseconds(std::size_t bytes, int times) {
    const std::vector<std::byte> from(bytes, std::byte{1});
    std::vector<std::byte> to(bytes);
    return microseconds(
        [&] {
            std::memcpy(to.data(), from.data(), bytes);
            asm volatile("" : : "r"(to.data()) : "memory");
        },
        times);
}

Status measure(const std::filesystem::path& path) {
    const auto model = REEF_TRY(model::load_tflite(path.string()));
    const auto packages = REEF_TRY(packages_of(model));
    const Package& package = packages.at(0).package;
    auto bus = std::make_shared<SimulatedBus>();
    StickOptions stick;
    stick.has_firmware = true;
    bus->plug(stick, REEF_TRY(NullCore::of(package.executables)));
    const auto device = REEF_TRY(Device::open(bus, {}));
    const auto program = REEF_TRY(Program::prepare(package));

    std::vector<std::vector<std::byte>> in, out;
    std::size_t bytes = 0;
    for (const Layer& layer : program->inputs()) {
        in.emplace_back(REEF_TRY(tensor_bytes(layer)));
        bytes += in.back().size();
    }
    for (const Layer& layer : program->outputs()) {
        out.emplace_back(REEF_TRY(tensor_bytes(layer)));
        bytes += out.back().size();
    }
    const std::vector<Bytes> inputs(in.begin(), in.end());
    const std::vector<MutableBytes> outputs(out.begin(), out.end());
    REEF_CHECK(device->run(program, inputs, outputs));

    Status status;
    const int times = bytes < 10000 ? 1000 : 100;
    const double run = microseconds(
        [&] {
            if (auto done = device->run(program, inputs, outputs); !done) status = done;
        },
        times);
    const double copy = memcpy_microseconds(bytes, times);
    fmt::print(
        "{:<62} {:>8} bytes  {:>7.1f} us  memcpy {:>6.1f} us  beyond 1.2 memcpy {:>6.1f} us\n",
        path.stem().string(), bytes, run, copy, run - 1.2 * copy);
    return status;
}

}  // namespace
}  // namespace reef::edgetpu::usb

int main() {
    const char* shared = std::getenv("REEF_SHARED");
    const auto data = std::filesystem::path(shared ? shared : "../shared") / "data";
    int failures = 0;
    for (const char* name :
         {"edgetpu/templates/dense_256_edgetpu.tflite",
          "models/mobilenet_v1_0.25_128_quant_edgetpu.tflite",
          "models/posenet_mobilenet_v1_075_353_481_16_quant_decoder_edgetpu.tflite",
          "models/deeplabv3_mnv2_dm05_pascal_quant_edgetpu.tflite"}) {
        if (auto done = reef::edgetpu::usb::measure(data / name); !done) {
            fmt::print(stderr, "{}\n", done.error().message());
            ++failures;
        }
    }
    return failures == 0 ? 0 : 1;
}
