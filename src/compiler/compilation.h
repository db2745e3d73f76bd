// The loop that every chip's compiler runs: the passes that hold for all chips, the chip's own for
// each program, and all of it again without an operator that turned out not to fit.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/legalise.h"
#include "compiler/remainder.h"
#include "reef/chip/compiler.h"

namespace reef::compiler {

/// What is said of passes while they run: who waits is told of each, who asked sees the program
/// behind one.
class Passes {
  public:
    Passes(std::vector<std::string_view> names, const chip::CompileOptions& options)
        : names_(std::move(names)), options_(options) {}

    /// Errors: bad_argument when options.print_after or print_before names none of them, or the
    /// latter the first, or both are given.
    [[nodiscard]] Status check();
    /// Errors: cancelled.
    [[nodiscard]] Status begin(std::string_view pass) const;
    /// Behind a pass. `text` makes the text, and is called only for the pass that was asked for.
    void print(std::string_view pass, const auto& text) {
        if (printed_ == pass) listing_ += text();
    }
    [[nodiscard]] const chip::CompileOptions& options() const { return options_; }
    [[nodiscard]] const std::string& listing() const { return listing_; }
    void clear() { listing_.clear(); }

  private:
    std::vector<std::string_view> names_;
    const chip::CompileOptions& options_;
    std::string_view printed_;  ///< the pass behind which the program is printed
    std::string listing_;
};

/// What a chip adds to a compilation.
class Backend {
  public:
    Backend() = default;
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;
    virtual ~Backend() = default;

    /// Its name with the article, as sentences say it.
    [[nodiscard]] virtual std::string_view chip() const = 0;
    [[nodiscard]] virtual const Target& target() const = 0;
    /// As legalise() takes it.
    [[nodiscard]] virtual std::int64_t most_taps() const = 0;
    /// Where chip::CompileOptions::most_programs says nothing.
    [[nodiscard]] virtual std::size_t usual_programs() const = 0;
    /// Whether the operator is a program that this chip's compiler made.
    [[nodiscard]] virtual bool is_compiled(const model::Operator& op) const = 0;
    /// The chip's own passes. An error `unsupported` whose place begins with an operator's leaves
    /// that operator to the CPU: everything is compiled again without it.
    [[nodiscard]] virtual Result<ProgramOperator> lower(const Graph& graph, const Program& program,
                                                        Passes& passes) = 0;
    /// Why the CPU computes a program sooner than the chip with all its transfers, by the
    /// estimates; empty where it does not. `number`: in the order of lower(). Asked where there are
    /// several, but for the one with the most work.
    [[nodiscard]] virtual std::string sooner_on_cpu(const Graph& /*graph*/,
                                                    const Program& /*program*/,
                                                    std::size_t /*number*/) const {
        return {};
    }
    /// The same for those who have both times: `with` is what the chip's has in it, "its
    /// transfers".
    [[nodiscard]] static std::string why_sooner(double chip_seconds, double cpu_seconds,
                                                std::string_view with);
    /// Another attempt begins: what lower() noted of its programs does not count.
    virtual void forget() = 0;
};

/// The passes that hold for every chip and, behind them, its own.
[[nodiscard]] std::vector<std::string_view> with_common_passes(
    std::span<const std::string_view> own);

struct Lowered {
    model::Model model;
    std::vector<chip::CompiledOperator> operators;
    std::string listing;  ///< of options.print_after, or print_before
};

/// `own`: the backend's passes in their order. Errors: as chip::Compiler::compile().
[[nodiscard]] Result<Lowered> compile(const model::Model& model, Backend& backend,
                                      std::span<const std::string_view> own,
                                      const chip::CompileOptions& options);

/// A verdict for each operator, by the target's predicates alone. Errors: bad_argument as those of
/// compile().
[[nodiscard]] Result<std::vector<chip::CompiledOperator>> mapping(
    const model::Model& model, const Backend& backend, const chip::CompileOptions& options);

}  // namespace reef::compiler
