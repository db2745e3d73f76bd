#include "reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Quant/QuantOps.h"
#include "mlir/Dialect/Quant/QuantTypes.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

namespace reef::sophgo {
namespace {

using mlir::dyn_cast;
using mlir::dyn_cast_or_null;
using mlir::isa;

constexpr std::string_view old_function = "func @", function = "func.func @";
constexpr std::string_view id_key = ", id = ";

/// Puts `to` in place of `from` where a line begins with it.
std::string with_beginnings(std::string_view text, std::string_view from, std::string_view to) {
    std::string out;
    out.reserve(text.size() + 64);
    while (!text.empty()) {
        const std::size_t end = std::min(text.size(), text.find('\n') + 1);
        std::string_view line = text.substr(0, end == 0 ? text.size() : end);
        text.remove_prefix(line.size());
        const std::size_t blanks = std::min(line.size(), line.find_first_not_of(' '));
        out += line.substr(0, blanks);
        line.remove_prefix(blanks);
        if (line.starts_with(from)) {
            out += to;
            line.remove_prefix(from.size());
        }
        out += line;
    }
    return out;
}

bool has_old_functions(std::string_view text) {
    for (auto at = text.find(old_function); at != std::string_view::npos;
         at = text.find(old_function, at + 1)) {
        const auto before = text.substr(0, at).find_last_not_of(' ');
        if (before == std::string_view::npos || text[before] == '\n') return true;
    }
    return false;
}

std::string to_text(mlir::Attribute attribute) {
    std::string text;
    llvm::raw_string_ostream(text) << attribute;
    return text;
}

/// "#tpu<run_mode TPU_STATIC>" or "TPU" -> its last word.
std::string mode_of(mlir::Attribute attribute) {
    if (!attribute) return {};
    if (auto string = dyn_cast<mlir::StringAttr>(attribute)) return string.str();
    std::string text = to_text(attribute);
    if (text.ends_with('>')) text.pop_back();
    const std::size_t blank = text.rfind(' ');
    return blank == std::string::npos ? text : text.substr(blank + 1);
}

std::vector<std::int64_t> integers_of(mlir::Attribute attribute) {
    std::vector<std::int64_t> out;
    if (auto dense = dyn_cast_or_null<mlir::DenseI32ArrayAttr>(attribute)) {
        out.assign(dense.asArrayRef().begin(), dense.asArrayRef().end());
    } else if (auto list = dyn_cast_or_null<mlir::ArrayAttr>(attribute)) {
        for (mlir::Attribute one : list)
            if (auto integer = dyn_cast<mlir::IntegerAttr>(one)) out.push_back(integer.getInt());
    }
    return out;
}

std::vector<std::string> strings_of(mlir::Attribute attribute) {
    std::vector<std::string> out;
    if (auto list = dyn_cast_or_null<mlir::ArrayAttr>(attribute))
        for (mlir::Attribute one : list)
            if (auto string = dyn_cast<mlir::StringAttr>(one)) out.push_back(string.str());
    return out;
}

std::string string_of(mlir::Operation* op, const char* name) {
    auto string = op->getAttrOfType<mlir::StringAttr>(name);
    return string ? string.str() : std::string();
}

std::optional<std::uint64_t> integer_of(mlir::Operation* op, const char* name) {
    auto integer = op->getAttrOfType<mlir::IntegerAttr>(name);
    if (!integer) return std::nullopt;
    return static_cast<std::uint64_t>(integer.getInt());
}

/// Bits of an element as it is stored; 0 for types without a size.
unsigned stored_bits(mlir::Type element) {
    if (auto calibrated = dyn_cast<mlir::quant::CalibratedQuantizedType>(element))
        return stored_bits(calibrated.getExpressedType());
    if (auto quantised = dyn_cast<mlir::quant::QuantizedType>(element))
        return quantised.getStorageTypeIntegralWidth();
    return element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
}

std::optional<UniformQuantisation> quantisation_of(mlir::Type element) {
    if (auto uniform = dyn_cast<mlir::quant::UniformQuantizedType>(element))
        return UniformQuantisation{{uniform.getScale()}, {uniform.getZeroPoint()}, {}};
    auto by_axis = dyn_cast<mlir::quant::UniformQuantizedPerAxisType>(element);
    if (!by_axis) return std::nullopt;
    const auto scales = by_axis.getScales();
    const auto zeros = by_axis.getZeroPoints();
    return UniformQuantisation{{scales.begin(), scales.end()},
                               {zeros.begin(), zeros.end()},
                               static_cast<std::size_t>(by_axis.getQuantizedDimension())};
}

// Ends of what lies in memory stay numbers of 64 bits. No chip has a thousandth of it.
constexpr std::uint64_t longest_address = 1ULL << 60;

Result<std::uint64_t> bounded(std::uint64_t number, std::string_view what) {
    if (number < longest_address) return number;
    return fail(Cause::bad_input,
                fmt::format("{} {:#x} is beyond every chip's memory", what, number));
}

/// Of a module's attributes START and SIZE.
Result<Region> region_of(mlir::Operation* module, const char* start, const char* size) {
    return Region{REEF_TRY(bounded(integer_of(module, start).value_or(0), start)),
                  REEF_TRY(bounded(integer_of(module, size).value_or(0), size))};
}

/// Builds the plain form of one file.
class ProgramBuilder {
  public:
    explicit ProgramBuilder(FinalProgram& out) : out_(out) {}

    Status add_device(mlir::ModuleOp module) {
        DeviceProgram& device = out_.devices.emplace_back();
        device.name = module.getName().value_or("").str();
        device.coefficients = REEF_TRY(region_of(module, "module.coeff_addr", "module.coeff_size"));
        device.neurons = REEF_TRY(region_of(module, "module.neuron_addr", "module.neuron_size"));
        if (module->hasAttr("module.io_addr"))
            device.io = REEF_TRY(region_of(module, "module.io_addr", "module.io_size"));
        device.dynamic_coefficients = integer_of(module, "module.dynamic_coeff_offset");
        for (mlir::Operation& op : *module.getBody()) {
            auto one = dyn_cast<mlir::func::FuncOp>(op);
            if (!one)
                return fail(Cause::bad_input, "it stands in no function",
                            op.getName().getStringRef().str());
            REEF_CHECK(in_place(add_function(one, device), "function " + one.getName().str()));
        }
        if (device.main() == nullptr)
            return fail(Cause::bad_input, "no function main", "module " + device.name);
        name_arguments(device);
        return {};
    }

  private:
    Status add_function(mlir::func::FuncOp from, DeviceProgram& device) {
        if (from.getBody().empty()) return fail(Cause::unsupported, "a function without a body");
        if (!from.getBody().hasOneBlock())
            return fail(Cause::unsupported, "a function with several blocks");
        // The last operator of a dialect that is not known passes for a terminator.
        if (from.getBody().front().empty() ||
            !isa<mlir::func::ReturnOp>(from.getBody().front().back()))
            return fail(Cause::bad_input, "a function that does not end with return");
        Function to;
        to.name = from.getName().str();
        to.mode = mode_of(from->getAttr("mode"));
        if (const auto id = integer_of(from, "id")) to.id = static_cast<std::int64_t>(*id);
        to.next = integers_of(from->getAttr("next_index"));
        for (mlir::Value argument : from.getArguments())
            to.arguments.push_back(REEF_TRY(add_value(argument)));
        for (mlir::Operation& op : from.getBody().front()) {
            if (op.hasTrait<mlir::OpTrait::IsTerminator>()) {
                for (mlir::Value value : op.getOperands()) to.returned.push_back(index_.at(value));
            } else {
                to.operators.push_back(REEF_TRY(operator_of(&op)));
            }
        }
        device.functions.push_back(std::move(to));
        return {};
    }

    Result<Operator> operator_of(mlir::Operation* from) {
        Operator to;
        to.kind = from->getName().getStringRef().str();
        if (auto call = dyn_cast<mlir::func::CallOp>(from))
            to.kind = fmt::format("{}@{}", call_kind, call.getCallee().str());
        for (mlir::Value operand : from->getOperands()) {
            const auto known = index_.find(operand);
            if (known == index_.end())
                return fail(Cause::bad_input, "an operand is used before it is computed",
                            fmt::format("{} {}", to.kind, first_name(from)));
            to.operands.push_back(known->second);
        }
        for (mlir::Region& region : from->getRegions())
            for (mlir::Block& block : region) {
                for (mlir::Value argument : block.getArguments())
                    (void)REEF_TRY(add_value(argument));
                for (mlir::Operation& op : block) to.body.push_back(REEF_TRY(operator_of(&op)));
            }
        for (mlir::Value result : from->getResults())
            to.results.push_back(REEF_TRY(
                in_place(add_value(result), fmt::format("{} {}", to.kind, name_of(result)))));
        to.id = group_id(from);
        to.flow = integers_of(from->getAttr("flow"));
        to.overlaps = {integers_of(from->getAttr("self_up_overlap_op")),
                       integers_of(from->getAttr("self_down_overlap_op")),
                       integers_of(from->getAttr("other_up_overlap_op")),
                       integers_of(from->getAttr("other_down_overlap_op"))};
        return to;
    }

    static std::string first_name(mlir::Operation* op) {
        return op->getNumResults() > 0 ? name_of(op->getResult(0)) : std::string();
    }

    Result<ValueIndex> add_value(mlir::Value from) {
        Value to;
        to.name = name_of(from);
        to.type = text_of(from.getType());
        if (auto tensor = dyn_cast<mlir::RankedTensorType>(from.getType())) {
            to.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
            to.element = text_of(tensor.getElementType());
            to.bytes = REEF_TRY(bytes_of(tensor, out_.chip));
            to.quantisation = quantisation_of(tensor.getElementType());
            if (const auto address = address_of(from); address && *address != 0)
                to.address = REEF_TRY(bounded(static_cast<std::uint64_t>(*address), "the address"));
            (void)REEF_TRY(bounded(to.bytes, "the size"));
        }
        index_.insert({from, out_.values.size()});
        out_.values.push_back(std::move(to));
        return out_.values.size() - 1;
    }

    /// Where they have no location's name (2022), arguments have the names of what is passed.
    void name_arguments(const DeviceProgram& device) {
        for (const Operator& op : device.main()->operators) {
            const Function* callee = device.find(callee_of(op));
            if (callee == nullptr) continue;
            const std::size_t count = std::min(op.operands.size(), callee->arguments.size());
            for (std::size_t i = 0; i < count; ++i) {
                Value& argument = out_.values[callee->arguments[i]];
                if (argument.name.empty()) argument.name = out_.values[op.operands[i]].name;
            }
            for (std::size_t i = 0; i < std::min(op.results.size(), callee->returned.size()); ++i) {
                Value& result = out_.values[op.results[i]];
                if (result.name.empty()) result.name = out_.values[callee->returned[i]].name;
            }
        }
    }

    FinalProgram& out_;
    llvm::DenseMap<mlir::Value, ValueIndex> index_;
};

}  // namespace

bool is_kind(mlir::Operation* op, std::string_view kind) {
    return op->getName().getStringRef() == llvm::StringRef(kind.data(), kind.size());
}

std::optional<std::int64_t> group_id(mlir::Operation* op) {
    mlir::Attribute info = op->getAttr("ginfo");
    if (!info) return std::nullopt;
    const std::string text = to_text(info);
    const std::size_t at = text.find(id_key);
    if (at == std::string::npos) return std::nullopt;
    return std::strtoll(text.c_str() + at + id_key.size(), nullptr, 10);
}

void set_group_id(mlir::Operation* op, std::int64_t id) {
    auto info = op->getAttrOfType<mlir::OpaqueAttr>("ginfo");
    if (!info) return;
    std::string text = info.getAttrData().str();
    const std::size_t key = text.find(id_key);
    if (key == std::string::npos) return;
    const std::size_t at = key + id_key.size();
    const std::size_t end = std::min(text.size(), text.find_first_of(",>", at));
    text.replace(at, end - at, std::to_string(id));
    op->setAttr("ginfo", mlir::OpaqueAttr::get(info.getDialectNamespace(), text, info.getType()));
}

std::string text_of(mlir::Type type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return text;
}

std::string name_of(mlir::Value value) {
    mlir::Location place = value.getLoc();
    if (auto result = dyn_cast<mlir::OpResult>(value)) {
        if (auto fused = dyn_cast<mlir::FusedLoc>(place);
            fused && result.getResultNumber() < fused.getLocations().size())
            place = fused.getLocations()[result.getResultNumber()];
        if (!isa<mlir::NameLoc>(place))
            if (auto name = result.getOwner()->getAttrOfType<mlir::StringAttr>("name"))
                return name.str();
    }
    auto name = dyn_cast<mlir::NameLoc>(place);
    return name ? name.getName().str() : std::string();
}

std::optional<std::int64_t> address_of(mlir::Value value) {
    auto tensor = dyn_cast<mlir::RankedTensorType>(value.getType());
    if (!tensor) return std::nullopt;
    auto address = dyn_cast_or_null<mlir::IntegerAttr>(tensor.getEncoding());
    if (!address) return std::nullopt;
    return address.getInt();
}

Result<std::uint64_t> bytes_of(mlir::Type type, std::string_view chip) {
    auto tensor = dyn_cast<mlir::RankedTensorType>(type);
    if (!tensor) return 0;
    const unsigned bits = stored_bits(tensor.getElementType());
    if (bits == 0 || !tensor.hasStaticShape())
        return fail(Cause::unsupported, fmt::format("type {} has no size", text_of(type)));
    std::uint64_t product = bits;
    for (std::size_t i = 0; i < tensor.getShape().size(); ++i) {
        auto dim = static_cast<std::uint64_t>(tensor.getShape()[i]);
        // The oldest chip keeps four samples of 8-bit values in a word.
        const bool quantised = isa<mlir::quant::UniformQuantizedType>(tensor.getElementType());
        if (chip == "bm1684" && i == 0 && bits == 8 && quantised) dim = (dim + 3) / 4 * 4;
        if (__builtin_mul_overflow(product, dim, &product))
            return fail(Cause::bad_input, fmt::format("type {} is too large", text_of(type)));
    }
    return product / 8 + (product % 8 != 0 ? 1 : 0);
}

Result<Parsed> parse(std::string_view text) {
    Parsed parsed;
    parsed.old_form = has_old_functions(text);
    // A copy in any case: MLIR's lexer knows the end by the zero behind it.
    const std::string source =
        parsed.old_form ? with_beginnings(text, old_function, function) : std::string(text);
    parsed.context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
    auto& context = *parsed.context;
    context.allowUnregisteredDialects();
    context.loadDialect<mlir::func::FuncDialect, mlir::quant::QuantizationDialect>();
    std::string first, place;
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic& diagnostic) {
        if (!first.empty()) return;
        first = diagnostic.str();
        if (auto at = dyn_cast<mlir::FileLineColLoc>(diagnostic.getLocation()))
            place = fmt::format("line {} column {}", at.getLine(), at.getColumn());
    });
    parsed.top = mlir::parseSourceString<mlir::ModuleOp>(source, mlir::ParserConfig(&context));
    if (!parsed.top)
        return fail(Cause::bad_input, first.empty() ? "this is no MLIR" : std::move(first),
                    std::move(place), "MLIR 19's grammar is read, dialects need not be known");
    return parsed;
}

std::string printed(const Parsed& parsed) {
    std::string text;
    llvm::raw_string_ostream out(text);
    mlir::OpPrintingFlags flags;
    if (!parsed.old_form) flags.enableDebugInfo();
    mlir::ModuleOp top = *parsed.top;
    top->print(out, flags);
    out << "\n";
    out.flush();
    return parsed.old_form ? with_beginnings(text, function, old_function) : text;
}

Result<FinalProgram> program_of(const Parsed& parsed) {
    mlir::ModuleOp top = *parsed.top;
    FinalProgram program;
    program.names_are_attributes = parsed.old_form;
    program.name = top.getName() ? top.getName()->str() : string_of(top, "module.name");
    program.chip = string_of(top, "module.chip");
    std::ranges::transform(program.chip, program.chip.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    program.state = string_of(top, "module.state");
    program.address_mode = string_of(top, "module.addr_mode");
    program.weight_file = string_of(top, "module.weight_file");
    program.inputs = strings_of(top->getAttr("module.inputs"));
    program.outputs = strings_of(top->getAttr("module.outputs"));
    if (program.state != "TPU_ADDRESSED")
        return fail(
            Cause::unsupported,
            program.state.empty()
                ? std::string("the module has no module.state")
                : fmt::format("the module is in state {}, not TPU_ADDRESSED", program.state),
            {}, "give final.mlir, which model_deploy.py leaves");
    ProgramBuilder builder(program);
    if (top->hasAttr("module.coeff_addr")) {
        REEF_CHECK(builder.add_device(top));
    } else {
        for (mlir::Operation& op : *top.getBody()) {
            auto inner = dyn_cast<mlir::ModuleOp>(op);
            if (!inner)
                return fail(Cause::bad_input, "it stands in no device's module",
                            op.getName().getStringRef().str());
            if (!inner->hasAttr("module.coeff_addr"))
                return fail(Cause::bad_input, "the module has no address plan (module.coeff_addr)",
                            "module " + inner.getName().value_or("").str());
            REEF_CHECK(builder.add_device(inner));
        }
    }
    if (program.devices.empty())
        return fail(Cause::bad_input, "no module has an address plan (module.coeff_addr)");
    return program;
}

}  // namespace reef::sophgo
