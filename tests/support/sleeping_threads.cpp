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

bool sleeps(const std::filesystem::path& task) {
    std::ifstream file(task / "stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    // The letter behind the name, which may hold brackets itself. A thread that has ended has no
    // file.
    const std::size_t name_end = text.rfind(')');
    return text.empty() || (name_end != std::string::npos && text.substr(name_end, 3) == ") S");
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
    return within_seconds([&] { return sleeps(tasks / std::to_string(thread)); });
}

bool others_fall_asleep() {
    const std::string self = std::to_string(::gettid());
    return within_seconds([&] {
        for (const auto& task : std::filesystem::directory_iterator(tasks))
            if (task.path().filename() != self && !sleeps(task.path())) return false;
        return true;
    });
}

}  // namespace reef::test
