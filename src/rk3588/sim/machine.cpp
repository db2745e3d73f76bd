#include "rk3588/sim/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "reef/rk3588/command_words.h"
#include "reef_spec/rk3588_registers.h"
#include "rk3588/sim/core.h"
#include "rk3588/sim/dpu.h"
#include "rk3588/sim/dpu_writer.h"
#include "rk3588/sim/ppu.h"

namespace reef::rk3588::sim {
namespace {

constexpr std::uint32_t block_bits[] = {Blocks::cna,      Blocks::core, Blocks::dpu,
                                        Blocks::dpu_rdma, Blocks::ppu,  Blocks::ppu_rdma};

/// A bit of INTERRUPT_RAW_STATUS; group 1's stands behind group 0's.
consteval unsigned interrupt_named(std::string_view name) {
    for (const hw::RegisterInfo& info : spec::registers) {
        if (info.name != "INTERRUPT_RAW_STATUS") continue;
        for (const hw::RegisterField& field : info.fields)
            if (field.name == name) return field.position;
    }
    throw "no such interrupt";
}
constexpr unsigned dpu_interrupt = interrupt_named("DPU_0");
constexpr unsigned ppu_interrupt = interrupt_named("PPU_0");

constexpr RegisterIndex pointers[] = {
    register_named("CNA_S_POINTER"), register_named("CORE_S_POINTER"),
    register_named("DPU_S_POINTER"), register_named("DPU_RDMA_S_POINTER"),
    register_named("PPU_S_POINTER"), register_named("PPU_RDMA_S_POINTER"),
};
/// How groups take turns, and the core's number, which only CNA and CORE have.
constexpr std::string_view modelled_pointer_fields[] = {"POINTER_PP_EN", "EXECUTER_PP_EN",
                                                        "POINTER_PP_MODE", "CORE"};

std::size_t number_of(std::uint32_t block) {
    return static_cast<std::size_t>(std::ranges::find(block_bits, block) - block_bits);
}

bool is_pointer(RegisterIndex index) {
    return std::ranges::find(pointers, index) != std::end(pointers);
}

std::uint32_t modelled_pointer_bits(RegisterIndex index) {
    std::uint32_t bits = 0;
    for (const std::string_view name : modelled_pointer_fields)
        if (const auto* field = spec::instructions[index].find(name))
            bits |= ((1U << field->width) - 1) << (field->position - first_value_bit);
    return bits;
}

std::uint64_t products_of(const Convolution& c, const Sums& sums) {
    const auto& w = c.windows;
    const std::uint64_t taps = std::uint64_t{w.kernel_width} * w.kernel_height;
    return sums.pixels() * taps * c.features.channels * (c.depthwise ? 1 : c.kernels);
}

}  // namespace

Traffic RunReport::traffic() const {
    Traffic sum;
    for (const TaskReport& task : tasks) sum += task.traffic;
    return sum;
}

void Machine::reset() {
    groups_ = {};
    cna_.reset();
    tables_.reset();
}

Status Machine::write_registers(const Task& task) {
    // The fields of all S_POINTER stand in the same bits.
    constexpr FieldPlace turns = field_named("DPU_S_POINTER.POINTER_PP_EN");
    for (RegisterIndex i = 0; i < register_count; ++i) {
        const std::uint32_t block = block_of(i);
        if (block == 0 || !task.registers.is_written(i)) continue;
        Groups& groups = groups_[number_of(block)];
        const auto value = task.registers.value(i);
        if (is_pointer(i)) {
            if ((value & ~modelled_pointer_bits(i)) != 0)
                return fail(Cause::unsupported,
                            fmt::format("the value {:#x} is not modelled: groups of registers that "
                                        "are chosen by hand, or bits that have no name",
                                        value),
                            std::string(spec::instructions[i].name));
            groups.take_turns = (value >> turns.shift & 1) != 0;
            continue;
        }
        groups.sets[groups.pointer].write(i, value);
    }
    return {};
}

RegisterSet Machine::registers_of(std::uint32_t blocks) const {
    RegisterSet out;
    for (RegisterIndex i = 0; i < register_count; ++i) {
        const std::uint32_t block = block_of(i);
        if ((block & blocks) == 0) continue;
        const Groups& groups = groups_[number_of(block)];
        const RegisterSet& set = groups.sets[groups.pointer];
        if (set.is_written(i)) out.write(i, set.value(i));
    }
    return out;
}

std::uint32_t Machine::take_turns(std::uint32_t blocks) {
    std::uint32_t interrupts = 0;
    for (const std::uint32_t block : block_bits) {
        if ((block & blocks) == 0) continue;
        Groups& groups = groups_[number_of(block)];
        if (block == Blocks::dpu) interrupts |= 1U << (dpu_interrupt + groups.pointer);
        if (block == Blocks::ppu) interrupts |= 1U << (ppu_interrupt + groups.pointer);
        if (groups.take_turns) groups.pointer ^= 1U;
    }
    return interrupts;
}

Status Machine::run_convolution(WatchedRegisters& registers, std::uint32_t blocks,
                                TaskReport& report) {
    const Convolution convolution = REEF_TRY(cna_.run(registers, report.traffic));
    const DpuShape shape = REEF_TRY(read_dpu_shape(registers));
    // Before anything is computed whose size the memory does not bound.
    REEF_CHECK(check_results_place(registers, shape, switches_, memory_));
    if (shape.flying) return fail(Cause::bad_input, "FLYING_MODE with CNA and CORE", "DPU");
    if (shape.depthwise != convolution.depthwise)
        return fail(Cause::bad_input, "CONV_MODE is not CNA's", "DPU");
    Sums sums = REEF_TRY(accumulate(registers, convolution, shape, switches_));
    report.products = products_of(convolution, sums);
    Operands operands;
    if ((blocks & Blocks::dpu_rdma) != 0) {
        operands = REEF_TRY(read_operands(registers, shape, memory_, switches_, report.traffic));
    } else if (shape.element_wise) {
        return fail(Cause::bad_input, "an element-wise operand without DPU_RDMA", "DPU");
    }
    return run_dpu(registers, shape, std::move(sums), operands, true, tables_, switches_, memory_,
                   report.traffic);
}

Status Machine::run_flying(WatchedRegisters& registers, TaskReport& report) {
    const DpuShape shape = REEF_TRY(read_dpu_shape(registers));
    if (!shape.flying)
        return fail(Cause::bad_input, "without CNA and CORE it needs FLYING_MODE", "DPU");
    Operands operands =
        REEF_TRY(read_operands(registers, shape, memory_, switches_, report.traffic));
    Sums sums = std::move(*operands.main);
    return run_dpu(registers, shape, std::move(sums), operands, false, tables_, switches_, memory_,
                   report.traffic);
}

Status Machine::execute(std::uint32_t blocks, TaskReport& report) {
    const RegisterSet set = registers_of(blocks);
    WatchedRegisters registers(set);
    constexpr std::uint32_t without_operands = Blocks::convolution & ~Blocks::dpu_rdma;
    if (blocks == Blocks::convolution || blocks == without_operands) {
        REEF_CHECK(run_convolution(registers, blocks, report));
    } else if (blocks == Blocks::flying) {
        REEF_CHECK(run_flying(registers, report));
    } else if (blocks == Blocks::pooling) {
        REEF_CHECK(run_ppu(registers, switches_, memory_, report.traffic));
    } else {
        return fail(Cause::unsupported,
                    fmt::format("op_en {:#x}: these blocks together are not modelled", blocks));
    }
    return registers.all_seen(blocks);
}

Result<RunReport> Machine::run(std::uint32_t address, std::size_t words, std::size_t tasks) {
    // A kernel's driver lets the groups of CNA and CORE take turns before every start.
    groups_[number_of(Blocks::cna)].take_turns = true;
    groups_[number_of(Blocks::core)].take_turns = true;
    RunReport report;
    while (report.tasks.size() < tasks) {
        const auto place = fmt::format("task {} at {:#x}", report.tasks.size(), address);
        const Bytes bytes = REEF_TRY(
            in_place(memory_.read(address, words * word_bytes, "PC: command words"), place));
        const Task task = REEF_TRY(in_place(read_task(bytes), place));
        TaskReport& done = report.tasks.emplace_back();
        done.address = address;
        done.blocks = task.blocks;
        done.traffic.commands = task.words * word_bytes;
        REEF_CHECK(in_place(write_registers(task), place));
        REEF_CHECK(in_place(tables_.load(task.tables), place));
        REEF_CHECK(in_place(execute(task.blocks, done), place));
        report.interrupts |= take_turns(task.blocks);
        if (task.next_address == 0) return report;
        address = task.next_address;
        words = task.next_words;
    }
    if (tasks == spec::most_chained_tasks)
        return fail(Cause::bad_input,
                    fmt::format("the chain has more than {} tasks", spec::most_chained_tasks));
    return report;
}

}  // namespace reef::rk3588::sim
