// Where a debugger's registers hold the scalar core: between two of its instructions.
#pragma once

#include <cstddef>
#include <optional>

namespace reef::edgetpu::sim {

class CoreHold {
  public:
    void run() {
        held_ = one_ = false;
        passes_ = true;
    }
    void halt() { held_ = true; }
    /// One instruction, however long a sync waits.
    void step() {
        run();
        one_ = true;
    }
    /// The core stops before that word of any stream. Who goes on from there passes it.
    void break_at(std::optional<std::size_t> word) { break_at_ = word; }

    [[nodiscard]] bool held() const { return held_; }
    [[nodiscard]] bool steps() const { return one_ && !held_; }

    // For the machine.
    /// Whether the instruction at `word` has to wait.
    [[nodiscard]] bool stops(std::size_t word) {
        if (!passes_ && break_at_ == word) held_ = true;
        return held_;
    }
    /// An instruction is over.
    void moved() {
        passes_ = false;
        if (one_) held_ = true;
        one_ = false;
    }

  private:
    bool held_ = false;
    bool one_ = false;
    bool passes_ = false;  ///< the next instruction does not stop
    std::optional<std::size_t> break_at_;
};

}  // namespace reef::edgetpu::sim
