// What a verb is at, where nobody can say how much of it is left.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

namespace reef::tool {

/// "[2/4] gathering layers, 12 s" on a terminal, of work that takes longer than two seconds. A
/// thread writes it anew every second, so that a stage need not say that it goes on.
class Stages {
  public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds patience{2000}, period{1000};

    /// On standard error when that is a terminal, nowhere otherwise.
    explicit Stages(std::size_t count);
    /// On that descriptor, with other times.
    Stages(std::size_t count, int descriptor, std::chrono::milliseconds first,
           std::chrono::milliseconds again);
    Stages(const Stages&) = delete;
    Stages& operator=(const Stages&) = delete;
    /// Takes the line away.
    ~Stages();

    void begin(std::string stage);
    /// Before another bar takes the line, and before anything else is written there.
    void end();

  private:
    void show(const std::stop_token& stop);
    [[nodiscard]] std::string line() const;
    void erase();

    std::size_t count_;
    int descriptor_;
    std::chrono::milliseconds first_, again_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::size_t number_ = 0;  ///< of the stage, from 1
    std::string stage_;       ///< empty between stages
    bool drawn_ = false;
    Clock::time_point start_ = Clock::now();
    std::jthread thread_;  // last: it uses the others
};

}  // namespace reef::tool
