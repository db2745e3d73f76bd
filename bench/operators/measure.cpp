#include "operators/measure.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "operators/sides.h"
#include "quantile.h"

namespace reef::cpu {
namespace {

using bench::median;
using Json = nlohmann::ordered_json;

struct Options {
    std::vector<std::string> parts;
    int rounds = 15;
    bool json = false, smoke = false;

    [[nodiscard]] bool names(const Case& one) const {
        return parts.empty() || std::ranges::any_of(parts, [&](const std::string& part) {
                   return one.text.contains(part);
               });
    }
};

/// Medians, in microseconds.
struct Times {
    double fast = 0, plain = 0, copy = 0;
    std::optional<double> peer{};
    std::string kernel;
    bool is_plain = false;  ///< there is no vectorised kernel
};

Result<Times> times_of(const Case& one, const Peer& peer, int rounds) {
    const model::Model model = REEF_TRY(model_of(one));
    const Tensors tensors(one);
    Runner fast = REEF_TRY(Runner::create(model, KernelSet::fast));
    Runner plain = REEF_TRY(Runner::create(model, KernelSet::reference));
    const std::size_t half = bytes_moved(one) / 2;
    const Memory from = allocate(half), to = allocate(half);
    std::memset(from.get(), 1, half);
    REEF_CHECK(fast.run(tensors));
    REEF_CHECK(plain.run(tensors));
    // Whoever ran once runs again.
    const auto again = [&](Runner& side) {
        return timed([&] { static_cast<void>(side.run(tensors)); });
    };
    Turn turn;
    if (peer.of)
        if (auto made = peer.of(model)) turn = std::move(*made);
    std::vector<double> ours, plains, copies, peers;
    for (int round = 0; round < rounds; ++round) {
        ours.push_back(again(fast));
        copies.push_back(timed([&] { std::memcpy(to.get(), from.get(), half); }));
        if (turn) peers.push_back(REEF_TRY(turn()));
        plains.push_back(again(plain));
    }
    Times times{median(ours), median(plains), median(copies), {}, fast.name(), false};
    if (turn) times.peer = median(peers);
    times.is_plain = fast.name() == plain.name();
    return times;
}

void print_head(const Peer& peer) {
    fmt::print("{:52} {:>9} {:>9} {:>9} {:>7} {:>7}", "operator, us", "fast", "plain", "copy",
               "/plain", "/copy");
    if (peer.of) fmt::print(" {:>9} {:>7}", peer.name, "/that");
    fmt::print("   on {}\n", simd_target());
}

void print(const Case& one, const Times& t, const Peer& peer) {
    fmt::print("{:52} {:9.2f} {:9.1f} {:9.2f} {:7.3f} {:7.2f}", one.text, t.fast, t.plain, t.copy,
               t.fast / t.plain, t.fast / t.copy);
    if (peer.of && t.peer) fmt::print(" {:9.2f} {:7.2f}", *t.peer, t.fast / *t.peer);
    if (peer.of && !t.peer) fmt::print(" {:>9} {:>7}", "-", "-");
    fmt::print("{}\n", t.is_plain ? "   no vectorised one" : "");
}

Json json_of(const Case& one, const Times& t) {
    return {{"operator", one.text},
            {"kernel", t.kernel},
            {"fast_us", t.fast},
            {"plain_us", t.plain},
            {"copy_us", t.copy},
            {"ratio_to_plain", t.fast / t.plain},
            {"ratio_to_copy", t.fast / t.copy},
            {"peer_us", t.peer ? Json(*t.peer) : Json()},
            {"ratio_to_peer", t.peer ? Json(t.fast / *t.peer) : Json()}};
}

int measure_all(const std::vector<Case>& cases, const Peer& peer, const Options& options) {
    Json list = Json::array();
    if (!options.json) print_head(peer);
    for (const Case& one : cases) {
        if (!options.names(one) || (options.smoke && one.is_large)) continue;
        const auto times = times_of(one, peer, options.smoke ? 1 : options.rounds);
        if (!times) {
            std::cerr << one.text << ": " << times.error().message() << "\n";
            return 1;
        }
        if (!options.json) print(one, *times, peer);
        list.push_back(json_of(one, *times));
    }
    if (list.empty()) {
        std::cerr << "no operator has such a name\n";
        return 2;
    }
    const Json document{{"schema_version", 1},
                        {"target", simd_target()},
                        {"rounds", options.smoke ? 1 : options.rounds},
                        {"operators", list}};
    if (options.json) fmt::print("{}\n", document.dump(2));
    return 0;
}

}  // namespace

int measure(int argc, char** argv, const char* description, const std::vector<Case>& cases,
            const Peer& peer) {
    Options options;
    CLI::App app(description);
    app.add_option("PART", options.parts, "of an operator's name; default: all operators");
    app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 100000));
    app.add_flag("--json", options.json);
    app.add_flag("--smoke", options.smoke, "one round, without the largest operators");
    CLI11_PARSE(app, argc, argv);
    return measure_all(cases, peer, options);
}

}  // namespace reef::cpu
