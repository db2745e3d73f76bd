#include "outputs/stages.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace reef::tool {
namespace {

/// What cannot be written is not missed.
void write_to(int descriptor, const std::string& text) {
    [[maybe_unused]] const ssize_t written = ::write(descriptor, text.data(), text.size());
}

}  // namespace

Stages::Stages(std::size_t count)
    : Stages(count, ::isatty(STDERR_FILENO) != 0 ? STDERR_FILENO : -1, patience, period) {}

Stages::Stages(std::size_t count, int descriptor, std::chrono::milliseconds first,
               std::chrono::milliseconds again)
    : count_(count), descriptor_(descriptor), first_(first), again_(again) {
    if (descriptor_ >= 0)
        thread_ = std::jthread([this](const std::stop_token& stop) { show(stop); });
}

Stages::~Stages() {
    if (thread_.joinable()) {
        thread_.request_stop();
        thread_.join();
    }
    erase();
}

void Stages::begin(std::string stage) {
    const std::scoped_lock lock(mutex_);
    ++number_;
    stage_ = std::move(stage);
    if (drawn_) write_to(descriptor_, line());
}

void Stages::end() {
    const std::scoped_lock lock(mutex_);
    stage_.clear();
    erase();
}

void Stages::show(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    const auto stopped = [&] { return stop.stop_requested(); };
    auto next = first_;
    while (!changed_.wait_for(lock, stop, next, stopped) && !stopped()) {
        if (stage_.empty()) continue;
        next = again_;
        write_to(descriptor_, line());
        drawn_ = true;
    }
}

std::string Stages::line() const {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start_);
    const std::string place = count_ > 1 ? fmt::format("[{}/{}] ", number_, count_) : "";
    return fmt::format("\r{}{}, {} s\x1b[K", place, stage_, seconds.count());
}

void Stages::erase() {
    if (std::exchange(drawn_, false)) write_to(descriptor_, "\r\x1b[K");
}

}  // namespace reef::tool
