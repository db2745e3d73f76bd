// The conformance suite: every promise for every subject. A subject's list of promises that it does
// not keep is held to the truth in both directions.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "cts/promises.h"

namespace reef::runtime {
void enrol_test_chips(Registry& registry);
}

namespace reef::cts {

void enrol_subjects(runtime::Registry& registry);

namespace {

std::vector<const Subject*> subjects() {
    static const auto all = [] {
        auto& registry = runtime::Registry::of_process();
        enrol_subjects(registry);
        runtime::enrol_test_chips(registry);
        return registry.parts<Subject>();
    }();
    return all;
}

struct Case {
    const Subject* subject;
    const Promise* promise;
};
void PrintTo(const Case& one, std::ostream* out) {
    *out << one.promise->sentence << " (" << one.subject->device().uri << ")";
}

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const Subject* subject : subjects())
        for (const Promise& promise : promises()) all.push_back({subject, &promise});
    return all;
}

class Conformance : public testing::TestWithParam<Case> {};

TEST_P(Conformance, Holds) {
    const auto& [subject, promise] = GetParam();
    if (const auto model = subject->model(); !model && model.error().cause == Cause::not_found)
        GTEST_SKIP() << model.error().message();
    const auto state = subject->stateful_model();
    if (promise->name == "resets_state" && state && !*state &&
        state->error().cause == Cause::not_found)
        GTEST_SKIP() << state->error().message();
    const auto list = subject->not_supported();
    const auto listed = list.find(std::string(promise->name));
    const Status kept = promise->check(*subject);
    if (listed == list.end()) {
        EXPECT_TRUE(kept) << kept.error().message();
    } else {
        EXPECT_FALSE(kept) << "listed as not supported (" << listed->second
                           << "), and it holds: take it off the list";
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, Conformance, testing::ValuesIn(cases()), [](const auto& one) {
    return one.param.subject->name() + "_" + std::string(one.param.promise->name);
});

TEST(ConformanceLists, NameOnlyPromises) {
    for (const Subject* subject : subjects())
        for (const auto& [name, reason] : subject->not_supported()) {
            EXPECT_TRUE(std::ranges::any_of(
                promises(), [&](const Promise& promise) { return promise.name == name; }))
                << subject->name() << ": " << name;
            EXPECT_FALSE(reason.empty()) << subject->name() << ": " << name;
        }
}

TEST(ConformanceLists, EveryBackendOfTheBuildIsASubject) {
    std::vector<std::string> tried;
    for (const Subject* subject : subjects()) {
        const auto found = runtime::Registry::of_process().find(subject->device().uri);
        ASSERT_TRUE(found) << found.error().message();
        tried.push_back(runtime::form_of(*found->driver, *found->backend));
    }
    for (const auto* driver : runtime::Registry::of_process().drivers())
        for (const auto& backend : driver->backends()) {
            // What needs hardware is tried where there is some.
            if (backend.one_per_process) continue;
            const auto form = runtime::form_of(*driver, backend);
            EXPECT_TRUE(std::ranges::find(tried, form) != tried.end()) << form;
        }
}

}  // namespace
}  // namespace reef::cts
