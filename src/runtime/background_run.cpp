#include "background_run.h"

#include <fmt/format.h>

#include <system_error>

namespace reef::runtime {

BackgroundRun::~BackgroundRun() {
    if (!thread_.joinable()) return;
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return state_ != State::asked; });
        state_ = State::ends;
    }
    changed_.notify_all();
    thread_.join();
}

void BackgroundRun::loop() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [&] { return state_ == State::asked || state_ == State::ends; });
        if (state_ == State::ends) return;
        lock.unlock();
        Status result = work_();
        lock.lock();
        result_ = std::move(result);
        state_ = State::done;
        changed_.notify_all();
    }
}

Status BackgroundRun::start(std::function<Status()> work) {
    if (!thread_.joinable()) {
        try {
            thread_ = std::thread([this] { loop(); });
        } catch (const std::system_error& error) {
            return fail(Cause::io_failed, fmt::format("no thread for the run: {}", error.what()));
        }
    }
    {
        const std::lock_guard lock(mutex_);
        work_ = std::move(work);
        state_ = State::asked;
    }
    changed_.notify_all();
    return {};
}

bool BackgroundRun::is_open() const {
    const std::lock_guard lock(mutex_);
    return state_ != State::idle;
}

bool BackgroundRun::finished() const {
    const std::lock_guard lock(mutex_);
    return state_ != State::asked;
}

std::optional<Status> BackgroundRun::wait(std::optional<std::chrono::milliseconds> most) {
    std::unique_lock lock(mutex_);
    const auto over = [&] { return state_ == State::done; };
    if (most) {
        if (!changed_.wait_for(lock, *most, over)) return std::nullopt;
    } else {
        changed_.wait(lock, over);
    }
    state_ = State::idle;
    return std::move(result_);
}

}  // namespace reef::runtime
