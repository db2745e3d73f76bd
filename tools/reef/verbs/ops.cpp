// reef ops: the support matrix, out of the tables that place operators.
#include <CLI/CLI.hpp>
#include <memory>

#include "outputs/json_output.h"
#include "outputs/text_table.h"
#include "reef/cpu/support.h"
#include "verbs/verb.h"

namespace reef::tool {
namespace {

struct OpsOptions {
    bool json = false;
    bool markdown = false;
};

void print_markdown(Console& console, const std::vector<cpu::SupportedOperator>& operators) {
    console.write("| operator | cpu | cpu, --arithmetic edgetpu |\n|---|---|---|\n");
    for (const auto& op : operators)
        console.print("| `{}` | {} | {} |\n", op.name, op.supports, op.edgetpu_arithmetic);
}

Json to_json(const std::vector<cpu::SupportedOperator>& operators) {
    Json document = json_document("ops");
    document["operators"] = Json::array();
    for (const auto& op : operators) {
        Json devices = {{"cpu", op.supports}};
        if (!op.edgetpu_arithmetic.empty())
            devices["cpu,arithmetic=edgetpu"] = op.edgetpu_arithmetic;
        document["operators"].push_back(
            {{"name", op.name}, {"custom", op.custom}, {"devices", std::move(devices)}});
    }
    return document;
}

void print_table(Console& console, const std::vector<cpu::SupportedOperator>& operators) {
    TextTable table({{"operator"}, {"cpu"}, {"cpu, --arithmetic edgetpu"}});
    for (const auto& op : operators) table.add({op.name, op.supports, op.edgetpu_arithmetic});
    console.print("{}\n", console.heading(plural(operators.size(), "operator") + " on cpu"));
    table.print(console);
}

}  // namespace

Action add_ops(CLI::App& app) {
    auto options = std::make_shared<OpsOptions>();
    auto* json = app.add_flag("--json", options->json, "Print JSON");
    app.add_flag("--markdown", options->markdown, "Print a Markdown table")->excludes(json);
    app.footer(
        "Examples:\n"
        "  reef ops\n"
        "  reef ops --json | jq -r '.operators[].name'");
    return [options](Console& console) -> Result<Exit> {
        const auto operators = cpu::supported_operators();
        if (options->json) {
            print_json(console, to_json(operators));
        } else if (options->markdown) {
            print_markdown(console, operators);
        } else {
            print_table(console, operators);
        }
        return Exit::ok;
    };
}

}  // namespace reef::tool
