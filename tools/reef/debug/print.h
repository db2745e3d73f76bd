// What reef debug prints: each answer as text for people and as a JSON object.
#pragma once

#include <string>
#include <vector>

#include "debug/command.h"
#include "debug/target.h"
#include "outputs/json_output.h"
#include "reef/chip/disassembler.h"

namespace reef::tool::debug {

/// "0:0x00ae", "0:1:0x00ae": as commands take it.
[[nodiscard]] std::string word_name(const chip::ProgramWord& word);
/// "core", "tile 3 OP".
[[nodiscard]] std::string unit_name(const chip::DebugTables& chip, const chip::ChipUnit& unit);

// Text, with line ends.
[[nodiscard]] std::string text_of(const chip::DebugTables& chip, const chip::RunStop& stop);
[[nodiscard]] std::string text_of(const chip::DebugTables& chip,
                                  const chip::Breakpoint& breakpoint);
[[nodiscard]] std::string where_text(const chip::CoreState& core);
/// One file of registers.
[[nodiscard]] std::string registers_text(const chip::RegisterFile& file,
                                         std::span<const std::uint64_t> values);
/// Tiles that do the same share their lines.
[[nodiscard]] std::string text_of(const chip::DebugTables& chip,
                                  const std::vector<chip::EngineState>& engines);
/// Those that are not 0, or all.
[[nodiscard]] std::string text_of(const chip::DebugTables& chip,
                                  const std::vector<chip::CounterState>& counters, bool all);
/// Those that are not empty, or all.
[[nodiscard]] std::string text_of(const chip::DebugTables& chip,
                                  const std::vector<chip::QueueState>& queues, bool all);
[[nodiscard]] std::string memory_text(const chip::MemoryInfo& memory, std::uint32_t first,
                                      Bytes bytes);
[[nodiscard]] std::string text_of(const std::vector<chip::ProgramLayer>& layers);
[[nodiscard]] std::string info_text(const Target& target);
/// The instructions from `from` on; the one at `marked` has a mark.
[[nodiscard]] std::string listing(const chip::Disassembler& disassembler,
                                  const chip::StreamView& stream, std::size_t from,
                                  std::size_t count, std::optional<std::size_t> marked);
/// Elements with the host's values: signed ones with the top bit flipped back.
[[nodiscard]] std::string tensor_text(const ShowTensor& tensor, Bytes bytes);

// JSON.
[[nodiscard]] Json json_of(const chip::ProgramWord& word);
[[nodiscard]] Json json_of(const chip::DebugTables& chip, const chip::RunStop& stop);
[[nodiscard]] Json json_of(const chip::DebugTables& chip, const chip::Breakpoint& breakpoint);
[[nodiscard]] Json json_of(const chip::DebugTables& chip, const chip::CoreState& core);
[[nodiscard]] Json json_of(const std::vector<chip::EngineState>& engines);
[[nodiscard]] Json json_of(const std::vector<chip::CounterState>& counters);
[[nodiscard]] Json json_of(const std::vector<chip::QueueState>& queues);
[[nodiscard]] Json json_of(const std::vector<chip::ProgramLayer>& layers);
[[nodiscard]] Json json_of(const chip::DebugTables& chip, const chip::MemoryRange& where);
[[nodiscard]] Json info_json(const Target& target);
[[nodiscard]] Json listing_json(const chip::Disassembler& disassembler,
                                const chip::StreamView& stream, std::size_t from,
                                std::size_t count);
/// Nested arrays, as the shape says.
[[nodiscard]] Json tensor_json(const ShowTensor& tensor, Bytes bytes);
[[nodiscard]] Json hexadecimal(Bytes bytes);

}  // namespace reef::tool::debug
