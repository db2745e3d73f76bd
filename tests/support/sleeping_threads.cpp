#include "support/sleeping_threads.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace reef::test {
namespace {

enum class State { gone, asleep, at_work };

State state_of(const std::filesystem::path& task) {
    std::ifstream file(task / "stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text.empty()) return State::gone;
    // The letter behind the name, which may hold brackets itself.
    const std::size_t name_end = text.rfind(')');
    const bool asleep = name_end != std::string::npos && text.substr(name_end, 3) == ") S";
    return asleep ? State::asleep : State::at_work;
}

bool within_seconds(auto&& holds) {
    using clock = std::chrono::steady_clock;
    const auto end = clock::now() + std::chrono::seconds(5);
    while (!holds()) {
        if (clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

const std::filesystem::path tasks = "/proc/self/task";

}  // namespace

bool falls_asleep(pid_t thread) {
    return within_seconds(
        [&] { return state_of(tasks / std::to_string(thread)) == State::asleep; });
}

bool others_fall_asleep() {
    const std::string self = std::to_string(::gettid());
    return within_seconds([&] {
        for (const auto& task : std::filesystem::directory_iterator(tasks))
            if (task.path().filename() != self && state_of(task.path()) == State::at_work)
                return false;
        return true;
    });
}

}  // namespace reef::test
