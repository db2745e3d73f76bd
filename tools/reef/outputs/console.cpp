#include "outputs/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace reef::tool {
namespace {

bool set(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && *value != '\0';
}

/// Bytes of the well-formed UTF-8 sequence at the start of `text`; 0 when it is malformed.
std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    const std::size_t length = first < 0x80              ? 1
                               : (first & 0xE0u) == 0xC0 ? 2
                               : (first & 0xF0u) == 0xE0 ? 3
                               : (first & 0xF8u) == 0xF0 ? 4
                                                         : 0;
    if (length == 0 || length > text.size() || first == 0xC0 || first == 0xC1) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0u) != 0x80) return 0;
    }
    return length;
}

/// Terminals act on C0 controls, DEL, and C1 controls (U+0080 to U+009F, C2 80 to C2 9F).
bool is_control(std::string_view sequence) {
    const auto first = static_cast<unsigned char>(sequence[0]);
    if (sequence.size() == 1) return first < 0x20 || first == 0x7F;
    return first == 0xC2 && static_cast<unsigned char>(sequence[1]) < 0xA0;
}

/// Errors: io_failed with the system's words. EPIPE counts as written.
Status write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = ::write(descriptor, text.data(), text.size());
        if (count < 0) {
            if (errno == EINTR) continue;
            if (errno == EPIPE) return {};
            return fail(Cause::io_failed, std::strerror(errno), "standard output");
        }
        text.remove_prefix(static_cast<std::size_t>(count));
    }
    return {};
}

}  // namespace

std::string printable(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        if (length == 0) {
            out += "\uFFFD";
        } else if (is_control(text.substr(0, length))) {
            out += '?';
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return out;
}

std::string in_flags(std::string message) {
    constexpr std::pair<std::string_view, std::string_view> flags[] = {
        {"`against`", "--against"},
        {"`arithmetic`", "--arithmetic"},
        {"`assume`", "--assume"},
        {"`check`", "reef check"},
        {"`device`", "--device"},
        {"`known_forms_only`", "--conservative"},
        {"`require_npu`", "--require-npu"},
        {"`schedule`", "--schedule"},
        {"`sram`", "--sram"},
        {"`stream_parameters`", "--stream-parameters"},
        {"`target`", "--target"}};
    for (const auto& [option, flag] : flags)
        for (auto at = message.find(option); at != std::string::npos; at = message.find(option, at))
            message.replace(at, option.size(), flag);
    return message;
}

Console::Console() {
    if (::isatty(STDOUT_FILENO) == 0) return;
    const char* term = std::getenv("TERM");
    colour_ = !set("NO_COLOR") && term != nullptr && std::string_view(term) != "dumb";
    winsize size{};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    width_ = known ? size.ws_col : 80;
}

std::string Console::styled(fmt::text_style style, std::string_view text) const {
    return colour_ ? fmt::format(style, "{}", text) : std::string(text);
}

std::string Console::heading(std::string_view text) const {
    return styled(fmt::emphasis::bold, text);
}

Status Console::flush() {
    const std::string text = std::exchange(text_, {});
    return write_all(STDOUT_FILENO, text);
}

ProgressBar::ProgressBar(std::string label, Clock::time_point start)
    : label_(std::move(label)), start_(start) {}

std::string ProgressBar::update(double done, Clock::time_point now) {
    using namespace std::chrono_literals;
    if (now - start_ < 2s || (drawn_ && now - *drawn_ < 100ms)) return {};
    drawn_ = now;
    constexpr int cells = 30;
    done = std::clamp(done, 0.0, 1.0);
    const int filled = static_cast<int>(done * cells);
    return fmt::format("\r{} [{:#<{}}{:.<{}}] {:3.0f} %", label_, "", filled, "", cells - filled,
                       done * 100);
}

std::string ProgressBar::erase() const {
    return drawn_ ? "\r\x1b[K" : "";
}

Progress::Progress(std::string label)
    : bar_(std::move(label), ProgressBar::Clock::now()), terminal_(::isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
    (void)write_all(STDERR_FILENO, bar_.erase());
}

void Progress::update(double done) {
    if (terminal_) (void)write_all(STDERR_FILENO, bar_.update(done, ProgressBar::Clock::now()));
}

void print_diagnostic(std::string_view verb, std::string_view message) {
    std::string text = verb.empty() ? "reef: " : fmt::format("reef {}: ", verb);
    // Indented lines are lists of Reef's own; no name in a message can look like a diagnostic.
    constexpr std::string_view line_begin = "\n  ";
    for (std::size_t begin = 0; begin <= message.size();) {
        const std::size_t end = std::min(message.find(line_begin, begin), message.size());
        text += fmt::format("{}{}\n", begin == 0 ? "" : "    ",
                            printable(message.substr(begin, end - begin)));
        begin = end + line_begin.size();
    }
    (void)write_all(STDERR_FILENO, text);
}

}  // namespace reef::tool
