#include "sophgo/final/plan.h"

#include <algorithm>
#include <array>
#include <map>

namespace reef::sophgo {
namespace {

constexpr std::array<std::string_view, 12> in_place_kinds = {
    "tpu.Reshape",           "tpu.Slice",        "tpu.Concat",
    "tpu.Identity",          "tpu.AutoIncrease", "tpu.Insert",
    "tpu.Weight2Activation", "tpu.ConcatSlice",  "tpu.BatchNormTrain",
    "tpu.CoreSplit",         "tpu.CoreJoin",     "tpu.Loop"};

void collect_operands(const Operator& op, std::set<ValueIndex>& out) {
    out.insert(op.operands.begin(), op.operands.end());
    for (const Operator& inner : op.body) collect_operands(inner, out);
}

class PlanBuilder {
  public:
    PlanBuilder(const FinalProgram& program, const DeviceProgram& device)
        : program_(program), device_(device) {}

    AddressPlan build() {
        const Function* main = device_.main();
        if (main == nullptr) return {};
        for (const Operator& op : main->operators) {
            if (const Function* callee = device_.find(callee_of(op))) {
                call(op, *callee);
            } else {
                for (const ValueIndex result : op.results) write(result, &op, Extent::before_all);
            }
        }
        for (const ValueIndex value : main->returned) {
            const auto known = at_.find(value);
            plan_.outputs.push_back(known == at_.end() ? none : known->second);
            if (known != at_.end()) plan_.extents[known->second].last_read = Extent::after_all;
        }
        return std::move(plan_);
    }

  private:
    static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

    void write(ValueIndex value, const Operator* writer, std::int64_t when) {
        const Value& it = program_.at(value);
        if (!it.in_memory()) return;
        at_[value] = plan_.extents.size();
        plan_.extents.push_back({value, writer, *it.address, it.end(), when, Extent::never});
        plan_.shares.emplace_back();
    }

    void read(ValueIndex value) {
        if (scratch_.contains(value)) {
            write(value, scratch_[value], now_);  // its content begins with its first use
            scratch_.erase(value);
        }
        const auto known = at_.find(value);
        if (known == at_.end()) return;
        Extent& extent = plan_.extents[known->second];
        extent.last_read = std::max(extent.last_read, now_);
    }

    void call(const Operator& op, const Function& callee) {
        for (std::size_t i = 0; i < std::min(op.operands.size(), callee.arguments.size()); ++i) {
            const auto passed = at_.find(op.operands[i]);
            const Value& argument = program_.at(callee.arguments[i]);
            if (passed != at_.end() && argument.address == program_.at(op.operands[i]).address)
                at_[callee.arguments[i]] = passed->second;
            else
                write(callee.arguments[i], nullptr, now_);
        }
        for (const Operator& inner : callee.operators) step(inner);
        ++now_;
        for (std::size_t i = 0; i < std::min(op.results.size(), callee.returned.size()); ++i) {
            read(callee.returned[i]);
            const auto known = at_.find(callee.returned[i]);
            if (known != at_.end()) at_[op.results[i]] = known->second;
        }
    }

    void step(const Operator& op) {
        if (is_constant(op)) {
            if (op.is("top.Weight") && !op.results.empty()) weights_.insert(op.results[0]);
            return;
        }
        ++now_;
        if (op.is("tpu.Buffer")) {
            for (const ValueIndex result : op.results) scratch_[result] = &op;
            return;
        }
        std::set<ValueIndex> operands;
        collect_operands(op, operands);
        for (const ValueIndex operand : operands) read(operand);
        for (const ValueIndex result : op.results) {
            write(result, &op, now_);
            if (works_in_place(op) && at_.contains(result)) share(op, at_[result]);
        }
    }

    void share(const Operator& op, std::size_t result) {
        for (const ValueIndex operand : op.operands) {
            const auto known = at_.find(operand);
            if (known == at_.end() || known->second == result) continue;
            if (!plan_.extents[known->second].meets(plan_.extents[result])) continue;
            // What shares memory with a view's source shares it with the view.
            std::set<std::size_t> all = plan_.shares[known->second];
            all.insert(known->second);
            for (const std::size_t other : all) {
                if (other == result || !meet_inside(other, result, known->second)) continue;
                plan_.shares[result].insert(other);
                plan_.shares[other].insert(result);
            }
        }
    }

    /// What `a` and `b` have in common belongs to `whole`, too.
    [[nodiscard]] bool meet_inside(std::size_t a, std::size_t b, std::size_t whole) const {
        const Extent& first = plan_.extents[a];
        const Extent& second = plan_.extents[b];
        const Extent& source = plan_.extents[whole];
        return std::max(first.start, second.start) >= source.start &&
               std::min(first.end, second.end) <= source.end;
    }

    const FinalProgram& program_;
    const DeviceProgram& device_;
    AddressPlan plan_;
    std::map<ValueIndex, std::size_t> at_;
    std::map<ValueIndex, const Operator*> scratch_;  ///< buffers that nobody has used yet
    std::set<ValueIndex> weights_;
    std::int64_t now_ = 0;
};

}  // namespace

bool works_in_place(const Operator& op) {
    return std::ranges::find(in_place_kinds, op.kind) != in_place_kinds.end();
}

bool is_constant(const Operator& op) {
    return op.is("top.Weight") || op.is("top.None");
}

AddressPlan plan_of(const FinalProgram& program, const DeviceProgram& device) {
    return PlanBuilder(program, device).build();
}

std::vector<AddressPlan::Overlap> AddressPlan::overlaps() const {
    std::vector<std::size_t> order(extents.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::size_t i) { return extents[i].start; });
    std::vector<Overlap> found;
    const auto consider = [&](std::size_t kept, std::size_t writing) {
        const Extent& a = extents[kept];
        const Extent& b = extents[writing];
        const bool in_turn = a.written < b.written && a.last_read >= b.written;
        const bool at_once = a.written == b.written && a.last_read > a.written;
        if ((in_turn || at_once) && !shares[kept].contains(writing))
            found.push_back({kept, writing});
    };
    for (std::size_t i = 0; i < order.size(); ++i) {
        for (std::size_t j = i + 1; j < order.size(); ++j) {
            if (extents[order[j]].start >= extents[order[i]].end) break;
            consider(order[i], order[j]);
            consider(order[j], order[i]);
        }
    }
    return found;
}

std::vector<std::size_t> overwritten_outputs(const FinalProgram& program,
                                             const DeviceProgram& device) {
    const AddressPlan plan = plan_of(program, device);
    const auto overlaps = plan.overlaps();
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < plan.outputs.size(); ++i)
        if (std::ranges::any_of(overlaps,
                                [&](const auto& one) { return one.kept == plan.outputs[i]; }))
            out.push_back(i);
    return out;
}

std::uint64_t coefficient_bytes(const FinalProgram& program, const DeviceProgram& device) {
    std::uint64_t end = device.coefficients.start;
    for (const Function& function : device.functions)
        for (const Operator& op : function.operators)
            if (op.is("top.Weight") && !op.results.empty() && program.at(op.results[0]).in_memory())
                end = std::max(end, program.at(op.results[0]).end());
    return in_blocks(end - device.coefficients.start);
}

}  // namespace reef::sophgo
