#include "peers/masked_cpuid.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <signal.h>
#include <ucontext.h>
#include <x86intrin.h>

#include <initializer_list>
#include <optional>
#endif

namespace reef::peers {

#if defined(__x86_64__)

namespace {

struct Answer {
    unsigned eax, ebx, ecx, edx;
};

constexpr unsigned bits(std::initializer_list<unsigned> places) {
    unsigned mask = 0;
    for (const unsigned place : places) mask |= 1U << place;
    return mask;
}

// The places are those of the processor manuals' tables of CPUID.
constexpr unsigned leaf1_ecx_avx = bits({12, 28, 29});  // FMA, AVX, F16C
constexpr unsigned leaf7_ebx_avx2 = bits({5});
constexpr unsigned leaf7_ebx_avx512 = bits({16, 17, 21, 26, 27, 28, 30, 31});
constexpr unsigned leaf7_ecx_avx512 = bits({1, 6, 11, 12, 14});
constexpr unsigned leaf7_edx_avx512 = bits({2, 3, 8, 23});
constexpr unsigned leaf7_1_eax_avx_vnni = bits({4});
constexpr unsigned leaf7_1_eax_later = bits({5, 23});         // AVX512-BF16, AVX-IFMA
constexpr unsigned leaf7_1_edx_later = bits({4, 5, 10, 19});  // AVX-VNNI of other types, AVX10

enum class Vectors { sse4, avx2, avx2_vnni };

std::optional<Vectors> vectors_of(std::string_view target) {
    if (target == "SSE4") return Vectors::sse4;
    if (target == "AVX2") return Vectors::avx2;
    if (target == "AVX2_VNNI") return Vectors::avx2_vnni;
    return std::nullopt;
}

Answer masked(unsigned leaf, unsigned subleaf, Vectors most) {
    Answer answer{};
    __cpuid_count(leaf, subleaf, answer.eax, answer.ebx, answer.ecx, answer.edx);
    if (leaf == 1 && most < Vectors::avx2) answer.ecx &= ~leaf1_ecx_avx;
    if (leaf == 7 && subleaf == 0) {
        answer.ebx &= ~(leaf7_ebx_avx512 | (most < Vectors::avx2 ? leaf7_ebx_avx2 : 0));
        answer.ecx &= ~leaf7_ecx_avx512;
        answer.edx &= ~leaf7_edx_avx512;
    }
    if (leaf == 7 && subleaf == 1) {
        answer.eax &= ~(leaf7_1_eax_later | (most < Vectors::avx2_vnni ? leaf7_1_eax_avx_vnni : 0));
        answer.edx &= ~leaf7_1_edx_later;
    }
    return answer;
}

// A signal's handler has no other way to its caller's state.
Vectors answers_have = Vectors::avx2;
std::size_t answers_given = 0;

void on_step(int, siginfo_t*, void* context) {
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    const auto is_next = [&] {
        const auto* next = reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
        return next[0] == 0x0F && next[1] == 0xA2;
    };
    while (is_next()) {
        const Answer answer = masked(static_cast<unsigned>(registers[REG_RAX]),
                                     static_cast<unsigned>(registers[REG_RCX]), answers_have);
        registers[REG_RAX] = answer.eax;
        registers[REG_RBX] = answer.ebx;
        registers[REG_RCX] = answer.ecx;
        registers[REG_RDX] = answer.edx;
        registers[REG_RIP] += 2;
        ++answers_given;
    }
}

constexpr unsigned long long trap_flag = 0x100;

}  // namespace

std::size_t with_masked_cpuid(std::string_view target, const std::function<void()>& work) {
    const auto most = vectors_of(target);
    if (!most) return 0;
    answers_have = *most;
    answers_given = 0;
    struct sigaction step {};
    struct sigaction before {};
    step.sa_sigaction = on_step;
    step.sa_flags = SA_SIGINFO;
    ::sigaction(SIGTRAP, &step, &before);
    __writeeflags(__readeflags() | trap_flag);
    work();
    __writeeflags(__readeflags() & ~trap_flag);
    ::sigaction(SIGTRAP, &before, nullptr);
    return answers_given;
}

#else

std::size_t with_masked_cpuid(std::string_view, const std::function<void()>&) {
    return 0;
}

#endif

}  // namespace reef::peers
