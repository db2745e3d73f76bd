#include "abi/libusb/sharing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

namespace reef::abi::libusb {
namespace {

using edgetpu::usb::Exchange;
using edgetpu::usb::Packet;
using edgetpu::usb::StickServer;

constexpr std::uint32_t most_packet_bytes = std::uint32_t{80} << 20;
/// Without a session; as long as nobody pulls the sticks out, as it were.
constexpr int linger_seconds = 10;

class Descriptor {
  public:
    explicit Descriptor(int number = -1) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    [[nodiscard]] int get() const { return number_; }
    [[nodiscard]] bool is_open() const { return number_ >= 0; }

  private:
    int number_;
};

/// Held by who looks whether there is a server, begins one or ends one.
class PathLock {
  public:
    explicit PathLock(const std::string& path)
        : file_(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR)) {
        while (file_.is_open() && ::flock(file_.get(), LOCK_EX) != 0 && errno == EINTR) {
        }
    }
    PathLock(const PathLock&) = delete;
    PathLock& operator=(const PathLock&) = delete;
    /// Also for a child that was forked meanwhile and has the same file.
    ~PathLock() {
        if (file_.is_open()) ::flock(file_.get(), LOCK_UN);
    }
    [[nodiscard]] bool held() const { return file_.is_open(); }

  private:
    Descriptor file_;
};

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
}

Descriptor new_socket() {
    return Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

Descriptor connected(const std::string& path) {
    Descriptor socket = new_socket();
    const sockaddr_un address = address_of(path);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (!socket.is_open() || ::connect(socket.get(), generic, sizeof address) != 0)
        return Descriptor();
    return socket;
}

Descriptor listening(const std::string& path) {
    Descriptor socket = new_socket();
    const sockaddr_un address = address_of(path);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    ::unlink(path.c_str());
    constexpr int backlog = 64;
    if (!socket.is_open() || ::bind(socket.get(), generic, sizeof address) != 0 ||
        ::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0 || ::listen(socket.get(), backlog) != 0) {
        return Descriptor();
    }
    return socket;
}

bool send_all(int socket, Bytes bytes) {
    while (!bytes.empty()) {
        const auto sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
    return true;
}

bool receive_all(int socket, MutableBytes bytes) {
    while (!bytes.empty()) {
        const auto came = ::recv(socket, bytes.data(), bytes.size(), 0);
        if (came < 0 && errno == EINTR) continue;
        if (came <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(came));
    }
    return true;
}

/// With its size in front.
bool send_packet(int socket, const Packet& packet) {
    const auto size = static_cast<std::uint32_t>(packet.bytes().size());
    return send_all(socket, std::as_bytes(std::span(&size, 1))) && send_all(socket, packet.bytes());
}

std::optional<Packet> receive_packet(int socket) {
    std::uint32_t size = 0;
    if (!receive_all(socket, std::as_writable_bytes(std::span(&size, 1))) ||
        size > most_packet_bytes) {
        return std::nullopt;
    }
    std::vector<std::byte> bytes(size);
    if (!receive_all(socket, bytes)) return std::nullopt;
    return Packet(std::move(bytes));
}

std::optional<Exchange> session_at(const std::string& path) {
    auto socket = std::make_shared<Descriptor>(connected(path));
    if (!socket->is_open()) return std::nullopt;
    return [socket](const Packet& request) -> std::optional<Packet> {
        if (!send_packet(socket->get(), request)) return std::nullopt;
        return receive_packet(socket->get());
    };
}

// -- The server's process -------------------------------------------------------------------------

void work(StickServer& server, const Descriptor& socket) {
    StickServer::Session session(server);
    while (auto request = receive_packet(socket.get())) {
        if (!send_packet(socket.get(), session.answer(std::move(*request)))) return;
    }
}

/// Nothing of the process that began it: not its terminal, its files or its working directory.
void leave_the_parent(int listener) {
    ::setsid();
    ::prctl(PR_SET_NAME, "reef-sticks");
    if (::chdir("/") != 0) ::_exit(1);
    const int nothing = ::open("/dev/null", O_RDWR);
    for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        ::dup2(nothing, standard);
    ::dup2(listener, STDERR_FILENO + 1);
    ::close_range(STDERR_FILENO + 2, ~0U, 0);
}

[[noreturn]] void serve(int inherited, const std::string& path, StickServer& server) {
    leave_the_parent(inherited);
    const int listener = STDERR_FILENO + 1;
    std::atomic<int> sessions = 0;
    const auto waits = [&](int seconds) {
        pollfd descriptor{listener, POLLIN, 0};
        return ::poll(&descriptor, 1, seconds * 1000) > 0;
    };
    int idle = 0;
    while (true) {
        if (waits(1)) {
            idle = 0;
            Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
            if (!socket.is_open()) continue;
            ++sessions;
            std::thread([&server, &sessions, own = std::move(socket)] {
                work(server, own);
                --sessions;
            }).detach();
            continue;
        }
        idle = sessions == 0 ? idle + 1 : 0;
        const bool removed = ::access(path.c_str(), F_OK) != 0;
        if (sessions != 0 || (idle < linger_seconds && !removed)) continue;
        const PathLock lock(path);
        if (!removed && waits(0)) continue;
        if (!removed) ::unlink(path.c_str());
        ::_exit(0);
    }
}

std::unexpected<Error> cannot(std::string_view what, const std::string& path) {
    return fail(Cause::io_failed,
                fmt::format("{}: {}", what, std::generic_category().message(errno)),
                fmt::format("REEF_USB_SHARED {}", path), "name a file in a folder of your own");
}

}  // namespace

Result<edgetpu::usb::SharedBus::Connect> join_server(const std::string& path,
                                                     edgetpu::usb::StickServer& server) {
    // The server's working directory is another one.
    if (path.front() != '/') {
        errno = EINVAL;
        return cannot("not an absolute path", path);
    }
    const PathLock lock(path);
    if (!lock.held()) return cannot("the lock beside the socket", path);
    if (!connected(path).is_open()) {
        const Descriptor listener = listening(path);
        if (!listener.is_open()) return cannot("the socket", path);
        const pid_t child = ::fork();
        if (child < 0) return cannot("a process for the sticks", path);
        if (child == 0) {
            // Nobody waits for it: its parent ends at once.
            if (::fork() != 0) ::_exit(0);
            serve(listener.get(), path, server);
        }
        while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    return [path] { return session_at(path); };
}

}  // namespace reef::abi::libusb
