// Simulated sticks that several processes use: a server has them, and clients see them as a bus.
//
// A request is answered before the next one of the same client. How they travel is the caller's
// business: Exchange takes one and gives its answer.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "reef/edgetpu/usb/simulated_bus.h"

namespace reef::edgetpu::usb {

/// Values behind one another. What is taken beyond the end is 0, and the packet no longer good().
class Packet {
  public:
    Packet() = default;
    explicit Packet(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

    template <class T>
    requires std::is_trivially_copyable_v<T> Packet& put(const T& value) {
        return put_raw(std::as_bytes(std::span(&value, 1)));
    }
    Packet& put_bytes(Bytes bytes);
    Packet& put_text(std::string_view text) { return put_bytes(as_bytes(text)); }

    template <class T>
    requires std::is_trivially_copyable_v<T> T take() {
        T value{};
        const Bytes raw = take_raw(sizeof value);
        if (good_) std::memcpy(&value, raw.data(), sizeof value);
        return value;
    }
    /// Valid as long as the packet is.
    [[nodiscard]] Bytes take_bytes();
    [[nodiscard]] std::string take_text();

    [[nodiscard]] bool good() const { return good_; }
    [[nodiscard]] Bytes bytes() const { return bytes_; }

  private:
    Packet& put_raw(Bytes bytes);
    Bytes take_raw(std::size_t size);

    std::vector<std::byte> bytes_;
    std::size_t at_ = 0;
    bool good_ = true;
};

/// One request and its answer; nothing when the server is gone.
using Exchange = std::function<std::optional<Packet>(const Packet&)>;

/// The sticks with what their clients hold. Sessions may work on several threads.
class StickServer {
  public:
    /// A client's connection; when it goes, what it had open is closed.
    class Session {
      public:
        explicit Session(StickServer& server);
        ~Session();
        Session(const Session&) = delete;
        Session& operator=(const Session&) = delete;
        /// Any bytes. What makes no sense has an empty answer.
        [[nodiscard]] Packet answer(Packet request);

      private:
        struct State;
        StickServer& server_;
        std::unique_ptr<State> state_;
    };

    /// Plugs a stick in, on a bus of its own.
    void plug(const StickOptions& options, std::unique_ptr<ChipCore> core);

  private:
    struct Stick;
    [[nodiscard]] Stick* find(std::string_view port);
    std::vector<std::shared_ptr<Stick>> sticks_;
};

/// What a client sees of the server's sticks. Time is real.
class SharedBus final : public StickBus {
  public:
    /// `connect` begins a session; each device that is opened has one of its own.
    using Connect = std::function<std::optional<Exchange>()>;
    SharedBus(Connect connect, std::string port);

    /// The ports of a server, whether a stick is there or not; nothing when there is no server.
    [[nodiscard]] static std::optional<std::vector<std::string>> ports(const Connect& connect);

    [[nodiscard]] Io<std::vector<DeviceInfo>> list() override;
    [[nodiscard]] Io<std::unique_ptr<Connection>> open(const DeviceInfo& device) override;
    [[nodiscard]] TimePoint now() override { return std::chrono::steady_clock::now(); }
    /// The server's time passes by itself.
    void sleep(Milliseconds) override {}
    [[nodiscard]] Result<StickDescriptors> descriptors(std::string_view port) const override;
    [[nodiscard]] std::string standstill(std::string_view port) const override;
    [[nodiscard]] std::string refusal(std::string_view port) const override;

  private:
    [[nodiscard]] std::optional<Packet> ask(const Packet& request) const;

    Connect connect_;
    std::string port_;
    mutable std::mutex mutex_;
    mutable std::optional<Exchange> exchange_;
};

}  // namespace reef::edgetpu::usb
