// One session of reef debug: carries commands out and prints their answers.
#pragma once

#include "debug/command.h"
#include "debug/target.h"
#include "outputs/console.h"

namespace reef::tool::debug {

class Session {
  public:
    /// Refers to both. With `json`, every answer is one JSON object on a line of its own.
    Session(Target& target, Console& console, bool json)
        : target_(target), console_(console), json_(json) {}

    /// Parses and carries out a line. Errors: those of parse() and of the debugger; what was
    /// printed before stays printed.
    [[nodiscard]] Status execute(std::string_view line);
    [[nodiscard]] bool left() const { return left_; }
    /// The program stopped with an error: the chip can be looked at, but not go on.
    [[nodiscard]] bool program_failed() const { return target_.debugger->failed(); }

  private:
    [[nodiscard]] Status carry_out(const Help& help);
    [[nodiscard]] Status carry_out(const Quit&);
    [[nodiscard]] Status carry_out(const RunTo& run);
    [[nodiscard]] Status carry_out(const Halt&);
    [[nodiscard]] Status carry_out(const Restart&);
    [[nodiscard]] Status carry_out(const BreakAtWord& at);
    [[nodiscard]] Status carry_out(const BreakAtWrite& at);
    [[nodiscard]] Status carry_out(const Delete& which);
    [[nodiscard]] Status carry_out(Show show);
    [[nodiscard]] Status carry_out(const ShowRegisters& show);
    [[nodiscard]] Status carry_out(const ShowOf& show);
    [[nodiscard]] Status carry_out(const Register& reg);
    [[nodiscard]] Status carry_out(const ShowMemory& show);
    [[nodiscard]] Status carry_out(const ShowTensor& show);
    [[nodiscard]] Status carry_out(const List& list);

    [[nodiscard]] Status show_outputs();
    [[nodiscard]] Status add(const chip::BreakCondition& when);
    [[nodiscard]] chip::ProgramWord resolve(const WordText& text) const;
    template <typename MakeText, typename MakeJson>
    void answer(std::string_view command, std::string_view key, MakeText text, MakeJson json);
    void done(std::string_view command, const std::string& text);
    [[nodiscard]] const chip::DebugTables& chip() const { return target_.debugger->tables(); }

    Target& target_;
    Console& console_;
    bool json_;
    bool left_ = false;
    std::optional<chip::ProgramWord> place_;  ///< of the last stop
};

}  // namespace reef::tool::debug
