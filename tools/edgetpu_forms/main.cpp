// reef_edgetpu_forms SHARED FORMS.xml: counts the forms of instructions in the vendor's programs of
// the reference data.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "edgetpu/isa/form.h"
#include "reef/base/file.h"
#include "reef/runtime/program_streams.h"

namespace reef {
namespace {

constexpr const char* head = R"(<?xml version="1.0" encoding="UTF-8"?>
<!--
The forms of instructions in the vendor's programs: what an instruction is without its numbers
(src/edgetpu/isa/form.h). Made by the target edgetpu_forms; do not edit.
-->
<forms name="edgetpu" title="Edge TPU: forms of instructions">
  <doc>What the instructions of the vendor's programs are without their numbers: {} forms of {} instructions
    in {} files (data/models, data/edgetpu/templates, programs, wild and silicon of the reference data). A wait
    and a signal stand with their level, a nest with the dimensions that move, the level at which it takes
    turns and that at which it is cropped. A form that is not here is one that no known program proves.</doc>
)";

struct Census {
    std::size_t instructions = 0;
    std::set<std::string> files;
};

std::vector<std::string> files_in(const std::filesystem::path& shared) {
    const std::pair<const char*, const char*> places[] = {
        {"data/models", "_edgetpu.tflite"},
        {"data/edgetpu/templates", "_edgetpu.tflite"},
        {"data/edgetpu/programs", ".coral"},
        {"data/edgetpu/wild", "_edgetpu.tflite"},
        {"data/edgetpu/silicon", "edgetpu.tflite"}};
    std::vector<std::string> files;
    for (const auto& [folder, ending] : places)
        for (const auto& file : std::filesystem::directory_iterator(shared / folder))
            if (file.path().string().ends_with(ending)) files.push_back(file.path().string());
    std::ranges::sort(files);
    return files;
}

Status write_forms(const std::string& shared, const std::string& to) {
    std::map<std::string, Census> forms;
    std::size_t instructions = 0;
    const auto files = files_in(shared);
    for (const auto& path : files) {
        const auto bytes = REEF_TRY(read_file(path));
        for (const auto& program : REEF_TRY(in_place(runtime::program_streams_of(bytes), path)))
            for (const Bytes stream : program.chunks)
                for (const auto& one : REEF_TRY(in_place(edgetpu::decode(stream), path))) {
                    Census& census = forms[edgetpu::form_of(one)];
                    ++census.instructions;
                    census.files.insert(path);
                    ++instructions;
                }
    }
    std::string text = fmt::format(fmt::runtime(head), forms.size(), instructions, files.size());
    for (const auto& [form, census] : forms)
        text += fmt::format("  <form seen=\"{}\" files=\"{}\">{}</form>\n", census.instructions,
                            census.files.size(), form);
    return write_file(to, as_bytes(text + "</forms>\n"));
}

}  // namespace
}  // namespace reef

int main(int argc, char** argv) {
    if (argc != 3) {
        fmt::print(stderr, "usage: reef_edgetpu_forms SHARED FORMS.xml\n");
        return 2;
    }
    const auto done = reef::write_forms(argv[1], argv[2]);
    if (done) return 0;
    fmt::print(stderr, "reef_edgetpu_forms: {}\n", done.error().message());
    return 1;
}
