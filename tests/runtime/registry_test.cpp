// What a registry finds and refuses, on drivers that exist for these tests alone.
#include "reef/runtime/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reef::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PaperDriver final : public Driver {
  public:
    explicit PaperDriver(std::string family) : family_(std::move(family)) {}
    [[nodiscard]] std::string_view family() const override { return family_; }
    [[nodiscard]] std::string_view sentence() const override { return "made of paper"; }
    [[nodiscard]] std::span<const BackendInfo> backends() const override { return backends_; }
    [[nodiscard]] std::span<const OptionInfo> options() const override { return options_; }
    [[nodiscard]] const PlacementWords& words() const override { return words_; }
    [[nodiscard]] Enumeration enumerate() const override { return {}; }
    [[nodiscard]] bool is_compiled(const model::Operator&) const override { return false; }
    [[nodiscard]] Result<std::shared_ptr<const Program>> prepare(
        const DeviceUri&, const OptionValues&, const model::Subgraph&,
        const model::Operator&) const override {
        return fail(Cause::unsupported, "paper runs nothing");
    }
    [[nodiscard]] Result<std::shared_ptr<Device>> open(const DeviceUri&, const OptionValues&,
                                                       int) const override {
        return fail(Cause::device_missing, "paper is no device");
    }

  private:
    std::string family_;
    std::vector<BackendInfo> backends_ = {
        {.backend = "sim",
         .sentence = "folded",
         .naming = Naming::optional,
         .name_means = "NAME",
         .capabilities = {Capability::computes, Capability::simulated}},
        {.backend = "file", .sentence = "torn", .naming = Naming::required, .name_means = "FILE"},
        {.backend = "flat", .sentence = "as it came"}};
    std::vector<OptionInfo> options_ = {
        {.name = "seed", .type = OptionType::integer, .least = 1, .most = 9, .backends = {"sim"}},
        {.name = "strict", .type = OptionType::flag, .standard = false},
        {.name = "engine",
         .type = OptionType::choice,
         .standard = "fast",
         .choices = {"fast", "plain"},
         .backends = {"sim"}},
        {.name = "note", .type = OptionType::text}};
    PlacementWords words_;
};

class RegistryTest : public testing::Test {
  protected:
    RegistryTest() { registry.add_driver(std::make_unique<PaperDriver>("paper")); }

    Result<OptionValues> checked(const std::string& device, std::vector<Option> given = {}) {
        const auto found = REEF_TRY(registry.find(device));
        return OptionValues::check(found.driver->options(), found.uri, given);
    }
    Registry registry;
};

TEST_F(RegistryTest, KnowsTheCpuByItself) {
    EXPECT_EQ(registry.find("cpu")->driver->family(), "cpu");
    EXPECT_THAT(registry.forms(),
                ElementsAre("cpu", "paper:sim[:NAME]", "paper:file:FILE", "paper:flat"));
    EXPECT_THAT(registry.devices_with(Capability::computes), ElementsAre("cpu", "paper:sim"));
    EXPECT_THAT(registry.devices_with_option("seed"), ElementsAre("paper:sim"));
    EXPECT_THAT(registry.devices_with_option("note"),
                ElementsAre("paper:sim", "paper:file", "paper:flat"));
}

TEST_F(RegistryTest, FindsEveryForm) {
    for (const char* device :
         {"cpu", "paper:sim", "paper:sim:a", "paper:file:b", "paper:flat", "paper:sim?seed=3"}) {
        const auto found = registry.find(device);
        ASSERT_TRUE(found) << found.error().message();
        EXPECT_EQ(found->uri.text(), device);
        EXPECT_EQ(found->backend->backend, found->uri.backend);
    }
}

TEST_F(RegistryTest, RefusesTheRestWithWhatThereIs) {
    for (const char* device : {"", "gpu", "cpu:sim", "cpu:0", "paper", "paper:", "paper:pci",
                               "paper:sim:", "paper:file", "paper:flat:x", "paper:flat:x?note=a"}) {
        const auto found = registry.find(device);
        ASSERT_FALSE(found) << device;
        EXPECT_EQ(found.error().cause, Cause::bad_argument);
        EXPECT_EQ(found.error().what, std::string("'") + device + "' is not a device");
        EXPECT_THAT(found.error().hint, HasSubstr("this build drives cpu, paper:sim[:NAME], "
                                                  "paper:file:FILE and paper:flat"));
    }
}

TEST_F(RegistryTest, SuggestsTheNearest) {
    EXPECT_THAT(registry.find("papr:sim").error().hint, HasSubstr("did you mean paper:sim?"));
    EXPECT_THAT(registry.find("paper:sin?seed=1").error().hint,
                HasSubstr("did you mean paper:sim?"));
    EXPECT_THAT(registry.find("cpi").error().hint, HasSubstr("did you mean cpu?"));
    EXPECT_THAT(registry.find("quantum").error().hint, testing::Not(HasSubstr("did you mean")));
}

TEST_F(RegistryTest, ChecksOptions) {
    const auto standard = checked("paper:sim").value();
    EXPECT_FALSE(standard.given("seed"));
    EXPECT_EQ(standard.integer("seed"), 0);
    EXPECT_EQ(standard.text("engine"), "fast");
    EXPECT_FALSE(standard.flag("strict"));
    const auto given = checked("paper:sim?seed=9&strict=on&engine=plain&note=").value();
    EXPECT_TRUE(given.given("seed"));
    EXPECT_EQ(given.integer("seed"), 9);
    EXPECT_EQ(given.text("engine"), "plain");
    EXPECT_TRUE(given.flag("strict"));
    EXPECT_TRUE(given.given("note"));
    // The program's values win.
    EXPECT_EQ(checked("paper:sim?seed=9", {{"seed", std::int64_t{2}}})->integer("seed"), 2);
}

TEST_F(RegistryTest, RefusesOptionsByName) {
    const auto unknown = checked("paper:sim?sed=1").error();
    EXPECT_EQ(unknown.cause, Cause::bad_argument);
    EXPECT_EQ(unknown.message(),
              "device paper:sim: there is no option 'sed' (it has seed, strict, engine and note; "
              "did you mean seed?)");
    // Of another backend of the driver.
    EXPECT_EQ(checked("paper:flat?seed=1").error().message(),
              "device paper:flat: there is no option 'seed' (it has strict and note)");
    EXPECT_EQ(checked("cpu?seed=1").error().message(),
              "device cpu: there is no option 'seed' (it has none)");
}

TEST_F(RegistryTest, RefusesValuesOfAnotherType) {
    for (const char* seed : {"", "0", "10", "1.5", "x", "3 ", "99999999999999999999"})
        EXPECT_THAT(checked(std::string("paper:sim?seed=") + seed).error().message(),
                    HasSubstr("device paper:sim: option seed is a number from 1 to 9, not '"))
            << seed;
    EXPECT_THAT(checked("paper:sim?strict=yes").error().message(),
                HasSubstr("option strict is true or false, not 'yes'"));
    EXPECT_THAT(checked("paper:sim?engine=slow").error().message(),
                HasSubstr("option engine is fast or plain, not 'slow'"));
    EXPECT_THAT(checked("paper:sim", {{"seed", std::string("1")}}).error().message(),
                HasSubstr("option seed is a number"));
    EXPECT_THAT(checked("paper:sim", {{"note", true}}).error().message(),
                HasSubstr("option note is a text, not 'true'"));
}

class Inspector : public chip::Part {
  public:
    [[nodiscard]] virtual int answer() const = 0;
};
class PaperInspector final : public Inspector {
  public:
    [[nodiscard]] std::string_view family() const override { return "paper"; }
    [[nodiscard]] int answer() const override { return 42; }
};
class Other : public chip::Part {};

TEST_F(RegistryTest, KeepsPartsByTheirInterface) {
    EXPECT_TRUE(registry.parts<Inspector>().empty());
    registry.add_part<Inspector>(std::make_unique<PaperInspector>());
    ASSERT_EQ(registry.parts<Inspector>().size(), 1U);
    ASSERT_NE(registry.part<Inspector>("paper"), nullptr);
    EXPECT_EQ(registry.part<Inspector>("paper")->answer(), 42);
    EXPECT_EQ(registry.part<Inspector>("stone"), nullptr);
    EXPECT_TRUE(registry.parts<Other>().empty());
}

}  // namespace
}  // namespace reef::runtime
