// The toy chip's driver: a chip that adds to bytes, one program at a time.
#include <fmt/format.h>

#include <atomic>
#include <mutex>

#include "cts/subject.h"
#include "reef/runtime/registry.h"
#include "toy_chip/toy_compiler.h"
#include "toy_chip/toy_program.h"

namespace reef::toy {

void enrol(runtime::Registry& registry);

namespace {

using runtime::Capability;

struct ToyProgram final : runtime::Program {
    std::vector<Instruction> instructions;
};

class ToyDevice final : public runtime::Device, public std::enable_shared_from_this<ToyDevice> {
  public:
    ToyDevice(std::string uri, std::uint32_t bias) : uri_(std::move(uri)), bias_(bias) {}

    [[nodiscard]] std::string uri() const override { return uri_; }
    [[nodiscard]] Result<std::unique_ptr<graph::DeviceOperator>> load(
        std::shared_ptr<const runtime::Program> program, const graph::RunControl& control) override;
    [[nodiscard]] std::optional<runtime::DeviceCounters> counters() const override {
        return runtime::DeviceCounters{.runs = runs_};
    }

    [[nodiscard]] Status run(const ToyProgram& program, Bytes input, MutableBytes output,
                             const graph::RunControl& control) {
        const std::lock_guard lock(mutex_);
        for (const Instruction& one : program.instructions) {
            REEF_CHECK(control.check());
            execute(one, bias_, input, memory_, output);
        }
        ++runs_;
        return {};
    }

  private:
    std::string uri_;
    std::uint32_t bias_;
    std::mutex mutex_;
    std::vector<std::byte> memory_;
    std::atomic<std::uint64_t> runs_ = 0;
};

class ToyOperator final : public graph::DeviceOperator {
  public:
    ToyOperator(std::shared_ptr<ToyDevice> device, std::shared_ptr<const ToyProgram> program,
                const graph::RunControl& control)
        : device_(std::move(device)), program_(std::move(program)), control_(control) {}
    [[nodiscard]] std::string kernel() const override { return "toy program"; }
    [[nodiscard]] Status run(std::span<const MutableBytes> inputs,
                             std::span<const MutableBytes> outputs) override {
        return device_->run(*program_, inputs[0], outputs[0], control_);
    }

  private:
    std::shared_ptr<ToyDevice> device_;
    std::shared_ptr<const ToyProgram> program_;
    const graph::RunControl& control_;
};

Result<std::unique_ptr<graph::DeviceOperator>> ToyDevice::load(
    std::shared_ptr<const runtime::Program> program, const graph::RunControl& control) {
    return std::make_unique<ToyOperator>(
        shared_from_this(), std::static_pointer_cast<const ToyProgram>(std::move(program)),
        control);
}

/// Bytes that the operator's only input or output has.
Result<std::size_t> bytes_of(const model::Subgraph& graph,
                             const std::vector<model::TensorIndex>& tensors) {
    if (tensors.size() != 1 || tensors[0] < 0)
        return fail(Cause::bad_input, "a toy operator has one input and one output");
    const auto bytes = graph.tensors[static_cast<std::size_t>(tensors[0])].byte_count();
    return static_cast<std::size_t>(bytes.value_or(0));
}

class ToyDriver final : public runtime::Driver {
  public:
    [[nodiscard]] std::string_view family() const override { return "toy"; }
    [[nodiscard]] std::string_view sentence() const override {
        return "a chip for tests, which adds to bytes";
    }
    [[nodiscard]] std::span<const runtime::BackendInfo> backends() const override {
        return backends_;
    }
    [[nodiscard]] std::span<const runtime::OptionInfo> options() const override { return options_; }
    [[nodiscard]] const runtime::PlacementWords& words() const override { return words_; }
    [[nodiscard]] runtime::Enumeration enumerate() const override {
        return {.devices = {{"toy:sim", "ready", "adds to bytes"}}, .buses = {}};
    }
    [[nodiscard]] bool is_compiled(const model::Operator& op) const override {
        return toy::is_compiled(op);
    }
    [[nodiscard]] Result<std::shared_ptr<const runtime::Program>> prepare(
        const runtime::DeviceUri&, const runtime::OptionValues&, const model::Subgraph& graph,
        const model::Operator& op) const override {
        auto program = std::make_shared<ToyProgram>();
        program->instructions = REEF_TRY(decode(op.custom_options.view()));
        const std::size_t in = REEF_TRY(bytes_of(graph, op.inputs)),
                          out = REEF_TRY(bytes_of(graph, op.outputs));
        for (const Instruction& one : program->instructions) {
            const bool fits = (one.opcode != Opcode::take || one.operand == in) &&
                              (one.opcode != Opcode::give || one.operand == out);
            if (!fits)
                return fail(Cause::bad_input, "the program has tensors of another size",
                            text_of(one));
        }
        return program;
    }
    [[nodiscard]] Result<std::shared_ptr<runtime::Device>> open(
        const runtime::DeviceUri& device, const runtime::OptionValues& options,
        int) const override {
        return std::make_shared<ToyDevice>(device.device(),
                                           static_cast<std::uint32_t>(options.integer("bias")));
    }

  private:
    std::vector<runtime::BackendInfo> backends_ = {
        {.backend = "sim",
         .sentence = "a simulated toy",
         .naming = runtime::Naming::optional,
         .name_means = "NAME",
         .capabilities = {Capability::computes, Capability::simulated, Capability::debug}},
        {.backend = "watched",
         .sentence = "a simulated toy that somebody watches",
         .capabilities = {Capability::computes, Capability::simulated, Capability::strict}}};
    std::vector<runtime::OptionInfo> options_ = {{.name = "bias",
                                                  .type = runtime::OptionType::integer,
                                                  .standard = std::int64_t{0},
                                                  .sentence = "added with every addition",
                                                  .most = 255},
                                                 {.name = "strict",
                                                  .standard = false,
                                                  .sentence = "watches, and sees nothing",
                                                  .backends = {"watched"}}};
    runtime::PlacementWords words_ = {.taken = "compiled for the toy",
                                      .left = "no toy's business",
                                      .chip = "the toy",
                                      .make = "write it for the toy",
                                      .elsewhere = "run it with `device` toy:sim"};
};

class ToySubject final : public cts::Subject {
  public:
    ToySubject(std::string name, std::string device)
        : name_(std::move(name)), device_(std::move(device)) {}
    [[nodiscard]] std::string_view family() const override { return "toy"; }
    [[nodiscard]] std::string name() const override { return name_; }
    [[nodiscard]] runtime::DeviceChoice device() const override { return {device_}; }
    [[nodiscard]] Result<model::Model> model() const override { return adding_model(64, 5); }
    [[nodiscard]] std::optional<runtime::Option> wrong_option() const override {
        return runtime::Option{"bias", true};
    }
    [[nodiscard]] std::map<std::string, std::string> not_supported() const override {
        return {{"resets_state", "it has none"}};
    }

  private:
    std::string name_, device_;
};

}  // namespace

void enrol(runtime::Registry& registry) {
    registry.add_driver(std::make_unique<ToyDriver>());
    registry.add_part<cts::Subject>(std::make_unique<ToySubject>("toy", "toy:sim"));
    registry.add_part<cts::Subject>(std::make_unique<ToySubject>("watched_toy", "toy:watched"));
    add_parts(registry);
    add_compiler(registry);
}

}  // namespace reef::toy
