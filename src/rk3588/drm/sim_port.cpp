// Simulated cores as a port: submissions run where they are made, in memory that both see.
#include <fmt/format.h>

#include <algorithm>
#include <list>

#include "rk3588/drm/node.h"
#include "rk3588/sim/cores.h"

namespace reef::rk3588::drm {
namespace {

class SimPort final : public Port {
  public:
    explicit SimPort(const sim::Switches& switches) : cores_(memory_, switches) {
        starts_.reserve(most_cores);
    }

    [[nodiscard]] std::string name() const override { return "the simulated cores"; }
    [[nodiscard]] const std::string& node() const override { return node_; }
    [[nodiscard]] std::uint64_t resets() const override { return resets_; }
    [[nodiscard]] Result<Buffer> allocate(std::uint64_t bytes, std::uint64_t sram) override;
    void release(const Buffer& buffer) override {
        memory_.remove(buffer.address);
        objects_.remove_if([&](const Object& o) { return o.address == buffer.address; });
    }
    [[nodiscard]] Status to_device(const Buffer&, std::uint64_t) override { return {}; }
    [[nodiscard]] Status from_device(const Buffer&, std::uint64_t) override { return {}; }
    [[nodiscard]] Status reserve(std::size_t, std::size_t) override { return {}; }
    [[nodiscard]] Status submit(const Submission& submission) override;

  private:
    struct Object {
        std::uint32_t address = 0;
        std::vector<std::byte> bytes;
    };
    [[nodiscard]] std::uint64_t free_address(std::uint64_t bytes) const;

    std::string node_ = "sim";
    std::list<Object> objects_;  ///< by address
    std::vector<sim::Start> starts_;
    sim::Memory memory_;
    sim::Cores cores_;
    std::uint64_t resets_ = 0;
};

/// A page between buffers that nobody has: what runs over an end is found.
constexpr std::uint64_t page_between = 4096;

std::uint64_t SimPort::free_address(std::uint64_t bytes) const {
    std::uint64_t at = 0x10000;
    for (const Object& object : objects_) {
        if (at + bytes + page_between <= object.address) break;
        at = object.address + object.bytes.size() + page_between;
    }
    return at;
}

Result<Buffer> SimPort::allocate(std::uint64_t bytes, std::uint64_t sram) {
    if (sram != 0)
        return fail(Cause::unsupported, "SRAM of simulated cores without a kernel", "rk3588:sim");
    REEF_CHECK(check_size(bytes, node_));
    const std::uint64_t size = whole_pages(bytes), at = free_address(size);
    if (at + size > std::uint64_t{1} << 32)
        return fail(Cause::device_failed,
                    fmt::format("no {} bytes of the NPU's 32 bits of address are free", size),
                    node_, "a model with smaller tensors, or a product of fewer rows, needs less");
    const auto behind =
        std::ranges::find_if(objects_, [&](const Object& o) { return o.address > at; });
    Object& object =
        *objects_.insert(behind, {static_cast<std::uint32_t>(at), std::vector<std::byte>(size)});
    REEF_CHECK(memory_.add(object.address, object.bytes));
    return Buffer{.bytes = object.bytes, .address = object.address, .handle = 0, .object = 0};
}

Status SimPort::submit(const Submission& submission) {
    starts_.clear();
    for (const auto& tasks : submission.cores)
        starts_.push_back({tasks.front().address, tasks.front().words, tasks.size()});
    auto done = cores_.run(starts_);
    if (done) return {};
    cores_.reset();
    ++resets_;
    return std::unexpected(std::move(done.error()));
}

}  // namespace

std::unique_ptr<Port> make_sim_port(const sim::Switches& switches) {
    return std::make_unique<SimPort>(switches);
}

}  // namespace reef::rk3588::drm
