// The bits of typed instructions one behind the other, as a whole program.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "edgetpu/program/codec.h"
#include "reef/base/bytes.h"
#include "reef/base/result.h"

namespace reef::edgetpu::program {

/// Errors: as encode().
[[nodiscard]] inline Result<std::vector<std::byte>> encode_stream(
    std::span<const TypedInstruction> instructions) {
    std::vector<std::byte> out;
    for (const TypedInstruction& one : instructions) {
        const auto encoded = REEF_TRY(encode(one));
        const Bytes bytes = encoded.bytes();
        out.insert(out.end(), bytes.begin(), bytes.end());
    }
    return out;
}

}  // namespace reef::edgetpu::program
