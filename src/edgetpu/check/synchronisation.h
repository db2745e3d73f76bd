// The parts of check_synchronisation(): each looks at one kind of balance.
#pragma once

#include <string>
#include <vector>

#include "issue_order.h"

namespace reef::edgetpu::check {

/// Tile counters, fences and notifications.
[[nodiscard]] std::vector<ProgramFault> check_credits(const IssueOrder& order);
/// The scalar core's counters, and the turns of the senders on both rings.
[[nodiscard]] std::vector<ProgramFault> check_scalar_credits(const IssueOrder& order);
/// Instructions of a tile that wait for each other before any of them can begin.
[[nodiscard]] std::vector<ProgramFault> check_beginnings(const IssueOrder& order);
/// Rows on the rings between tiles and from the scalar core, words between neighbours.
[[nodiscard]] std::vector<ProgramFault> check_traffic(const IssueOrder& order);
/// Units of the FIFOs, rows to the scalar core, bytes of the DMA descriptors.
[[nodiscard]] std::vector<ProgramFault> check_host(const IssueOrder& order);

}  // namespace reef::edgetpu::check
