// reef debug: steps through a compiled program on a simulated chip, or looks into a stick.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <memory>

#include "debug/prompt.h"
#include "debug/session.h"
#include "inputs/option_values.h"
#include "inputs/standard_input.h"
#include "outputs/array_output.h"
#include "outputs/file_output.h"
#include "reef/base/file.h"
#include "reef/runtime/registry.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct DebugOptions {
    debug::TargetOptions target;
    std::string script;
    std::string out;
    bool json = false;
};

std::atomic<chip::Debugger*> interruptible = nullptr;

void interrupt(int) {
    if (auto* debugger = interruptible.load()) debugger->interrupt();
}

/// While it lives, Ctrl-C stops the program that is looked at, not the session.
class InterruptGuard {
  public:
    explicit InterruptGuard(chip::Debugger& debugger) {
        interruptible = &debugger;
        before_ = std::signal(SIGINT, interrupt);
    }
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;
    ~InterruptGuard() {
        std::signal(SIGINT, before_);
        interruptible = nullptr;
    }

  private:
    void (*before_)(int) = nullptr;
};

// A terminal: an error ends the command, not the session. An empty line steps or goes on again.
Status run_prompt(debug::Session& session, chip::Debugger& debugger, Console& console) {
    const InterruptGuard guard(debugger);
    debug::Prompt prompt("(reef) ");
    std::string last;
    while (!session.left()) {
        REEF_CHECK(console.flush());
        const auto typed = prompt.line();
        if (!typed) {
            console.write("\n");
            return {};
        }
        const std::string line = typed->empty() ? last : *typed;
        if (debug::runs_on(line, debugger.tables())) last = line;
        if (auto done = session.execute(line); !done) {
            REEF_CHECK(console.flush());
            print_diagnostic("debug", done.error().message());
        }
    }
    return {};
}

// A program that cannot go on ends the script only after the rest of it has looked at the chip.
Result<Exit> run_script(debug::Session& session, Console& console, std::string_view text,
                        const std::string& name) {
    Exit end_of_script = Exit::ok;
    for (std::size_t number = 1; !text.empty() && !session.left(); ++number) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        auto done = session.execute(line);
        REEF_CHECK(console.flush());
        if (done) continue;
        // A command that is wrong is bad input of the verb, whose own command line was right.
        Error error = of_file(std::move(done.error()))
                          .in(fmt::format("{} line {}: {}", name, number, printable(line)));
        if (!session.program_failed()) return std::unexpected(std::move(error));
        print_diagnostic("debug", error.message());
        end_of_script = Exit::failed;
    }
    return end_of_script;
}

Status write_outputs(debug::Target& target, const std::string& folder) {
    const auto outputs = REEF_TRY(target.debugger->outputs());
    NamedArrays arrays;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        arrays.emplace_back(fmt::format("out{}", i), target.output_arrays[i]);
        arrays.back().second.data = outputs[i];
    }
    return write_arrays(folder, arrays);
}

/// Commands come from standard input when no script is named.
Status check_script_apart(const DebugOptions& options) {
    std::vector<std::string> read = options.target.inputs;
    read.push_back(options.target.file);
    read.push_back(options.script.empty() ? "-" : options.script);
    return check_read_once(read);
}

Result<Exit> debug_verb(const DebugOptions& options, Console& console) {
    REEF_CHECK(check_script_apart(options));
    REEF_CHECK(check_output_folder(options.out, "out", options.target.inputs));
    debug::Target target = REEF_TRY(debug::open_target(options.target));
    debug::Session session(target, console, options.json);
    Exit end = Exit::ok;
    const bool prompt = options.script.empty() && ::isatty(STDIN_FILENO) != 0;
    if (prompt) {
        console.print("{}, {}{}before the first instruction; help lists the commands\n",
                      options.target.file.empty() ? options.target.device : options.target.file,
                      target.program, target.program.empty() ? "" : ", ");
        REEF_CHECK(run_prompt(session, *target.debugger, console));
    } else {
        const std::string path = options.script.empty() ? "-" : options.script;
        const SharedBytes script = REEF_TRY(read_file(path));
        end = REEF_TRY(run_script(session, console, as_text(script.view()),
                                  path == "-" ? "standard input" : path));
    }
    if (!options.out.empty() && end == Exit::ok) {
        REEF_CHECK(of_file(write_outputs(target, options.out)));
    }
    return end;
}

/// Of the first chip that can be debugged; a session's `help` shows those of its own.
std::string commands_text() {
    const auto openers = runtime::Registry::of_process().parts<chip::DebuggerOpener>();
    return openers.empty() ? std::string()
                           : debug::help_text({}, openers.front()->tables()).value_or("");
}

}  // namespace

Action add_debug(CLI::App& app) {
    auto options = std::make_shared<DebugOptions>();
    options->target.device = debug::standard_device();
    app.add_option("FILE", options->target.file,
                   "Compiled model; hardware can be looked into without one");
    app.add_option("--device", options->target.device,
                   fmt::format("{}; of hardware the registers are read and written, and it runs "
                               "FILE",
                               debug::device_forms()))
        ->capture_default_str();
    app.add_option("--input", options->target.inputs,
                   "An input, as in reef run; once per graph input")
        ->type_name("X")
        ->allow_extra_args(false);
    app.add_option("--seed", options->target.seed, "Seed of random inputs, without --input")
        ->check(whole_number())
        ->capture_default_str();
    app.add_option("--operator", options->target.op,
                   "Which operator, when several hold programs, by its number in the model "
                   "(default: the first); those before it are computed on a simulated chip and the "
                   "CPU")
        ->check(whole_number())
        ->type_name("N");
    app.add_option("--firmware", options->target.firmware, "Firmware for a stick that has none")
        ->type_name("FILE");
    app.add_option("--script", options->script,
                   "Commands, one a line; - reads standard input, as does a standard input that "
                   "is no terminal")
        ->type_name("FILE");
    app.add_option("-o,--output,--out", options->out,
                   "At the end, write out0.npy, out1.npy, ... into this folder")
        ->type_name("DIR");
    app.add_flag("--json", options->json, "Answer each command with a JSON object on a line");
    app.footer("Commands:\n" + commands_text() +
               "Examples:\n"
               "  reef debug net.tflite --input cat.bmp\n"
               "  reef debug net.tflite --script watch.txt --json\n"
               "  reef debug net.tflite --device DEVICE --input cat.bmp\n"
               "  echo registers | reef debug --device DEVICE\n"
               "A script ends at the first command that fails, with exit code 1. When that is a\n"
               "simulated program that cannot go on, the commands behind it still look at it.");
    return [options](Console& console) { return debug_verb(*options, console); };
}

}  // namespace reef::tool
