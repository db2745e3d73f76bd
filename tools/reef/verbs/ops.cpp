// reef ops: the support matrix, out of the tables that place operators.
#include <CLI/CLI.hpp>
#include <memory>

#include "compile/support.h"
#include "outputs/json_output.h"
#include "outputs/text_table.h"
#include "reef/cpu/support.h"
#include "reef/runtime/arithmetic.h"
#include "reef/runtime/registry.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

constexpr std::string_view legend =
    "Constant: in the file, or what follows from constants and from shapes before a run.\n"
    "Error of float32: how far a result lies from the real one at most. One rounding: it is the "
    "nearest float32.\nulp: units in its last place. n 2^-24 S: n terms are added whose absolute "
    "values add up to S (a row's results in\nSOFTMAX and L2_NORMALIZATION; in LOG_SOFTMAX 1 and "
    "the result; in RESIZE_BILINEAR n is 4 and the input's height\nand width; in the LSTM S is of "
    "all gates and steps, times the weights on the way to the result).";

struct OpsOptions {
    bool json = false;
    bool markdown = false;
    bool compilers = false;
};

/// The CPU's operators, in TFLite's arithmetic and in that of each chip that has one of its own.
struct Matrix {
    std::vector<std::string> arithmetics;                      ///< of chips
    std::vector<std::vector<cpu::SupportedOperator>> columns;  ///< one for each; one without any
    [[nodiscard]] const std::vector<cpu::SupportedOperator>& operators() const {
        return columns.front();
    }
};

Matrix matrix() {
    Matrix matrix;
    for (const auto* chip : runtime::Registry::of_process().parts<runtime::ChipArithmetic>()) {
        matrix.arithmetics.emplace_back(chip->family());
        matrix.columns.push_back(cpu::supported_operators(&chip->arithmetic()));
    }
    if (matrix.columns.empty()) matrix.columns.push_back(cpu::supported_operators());
    return matrix;
}

void print_markdown(Console& console, const Matrix& matrix) {
    std::string titles, rule;
    for (const std::string& name : matrix.arithmetics) {
        titles += fmt::format(" cpu, --arithmetic {} |", name);
        rule += "---|";
    }
    console.print("| operator | cpu | error of float32 |{}\n|---|---|---|{}\n", titles, rule);
    for (std::size_t i = 0; i < matrix.operators().size(); ++i) {
        const auto& op = matrix.operators()[i];
        console.print("| `{}` | {} | {} |", op.name, op.supports, op.float_error);
        for (std::size_t c = 0; c < matrix.arithmetics.size(); ++c)
            console.print(" {} |", matrix.columns[c][i].in_arithmetic);
        console.print("\n");
    }
    console.print("\n{}\n", legend);
}

Json to_json(const Matrix& matrix) {
    Json document = json_document("ops");
    document["operators"] = Json::array();
    for (std::size_t i = 0; i < matrix.operators().size(); ++i) {
        const auto& op = matrix.operators()[i];
        Json devices = {{"cpu", op.supports}};
        for (std::size_t c = 0; c < matrix.arithmetics.size(); ++c)
            if (const auto& text = matrix.columns[c][i].in_arithmetic; !text.empty())
                devices["cpu,arithmetic=" + matrix.arithmetics[c]] = text;
        document["operators"].push_back(
            {{"name", op.name}, {"custom", op.custom}, {"devices", std::move(devices)}});
        if (!op.float_error.empty()) document["operators"].back()["float32_error"] = op.float_error;
    }
    return document;
}

void print_table(Console& console, const Matrix& matrix) {
    std::vector<Column> columns = {{"operator"}, {"cpu"}, {"error of float32"}};
    for (const std::string& name : matrix.arithmetics)
        columns.push_back({fmt::format("cpu, --arithmetic {}", name)});
    TextTable table(std::move(columns));
    for (std::size_t i = 0; i < matrix.operators().size(); ++i) {
        std::vector<std::string> row = {matrix.operators()[i].name, matrix.operators()[i].supports,
                                        matrix.operators()[i].float_error};
        for (std::size_t c = 0; c < matrix.arithmetics.size(); ++c)
            row.push_back(matrix.columns[c][i].in_arithmetic);
        table.add(std::move(row));
    }
    console.print("{}\n",
                  console.heading(plural(matrix.operators().size(), "operator") + " on cpu"));
    table.print(console);
}

template <typename Table>
void print(Console& console, const OpsOptions& options, const Table& table) {
    if (options.json)
        print_json(console, to_json(table));
    else if (options.markdown)
        print_markdown(console, table);
    else
        print_table(console, table);
}

}  // namespace

Action add_ops(CLI::App& app) {
    auto options = std::make_shared<OpsOptions>();
    auto* json = app.add_flag("--json", options->json, "Print JSON");
    app.add_flag("--markdown", options->markdown, "Print a Markdown table")->excludes(json);
    app.add_flag("--compilers", options->compilers,
                 "What the compilers of chips take instead, each shown a network of one operator");
    app.footer(
        "Examples:\n"
        "  reef ops\n"
        "  reef ops --compilers\n"
        "  reef ops --json | jq -r '.operators[].name'");
    return [options](Console& console) -> Result<Exit> {
        if (options->compilers)
            print(console, *options, REEF_TRY(compiler_support()));
        else
            print(console, *options, matrix());
        return Exit::ok;
    };
}

}  // namespace reef::tool
