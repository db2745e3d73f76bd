#include "rk3588/sim/cores.h"

#include <fmt/format.h>

#include "reef_spec/rk3588_machine.h"

namespace reef::rk3588::sim {
namespace {

/// Accesses are told to the memory's watcher as long as it lives.
class Watch {
  public:
    Watch(Memory& memory, Accesses& accesses) : memory_(memory) { memory_.watch(&accesses); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() { memory_.watch(nullptr); }

  private:
    Memory& memory_;
};

std::string core_name(std::size_t core) {
    return fmt::format("core {}", core);
}

}  // namespace

Cores::Cores(Memory& memory, const Switches& switches) : memory_(memory) {
    for (std::uint64_t i = 0; i < spec::core_count; ++i)
        machines_.push_back(std::make_unique<Machine>(memory, switches));
}

void Cores::reset() {
    for (const auto& machine : machines_) machine->reset();
}

Result<std::vector<RunReport>> Cores::run(std::span<const Start> starts) {
    std::vector<RunReport> reports;
    if (starts.size() == 1) {
        const Start& s = starts.front();
        reports.push_back(REEF_TRY(machines_.front()->run(s.address, s.words, s.tasks)));
        return reports;
    }
    std::vector<Accesses> accesses(starts.size());
    for (std::size_t core = 0; core < starts.size(); ++core) {
        const Watch watch(memory_, accesses[core]);
        const Start& s = starts[core];
        reports.push_back(
            REEF_TRY(in_place(machines_[core]->run(s.address, s.words, s.tasks), core_name(core))));
        for (std::size_t other = 0; other < core; ++other)
            if (const auto at = Accesses::conflict(accesses[other], accesses[core]))
                return fail(Cause::bad_input,
                            fmt::format("the byte at {:#x} is written by one core and another uses "
                                        "it, too, with no barrier between them",
                                        *at),
                            fmt::format("cores {} and {}", other, core));
    }
    return reports;
}

}  // namespace reef::rk3588::sim
