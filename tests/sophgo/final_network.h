// Networks of a few operators as final.mlir, and cuts of them that keep every rule.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reef/base/result.h"
#include "reef/sophgo/final_engine.h"

namespace reef::sophgo {

inline constexpr std::uint64_t coefficient_start = 0x100000000, neuron_start = 0x100010000;

/// With a fragment that is there.
std::string with(const std::string& text, std::string_view from, std::string_view to);

/// What is wrong with it; why it is not read at all.
std::vector<std::string> found_in(const std::string& text);

/// That keeps all rules.
Result<Cut> right_cut(const std::string& text, std::vector<std::string> names, bool keep = false);

/// 64 bytes, in the block of that number behind the start of the activations.
std::string at(int block);

/// Inputs x, y, ... in the first blocks, one function of these operators.
struct Network {
    std::string operators;
    std::vector<std::pair<std::string, std::string>> outputs;  ///< value and type
    std::vector<std::string> names;                            ///< of the outputs
    int inputs = 1;
    std::string mode = "basic";
    std::string regions = fmt::format(
        "module.neuron_addr = {} : i64, module.neuron_size = 65536 : i64", neuron_start);
    std::string chip = "bm1684x";

    [[nodiscard]] std::string text() const;
};

std::string op(const std::string& result, const std::string& kind, const std::string& operands,
               const std::string& operand_types, const std::string& type, const std::string& name);

std::string info(int id);

/// Load, tpu.Active NAME, Store.
std::string group(const std::string& result, const std::string& operand, const std::string& from,
                  const std::string& to, const std::string& name,
                  const std::string& attributes = "flow = [-1, 0, -2, 1, -3, 2]");

/// a = f(x), b = f(a), c = f(b) in blocks 1, 2, 1: c takes a's memory.
Network chain();

}  // namespace reef::sophgo
