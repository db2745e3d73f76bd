// Times of single operators: sums for the profile, events for the trace.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "reef/chip/estimate.h"
#include "reef/model/graph.h"
#include "reef/runtime/session.h"

namespace reef::tool {

/// Keeps the start and end of every operator of every run it observes.
class Recorder final : public graph::RunObserver {
  public:
    struct Event {
        std::size_t operator_index = 0;
        Clock::time_point begin;
        Clock::time_point end;
    };

    /// Room for so many events, so that a run does not wait for memory.
    explicit Recorder(std::size_t expected_events) { events_.reserve(expected_events); }
    void on_operator(std::size_t operator_index, Clock::time_point begin,
                     Clock::time_point end) override {
        events_.push_back({operator_index, begin, end});
    }
    [[nodiscard]] const std::vector<Event>& events() const { return events_; }

  private:
    std::vector<Event> events_;
};

struct OperatorTime {
    std::size_t index = 0;
    std::string name;
    std::string kernel;
    std::string output;  ///< shape and type of the first output
    std::int64_t macs = 0;
    double seconds = 0;  ///< mean over the runs
    double share = 0;    ///< of all operators' time, 0 to 1
};

struct TypeTime {
    std::string name;
    std::size_t count = 0;
    double seconds = 0;
    double share = 0;
};

struct Profile {
    std::size_t runs = 0;
    double seconds = 0;                   ///< mean sum over the operators
    std::vector<OperatorTime> operators;  ///< in execution order
    std::vector<TypeTime> types;          ///< the slowest first
};

/// Precondition: the events come from `runs` runs of that session of that model, runs > 0.
[[nodiscard]] Profile profile_of(const model::Model& model, const runtime::Session& session,
                                 const std::vector<Recorder::Event>& events, std::size_t runs);

/// A JSON object in the Trace Event Format, which Perfetto and chrome://tracing open: one complete
/// event per operator and run, times in microseconds from the first event on. `chip`, the estimate
/// of compiled programs, adds its processes and lanes.
[[nodiscard]] std::string chrome_trace(const Profile& profile, const std::string& process_name,
                                       const std::vector<Recorder::Event>& events,
                                       const chip::WorkPicture& chip = {});

}  // namespace reef::tool
