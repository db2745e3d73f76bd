// A Dense(1024) layer's weights to the Edge TPU's parameter blob, against memcpy in the same run:
// bytes read and written per second, one thread, the median of rounds that take turns.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/simd.h"
#include "quantile.h"
#include "reef/edgetpu/params.h"

namespace reef::edgetpu {
namespace {

using bench::median;

constexpr std::uint32_t side = 1024;
constexpr int rounds = 301;

/// Bytes at a cache line's beginning, as parameters lie in a compiled file.
class Block {
  public:
    explicit Block(std::size_t size)
        : bytes_(static_cast<std::byte*>(std::aligned_alloc(64, (size + 63) / 64 * 64))),
          size_(size) {
        if (bytes_ == nullptr) throw std::bad_alloc();
        std::memset(bytes_.get(), 1, size);
    }
    [[nodiscard]] MutableBytes bytes() const { return {bytes_.get(), size_}; }

  private:
    struct Free {
        void operator()(void* bytes) const { std::free(bytes); }
    };
    std::unique_ptr<std::byte, Free> bytes_;
    std::size_t size_;
};

template <class Work>
double seconds(Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Keeps the compiler from dropping copies whose result nobody reads.
void keep(const void* bytes) {
    asm volatile("" : : "r"(bytes) : "memory");
}

struct Case {
    std::string name;
    std::size_t moved;  ///< bytes read and written
    double bound;       ///< part of memcpy's bandwidth
};

/// `work` and a memcpy that moves as many bytes, in turn. Gives whether the bound is kept.
template <class Work>
bool measure(const Case& one, Work&& work) {
    const Block from(one.moved / 2), to(one.moved / 2);
    std::vector<double> codec, copy;
    for (int round = 0; round < rounds; ++round) {
        codec.push_back(seconds(work));
        copy.push_back(seconds([&] {
            std::memcpy(to.bytes().data(), from.bytes().data(), from.bytes().size());
            keep(to.bytes().data());
        }));
    }
    const auto rate = [&](double time) { return static_cast<double>(one.moved) / time * 1e-9; };
    const double codec_rate = rate(median(codec)), copy_rate = rate(median(copy));
    const double part = codec_rate / copy_rate;
    fmt::print("{:<22} {:>6.2f} GB/s   memcpy {:>6.2f} GB/s   {:>5.1f} % (bound {:.0f} %)\n",
               one.name, codec_rate, copy_rate, part * 100, one.bound * 100);
    return part >= one.bound;
}

bool run() {
    const LayerLayout layout =
        layout_of({LayerKind::fully_connected, 1, 1, side, side}, {true, false, true}).value();
    std::mt19937 random(1);
    constexpr std::size_t count = std::size_t{side} * side;
    const Block real_block(count * sizeof(float)), integer_block(count);
    const std::span real(reinterpret_cast<float*>(real_block.bytes().data()), count);
    const MutableBytes integer = integer_block.bytes();
    for (std::size_t i = 0; i < real.size(); ++i) {
        real[i] = static_cast<float>(random() % 2000) / 1000.0F - 1.0F;
        integer[i] = std::byte{static_cast<std::uint8_t>(random())};
    }
    const std::vector<float> scales(side, 1.0F / 127.0F), multipliers(side, 0.01F);
    const Block block(layout.size_bytes);
    const MutableBytes blob = block.bytes();
    bool refused = false;
    const bool real_kept =
        measure({"float matrix to blob", real.size() * 4 + blob.size(), 0.4}, [&] {
            refused |= !encode_layer(layout, RealLayerValues{real, scales, {}, multipliers}, blob);
            keep(blob.data());
        });
    const bool integer_kept =
        measure({"int8 matrix to blob", integer.size() + blob.size(), 0.6}, [&] {
            refused |= !encode_layer(
                layout, LayerValues{.weights = integer, .multipliers = multipliers}, blob);
            keep(blob.data());
        });
    return real_kept && integer_kept && !refused;
}

}  // namespace
}  // namespace reef::edgetpu

int main() {
    reef::apply_simd_choice();
    return reef::edgetpu::run() ? 0 : 1;
}
