#include "prepared_executable.h"

#include <fmt/format.h>

#include <algorithm>

#include "reef/edgetpu/transfers.h"

namespace reef::edgetpu::sim {
namespace {

/// Each stream's halt says whether it is the last.
Status check_continuation(const std::vector<Stream>& streams) {
    namespace field = spec::field::halt;
    for (std::size_t s = 0; s < streams.size(); ++s) {
        for (const auto& instruction : streams[s].instructions) {
            if (instruction.source.info != &spec::instructions[spec::op::halt]) continue;
            const bool another = s + 1 < streams.size();
            const bool last = instruction.source.bits(spec::halt_fields[field::last]) != 0;
            const bool continues =
                instruction.source.bits(spec::halt_fields[field::continues]) != 0;
            if (last == another || (continues && !another))
                return fail(Cause::bad_input,
                            fmt::format("halt says last={} continues={}, and the executable has {} "
                                        "streams",
                                        last, continues, streams.size()),
                            fmt::format("stream {}: {}", s, place_of(instruction)));
        }
    }
    return {};
}

Result<PreparedExecutable> prepare_streams(const Executable& executable) {
    PreparedExecutable prepared;
    prepared.executable = executable;
    std::vector<Bytes> views;
    for (std::size_t i = 0; i < executable.bitstreams.size(); ++i) {
        prepared.streams.push_back(REEF_TRY(with_base_addresses(executable, i)));
        views.emplace_back(prepared.streams.back());
    }
    prepared.program = REEF_TRY(translate_program(views));
    REEF_CHECK(check_continuation(prepared.program.streams));
    prepared.program.narrow_bound =
        static_cast<std::uint64_t>(std::max(executable.used_narrow_memory_bytes_per_tile, 0));
    prepared.host = REEF_TRY(HostMemory::create(prepared.executable));
    return prepared;
}

}  // namespace

Result<PreparedExecutable> prepare(const Executable& executable) {
    return in_place(prepare_streams(executable), to_string(executable.type));
}

Status run(Machine& machine, PreparedExecutable& prepared) {
    prepared.host->begin_run();
    return in_place(machine.run(prepared.program, *prepared.host),
                    to_string(prepared.executable.type));
}

Status check_chip(const Package& package) {
    if (!package.multi_chip.empty())
        return fail(Cause::unsupported, "not modelled: a package for several chips", {},
                    "compile the model for one chip");
    for (const auto& executable : package.executables)
        if (executable.chip != "beagle")
            return fail(Cause::unsupported, fmt::format("not modelled: chip '{}'", executable.chip),
                        {}, "only the Edge TPU (beagle) is known");
    return {};
}

}  // namespace reef::edgetpu::sim
