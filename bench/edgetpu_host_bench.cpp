// What one inference costs the host: the USB driver on a device that answers at once, in processor
// time, next to memcpy of the bytes that travel.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

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

/// A compiled model on a device that answers at once.
struct Run {
    std::unique_ptr<Device> device;
    std::shared_ptr<const Program> program;
    std::vector<std::vector<std::byte>> in{}, out{};
    std::size_t bytes = 0;  ///< of all tensors

    static Result<Run> of(const std::filesystem::path& path) {
        const auto model = REEF_TRY(model::load_tflite(path.string()));
        const auto packages = REEF_TRY(packages_of(model));
        const Package& package = packages.at(0).package;
        auto bus = std::make_shared<SimulatedBus>();
        StickOptions stick;
        stick.has_firmware = true;
        bus->plug(stick, REEF_TRY(NullCore::of(package.executables)));
        auto device = REEF_TRY(Device::open(bus, {}));
        Run run{std::move(device), REEF_TRY(Program::prepare(package))};
        for (const Layer& layer : run.program->inputs()) {
            run.in.emplace_back(REEF_TRY(tensor_bytes(layer)));
            run.bytes += run.in.back().size();
        }
        for (const Layer& layer : run.program->outputs()) {
            run.out.emplace_back(REEF_TRY(tensor_bytes(layer)));
            run.bytes += run.out.back().size();
        }
        return run;
    }
};

Status measure(const std::filesystem::path& path) {
    auto [device, program, in, out, bytes] = REEF_TRY(Run::of(path));
    const std::vector<Bytes> inputs(in.begin(), in.end());
    const std::vector<MutableBytes> outputs(out.begin(), out.end());
    REEF_CHECK(device->run(program, inputs, outputs));

    Status status;
    const int times = bytes < 10000 ? 1000 : 100;
    const double run = microseconds(
        [&, &each = device, &what = program] {
            if (auto done = each->run(what, inputs, outputs); !done) status = done;
        },
        times);
    const double copy = memcpy_microseconds(bytes, times);
    fmt::print(
        "{:<62} {:>8} bytes  {:>7.1f} us  memcpy {:>6.1f} us  beyond 1.2 memcpy {:>6.1f} us\n",
        path.stem().string(), bytes, run, copy, run - 1.2 * copy);
    return status;
}

/// Pages of this process in memory, in KiB (proc(5): statm).
std::size_t resident_kib() {
    std::size_t all = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

/// Memory before and after many inferences.
Status soak(const std::filesystem::path& path) {
    auto run = REEF_TRY(Run::of(path));
    const std::vector<Bytes> inputs(run.in.begin(), run.in.end());
    const std::vector<MutableBytes> outputs(run.out.begin(), run.out.end());
    const auto times = [&](int count) -> Status {
        for (int i = 0; i < count; ++i) REEF_CHECK(run.device->run(run.program, inputs, outputs));
        return {};
    };
    constexpr int inferences = 100000;
    constexpr std::size_t pages_kib = 64;  // of the system's own accounts
    // The look at the pages itself touches some.
    REEF_CHECK(times(1000));
    static_cast<void>(resident_kib());
    const std::size_t before = resident_kib();
    REEF_CHECK(times(inferences));
    const std::size_t after = resident_kib();
    fmt::print("{:<62} {} inferences: {} KiB resident before, {} KiB after\n", path.stem().string(),
               inferences, before, after);
    if (after > before + pages_kib)
        return fail(Cause::device_failed, "memory grows with every run");
    return {};
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
    if (auto done = reef::edgetpu::usb::soak(data / "edgetpu/templates/dense_256_edgetpu.tflite");
        !done) {
        fmt::print(stderr, "{}\n", done.error().message());
        ++failures;
    }
    return failures == 0 ? 0 : 1;
}
