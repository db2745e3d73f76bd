// The debugger of a stick while it runs a program: the same places, registers and outputs as the
// simulator's own debugger shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "edgetpu/sim/copy_program.h"
#include "edgetpu/usb/register_map.h"
#include "reef/edgetpu/assembly.h"
#include "reef/edgetpu/usb/simulated_bus.h"
#include "reef/edgetpu/usb/simulator_core.h"
#include "reef/edgetpu/usb/stick_debugger.h"
#include "reef/model/tflite.h"
#include "support/shared_data.h"

namespace reef::edgetpu::usb {
namespace {

using ::testing::HasSubstr;

template <typename T>
T value_of(Result<T> result) {
    EXPECT_TRUE(result) << (result ? "" : result.error().message());
    return result ? std::move(*result) : T{};
}

Package package_of_template(const std::filesystem::path& shared, const std::string& name) {
    const auto path = shared / "data/edgetpu/templates" / (name + "_edgetpu.tflite");
    return value_of(packages_of(value_of(model::load_tflite(path.string())))).at(0).package;
}

/// A stick with a program, and the same on the simulator alone.
class Debugged {
  public:
    explicit Debugged(const Package& package, unsigned seed = 1) : package_(package) {
        const auto program = value_of(Program::prepare(package_));
        std::mt19937 random(seed);
        for (const Layer& layer : program->inputs()) {
            inputs_.emplace_back(value_of(tensor_bytes(layer)));
            for (auto& byte : inputs_.back()) byte = static_cast<std::byte>(random());
        }
        for (const Layer& layer : program->outputs())
            undisturbed.emplace_back(value_of(tensor_bytes(layer)));
        const std::vector<MutableBytes> outputs(undisturbed.begin(), undisturbed.end());
        const auto device = value_of(Device::open(new_stick(), {}));
        EXPECT_TRUE(device->run(program, inputs(), outputs));
        stick = value_of(stick_debugger(new_stick(), {}, &package_, inputs()));
        simulator = value_of(simulated_debugger(package_, inputs()));
    }

    /// The words at which the scalar core itself has something to do.
    [[nodiscard]] std::vector<ProgramWord> words_of_core(const StreamView& stream) const {
        std::vector<ProgramWord> words;
        InstructionCursor cursor(stream.bytes);
        while (const auto one = cursor.next())
            if (one->word != 0 && (one->info->name == "bundle" || one->info->name == "sync"))
                words.push_back({stream.first.executable, stream.first.stream, one->word});
        return words;
    }
    [[nodiscard]] StreamView stream_of(ExecutableType type) const {
        for (const StreamView& view : stick->streams())
            if (view.type == to_string(type)) return view;
        ADD_FAILURE() << "no " << to_string(type);
        return {};
    }

    /// Both go on to `word`, and show the same there.
    void expect_same_at(const ProgramWord& word) {
        for (Debugger* one : {stick.get(), simulator.get()}) {
            const unsigned number = value_of(one->add_breakpoint(WordBreak{word}));
            const RunStop stop = value_of(one->run(RunUntil::breakpoint, 1));
            ASSERT_EQ(stop.reason, RunStop::Reason::breakpoint) << word.word;
            ASSERT_EQ(stop.events.at(0).at, word);
            ASSERT_TRUE(one->delete_breakpoint(number));
        }
        const CoreState got = value_of(stick->core()), want = value_of(simulator->core());
        EXPECT_EQ(got.at, word);
        EXPECT_EQ(got.program_counter, word.word);
        EXPECT_EQ(got.registers, want.registers) << word.word;
        EXPECT_EQ(value_of(stick->read_register("scalarCoreRunStatus")), csr::is_halted);
    }
    void expect_undisturbed_outputs() {
        const RunStop stop = value_of(stick->run(RunUntil::breakpoint, 1));
        ASSERT_EQ(stop.reason, RunStop::Reason::ended);
        EXPECT_EQ(value_of(stick->outputs()), undisturbed);
    }

    std::unique_ptr<Debugger> stick, simulator;
    std::vector<std::vector<std::byte>> undisturbed;

  private:
    static std::shared_ptr<SimulatedBus> new_stick() {
        auto bus = std::make_shared<SimulatedBus>();
        bus->plug({.has_firmware = true, .faults = {}}, std::make_unique<SimulatorCore>());
        return bus;
    }
    [[nodiscard]] std::vector<Bytes> inputs() const { return {inputs_.begin(), inputs_.end()}; }

    Package package_;
    std::vector<std::vector<std::byte>> inputs_;
};

TEST(DebuggedStick, StopsAtBreakpointsWithTheSimulatorsRegisters) {
    REEF_SHARED_OR_SKIP(shared);
    for (const char* name : {"dense_256", "gabor_64x64_7k_4o_2s", "looming_64x64_3x3"}) {
        SCOPED_TRACE(name);
        Debugged both(package_of_template(shared, name));
        const auto loading = both.words_of_core(both.stream_of(ExecutableType::parameter_caching));
        const auto computing = both.words_of_core(both.stream_of(ExecutableType::execution_only));
        ASSERT_GT(computing.size(), 8U);
        // In the order in which they run: a word without more is of the last.
        EXPECT_EQ(both.stick->streams().back().first, both.simulator->streams().back().first);
        both.expect_same_at(loading.at(loading.size() / 2));
        for (std::size_t i = 1; i <= 4; ++i)
            both.expect_same_at(computing.at(i * (computing.size() - 1) / 5));
        const auto registers = value_of(both.stick->core()).registers[scalar_file];
        EXPECT_TRUE(std::ranges::any_of(registers, [](auto value) { return value != 0; }));
        both.expect_undisturbed_outputs();
    }
}

// The parameters are in the chip then, and the program's own words come at once.
TEST(DebuggedStick, ASecondInferenceStopsToo) {
    REEF_SHARED_OR_SKIP(shared);
    Debugged both(package_of_template(shared, "dense_256"));
    both.expect_undisturbed_outputs();
    EXPECT_THAT(both.stick->run(RunUntil::breakpoint, 1).error().message(),
                HasSubstr("the program has ended"));
    ASSERT_TRUE(both.stick->restart());
    EXPECT_FALSE(both.stick->outputs());
    const auto words = both.words_of_core(both.stream_of(ExecutableType::execution_only));
    both.expect_same_at(words.at(words.size() / 2));
    EXPECT_FALSE(both.stick->restart());
    both.expect_undisturbed_outputs();
}

TEST(DebuggedStick, SingleStepsGoThroughAWholeProgram) {
    Debugged both(sim::hinted_copy_package(sim::interrupting_copy_program()));
    const StreamView stream = both.stream_of(ExecutableType::stand_alone);
    std::vector<std::uint64_t> words;
    InstructionCursor cursor(stream.bytes);
    while (const auto one = cursor.next()) words.push_back(one->word);
    std::vector<std::uint64_t> passed = {0};
    RunStop stop;
    for (std::size_t i = 0; i < words.size() && stop.reason == RunStop::Reason::stepped; ++i) {
        stop = value_of(both.stick->run(RunUntil::instruction, 1));
        if (stop.reason == RunStop::Reason::stepped)
            passed.push_back(value_of(both.stick->core()).program_counter);
    }
    EXPECT_EQ(stop.reason, RunStop::Reason::ended);
    ASSERT_LE(passed.size(), words.size());
    words.resize(passed.size());
    EXPECT_EQ(passed, words);
    EXPECT_EQ(value_of(both.stick->outputs()), both.undisturbed);
}

TEST(DebuggedStick, HaltsBeforeTheFirstInstruction) {
    Debugged both(sim::hinted_copy_package(sim::interrupting_copy_program()));
    EXPECT_EQ(value_of(both.stick->read_register("scalarCoreRunStatus")), csr::is_running);
    ASSERT_TRUE(both.stick->halt());
    EXPECT_EQ(value_of(both.stick->read_register("scalarCoreRunStatus")), csr::is_halted);
    ASSERT_EQ(value_of(both.stick->run(RunUntil::instruction, 3)).reason, RunStop::Reason::stepped);
    InstructionCursor cursor(both.stream_of(ExecutableType::stand_alone).bytes);
    for (int i = 0; i < 3; ++i) (void)cursor.next();
    EXPECT_EQ(value_of(both.stick->core()).program_counter, cursor.next()->word);
    both.expect_undisturbed_outputs();
}

TEST(DebuggedStick, RegistersThatAreWrittenAreTheChips) {
    const std::string text = sim::with(sim::interrupting_copy_program(), "ring_pop dst",
                                       "bundle alu=addi(s9,s8,2)\nring_pop dst");
    Debugged both(sim::hinted_copy_package(text));
    const StreamView stream = both.stream_of(ExecutableType::stand_alone);
    ProgramWord add;
    InstructionCursor cursor(stream.bytes);
    std::size_t before = 0;
    while (const auto one = cursor.next()) {
        if (one->info->name == "ring_pop") add.word = before;
        before = one->word;
    }
    ASSERT_TRUE(both.stick->add_breakpoint(WordBreak{add}));
    ASSERT_EQ(value_of(both.stick->run(RunUntil::breakpoint, 1)).reason,
              RunStop::Reason::breakpoint);
    ASSERT_TRUE(both.stick->write_register("s8", 40));
    ASSERT_TRUE(both.stick->write_register("p6", 1));
    ASSERT_EQ(value_of(both.stick->run(RunUntil::instruction, 1)).reason, RunStop::Reason::stepped);
    EXPECT_EQ(value_of(both.stick->read_register("s9")), 42U);
    EXPECT_EQ(value_of(both.stick->read_register("p6")), 1U);
    both.expect_undisturbed_outputs();
}

}  // namespace
}  // namespace reef::edgetpu::usb
