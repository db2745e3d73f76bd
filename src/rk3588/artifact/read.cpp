#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/flatbuffer_survey.h"
#include "reef_schema/rk3588_generated.h"
#include "reef_spec/rk3588_machine.h"
#include "rk3588/artifact/artifact.h"
#include "rk3588/stream/task.h"

namespace reef::rk3588 {
namespace {

std::unexpected<Error> broken(std::string what, std::string place) {
    return fail(Cause::bad_input, std::move(what), std::move(place),
                "the file is damaged: compile the model anew");
}

bool holds_address(const hw::InstructionInfo& info) {
    return std::ranges::any_of(info.fields, [](const hw::FieldInfo& field) {
        return field.kind == hw::FieldKind::address;
    });
}

/// Words of registers that hold addresses may be relocated, and no others.
bool is_address(std::uint64_t word) {
    for (RegisterIndex i = 0; i < register_count; ++i)
        if (holds_address(spec::instructions[i]) &&
            register_word(i, static_cast<std::uint32_t>(word >> first_value_bit)) == word)
            return true;
    return false;
}

Cube cube_of(const schema::Cube& c) {
    return {c.offset(), c.height(), c.width(), c.channels(), c.flipped()};
}

class Reader {
  public:
    explicit Reader(const schema::Program& stored) : stored_(stored) {}

    Result<Artifact> run() {
        out_.activation_bytes = stored_.activation_bytes();
        out_.sram_bytes = stored_.sram_bytes();
        if (out_.sram_bytes > out_.activation_bytes)
            return broken(fmt::format("{} bytes of {} of activations", out_.sram_bytes,
                                      out_.activation_bytes),
                          "the chip's SRAM");
        out_.constants = SharedBytes::copy_of(
            std::as_bytes(std::span(stored_.constants()->data(), stored_.constants()->size())));
        out_.commands.assign(stored_.commands()->begin(), stored_.commands()->end());
        REEF_CHECK(read_tasks());
        REEF_CHECK(read_relocations());
        REEF_CHECK(read_folds());
        out_.inputs = REEF_TRY(cubes(*stored_.inputs(), "input"));
        out_.outputs = REEF_TRY(cubes(*stored_.outputs(), "output"));
        REEF_CHECK(read_operators());
        REEF_CHECK(read_stages());
        REEF_CHECK(read_remarks());
        return std::move(out_);
    }

  private:
    Status read_tasks() {
        constexpr std::uint32_t step = spec::task_alignment_bytes / sizeof(std::uint64_t);
        std::uint64_t end = 0;
        for (const schema::Task* t : *stored_.tasks()) {
            const auto place = fmt::format("task {}", out_.tasks.size());
            if (t->first_word() % step != 0 || t->first_word() < end ||
                std::uint64_t{t->first_word()} + t->words() > out_.commands.size())
                return broken("it lies outside of the commands or over another task", place);
            const auto words = std::span(out_.commands).subspan(t->first_word(), t->words());
            const Task task = REEF_TRY(in_place(read_task(std::as_bytes(words)), place));
            if (task.words != t->words())
                return broken(fmt::format("{} words, not {}", task.words, t->words()), place);
            out_.tasks.push_back({t->first_word(), t->words()});
            end = std::uint64_t{t->first_word()} + t->words();
        }
        if (out_.tasks.empty()) return broken("there are no tasks", "program");
        return {};
    }

    [[nodiscard]] std::uint64_t area_bytes(Area area) const {
        switch (area) {
            case Area::commands:
                return out_.commands.size() * sizeof(std::uint64_t);
            case Area::constants:
                return out_.constants.size();
            case Area::activations:
                return out_.activation_bytes;
        }
        return 0;
    }

    Status read_relocations() {
        std::int64_t last = -1;
        for (const schema::Relocation* r : *stored_.relocations()) {
            const auto place = fmt::format("relocation {}", out_.relocations.size());
            if (r->word() <= last || r->word() >= out_.commands.size())
                return broken("its word is outside of the commands or out of order", place);
            last = r->word();
            if (static_cast<std::size_t>(r->area()) >= area_count)
                return broken(fmt::format("area {}", static_cast<int>(r->area())), place);
            const auto area = static_cast<Area>(r->area());
            const std::uint64_t word = out_.commands[r->word()];
            if (!is_address(word)) return broken("its word writes no address", place);
            if (static_cast<std::uint32_t>(word >> 16) >= area_bytes(area))
                return broken("its word points outside of the area", place);
            out_.relocations.push_back({r->word(), area});
        }
        return check_all_relocated();
    }

    /// An address that nobody moves would be anywhere in memory.
    [[nodiscard]] Status check_all_relocated() const {
        std::size_t next = 0;
        for (const TaskPlace& task : out_.tasks)
            for (std::uint32_t w = task.first_word; w < task.first_word + task.words; ++w) {
                while (next < out_.relocations.size() && out_.relocations[next].word < w) ++next;
                const bool moved =
                    next < out_.relocations.size() && out_.relocations[next].word == w;
                const std::uint64_t word = out_.commands[w];
                const bool used = static_cast<std::uint32_t>(word >> 16) != 0;
                if (!moved && used && is_address(word))
                    return broken("an address without relocation", fmt::format("word {}", w));
            }
        return {};
    }

    [[nodiscard]] Status check(const Cube& cube, const std::string& place) const {
        constexpr std::uint32_t most = 1U << 16;
        if (cube.height < 1 || cube.height > most || cube.width < 1 || cube.width > most ||
            cube.channels < 1 || cube.channels > most)
            return broken(fmt::format("{}x{}x{} elements", cube.height, cube.width, cube.channels),
                          place);
        if (cube.offset % spec::atom_bytes != 0 ||
            cube.offset + cube.bytes() > out_.activation_bytes)
            return broken("it lies outside of the activations", place);
        return {};
    }

    /// An input is folded for whoever reads it.
    Status read_folds() {
        constexpr std::uint32_t most = 1U << 16;
        if (stored_.folds() == nullptr) return {};
        if (stored_.version() < 2) return broken("folds in a program of version 1", "folds");
        for (const schema::Fold* f : *stored_.folds()) {
            const auto place = fmt::format("fold {}", folds_.size());
            if (f->input() >= stored_.inputs()->size())
                return broken("of an input that there is not", place);
            const Cube of = cube_of(*stored_.inputs()->Get(f->input()));
            if (f->strips() < 2 || f->strips() > most || f->rows() < 1 || f->rows() > most ||
                f->step() < 1 || f->step() > most || f->top() > most || of.channels > most ||
                std::uint64_t{f->strips()} * of.channels > most)
                return broken(fmt::format("{} strips of {} rows", f->strips(), f->rows()), place);
            const Fold fold{f->strips(), f->rows(), f->step(), f->top(), f->fill()};
            if (folded(of, true).fold.value_or(fold) != fold)
                return broken("of a cube that has another one", place);
            folds_.emplace_back(of, fold);
        }
        return {};
    }

    /// With its fold, when it is an input that has one. Its bytes' domain may be another than the
    /// input's.
    [[nodiscard]] Cube folded(Cube cube, bool is_input) const {
        for (const auto& [of, fold] : folds_)
            if (is_input && cube.offset == of.offset && cube.height == of.height &&
                cube.width == of.width && cube.channels == of.channels)
                cube.fold = fold;
        return cube;
    }

    /// Every task once, on one core.
    Status read_stages() {
        if (stored_.stages() == nullptr) return {};
        if (stored_.version() < 2) return broken("stages in a program of version 1", "stages");
        std::uint64_t next = 0;
        for (const schema::Stage* s : *stored_.stages()) {
            const auto place = fmt::format("stage {}", out_.stages.size());
            if (s->parts()->size() == 0 || s->parts()->size() > spec::core_count)
                return broken(fmt::format("{} cores", s->parts()->size()), place);
            std::vector<Part> sorted;
            Stage& stage = out_.stages.emplace_back();
            for (const schema::Part* p : *s->parts()) {
                if (p->tasks() == 0) return broken("a core without tasks", place);
                if (!stage.empty() && stage.back().tasks < p->tasks())
                    return broken("a core with more tasks than the one before it", place);
                stage.push_back({p->first_task(), p->tasks()});
            }
            sorted = stage;
            std::ranges::sort(sorted, {}, &Part::first_task);
            for (const Part& part : sorted) {
                if (part.first_task != next)
                    return broken("its tasks do not follow those before it", place);
                next += part.tasks;
            }
        }
        if (next != out_.tasks.size()) return broken("they have not all tasks", "stages");
        return {};
    }

    template <class List>
    Result<std::vector<Cube>> cubes(const List& list, const std::string& what) const {
        std::vector<Cube> out;
        for (const schema::Cube* c : list) {
            out.push_back(folded(cube_of(*c), what == input_));
            REEF_CHECK(check(out.back(), fmt::format("{} {}", what, out.size() - 1)));
        }
        return out;
    }

    /// Every task is one operator's, in their order.
    [[nodiscard]] Status check_all_belong() const {
        std::uint64_t next = 0;
        for (const ArtifactOperator& op : out_.operators) {
            if (op.tasks != 0 && op.first_task != next)
                return broken("its tasks do not follow those before it",
                              fmt::format("operator {}", op.index));
            next += op.tasks;
        }
        if (next != out_.tasks.size()) return broken("they have not all tasks", "operators");
        return {};
    }

    Status read_operators() {
        for (const schema::Operator* op : *stored_.operators()) {
            const auto place = fmt::format("operator {}", op->index());
            if (std::uint64_t{op->first_task()} + op->tasks() > out_.tasks.size())
                return broken("its tasks are not in the program", place);
            ArtifactOperator& one = out_.operators.emplace_back();
            one.index = op->index();
            one.name = op->name()->str();
            one.first_task = op->first_task();
            one.tasks = op->tasks();
            one.inputs = REEF_TRY(in_place(cubes(*op->inputs(), "input"), place));
            one.output = cube_of(*op->output());
            REEF_CHECK(check(one.output, place + ": output"));
        }
        return check_all_belong();
    }

    /// What is for people alone.
    Status read_remarks() {
        if (stored_.absorbed() != nullptr)
            for (const schema::Absorbed* a : *stored_.absorbed()) {
                if (a->how() > schema::Absorption::MAX)
                    return broken(fmt::format("absorption {}", static_cast<int>(a->how())),
                                  fmt::format("operator {}", a->index()));
                out_.absorbed.push_back(
                    {a->index(), a->name()->str(), static_cast<Absorption>(a->how()), a->into()});
            }
        if (stored_.requantisation() != nullptr)
            out_.requantisation = stored_.requantisation()->str();
        if (stored_.unproven() != nullptr)
            for (const schema::UnprovenForm* f : *stored_.unproven())
                out_.unproven.push_back({f->what()->str(), f->operators()});
        return {};
    }

    static constexpr std::string_view input_ = "input";
    const schema::Program& stored_;
    std::vector<std::pair<Cube, Fold>> folds_;
    Artifact out_;
};

}  // namespace

Result<Artifact> read_artifact(Bytes bytes) {
    if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
        return broken(fmt::format("{} bytes, of which a program has less than 2 GiB", bytes.size()),
                      "custom options");
    // The library wants its buffer aligned, and an operator's options may stand anywhere in memory.
    std::vector<std::uint64_t> aligned((bytes.size() + 7) / 8);
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(aligned)).begin());
    const auto* data = reinterpret_cast<const std::uint8_t*>(aligned.data());
    flatbuffers::Verifier verifier(data, bytes.size());
    if (bytes.size() < 8 || !schema::VerifyProgramBuffer(verifier))
        return broken("no program for the RK3588, or one that is cut off", "custom options");
    const schema::Program& stored = *schema::GetProgram(data);
    if (stored.version() < 1 || stored.version() > artifact_version)
        return fail(Cause::unsupported, fmt::format("a program of version {}", stored.version()),
                    "custom options", fmt::format("versions 1 to {} are read", artifact_version));
    const auto found = model::survey_flatbuffer(*flatbuffers::GetRoot<flatbuffers::Table>(data),
                                                *schema::ProgramTypeTable(), "the program");
    if (found.misaligned != nullptr)
        return broken("a vector is off its alignment",
                      fmt::format("custom options, byte {}", found.misaligned - data));
    // Reef's compiler refers to nothing twice; some thousand references to one long name would be
    // read into as many copies.
    if (found.payload_bytes > std::uint64_t{2} * bytes.size())
        return broken("the same vectors are referred to again and again", "custom options");
    return Reader(stored).run();
}

}  // namespace reef::rk3588
