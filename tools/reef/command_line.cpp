#include "command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <csignal>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "inputs/standard_input.h"
#include "outputs/console.h"
#include "reef/base/log.h"
#include "reef/runtime/options.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct Verb {
    std::string_view name;
    std::string_view summary;  ///< empty: add() describes a verb of one chip's files
    Action (*add)(CLI::App& app);
};

constexpr std::array verbs = {
    Verb{"inspect", "Show what a model is made of and what it costs", add_inspect},
    Verb{"compile", "Compile a plain model for a chip", add_compile},
    Verb{"run", "Run a model on inputs and show what comes out", add_run},
    Verb{"compare", "Compare tensors: two files, two folders, one model on two devices",
         add_compare},
    Verb{"bench", "Measure a model, operator by operator", add_bench},
    Verb{"demo", "Two networks made from formulas watch an object approach", add_demo},
    Verb{"check", "Check a file made for a chip, or a plain model against a chip", add_check},
    Verb{"cut", {}, add_cut},
    Verb{"bisect", {}, add_bisect},
    Verb{"disasm", "Show the chip programs of a compiled model as text", add_disasm},
    Verb{"debug", "Step through a chip's program, or look into hardware", add_debug},
    Verb{"asm", "Make a chip's program from text", add_asm},
    Verb{"diff", "Show what differs between two chip programs or files", add_diff},
    Verb{"extract", "Write the parts of a file to files of their own", add_extract},
    Verb{"weights", "Read, replace and verify the weights of a compiled model", add_weights},
    Verb{"retarget", "Re-emit a compiled program for other weights and scales", add_retarget},
    Verb{"ops", "List the operators that the devices run", add_ops},
    Verb{"list", "List the devices", add_list},
    Verb{"doctor", "Check why a chip does not work on this machine", add_doctor},
    Verb{"record", "Record what a compiled model and its device say to each other", add_record},
    Verb{"replay", "Run, show or compare recordings", add_replay},
};

/// CLI11's message without the line break and the repeated program name it may hold.
std::string one_line(std::string text) {
    if (const auto end = text.find('\n'); end != std::string::npos) text.resize(end);
    while (text.ends_with('.') || text.ends_with(' ')) text.pop_back();
    return text;
}

int report(std::string_view verb, const Error& error) {
    print_diagnostic(verb, in_flags(error.message()));
    return static_cast<int>(exit_for(error.cause));
}

/// Warnings and errors of the library; its chatter is for programs that ask for it.
void send_library_log_to_stderr() {
    set_log_sink([](LogLevel level, std::string_view message) {
        if (level >= LogLevel::warning) print_diagnostic({}, message);
    });
}

struct CommandLine {
    CLI::App app{"Reef: open software for closed edge NPUs"};
    std::array<CLI::App*, verbs.size()> subcommands{};
    std::array<Action, verbs.size()> actions;

    /// When the first argument names a verb, only that one gets its options: to make those of all
    /// takes longer than many a verb's work.
    explicit CommandLine(std::string_view first) {
        const bool is_verb = std::ranges::find(verbs, first, &Verb::name) != verbs.end();
        app.name("reef");
        app.set_version_flag("--version", "reef " REEF_VERSION);
        app.require_subcommand(1);
        app.footer(
            "reef help VERB explains a verb.\n"
            "Exit codes: 0 done, 1 failed or different, 2 wrong command line, "
            "3 device missing or denied.");
        for (std::size_t i = 0; i < verbs.size(); ++i) {
            subcommands[i] =
                app.add_subcommand(std::string(verbs[i].name), std::string(verbs[i].summary));
            if (!is_verb || verbs[i].name == first) actions[i] = verbs[i].add(*subcommands[i]);
        }
    }

    [[nodiscard]] std::string_view verb_name() const {
        for (std::size_t i = 0; i < verbs.size(); ++i) {
            if (subcommands[i]->parsed()) return verbs[i].name;
        }
        return {};
    }
};

/// "; did you mean X?" when one of the names is few letters away.
std::string meant(std::string_view name, const std::vector<std::string>& names) {
    const auto near = runtime::nearest(name, names);
    return near ? fmt::format("; did you mean {}?", *near) : std::string();
}

/// What is wrong when no verb was recognised.
std::string verb_problem(int argc, const char* const* argv, const CLI::ParseError& error) {
    std::vector<std::string> names;
    for (const Verb& verb : verbs) names.emplace_back(verb.name);
    const std::string known = fmt::format("{}", fmt::join(names, ", "));
    names.emplace_back("help");
    if (argc < 2) return fmt::format("no verb; one of {}", known);
    if (argv[1][0] != '-')
        return fmt::format("'{}' is not a verb; one of {}{}", argv[1], known,
                           meant(argv[1], names));
    if (dynamic_cast<const CLI::RequiredError*>(&error) == nullptr) return one_line(error.what());
    return fmt::format("'{}' is not an option before the verb", argv[1]);
}

/// The verb, or the part of it that was named: of weights, get.
const CLI::App& innermost(const CLI::App& verb) {
    const auto parts = verb.get_subcommands();
    return parts.empty() ? verb : *parts.front();
}

/// What is wrong with a verb of parts when none of them was recognised.
std::string part_problem(const CLI::App& verb, int argc, const char* const* argv) {
    std::vector<std::string> names;
    for (const CLI::App* part : verb.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(part->get_name());
    const std::string known = fmt::format("{}", fmt::join(names, ", "));
    if (argc < 3 || argv[2][0] == '-') return fmt::format("needs one of {}", known);
    return fmt::format("'{}' is none of {}{}", argv[2], known, meant(argv[2], names));
}

/// The option of the verb that was meant by one that it does not have.
std::string option_meant(const CLI::App& verb, int argc, const char* const* argv) {
    std::vector<std::string> names;
    for (const CLI::Option* option : innermost(verb).get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (int i = 2; i < argc; ++i) {
        const std::string_view given(argv[i]);
        const std::string name(given.substr(0, given.find('=')));
        if (!name.starts_with("--") || std::ranges::find(names, name) != names.end()) continue;
        if (verb.get_name() == "bench")
            if (const auto instead = instead_of_benchmark_model(name); !instead.empty())
                return fmt::format("; {}: {}", name, instead);
        return meant(name, names);
    }
    return {};
}

/// An option that has several names is told under the one that was typed.
std::string in_typed_names(std::string problem, const CLI::App& verb, int argc,
                           const char* const* argv) {
    const std::vector<std::string_view> words(argv + std::min(argc, 2), argv + argc);
    const auto typed = [&](std::string_view name) {
        return std::ranges::any_of(
            words, [&](std::string_view word) { return word.substr(0, word.find('=')) == name; });
    };
    for (const CLI::Option* option : innermost(verb).get_options()) {
        const std::string told = option->get_name();
        if (!problem.starts_with(told + ":") || typed(told)) continue;
        for (const std::string& name : option->get_lnames())
            if (typed("--" + name)) return problem.replace(0, told.size(), "--" + name);
    }
    return problem;
}

/// What is wrong behind a verb. A word that was misspelt may be all that is missing.
std::string problem_of(const CLI::App& verb, int argc, const char* const* argv,
                       const CLI::ParseError& error) {
    const bool lacks = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
    if (lacks && verb.get_require_subcommand_min() > verb.get_subcommands().size())
        return part_problem(verb, argc, argv);
    std::string problem = in_typed_names(one_line(error.what()), verb, argc, argv);
    if (lacks || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
        problem += option_meant(verb, argc, argv);
    return problem;
}

int usage_error(std::string_view verb, const std::string& problem) {
    print_diagnostic(
        verb, fmt::format("{} (see reef {}{}--help)", problem, verb, verb.empty() ? "" : " "));
    return static_cast<int>(Exit::usage);
}

int usage_error(const CommandLine& line, int argc, const char* const* argv,
                const CLI::ParseError& error) {
    // A verb behind a word that is none is that word's.
    const bool verb_first = argc >= 2 && (argv[1][0] == '-' || line.verb_name() == argv[1]);
    const std::string_view verb = verb_first ? line.verb_name() : std::string_view{};
    return usage_error(verb, verb.empty() ? verb_problem(argc, argv, error)
                                          : problem_of(*line.app.get_subcommand(std::string(verb)),
                                                       argc, argv, error));
}

/// Whether the word behind a verb of parts is none of them.
bool asks_for_no_part(const CommandLine& line, int argc, const char* const* argv) {
    if (argc < 3 || argv[2][0] == '-' || line.verb_name().empty()) return false;
    const CLI::App& verb = *line.app.get_subcommand(std::string(line.verb_name()));
    return verb.get_require_subcommand_min() > 0 && verb.get_subcommands().empty();
}

int finish(Console& console, Exit exit = Exit::ok, std::string_view verb = {}) {
    if (auto flushed = console.flush(); !flushed) return report(verb, flushed.error());
    return static_cast<int>(exit);
}

/// Options whose "-" is standard output.
constexpr std::array output_flags = {
    std::string_view("--output"),     std::string_view("--out-weights"),
    std::string_view("--trace"),      std::string_view("--report"),
    std::string_view("--probe"),      std::string_view("--dump-all"),
    std::string_view("--dump-layers")};

Status check_standard_input(const CLI::App& verb) {
    std::vector<std::string> read;
    for (const CLI::Option* option : innermost(verb).get_options()) {
        if (std::ranges::find(output_flags, option->get_name()) != output_flags.end()) continue;
        std::ranges::copy(option->results(), std::back_inserter(read));
    }
    return check_read_once(read);
}

int run_verb(std::string_view name, const CLI::App& verb, const Action& action) {
    if (auto once = check_standard_input(verb); !once) return report(name, once.error());
    Console console;
    const Result<Exit> result = action(console);
    if (!result) return report(name, result.error());
    return finish(console, *result, name);
}

/// `reef help VERB` is `reef VERB --help`, `reef help` is `reef --help`; a verb may have parts.
std::vector<const char*> with_help_as_option(int argc, const char* const* argv) {
    std::vector<const char*> words(argv, argv + argc);
    if (argc < 2 || std::string_view(argv[1]) != "help") return words;
    words.erase(words.begin() + 1);
    words.resize(std::min<std::size_t>(words.size(), 3));
    // A word that is no verb is told so.
    if (words.size() < 2 || std::ranges::find(verbs, words[1], &Verb::name) != verbs.end())
        words.push_back("--help");
    return words;
}

int parse_and_run(int argc, const char* const* argv) {
    CommandLine line(argc < 2 ? std::string_view{} : argv[1]);
    Console console;
    try {
        line.app.parse(argc, argv);
    } catch (const CLI::CallForVersion& version) {
        console.print("{}\n", version.what());
        return finish(console);
    } catch (const CLI::CallForHelp&) {
        const std::string_view verb = line.verb_name();
        if (asks_for_no_part(line, argc, argv))
            return usage_error(
                verb, part_problem(*line.app.get_subcommand(std::string(verb)), argc, argv));
        // The help of the subcommand that was named, or of the program.
        console.write(line.app.help());
        return finish(console);
    } catch (const CLI::ParseError& error) {
        return usage_error(line, argc, argv, error);
    }
    for (std::size_t i = 0; i < verbs.size(); ++i) {
        if (line.subcommands[i]->parsed())
            return run_verb(verbs[i].name, *line.subcommands[i], line.actions[i]);
    }
    return static_cast<int>(Exit::ok);
}

}  // namespace

int run_command(int argc, const char* const* argv) {
    // A reader that goes away makes write() fail, which the Console takes quietly.
    std::signal(SIGPIPE, SIG_IGN);
    send_library_log_to_stderr();
    try {
        const auto words = with_help_as_option(argc, argv);
        return parse_and_run(static_cast<int>(words.size()), words.data());
    } catch (const std::bad_alloc&) {
        print_diagnostic({}, "out of memory");
    } catch (const std::exception& error) {
        print_diagnostic({}, fmt::format("internal error: {}", error.what()));
    }
    return static_cast<int>(Exit::failed);
}

}  // namespace reef::tool
