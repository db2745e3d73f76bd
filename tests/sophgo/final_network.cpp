#include "sophgo/final_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sophgo/final_text.h"
#include "sophgo/memory_oracle.h"

namespace reef::sophgo {

using testing::IsEmpty;

std::string with(const std::string& text, std::string_view from, std::string_view to) {
    EXPECT_NE(text.find(from), std::string::npos) << from;
    return replaced(text, from, to);
}

std::vector<std::string> found_in(const std::string& text) {
    const auto program = engine().read(text);
    return program ? faults_of(*program) : std::vector{program.error().message()};
}

Result<Cut> right_cut(const std::string& text, std::vector<std::string> names, bool keep) {
    CutRequest request;
    request.at = std::move(names);
    request.keep_group_results = keep;
    auto cut = engine().cut(text, request);
    if (cut) {
        EXPECT_THAT(faults_of(cut->program), IsEmpty());
        EXPECT_EQ(MemoryOracle::harm_of(cut->program), "");
        EXPECT_EQ(engine().print(cut->text).value(), cut->text);
    }
    return cut;
}

std::string at(int block) {
    return fmt::format("tensor<1x16xf32, {} : i64>",
                       neuron_start + 0x1000 * static_cast<unsigned>(block));
}

std::string Network::text() const {
    std::string arguments, main, passed, passed_types, inputs_text, inner, values, types, results,
        outputs_text;
    const auto add = [](std::string& list, const std::string& one) {
        list += (list.empty() ? "" : ", ") + one;
    };
    for (int i = 0; i < inputs; ++i) {
        const std::string name(1, static_cast<char>('x' + i));
        add(arguments, fmt::format("%arg{}: tensor<1x16xf32> loc(unknown)", i));
        main +=
            fmt::format("%i{0} = \"top.Input\"(%arg{0}) : (tensor<1x16xf32>) -> {1} loc(\"{2}\")\n",
                        i, at(i), name);
        add(passed, fmt::format("%i{}", i));
        add(passed_types, at(i));
        add(inputs_text, '"' + name + '"');
        add(inner, fmt::format("%arg{}: {} loc(\"{}\")", i, at(i), name));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        add(values, outputs[i].first);
        add(types, outputs[i].second);
        add(results, outputs.size() == 1 ? "%r" : fmt::format("%r#{}", i));
        add(outputs_text, '"' + names[i] + '"');
    }
    return fmt::format(
        "module @net attributes {{module.addr_mode = \"{0}\", module.chip = \"{1}\", "
        "module.inputs = [{2}], module.outputs = [{3}], module.state = \"TPU_ADDRESSED\", "
        "module.weight_file = \"w.npz\"}} {{\n"
        "module @net attributes {{module.coeff_addr = {4} : i64, module.coeff_size = 0 : i64, "
        "{5}}} {{\n"
        "func.func @main({6}) -> ({7}) {{\n{8}"
        "%r{9} = call @subfunc_0({10}) : ({11}) -> ({7}) loc(unknown)\n"
        "return {12} : {7} loc(unknown)\n}} loc(unknown)\n"
        "func.func @subfunc_0({13}) -> ({7}) attributes {{id = 0 : i64, mode = #tpu<run_mode "
        "TPU_STATIC>, next_index = array<i32: -1>}} {{\n"
        "%none = \"top.None\"() : () -> none loc(unknown)\n{14}"
        "return {15} : {7} loc(unknown)\n}} loc(unknown)\n}} loc(unknown)\n}} loc(unknown)\n",
        mode, chip, inputs_text, outputs_text, coefficient_start, regions, arguments, types, main,
        outputs.size() == 1 ? "" : fmt::format(":{}", outputs.size()), passed, passed_types,
        results, inner, operators, values);
}

std::string op(const std::string& result, const std::string& kind, const std::string& operands,
               const std::string& operand_types, const std::string& type, const std::string& name) {
    return fmt::format("%{} = \"{}\"({}) : ({}) -> {} loc(\"{}\")\n", result, kind, operands,
                       operand_types, type, name);
}

std::string info(int id) {
    return fmt::format("{{ginfo = #tpu.lg<out_addr = 0, id = {}, stage = 0>}}", id);
}

std::string group(const std::string& result, const std::string& operand, const std::string& from,
                  const std::string& to, const std::string& name, const std::string& attributes) {
    const std::string local = "tensor<1x16xf32>";
    return fmt::format(
        "%{0} = \"tpu.Group\"({1}) ({{\n"
        "%l = \"tpu.Load\"({1}) {6} : ({2}) -> {5} loc(\"load_{4}\")\n"
        "%a = \"tpu.Active\"(%l) {7} : ({5}) -> {5} loc(\"{4}\")\n"
        "%s = \"tpu.Store\"(%a, %none) {8} : ({5}, none) -> {3} loc(\"{4}\")\n"
        "\"tpu.Yield\"(%s) : ({3}) -> () loc(\"{4}\")\n"
        "}}) {{{9}}} : ({2}) -> {3} loc(\"{4}\")\n",
        result, operand, from, to, name, local, info(0), info(1), info(2), attributes);
}

Network chain() {
    return {.operators = op("a", "tpu.Active", "%arg0", at(0), at(1), "a") +
                         op("b", "tpu.Active", "%a", at(1), at(2), "b") +
                         op("c", "tpu.Active", "%b", at(2), at(1), "c"),
            .outputs = {{"%c", at(1)}},
            .names = {"c"}};
}

}  // namespace reef::sophgo
