// What the verbs that record and replay a chip's traffic share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reef/chip/traffic.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace reef::tool {

struct TrafficOptions {
    std::vector<std::string> inputs;  ///< as --input of reef run
    std::uint64_t seed = 1;           ///< of random inputs, without --input
    unsigned runs = 2;
    chip::DriverSettings driver;
};
void add_traffic_options(CLI::App& app, TrafficOptions& options);

/// Refuses "-": a recording is two files, FILE and FILE.bin.
[[nodiscard]] CLI::Validator recording_name();

/// The model and the options outlive what is returned; `path` is the model's.
[[nodiscard]] chip::TrafficRuns traffic_runs(const model::Model& model, const std::string& path,
                                             const TrafficOptions& options);

/// A recording, and who reads others like it.
struct ReadTraffic {
    const chip::TrafficRecorder* recorder = nullptr;
    std::unique_ptr<chip::Traffic> traffic;
};

/// By the recorder of that family of chips; for an empty name, by the first that can read it.
/// Errors: bad_argument for a family without one; those of reading, with what each recorder says
/// where they do not agree.
[[nodiscard]] Result<ReadTraffic> read_traffic(const std::string& path, const std::string& family);

}  // namespace reef::tool
