// What final.mlir says, as plain data: functions of operators on values that have names, types and
// addresses. final.mlir is the last form of a network before TPU-MLIR's code generator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reef::sophgo {

using ValueIndex = std::size_t;

/// real = (stored - zero_point) * scale; of !quant.uniform. One of each, or one for each position
/// of the dimension `axis`.
struct UniformQuantisation {
    std::vector<double> scales = {1};
    std::vector<std::int64_t> zero_points = {0};
    std::optional<std::size_t> axis;
};

struct Value {
    std::string name;  ///< that of its location (2022: its attribute); empty when it has none
    std::string type;  ///< as it is printed
    std::string element;
    std::vector<std::int64_t> shape;
    std::uint64_t bytes = 0;               ///< as it lies in the chip's memory; 0 for none
    std::optional<std::uint64_t> address;  ///< in global memory; the type's encoding
    std::optional<UniformQuantisation> quantisation;

    [[nodiscard]] bool in_memory() const { return address.has_value() && bytes > 0; }
    [[nodiscard]] std::uint64_t end() const { return address.value_or(0) + bytes; }
};

/// What a group leaves to its neighbours, and what it runs of theirs: the operators' ids. The two
/// `other` lists have a row -1, -2, ... in front of the ids that belong to its time step.
struct GroupOverlaps {
    std::vector<std::int64_t> self_up;     ///< Loads that the group before runs
    std::vector<std::int64_t> self_down;   ///< Stores that the group behind runs
    std::vector<std::int64_t> other_up;    ///< Loads of the group behind
    std::vector<std::int64_t> other_down;  ///< Stores of the group before

    [[nodiscard]] bool empty() const {
        return self_up.empty() && self_down.empty() && other_up.empty() && other_down.empty();
    }
};

struct Operator {
    std::string kind;  ///< "tpu.Conv2D"
    std::vector<ValueIndex> operands;
    std::vector<ValueIndex> results;
    std::vector<Operator> body;      ///< of its regions, in order, terminators included
    std::optional<std::int64_t> id;  ///< in its group's flow
    std::vector<std::int64_t> flow;  ///< of a group
    GroupOverlaps overlaps;          ///< of a group

    [[nodiscard]] bool is(std::string_view name) const { return kind == name; }
};

struct Function {
    std::string name;
    std::string mode;  ///< "TPU_STATIC", ...; empty for main
    std::optional<std::int64_t> id;
    std::vector<std::int64_t> next;
    std::vector<ValueIndex> arguments;
    std::vector<Operator> operators;  ///< without the terminator
    std::vector<ValueIndex> returned;

    [[nodiscard]] bool is_main() const { return name == "main"; }
};

/// A stretch of global memory.
struct Region {
    std::uint64_t start = 0;
    std::uint64_t size = 0;

    [[nodiscard]] bool holds(const Value& value) const {
        return *value.address >= start && value.bytes <= size &&
               *value.address - start <= size - value.bytes;
    }
    [[nodiscard]] std::uint64_t end() const { return start + size; }
};

/// One device's module.
struct DeviceProgram {
    std::string name;
    Region coefficients, neurons;
    std::optional<Region> io;
    std::optional<std::uint64_t> dynamic_coefficients;  ///< where those of dynamic functions begin
    std::vector<Function> functions;

    [[nodiscard]] const Function* main() const;
    [[nodiscard]] const Function* find(std::string_view function) const;
};

struct FinalProgram {
    std::string name;
    std::string chip;  ///< in lower case
    std::string state;
    std::string address_mode;  ///< empty before 2024
    std::string weight_file;
    std::vector<std::string> inputs,
        outputs;                        ///< as the module lists them; before 2024 it does not
    bool names_are_attributes = false;  ///< the form of 2022
    std::vector<DeviceProgram> devices;
    std::vector<Value> values;

    [[nodiscard]] const Value& at(ValueIndex index) const { return values[index]; }
};

/// A kind of call in main: "call" for programs of all years.
inline constexpr std::string_view call_kind = "func.call";
/// The function that a call operator of main calls is named in Operator::kind behind the '@':
/// "func.call@subfunc_0".
[[nodiscard]] std::string_view callee_of(const Operator& op);

}  // namespace reef::sophgo
