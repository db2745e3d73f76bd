#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "sophgo/final/check.h"
#include "sophgo/final/plan.h"

namespace reef::sophgo {
namespace {

using Ids = std::set<std::int64_t>;

/// Without the rows' negative numbers.
Ids ids_in(const std::vector<std::int64_t>& list) {
    Ids out;
    std::ranges::copy_if(list, std::inserter(out, out.end()), [](auto id) { return id >= 0; });
    return out;
}

std::string ids_text(const Ids& ids) {
    return ids.empty() ? "nothing" : fmt::format("{}", fmt::join(ids, ", "));
}

/// [0] stands for a schedule that the code generator finds itself; it reads no lists then.
bool has_rows(const Operator& group) {
    return !group.flow.empty() && !(group.flow.size() == 1 && group.flow[0] == 0);
}

class GroupChecks {
  public:
    GroupChecks(const FinalProgram& program, const Function& function)
        : program_(program), function_(function) {}

    std::vector<chip::Finding> run() {
        collect_readers();
        const Operator* before = nullptr;
        for (const Operator& op : function_.operators) {
            if (is_constant(op) || op.is("tpu.Buffer")) continue;
            if (op.is("tpu.Group")) check_group(op);
            check_neighbours(before, &op);
            before = &op;
        }
        check_neighbours(before, nullptr);
        return std::move(findings_);
    }

  private:
    void fault(std::string rule, const Operator& op, std::string what) {
        const std::string& name =
            op.results.empty() ? program_.name : program_.at(op.results[0]).name;
        findings_.push_back(
            {std::move(rule), fmt::format("{} {}", op.kind, name), std::move(what), true});
    }

    void collect_readers() {
        const auto visit = [&](const auto& self, const Operator& op) -> void {
            read_.insert(op.operands.begin(), op.operands.end());
            for (const Operator& inner : op.body) self(self, inner);
        };
        for (const Operator& op : function_.operators) visit(visit, op);
        read_.insert(function_.returned.begin(), function_.returned.end());
    }

    void check_group(const Operator& group) {
        for (const ValueIndex result : group.results)
            if (!read_.contains(result))
                fault(
                    "group", group,
                    fmt::format("nobody reads its result {}; the code generator looks at who does",
                                program_.at(result).name));
        if (group.body.empty() || !group.body.back().is("tpu.Yield"))
            return fault("group", group, "it does not end with tpu.Yield");
        const Operator& yield = group.body.back();
        if (yield.operands.size() != group.results.size())
            return fault(
                "group", group,
                fmt::format("{} results, {} yielded", group.results.size(), yield.operands.size()));
        for (std::size_t i = 0; i < group.results.size(); ++i) {
            const Value& stored = program_.at(yield.operands[i]);
            const Value& result = program_.at(group.results[i]);
            if (stored.type != result.type || stored.address != result.address)
                fault("group", group,
                      fmt::format("result {} is {}, stored is {}", i, result.type, stored.type));
        }
        if (has_rows(group)) check_flow(group);
    }

    // Every id once, in rows that count -1, -2, ... The ids are 0, 1, ...: the code generator looks
    // for one after the other, and for ever for one that is not there.
    void check_flow(const Operator& group) {
        Ids ids, flow;
        for (const Operator& op : group.body)
            if (op.id && !ids.insert(*op.id).second)
                return fault("flow", group, fmt::format("two operators with id {}", *op.id));
        std::int64_t row = 0;
        for (const std::int64_t id : group.flow) {
            if (id < 0) {
                if (id != --row)
                    return fault("flow", group, fmt::format("row {} follows {}", id, row + 1));
            } else if (!flow.insert(id).second) {
                return fault("flow", group, fmt::format("id {} twice", id));
            }
        }
        for (const std::int64_t id : ids)
            if (!flow.contains(id)) fault("flow", group, fmt::format("id {} is missing", id));
        for (const std::int64_t id : flow)
            if (!ids.contains(id)) fault("flow", group, fmt::format("no operator has id {}", id));
        if (!ids.empty() && (*ids.begin() != 0 || *ids.rbegin() + 1 != std::ssize(ids)))
            fault(
                "flow", group,
                fmt::format("the ids of {} operators are not 0 to {}", ids.size(), ids.size() - 1));
        check_left(group, group.overlaps.self_up, "tpu.Load");
        check_left(group, group.overlaps.self_down, "tpu.Store");
        check_rows(group, group.overlaps.other_up, -row);
        check_rows(group, group.overlaps.other_down, -row);
    }

    /// What it leaves to a neighbour is its own.
    void check_left(const Operator& group, const std::vector<std::int64_t>& list,
                    std::string_view kind) {
        for (const std::int64_t id : list)
            if (std::ranges::none_of(
                    group.body, [&](const Operator& op) { return op.id == id && op.is(kind); }))
                fault(
                    "group-overlap", group,
                    fmt::format("it leaves id {} to a neighbour, which is no {} of it", id, kind));
    }

    /// What stands behind a row that the flow has not is never run.
    void check_rows(const Operator& group, const std::vector<std::int64_t>& list,
                    std::int64_t rows) {
        if (!list.empty() && list.front() >= 0)
            fault("group-overlap", group,
                  fmt::format("id {} of a neighbour stands in no row", list.front()));
        for (const std::int64_t id : list)
            if (id < -rows)
                fault("group-overlap", group,
                      fmt::format("it runs operators of a neighbour in row {} of {}", -id, rows));
    }

    /// A Load or Store that a group leaves to its neighbour is in that one's list.
    void check_neighbours(const Operator* before, const Operator* behind) {
        static const Operator none;
        const auto group = [](const Operator* op) {
            return op != nullptr && op->is("tpu.Group") && has_rows(*op) ? op : &none;
        };
        const Operator &a = *group(before), &b = *group(behind);
        compare(b, ids_in(b.overlaps.self_up), a, ids_in(a.overlaps.other_up), "before");
        compare(a, ids_in(a.overlaps.self_down), b, ids_in(b.overlaps.other_down), "behind");
    }

    void compare(const Operator& left, const Ids& leaves, const Operator& other, const Ids& runs,
                 std::string_view where) {
        if (leaves == runs) return;
        const Operator& place = left.kind.empty() ? other : left;
        fault("group-overlap", place,
              fmt::format("left to the group {}: {}; run there: {}", where, ids_text(leaves),
                          ids_text(runs)));
    }

    const FinalProgram& program_;
    const Function& function_;
    std::set<ValueIndex> read_;
    std::vector<chip::Finding> findings_;
};

}  // namespace

std::vector<chip::Finding> check_groups(const FinalProgram& program, const Function& function) {
    return GroupChecks(program, function).run();
}

}  // namespace reef::sophgo
