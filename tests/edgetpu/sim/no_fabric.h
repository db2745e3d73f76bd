// For engines that use no bus.
#pragma once

#include "edgetpu/sim/tile/tile.h"

namespace reef::edgetpu::sim {

class NoFabric final : public Fabric {
  public:
    [[nodiscard]] bool ring_has_room(Ring, std::uint16_t, bool) const override { return false; }
    void ring_send(Ring, std::uint16_t, bool, std::span<const std::uint8_t>) override {}
    std::size_t ring_send_each(Ring, std::uint16_t, std::size_t,
                               std::span<const std::uint8_t>) override {
        return 0;
    }
    std::uint32_t ring_send_rows(Ring, std::uint16_t, const TileMemory&, const Rows&) override {
        return 0;
    }
    void count_producer(Ring, unsigned) override {}
    [[nodiscard]] MeshLink* link_from(unsigned, Direction) override { return nullptr; }
};

}  // namespace reef::edgetpu::sim
