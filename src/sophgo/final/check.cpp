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
        }
        check_coefficients();
        check_regions();
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
        std::set<ValueIndex> fed;
        for (const Operator& op : device_.main()->operators) {
            if (op.is("top.Input"))
                for (const ValueIndex operand : op.operands)
                    if (!fed.insert(operand).second)
                        fault("inputs", place(op), "its argument feeds another input, too");
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
        for (const ValueIndex argument : device_.main()->arguments)
            if (!fed.contains(argument)) fault("inputs", "main", "an argument feeds no top.Input");
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
        if (op.is("tpu.Group")) check_group(op);
    }

    void check_group(const Operator& group) {
        if (group.body.empty() || !group.body.back().is("tpu.Yield"))
            return fault("group", place(group), "it does not end with tpu.Yield");
        const Operator& yield = group.body.back();
        if (yield.operands.size() != group.results.size())
            return fault(
                "group", place(group),
                fmt::format("{} results, {} yielded", group.results.size(), yield.operands.size()));
        for (std::size_t i = 0; i < group.results.size(); ++i)
            if (program_.at(yield.operands[i]).type != program_.at(group.results[i]).type ||
                program_.at(yield.operands[i]).address != program_.at(group.results[i]).address)
                fault("group", place(group),
                      fmt::format("result {} is {}, stored is {}", i,
                                  program_.at(group.results[i]).type,
                                  program_.at(yield.operands[i]).type));
        check_flow(group);
    }

    // Another flow than [0] has every id once, and rows that count -1, -2, ...
    void check_flow(const Operator& group) {
        if (group.flow.empty() || (group.flow.size() == 1 && group.flow[0] == 0)) return;
        std::set<std::int64_t> ids, flow;
        for (const Operator& op : group.body)
            if (op.id) ids.insert(*op.id);
        std::int64_t row = 0;
        for (const std::int64_t id : group.flow) {
            if (id < 0) {
                if (id != --row)
                    return fault("flow", place(group),
                                 fmt::format("row {} follows {}", id, row + 1));
            } else if (!flow.insert(id).second) {
                return fault("flow", place(group), fmt::format("id {} twice", id));
            }
        }
        for (const std::int64_t id : ids)
            if (!flow.contains(id))
                fault("flow", place(group), fmt::format("id {} is missing", id));
        for (const std::int64_t id : flow)
            if (!ids.contains(id))
                fault("flow", place(group), fmt::format("no operator has id {}", id));
        for (const std::int64_t id : group.overlaps)
            if (id < 0) fault("flow", place(group), fmt::format("overlap with id {}", id));
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
        std::set<std::string> results;
        for (const ValueIndex value : device_.main()->returned) results.insert(name_behind(value));
        for (const std::string& output : program_.outputs)
            if (program_.devices.size() == 1 && !results.contains(output))
                fault("outputs", output, "module.outputs names what main does not return");
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
