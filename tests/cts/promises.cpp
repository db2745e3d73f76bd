#include "cts/promises.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "reef/model/builder.h"

namespace reef::cts {
namespace {

using runtime::Session;
using runtime::SessionOptions;
using AllBytes = std::vector<std::byte>;  // of all inputs, or of all outputs
using namespace std::chrono_literals;

std::unexpected<Error> broken(std::string what) {
    return fail(Cause::bad_input, std::move(what));
}
Status expect(bool holds, std::string_view what) {
    if (!holds) return broken(std::string(what));
    return {};
}

SessionOptions on(const Subject& subject) {
    SessionOptions options;
    options.devices = {subject.device()};
    return options;
}
Result<Session> opened(const Subject& subject, const SessionOptions& options) {
    return Session::open(REEF_TRY(subject.model()), options);
}
Result<Session> opened(const Subject& subject) {
    return opened(subject, on(subject));
}

void write_inputs(Session& session, unsigned seed) {
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < session.input_count(); ++i)
        for (auto& byte : session.input(i)) byte = static_cast<std::byte>(random());
}
AllBytes inputs_of(Session& session) {
    AllBytes all;
    for (std::size_t i = 0; i < session.input_count(); ++i)
        all.insert(all.end(), session.input(i).begin(), session.input(i).end());
    return all;
}
AllBytes outputs_of(const Session& session) {
    AllBytes all;
    for (std::size_t i = 0; i < session.output_count(); ++i)
        all.insert(all.end(), session.output(i).begin(), session.output(i).end());
    return all;
}

/// The input that every promise uses that can do with one: a recorded device knows no other.
constexpr unsigned usual_seed = 1;

/// The outputs of a session of its own.
Result<AllBytes> reference(const Subject& subject, unsigned seed = usual_seed) {
    auto session = REEF_TRY(opened(subject));
    write_inputs(session, seed);
    REEF_CHECK(session.run());
    return outputs_of(session);
}

Status opens(const Subject& subject) {
    const auto session = REEF_TRY(opened(subject));
    REEF_CHECK(expect(session.input_count() > 0, "it has no inputs"));
    return expect(session.output_count() > 0, "it has no outputs");
}

/// An operator that no driver and no kernel knows.
Status refuses_strangers(const Subject& subject) {
    model::Builder builder("stranger");
    const auto in = builder.input("in", ElementType::uint8, {1, 4});
    const auto out = builder.tensor("out", ElementType::uint8, {1, 4});
    builder.add_custom("nobody's operator", {in}, {out}, {});
    builder.output(out);
    const auto session = Session::open(REEF_TRY(builder.finish()), on(subject));
    REEF_CHECK(expect(!session, "it opens a model with an operator that nobody knows"));
    REEF_CHECK(expect(session.error().cause == Cause::unsupported, "another cause"));
    return expect(session.error().message().contains("nobody's operator"),
                  "the operator is not named: " + session.error().message());
}

Status refuses_unknown_options(const Subject& subject) {
    SessionOptions options = on(subject);
    options.devices[0].options.push_back({"no-such-option", true});
    const auto session = opened(subject, options);
    REEF_CHECK(expect(!session, "it takes an option that it does not have"));
    REEF_CHECK(expect(session.error().cause == Cause::bad_argument, "another cause"));
    return expect(session.error().message().contains("no-such-option"), "it is not named");
}

Status refuses_ill_typed_options(const Subject& subject) {
    const auto wrong = subject.wrong_option();
    if (!wrong) return broken("it has no options");
    SessionOptions options = on(subject);
    options.devices[0].options.push_back(*wrong);
    const auto session = opened(subject, options);
    REEF_CHECK(expect(!session, "it takes a value of another type"));
    REEF_CHECK(expect(session.error().cause == Cause::bad_argument, "another cause"));
    return expect(session.error().message().contains(wrong->name), "it is not named");
}

Status refuses_wrong_sizes(const Subject& subject) {
    auto model = REEF_TRY(subject.model());
    auto& graph = model.subgraphs[0];
    auto& shape = graph.tensors[static_cast<std::size_t>(graph.outputs[0])].shape;
    shape.back() += 1;
    const auto session = Session::open(model, on(subject));
    REEF_CHECK(expect(!session, "it opens a model whose output has another size than is computed"));
    return expect(session.error().cause != Cause::device_failed, "it is noticed in a run alone");
}

Status runs_twice_alike(const Subject& subject) {
    auto session = REEF_TRY(opened(subject));
    write_inputs(session, usual_seed);
    REEF_CHECK(session.run());
    const AllBytes first = outputs_of(session);
    write_inputs(session, usual_seed);
    REEF_CHECK(session.run());
    return expect(outputs_of(session) == first, "the second run gives other bytes");
}

Status keeps_inputs(const Subject& subject) {
    auto session = REEF_TRY(opened(subject));
    write_inputs(session, usual_seed);
    const AllBytes inputs = inputs_of(session);
    REEF_CHECK(session.run());
    const AllBytes first = outputs_of(session);
    REEF_CHECK(expect(inputs_of(session) == inputs, "a run changes the inputs"));
    REEF_CHECK(session.run());
    return expect(outputs_of(session) == first,
                  "a run without writing the inputs again gives other bytes");
}

Status keeps_outputs(const Subject& subject) {
    auto session = REEF_TRY(opened(subject));
    write_inputs(session, usual_seed);
    REEF_CHECK(session.run());
    const AllBytes outputs = outputs_of(session);
    write_inputs(session, 2);
    return expect(outputs_of(session) == outputs, "writing an input changes the outputs");
}

Status computes(const Subject& subject) {
    auto session = REEF_TRY(opened(subject));
    write_inputs(session, usual_seed);
    REEF_CHECK(session.run());
    const AllBytes first = outputs_of(session);
    write_inputs(session, 2);
    REEF_CHECK(session.run());
    return expect(outputs_of(session) != first, "other inputs give the same outputs");
}

Status resets_state(const Subject& subject) {
    auto model = subject.stateful_model();
    if (!model) return broken("it has no model with state");
    auto session = REEF_TRY(Session::open(REEF_TRY(std::move(*model)), on(subject)));
    write_inputs(session, usual_seed);
    REEF_CHECK(session.run());
    const AllBytes first = outputs_of(session);
    REEF_CHECK(session.run());
    REEF_CHECK(
        expect(outputs_of(session) != first, "the second run does not go on from the state"));
    session.reset_state();
    REEF_CHECK(session.run());
    return expect(outputs_of(session) == first, "a run after reset_state() gives other bytes");
}

Status says_where_and_why(const Subject& subject) {
    const auto session = REEF_TRY(opened(subject));
    const auto& placements = session.placements();
    REEF_CHECK(expect(placements.size() == session.graph().operators.size(),
                      "not every operator has a place"));
    const auto uri = REEF_TRY(runtime::DeviceUri::parse(subject.device().uri)).device();
    for (const auto& each : placements) {
        REEF_CHECK(expect(!each.reason.empty() && !each.kernel.empty() && !each.name.empty(),
                          "a placement without name, kernel or reason"));
        REEF_CHECK(expect(each.device == uri || each.device == "cpu",
                          "an operator on a device that nobody asked for"));
    }
    return expect(std::ranges::any_of(placements, [&](const auto& p) { return p.device == uri; }),
                  "nothing runs on the device");
}

Status can_be_required(const Subject& subject) {
    SessionOptions options = on(subject);
    options.require_npu = true;
    auto session = REEF_TRY(opened(subject, options));
    return expect(
        std::ranges::none_of(session.placements(), [](const auto& p) { return p.device == "cpu"; }),
        "an operator runs on the CPU all the same");
}

Status takes_threads(const Subject& subject) {
    const AllBytes wanted = REEF_TRY(reference(subject));
    SessionOptions options = on(subject);
    options.threads = 3;
    auto session = REEF_TRY(opened(subject, options));
    write_inputs(session, usual_seed);
    Status status;
    std::thread([&] { status = session.run(); }).join();
    REEF_CHECK(std::move(status));
    REEF_CHECK(expect(outputs_of(session) == wanted, "threads change the outputs"));
    options.threads = 0;
    const auto none = opened(subject, options);
    return expect(!none && none.error().cause == Cause::bad_argument, "0 threads are taken");
}

Status starts_and_waits(const Subject& subject) {
    const AllBytes wanted = REEF_TRY(reference(subject));
    auto session = REEF_TRY(opened(subject));
    REEF_CHECK(expect(!session.wait(), "what was not started can be waited for"));
    write_inputs(session, usual_seed);
    REEF_CHECK(session.start());
    REEF_CHECK(expect(!session.run(), "two runs at once"));
    REEF_CHECK(expect(!session.start(), "two starts at once"));
    while (true) {
        const auto done = session.wait_for(1ms);
        if (!done) continue;
        REEF_CHECK(Status(*done));
        break;
    }
    REEF_CHECK(expect(!session.wait(), "a run can be waited for twice"));
    REEF_CHECK(expect(outputs_of(session) == wanted, "a started run gives other bytes"));
    REEF_CHECK(session.start());
    REEF_CHECK(session.wait());
    return expect(outputs_of(session) == wanted, "the second started run gives other bytes");
}

Status counts_during_runs(const Subject& subject) {
    auto session = REEF_TRY(opened(subject));
    write_inputs(session, usual_seed);
    REEF_CHECK(session.start());
    std::uint64_t asked = 0;
    std::chrono::steady_clock::duration longest{};
    std::optional<runtime::DeviceCounters> counted;
    do {
        const auto begin = std::chrono::steady_clock::now();
        counted = session.counters();
        longest = std::max(longest, std::chrono::steady_clock::now() - begin);
        ++asked;
    } while (!session.finished());
    REEF_CHECK(session.wait());
    counted = session.counters();
    if (!counted) return broken("it does not count");
    REEF_CHECK(expect(counted->runs == 1, "one run is not counted as one"));
    return expect(longest < 1s,
                  fmt::format("of {} questions one waited for {} ms", asked, longest / 1ms));
}

Status can_be_cancelled(const Subject& subject) {
    constexpr int tries = 200;
    for (int i = 0; i < tries; ++i) {
        auto session = REEF_TRY(opened(subject));
        write_inputs(session, usual_seed);
        REEF_CHECK(session.start());
        session.cancel();
        const auto done = session.wait_for(10s);
        if (!done) return broken("a cancelled run goes on for more than 10 s");
        if (*done) continue;  // It was faster.
        REEF_CHECK(expect(done->error().cause == Cause::cancelled,
                          "another cause: " + done->error().message()));
        return {};
    }
    return broken(fmt::format("none of {} runs ends before it is complete", tries));
}

Status has_deadlines(const Subject& subject) {
    const AllBytes wanted = REEF_TRY(reference(subject));
    SessionOptions options = on(subject);
    options.deadline = 0ms;
    auto session = REEF_TRY(opened(subject, options));
    write_inputs(session, usual_seed);
    const auto late = session.run();
    REEF_CHECK(expect(!late && late.error().cause == Cause::timed_out,
                      "a run without any time does not end as timed out"));
    session.set_deadline(std::nullopt);
    REEF_CHECK(session.run());
    REEF_CHECK(expect(outputs_of(session) == wanted, "the run after it gives other bytes"));
    session.set_deadline(1h);
    REEF_CHECK(session.run());
    return expect(outputs_of(session) == wanted, "a run with a long deadline gives other bytes");
}

Status serves_two_sessions(const Subject& subject) {
    const AllBytes wanted = REEF_TRY(reference(subject));
    SessionOptions options = on(subject);
    options.pool = std::make_shared<runtime::DevicePool>();
    auto first = REEF_TRY(opened(subject, options)), second = REEF_TRY(opened(subject, options));
    REEF_CHECK(
        expect(std::ranges::equal(first.devices(), second.devices()) && !first.devices().empty(),
               "they do not share a device"));
    Status statuses[2];
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i)
        threads.emplace_back([&, i] {
            Session& session = i == 0 ? first : second;
            for (int run = 0; run < 3 && statuses[i]; ++run) {
                write_inputs(session, usual_seed);
                statuses[i] = session.run();
                if (statuses[i] && outputs_of(session) != wanted)
                    statuses[i] = broken("two sessions change each other's outputs");
            }
        });
    for (auto& thread : threads) thread.join();
    REEF_CHECK(std::move(statuses[0]));
    REEF_CHECK(std::move(statuses[1]));
    const auto counted = first.counters();
    return expect(!counted || counted->runs == 6, "six runs are not counted as six");
}

Status keeps_all_tensors(const Subject& subject) {
    const AllBytes wanted = REEF_TRY(reference(subject));
    SessionOptions options = on(subject);
    options.keep_all_tensors = true;
    auto session = REEF_TRY(opened(subject, options));
    write_inputs(session, usual_seed);
    REEF_CHECK(session.run());
    REEF_CHECK(expect(outputs_of(session) == wanted, "keeping tensors changes the outputs"));
    const auto& graph = session.graph();
    for (const auto& op : graph.operators)
        for (const auto index : op.outputs) {
            const auto bytes = graph.tensors[static_cast<std::size_t>(index)].byte_count();
            REEF_CHECK(
                expect(bytes && session.tensor(index).size() == static_cast<std::size_t>(*bytes),
                       "an operator's output is not kept"));
        }
    return {};
}

/// Named twice, a device is two of the session's.
Status stands_beside_another(const Subject& subject) {
    const AllBytes wanted = REEF_TRY(reference(subject));
    SessionOptions options = on(subject);
    options.devices.push_back("cpu");
    auto session = REEF_TRY(opened(subject, options));
    write_inputs(session, usual_seed);
    REEF_CHECK(session.run());
    return expect(outputs_of(session) == wanted, "with the CPU beside it the outputs are others");
}

constexpr Promise all[] = {
    {"opens", "a model that it runs can be opened on it", opens},
    {"refuses_strangers", "operators that it does not know are refused by name", refuses_strangers},
    {"refuses_unknown_options", "options that it does not have are refused by name",
     refuses_unknown_options},
    {"refuses_ill_typed_options", "values of another type are refused with the option's name",
     refuses_ill_typed_options},
    {"refuses_wrong_sizes",
     "tensors of other sizes than its program's are refused when a model "
     "is opened",
     refuses_wrong_sizes},
    {"runs_twice_alike", "two runs of the same inputs give the same bytes", runs_twice_alike},
    {"keeps_inputs", "a run leaves its inputs as they are", keeps_inputs},
    {"keeps_outputs", "writing inputs leaves the outputs of the run before", keeps_outputs},
    {"computes", "outputs come of inputs", computes},
    {"resets_state", "reset_state() begins anew", resets_state},
    {"says_where_and_why", "every operator has a place, a kernel and a reason", says_where_and_why},
    {"can_be_required", "require_npu holds for a model that it runs whole", can_be_required},
    {"takes_threads", "threads change no byte, and any thread may run", takes_threads},
    {"starts_and_waits", "a run can be started and waited for, once", starts_and_waits},
    {"counts_during_runs", "counters never wait for a run", counts_during_runs},
    {"can_be_cancelled", "a run that is cancelled ends", can_be_cancelled},
    {"has_deadlines", "a run ends with its deadline, and the next is as any other", has_deadlines},
    {"serves_two_sessions", "sessions of a pool share it", serves_two_sessions},
    {"keeps_all_tensors", "keep_all_tensors keeps what operators give", keeps_all_tensors},
    {"stands_beside_another", "a session can name it beside other devices", stands_beside_another},
};

}  // namespace

std::span<const Promise> promises() {
    return all;
}

}  // namespace reef::cts
