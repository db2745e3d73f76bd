// What the toy chip shows besides running: its inspector and its disassembler.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "reef/chip/checker.h"
#include "reef/chip/disassembler.h"
#include "reef/chip/inspector.h"
#include "toy_chip/toy_debugger.h"
#include "toy_chip/toy_program.h"

namespace reef::toy {
namespace {

class ToyInspection final : public chip::Inspection {
  public:
    explicit ToyInspection(const model::Model& model) {
        for (const model::Subgraph& graph : model.subgraphs) {
            auto& placements = placements_.emplace_back();
            for (const model::Operator& op : graph.operators) {
                const bool on_chip = toy::is_compiled(op);
                placements.push_back({on_chip, on_chip ? "a toy program" : "no toy program"});
                if (on_chip) programs_.push_back(op.custom_options);
            }
        }
    }

    [[nodiscard]] bool is_compiled() const override { return !programs_.empty(); }
    [[nodiscard]] std::string_view not_compiled() const override {
        return "not written for the toy; toys are written by hand";
    }
    [[nodiscard]] const chip::Placements& placements() const override { return placements_; }
    [[nodiscard]] std::vector<chip::Section> sections(chip::Detail) const override {
        std::vector<chip::Section> sections;
        for (const SharedBytes& program : programs_) {
            auto& section = sections.emplace_back(chip::Section{"Toy program", {}, {}});
            section.add("instructions", std::to_string(count_of(program)));
        }
        return sections;
    }
    [[nodiscard]] chip::Object document() const override {
        chip::Array programs;
        for (const SharedBytes& program : programs_)
            programs.emplace_back(chip::Object{{"instructions", count_of(program)}});
        return {{"programs", std::move(programs)}};
    }

  private:
    static std::size_t count_of(const SharedBytes& program) {
        return program.size() / instruction_set().word_bytes;
    }

    chip::Placements placements_;
    std::vector<SharedBytes> programs_;
};

class ToyInspector final : public chip::Inspector {
  public:
    [[nodiscard]] std::string_view family() const override { return "toy"; }
    [[nodiscard]] std::string_view name() const override { return "Toy"; }
    [[nodiscard]] std::unique_ptr<chip::Inspection> inspect(
        const model::Model& model) const override {
        return std::make_unique<ToyInspection>(model);
    }
};

/// "add 5".
Result<Instruction> assembled(std::string_view line, std::size_t number) {
    const std::size_t space = line.find(' ');
    const auto* info = instruction_set().find(line.substr(0, space));
    std::uint32_t operand = 0;
    if (info != nullptr && space != std::string_view::npos) {
        const char* end = line.data() + line.size();
        const auto [rest, error] = std::from_chars(line.data() + space + 1, end, operand);
        if (error == std::errc() && rest == end)
            return Instruction{static_cast<Opcode>(info->opcode), operand};
    }
    return fail(Cause::bad_input, fmt::format("'{}' is no instruction of the toy", line),
                fmt::format("line {}", number));
}

class ToyDisassembler final : public chip::Disassembler {
  public:
    [[nodiscard]] std::string_view family() const override { return "toy"; }
    [[nodiscard]] std::string_view name() const override { return "Toy"; }
    [[nodiscard]] const hw::InstructionSet& instruction_set() const override {
        return toy::instruction_set();
    }
    [[nodiscard]] Result<std::vector<chip::Program>> programs_of(
        const model::Model& model) const override {
        std::vector<chip::Program> programs;
        for (const model::Subgraph& graph : model.subgraphs)
            for (const model::Operator& op : graph.operators)
                if (toy::is_compiled(op)) programs.push_back({"TOY", {op.custom_options}});
        return programs;
    }
    void append_text(const hw::Instruction& instruction, const chip::TextOptions& options,
                     std::string& out) const override {
        if (options.addresses) out += fmt::format("{:#06x}: ", instruction.word);
        out += instruction.info == nullptr ? "data"
                                           : fmt::format("{} {}", instruction.info->name,
                                                         instruction.value("operand").value_or(0));
    }
    [[nodiscard]] std::string text_of(Bytes stream,
                                      const chip::TextOptions& options) const override {
        std::string text;
        hw::InstructionCursor cursor(toy::instruction_set(), stream);
        while (const auto one = cursor.next()) {
            append_text(*one, options, text);
            text += '\n';
        }
        return text;
    }
    [[nodiscard]] Result<std::vector<hw::AssembledStream>> assemble(
        std::string_view text) const override {
        std::vector<Instruction> program;
        for (std::size_t number = 1; !text.empty(); ++number) {
            std::string_view line = text.substr(0, text.find('\n'));
            text.remove_prefix(std::min(text.size(), line.size() + 1));
            if (const auto address = line.find(": "); address != std::string_view::npos)
                line.remove_prefix(address + 2);
            program.push_back(REEF_TRY(assembled(line, number)));
        }
        return std::vector<hw::AssembledStream>{{{}, encode(program)}};
    }
    [[nodiscard]] chip::ProgramCheck check(std::span<const Bytes> streams) const override {
        chip::ProgramCheck out;
        auto& faults = out.faults;
        for (std::size_t s = 0; s < streams.size(); ++s) {
            const auto program = decode(streams[s]);
            if (!program) {
                faults.push_back({s, 0, program.error().message()});
            } else if (program->empty() || program->front().opcode != Opcode::take) {
                faults.push_back({s, 0, "a program begins with take"});
            }
        }
        return out;
    }
};

/// "TAPE", then a program: a kind of file that only the toy knows.
bool is_tape(Bytes file) {
    return as_text(file).starts_with("TAPE");
}

class TapeInspector final : public chip::FileInspector {
  public:
    [[nodiscard]] std::string_view family() const override { return "toy"; }
    [[nodiscard]] std::string_view kind() const override { return "toy tape"; }
    [[nodiscard]] std::string_view ending() const override { return "tape"; }
    [[nodiscard]] bool recognises(Bytes file) const override { return is_tape(file); }
    [[nodiscard]] Result<chip::FileReport> inspect(const SharedBytes& file,
                                                   chip::Detail detail) const override {
        const auto program = REEF_TRY(decode(file.view().subspan(4)));
        chip::FileReport report;
        auto& section = report.sections.emplace_back(chip::Section{"Tape", {}, {}});
        section.add("instructions", std::to_string(program.size()));
        if (detail == chip::Detail::all) section.add("detail", "all");
        report.document = {{"instructions", program.size()}};
        return report;
    }
};

class TapeChecker final : public chip::FileChecker {
  public:
    [[nodiscard]] std::string_view family() const override { return "toy"; }
    [[nodiscard]] std::string_view kind() const override { return "toy tape"; }
    [[nodiscard]] std::string_view ending() const override { return "tape"; }
    [[nodiscard]] bool recognises(Bytes file) const override { return is_tape(file); }
    [[nodiscard]] Result<chip::CheckReport> check(const SharedBytes& file) const override {
        const auto program = REEF_TRY(decode(file.view().subspan(4)));
        chip::CheckReport report;
        if (program.empty() || program.front().opcode != Opcode::take)
            report.findings.push_back({"beginning", "word 0", "a program begins with take", true});
        if (program.size() > 2)
            report.findings.push_back({"length", {}, "longer than most tapes", false});
        return report;
    }
};

class ToyTarget final : public chip::TargetChecker {
  public:
    [[nodiscard]] std::string_view family() const override { return "toy"; }
    [[nodiscard]] std::string_view name() const override { return "Toy"; }
    [[nodiscard]] Result<chip::CheckReport> check(const model::Model& model) const override {
        chip::CheckReport report;
        for (const model::Operator& op : model.subgraphs.front().operators)
            report.findings.push_back(
                {"operator", op.code.name(), "toys are programmed by hand", false});
        return report;
    }
};

}  // namespace

void add_parts(runtime::Registry& registry) {
    registry.add_part<chip::Inspector>(std::make_unique<ToyInspector>());
    registry.add_part<chip::Disassembler>(std::make_unique<ToyDisassembler>());
    registry.add_part<chip::FileInspector>(std::make_unique<TapeInspector>());
    registry.add_part<chip::FileChecker>(std::make_unique<TapeChecker>());
    registry.add_part<chip::TargetChecker>(std::make_unique<ToyTarget>());
    registry.add_part<chip::DebuggerOpener>(std::make_unique<DebuggerOpener>());
}

}  // namespace reef::toy
