// Commands of reef debug: any text is a command or an error, and tensors stay within their bytes.
#include "check.h"
#include "debug/command.h"
#include "debug/print.h"
#include "reef/chip/debugger.h"
#include "reef/runtime/registry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using reef::fuzz::check;
    namespace debug = reef::tool::debug;
    const std::string_view line(reinterpret_cast<const char*>(data), size);
    static const reef::chip::DebugTables& chip =
        reef::runtime::Registry::of_process().parts<reef::chip::DebuggerOpener>().front()->tables();
    const auto command = debug::parse(line, chip);
    if (!command) {
        check(!command.error().what.empty(), "an error says what is wrong");
        return 0;
    }
    if (!*command) return 0;
    const auto* tensor = std::get_if<debug::ShowTensor>(&**command);
    if (tensor == nullptr) return 0;
    const auto bytes = debug::bytes_of(*tensor);
    check(bytes.has_value(), "a tensor that was parsed has a size");
    std::size_t elements = 1;
    for (const auto count : tensor->shape) elements *= count;
    if (elements > 4096) return 0;
    const std::vector<std::byte> memory(*bytes);
    check(!debug::tensor_text(*tensor, memory).empty(), "a tensor has elements");
    check(debug::tensor_json(*tensor, memory).size() == tensor->shape[0], "in nested arrays");
    return 0;
}
