// What a user waits for at the first `reef inspect` of a 4 MB model: the command, its libraries and
// the model come from the disk. Next to it, in the same rounds: the same from the page cache, and
// the time to read the same files, which is the disk's part.
//
// A file's pages are dropped with posix_fadvise, which leaves those that a running process maps: of
// the C and C++ libraries a machine that is up always has some.

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "quantile.h"

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

class File {
  public:
    explicit File(const std::string& path)
        : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
        if (descriptor_ >= 0) close(descriptor_);
    }
    [[nodiscard]] int descriptor() const { return descriptor_; }

  private:
    int descriptor_;
};

/// Runs a program to its end, its stdout into `output`; false unless it exits with 0.
bool run(std::vector<std::string> arguments, const std::string& output) {
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child = 0;
    const int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    return failed == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

/// The shared libraries of a program, as the dynamic linker finds them.
std::vector<std::string> libraries_of(const std::string& program) {
    const auto listing = std::filesystem::temp_directory_path() / fmt::format("reef.{}", getpid());
    std::vector<std::string> libraries;
    if (run({"ldd", program}, listing.string())) {
        std::ifstream lines(listing);
        for (std::string word; lines >> word;) {
            if (word.starts_with('/')) libraries.push_back(std::filesystem::canonical(word));
        }
    }
    std::filesystem::remove(listing);
    return libraries;
}

void drop(const std::vector<std::string>& files) {
    for (const std::string& path : files) {
        const File file(path);
        fdatasync(file.descriptor());
        posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
    }
}

void read_all(const std::vector<std::string>& files, std::vector<char>& block) {
    for (const std::string& path : files) {
        const File file(path);
        while (read(file.descriptor(), block.data(), block.size()) > 0) {
        }
    }
}

struct Series {
    const char* name;
    std::vector<double> times_ms;

    [[nodiscard]] double quantile(double q) const { return reef::bench::quantile(times_ms, q); }
    template <typename Work>
    void add(Work work) {
        const auto begin = Clock::now();
        work();
        times_ms.push_back(Milliseconds(Clock::now() - begin).count());
    }
};

std::string model_path() {
    if (const char* named = std::getenv("REEF_MODEL")) return named;
    const char* shared = std::getenv("REEF_SHARED");
    return std::filesystem::path(shared != nullptr ? shared : "../shared") /
           "data/models/tf2_mobilenet_v2_1.0_224_ptq.tflite";
}

}  // namespace

int main() {
    const std::string command = REEF_COMMAND;
    const std::string model = model_path();
    std::vector<std::string> files = libraries_of(command);
    files.push_back(command);
    files.push_back(model);
    const std::vector<std::string> inspect = {command, "inspect", model};
    if (!run(inspect, "/dev/null")) {
        fmt::print(stderr, "cannot inspect {}: set REEF_MODEL or REEF_SHARED\n", model);
        return 1;
    }
    constexpr int rounds = 31;
    std::vector<char> block(std::size_t{8} << 20);
    std::array<Series, 3> series{{{"inspect, from the disk", {}},
                                  {"reading the same files", {}},
                                  {"inspect, from the page cache", {}}}};
    for (int i = 0; i < rounds; ++i) {
        drop(files);
        series[0].add([&] { run(inspect, "/dev/null"); });
        drop(files);
        series[1].add([&] { read_all(files, block); });
        series[2].add([&] { run(inspect, "/dev/null"); });
    }
    std::uintmax_t bytes = 0;
    for (const std::string& file : files) bytes += std::filesystem::file_size(file);
    fmt::print("{} rounds; the model, the command and {} libraries: {:.1f} MB\n", rounds,
               files.size() - 2, static_cast<double>(bytes) / 1e6);
    for (Series& s : series)
        fmt::print("{:<30} median {:5.1f} ms   10 % below {:5.1f}   90 % below {:5.1f}\n", s.name,
                   s.quantile(0.5), s.quantile(0.1), s.quantile(0.9));
    constexpr double bound_ms = 20;
    fmt::print("from the disk {:.2f} times reading alone; bound {} ms: {}\n",
               series[0].quantile(0.5) / series[1].quantile(0.5), bound_ms,
               series[0].quantile(0.5) <= bound_ms ? "kept" : "NOT KEPT");
    return 0;
}
