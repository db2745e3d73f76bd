// Pass "embed": programs into a package.
#pragma once

#include "edgetpu/compiler/emission.h"
#include "edgetpu/compiler/runtime_version.h"

namespace reef::edgetpu::lowering {

/// Programs share the chip's memory when their tokens are equal: one is made of these bytes.
[[nodiscard]] std::uint64_t token_of(std::span<const Bytes> parts);

struct EmbedOptions {
    /// Of all programs that share the chip's memory; nothing: made of this one's bytes.
    std::optional<std::uint64_t> token{};
    std::int32_t runtime_version = newest_runtime;
};
[[nodiscard]] Package package_of(const Plan& plan, Programs programs,
                                 const EmbedOptions& options = {});

/// What each executable holds. For people.
[[nodiscard]] std::string to_text(const Package& package);

}  // namespace reef::edgetpu::lowering
