// What a verb of the reef command is, and what it may use.
//
// Each verb has one file with one function that declares its options on `app` and gives the action
// to run when the verb was chosen. The action prints through the Console; what it printed appears
// only when it succeeded.
#pragma once

#include <functional>
#include <string_view>

#include "outputs/console.h"
#include "outputs/exit.h"
#include "reef/base/result.h"

namespace CLI {
class App;
}

namespace reef::tool {

using Action = std::function<Result<Exit>(Console& console)>;

[[nodiscard]] Action add_inspect(CLI::App& app);
[[nodiscard]] Action add_run(CLI::App& app);
[[nodiscard]] Action add_compile(CLI::App& app);
[[nodiscard]] Action add_compare(CLI::App& app);
[[nodiscard]] Action add_bench(CLI::App& app);
[[nodiscard]] Action add_disasm(CLI::App& app);
[[nodiscard]] Action add_check(CLI::App& app);
[[nodiscard]] Action add_cut(CLI::App& app);
[[nodiscard]] Action add_bisect(CLI::App& app);
[[nodiscard]] Action add_debug(CLI::App& app);
[[nodiscard]] Action add_asm(CLI::App& app);
[[nodiscard]] Action add_diff(CLI::App& app);
[[nodiscard]] Action add_extract(CLI::App& app);
[[nodiscard]] Action add_weights(CLI::App& app);
[[nodiscard]] Action add_retarget(CLI::App& app);
[[nodiscard]] Action add_ops(CLI::App& app);
[[nodiscard]] Action add_list(CLI::App& app);
[[nodiscard]] Action add_doctor(CLI::App& app);
[[nodiscard]] Action add_record(CLI::App& app);
[[nodiscard]] Action add_replay(CLI::App& app);
[[nodiscard]] Action add_demo(CLI::App& app);

/// What reef bench has in place of an option of TFLite's benchmark_model; empty when that is none.
[[nodiscard]] std::string_view instead_of_benchmark_model(std::string_view option);

}  // namespace reef::tool
