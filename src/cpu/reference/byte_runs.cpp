// A call of memcpy for each run would take longer than copying its few bytes.
#include "cpu/reference/byte_runs.h"

#include <cstring>

namespace reef::cpu {
namespace {

template <typename Copy>
void each_run(const std::byte* in, std::byte* out, RunSteps steps, std::size_t count,
              const Copy& copy) {
    std::size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        copy(in, out);
        copy(in + steps.in, out + steps.out);
        copy(in + 2 * steps.in, out + 2 * steps.out);
        copy(in + 3 * steps.in, out + 3 * steps.out);
        in += 4 * steps.in;
        out += 4 * steps.out;
    }
    for (; i < count; ++i, in += steps.in, out += steps.out) copy(in, out);
}

template <std::size_t kBytes>
void copy_whole(const std::byte* in, std::byte* out, RunSteps steps, std::size_t count) {
    each_run(in, out, steps, count,
             [](const std::byte* from, std::byte* to) { std::memcpy(to, from, kBytes); });
}

/// Single bytes that become consecutive, of every second one: a constant step is vectorised.
void copy_every_second(const std::byte* in, std::byte* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out[i] = in[2 * i];
}

/// Of kPiece to 2 * kPiece bytes: the second piece begins earlier and may copy some once more.
template <std::size_t kPiece>
void copy_two(const std::byte* in, std::byte* out, RunSteps steps, std::size_t run,
              std::size_t count) {
    if (run == kPiece) return copy_whole<kPiece>(in, out, steps, count);
    const std::size_t second = run - kPiece;
    each_run(in, out, steps, count, [second](const std::byte* from, std::byte* to) {
        std::memcpy(to, from, kPiece);
        std::memcpy(to + second, from + second, kPiece);
    });
}

/// Of more than 2 * kPiece bytes.
template <std::size_t kPiece>
void copy_several(const std::byte* in, std::byte* out, RunSteps steps, std::size_t run,
                  std::size_t count) {
    const std::size_t last = run - kPiece;
    each_run(in, out, steps, count, [last](const std::byte* from, std::byte* to) {
        for (std::size_t at = 0; at < last; at += kPiece) std::memcpy(to + at, from + at, kPiece);
        std::memcpy(to + last, from + last, kPiece);
    });
}

}  // namespace

void copy_runs(const std::byte* in, std::byte* out, RunSteps steps, std::size_t run,
               std::size_t count) {
    constexpr std::size_t few = 256;
    if (run == 0) return;
    if (run == 1 && steps.in == 2 && steps.out == 1) return copy_every_second(in, out, count);
    if (run == 1) return copy_whole<1>(in, out, steps, count);
    if (run < 4) return copy_two<2>(in, out, steps, run, count);
    if (run < 8) return copy_two<4>(in, out, steps, run, count);
    if (run < 16) return copy_two<8>(in, out, steps, run, count);
    if (run <= 32) return copy_two<16>(in, out, steps, run, count);
    if (run <= few) return copy_several<16>(in, out, steps, run, count);
    each_run(in, out, steps, count,
             [run](const std::byte* from, std::byte* to) { std::memcpy(to, from, run); });
}

}  // namespace reef::cpu
