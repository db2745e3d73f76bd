// What a host does to a stick, as bytes: the inputs of fuzz_edgetpu_stick.
//
// The first byte holds flags, the rest actions: a byte (modulo their number) and what belongs to
// it. Numbers are little endian; bytes that are announced and missing are left out.
#pragma once

#include <cstdint>

namespace reef::fuzz {

enum StickFlags : std::uint8_t {
    fast_engines = 1,
    random_order = 2,
    not_started = 4,  ///< the engines' run controls are left at rest
    slow_bus = 8,     ///< USB 2
};

enum class HostAction : std::uint8_t {
    write_register,  ///< u32 offset, u64 value
    read_register,   ///< u32 offset
    bulk_out,        ///< u16 size, bytes: one transfer
    stream_out,      ///< u8 tag, u16 size, bytes: a header, then the bytes
    bulk_in,         ///< u8 endpoint (output, events, interrupts), u16 room
    clear_halt,      ///< u8 endpoint (out, output, events)
    bus_reset,
    cancel_all,
};
inline constexpr unsigned host_actions = 8;

}  // namespace reef::fuzz
