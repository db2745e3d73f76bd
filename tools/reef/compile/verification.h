// Whether a compiled model gives the bytes that its plain one gives in the chip's arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/result.h"
#include "reef/model/graph.h"

namespace reef::tool {

/// Of the order in which a simulated device's engines advance; nothing: the fixed one.
using OrderSeed = std::optional<std::uint64_t>;

struct Verification {
    OrderSeed random_seed{};  ///< as it was asked for
    std::size_t runs = 0;
    std::uint64_t bytes = 0;  ///< compared: what programs gave, in all runs
    std::uint64_t differing = 0;
    std::string first_difference;       ///< tensor and input; empty without one
    std::vector<std::string> findings;  ///< of the watched device, each once
    [[nodiscard]] bool passed() const { return differing == 0; }
};

/// Runs the compiled model on random inputs and on extreme ones, on the family's simulated device,
/// watched; and the plain operators of each program, in the chip's arithmetic, on what it got.
/// Errors: unsupported for a family without one, or without an arithmetic of its own; those of
/// running, among them that nothing moves any more.
[[nodiscard]] Result<Verification> verify_compiled(const model::Model& plain,
                                                   const model::Model& compiled,
                                                   std::string_view family,
                                                   OrderSeed random_seed = {});

/// What the family lacks for its programs to be verified; empty where nothing is.
[[nodiscard]] std::string why_not_verifiable(std::string_view family);

/// A verification, or why there is none.
struct Proof {
    std::optional<Verification> verification{};
    std::string missing{};  ///< for people; empty with a verification
    [[nodiscard]] bool refutes() const { return verification && !verification->passed(); }
};
/// There is none where the CPU cannot run the plain model. Errors: those of verify_compiled() but
/// for what the plain model meets on the CPU, too.
[[nodiscard]] Result<Proof> verify_if_it_runs(const model::Model& plain,
                                              const model::Model& compiled,
                                              std::string_view family);

}  // namespace reef::tool
