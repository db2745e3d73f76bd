// What of a program can be worked out before it runs: decoded instructions, shapes and plans.
#include <algorithm>

#include "edgetpu/sim/program/written_rows.h"
#include "machine.h"

namespace reef::edgetpu::sim {

namespace {

void find_kept_rows(std::vector<Stream>& streams) {
    WrittenRows written;
    for (const Stream& stream : streams)
        for (const auto& instruction : stream.instructions) written.include(instruction.operation);
    for (Stream& stream : streams)
        for (auto& instruction : stream.instructions)
            if (auto* send = std::get_if<RingSend>(&instruction.operation))
                send->from_kept_rows = written.are_kept(send->src);
}

}  // namespace

Result<Program> translate_program(std::span<const Bytes> streams) {
    Program program;
    std::uint32_t number = 0;
    for (const Bytes bytes : streams) {
        auto stream = REEF_TRY(translate(bytes, number));
        number += static_cast<std::uint32_t>(stream.instructions.size());
        for (const auto& instruction : stream.instructions) {
            program.queues.include(instruction);
            auto& shape = program.shapes.emplace_back();
            const auto* op = std::get_if<TensorOp>(&instruction.operation);
            if (op == nullptr) continue;
            auto found = shape_of(*op);
            if (!found) return std::unexpected(std::move(found.error()).in(place_of(instruction)));
            shape = *found;
            program.most_live_positions =
                std::max(program.most_live_positions, shape.live_positions);
            const auto& plan = program.plans.emplace_back(plan_of(*op, shape));
            program.plan_at.resize(program.shapes.size());
            program.plan_at.back() = static_cast<std::uint32_t>(program.plans.size() - 1);
            if (!plan.fast) continue;
            program.scratch.include(plan);
            if (plan.in_parts)
                program.most_parts =
                    std::max(program.most_parts, shape.live_positions * plan.lanes);
        }
        program.streams.push_back(std::move(stream));
    }
    find_kept_rows(program.streams);
    return program;
}

}  // namespace reef::edgetpu::sim
