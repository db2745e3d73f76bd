// A hardware description as the generator holds it: records expanded, every bit accounted for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reef/base/result.h"

namespace reef::specgen {

struct EnumValue {
    unsigned value = 0;
    std::string name;
    std::string meaning;
};

struct Enumeration {
    std::string name;
    std::string meaning;
    std::string grade;
    std::vector<EnumValue> values;
};

struct Field {
    std::string name;
    unsigned position = 0;  ///< bit in the instruction
    unsigned width = 0;
    std::string kind;         ///< a FieldKind of reef/hw/field.h
    std::string enumeration;  ///< of kinds enumeration and set
    std::string unit;
    std::string grade;
    std::string meaning;
    std::string note;
    /// The bits in known programs, in order; empty: too many to list.
    std::vector<unsigned> seen;
};

/// Consecutive fields that came out of one record.
struct Group {
    std::string name;
    std::string kind;  ///< a GroupKind of reef/hw/instruction_set.h
    std::size_t first = 0;
    std::size_t count = 0;
    unsigned dimensions = 0;
};

struct Instruction {
    std::string name;
    unsigned space = 0;  ///< index in Isa::spaces
    unsigned opcode = 0;
    unsigned words = 0;
    std::string grade;
    std::string meaning;
    std::vector<Field> fields;  ///< by position; gaps are fields of kind "raw"
    std::vector<Group> groups;  ///< by position
};

struct RecordDoc {
    std::string name;
    std::string meaning;
};

/// Where the opcode or the space of an instruction stands; one place for all of them.
struct Place {
    unsigned position = 0;
    unsigned width = 0;
    friend bool operator==(const Place&, const Place&) = default;
};

struct Isa {
    std::string name;  ///< of the chip: a namespace, and the beginning of file names
    std::string title;
    std::string about;  ///< for the page
    unsigned word_bits = 0;
    Place opcode;
    Place space;                      ///< of width 0: there is one space without a name
    std::vector<std::string> spaces;  ///< by number
    std::vector<Enumeration> enumerations;
    std::vector<RecordDoc> records;
    std::vector<Instruction> instructions;
};

/// Refuses unknown elements, attributes, types, grades, records and enumerations, fields that
/// overlap or leave their instruction, and names or opcodes that occur twice.
[[nodiscard]] Result<Isa> read_isa(const std::string& xml);

struct RegisterField {
    std::string name;
    unsigned position = 0;
    unsigned width = 0;
    std::string grade;
    std::string meaning;
};

struct Register {
    std::string name;
    std::string group;
    unsigned offset = 0;
    unsigned bits = 64;  ///< of one transfer
    unsigned count = 1;  ///< of a register file
    std::optional<std::uint64_t> reset;
    std::vector<RegisterField> fields;
};

struct RegisterFile {
    std::string name;
    std::string title;
    std::string about;
    std::vector<Register> registers;
};

/// Refuses what read_isa() refuses, for registers of at most 64 bits.
[[nodiscard]] Result<RegisterFile> read_registers(const std::string& xml);

struct OperatorRow {
    std::string name;
    std::string grade;  ///< seen, documented
    std::string limit;
};

struct OperatorList {
    std::string name;
    std::string title;
    std::string about;
    std::vector<OperatorRow> operators;
};

/// Refuses unknown elements, attributes and grades, and operators that occur twice.
[[nodiscard]] Result<OperatorList> read_operators(const std::string& xml);

/// What the instructions of known programs are without their numbers.
struct FormRow {
    std::string text;    ///< the instruction's name first
    unsigned seen = 0;   ///< instructions
    unsigned files = 0;  ///< that have one
};

struct FormList {
    std::string name;
    std::string title;
    std::string about;
    std::vector<FormRow> forms;
};

/// Refuses unknown elements and attributes, forms that occur twice, without a text or without a
/// file.
[[nodiscard]] Result<FormList> read_forms(const std::string& xml);

// What is neither an instruction nor a register.

struct Size {
    std::string name;
    std::uint64_t value = 0;
    std::string unit;
    std::string grade;
    std::string meaning;
};

struct Assumption {
    std::string name;
    std::string title;
    double value = 0;
    std::string unit;
    std::string source;
};

using Polynomial = std::vector<float>;

struct Function {
    std::string name;
    float least = 0;  ///< argument
    float most = 0;
    std::string grade;
    std::string meaning;
    std::vector<Polynomial> segments;  ///< coefficients from the constant one up
    std::vector<float> breaks;         ///< ascending, one less than segments
};

struct MachineFacts {
    std::string name;
    std::string title;
    std::string about;
    std::vector<Enumeration> enumerations;
    std::vector<Size> sizes;
    std::vector<Assumption> assumptions;
    std::vector<Function> functions;
};

/// Refuses unknown elements, attributes and grades, names that occur twice, assumptions without a
/// source, functions with another number of segments or terms than the first, or breaks that do
/// not ascend.
[[nodiscard]] Result<MachineFacts> read_machine(const std::string& xml);

// Of a header: the tables, and the values as numbers and as types. Of a page: sections.
[[nodiscard]] std::string enumeration_tables(const std::vector<Enumeration>& enumerations);
[[nodiscard]] std::string enumeration_values(const std::vector<Enumeration>& enumerations);
[[nodiscard]] std::string enumeration_sections(const std::vector<Enumeration>& enumerations);

[[nodiscard]] std::string machine_header(const MachineFacts& facts);
[[nodiscard]] std::string machine_page(const MachineFacts& facts);
[[nodiscard]] std::string isa_header(const Isa& isa);
[[nodiscard]] std::string operators_header(const OperatorList& list);
[[nodiscard]] std::string operators_page(const OperatorList& list);
[[nodiscard]] std::string forms_header(const FormList& list);
[[nodiscard]] std::string forms_page(const FormList& list);
[[nodiscard]] std::string isa_page(const Isa& isa);
[[nodiscard]] std::string registers_header(const RegisterFile& file);
[[nodiscard]] std::string registers_page(const RegisterFile& file);

}  // namespace reef::specgen
