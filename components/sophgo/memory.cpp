#include "memory.h"

#include <fmt/format.h>

#include <array>

#include "llvm/ADT/SetVector.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "reader.h"

namespace reef::sophgo {
namespace {

using mlir::dyn_cast;
using mlir::isa;

// Those whose result may lie in an operand's memory by more than a view that could be a copy.
constexpr std::array<std::string_view, 8> fixed_kinds = {
    "tpu.Identity",    "tpu.AutoIncrease",   "tpu.Insert",    "tpu.Weight2Activation",
    "tpu.ConcatSlice", "tpu.BatchNormTrain", "tpu.CoreSplit", "tpu.CoreJoin"};

bool is_fixed(mlir::Operation* op) {
    return llvm::any_of(fixed_kinds, [&](std::string_view kind) { return is_kind(op, kind); });
}

bool in_one_place(mlir::Value a, mlir::Value b) {
    const auto start_a = address_of(a), start_b = address_of(b);
    return start_a && start_b && *start_a == *start_b;
}

mlir::func::CallOp call_of(mlir::func::FuncOp function) {
    mlir::func::CallOp found;
    function->getParentOfType<mlir::ModuleOp>().walk([&](mlir::func::CallOp call) {
        if (call.getCallee() == function.getName()) found = call;
    });
    return found;
}

mlir::func::FuncOp callee_of(mlir::func::CallOp call) {
    return call->getParentOfType<mlir::ModuleOp>().lookupSymbol<mlir::func::FuncOp>(
        call.getCallee());
}

Status refuse(mlir::Value value, std::string_view why) {
    return fail(Cause::unsupported,
                fmt::format("'{}' would have to move, and {}", name_of(value), why), {},
                "cut at one tensor at a time, or at another one");
}

/// What lies where a value lies.
class AliasClass {
  public:
    Status grow(mlir::Value root) {
        members_.insert(root);
        for (std::size_t i = 0; i < members_.size(); ++i) {
            const mlir::Value value = members_[i];
            REEF_CHECK(look_at_definition(value));
            for (mlir::OpOperand& use : value.getUses()) REEF_CHECK(look_at_use(value, use));
        }
        return {};
    }
    [[nodiscard]] auto& members() const { return members_; }

  private:
    Status look_at_definition(mlir::Value value) {
        auto argument = dyn_cast<mlir::BlockArgument>(value);
        if (argument) {
            auto function = dyn_cast<mlir::func::FuncOp>(argument.getOwner()->getParentOp());
            if (!function) return refuse(value, "it is an argument of a region");
            if (auto call = call_of(function))
                members_.insert(call.getOperand(argument.getArgNumber()));
            return {};
        }
        mlir::Operation* op = value.getDefiningOp();
        if (is_kind(op, "top.Input")) return refuse(value, "it is an input of the network");
        if (is_kind(op, "top.Weight")) return refuse(value, "it is a weight");
        if (is_kind(op, "tpu.Reshape")) members_.insert(op->getOperand(0));
        const unsigned number = mlir::cast<mlir::OpResult>(value).getResultNumber();
        if (auto call = dyn_cast<mlir::func::CallOp>(op))
            members_.insert(callee_of(call).getBody().front().getTerminator()->getOperand(number));
        if (is_kind(op, "tpu.Group"))
            members_.insert(op->getRegion(0).front().back().getOperand(number));
        if (op->getNumRegions() > 0 && !is_kind(op, "tpu.Group"))
            return refuse(value,
                          fmt::format("{} is not taken apart", op->getName().getStringRef().str()));
        if (is_fixed(op))
            for (mlir::Value operand : op->getOperands())
                if (in_one_place(operand, value))
                    return refuse(value, fmt::format("{} works in its operand's memory",
                                                     op->getName().getStringRef().str()));
        return {};
    }

    Status look_at_use(mlir::Value value, mlir::OpOperand& use) {
        mlir::Operation* op = use.getOwner();
        const unsigned number = use.getOperandNumber();
        if (is_kind(op, "tpu.Reshape")) members_.insert(op->getResult(0));
        if (is_kind(op, "tpu.Yield") && op->getParentOp()->getNumResults() > number)
            members_.insert(op->getParentOp()->getResult(number));
        if (isa<mlir::func::ReturnOp>(op)) {
            auto function = op->getParentOfType<mlir::func::FuncOp>();
            if (auto call = call_of(function)) members_.insert(call.getResult(number));
        }
        if (auto call = dyn_cast<mlir::func::CallOp>(op))
            members_.insert(callee_of(call).getArgument(number));
        if (is_fixed(op))
            for (mlir::Value result : op->getResults())
                if (in_one_place(result, value))
                    return refuse(value, fmt::format("{} works in its memory",
                                                     op->getName().getStringRef().str()));
        return {};
    }

    llvm::SetVector<mlir::Value> members_;
};

}  // namespace

Status move_value(mlir::Value value, std::int64_t address) {
    AliasClass all;
    REEF_CHECK(all.grow(value));
    const auto encoding =
        mlir::IntegerAttr::get(mlir::IntegerType::get(value.getContext(), 64), address);
    for (mlir::Value member : all.members()) {
        auto type = dyn_cast<mlir::RankedTensorType>(member.getType());
        if (!type || !type.getEncoding()) continue;
        member.setType(
            mlir::RankedTensorType::get(type.getShape(), type.getElementType(), encoding));
    }
    return {};
}

void mend_types(mlir::ModuleOp device) {
    for (auto function : device.getOps<mlir::func::FuncOp>()) {
        mlir::Block& block = function.getBody().front();
        function.setFunctionType(mlir::FunctionType::get(device.getContext(),
                                                         block.getArgumentTypes(),
                                                         block.getTerminator()->getOperandTypes()));
    }
}

std::int64_t integer(mlir::Operation* op, const char* name) {
    auto value = op->getAttrOfType<mlir::IntegerAttr>(name);
    return value ? value.getInt() : 0;
}

void set_integer(mlir::Operation* op, const char* name, std::int64_t value) {
    op->setAttr(name, mlir::OpBuilder(op->getContext()).getI64IntegerAttr(value));
}

}  // namespace reef::sophgo
