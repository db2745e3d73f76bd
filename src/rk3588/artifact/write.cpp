#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "reef/rk3588/layout.h"
#include "reef_schema/rk3588_generated.h"
#include "reef_spec/rk3588_machine.h"
#include "rk3588/artifact/artifact.h"
#include "rk3588/regs/register_set.h"
#include "rk3588/stream/task_cubes.h"

namespace reef::rk3588 {
namespace {

schema::Cube stored(const Cube& c) {
    return {c.offset, c.height, c.width, c.channels, c.flipped};
}

std::vector<schema::Cube> stored(const std::vector<Cube>& cubes) {
    std::vector<schema::Cube> out;
    for (const Cube& cube : cubes) out.push_back(stored(cube));
    return out;
}

constexpr std::uint32_t value_shift = 16;

constexpr std::byte sign_bit{0x80};

CubeShape shape_of(const Cube& cube) {
    return {cube.channels, cube.height, cube.width, spec::atom_bytes};
}

void flip(MutableBytes bytes) {
    for (std::byte& b : bytes) b ^= sign_bit;
}

/// Rows of a strip stand in its lanes of the atoms. Before the bytes are flipped.
void fold(const Cube& cube, Bytes tensor, MutableBytes memory) {
    const Fold& f = *cube.fold;
    const std::size_t channels = cube.channels, row_bytes = cube.width * channels;
    const std::byte zero = cube.flipped ? sign_bit : std::byte{0};
    const auto fill = static_cast<std::byte>(f.fill) ^ zero;
    std::ranges::fill(memory, zero);
    const std::size_t surface = cube.surface_bytes();
    for (std::uint32_t row = 0; row < f.rows; ++row)
        for (std::uint32_t strip = 0; strip < f.strips; ++strip) {
            const std::int64_t from = std::int64_t{strip} * f.step + row - f.top;
            const bool inside = from >= 0 && from < cube.height;
            const std::byte* in =
                tensor.data() + (inside ? static_cast<std::size_t>(from) * row_bytes : 0);
            for (std::size_t c = 0; c < channels; ++c) {
                const std::size_t lane = strip * channels + c;
                std::byte* to = memory.data() + lane / spec::atom_bytes * surface +
                                row * cube.width * spec::atom_bytes + lane % spec::atom_bytes;
                for (std::size_t x = 0; x < cube.width; ++x)
                    to[x * spec::atom_bytes] = inside ? in[x * channels + c] : fill;
            }
        }
}

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<schema::Stage>>> stored(
    flatbuffers::FlatBufferBuilder& b, const std::vector<Stage>& stages) {
    std::vector<flatbuffers::Offset<schema::Stage>> all;
    for (const Stage& stage : stages) {
        std::vector<schema::Part> parts;
        for (const Part& part : stage) parts.emplace_back(part.first_task, part.tasks);
        all.push_back(schema::CreateStage(b, b.CreateVectorOfStructs(parts)));
    }
    return stages.empty() ? 0 : b.CreateVector(all);
}

std::vector<schema::Fold> folds_of(const std::vector<Cube>& inputs) {
    std::vector<schema::Fold> folds;
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (const auto& f = inputs[i].fold)
            folds.emplace_back(static_cast<std::uint32_t>(i), f->strips, f->rows, f->step, f->top,
                               f->fill);
    return folds;
}

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<schema::Absorbed>>> stored(
    flatbuffers::FlatBufferBuilder& b, const std::vector<AbsorbedOperator>& absorbed) {
    std::vector<flatbuffers::Offset<schema::Absorbed>> all;
    for (const AbsorbedOperator& a : absorbed)
        all.push_back(schema::CreateAbsorbed(b, a.index, b.CreateString(a.name),
                                             static_cast<schema::Absorption>(a.how), a.into));
    return absorbed.empty() ? 0 : b.CreateVector(all);
}

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<schema::UnprovenForm>>> stored(
    flatbuffers::FlatBufferBuilder& b, const std::vector<UnprovenForm>& forms) {
    std::vector<flatbuffers::Offset<schema::UnprovenForm>> all;
    for (const UnprovenForm& f : forms)
        all.push_back(schema::CreateUnprovenForm(b, b.CreateString(f.what),
                                                 static_cast<std::uint32_t>(f.operators)));
    return forms.empty() ? 0 : b.CreateVector(all);
}

}  // namespace

std::uint64_t Cube::atoms() const {
    return (std::uint64_t{lanes()} + spec::atom_bytes - 1) / spec::atom_bytes;
}

std::uint64_t Cube::surface_bytes() const {
    return std::uint64_t{rows()} * width * spec::atom_bytes;
}

Result<Task> task_of(const Artifact& artifact, std::size_t number) {
    const TaskPlace& place = artifact.tasks[number];
    return read_task(
        std::as_bytes(std::span(artifact.commands).subspan(place.first_word, place.words)));
}

std::uint64_t bytes_in_sram(const Task& task, const Artifact& artifact) {
    std::uint64_t bytes = 0;
    if (artifact.sram_bytes == 0) return bytes;
    for (const CubeWalk& cube : cubes_of(task)) bytes += cube.bytes_below(artifact.sram_bytes);
    return bytes;
}

bool is_compiled(const model::Operator& op) {
    return op.code.builtin == model::Op::custom && op.code.custom == custom_operator_name;
}

std::uint32_t version_of(const Artifact& a) {
    const bool folded =
        std::ranges::any_of(a.inputs, [](const Cube& c) { return c.fold.has_value(); });
    const bool by_table = std::ranges::any_of(
        a.absorbed, [](const AbsorbedOperator& op) { return op.how == Absorption::table; });
    if (by_table) return 3;
    return !a.stages.empty() || folded ? 2 : 1;
}

std::vector<std::byte> write_artifact(const Artifact& a) {
    flatbuffers::FlatBufferBuilder b;
    std::vector<schema::Relocation> relocations;
    for (const Relocation& r : a.relocations)
        relocations.emplace_back(r.word, static_cast<schema::Area>(r.area));
    std::vector<schema::Task> tasks;
    for (const TaskPlace& t : a.tasks) tasks.emplace_back(t.first_word, t.words);
    std::vector<flatbuffers::Offset<schema::Operator>> operators;
    for (const ArtifactOperator& op : a.operators) {
        const auto name = b.CreateString(op.name);
        const auto inputs = b.CreateVectorOfStructs(stored(op.inputs));
        const auto output = stored(op.output);
        operators.push_back(
            schema::CreateOperator(b, op.index, name, op.first_task, op.tasks, inputs, &output));
    }
    const auto constants = b.CreateVector(
        reinterpret_cast<const std::uint8_t*>(a.constants.view().data()), a.constants.size());
    const auto commands = b.CreateVector(a.commands);
    const auto relocation_table = b.CreateVectorOfStructs(relocations);
    const auto task_table = b.CreateVectorOfStructs(tasks);
    const auto inputs = b.CreateVectorOfStructs(stored(a.inputs));
    const auto outputs = b.CreateVectorOfStructs(stored(a.outputs));
    const auto operator_table = b.CreateVector(operators);
    const auto stages = stored(b, a.stages);
    const auto folds = folds_of(a.inputs);
    const auto fold_table = folds.empty() ? 0 : b.CreateVectorOfStructs(folds);
    const auto absorbed = stored(b, a.absorbed);
    const auto requantisation = a.requantisation.empty() ? 0 : b.CreateString(a.requantisation);
    const auto unproven = stored(b, a.unproven);
    b.Finish(
        schema::CreateProgram(b, version_of(a), a.activation_bytes, constants, commands,
                              relocation_table, task_table, inputs, outputs, operator_table, stages,
                              fold_table, absorbed, requantisation, unproven, a.sram_bytes),
        schema::ProgramIdentifier());
    const auto bytes = std::as_bytes(std::span(b.GetBufferPointer(), b.GetSize()));
    return {bytes.begin(), bytes.end()};
}

std::vector<std::uint64_t> relocated(const Artifact& artifact,
                                     const std::uint32_t (&base)[area_count]) {
    std::vector<std::uint64_t> words(artifact.commands.size());
    write_relocated(artifact, base, std::as_writable_bytes(std::span(words)));
    return words;
}

void write_relocated(const Artifact& artifact, const std::uint32_t (&base)[area_count],
                     MutableBytes memory) {
    assert(memory.size() >= artifact.commands.size() * sizeof(std::uint64_t));
    auto next = artifact.relocations.begin();
    for (std::size_t w = 0; w < artifact.commands.size(); ++w) {
        std::uint64_t word = artifact.commands[w];
        if (next != artifact.relocations.end() && next->word == w)
            word += std::uint64_t{base[static_cast<std::size_t>(next++->area)]} << value_shift;
        std::memcpy(memory.data() + w * sizeof word, &word, sizeof word);
    }
}

std::vector<Stage> stages_of(const Artifact& artifact) {
    if (!artifact.stages.empty()) return artifact.stages;
    std::vector<Stage> stages;
    for (const ArtifactOperator& op : artifact.operators)
        if (op.tasks != 0) stages.push_back({{op.first_task, op.tasks}});
    return stages;
}

std::size_t cores_of(const Artifact& artifact) {
    std::size_t cores = 1;
    for (const Stage& stage : artifact.stages) cores = std::max(cores, stage.size());
    return cores;
}

std::string operators_of(const Artifact& artifact, const Stage& stage) {
    std::string text;
    for (const ArtifactOperator& op : artifact.operators) {
        const bool here = std::ranges::any_of(stage, [&](const Part& part) {
            return part.first_task < op.first_task + op.tasks &&
                   op.first_task < part.first_task + part.tasks;
        });
        if (here)
            text += fmt::format("{}operator {} {}", text.empty() ? "" : " and ", op.index, op.name);
    }
    return text + " of the plain model";
}

void to_cube(const Cube& cube, Bytes tensor, MutableBytes memory) {
    if (cube.fold)
        fold(cube, tensor, memory);
    else
        to_cube(shape_of(cube), 1, tensor, memory, cube.flipped ? sign_bit : std::byte{0});
    if (cube.flipped) flip(memory);
}

void from_cube(const Cube& cube, Bytes memory, MutableBytes tensor) {
    from_cube(shape_of(cube), 1, memory, tensor);
    if (cube.flipped) flip(tensor);
}

}  // namespace reef::rk3588
