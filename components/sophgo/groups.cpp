#include "groups.h"

#include <algorithm>
#include <map>

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Builders.h"
#include "reader.h"

namespace reef::sophgo {
namespace {

using mlir::dyn_cast;
using mlir::dyn_cast_or_null;

constexpr const char* overlap_lists[] = {"self_up_overlap_op", "self_down_overlap_op",
                                         "other_up_overlap_op", "other_down_overlap_op"};

std::vector<mlir::Operation*> groups_of(mlir::func::FuncOp function) {
    std::vector<mlir::Operation*> groups;
    for (mlir::Operation& op : function.getBody().front())
        if (is_kind(&op, "tpu.Group")) groups.push_back(&op);
    return groups;
}

/// [0] stands for a schedule that the code generator finds itself.
bool has_flow(mlir::Operation* group) {
    auto flow = group->getAttrOfType<mlir::ArrayAttr>("flow");
    return flow && flow.size() > 1;
}

bool is_dead(mlir::Operation& op) {
    return !op.hasTrait<mlir::OpTrait::IsTerminator>() && !is_kind(&op, "tpu.Yield") &&
           op.use_empty();
}

/// The ids that are left count from 0 again, in the order of the operators: the code generator
/// looks for one after the other. Returns the new ones by the old.
std::map<std::int64_t, std::int64_t> renumber(mlir::Block& block) {
    std::map<std::int64_t, std::int64_t> fresh;
    for (mlir::Operation& op : block) {
        const auto id = group_id(&op);
        if (!id) continue;
        const auto next = static_cast<std::int64_t>(fresh.size());
        set_group_id(&op, fresh.emplace(*id, next).first->second);
    }
    return fresh;
}

/// Rows stay in order; empty ones go, the rest counts -1, -2, ... again.
mlir::ArrayAttr flow_of(mlir::ArrayAttr flow, const std::map<std::int64_t, std::int64_t>& ids) {
    mlir::OpBuilder builder(flow.getContext());
    mlir::SmallVector<mlir::Attribute> out;
    std::int64_t rows = 0;
    bool row_pending = false;
    for (mlir::Attribute one : flow) {
        const std::int64_t id = mlir::cast<mlir::IntegerAttr>(one).getInt();
        const auto kept = ids.find(id);
        if (id < 0) {
            row_pending = true;
        } else if (kept != ids.end()) {
            if (row_pending) out.push_back(builder.getI64IntegerAttr(--rows));
            row_pending = false;
            out.push_back(builder.getI64IntegerAttr(kept->second));
        }
    }
    return builder.getArrayAttr(out);
}

mlir::Location location_of(mlir::Operation* op, const std::vector<unsigned>& kept) {
    auto fused = dyn_cast<mlir::FusedLoc>(op->getLoc());
    if (!fused) return op->getLoc();
    mlir::SmallVector<mlir::Location> parts;
    for (const unsigned i : kept)
        if (i < fused.getLocations().size()) parts.push_back(fused.getLocations()[i]);
    return parts.size() == 1 ? parts.front()
                             : mlir::FusedLoc::get(op->getContext(), parts, fused.getMetadata());
}

void erase_dead_inside(mlir::Block& block) {
    for (mlir::Operation& op : llvm::make_early_inc_range(llvm::reverse(block)))
        if (is_dead(op)) op.erase();
}

/// The same group with these of its results alone.
void rebuild_group(mlir::Operation* group, const std::vector<unsigned>& kept) {
    mlir::Region& region = group->getRegion(0);
    mlir::OperationState state(location_of(group, kept), group->getName());
    for (mlir::Value operand : group->getOperands())
        if (llvm::any_of(operand.getUsers(),
                         [&](mlir::Operation* user) { return group->isProperAncestor(user); }))
            state.addOperands(operand);
    for (const unsigned i : kept) state.addTypes(group->getResult(i).getType());
    state.addAttributes(group->getAttrs());
    mlir::Region* body = state.addRegion();
    body->takeBody(region);
    mlir::OpBuilder builder(group);
    mlir::Operation* fresh = builder.create(state);
    for (std::size_t i = 0; i < kept.size(); ++i)
        group->getResult(kept[i]).replaceAllUsesWith(fresh->getResult(static_cast<unsigned>(i)));
    group->erase();
}

std::vector<std::string> prune_group(mlir::Operation* group) {
    std::vector<std::string> names;
    std::vector<unsigned> kept;
    for (mlir::OpResult result : group->getResults()) {
        if (result.use_empty())
            names.push_back(name_of(result));
        else
            kept.push_back(result.getResultNumber());
    }
    if (names.empty()) return names;
    mlir::Block& block = group->getRegion(0).front();
    mlir::Operation* yield = &block.back();
    mlir::SmallVector<mlir::Value> yielded;
    for (const unsigned i : kept) yielded.push_back(yield->getOperand(i));
    yield->setLoc(location_of(yield, kept));
    yield->setOperands(yielded);
    erase_dead_inside(block);
    group->setAttr("flow", flow_of(group->getAttrOfType<mlir::ArrayAttr>("flow"), renumber(block)));
    rebuild_group(group, kept);
    return names;
}

}  // namespace

std::size_t erase_dead(mlir::func::FuncOp function) {
    std::size_t erased = 0;
    for (mlir::Operation& op :
         llvm::make_early_inc_range(llvm::reverse(function.getBody().front()))) {
        if (!is_dead(op)) continue;
        if (op.getName().getStringRef().starts_with("tpu.")) ++erased;
        op.erase();
    }
    return erased;
}

std::vector<std::string> prune_group_results(mlir::func::FuncOp function) {
    std::vector<std::string> names;
    for (mlir::Operation* group : groups_of(function)) {
        if (!has_flow(group)) continue;
        for (std::string& name : prune_group(group)) names.push_back(std::move(name));
    }
    return names;
}

std::vector<std::string> keep_group_results(mlir::func::FuncOp function) {
    std::vector<std::string> names;
    for (mlir::Operation* group : groups_of(function)) {
        mlir::OpBuilder builder(group->getContext());
        builder.setInsertionPointAfter(group);
        for (mlir::OpResult result : group->getResults()) {
            if (!result.use_empty()) continue;
            mlir::Location place = result.getLoc();
            if (auto fused = dyn_cast<mlir::FusedLoc>(place);
                fused && result.getResultNumber() < fused.getLocations().size())
                place = fused.getLocations()[result.getResultNumber()];
            mlir::OperationState state(place, "tpu.Reshape");
            state.addOperands(result);
            state.addTypes(result.getType());
            state.addAttribute("flatten_start_dim", builder.getI64IntegerAttr(-1));
            state.addAttribute("shape", builder.getArrayAttr({}));
            if (auto name = group->getAttrOfType<mlir::StringAttr>("name"))  // 2022
                state.addAttribute("name", name);
            builder.create(state);
            names.push_back(name_of(result));
        }
    }
    return names;
}

std::size_t reset_overlaps(mlir::func::FuncOp function) {
    std::size_t reset = 0;
    for (mlir::Operation* group : groups_of(function)) {
        bool had = false;
        for (const char* list : overlap_lists) {
            auto ids = group->getAttrOfType<mlir::ArrayAttr>(list);
            if (!ids || ids.empty()) continue;
            group->setAttr(list, mlir::ArrayAttr::get(group->getContext(), {}));
            had = true;
        }
        if (had) ++reset;
    }
    return reset;
}

}  // namespace reef::sophgo
