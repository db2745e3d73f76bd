// The command's standard output and standard error.
#pragma once

#include <fmt/color.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "reef/base/result.h"

namespace reef::tool {

/// Text with control characters and malformed UTF-8 replaced, so that a name out of a file can
/// neither break a line nor steer the terminal.
[[nodiscard]] std::string printable(std::string_view text);

/// The library names options by their identifiers, between backquotes: here they are flags.
[[nodiscard]] std::string in_flags(std::string message);

/// Collects what a verb prints and writes it in one go at the end.
class Console {
  public:
    /// Colour when standard output is a terminal, NO_COLOR is unset or empty, and TERM is not
    /// "dumb".
    Console();

    template <typename... Args>
    void print(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    }
    void write(std::string_view text) { text_ += text; }

    /// The text in that style on a colour terminal, as it is elsewhere.
    [[nodiscard]] std::string styled(fmt::text_style style, std::string_view text) const;
    [[nodiscard]] std::string heading(std::string_view text) const;
    [[nodiscard]] bool colour() const { return colour_; }
    /// Columns of the terminal; 0 when standard output is not one.
    [[nodiscard]] int width() const { return width_; }

    /// Writes what was printed. A reader that went away is not an error.
    [[nodiscard]] Status flush();

  private:
    std::string text_;
    bool colour_ = false;
    int width_ = 0;
};

/// What a progress bar writes to its terminal, and when: nothing in the first two seconds, then a
/// line that replaces the one before it, at most ten times a second.
class ProgressBar {
  public:
    using Clock = std::chrono::steady_clock;
    ProgressBar(std::string label, Clock::time_point start);

    /// `done` is 0 to 1; others count as the nearer of the two. Empty when nothing is due.
    [[nodiscard]] std::string update(double done, Clock::time_point now);
    /// What takes the bar away; empty when none was drawn.
    [[nodiscard]] std::string erase() const;

  private:
    std::string label_;
    Clock::time_point start_;
    std::optional<Clock::time_point> drawn_;
};

/// A ProgressBar on standard error when that is a terminal, nothing otherwise.
class Progress {
  public:
    explicit Progress(std::string label);
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress();

    /// `done` is 0 to 1. Cheap.
    void update(double done);

  private:
    ProgressBar bar_;
    bool terminal_ = false;
};

/// "reef VERB: MESSAGE" on standard error; lines of it that are indented stay lines.
void print_diagnostic(std::string_view verb, std::string_view message);

}  // namespace reef::tool
