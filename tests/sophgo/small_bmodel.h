// A bmodel that the tests make themselves.
#pragma once

#include <cstddef>
#include <vector>

#include "reef/base/bytes.h"
#include "reef_schema/bmodel_generated.h"

namespace reef::sophgo {

/// One net of one stage: coefficients with their SHA-256, one group of commands in the net and in
/// its subnet, 4 KB aligned, a kernel module.
[[nodiscard]] schema::ModelT small_bmodel_tables();
/// With a binary section of `binary_bytes`, whose bytes are a pattern; the header says `claimed`.
[[nodiscard]] std::vector<std::byte> bmodel_file(const schema::ModelT& tables,
                                                 std::size_t binary_bytes, std::uint64_t claimed);
/// The same around a FlatBuffer.
[[nodiscard]] std::vector<std::byte> bmodel_file(Bytes flatbuffer, std::size_t binary_bytes,
                                                 std::uint64_t claimed);
[[nodiscard]] std::vector<std::byte> small_bmodel();

}  // namespace reef::sophgo
