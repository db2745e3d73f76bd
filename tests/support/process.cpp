#include "support/process.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace reef::test {
namespace {

/// An unnamed file; no pipe that could fill up while nobody reads it.
class ScratchFile {
  public:
    ScratchFile() : file_(std::tmpfile()) {
        if (file_ == nullptr) throw std::runtime_error("tmpfile failed");
    }
    [[nodiscard]] int descriptor() const { return ::fileno(file_.get()); }
    void fill(const std::string& text) {
        std::fwrite(text.data(), 1, text.size(), file_.get());
        std::fflush(file_.get());
        ::lseek(descriptor(), 0, SEEK_SET);
    }
    [[nodiscard]] std::string text() const {
        std::string result(static_cast<std::size_t>(::lseek(descriptor(), 0, SEEK_END)), '\0');
        const ssize_t count = ::pread(descriptor(), result.data(), result.size(), 0);
        result.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
        return result;
    }

  private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::unique_ptr<std::FILE, Close> file_;
};

/// The writing end of a pipe whose reading end is closed.
int broken_pipe() {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe failed");
    ::close(ends[0]);
    return ends[1];
}

class Terminal {
  public:
    Terminal() {
        if (::openpty(&reader_, &writer_, nullptr, nullptr, nullptr) != 0)
            throw std::runtime_error("openpty failed");
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;
    ~Terminal() {
        (void)text();
        ::close(reader_);
    }
    [[nodiscard]] int descriptor() const { return writer_; }
    /// Behind the fork. A terminal that nobody reads takes 4096 bytes, then its program waits.
    void listen() {
        close_writer();
        listener_ = std::jthread([this] {
            char some[4096];
            // EIO, once nobody can write any more.
            for (ssize_t count; (count = ::read(reader_, some, sizeof some)) > 0;)
                text_.append(some, static_cast<std::size_t>(count));
        });
    }
    /// What was written before its program ended.
    [[nodiscard]] const std::string& text() {
        close_writer();
        if (listener_.joinable()) listener_.join();
        return text_;
    }

  private:
    void close_writer() {
        if (writer_ >= 0) ::close(std::exchange(writer_, -1));
    }
    int reader_ = -1;
    int writer_ = -1;
    std::string text_;
    std::jthread listener_;
};

int wait_for(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) throw std::runtime_error("waitpid failed");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments,
                          const ProcessOptions& options) {
    ScratchFile in, out, err;
    in.fill(options.stdin_text);
    int out_descriptor = out.descriptor();
    if (options.close_stdout_reader) out_descriptor = broken_pipe();
    if (!options.stdout_path.empty()) {
        out_descriptor = ::open(options.stdout_path.c_str(), O_WRONLY);
    }
    std::optional<Terminal> out_terminal, err_terminal;
    if (options.terminal) out_terminal.emplace();
    if (options.error_terminal) err_terminal.emplace();
    std::vector<char*> argv;
    for (const std::string& argument : arguments)
        argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);

    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("fork failed");
    if (child == 0) {
        std::signal(SIGPIPE, SIG_DFL);
        ::dup2(in.descriptor(), STDIN_FILENO);
        ::dup2(out_terminal ? out_terminal->descriptor() : out_descriptor, STDOUT_FILENO);
        ::dup2(err_terminal ? err_terminal->descriptor() : err.descriptor(), STDERR_FILENO);
        for (const std::string& entry : options.environment) {
            ::putenv(const_cast<char*>(entry.c_str()));
        }
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    for (auto* terminal : {&out_terminal, &err_terminal})
        if (*terminal) (*terminal)->listen();
    ProcessResult result;
    result.exit_code = wait_for(child);
    result.out = out_terminal ? out_terminal->text() : out.text();
    if (out_descriptor != out.descriptor()) ::close(out_descriptor);
    result.err = err_terminal ? err_terminal->text() : err.text();
    if (result.exit_code == 127) throw std::runtime_error("cannot start " + arguments[0]);
    return result;
}

}  // namespace reef::test
