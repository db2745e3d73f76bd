#include "cut.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "groups.h"
#include "llvm/ADT/BitVector.h"
#include "memory.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "reader.h"
#include "sophgo/final/check.h"
#include "sophgo/final/chips.h"
#include "sophgo/final/plan.h"

namespace reef::sophgo {
namespace {

using mlir::dyn_cast;

/// A tensor that becomes an output.
struct Target {
    mlir::Value value;      ///< in its function
    std::size_t call = 0;   ///< number of the call that computes it
    mlir::Value in_main{};  ///< what the mended call gives for it
};

/// A region, as the module's attributes say where it is.
struct Room {
    const char* start;
    const char* size;
};
constexpr Room activations = {"module.neuron_addr", "module.neuron_size"};
constexpr Room inputs_and_outputs = {"module.io_addr", "module.io_size"};

bool computes(mlir::Operation& op) {
    return op.getName().getStringRef().starts_with("tpu.") && !is_kind(&op, "tpu.Buffer");
}

/// What is wrong with the form of an operator that a cut takes apart; empty when nothing is.
std::string_view malformed(mlir::Operation* op) {
    if (is_kind(op, "tpu.Group")) {
        if (op->getNumRegions() != 1 || !op->getRegion(0).hasOneBlock() ||
            op->getRegion(0).front().empty())
            return "it has not one block";
        mlir::Operation& last = op->getRegion(0).front().back();
        if (!is_kind(&last, "tpu.Yield") || last.getNumOperands() != op->getNumResults())
            return "what it yields are not its results";
        if (auto flow = op->getAttrOfType<mlir::ArrayAttr>("flow"))
            for (mlir::Attribute one : flow)
                if (!mlir::isa<mlir::IntegerAttr>(one)) return "its flow has no numbers";
    }
    if (is_kind(op, "tpu.Reshape") && (op->getNumOperands() == 0 || op->getNumResults() != 1))
        return "it has not one operand and one result";
    if (is_kind(op, "top.Weight") && op->getNumResults() != 1) return "it has not one result";
    if (is_kind(op, "top.Input") && (op->getNumOperands() != 1 || op->getNumResults() != 1))
        return "it has not one operand and one result";
    return {};
}

class Cutter {
  public:
    Cutter(Parsed& parsed, const CutRequest& request) : parsed_(parsed), request_(request) {}

    Result<Cut> run() {
        const FinalProgram before = REEF_TRY(program_of(parsed_));
        REEF_CHECK(refuse_unsafe(before));
        device_ = module_with_plan();
        REEF_CHECK(refuse_malformed());
        main_ = device_.lookupSymbol<mlir::func::FuncOp>("main");
        REEF_CHECK(collect_calls());
        REEF_CHECK(find_targets());
        cut_calls();
        finish_main();
        mend_attributes();
        mend_types(device_);
        REEF_CHECK(mend_memory());
        return finished();
    }

  private:
    static Status refuse_unsafe(const FinalProgram& program) {
        if (program.chip.empty()) return fail(Cause::bad_input, "the module has no module.chip");
        if (program.devices.size() != 1)
            return fail(Cause::unsupported,
                        fmt::format("a network of {} devices is not cut", program.devices.size()));
        static constexpr std::string_view modes[] = {"", "basic", "in_reuse", "io_alone"};
        if (std::ranges::find(modes, program.address_mode) == std::end(modes))
            return fail(Cause::unsupported,
                        fmt::format("module.addr_mode {} is not cut", program.address_mode), {},
                        "compile with addr_mode basic");
        return {};
    }

    Status refuse_malformed() {
        Status status;
        device_.walk([&](mlir::Operation* op) {
            const std::string_view problem = malformed(op);
            if (status && !problem.empty())
                status = fail(Cause::bad_input, std::string(problem),
                              op->getName().getStringRef().str());
        });
        return status;
    }

    mlir::ModuleOp module_with_plan() {
        mlir::ModuleOp top = *parsed_.top;
        if (top->hasAttr("module.coeff_addr")) return top;
        for (auto inner : top.getOps<mlir::ModuleOp>())
            if (inner->hasAttr("module.coeff_addr")) return inner;
        return top;
    }

    mlir::func::FuncOp callee(mlir::func::CallOp call) {
        return device_.lookupSymbol<mlir::func::FuncOp>(call.getCallee());
    }

    Status collect_calls() {
        std::set<std::string> seen;
        for (mlir::Operation& op : main_.getBody().front()) {
            auto call = dyn_cast<mlir::func::CallOp>(op);
            if (!call) continue;
            const std::string name = call.getCallee().str();
            auto function = callee(call);
            if (!function) return fail(Cause::bad_input, "there is no function " + name, "main");
            if (name == "main") return fail(Cause::bad_input, "it calls itself", "main");
            if (!seen.insert(name).second)
                return fail(Cause::unsupported, fmt::format("{} is called twice", name), "main");
            calls_.push_back(call);
        }
        return {};
    }

    // Modes of functions whose calls depend on values: what runs is not known here.
    Status refuse_mode(mlir::func::FuncOp function) {
        mlir::Attribute mode = function->getAttr("mode");
        std::string text;
        if (mode) llvm::raw_string_ostream(text) << mode;
        for (const char* unknown : {"LOOP", "SWITCH", "MERGE"})
            if (text.find(unknown) != std::string::npos)
                return fail(Cause::unsupported,
                            fmt::format("a function of mode {} is not cut", unknown),
                            function.getName().str());
        return {};
    }

    Status find_targets() {
        if (request_.at.empty()) return fail(Cause::bad_argument, "no tensor to cut at");
        std::set<std::string> seen;
        for (const std::string& name : request_.at) {
            if (!seen.insert(name).second)
                return fail(Cause::bad_argument, fmt::format("'{}' is named twice", name));
            targets_.push_back(REEF_TRY(find_target(name)));
            last_ = std::max(last_, targets_.back().call);
        }
        for (std::size_t i = 0; i <= last_; ++i) REEF_CHECK(refuse_mode(callee(calls_[i])));
        return {};
    }

    Result<Target> find_target(const std::string& name) {
        for (std::size_t i = 0; i < calls_.size(); ++i)
            for (mlir::Operation& op : callee(calls_[i]).getBody().front()) {
                if (!computes(op)) continue;
                for (mlir::Value result : op.getResults())
                    if (name_of(result) == name) {
                        REEF_CHECK(refuse_target(result, name));
                        return Target{result, i};
                    }
            }
        return no_target(name);
    }

    static std::string result_names(mlir::Operation* op) {
        std::vector<std::string> names;
        for (mlir::Value result : op->getResults()) names.push_back("'" + name_of(result) + "'");
        return fmt::format("{}", fmt::join(names, " or "));
    }

    static Status refuse_target(mlir::Value value, const std::string& name) {
        if (!address_of(value))
            return fail(Cause::unsupported,
                        fmt::format("'{}' has no address in global memory", name));
        for (mlir::Operation* user : value.getUsers())
            if (is_kind(user, "tpu.SliceMerge"))
                return fail(Cause::unsupported,
                            fmt::format("'{}' is a part of what SliceMerge puts "
                                        "together",
                                        name),
                            {}, "cut at " + result_names(user));
        return {};
    }

    std::unexpected<Error> no_target(const std::string& name) {
        mlir::Operation* unit = nullptr;
        bool input = false;
        device_.walk([&](mlir::Operation* op) {
            for (mlir::Value result : op->getResults()) {
                if (name_of(result) != name) continue;
                if (is_kind(op, "top.Input")) input = true;
                for (mlir::Operation* up = op->getParentOp(); up; up = up->getParentOp())
                    if (up->getName().getStringRef().starts_with("tpu.")) unit = up;
            }
        });
        if (unit)
            return fail(Cause::bad_argument,
                        fmt::format("'{}' is inside a {}, which is cut as a whole", name,
                                    unit->getName().getStringRef().str()),
                        {}, "cut at " + result_names(unit));
        if (input)
            return fail(Cause::bad_argument, fmt::format("'{}' is an input of the network", name));
        return fail(Cause::bad_argument, fmt::format("no operator computes '{}'", name), {},
                    "reef inspect --all lists the tensors");
    }

    void cut_calls() {
        drop_later_calls();
        for (std::size_t i = last_ + 1; i-- > 0;) cut_function(i);
    }

    void drop_later_calls() {
        mlir::Operation* old = main_.getBody().front().getTerminator();
        mlir::OpBuilder builder(old);
        main_place_ = old->getLoc();
        old->erase();
        for (std::size_t i = calls_.size(); i-- > last_ + 1;) {
            auto function = callee(calls_[i]);
            calls_[i].erase();
            function.erase();
        }
        calls_.resize(last_ + 1);
    }

    void cut_function(std::size_t number) {
        mlir::func::CallOp call = calls_[number];
        auto function = callee(call);
        mlir::Block& block = function.getBody().front();
        mlir::Operation* old = block.getTerminator();
        mlir::SmallVector<mlir::Value> returned;
        std::vector<mlir::Value> replaced;
        for (mlir::OpResult result : call.getResults()) {
            if (result.use_empty()) continue;
            returned.push_back(old->getOperand(result.getResultNumber()));
            replaced.push_back(result);
        }
        std::vector<std::pair<Target*, std::size_t>> placed;
        for (Target& target : targets_) {
            if (target.call != number) continue;
            const auto known = std::ranges::find(returned, target.value);
            placed.emplace_back(&target, static_cast<std::size_t>(known - returned.begin()));
            if (known == returned.end()) returned.push_back(target.value);
        }
        old->setOperands(returned);
        mend_body(function);
        auto mended = mended_call(call, function);
        for (std::size_t i = 0; i < replaced.size(); ++i)
            replaced[i].replaceAllUsesWith(mended.getResult(static_cast<unsigned>(i)));
        for (const auto& [target, place] : placed)
            target->in_main = mended.getResult(static_cast<unsigned>(place));
        call.erase();
        calls_[number] = mended;
        if (returned.empty()) {
            mended.erase();
            function.erase();
            calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(number));
        }
    }

    void mend_body(mlir::func::FuncOp function) {
        std::size_t vanished = erase_dead(function);
        if (!request_.keep_group_results) {
            for (auto names = prune_group_results(function); !names.empty();
                 names = prune_group_results(function)) {
                for (const std::string& name : names)
                    notes_.push_back(
                        fmt::format("'{}' is no longer stored: nobody reads it", name));
                vanished += names.size() + erase_dead(function);
            }
        }
        // What still has unread results is a group that cannot be taken apart, or was to stay.
        const auto kept = keep_group_results(function);
        for (const std::string& name : kept)
            notes_.push_back(fmt::format("'{}' keeps its memory by a Reshape", name));
        if (vanished == 0 && kept.empty()) return;
        if (reset_overlaps(function) > 0)
            notes_.push_back("no group overlaps a neighbour any more");
    }

    /// With the arguments that are still used; the function loses the others, too.
    mlir::func::CallOp mended_call(mlir::func::CallOp call, mlir::func::FuncOp function) {
        llvm::BitVector unused(function.getNumArguments());
        mlir::SmallVector<mlir::Value> operands;
        for (mlir::BlockArgument argument : function.getArguments()) {
            if (argument.use_empty())
                unused.set(argument.getArgNumber());
            else
                operands.push_back(call.getOperand(argument.getArgNumber()));
        }
        function.eraseArguments(unused);
        mlir::Block& block = function.getBody().front();
        function.setFunctionType(mlir::FunctionType::get(device_.getContext(),
                                                         block.getArgumentTypes(),
                                                         block.getTerminator()->getOperandTypes()));
        mlir::OpBuilder builder(call);
        return builder.create<mlir::func::CallOp>(call.getLoc(), function, operands);
    }

    void finish_main() {
        mlir::Block& block = main_.getBody().front();
        mlir::SmallVector<mlir::Value> results;
        for (const Target& target : targets_) results.push_back(target.in_main);
        auto builder = mlir::OpBuilder::atBlockEnd(&block);
        builder.create<mlir::func::ReturnOp>(*main_place_, results);
        llvm::BitVector unused(main_.getNumArguments());
        for (mlir::Operation& op : llvm::make_early_inc_range(llvm::reverse(block))) {
            if (op.hasTrait<mlir::OpTrait::IsTerminator>() || !op.use_empty()) continue;
            if (is_kind(&op, "top.Input")) {
                dropped_inputs_.insert(name_of(op.getResult(0)));
                notes_.push_back(
                    fmt::format("'{}' is no input any more", name_of(op.getResult(0))));
            }
            if (auto call = dyn_cast<mlir::func::CallOp>(op)) {
                std::erase(calls_, call);
                callee(call).erase();
            }
            op.erase();
        }
        for (mlir::BlockArgument argument : main_.getArguments())
            if (argument.use_empty()) unused.set(argument.getArgNumber());
        main_.eraseArguments(unused);
    }

    void mend_attributes() {
        mlir::ModuleOp top = *parsed_.top;
        mlir::OpBuilder builder(device_.getContext());
        if (auto inputs = top->getAttrOfType<mlir::ArrayAttr>("module.inputs")) {
            mlir::SmallVector<mlir::Attribute> kept;
            for (mlir::Attribute one : inputs)
                if (auto name = dyn_cast<mlir::StringAttr>(one);
                    !name || !dropped_inputs_.contains(name.str()))
                    kept.push_back(one);
            top->setAttr("module.inputs", builder.getArrayAttr(kept));
        }
        if (top->hasAttr("module.outputs")) {
            mlir::SmallVector<llvm::StringRef> names(request_.at.begin(), request_.at.end());
            top->setAttr("module.outputs", builder.getStrArrayAttr(names));
        }
        if (!request_.weight_file.empty())
            top->setAttr("module.weight_file", builder.getStringAttr(request_.weight_file));
        if (calls_.empty()) return;
        // Ids count on from the first that the file had; the last function has no next.
        std::int64_t id = first_id();
        for (std::size_t i = 0; i < calls_.size(); ++i, ++id) {
            auto function = callee(calls_[i]);
            if (function->hasAttr("id")) set_integer(function, "id", id);
            const bool last = i + 1 == calls_.size();
            if (function->hasAttr("next_index"))
                function->setAttr(
                    "next_index",
                    builder.getDenseI32ArrayAttr({last ? -1 : static_cast<std::int32_t>(id + 1)}));
        }
    }

    std::int64_t first_id() {
        std::int64_t first = integer(callee(calls_.front()), "id");
        return first == 1 && parsed_.old_form ? 1 : std::min<std::int64_t>(first, 0);
    }

    Status mend_memory() {
        if (!request_.keep_coefficient_size) mend_coefficients();
        FinalProgram program = REEF_TRY(program_of(parsed_));
        std::set<std::size_t> moved;
        for (const std::size_t i : overwritten_outputs(program, program.devices[0]))
            moved.insert(i);
        for (std::size_t i = 0; i < targets_.size(); ++i) {
            const Value& value = program.at(program.devices[0].main()->returned[i]);
            if (in_local_memory(program.chip, value)) moved.insert(i);
        }
        // Where outputs must lie in a region of their own, they go there at once.
        const bool apart = regions_of_outputs_are_apart(program);
        for (const std::size_t i : moved)
            REEF_CHECK(
                give_fresh_memory(i, apart ? inputs_and_outputs : activations,
                                  "a later operator or the chip's local memory would take it"));
        REEF_CHECK(mend_io());
        mend_types(device_);
        return {};
    }

    Status give_fresh_memory(std::size_t number, const Room& room, std::string_view why) {
        const mlir::Value value = targets_[number].value;
        const auto chip_text = (*parsed_.top)->getAttrOfType<mlir::StringAttr>("module.chip");
        const std::uint64_t bytes =
            REEF_TRY(bytes_of(value.getType(), chip_text.getValue().lower()));
        const std::int64_t start = integer(device_, room.start);
        const std::int64_t size = integer(device_, room.size);
        // A block stays free between: Slice takes a result that touches its operand's end for a
        // view.
        const auto fresh = static_cast<std::int64_t>(
            in_blocks(static_cast<std::uint64_t>(start + size)) + block_bytes);
        REEF_CHECK(move_value(value, fresh));
        set_integer(device_, room.size,
                    fresh - start + static_cast<std::int64_t>(in_blocks(bytes)));
        notes_.push_back(fmt::format("'{}' moved to {:#x}: {}", request_.at[number], fresh, why));
        return {};
    }

    /// Inputs and outputs have a region, which the activations' does not continue.
    static bool regions_of_outputs_are_apart(const FinalProgram& program) {
        const DeviceProgram& device = program.devices[0];
        return program.address_mode == "io_alone" && device.io &&
               device.io->end() != device.neurons.start;
    }

    // The runtime takes the address of every input and output as one in the region for them.
    Status mend_io() {
        const FinalProgram program = REEF_TRY(program_of(parsed_));
        const DeviceProgram& device = program.devices[0];
        if (program.address_mode != "io_alone" || !device.io) return {};
        if (regions_of_outputs_are_apart(program)) return move_into_io(program);
        const auto& returned = device.main()->returned;
        if (std::ranges::all_of(returned,
                                [&](ValueIndex v) { return device.io->holds(program.at(v)); }))
            return {};
        mlir::OpBuilder builder(device_.getContext());
        (*parsed_.top)->setAttr("module.addr_mode", builder.getStringAttr("basic"));
        set_integer(device_, "module.neuron_addr", static_cast<std::int64_t>(device.io->start));
        set_integer(device_, "module.neuron_size",
                    static_cast<std::int64_t>(device.io->size + device.neurons.size));
        device_->removeAttr("module.io_addr");
        device_->removeAttr("module.io_size");
        notes_.push_back(
            "addr_mode is basic now: an output lies outside the region of inputs and "
            "outputs");
        return {};
    }

    // Where the regions do not meet, as on chips that mark them in the address.
    Status move_into_io(const FinalProgram& before) {
        const DeviceProgram& device = before.devices[0];
        for (std::size_t i = 0; i < targets_.size(); ++i)
            if (!device.io->holds(before.at(device.main()->returned[i])))
                REEF_CHECK(give_fresh_memory(
                    i, inputs_and_outputs,
                    "outputs lie in the region of inputs and outputs (io_alone)"));
        const auto end = static_cast<std::uint64_t>(integer(device_, "module.io_addr") +
                                                    integer(device_, "module.io_size"));
        for (const Region& other : {device.neurons, device.coefficients})
            if (device.io->start < other.end() && other.start < end)
                return fail(Cause::unsupported,
                            "an output lies outside the region of inputs and outputs (io_alone), "
                            "behind which nothing is free",
                            {}, "compile with addr_mode basic");
        return {};
    }

    void mend_coefficients() {
        const std::int64_t start = integer(device_, "module.coeff_addr");
        std::int64_t end = 0, static_end = 0;
        const auto chip = (*parsed_.top)->getAttrOfType<mlir::StringAttr>("module.chip");
        device_.walk([&](mlir::Operation* op) {
            if (!is_kind(op, "top.Weight")) return;
            const mlir::Value weight = op->getResult(0);
            const auto bytes = bytes_of(weight.getType(), chip.getValue().lower());
            const std::int64_t to = address_of(weight).value_or(start) - start +
                                    static_cast<std::int64_t>(bytes.value_or(0));
            end = std::max(end, to);
            auto mode = op->getParentOfType<mlir::func::FuncOp>()->getAttr("mode");
            std::string text;
            if (mode) llvm::raw_string_ostream(text) << mode;
            if (text.find("DYNAMIC") == std::string::npos) static_end = std::max(static_end, to);
        });
        const auto whole = [](std::int64_t bytes) {
            return static_cast<std::int64_t>(in_blocks(static_cast<std::uint64_t>(bytes)));
        };
        set_integer(device_, "module.coeff_size", whole(end));
        if (device_->hasAttr("module.dynamic_coeff_offset"))
            set_integer(device_, "module.dynamic_coeff_offset", whole(static_end));
    }

    Result<Cut> finished() {
        std::string problem;
        mlir::ScopedDiagnosticHandler handler(parsed_.context.get(), [&](mlir::Diagnostic& d) {
            if (problem.empty()) problem = d.str();
        });
        if (mlir::failed(mlir::verify(*parsed_.top)))
            return fail(Cause::unsupported, "the result is no valid module: " + problem);
        Cut cut;
        cut.text = printed(parsed_);
        const Parsed again = REEF_TRY(parse(cut.text));
        cut.program = REEF_TRY(program_of(again));
        cut.notes = std::move(notes_);
        for (const chip::Finding& one : check_program(cut.program).findings)
            if (one.fault)
                return fail(
                    Cause::unsupported,
                    fmt::format("the result would break a rule: {}: {}", one.rule, one.what),
                    one.place, "reef check says whether the file itself does");
        for (const Function& function : cut.program.devices[0].functions)
            for (const Operator& op : function.operators)
                if (op.is("top.Weight")) cut.weights.push_back(cut.program.at(op.results[0]).name);
        return cut;
    }

    Parsed& parsed_;
    const CutRequest& request_;
    mlir::ModuleOp device_;
    mlir::func::FuncOp main_;
    std::vector<mlir::func::CallOp> calls_;
    std::vector<Target> targets_;
    std::size_t last_ = 0;
    std::optional<mlir::Location> main_place_;
    std::set<std::string> dropped_inputs_;
    std::vector<std::string> notes_;
};

}  // namespace

Result<Cut> cut_at(std::string_view text, const CutRequest& request) {
    Parsed parsed = REEF_TRY(parse(text));
    return Cutter(parsed, request).run();
}

}  // namespace reef::sophgo
