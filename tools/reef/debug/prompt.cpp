#include "debug/prompt.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>

#ifdef REEF_HAVE_LIBEDIT
#include <editline/readline.h>
#endif

namespace reef::tool::debug {

#ifdef REEF_HAVE_LIBEDIT

Prompt::Prompt(std::string text) : text_(std::move(text)) {
    // Ctrl-C is the session's: it stops the program that is looked at.
    rl_catch_signals = 0;
    using_history();
}

std::optional<std::string> Prompt::line() {
    const std::unique_ptr<char, void (*)(void*)> typed(::readline(text_.c_str()), std::free);
    if (!typed) return std::nullopt;
    std::string line(typed.get());
    if (!line.empty() && line != last_) {
        add_history(line.c_str());
        last_ = line;
    }
    return line;
}

#else

Prompt::Prompt(std::string text) : text_(std::move(text)) {}

std::optional<std::string> Prompt::line() {
    std::fwrite(text_.data(), 1, text_.size(), stdout);
    std::fflush(stdout);
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
}

#endif

}  // namespace reef::tool::debug
