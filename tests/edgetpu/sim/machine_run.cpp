#include "machine_run.h"

#include <algorithm>
#include <random>

#include "reef/base/file.h"
#include "reef/model/tflite.h"

namespace reef::edgetpu::sim {

Result<PackagePrograms> PackagePrograms::load(const Package& package) {
    PackagePrograms programs;
    for (const auto& executable : package.executables) {
        auto loaded = REEF_TRY(prepare(executable));
        if (executable.type == ExecutableType::parameter_caching)
            programs.caching = std::move(loaded);
        else
            programs.computing = std::move(loaded);
    }
    return programs;
}

Result<PackagePrograms> PackagePrograms::load(const std::filesystem::path& model) {
    const auto bytes = REEF_TRY(read_file(model.string()));
    const auto read = REEF_TRY(model::read_tflite(bytes));
    const auto packages = REEF_TRY(packages_of(read));
    if (packages.empty()) return fail(Cause::bad_input, "no compiled operator", model.string());
    return load(packages.front().package);
}

void PackagePrograms::set_inputs(unsigned seed) {
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < computing.executable.inputs.size(); ++i)
        for (auto& byte : computing.host->input(i)) byte = static_cast<std::byte>(random());
}

Status PackagePrograms::run(Machine& machine) {
    std::uint32_t loaded_by = 0;
    if (caching) {
        caching->host->begin_run();
        REEF_CHECK(machine.run(caching->program, *caching->host));
        if (machine.monitor() != nullptr) loaded_by = machine.monitor()->run();
    }
    computing.host->begin_run();
    REEF_CHECK(machine.run(computing.program, *computing.host));
    if (auto* monitor = machine.monitor()) {
        monitor->report_unread_rows(monitor->run());
        if (caching) monitor->report_unread_rows(loaded_by);
    }
    return {};
}

std::vector<std::byte> PackagePrograms::outputs() const {
    std::vector<std::byte> all;
    for (std::size_t i = 0; i < computing.executable.outputs.size(); ++i) {
        const Bytes output = computing.host->output(i);
        all.insert(all.end(), output.begin(), output.end());
    }
    return all;
}

}  // namespace reef::edgetpu::sim
