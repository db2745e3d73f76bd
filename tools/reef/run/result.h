// What `reef run` found, and its two forms of output.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compare/layer_dump.h"
#include "outputs/console.h"
#include "outputs/interpretation.h"
#include "outputs/statistics.h"
#include "reef/runtime/session.h"

namespace reef::tool {

struct RunReport {
    std::string model;
    std::string device;
    std::string arithmetic;
    int threads = 1;
    double first_seconds = 0;  ///< the first run, with cold caches
    LatencySummary latency{};  ///< the runs after it; the first one when there are none
    std::vector<std::string> labels{};
    std::size_t top = 5;
    bool top_asked = false;
    bool list_placements = false;
    /// Of the first run, with --strict.
    std::optional<std::vector<runtime::Finding>> findings{};
    const LayerDump* layers = nullptr;  ///< of --dump-layers
};

/// Errors: bad_input when the labels fit no output: another number than it has classes, or no
/// output has classes at all.
[[nodiscard]] Status check_labels(const model::Subgraph& graph,
                                  const std::vector<std::string>& labels);

void print_run_text(Console& console, const runtime::Session& session, const RunReport& report);
void print_run_json(Console& console, const runtime::Session& session, const RunReport& report);

/// "12 tabby, tabby cat"; the number alone without a label.
[[nodiscard]] std::string label_of(const std::vector<std::string>& labels, std::size_t index);

/// Classes of a class map with the number of their places, the most frequent first.
struct ClassArea {
    std::size_t index = 0;
    std::size_t places = 0;
};
[[nodiscard]] std::vector<ClassArea> areas_of(std::span<const double> classes);

}  // namespace reef::tool
