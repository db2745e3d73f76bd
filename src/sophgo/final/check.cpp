#include "sophgo/final/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sophgo/final/chips.h"
#include "sophgo/final/plan.h"

namespace reef::sophgo {
namespace {

using chip::Finding;

/// The rules on one device's module.
class Checks {
  public:
    Checks(const FinalProgram& program, const DeviceProgram& device)
        : program_(program), device_(device), plan_(plan_of(program, device)) {}

    std::vector<Finding> run() {
        check_calls();
        for (const Function& function : device_.functions) {
            if (function.is_main()) continue;
            for (const Operator& op : function.operators) check_operator(op);
            for (Finding& one : check_groups(program_, function))
                findings_.push_back(std::move(one));
        }
        check_inputs();
        check_coefficients();
        check_regions();
        check_alignment();
        check_overlaps();
        check_outputs();
        return std::move(findings_);
    }

    [[nodiscard]] std::size_t values() const { return plan_.extents.size(); }

  private:
    void fault(std::string rule, std::string place, std::string what) {
        findings_.push_back({std::move(rule), std::move(place), std::move(what), true});
    }
    [[nodiscard]] const std::string& name(ValueIndex value) const {
        return program_.at(value).name;
    }
    [[nodiscard]] std::string place(const Operator& op) const {
        return op.results.empty() ? op.kind : fmt::format("{} {}", op.kind, name(op.results[0]));
    }
    [[nodiscard]] std::string range(ValueIndex value) const {
        const Value& it = program_.at(value);
        return fmt::format("[{:#x}, {:#x})", it.address.value_or(0), it.end());
    }

    void check_types(const std::string& where, std::string_view what,
                     const std::vector<ValueIndex>& a, const std::vector<ValueIndex>& b) {
        if (a.size() != b.size())
            return fault("call-types", where,
                         fmt::format("{} {}, {} there", a.size(), what, b.size()));
        for (std::size_t i = 0; i < a.size(); ++i)
            if (program_.at(a[i]).type != program_.at(b[i]).type ||
                program_.at(a[i]).address != program_.at(b[i]).address)
                fault("call-types", where,
                      fmt::format("{} {} is {}, there it is {}", what, i, program_.at(a[i]).type,
                                  program_.at(b[i]).type));
    }

    void check_calls() {
        std::map<std::string_view, int> calls;
        for (const Operator& op : device_.main()->operators) {
            const std::string_view callee = callee_of(op);
            if (callee.empty()) continue;
            const Function* function = device_.find(callee);
            const std::string where = fmt::format("call of {}", callee);
            if (function == nullptr) {
                fault("call-types", where, "there is no such function");
                continue;
            }
            if (++calls[callee] > 1) fault("call-types", where, "it is called twice");
            check_types(where, "operands", op.operands, function->arguments);
            check_types(where, "results", op.results, function->returned);
        }
    }

    // The host's tensors have no address; each becomes one input of the network.
    void check_inputs() {
        std::map<ValueIndex, int> read;
        std::set<std::string> names;
        for (const Operator& op : device_.main()->operators) {
            for (const ValueIndex operand : op.operands) ++read[operand];
            if (!op.is("top.Input")) continue;
            for (const ValueIndex result : op.results) names.insert(name(result));
        }
        std::size_t number = 0;
        for (const ValueIndex argument : device_.main()->arguments) {
            const std::string where = fmt::format("argument {} of main", number++);
            const bool input = std::ranges::any_of(device_.main()->operators, [&](const auto& op) {
                return op.is("top.Input") && op.operands == std::vector{argument};
            });
            if (!input)
                fault("inputs", where, "no top.Input reads it");
            else if (read[argument] != 1)
                fault("inputs", where,
                      fmt::format("read {} times, which a top.Input alone may", read[argument]));
            if (program_.at(argument).address)
                fault("inputs", where, "it has an address, but is the host's");
        }
        if (program_.devices.size() == 1 && !program_.inputs.empty())
            compare_names("inputs", program_.inputs, names, "main has no such input");
    }

    /// What the module lists, and what main has.
    void compare_names(const std::string& rule, const std::vector<std::string>& listed,
                       const std::set<std::string>& names, std::string_view missing) {
        const std::set<std::string> known(listed.begin(), listed.end());
        for (const std::string& one : known)
            if (!names.contains(one))
                fault(rule, one, fmt::format("named in module.{}, but {}", rule, missing));
        for (const std::string& one : names)
            if (!known.contains(one))
                fault(rule, one,
                      fmt::format("module.{} does not name it: the runtime would hide it", rule));
    }

    void check_operator(const Operator& op) {
        if (op.is("tpu.Reshape") && !op.operands.empty() && !op.results.empty()) {
            const Value& in = program_.at(op.operands[0]);
            const Value& out = program_.at(op.results[0]);
            // Files of 2022 have Reshapes that copy.
            if (in.in_memory() && out.in_memory() && in.address != out.address &&
                !program_.names_are_attributes)
                fault("reshape", place(op),
                      fmt::format("it moves nothing, but reads {:#x} and gives {:#x}", *in.address,
                                  *out.address));
        }
    }

    void check_coefficients() {
        for (const Function& function : device_.functions)
            for (const Operator& op : function.operators)
                if (op.is("top.Weight") && !op.results.empty() &&
                    program_.at(op.results[0]).in_memory() &&
                    !device_.coefficients.holds(program_.at(op.results[0])))
                    fault("coefficients", place(op),
                          fmt::format("{} leaves the coefficients' [{:#x}, {:#x})",
                                      range(op.results[0]), device_.coefficients.start,
                                      device_.coefficients.end()));
    }

    void check_regions() {
        for (std::size_t i = 0; i < plan_.extents.size(); ++i) {
            const Extent& extent = plan_.extents[i];
            const Value& value = program_.at(extent.value);
            if (device_.neurons.holds(value) || (device_.io && device_.io->holds(value)) ||
                in_local_memory(program_.chip, value) || is_view_of_weight(extent))
                continue;
            fault("region", where(extent),
                  fmt::format("{} is in no region for activations", range(extent.value)));
        }
    }

    // The allocator gives whole blocks; what lies elsewhere runs, but nobody meant it. A view may
    // begin anywhere in its source.
    void check_alignment() {
        const auto note = [&](std::string place, std::uint64_t address) {
            if (address % block_bytes == 0) return;
            findings_.push_back({"alignment", std::move(place),
                                 fmt::format("{:#x} is not 4 KB aligned", address), false});
        };
        note("module.coeff_addr", device_.coefficients.start);
        note("module.neuron_addr", device_.neurons.start);
        if (device_.io) note("module.io_addr", device_.io->start);
        for (const Extent& extent : plan_.extents)
            if (extent.writer == nullptr || !works_in_place(*extent.writer))
                note(where(extent), extent.start);
        for (const Function& function : device_.functions)
            for (const Operator& op : function.operators)
                if (op.is("top.Weight") && !op.results.empty())
                    note(place(op), program_.at(op.results[0]).address.value_or(0));
    }

    [[nodiscard]] bool is_view_of_weight(const Extent& extent) const {
        return extent.writer != nullptr && works_in_place(*extent.writer) &&
               device_.coefficients.holds(program_.at(extent.value));
    }

    [[nodiscard]] std::string where(const Extent& extent) const {
        return extent.writer == nullptr
                   ? name(extent.value)
                   : fmt::format("{} {}", extent.writer->kind, name(extent.value));
    }

    void check_overlaps() {
        for (const auto& [kept, writing] : plan_.overlaps()) {
            const Extent& a = plan_.extents[kept];
            const Extent& b = plan_.extents[writing];
            fault("overlap", where(b),
                  fmt::format("{} is written over {} of {}, which is still {}", range(b.value),
                              range(a.value), name(a.value),
                              a.last_read == Extent::after_all ? "an output" : "read"));
        }
    }

    void check_outputs() {
        if (program_.address_mode == "io_alone" && device_.io)
            for (const std::size_t extent : plan_.outputs)
                if (extent < plan_.extents.size() &&
                    !device_.io->holds(program_.at(plan_.extents[extent].value)))
                    fault("io", name(plan_.extents[extent].value),
                          "an output outside the region of inputs and outputs, which the runtime "
                          "moves (io_alone)");
        if (program_.devices.size() != 1 || program_.outputs.empty()) return;
        std::set<std::string> results;
        for (const ValueIndex value : device_.main()->returned)
            if (const std::string& one = name_behind(value); !is_dumped(one)) results.insert(one);
        compare_names("outputs", program_.outputs, results, "main does not return it");
    }

    /// Copies for debugging, which are outputs without being listed.
    [[nodiscard]] bool is_dumped(const std::string& tensor) const {
        for (const Function& function : device_.functions)
            for (const Operator& op : function.operators)
                if (op.is("tpu.OutBuffer") && !op.results.empty() && name(op.results[0]) == tensor)
                    return true;
        return false;
    }

    /// Call results have no location of their own: the callee's value.
    [[nodiscard]] std::string name_behind(ValueIndex value) const {
        for (const Operator& op : device_.main()->operators) {
            const Function* callee = device_.find(callee_of(op));
            if (callee == nullptr) continue;
            for (std::size_t i = 0; i < std::min(op.results.size(), callee->returned.size()); ++i)
                if (op.results[i] == value) return name(callee->returned[i]);
        }
        return name(value);
    }

    const FinalProgram& program_;
    const DeviceProgram& device_;
    AddressPlan plan_;
    std::vector<Finding> findings_;
};

}  // namespace

chip::CheckReport check_program(const FinalProgram& program) {
    chip::CheckReport report;
    std::size_t values = 0;
    for (const DeviceProgram& device : program.devices) {
        Checks checks(program, device);
        for (Finding& one : checks.run()) {
            if (program.devices.size() > 1) one.place = device.name + ": " + one.place;
            report.findings.push_back(std::move(one));
        }
        values += checks.values();
        const std::uint64_t needed = coefficient_bytes(program, device);
        if (needed < device.coefficients.size)
            report.findings.push_back({"coefficient-size", device.name,
                                       fmt::format("module.coeff_size is {}, {} would do",
                                                   device.coefficients.size, needed),
                                       false});
    }
    auto& section = report.sections.emplace_back(chip::Section{"Checked", {}, {}});
    section.add("chip", program.chip);
    section.add("values", fmt::format("{} in memory", values));
    report.document = {{"chip", program.chip}, {"values", values}};
    return report;
}

}  // namespace reef::sophgo
