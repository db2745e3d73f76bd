#include "rk3588/device/simulated_program.h"

#include <fmt/format.h>

#include <limits>

#include "reef_spec/rk3588_machine.h"

namespace reef::rk3588 {
namespace {

constexpr std::uint64_t page = 4096;
/// Nothing is at 0, so that an address that nobody set is found.
constexpr std::uint64_t first_address = 0x10000;

}  // namespace

SimulatedProgram::SimulatedProgram(const Artifact& artifact, const sim::Switches& switches)
    : artifact_(artifact), cores_(memory_, switches) {
    starts_.reserve(spec::core_count);
}

Result<std::unique_ptr<SimulatedProgram>> SimulatedProgram::place(const Artifact& artifact,
                                                                  const sim::Switches& switches) {
    auto program = std::make_unique<SimulatedProgram>(artifact, switches);
    REEF_CHECK(program->place());
    return program;
}

Status SimulatedProgram::place() {
    const Artifact& a = artifact_;
    constants_.assign(a.constants.view().begin(), a.constants.view().end());
    activations_.resize(a.activation_bytes);
    std::uint64_t at = first_address;
    const auto give = [&](std::uint64_t bytes) {
        const std::uint64_t address = at;
        at = (at + bytes + page - 1) / page * page;
        return static_cast<std::uint32_t>(address);
    };
    std::uint32_t base[area_count];
    base[static_cast<std::size_t>(Area::commands)] =
        give(a.commands.size() * sizeof(std::uint64_t));
    base[static_cast<std::size_t>(Area::constants)] = give(constants_.size());
    base[static_cast<std::size_t>(Area::activations)] = give(activations_.size());
    if (at > std::numeric_limits<std::uint32_t>::max())
        return fail(Cause::unsupported,
                    fmt::format("the program needs {} bytes, more than the NPU addresses", at));
    commands_ = relocated(a, base);
    stages_ = stages_of(a);
    commands_base_ = base[static_cast<std::size_t>(Area::commands)];
    REEF_CHECK(add(commands_base_, std::as_writable_bytes(std::span(commands_))));
    REEF_CHECK(add(base[static_cast<std::size_t>(Area::constants)], constants_));
    activations_base_ = base[static_cast<std::size_t>(Area::activations)];
    return add(activations_base_, activations_, sim::Contents::unknown);
}

Status SimulatedProgram::begin(std::span<const Bytes> inputs) {
    // What an earlier run left is nobody's input.
    memory_.forget(activations_base_);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Cube& cube = artifact_.inputs[i];
        to_cube(cube, inputs[i],
                REEF_TRY(memory_.write(activations_base_ + std::uint64_t{cube.offset}, cube.bytes(),
                                       "an input")));
    }
    cores_.reset();
    return {};
}

Status SimulatedProgram::run(const Stage& stage) {
    starts_.clear();
    for (const Part& part : stage) {
        const TaskPlace& task = artifact_.tasks[part.first_task];
        const auto address = commands_base_ + task.first_word * sizeof(std::uint64_t);
        starts_.push_back({static_cast<std::uint32_t>(address), task.words, part.tasks});
    }
    if (const auto done = cores_.run(starts_); !done)
        return std::unexpected(Error(done.error()).in(operators_of(artifact_, stage)));
    return {};
}

Status SimulatedProgram::read(const Cube& cube, MutableBytes tensor) const {
    from_cube(cube,
              REEF_TRY(memory_.read(activations_base_ + std::uint64_t{cube.offset}, cube.bytes(),
                                    "a tensor")),
              tensor);
    return {};
}

}  // namespace reef::rk3588
