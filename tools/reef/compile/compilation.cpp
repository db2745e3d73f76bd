#include "compile/compilation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "compile/report.h"
#include "outputs/file_output.h"
#include "outputs/text_table.h"
#include "reef/model/cost.h"
#include "reef/model/tflite.h"
#include "reef/runtime/registry.h"

namespace reef::tool {
namespace {

/// Below it a verification takes a second or so.
constexpr std::int64_t small_model_macs = 20'000'000;

/// Why a model that may be verified is not, unless that is asked for; empty: it is.
std::string why_not_unasked(const CompileVerbOptions& options, const model::Model& plain) {
    if (options.no_verify) return "--no-verify was given";
    const std::int64_t macs = model::cost_of(plain, plain.subgraphs.front()).macs;
    if (macs <= small_model_macs) return {};
    return fmt::format("{} million multiply-adds take their time: --verify verifies them",
                       macs / 1'000'000);
}

Json operators_json(const chip::Compilation& done) {
    Json list = Json::array();
    for (const auto& op : done.operators) {
        Json one = {{"index", op.index}, {"name", op.name}, {"on_chip", op.on_chip}};
        if (!op.on_chip) one["reason"] = in_flags(op.reason);
        list.push_back(std::move(one));
    }
    return list;
}

}  // namespace

bool prints_pass(const CompileVerbOptions& options) {
    return !options.settings.print_after.empty() || !options.settings.print_before.empty();
}

Result<model::Model> load_plain(const std::string& path) {
    auto model = REEF_TRY(model::load_tflite(path));
    const auto drivers = runtime::Registry::of_process().drivers();
    for (const model::Subgraph& graph : model.subgraphs)
        for (std::size_t i = 0; i < graph.operators.size(); ++i)
            for (const auto* driver : drivers)
                if (driver->is_compiled(graph.operators[i]))
                    return fail(
                        Cause::bad_input,
                        fmt::format("the model is compiled already, for {}", driver->family()),
                        path + ": " + model::place_of(graph, i), "compile the plain one");
    return model;
}

Status check_report(const CompileVerbOptions& options) {
    if (options.report.empty()) return {};
    auto read = options.models;
    read.push_back(options.against);
    REEF_CHECK(check_output_file(options.report, read));
    REEF_CHECK(compile_report(Json{{"operators", Json::array()}}, options.report));
    return {};
}

Result<Proof> proof_of(const CompileVerbOptions& options, const chip::Compiler& compiler,
                       const model::Model& plain, const chip::Compilation& done,
                       const std::string& name) {
    const auto family = compiler.family();
    if (options.verify || options.random_seed)
        return Proof{.verification = REEF_TRY(in_place(
                         verify_compiled(plain, done.model, family, options.random_seed), name))};
    for (const auto& why : {why_not_verifiable(family), why_not_unasked(options, plain)})
        if (!why.empty()) return Proof{.missing = why};
    return in_place(verify_if_it_runs(plain, done.model, family), name);
}

void print_operators(Console& console, const chip::Compilation& done, bool all) {
    TextTable table({{"Operator"}, {"Count", Align::right}, {"Status"}});
    std::vector<std::pair<std::pair<std::string, std::string>, std::size_t>> lines;
    for (const auto& op : done.operators) {
        const std::pair key{all ? fmt::format("{} {}", op.index, op.name) : op.name,
                            op.on_chip ? std::string("Mapped to the chip") : op.reason};
        const auto known = std::ranges::find(lines, key, [](const auto& l) { return l.first; });
        if (known == lines.end())
            lines.push_back({key, 1});
        else
            ++known->second;
    }
    for (const auto& [key, count] : lines)
        table.add({printable(key.first), std::to_string(count), printable(in_flags(key.second))});
    table.print(console);
}

void print_proof(Console& console, const Proof& proof) {
    if (!proof.verification)
        return console.print("\nNot verified: {}\n", printable(in_flags(proof.missing)));
    const Verification& v = *proof.verification;
    console.print(
        "\n{}: {} runs{}, {} of {} bytes equal to the plain model's in the chip's "
        "arithmetic, {} of the watched simulator\n",
        v.passed() ? "Verified" : "Not verified", v.runs,
        v.random_seed ? fmt::format(" in a random order (seed {})", *v.random_seed) : "",
        v.bytes - v.differing, v.bytes, plural(v.findings.size(), "finding"));
    if (!v.passed()) console.print("  {}\n", printable(v.first_difference));
    for (const auto& finding : v.findings) console.print("  {}\n", printable(finding));
}

Json document_of(const CompileVerbOptions& options, const chip::Compiler& compiler,
                 const chip::Compilation& done, const Proof& proof,
                 const std::optional<Against>& against) {
    Json document = json_document("compile");
    document["model"] = options.models.front();
    document["target"] = std::string(compiler.family());
    document["output"] = options.out;
    document["operators"] = operators_json(done);
    document.update(to_json(chip::Value(done.document)));
    document["verified"] = proof.verification ? Json(proof.verification->passed()) : Json();
    if (const auto& v = proof.verification) {
        document["verification"] = {{"passed", v->passed()},
                                    {"runs", v->runs},
                                    {"bytes", v->bytes},
                                    {"differing", v->differing},
                                    {"findings", v->findings}};
        if (v->random_seed) document["verification"]["random_seed"] = *v->random_seed;
    } else {
        document["not_verified"] = in_flags(proof.missing);
    }
    if (against) document["against"] = against_json(*against);
    if (prints_pass(options)) document["listing"] = done.listing;
    return document;
}

}  // namespace reef::tool
