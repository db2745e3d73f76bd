#include "rk3588/compiler/chip_memory.h"

#include <gtest/gtest.h>

#include "rk3588/stream/task_work.h"

namespace reef::test {
namespace {

constexpr std::uint32_t base[] = {0x1000'0000, 0x2000'0000, 0x4000'0000};

}  // namespace

ChipMemory::ChipMemory(rk3588::Artifact artifact, const rk3588::sim::Switches& switches)
    : artifact_(std::move(artifact)),
      constants_(artifact_.constants.view().begin(), artifact_.constants.view().end()),
      activations_(artifact_.activation_bytes),
      commands_(relocated(artifact_, base)),
      machine_(memory_, switches) {
    EXPECT_TRUE(memory_.add(base[0], std::as_writable_bytes(std::span(commands_))));
    if (!constants_.empty()) {
        EXPECT_TRUE(memory_.add(base[1], constants_));
    }
    EXPECT_TRUE(memory_.add(base[2], activations_, rk3588::sim::Contents::unknown));
}

void ChipMemory::write(const rk3588::Cube& cube, Bytes tensor) {
    const auto place =
        memory_.write(base[2] + std::uint64_t{cube.offset}, cube.bytes(), "a tensor");
    ASSERT_TRUE(place) << place.error().message();
    to_cube(cube, tensor, *place);
}

std::vector<std::byte> ChipMemory::read(const rk3588::Cube& cube) const {
    std::vector<std::byte> tensor(cube.elements());
    from_cube(cube, Bytes(activations_).subspan(cube.offset, cube.bytes()), tensor);
    return tensor;
}

Status ChipMemory::run(const rk3588::ArtifactOperator& op) {
    if (op.tasks == 0) return {};
    const auto& task = artifact_.tasks[op.first_task];
    const auto report = REEF_TRY(
        machine_.run(base[0] + task.first_word * static_cast<std::uint32_t>(sizeof(std::uint64_t)),
                     task.words, op.tasks));
    traffic_ += report.traffic();
    // What registers say of a task is what it does.
    for (std::size_t t = 0; t < report.tasks.size(); ++t) {
        const auto words = REEF_TRY(task_of(artifact_, op.first_task + t));
        EXPECT_EQ(rk3588::work_of(words).bytes, report.tasks[t].traffic) << op.name << " " << t;
    }
    return {};
}

std::vector<rk3588::Artifact> programs_of(const model::Model& compiled) {
    std::vector<rk3588::Artifact> programs;
    for (const auto& op : compiled.subgraphs.front().operators) {
        if (!rk3588::is_compiled(op)) continue;
        auto artifact = rk3588::read_artifact(op.custom_options.view());
        EXPECT_TRUE(artifact) << artifact.error().message();
        if (artifact) programs.push_back(std::move(*artifact));
    }
    return programs;
}

}  // namespace reef::test
