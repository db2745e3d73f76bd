#include "rk3588/device/layer_gatherer.h"

#include <fmt/format.h>

#include <algorithm>

#include "rk3588/device/simulated_program.h"
#include "rk3588/inspect/program_view.h"

namespace reef::rk3588 {
namespace {

using model::TensorIndex;

struct GatheredLayer {
    chip::Layer shown;
    std::uint32_t index = 0;  ///< of its operator in the plain model
    std::string op;
    bool computes = true;  ///< products or sums of its own
    Array tensor;
};

std::unexpected<Error> other_model(std::string what) {
    return fail(Cause::bad_input, std::move(what), {},
                "give the plain model that it was compiled from");
}

Result<std::vector<Artifact>> artifacts_of(const model::Model& compiled) {
    std::vector<Artifact> all;
    if (compiled.subgraphs.empty()) return all;
    const auto& graph = compiled.subgraphs.front();
    for (std::size_t i = 0; i < graph.operators.size(); ++i)
        if (is_compiled(graph.operators[i]))
            all.push_back(REEF_TRY(in_place(read_artifact(graph.operators[i].custom_options.view()),
                                            model::place_of(graph, i))));
    return all;
}

/// The operator of the plain model that the program's is. Errors: it has another name there.
Result<std::size_t> plain_operator(const model::Model& plain, std::uint32_t index,
                                   const std::string& name) {
    const auto& operators = plain.subgraphs.front().operators;
    if (index >= operators.size() || operators[index].code.name() != name ||
        operators[index].outputs.empty())
        return other_model(
            fmt::format("it has no operator {} {}, which the program has", index, name));
    return index;
}

/// All operators of a program, while it runs once more.
class Gathering {
  public:
    Gathering(const Artifact& artifact, SimulatedProgram& program)
        : artifact_(artifact), program_(program) {}

    Result<std::vector<GatheredLayer>> run(std::span<const Bytes> inputs) {
        REEF_CHECK(program_.begin(inputs));
        std::uint32_t done = 0;  // tasks
        std::size_t next = 0;    // operator
        for (const Stage& stage : program_.stages()) {
            REEF_CHECK(program_.run(stage));
            for (const Part& part : stage) done = std::max(done, part.first_task + part.tasks);
            // What is placed in another's memory stands there as soon as its parts do.
            for (; next < artifact_.operators.size(); ++next) {
                const ArtifactOperator& op = artifact_.operators[next];
                if (op.tasks != 0 && op.first_task + op.tasks > done) break;
                REEF_CHECK(add(op));
            }
        }
        for (const AbsorbedOperator& op : artifact_.absorbed) add(op);
        std::ranges::stable_sort(layers_, {}, &GatheredLayer::index);
        return std::move(layers_);
    }

  private:
    Status add(const ArtifactOperator& op) {
        GatheredLayer& layer = layers_.emplace_back();
        layer.index = op.index;
        layer.op = op.name;
        layer.shown.name = fmt::format("layer_{:03}", op.index);
        for (std::uint32_t t = op.first_task; t < op.first_task + op.tasks; ++t) {
            layer.shown.instructions.push_back(
                fmt::format("task {} word {:#x}", t, artifact_.tasks[t].first_word));
            layer.shown.tiles |= static_cast<std::uint16_t>(1U << core_of(t));
        }
        if (op.tasks == 0) layer.shown.instructions.emplace_back("no task: its parts stand in it");
        for (const Cube& in : op.inputs) layer.shown.sources.push_back(source_of(in));
        const Cube& out = op.output;
        layer.tensor = {out.flipped ? ElementType::uint8 : ElementType::int8,
                        {out.height, out.width, out.channels},
                        std::vector<std::byte>(out.elements())};
        writers_.push_back({out, layer.shown.name});
        return program_.read(out, layer.tensor.data);
    }

    void add(const AbsorbedOperator& op) {
        GatheredLayer& layer = layers_.emplace_back();
        layer.index = op.index;
        layer.op = op.name;
        layer.computes = op.how == Absorption::sum || op.how == Absorption::table;
        layer.shown.name = fmt::format("layer_{:03}", op.index);
        layer.shown.instructions.emplace_back("no task");
        layer.shown.problem = text_of(op);
    }

    [[nodiscard]] std::size_t core_of(std::uint32_t task) const {
        for (const Stage& stage : program_.stages())
            for (std::size_t core = 0; core < stage.size(); ++core)
                if (task >= stage[core].first_task &&
                    task < stage[core].first_task + stage[core].tasks)
                    return core;
        return 0;
    }

    /// Whoever wrote there last: memory is used again.
    [[nodiscard]] std::string source_of(const Cube& cube) const {
        const auto meets = [&](const Cube& other) {
            return cube.offset < other.offset + other.bytes() &&
                   other.offset < cube.offset + cube.bytes();
        };
        for (auto writer = writers_.rbegin(); writer != writers_.rend(); ++writer)
            if (meets(writer->cube)) return writer->name;
        for (std::size_t i = 0; i < artifact_.inputs.size(); ++i)
            if (meets(artifact_.inputs[i])) return fmt::format("in{}", i);
        return "unknown";
    }

    struct Writer {
        Cube cube;
        std::string name;
    };
    const Artifact& artifact_;
    SimulatedProgram& program_;
    std::vector<Writer> writers_;
    std::vector<GatheredLayer> layers_;
};

class ProgramLayers final : public chip::LayerSet {
  public:
    explicit ProgramLayers(std::vector<GatheredLayer> gathered) : gathered_(std::move(gathered)) {
        for (const auto& layer : gathered_) layers_.push_back(layer.shown);
    }

    [[nodiscard]] std::span<const chip::Layer> layers() const override { return layers_; }
    [[nodiscard]] const Array& tensor_of(std::size_t layer) const override {
        return gathered_[layer].tensor;
    }
    [[nodiscard]] Result<Matches> match(const model::Model& plain) override;
    [[nodiscard]] std::optional<Array> as_tensor(std::size_t layer,
                                                 const model::Tensor& tensor) const override {
        const Array& held = gathered_[layer].tensor;
        if (!gathered_[layer].shown.problem.empty() || held.type != tensor.type ||
            held.element_count() != tensor.element_count())
            return std::nullopt;
        Array out{held.type, {tensor.shape.begin(), tensor.shape.end()}, held.data};
        return out;
    }

  private:
    std::vector<GatheredLayer> gathered_;
    std::vector<chip::Layer> layers_;
};

Result<chip::LayerSet::Matches> ProgramLayers::match(const model::Model& plain) {
    Matches matches;
    const auto& graph = plain.subgraphs.front();
    for (std::size_t i = 0; i < gathered_.size(); ++i) {
        const GatheredLayer& layer = gathered_[i];
        const std::size_t op = REEF_TRY(plain_operator(plain, layer.index, layer.op));
        const TensorIndex tensor = graph.operators[op].outputs.front();
        const bool there =
            as_tensor(i, graph.tensors[static_cast<std::size_t>(tensor)]).has_value();
        if (!there && layer.shown.problem.empty())
            return other_model(fmt::format("{} has another result there", layer.op));
        matches.layers.push_back(
            {.layer = i, .op = op, .tensor = tensor, .by = "operator", .comparable = there});
        if (!there && layer.computes) matches.operators_without_layer.push_back(op);
    }
    return matches;
}

}  // namespace

Result<std::vector<bool>> LayerGatherer::on_chip(const model::Model& compiled,
                                                 const model::Model& plain) const {
    const auto artifacts = REEF_TRY(artifacts_of(compiled));
    if (artifacts.empty())
        return fail(Cause::bad_input, "the model has no operator compiled for the RK3588");
    std::vector<bool> on_chip(plain.subgraphs.front().operators.size(), false);
    for (const Artifact& artifact : artifacts) {
        for (const auto& op : artifact.operators)
            on_chip[REEF_TRY(plain_operator(plain, op.index, op.name))] = true;
        for (const auto& op : artifact.absorbed)
            on_chip[REEF_TRY(plain_operator(plain, op.index, op.name))] = true;
    }
    return on_chip;
}

Result<chip::LayerReference> LayerGatherer::reference(const model::Model& compiled) const {
    std::string rounding;
    for (const Artifact& artifact : REEF_TRY(artifacts_of(compiled)))
        if (rounding.empty()) rounding = artifact.requantisation;
    return chip::LayerReference{
        .own_arithmetic = false,
        .tolerance = 1,
        .rounding = rounding.empty() ? "not told by the program" : std::move(rounding)};
}

Result<std::unique_ptr<chip::LayerSet>> LayerGatherer::gather(const chip::RanModel& ran) const {
    std::vector<GatheredLayer> all;
    std::size_t programs = 0;
    for (std::size_t i = 0; i < ran.graph.operators.size(); ++i) {
        const model::Operator& op = ran.graph.operators[i];
        if (!is_compiled(op)) continue;
        ++programs;
        const std::string place = model::place_of(ran.graph, i);
        const Artifact artifact =
            REEF_TRY(in_place(read_artifact(op.custom_options.view()), place));
        const auto program = REEF_TRY(in_place(SimulatedProgram::place(artifact), place));
        std::vector<Bytes> inputs;
        for (const TensorIndex in : op.inputs) inputs.push_back(ran.tensor(in));
        auto layers = REEF_TRY(in_place(Gathering(artifact, *program).run(inputs), place));
        for (std::size_t o = 0; o < op.outputs.size(); ++o) {
            std::vector<std::byte> again(artifact.outputs[o].elements());
            REEF_CHECK(program->read(artifact.outputs[o], again));
            if (!equal_bytes(again, ran.tensor(op.outputs[o])))
                return fail(Cause::unsupported,
                            "the run gave another result than a simulated core without options",
                            place, "run it on rk3588:sim");
        }
        std::ranges::move(layers, std::back_inserter(all));
    }
    if (programs == 0)
        return fail(Cause::unsupported, "the model has no operator compiled for the RK3588", {},
                    "give the file that the RK3588 compiler wrote");
    // What several programs fold is one operator.
    std::ranges::stable_sort(all, {}, &GatheredLayer::index);
    const auto twice = std::ranges::unique(all, {}, &GatheredLayer::index);
    all.erase(twice.begin(), twice.end());
    return std::make_unique<ProgramLayers>(std::move(all));
}

}  // namespace reef::rk3588
