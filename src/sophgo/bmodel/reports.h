// What is said of a bmodel: what it holds, which rules it breaks, how two differ.
#pragma once

#include "reef/chip/checker.h"
#include "reef/chip/file_kind.h"
#include "sophgo/bmodel/container.h"

namespace reef::sophgo {

/// Memory that a model needs, by the tables alone.
struct BmodelMemory {
    std::uint64_t coefficients = 0;  ///< on the device; equal ones (by their SHA-256) once
    std::uint64_t commands = 0;      ///< on the device; each range of the section once
    std::uint64_t runtime = 0;       ///< on the device: the largest stage's activations
    std::uint64_t host = 0;          ///< the largest stage's, for CPU layers
};
[[nodiscard]] BmodelMemory memory_of(const Bmodel& bmodel);

/// Activations of a stage on the device: the sum over its parts where it has several.
[[nodiscard]] std::uint64_t activation_bytes(const schema::NetParameterT& stage);
/// Commands of a stage; each range once.
[[nodiscard]] std::uint64_t command_bytes(const Bmodel& bmodel, std::size_t net, std::size_t stage);

[[nodiscard]] chip::FileReport report_of(const Bmodel& bmodel, chip::Detail detail);
[[nodiscard]] chip::CheckReport check_bmodel(const Bmodel& bmodel);
[[nodiscard]] chip::FileDifferences bmodel_differences(const Bmodel& a, const Bmodel& b);

}  // namespace reef::sophgo
