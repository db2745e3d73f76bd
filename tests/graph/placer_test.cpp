// Several devices in one executor, and who is asked in which order.
#include "graph/placer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/worker_pool.h"
#include "graph/device_operator.h"
#include "graph/thread_choice.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"
#include "reef/model/builder.h"

namespace reef::graph {
namespace {

using model::Builder;
using model::Op;

constexpr ElementType u8 = ElementType::uint8;

/// Adds a number to every byte, and counts its runs in the state, if there is one.
class AddNumber final : public DeviceOperator {
  public:
    explicit AddNumber(int number) : number_(number) {}
    [[nodiscard]] std::string kernel() const override { return "add " + std::to_string(number_); }
    [[nodiscard]] Status run(std::span<const MutableBytes> inputs,
                             std::span<const MutableBytes> outputs) override {
        if (inputs[0].size() != outputs[0].size()) return fail(Cause::device_failed, "sizes");
        const int runs = inputs.size() > 1 ? count(inputs[1]) : 0;
        for (std::size_t i = 0; i < inputs[0].size(); ++i)
            outputs[0][i] =
                static_cast<std::byte>(std::to_integer<int>(inputs[0][i]) + number_ + runs);
        return {};
    }

  private:
    static int count(MutableBytes state) {
        state[0] = static_cast<std::byte>(std::to_integer<int>(state[0]) + 1);
        return std::to_integer<int>(state[0]);
    }
    int number_;
};

/// A device that runs the custom operators of one name.
class Adder final : public Placer {
  public:
    Adder(std::string name, int number) : name_(std::move(name)), number_(number) {}
    [[nodiscard]] Status begin(const model::Model&, const model::Subgraph&, int threads) override {
        threads_ = threads;
        asked_.clear();
        return {};
    }
    [[nodiscard]] Result<Placed> place(const OperatorView& op) override {
        asked_.push_back(op.index());
        if (op.op().code.custom != name_) return Placed{};
        if (op.output_count() != 1) return fail(Cause::unsupported, "more than one output");
        return Placed{device_kernel(std::make_unique<AddNumber>(number_), op), "adder",
                      "is " + name_};
    }
    [[nodiscard]] std::optional<Error> refusal(const OperatorView& op) const override {
        if (op.op().code.custom != "Old" + name_) return std::nullopt;
        return Error{Cause::unsupported, "was made for an older " + name_, {}, {}};
    }
    [[nodiscard]] int threads() const { return threads_; }
    [[nodiscard]] const std::vector<std::size_t>& asked() const { return asked_; }

  private:
    std::string name_;
    int number_;
    int threads_ = 0;
    std::vector<std::size_t> asked_;
};

/// Its weights are more than the machine has memory for.
class Unpackable final : public Kernel {
  public:
    [[nodiscard]] std::string name() const override { return "unpackable"; }
    [[nodiscard]] std::size_t packed_bytes() const override { return 12345; }
    void pack() override { throw std::bad_alloc(); }
    [[nodiscard]] Status run(const Frame&) override { return {}; }
};
class Unpacker final : public Placer {
  public:
    [[nodiscard]] Result<Placed> place(const OperatorView&) override {
        return Placed{std::make_unique<Unpackable>(), "unpacker", "is any"};
    }
};

/// One is faster than several threads: it waits where its loop has several pieces.
class SlowTogether final : public Kernel {
  public:
    explicit SlowTogether(std::size_t& pieces) : pieces_(pieces) {}
    [[nodiscard]] std::string name() const override { return "slow together"; }
    [[nodiscard]] Status run(const Frame& frame) override {
        std::atomic<std::size_t> pieces = 0;
        frame.pool.parallel_for(8, 1, [&](std::size_t, std::size_t, std::size_t) { ++pieces; });
        pieces_ = pieces;
        const auto taken = pieces > 1 ? std::chrono::milliseconds(2) : std::chrono::milliseconds(0);
        std::this_thread::sleep_for(taken);
        return {};
    }

  private:
    std::size_t& pieces_;
};
class SlowPlacer final : public Placer {
  public:
    explicit SlowPlacer(std::size_t& pieces) : pieces_(pieces) {}
    [[nodiscard]] Result<Placed> place(const OperatorView&) override {
        return Placed{std::make_unique<SlowTogether>(pieces_), "slow", "is any"};
    }

  private:
    std::size_t& pieces_;
};

/// x -> names[0] -> names[1] ... -> y, four bytes each; the first has a state of one byte.
model::Model chain(const std::vector<std::string>& names) {
    Builder builder("chain");
    auto last = builder.input("x", u8, {4});
    const auto state = builder.variable("state", u8, {1});
    for (std::size_t i = 0; i < names.size(); ++i) {
        const auto next = builder.tensor(fmt::format("t{}", i), u8, {4});
        if (names[i].empty()) {
            builder.add(Op::reshape, {last}, {next}, model::ReshapeOptions{.new_shape = {4}});
        } else if (i == 0) {
            builder.add_custom(names[i], {last, state}, {next}, {});
        } else {
            builder.add_custom(names[i], {last}, {next}, {});
        }
        last = next;
    }
    builder.output(last);
    return builder.finish().value();
}

TEST(Placers, OneExecutorUsesTwoDevicesAndTheCpu) {
    const auto ones = std::make_shared<Adder>("One", 1);
    const auto tens = std::make_shared<Adder>("Ten", 10);
    auto executor = Executor::create(chain({"One", "", "Ten", "One"}),
                                     {.placers = {ones, tens, cpu::placer()}, .threads = 3});
    ASSERT_TRUE(executor) << executor.error().message();
    EXPECT_EQ(ones->threads(), 3);
    // The first that takes an operator is the last that is asked.
    EXPECT_EQ(ones->asked(), (std::vector<std::size_t>{0, 1, 2, 3}));
    EXPECT_EQ(tens->asked(), (std::vector<std::size_t>{1, 2}));
    std::vector<std::size_t> placers;
    for (const Placement& placement : executor->placements()) placers.push_back(placement.placer);
    EXPECT_EQ(placers, (std::vector<std::size_t>{0, 2, 1, 0}));
    EXPECT_EQ(executor->placements()[2].kernel, "adder");
    EXPECT_EQ(executor->placements()[2].reason, "is Ten");
    EXPECT_EQ(executor->placements()[1].operator_name, "RESHAPE");

    for (int run = 1; run <= 2; ++run) {
        const std::uint8_t input[] = {0, 1, 100, 200};
        std::memcpy(executor->input(0).data(), input, sizeof input);
        ASSERT_TRUE(executor->run());
        for (std::size_t i = 0; i < 4; ++i)
            EXPECT_EQ(std::to_integer<int>(executor->output(0)[i]), input[i] + 12 + run) << run;
    }
    executor->reset_state();
    ASSERT_TRUE(executor->run());
    EXPECT_EQ(executor->memory().variable_bytes, 1U);
}

TEST(Placers, WhoKnowsAnOperatorSaysWhyNobodyRunsIt) {
    const auto ones = std::make_shared<Adder>("One", 1);
    const auto refusal = [](const std::string& name, std::vector<std::shared_ptr<Placer>> placers) {
        const auto executor = Executor::create(chain({name}), {.placers = std::move(placers)});
        return executor ? std::string() : executor.error().message();
    };
    EXPECT_EQ(refusal("OldOne", {ones, cpu::placer()}),
              "operator 0 OldOne: was made for an older One");
    EXPECT_THAT(refusal("Mystery", {ones, cpu::placer()}),
                testing::StartsWith("operator 0 Mystery: no CPU kernel for Mystery"));
    EXPECT_EQ(refusal("Mystery", {ones}), "operator 0 Mystery: nothing here runs Mystery");
    EXPECT_EQ(refusal("Mystery", {}), "operator 0 Mystery: nothing here runs Mystery");
}

TEST(Placers, WeightsThatFindNoMemoryAreAnError) {
    const auto executor =
        Executor::create(chain({"One"}), {.placers = {std::make_shared<Unpacker>()}});
    ASSERT_FALSE(executor);
    EXPECT_EQ(executor.error().cause, Cause::io_failed);
    EXPECT_EQ(executor.error().message(),
              "operator 0 One: no memory for 12345 bytes of packed weights (open the model where "
              "more memory is free)");
}

TEST(Placers, LoopsOfShortRunsThatOneThreadDoesFasterHaveOnePiece) {
    std::size_t pieces = 0;
    auto executor = Executor::create(
        chain({"One"}), {.placers = {std::make_shared<SlowPlacer>(pieces)}, .threads = 4});
    ASSERT_TRUE(executor) << executor.error().message();
    EXPECT_EQ(executor->threads_taken(), 4);
    ASSERT_TRUE(executor->run());
    EXPECT_GT(pieces, 1U);
    for (int i = 0; i < 100 && executor->threads_taken() > 1; ++i) ASSERT_TRUE(executor->run());
    // On trial first, then chosen.
    for (int i = 0; i < 2 * ThreadChoice::runs_of_trial; ++i) ASSERT_TRUE(executor->run());
    EXPECT_EQ(executor->threads_taken(), 1);
    EXPECT_EQ(pieces, 1U);
}

TEST(Placers, ARefusalByTheOperatorsOwnPlacerIsFinal) {
    Builder builder("two outputs");
    const auto x = builder.input("x", u8, {4});
    const auto y = builder.tensor("y", u8, {4});
    const auto z = builder.tensor("z", u8, {4});
    builder.add_custom("One", {x}, {y, z}, {});
    builder.output(y);
    const auto executor = Executor::create(
        builder.finish().value(),
        {.placers = {std::make_shared<Adder>("One", 1), std::make_shared<Adder>("One", 2)}});
    ASSERT_FALSE(executor);
    EXPECT_EQ(executor.error().message(), "operator 0 One: more than one output");
}

}  // namespace
}  // namespace reef::graph
