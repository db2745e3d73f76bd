#include "inputs/tensor_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "inputs/image_input.h"
#include "inputs/input_spec.h"
#include "pictures/image.h"
#include "reef/base/file.h"

namespace reef::tool {
namespace {

const model::Tensor& input_tensor(const model::Subgraph& graph, std::size_t position) {
    return graph.tensors[static_cast<std::size_t>(graph.inputs[position])];
}

std::string shape_of(const std::vector<std::int64_t>& shape) {
    return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

/// Up to an axis of one in front that only one of them has: a single picture, say, and a batch.
bool same_up_to_batch(std::span<const std::int64_t> given, std::span<const std::int32_t> wanted) {
    const auto without_batch = [](auto shape) {
        return !shape.empty() && shape.front() == 1 ? shape.subspan(1) : shape;
    };
    if (given.size() + 1 == wanted.size()) return std::ranges::equal(given, without_batch(wanted));
    if (given.size() == wanted.size() + 1) return std::ranges::equal(without_batch(given), wanted);
    return std::ranges::equal(given, wanted);
}

/// The array's bytes, when its type and shape are the tensor's.
Result<std::vector<std::byte>> accept_array(Array array, const model::Tensor& tensor) {
    const bool same_shape = same_up_to_batch(array.shape, tensor.shape);
    if (array.type != tensor.type || !same_shape) {
        return fail(Cause::bad_input,
                    fmt::format("holds {} {}, the input needs {} {}", shape_of(array.shape),
                                name_of(array.type), model::shape_text(tensor.shape),
                                name_of(tensor.type)));
    }
    return std::move(array.data);
}

Result<std::vector<std::byte>> accept_raw(Bytes file, const RawLayout& layout,
                                          const model::Tensor& tensor) {
    const auto expected = tensor.byte_count();
    if (layout.type != tensor.type || !same_up_to_batch(layout.shape, tensor.shape)) {
        return accept_array(Array{layout.type, layout.shape, {}}, tensor);
    }
    if (!expected || static_cast<std::int64_t>(file.size()) != *expected) {
        return fail(Cause::bad_input, fmt::format("holds {} bytes, {} {} needs {}", file.size(),
                                                  model::shape_text(tensor.shape),
                                                  name_of(tensor.type), expected.value_or(0)));
    }
    return std::vector<std::byte>(file.begin(), file.end());
}

bool is_npy(Bytes file) {
    return as_text(file).starts_with("\x93NUMPY");
}
bool is_zip(Bytes file) {
    return as_text(file).starts_with("PK");
}

/// Fills the inputs of one graph from the specs, one after the other.
class Loader {
  public:
    Loader(const model::Subgraph& graph, const PictureRules& pictures)
        : graph_(graph),
          pictures_(pictures),
          bytes_(graph.inputs.size()),
          given_(graph.inputs.size(), false) {
        for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
            names_.push_back(input_tensor(graph, i).name);
        }
    }

    Status add(const std::string& text) {
        const InputSpec spec = REEF_TRY(parse_input_spec(text, names_));
        const SharedBytes file = REEF_TRY(read_file(spec.path));
        const std::string place = spec.path == "-" ? "standard input" : spec.path;
        return in_place(add_file(spec, file.view()), place);
    }

    Result<InputBytes> finish() && {
        for (std::size_t i = 0; i < given_.size(); ++i) {
            if (given_[i]) continue;
            return fail(Cause::bad_argument,
                        fmt::format("{} is not given", describe_input(graph_, i)), {},
                        "add --input FILE");
        }
        return std::move(bytes_);
    }

  private:
    Status add_file(const InputSpec& spec, Bytes file) {
        if (file.empty()) return fail(Cause::bad_input, "the file is empty");
        if (!spec.raw && is_zip(file)) return add_archive(spec, REEF_TRY(read_npz(file)));
        const std::size_t position = REEF_TRY(position_of(spec.name));
        const model::Tensor& tensor = input_tensor(graph_, position);
        if (spec.raw) return set(position, accept_raw(file, *spec.raw, tensor));
        if (is_npy(file)) return set(position, accept_array(REEF_TRY(read_npy(file)), tensor));
        if (looks_like_image(file)) {
            return set(position, prepare_image(REEF_TRY(decode_image(file)), tensor, pictures_));
        }
        return fail(Cause::bad_input, "not a file that reef reads as a tensor", {},
                    fmt::format("reads .npy, .npz, BMP, PNG, JPEG; raw bytes as {}x{}=@FILE",
                                model::shape_text(tensor.shape), name_of(tensor.type)));
    }

    /// Members named as an input or inK go there; a single member of any name goes to the next.
    Status add_archive(const InputSpec& spec, NamedArrays members) {
        if (members.empty()) return fail(Cause::bad_input, "the .npz file has no members");
        if (!spec.name.empty()) return add_member(spec.name, std::move(members));
        bool any = false;
        for (auto& [name, array] : members) {
            const auto position = find_position(name);
            if (!position) continue;
            any = true;
            const model::Tensor& tensor = input_tensor(graph_, *position);
            REEF_CHECK(in_place(set(*position, accept_array(std::move(array), tensor)), name));
        }
        if (any) return {};
        if (members.size() > 1) {
            return fail(Cause::bad_input, "no member of the .npz file is named as an input", {},
                        fmt::format("inputs: in0 to in{}, or {}", names_.size() - 1,
                                    fmt::join(names_, ", ")));
        }
        return add_array({}, std::move(members.front().second));
    }

    Status add_member(const std::string& name, NamedArrays members) {
        const auto found = std::ranges::find(members, name, [](const auto& m) { return m.first; });
        if (found == members.end() && members.size() > 1) {
            return fail(Cause::bad_input, fmt::format("the .npz file has no member '{}'", name));
        }
        return add_array(name,
                         std::move((found == members.end() ? members.begin() : found)->second));
    }

    Status add_array(const std::string& name, Array array) {
        const std::size_t position = REEF_TRY(position_of(name));
        return set(position, accept_array(std::move(array), input_tensor(graph_, position)));
    }

    Status set(std::size_t position, Result<std::vector<std::byte>> bytes) {
        const std::string place = describe_input(graph_, position);
        if (given_[position]) return fail(Cause::bad_argument, "is given twice", place);
        if (!bytes) return std::unexpected(std::move(bytes.error()).in(place));
        given_[position] = true;
        bytes_[position] = std::move(*bytes);
        return {};
    }

    [[nodiscard]] std::optional<std::size_t> find_position(const std::string& name) const {
        const auto found = std::ranges::find(names_, name);
        if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
        return input_position(name, names_.size());
    }

    /// The named input, or the first that has no bytes yet.
    [[nodiscard]] Result<std::size_t> position_of(const std::string& name) const {
        if (!name.empty()) return *find_position(name);
        const auto next = std::ranges::find(given_, false);
        if (next == given_.end()) {
            return fail(Cause::bad_argument,
                        fmt::format("one --input too many: the graph has {}", given_.size()));
        }
        return static_cast<std::size_t>(next - given_.begin());
    }

    const model::Subgraph& graph_;
    const PictureRules& pictures_;
    std::vector<std::string> names_;
    InputBytes bytes_;
    std::vector<bool> given_;
};

}  // namespace

std::string describe_input(const model::Subgraph& graph, std::size_t position) {
    const model::Tensor& tensor = input_tensor(graph, position);
    return fmt::format("input {} '{}', {} {}", position, tensor.name,
                       model::shape_text(tensor.shape), name_of(tensor.type));
}

Result<InputBytes> load_inputs(const model::Subgraph& graph, std::span<const std::string> specs,
                               const PictureRules& pictures) {
    Loader loader(graph, pictures);
    for (const std::string& spec : specs) REEF_CHECK(loader.add(spec));
    return std::move(loader).finish();
}

}  // namespace reef::tool
