// What is said of a bmodel: what it holds, which rules it breaks, how two differ.
#pragma once

#include "reef/chip/checker.h"
#include "reef/chip/file_kind.h"
#include "sophgo/bmodel/container.h"

namespace reef::sophgo {

/// The sum or product of sizes that a file claims; the largest number where 64 bits hold it not.
[[nodiscard]] constexpr std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
    return __builtin_add_overflow(a, b, &a) ? ~std::uint64_t{0} : a;
}
[[nodiscard]] constexpr std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    return __builtin_mul_overflow(a, b, &a) ? ~std::uint64_t{0} : a;
}

/// Bytes that a model needs, by the tables alone.
struct BmodelMemory {
    std::uint64_t coefficients = 0;       ///< on the device
    std::uint64_t commands = 0;           ///< on the device, code for dynamic shapes included
    std::uint64_t runtime = 0;            ///< on the device: activations
    std::uint64_t host_coefficients = 0;  ///< of CPU layers
    std::uint64_t host_runtime = 0;

    [[nodiscard]] std::uint64_t device() const {
        return plus(plus(coefficients, commands), runtime);
    }
    [[nodiscard]] std::uint64_t host() const { return plus(host_coefficients, host_runtime); }
    bool operator==(const BmodelMemory&) const = default;
};
/// What is needed when one stage runs at a time: equal coefficients (by their SHA-256) and commands
/// once, activations of the largest stage.
[[nodiscard]] BmodelMemory memory_of(const Bmodel& bmodel);
/// What the vendor's model_tool --info prints: it counts the first stage of a net as often as the
/// net has stages, commands of the oldest chips by their number, their buffers for changing forms,
/// and adds activations of nets that have several subnets.
[[nodiscard]] BmodelMemory memory_by_model_tool(const Bmodel& bmodel);

/// Activations of a stage on the device: the sum over its parts where it has several.
[[nodiscard]] std::uint64_t activation_bytes(const schema::NetParameterT& stage);
/// Commands of a stage; each range once.
[[nodiscard]] std::uint64_t command_bytes(const Bmodel& bmodel, std::size_t net, std::size_t stage);

[[nodiscard]] chip::FileReport report_of(const Bmodel& bmodel, chip::Detail detail);
[[nodiscard]] chip::CheckReport check_bmodel(const Bmodel& bmodel);
[[nodiscard]] chip::FileDifferences bmodel_differences(const Bmodel& a, const Bmodel& b);

}  // namespace reef::sophgo
