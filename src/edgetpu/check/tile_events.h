// What the instructions count and wait for: the signals and waits of isa.xml with their counters.
//
// A signal counts one event per pass of the dimensions below its level, a wait needs start +
// step * i before pass i of the dimensions from its level on (facts measured on all known
// programs; docs/edgetpu-isa.md has the grades). The scalar core's counters have the names of the
// engines that wait for them: infeed counts PARAMETER_POP and AVDATA_POP, ring_push's pop counts
// PARAMETER_INFEED, AVDATA_INFEED and SCALAR_INFEED.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "edgetpu/program/instruction.h"
#include "reef_spec/edgetpu_isa.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu::check {

inline constexpr std::size_t tile_counters = std::size(spec::tile_counter_values);
inline constexpr std::size_t scalar_counters = std::size(spec::scalar_counter_values);
inline constexpr std::size_t tiles_per_chip = spec::tile_count;
inline constexpr std::uint64_t word_bytes = spec::narrow_word_bytes;

/// Number of a counter or engine, by its name in isa.xml. Fails to compile when there is none.
consteval unsigned number_of(std::string_view name, auto& values) {
    for (const auto& value : values) {
        if (value.name == name) return value.value;
    }
    throw "no such name";
}

/// The events of the rings' producers: a tile counts those of any tile, the scalar core its own.
inline constexpr unsigned tile_producer_a = number_of("RING_PRODUCER_A", spec::tile_counter_values);
inline constexpr unsigned tile_producer_b = number_of("RING_PRODUCER_B", spec::tile_counter_values);
inline constexpr unsigned scalar_producer_a = number_of("PRODUCER_A", spec::scalar_counter_values);
static_assert(tile_producer_b == tile_producer_a + 1);
static_assert(number_of("PRODUCER_B", spec::scalar_counter_values) == scalar_producer_a + 1);

struct Demand {
    unsigned counter = 0;  ///< of the tile, or of the scalar core for scalar instructions
    std::int64_t first = 0;
    std::int64_t largest = 0;
    unsigned wait = 0;         ///< its number in the instruction
    bool destination = false;  ///< holds back the destination
};

struct Production {
    unsigned counter = 0;
    std::uint64_t events = 0;
};

/// Fixed room, so that walking a program allocates nothing per instruction.
template <typename T>
struct Few {
    std::array<T, 6> items{};
    std::size_t count = 0;
    void add(T item) { items.at(count++) = item; }
    [[nodiscard]] auto begin() const { return items.begin(); }
    [[nodiscard]] auto end() const { return items.begin() + static_cast<std::ptrdiff_t>(count); }
};

[[nodiscard]] Few<Demand> demands_of(const program::Operation& operation);
[[nodiscard]] Few<Production> productions_of(const program::Operation& operation);

/// The tile engine that executes a tile instruction, as a fence numbers them.
[[nodiscard]] unsigned engine_of(const program::Operation& operation);

}  // namespace reef::edgetpu::check
