#include "sophgo/final/parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reef/base/text.h"
#include "reef/sophgo/final_engine.h"
#include "sophgo/final/check.h"
#include "sophgo/final/plan.h"

namespace reef::sophgo {
namespace {

using chip::Array;
using chip::Object;

constexpr std::size_t rows_at_a_glance = 20;

std::string region_text(const Region& region) {
    return fmt::format("[{:#x}, {:#x}), {}", region.start, region.end(),
                       bytes_text(static_cast<std::int64_t>(region.size)));
}

Object region_object(const Region& region) {
    return {{"address", region.start}, {"bytes", region.size}};
}

std::string type_text(const Value& value) {
    return value.element.empty() ? value.type
                                 : fmt::format("{}x{}", fmt::join(value.shape, "x"), value.element);
}

std::string address_text(const Value& value) {
    return value.address ? fmt::format("{:#x}", *value.address) : "";
}

/// A group is one unit.
std::string kind_text(const Operator& op) {
    return op.body.empty() ? op.kind : fmt::format("{} of {}", op.kind, op.body.size());
}

Object value_object(const Value& value) {
    Object object = {{"name", value.name},
                     {"type", value.element.empty() ? value.type : value.element},
                     {"shape", value.shape},
                     {"bytes", value.bytes}};
    object.emplace_back("address", value.address ? chip::Value(*value.address) : chip::Value());
    return object;
}

Array value_objects(const FinalProgram& program, const std::vector<ValueIndex>& list) {
    Array out;
    for (const ValueIndex value : list) out.emplace_back(value_object(program.at(value)));
    return out;
}

Object operator_object(const FinalProgram& program, const Operator& op) {
    Array operands;
    for (const ValueIndex value : op.operands) operands.emplace_back(program.at(value).name);
    Object object = {{"kind", op.kind},
                     {"operands", std::move(operands)},
                     {"results", value_objects(program, op.results)}};
    if (!op.body.empty()) {
        Array body;
        for (const Operator& inner : op.body) body.emplace_back(operator_object(program, inner));
        object.emplace_back("body", std::move(body));
    }
    return object;
}

chip::Section function_section(const FinalProgram& program, const Function& function,
                               chip::Detail detail) {
    chip::Section section{"Function " + function.name, "  " + function.mode, {}};
    chip::Table table{
        {{"", true}, {"operator"}, {"tensor"}, {"type"}, {"address", true}, {"bytes", true}},
        {},
        0};
    std::size_t number = 0;
    for (const Operator& op : function.operators) {
        if (is_constant(op)) continue;
        for (std::size_t r = 0; r < op.results.size(); ++r) {
            const Value& value = program.at(op.results[r]);
            if (detail == chip::Detail::glance && table.rows.size() == rows_at_a_glance) {
                ++table.left_out;
                continue;
            }
            table.rows.push_back({r == 0 ? std::to_string(number) : "", r == 0 ? kind_text(op) : "",
                                  value.name, type_text(value), address_text(value),
                                  value.bytes == 0 ? "" : std::to_string(value.bytes)});
        }
        ++number;
    }
    section.lines.emplace_back(std::move(table));
    return section;
}

chip::Section device_section(const FinalProgram& program, const DeviceProgram& device) {
    chip::Section section{"Address plan", device.name, {}};
    std::size_t weights = 0;
    for (const Function& function : device.functions)
        for (const Operator& op : function.operators) weights += op.is("top.Weight") ? 1 : 0;
    section.add("coefficients",
                fmt::format("{}, {}", region_text(device.coefficients), plural(weights, "weight")));
    section.add("activations", region_text(device.neurons));
    if (device.io) section.add("inputs, outputs", region_text(*device.io));
    for (const Operator& op : device.main()->operators)
        if (op.is("top.Input"))
            for (const ValueIndex value : op.results)
                section.add("input", fmt::format("{}, {} at {}", program.at(value).name,
                                                 type_text(program.at(value)),
                                                 address_text(program.at(value))));
    std::size_t number = 0;
    for (const ValueIndex value : device.main()->returned) {
        const std::string name =
            number < program.outputs.size() ? program.outputs[number] : program.at(value).name;
        section.add("output", fmt::format("{}, {} at {}", name, type_text(program.at(value)),
                                          address_text(program.at(value))));
        ++number;
    }
    return section;
}

Object device_object(const FinalProgram& program, const DeviceProgram& device) {
    Array functions;
    for (const Function& function : device.functions) {
        Array operators;
        for (const Operator& op : function.operators)
            operators.emplace_back(operator_object(program, op));
        functions.emplace_back(Object{{"name", function.name},
                                      {"mode", function.mode},
                                      {"arguments", value_objects(program, function.arguments)},
                                      {"operators", std::move(operators)},
                                      {"returned", value_objects(program, function.returned)}});
    }
    Object object = {{"name", device.name},
                     {"coefficients", region_object(device.coefficients)},
                     {"activations", region_object(device.neurons)},
                     {"coefficient_bytes_needed", coefficient_bytes(program, device)},
                     {"functions", std::move(functions)}};
    if (device.io) object.emplace_back("io", region_object(*device.io));
    return object;
}

template <class Part>
class FinalPart : public Part {
  public:
    [[nodiscard]] std::string_view family() const override { return "sophgo"; }
    [[nodiscard]] std::string_view kind() const override { return "final.mlir"; }
    [[nodiscard]] std::string_view ending() const override { return "mlir"; }
    [[nodiscard]] bool recognises(Bytes file) const override { return is_final_mlir(file); }
};

class Inspector final : public FinalPart<chip::FileInspector> {
  public:
    [[nodiscard]] Result<chip::FileReport> inspect(const SharedBytes& file,
                                                   chip::Detail detail) const override {
        const FinalEngine* engine = REEF_TRY(final_engine());
        return report_of(REEF_TRY(engine->read(as_text(file.view()))), detail);
    }
};

class Checker final : public FinalPart<chip::FileChecker> {
  public:
    [[nodiscard]] Result<chip::CheckReport> check(const SharedBytes& file) const override {
        const FinalEngine* engine = REEF_TRY(final_engine());
        return check_program(REEF_TRY(engine->read(as_text(file.view()))));
    }
};

}  // namespace

// Text that begins as MLIR does, with the module's attributes.
bool is_final_mlir(Bytes file) {
    constexpr std::size_t looked_at = std::size_t{1} << 20;
    const std::string_view text = as_text(file).substr(0, looked_at);
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return false;
    const std::string_view rest = text.substr(first);
    if (!rest.starts_with('#') && !rest.starts_with("module") && !rest.starts_with("//"))
        return false;
    return text.find("module.chip") != std::string_view::npos;
}

chip::FileReport report_of(const FinalProgram& program, chip::Detail detail) {
    chip::FileReport report;
    auto& section = report.sections.emplace_back(chip::Section{"Network", program.name, {}});
    section.add("chip", program.chip);
    section.add("state", program.state);
    if (!program.address_mode.empty()) section.add("address mode", program.address_mode);
    section.add("weights", program.weight_file);
    if (program.names_are_attributes)
        section.lines.emplace_back(chip::Note{"the form of 2022, with names as attributes"});
    Array devices;
    for (const DeviceProgram& device : program.devices) {
        report.sections.push_back(device_section(program, device));
        for (const Function& function : device.functions)
            if (!function.is_main())
                report.sections.push_back(function_section(program, function, detail));
        devices.emplace_back(device_object(program, device));
    }
    report.document = {{"name", program.name},
                       {"chip", program.chip},
                       {"state", program.state},
                       {"address_mode", program.address_mode},
                       {"weight_file", program.weight_file},
                       {"inputs", program.inputs},
                       {"outputs", program.outputs},
                       {"devices", std::move(devices)}};
    return report;
}

std::unique_ptr<chip::FileInspector> final_inspector() {
    return std::make_unique<Inspector>();
}
std::unique_ptr<chip::FileChecker> final_checker() {
    return std::make_unique<Checker>();
}

}  // namespace reef::sophgo
