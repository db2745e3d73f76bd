// A plugin of qemu's emulation of programs: writes how many instructions the program executed.
//   qemu-aarch64 -plugin libreef-instruction-count.so PROGRAM
// No Debian package has qemu-plugin.h; the names and types are those of its version 1 (qemu 4.2 to
// 8.2), as far as they are used here.
#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace {

struct Block;
using Id = std::uint64_t;
using OnTranslation = void (*)(Id, Block*);
using OnExit = void (*)(Id, void* user);
constexpr int add_u64 = 0;

}  // namespace

#define REEF_SHOWN __attribute__((visibility("default")))

extern "C" {

std::size_t qemu_plugin_tb_n_insns(const Block*);
void qemu_plugin_register_vcpu_tb_trans_cb(Id, OnTranslation);
void qemu_plugin_register_vcpu_tb_exec_inline(Block*, int operation, void* number,
                                              std::uint64_t operand);
void qemu_plugin_register_atexit_cb(Id, OnExit, void* user);

REEF_SHOWN extern const int qemu_plugin_version = 1;
REEF_SHOWN int qemu_plugin_install(Id, const void* info, int count, char** arguments);
}

namespace {

/// Not exact while several threads of the program run.
std::uint64_t executed = 0;

void count_block(Id, Block* block) {
    qemu_plugin_register_vcpu_tb_exec_inline(block, add_u64, &executed,
                                             qemu_plugin_tb_n_insns(block));
}

void write_count(Id, void*) {
    std::fprintf(stderr, "%" PRIu64 " instructions\n", executed);
}

}  // namespace

int qemu_plugin_install(Id id, const void*, int, char**) {
    qemu_plugin_register_vcpu_tb_trans_cb(id, count_block);
    qemu_plugin_register_atexit_cb(id, write_count, nullptr);
    return 0;
}
