// Compilers: from a plain model to one with programs for a chip.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/result.h"
#include "reef/chip/part.h"
#include "reef/chip/report.h"
#include "reef/model/graph.h"

namespace reef::chip {

/// How much a program does at once.
enum class Schedule : std::uint8_t {
    overlapped,  ///< what the next operator needs is on its way while one computes
    plain,       ///< one thing after the other
    vendor,      ///< byte for byte the vendor's program; only where that is known
};

/// What became of an operator of the plain model.
struct CompiledOperator {
    std::size_t index = 0;  ///< in the first subgraph
    std::string name;
    bool on_chip = false;
    std::string reason;  ///< why not, one clause; empty on the chip
    friend bool operator==(const CompiledOperator&, const CompiledOperator&) = default;
};

struct CompileOptions {
    Schedule schedule = Schedule::overlapped;
    /// The largest stay on the chip when there would be more; 0: as the compiler likes it.
    std::size_t most_programs = 0;
    /// Programs beside the largest stay on the chip, too, where the CPU would be done sooner.
    bool keep_islands = false;
    /// Parameters come from the host with every inference, though they would fit on the chip.
    bool stream_parameters = false;
    /// What another compilation made of each operator of the first subgraph, and this one is to
    /// follow: chips round in their own way, so that a part of a network gives the whole's bytes
    /// only where its operators lie as the whole's do. Copies that need no instructions on the
    /// chip may be the CPU's all the same. Of one model, not of several together. Empty: as the
    /// compiler likes.
    std::vector<CompiledOperator> placed_as{};
    /// For activations, where the chip is to be filled no further, as if it were smaller; 0: all of
    /// it.
    std::size_t most_activation_bytes = 0;
    /// Also says which instructions have forms that no known program of the chip's vendor has.
    bool list_forms = false;
    /// Operators whose instructions would have such forms stay with the CPU.
    bool known_forms_only = false;
    /// Of Compiler::settings(), by name: the value, several with commas between, "true" of a flag.
    std::map<std::string, std::string> settings{};
    /// The pass behind which the program is printed, one of Compiler::passes(); empty: none.
    std::string print_after{};
    /// The pass in front of which it is printed: as what the one before left. Not with print_after.
    std::string print_before{};
    /// Told of each pass that begins. It must not throw.
    std::function<void(std::string_view pass)> progress{};
    /// Looked at between passes: when it becomes true, compile() ends with Cause::cancelled.
    const std::atomic<bool>* cancelled = nullptr;
};

/// An option that one compiler has and the others have not.
struct CompilerSetting {
    std::string name;                    ///< lower case with underscores
    std::string sentence;                ///< what it does
    std::vector<std::string> choices{};  ///< none: a flag
    bool several = false;                ///< a list of choices
    /// What may serve in its place on chips whose compilers have no such option; may be empty.
    std::string elsewhere{};
};

struct Compilation {
    model::Model model;
    std::vector<CompiledOperator> operators;
    /// Estimated, of an inference of all programs with their transfers; 0 without an estimate.
    double seconds = 0;
    std::vector<Section> sections;  ///< what the programs need of the chip
    Object document;                ///< the same for programs
    std::string listing;            ///< of CompileOptions::print_after, or print_before
};

/// The vendor's own compiler as a program of the system. It is given its arguments, the folder to
/// write to and the model, in this order.
struct VendorCompiler {
    std::string_view program;  ///< looked for where programs are
    std::vector<std::string_view> arguments;
    std::string_view suffix;  ///< of what it makes of NAME.tflite: NAME and this
    std::string_view hint;    ///< where it is not installed
};

/// Of a family of chips, enrolled as a part of it. Thread-safe, without state.
class Compiler : public Part {
  public:
    /// In their order, as print_after names them.
    [[nodiscard]] virtual std::vector<std::string_view> passes() const = 0;
    [[nodiscard]] virtual std::vector<CompilerSetting> settings() const { return {}; }
    /// What the chip cannot compute stays with the CPU, with its reason. Errors: bad_input for a
    /// model that breaks a rule of model::validate(), whose operators do not stand in execution
    /// order, or that is compiled already; bad_argument for options that there are not; unsupported
    /// when nothing is left for the chip, and where an operator cannot be placed as `placed_as`
    /// says; cancelled.
    [[nodiscard]] virtual Result<Compilation> compile(const model::Model& model,
                                                      const CompileOptions& options) const = 0;
    /// Of models that take turns on one chip: running one leaves the parameters of the others
    /// there. Errors: those of compile(), the model's number as their place; unsupported by a
    /// compiler that cannot.
    [[nodiscard]] virtual Result<std::vector<Compilation>> compile_together(
        std::span<const model::Model> /*models*/, const CompileOptions& /*options*/) const {
        return fail(Cause::unsupported, "models are compiled one by one for this chip");
    }
    /// Which operators the chip takes and why not the others, by the compiler's rules alone:
    /// nothing is placed or emitted, so that compile() may still leave some to the CPU that do not
    /// fit together. Errors: bad_input as those of compile(); unsupported when the compiler
    /// cannot tell without compiling.
    [[nodiscard]] virtual Result<std::vector<CompiledOperator>> mapping(
        const model::Model& /*model*/, const CompileOptions& /*options*/) const {
        return fail(Cause::unsupported, "only compiling shows which operators the chip takes");
    }
    /// Nothing when no such program is known.
    [[nodiscard]] virtual std::optional<VendorCompiler> vendor() const { return std::nullopt; }
};

}  // namespace reef::chip
