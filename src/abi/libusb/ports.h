// The process's USB ports with their simulated sticks, and the devices that the host sees there.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <map>
#include <thread>

#include "abi/libusb/settings.h"
#include "reef/edgetpu/usb/recording.h"

namespace reef::abi::libusb {

class Node;
class Ports;

/// Who is told of the devices at the ports: a context.
class PortListener {
  public:
    PortListener() = default;
    PortListener(const PortListener&) = delete;
    PortListener& operator=(const PortListener&) = delete;
    virtual ~PortListener() = default;
    /// Before the program asks for the first time.
    virtual void device_is_there(const std::shared_ptr<Node>& node) = 0;
    virtual void device_arrived(const std::shared_ptr<Node>& node) = 0;
    virtual void device_left(const Node& node) = 0;
};

/// Who has a device open.
class NodeUser {
  public:
    NodeUser() = default;
    NodeUser(const NodeUser&) = delete;
    NodeUser& operator=(const NodeUser&) = delete;
    virtual ~NodeUser() = default;
    virtual void device_is_gone() = 0;
    /// What the device has may have become visible to another's transfers.
    virtual void look_again() = 0;
};

/// A simulated stick with its bus, at a port of its own: what one chip computes holds up no other.
class Port {
  public:
    Port(const edgetpu::usb::StickOptions& stick, std::unique_ptr<edgetpu::usb::ChipCore> core,
         std::string record);
    /// One of a server's.
    Port(std::string name, std::shared_ptr<edgetpu::usb::StickBus> shared, std::string record);

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] edgetpu::usb::StickBus& stick() { return *stick_; }
    /// What programs open: the stick, or its recorder.
    [[nodiscard]] edgetpu::usb::Bus& bus();
    /// Moves the bus's made-up time up to the clock.
    void pass_time();
    /// Writes what was recorded so far, if the port records and something was.
    void save() const;

  private:
    friend class Ports;
    std::string name_;
    std::shared_ptr<edgetpu::usb::StickBus> stick_;
    std::shared_ptr<edgetpu::usb::RecordingBus> recorder_;
    std::string record_;
    pid_t process_;
    bool comes_back_ = false;  ///< its faults include an unplug with a time
    bool shared_ = false;      ///< other processes may change what is there
    std::chrono::steady_clock::time_point plugged_ = std::chrono::steady_clock::now();
    std::mutex refreshing_;
    std::shared_ptr<class Node> node_;  ///< under Ports' lock; null: nothing there
};

/// A device from its appearance to its disappearance, for every context and handle of the process.
class Node {
  public:
    Port& port;
    const edgetpu::usb::DeviceInfo info;
    const edgetpu::usb::StickDescriptors descriptors;
    const std::uint8_t bus;
    const std::uint8_t address;
    const std::vector<std::uint8_t> port_numbers;

    std::mutex mutex;       ///< of what follows
    int configuration = 1;  ///< 0: none
    std::map<int, const NodeUser*> claims;
    std::vector<NodeUser*> users;  ///< every one that has it open
};

class Ports {
  public:
    /// Of this process, plugged in by the first call. Errors: those of read_settings and make_core.
    [[nodiscard]] static Result<Ports*> get();

    /// Whether programs are told of changes.
    [[nodiscard]] bool hotplug() const { return hotplug_; }
    /// The devices that are there.
    [[nodiscard]] std::vector<std::shared_ptr<Node>> nodes();
    /// Looks what is at the port now, and tells every context what has changed.
    void refresh(Port& port);
    /// Writes the recordings.
    void save();

    /// From now on the context learns of changes; it is told of what is there first.
    void attach(PortListener& context);
    void detach(PortListener& context);

  private:
    Ports(std::vector<std::unique_ptr<Port>> ports, bool hotplug);
    [[nodiscard]] std::shared_ptr<Node> node_of(Port& port, const edgetpu::usb::DeviceInfo& info);
    void watch();

    const bool hotplug_;
    std::vector<std::unique_ptr<Port>> ports_;
    std::mutex mutex_;  ///< of what follows and of Port::node_
    std::vector<PortListener*> contexts_;
    std::map<unsigned, unsigned> last_address_;  ///< by bus
    std::condition_variable away_;               ///< a stick that comes back has left
    bool any_shared_ = false;
    std::thread watcher_;
};

}  // namespace reef::abi::libusb
