#include "sophgo/memory_oracle.h"

#include <algorithm>
#include <set>

namespace reef::sophgo {
namespace {

bool shares_on_purpose(const std::string& kind) {
    static const std::set<std::string> kinds = {
        "tpu.Reshape",        "tpu.Slice",     "tpu.Concat",   "tpu.Identity",
        "tpu.AutoIncrease",   "tpu.Insert",    "tpu.Loop",     "tpu.ConcatSlice",
        "tpu.BatchNormTrain", "tpu.CoreSplit", "tpu.CoreJoin", "tpu.Weight2Activation"};
    return kinds.contains(kind);
}

void operands_of(const Operator& op, std::set<ValueIndex>& out) {
    for (const ValueIndex operand : op.operands) out.insert(operand);
    for (const Operator& inner : op.body) operands_of(inner, out);
}

}  // namespace

std::string MemoryOracle::harm_of(const FinalProgram& program) {
    for (const DeviceProgram& device : program.devices) {
        MemoryOracle oracle(program, device);
        oracle.run();
        if (!oracle.harm_.empty()) return oracle.harm_;
    }
    return {};
}

void MemoryOracle::report(const std::string& what) {
    if (harm_.empty()) harm_ = what;
}

void MemoryOracle::destroy(const Range& range) {
    fill(range, 0, 0);
}

// Splits what lies across the ends, then puts one piece in.
void MemoryOracle::fill(Range range, std::size_t root, std::uint64_t offset) {
    if (range.start >= range.end) return;
    for (const std::uint64_t at : {range.start, range.end}) {
        auto after = memory_.upper_bound(at);
        if (after == memory_.begin()) continue;
        auto piece = std::prev(after);
        if (piece->first < at && piece->second.end > at) {
            const Piece tail{piece->second.end, piece->second.root,
                             piece->second.offset + (at - piece->first)};
            piece->second.end = at;
            memory_[at] = tail;
        }
    }
    memory_.erase(memory_.lower_bound(range.start), memory_.lower_bound(range.end));
    memory_[range.start] = {range.end, root, offset};
}

// As pieces whose `end` counts from the range's start.
std::vector<MemoryOracle::Piece> MemoryOracle::content(const Range& range) const {
    std::vector<Piece> out;
    const auto add = [&](std::uint64_t end, std::size_t root, std::uint64_t offset,
                         std::uint64_t begin) {
        // Neighbours of one content are one piece.
        if (!out.empty() && out.back().root == root) {
            const std::uint64_t before = out.size() > 1 ? out[out.size() - 2].end : 0;
            if (root == 0 || out.back().offset + (begin - before) == offset) {
                out.back().end = end;
                return;
            }
        }
        out.push_back({end, root, root == 0 ? 0 : offset});
    };
    std::uint64_t at = range.start;
    auto piece = memory_.upper_bound(range.start);
    if (piece != memory_.begin()) --piece;
    for (; piece != memory_.end() && piece->first < range.end; ++piece) {
        if (piece->second.end <= at) continue;
        const std::uint64_t begin = std::max(at, piece->first),
                            end = std::min(range.end, piece->second.end);
        if (begin > at) add(begin - range.start, 0, 0, at - range.start);
        add(end - range.start, piece->second.root, piece->second.offset + (begin - piece->first),
            begin - range.start);
        at = end;
    }
    if (at < range.end) add(range.end - range.start, 0, 0, at - range.start);
    return out;
}

void MemoryOracle::read(ValueIndex index, const std::string& who) {
    const Value& value = program_.at(index);
    const auto known = expected_.find(index);
    if (known == expected_.end() || !value.in_memory()) return;
    const auto found = content({*value.address, value.end()});
    const auto equal = [](const Piece& a, const Piece& b) {
        return a.end == b.end && a.root == b.root && a.offset == b.offset;
    };
    if (!std::ranges::equal(found, known->second, equal))
        report(who + " reads others' bytes in " + value.name);
}

// Bytes in `kept` stay as they are: the operator works in place.
void MemoryOracle::write(ValueIndex index, const std::string& who, const std::vector<Range>& kept) {
    const Value& value = program_.at(index);
    if (!value.in_memory()) return;
    const Range range{*value.address, value.end()};
    const auto inside = [&](const Region& region) {
        return range.start >= region.start && range.end <= region.start + region.size;
    };
    const bool on_chip = range.end <= 0x101fb000ULL || range.start >= (30ULL << 40);
    if (!inside(device_.neurons) && !(device_.io && inside(*device_.io)) && !on_chip)
        report(who + " writes outside the regions: " + value.name);
    const std::size_t root = next_root_++;
    std::uint64_t at = range.start;
    std::vector<Range> sorted = kept;
    std::ranges::sort(sorted, {}, &Range::start);
    for (const Range& hole : sorted) {
        fill({at, std::min(std::max(at, hole.start), range.end)}, root, at - range.start);
        at = std::max(at, std::min(hole.end, range.end));
    }
    fill({at, range.end}, root, at - range.start);
    expected_[index] = content(range);
}

void MemoryOracle::run_operator(const Operator& op) {
    if (op.kind == "top.None") return;
    const std::string who =
        op.kind + (op.results.empty() ? "" : " " + program_.at(op.results[0]).name);
    if (op.kind == "top.Weight") {
        const Value& weight = program_.at(op.results[0]);
        if (weight.in_memory() && (*weight.address < device_.coefficients.start ||
                                   weight.end() > device_.coefficients.end()))
            report(who + " lies outside the coefficients");
        return;
    }
    if (op.kind == "tpu.Buffer") {
        for (const ValueIndex result : op.results) scratch_[result] = true;
        return;
    }
    std::set<ValueIndex> operands;
    operands_of(op, operands);
    std::vector<ValueIndex> fresh;
    for (const ValueIndex operand : operands) {
        if (scratch_.contains(operand) && scratch_[operand]) {
            scratch_[operand] = false;
            fresh.push_back(operand);
        } else {
            read(operand, who);
        }
    }
    if (op.kind == "tpu.Reshape" &&
        program_.at(op.operands[0]).address != program_.at(op.results[0]).address &&
        program_.at(op.results[0]).in_memory() && !program_.names_are_attributes)
        report(who + " would have to copy");
    const bool in_place = shares_on_purpose(op.kind);
    std::vector<Range> written;
    std::vector<ValueIndex> all = fresh;
    all.insert(all.end(), op.results.begin(), op.results.end());
    for (const ValueIndex result : all) {
        const Value& value = program_.at(result);
        if (!value.in_memory()) continue;
        const Range range{*value.address, value.end()};
        std::vector<Range> kept;
        for (const ValueIndex operand : operands) {
            const Value& other = program_.at(operand);
            if (operand == result || !expected_.contains(operand) || !other.in_memory()) continue;
            if (*other.address >= range.end || other.end() <= range.start) continue;
            if (in_place)
                kept.push_back(
                    {std::max(range.start, *other.address), std::min(range.end, other.end())});
            else
                report(who + " writes over what it reads: " + other.name);
        }
        write(result, who, kept);
        for (const Range& before : written)
            destroy({std::max(before.start, range.start), std::min(before.end, range.end)});
        written.push_back(range);
    }
}

void MemoryOracle::run_function(const Operator& call, const Function& function) {
    for (std::size_t i = 0; i < std::min(call.operands.size(), function.arguments.size()); ++i) {
        if (program_.at(call.operands[i]).address != program_.at(function.arguments[i]).address)
            report("the call of " + function.name + " passes another address");
        if (expected_.contains(call.operands[i]))
            expected_[function.arguments[i]] = expected_[call.operands[i]];
    }
    for (const Operator& op : function.operators) {
        run_operator(op);
        if (op.kind != "tpu.Group" || op.body.empty()) continue;
        const Operator& yield = op.body.back();
        for (std::size_t i = 0; i < std::min(yield.operands.size(), op.results.size()); ++i)
            if (program_.at(yield.operands[i]).address != program_.at(op.results[i]).address)
                report("a group stores elsewhere: " + program_.at(op.results[i]).name);
    }
    for (std::size_t i = 0; i < std::min(call.results.size(), function.returned.size()); ++i) {
        read(function.returned[i], function.name);
        if (program_.at(call.results[i]).address != program_.at(function.returned[i]).address)
            report("the call of " + function.name + " gives another address");
        if (expected_.contains(function.returned[i]))
            expected_[call.results[i]] = expected_[function.returned[i]];
    }
}

void MemoryOracle::run() {
    const Function* main = nullptr;
    for (const Function& function : device_.functions)
        if (function.name == "main") main = &function;
    if (main == nullptr) return report("no main");
    std::vector<Range> inputs;
    for (const Operator& op : main->operators) {
        if (op.kind.starts_with("func.call@")) {
            for (const Function& function : device_.functions)
                if (function.name == op.kind.substr(10)) run_function(op, function);
            continue;
        }
        for (const ValueIndex result : op.results) {
            const Value& value = program_.at(result);
            if (!value.in_memory()) continue;
            write(result, op.kind, {});
            const Range range{*value.address, value.end()};
            for (const Range& before : inputs)
                destroy({std::max(before.start, range.start), std::min(before.end, range.end)});
            inputs.push_back(range);
        }
    }
    for (const ValueIndex value : main->returned) read(value, "the host");
}

}  // namespace reef::sophgo
