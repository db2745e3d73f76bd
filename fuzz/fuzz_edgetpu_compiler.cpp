// The compiler for the Edge TPU: any readable model is refused with a reason or compiled to one
// that reads back, whose programs keep the rules.
#include "check.h"
#include "reef/edgetpu/compiler.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/program_check.h"
#include "reef/model/tflite.h"

namespace reef::fuzz {
namespace {

void check_programs(const model::Model& compiled) {
    const auto packages = edgetpu::packages_of(compiled);
    check(packages.has_value() && !packages->empty(), "packages read");
    for (const auto& op : *packages) {
        for (const auto& executable : op.package.executables) {
            std::vector<Bytes> streams;
            for (const auto& s : executable.bitstreams) streams.push_back(s.instructions.view());
            check(edgetpu::check_program(streams).empty(), "programs keep the rules of form");
            check(edgetpu::check_synchronisation(streams).empty(),
                  "programs keep the rules of synchronisation");
        }
    }
}

void visit(const model::Model& model) {
    for (const std::size_t programs : {1, 3}) {
        const auto compiled =
            edgetpu::compile(model, {.most_programs = programs, .keep_islands = true});
        if (!compiled) {
            check(!compiled.error().what.empty(), "a refusal says why");
            check(compiled.error().hint.find("bug") == std::string::npos,
                  "a refusal is none of ours");
            continue;
        }
        check(compiled->operators.size() == model.subgraphs.front().operators.size(),
              "every operator has a fate");
        const auto file = model::write_tflite(compiled->model);
        if (!file) {
            check(!model.not_preserved.empty(),
                  "a model is written unless something would be lost");
            continue;
        }
        check(model::read_tflite(SharedBytes::copy_of(*file)).has_value(),
              "what was written reads");
        check_programs(compiled->model);
    }
}

}  // namespace
}  // namespace reef::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto model =
        reef::model::read_tflite(reef::SharedBytes::copy_of(std::as_bytes(std::span(data, size))));
    if (model) reef::fuzz::visit(*model);
    return 0;
}
