#include "inputs/tensor_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "outputs/array_output.h"
#include "reef/base/file.h"

namespace reef::tool {
namespace {

namespace fs = std::filesystem;

Result<NamedArrays> load_folder(const std::string& path) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().extension() == ".npy") files.push_back(entry->path());
    }
    if (error) return fail(Cause::io_failed, error.message(), path);
    if (files.empty()) return fail(Cause::bad_input, "the folder holds no .npy files", path);
    std::ranges::sort(files);
    NamedArrays arrays;
    for (const fs::path& file : files) {
        const SharedBytes bytes = REEF_TRY(read_file(file.string()));
        arrays.emplace_back(file.stem().string(),
                            REEF_TRY(in_place(read_npy(bytes.view()), file.string())));
    }
    return arrays;
}

Result<NamedArrays> load_file(const std::string& path) {
    const SharedBytes file = REEF_TRY(read_file(path));
    if (file.empty()) return fail(Cause::bad_input, "the file is empty", path);
    if (as_text(file.view()).starts_with("PK")) {
        NamedArrays members = REEF_TRY(in_place(read_npz(file.view()), path));
        if (members.empty()) {
            return fail(Cause::bad_input, "the .npz file has no members", path);
        }
        return members;
    }
    NamedArrays arrays;
    arrays.emplace_back(std::string(), REEF_TRY(in_place(read_npy(file.view()), path)));
    return arrays;
}

Status set_device_option(DeviceOptions& options, std::string_view key, std::string_view value) {
    if (key == "kernels" && (value == "fast" || value == "reference")) {
        options.kernels = value;
        return {};
    }
    const auto rules = arithmetics();
    if (key == "arithmetic" && std::ranges::find(rules, value) != rules.end()) {
        options.arithmetic = value;
        return {};
    }
    if (key == "placed-as" && !value.empty()) {
        options.placed_as = value;
        return {};
    }
    if (key == "threads") {
        const auto [end, error] =
            std::from_chars(value.data(), value.data() + value.size(), options.threads);
        const bool whole = error == std::errc{} && end == value.data() + value.size();
        if (whole && options.threads >= 1 && options.threads <= 256) return {};
    }
    return fail(Cause::bad_argument,
                fmt::format("'{}={}' is not an option of a device", key, value), {},
                fmt::format("kernels=fast, kernels=reference, arithmetic={}, placed-as=COMPILED, "
                            "threads=1 to 256",
                            fmt::join(rules, ", arithmetic=")));
}

}  // namespace

Result<NamedArrays> load_tensor_set(const std::string& path) {
    std::error_code ignored;
    return fs::is_directory(path, ignored) ? load_folder(path) : load_file(path);
}

NamedArrays computed_tensors(const runtime::Session& session) {
    const model::Subgraph& graph = session.graph();
    NamedArrays arrays;
    std::vector<bool> seen(graph.tensors.size(), false);
    for (const model::Operator& op : graph.operators) {
        for (const model::TensorIndex index : op.outputs) {
            if (index == model::absent_tensor) continue;
            const auto i = static_cast<std::size_t>(index);
            if (seen[i]) continue;
            seen[i] = true;
            arrays.emplace_back(fmt::format("t{:04}", index),
                                array_of(graph.tensors[i], session.tensor(index)));
        }
    }
    return arrays;
}

NamedArrays graph_outputs(const runtime::Session& session) {
    NamedArrays arrays;
    const model::Subgraph& graph = session.graph();
    for (std::size_t i = 0; i < session.output_count(); ++i) {
        const auto& tensor = graph.tensors[static_cast<std::size_t>(graph.outputs[i])];
        arrays.emplace_back(fmt::format("out{}", i), array_of(tensor, session.output(i)));
    }
    return arrays;
}

Result<DeviceOptions> parse_device_options(std::string_view text) {
    DeviceOptions options;
    options.device = text.substr(0, text.find(','));
    std::string_view rest = text.substr(options.device.size());
    while (!rest.empty()) {
        rest.remove_prefix(1);
        const std::string_view item = rest.substr(0, rest.find(','));
        const std::string_view key = item.substr(0, item.find('='));
        const std::string_view value =
            key.size() < item.size() ? item.substr(key.size() + 1) : std::string_view{};
        REEF_CHECK(set_device_option(options, key, value));
        rest.remove_prefix(item.size());
    }
    return options;
}

}  // namespace reef::tool
