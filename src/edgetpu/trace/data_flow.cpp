#include "data_flow.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "data_tags.h"
#include "edgetpu/host/flip.h"
#include "edgetpu/sim/machine/prepared_executable.h"
#include "reef/edgetpu/layer_tensor.h"

namespace reef::edgetpu::trace {
namespace {

using sim::Program;
using sim::ProgramInstruction;
using sim::TensorKind;
using sim::TensorOp;
using sim::TileMemory;

/// As many bytes, each whole word of which is a tag.
std::vector<std::byte> tagged(std::size_t size_bytes, const auto& tag_of_word) {
    std::vector<std::byte> bytes(size_bytes);
    for (std::size_t at = 0; at + sizeof(DataTag) <= size_bytes; at += sizeof(DataTag)) {
        const DataTag tag = tag_of_word(static_cast<std::uint32_t>(at / sizeof(DataTag)));
        std::memcpy(&bytes[at], &tag, sizeof tag);
    }
    return bytes;
}

/// The tags of each word modulo `period`.
std::vector<TagSet> tags_in(Bytes bytes, std::size_t period) {
    std::vector<TagSet> sets(period);
    for (std::size_t word = 0; (word + 1) * sizeof(DataTag) <= bytes.size(); ++word) {
        DataTag tag;
        std::memcpy(&tag, &bytes[word * sizeof tag], sizeof tag);
        sets[word % period].insert(tag);
    }
    return sets;
}

/// Of one tensor instruction, on all its tiles.
struct TagReads {
    /// Inputs by the row of parameters that they meet, counted from the nest's base, modulo 4: the
    /// matrix of a sum has two rows for each operand.
    std::array<TagSet, 4> in;
    TagSet parameters;  ///< rows
    TagSet scaling;     ///< factors and biases of lanes
};

/// In place of the tensor instructions: notes the tags that they read and stores theirs.
class TagRecorder final : public sim::TensorTap {
  public:
    /// Instructions that are traced; the others' reads are forgotten.
    void make_room(std::size_t instructions) { reads_.resize(instructions); }
    [[nodiscard]] const TagReads& of(std::uint32_t number) const { return reads_[number]; }

    [[nodiscard]] bool tags_words() const override { return true; }

    bool begin(unsigned tile, const ProgramInstruction& instruction) override {
        At& at = at_[tile];
        at.op = &std::get<TensorOp>(instruction.operation);
        at.tag = tensor_tag(instruction.number);
        at.reads = instruction.number < reads_.size() ? &reads_[instruction.number] : nullptr;
        return true;
    }

    void step(unsigned tile, const TileMemory& memory, const sim::TensorStep& step) override {
        const At& at = at_[tile];
        if (at.reads == nullptr || step.pixel_weight == 0) return;
        note_inputs(at, memory, step);
        if (at.op->kind != TensorKind::resize) note_parameters(at, memory, step.parameter);
    }

    void sums(unsigned tile, std::span<std::int32_t> lanes) override {
        std::ranges::fill(lanes, static_cast<std::int32_t>(at_[tile].tag));
    }

    void results(unsigned tile, const TileMemory& memory, unsigned buffer,
                 std::span<std::uint8_t> words) override {
        const At& at = at_[tile];
        const auto first_lane = [&](unsigned of) {
            return TileMemory::read<DataTag>(memory.scaling.data() +
                                             std::size_t{of} * sim::row_bytes);
        };
        if (at.reads != nullptr && at.op->lane_scale) at.reads->scaling.insert(first_lane(buffer));
        if (at.reads != nullptr && at.op->bias) at.reads->scaling.insert(first_lane(2 + buffer));
        for (std::size_t word = 0; word < words.size(); word += sizeof at.tag)
            std::memcpy(&words[word], &at.tag, sizeof at.tag);
    }

  private:
    /// What a tile's engine works on.
    struct At {
        const TensorOp* op = nullptr;
        TagReads* reads = nullptr;
        DataTag tag = 0;
    };

    // The words of one step.
    static void note_inputs(const At& at, const TileMemory& memory, const sim::TensorStep& step) {
        const bool blends = at.op->kind == TensorKind::resize;
        if (!blends && at.op->kind != TensorKind::mac) return;
        const auto word_at = [&](std::uint32_t byte) {
            return TileMemory::read<DataTag>(
                &memory.narrow[byte / sizeof(DataTag) * sizeof(DataTag)]);
        };
        const auto row = step.parameter >> 2U;
        const auto first = static_cast<std::uint32_t>(at.op->par.base) >> 2U;
        const unsigned bytes =
            blends ? sizeof(DataTag) : at.op->elements() * (at.op->in_16bit ? 2 : 1);
        TagSet& set = at.reads->in[blends ? 0 : (row - first) % at.reads->in.size()];
        set.insert(word_at(step.in));
        set.insert(word_at(step.in + bytes - 1));
    }

    // Rows by their first word, unless the program made them.
    static void note_parameters(const At& at, const TileMemory& memory, std::uint32_t quarter) {
        const std::uint32_t row = quarter >> 2U;
        TagSet& set = at.reads->parameters;
        const auto tag = [&](unsigned word) {
            return TileMemory::read<DataTag>(&memory.wide[row][word * sizeof(DataTag)]);
        };
        set.insert(tag(0));
        if (is_parameter_tag(tag(0))) return;
        // A lane has a word of its own; in transposed rows, a part of each word of a block.
        const unsigned block = sim::words_per_block(memory.row_format[row]);
        const bool whole = at.op->elements() * (at.op->par_16bit ? 2 : 1) == sizeof(DataTag);
        for (unsigned lane = 0; lane < std::max(at.op->lanes, at.op->last_lanes); ++lane) {
            const unsigned base = lane / block * block;
            if (!whole) {
                set.insert(tag(base + (quarter & 3U) * block / 4));
                continue;
            }
            for (unsigned word = base; word < base + block; ++word) set.insert(tag(word));
        }
    }

    std::vector<TagReads> reads_;  ///< by instruction number
    std::array<At, sim::tile_count> at_{};
};

/// Constants become tags.
void tag_constants(Program& program) {
    for (sim::Stream& stream : program.streams) {
        for (ProgramInstruction& one : stream.instructions) {
            if (auto* mesh = std::get_if<sim::MeshTransfer>(&one.operation))
                mesh->fill_value = tag_of(TagKind::fill, one.number);
        }
    }
}

class FlowRun {
  public:
    explicit FlowRun(const Package& package) : package_(package) {}

    Result<DataFlow> run() {
        REEF_CHECK(sim::check_chip(package_));
        const Executable* computing = REEF_TRY(computing_executable(package_));
        if (package_.executables.size() > tagged_executables)
            return fail(Cause::unsupported, "a package of too many executables");
        sim::PreparedExecutable program = REEF_TRY(prepare_tagged(*computing));
        number_instructions(program.program);
        sim::Machine machine({.tap = &recorder_});
        if (const auto* caching = package_.find(ExecutableType::parameter_caching)) {
            sim::PreparedExecutable loading = REEF_TRY(prepare_tagged(*caching));
            REEF_CHECK(sim::run(machine, loading));
        }
        for (std::size_t i = 0; i < program.executable.inputs.size(); ++i) {
            const auto input = program.host->input(i);
            const DataTag tag = tag_of(TagKind::input, static_cast<std::uint32_t>(i));
            std::ranges::copy(tagged(input.size(), [&](std::uint32_t) { return tag; }),
                              input.begin());
        }
        REEF_CHECK(sim::run(machine, program));
        return results(program);
    }

  private:
    Result<sim::PreparedExecutable> prepare_tagged(const Executable& executable) {
        Executable copy = executable;
        const auto which = static_cast<std::uint32_t>(&executable - package_.executables.data());
        const auto kind =
            static_cast<TagKind>(static_cast<std::uint32_t>(TagKind::parameter) + which);
        copy.parameters = SharedBytes::copy_of(
            tagged(copy.parameters.size(), [&](std::uint32_t word) { return tag_of(kind, word); }));
        sim::PreparedExecutable prepared = REEF_TRY(sim::prepare(copy));
        tag_constants(prepared.program);
        return prepared;
    }

    void number_instructions(const Program& program) {
        std::size_t count = 0;
        for (std::size_t i = 0; i < program.streams.size(); ++i) {
            for (const ProgramInstruction& one : program.streams[i].instructions) {
                ++count;
                const InstructionPlace place{i, one.source.word};
                if (std::holds_alternative<TensorOp>(one.operation)) {
                    tensors_.emplace(one.number, flow_.tensors.size());
                    flow_.tensors.emplace_back().place = place;
                } else if (std::holds_alternative<sim::MeshTransfer>(one.operation)) {
                    fills_.emplace(one.number, flow_.fills.size());
                    flow_.fills.push_back(place);
                }
            }
        }
        recorder_.make_room(count);
    }

    Result<DataOrigin> origin_of(DataTag tag) const {
        const std::uint32_t number = number_of(tag);
        if (is_parameter_tag(tag)) {
            const auto which =
                (tag >> tag_number_bits) - static_cast<std::uint32_t>(TagKind::parameter);
            return DataOrigin{DataOrigin::Kind::parameters, which,
                              std::size_t{number} * sizeof(DataTag)};
        }
        const auto kind = static_cast<TagKind>(tag >> tag_number_bits);
        if (kind == TagKind::input) return DataOrigin{DataOrigin::Kind::input, number};
        const bool fill = kind == TagKind::fill;
        const auto& known = fill ? fills_ : tensors_;
        const auto found = known.find(number);
        if ((kind != TagKind::fill && kind != TagKind::tensor) || found == known.end())
            return fail(Cause::unsupported, "the program does not move whole words");
        return DataOrigin{fill ? DataOrigin::Kind::fill : DataOrigin::Kind::tensor, found->second};
    }

    Result<std::vector<DataOrigin>> origins_of(const TagSet& set) const {
        std::vector<DataOrigin> origins;
        for (const DataTag tag : set.tags()) origins.push_back(REEF_TRY(origin_of(tag)));
        return origins;
    }

    Result<OutputFlow> output_flow(const Layer& layer, Bytes wire) const {
        OutputFlow flow;
        flow.all = REEF_TRY(origins_of(tags_in(wire, 1).front()));
        const auto type = element_type_of(layer);
        const bool bytes = type && (*type == ElementType::int8 || *type == ElementType::uint8);
        if (!bytes || layer.z_dim <= 0 || layer.z_dim % static_cast<int>(sizeof(DataTag)) != 0)
            return flow;
        const auto unpacker = REEF_TRY(in_place(OutputUnpacker::prepare(layer), layer.name));
        std::vector<std::byte> tensor(unpacker.tensor_bytes());
        unpacker.run(wire, tensor);
        // The tags are no numbers.
        host::flip(tensor, host::flip_pattern(layer.data_type));
        const auto words = static_cast<std::size_t>(layer.z_dim) / sizeof(DataTag);
        for (const TagSet& set : tags_in(tensor, words))
            flow.by_channels.push_back(REEF_TRY(origins_of(set)));
        return flow;
    }

    Result<DataFlow> results(const sim::PreparedExecutable& program) {
        for (const auto& [number, index] : tensors_) {
            TensorFlow& flow = flow_.tensors[index];
            const TagReads& reads = recorder_.of(number);
            for (std::size_t i = 0; i < reads.in.size(); ++i)
                flow.in[i] = REEF_TRY(origins_of(reads.in[i]));
            flow.parameters = REEF_TRY(origins_of(reads.parameters));
            flow.scaling = REEF_TRY(origins_of(reads.scaling));
        }
        for (std::size_t i = 0; i < program.executable.outputs.size(); ++i) {
            flow_.outputs.push_back(
                REEF_TRY(output_flow(program.executable.outputs[i], program.host->output(i))));
        }
        return std::move(flow_);
    }

    const Package& package_;
    std::map<std::uint32_t, std::size_t> tensors_, fills_;  ///< indices by instruction number
    TagRecorder recorder_;
    DataFlow flow_;
};

}  // namespace

Result<DataFlow> data_flow(const Package& package) {
    return FlowRun(package).run();
}

}  // namespace reef::edgetpu::trace
