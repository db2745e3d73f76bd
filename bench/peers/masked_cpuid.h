// A library that asks the processor itself what it has, made to believe that it has less.
#pragma once

#include <functional>
#include <string_view>

namespace reef::peers {

/// Runs the work step by step, and answers each CPUID instruction in it as a processor would that
/// has the named vectors at most: "AVX2_VNNI", "AVX2" or "SSE4", as cpu::simd_target() says. What
/// other threads ask meanwhile is not masked. Each instruction takes about a microsecond. Gives how
/// many were answered: 0 where the work had asked before. Without running the work: 0, for another
/// target and on machines without the instruction.
std::size_t with_masked_cpuid(std::string_view target, const std::function<void()>& work);

}  // namespace reef::peers
