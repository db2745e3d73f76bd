// Edge TPUs that sessions share.
#pragma once

#include <memory>

namespace reef::runtime {

/// Sessions that are given the same Chips use one stick, or one simulated chip, together when their
/// device URIs name the same: their runs queue up, and their models evict each other's parameters
/// or, co-compiled, stay together. "edgetpu:usb" names a stick that is open already, else the
/// first. A chip is as its first session opened it (simulator, clock, firmware), and closes with
/// its last. May be used by several threads.
class Chips {
  public:
    Chips();
    Chips(const Chips&) = delete;
    Chips& operator=(const Chips&) = delete;
    ~Chips();

    /// Those of sessions that are given none: a stick can be opened only once.
    [[nodiscard]] static const std::shared_ptr<Chips>& of_process();

    struct Impl;
    [[nodiscard]] Impl& impl() { return *impl_; }

  private:
    std::unique_ptr<Impl> impl_;
};

}  // namespace reef::runtime
