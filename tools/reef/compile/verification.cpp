#include "compile/verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <utility>

#include "reef/model/names.h"
#include "reef/runtime/arithmetic.h"
#include "reef/runtime/registry.h"
#include "reef/runtime/session.h"

namespace reef::tool {
namespace {

enum class Drawing { random, least, greatest, picture };
constexpr std::pair<Drawing, std::string_view> drawings[] = {
    {Drawing::random, "random values"},
    {Drawing::picture, "a random picture"},
    {Drawing::least, "the least values"},
    {Drawing::greatest, "the greatest values"},
};

/// 8-bit values anywhere, numbers from -1 to 1, everything else as it is.
void draw(MutableBytes bytes, ElementType type, Drawing how, std::mt19937& random) {
    const bool is_signed = type == ElementType::int8;
    int value = 128;
    const auto next = [&] {
        if (how == Drawing::least) return 0;
        if (how == Drawing::greatest) return 255;
        if (how == Drawing::random) return static_cast<int>(random() % 256);
        value = std::clamp(value + static_cast<int>(random() % 31) - 15, 0, 255);
        return value;
    };
    if (type == ElementType::float32) {
        for (std::size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
            const float number = static_cast<float>(next()) / 127.5F - 1;
            std::memcpy(&bytes[i], &number, sizeof number);
        }
    } else if (type == ElementType::uint8 || is_signed) {
        for (std::byte& b : bytes) b = static_cast<std::byte>(next() ^ (is_signed ? 0x80 : 0));
    }
}

Result<std::string> watched_device(const runtime::Registry& registry, std::string_view family) {
    for (const std::string& device : registry.devices_with(runtime::Capability::strict))
        if (device.starts_with(std::string(family) + ":")) return device;
    return fail(Cause::unsupported, fmt::format("no simulated {} watches programs", family));
}

Result<const cpu::Arithmetic*> chip_arithmetic(const runtime::Registry& registry,
                                               std::string_view family) {
    if (const auto* part = registry.part<runtime::ChipArithmetic>(family))
        return &part->arithmetic();
    return fail(Cause::unsupported,
                fmt::format("the CPU knows no arithmetic of the family {}", family));
}

/// Among those that are computed or keep their value: constants may have any name.
model::TensorIndex named(const model::Subgraph& graph, const std::string& name) {
    const auto is_named = [&](model::TensorIndex i) {
        return i >= 0 && graph.tensors[static_cast<std::size_t>(i)].name == name;
    };
    for (const auto& op : graph.operators)
        for (const model::TensorIndex i : op.outputs)
            if (is_named(i)) return i;
    for (std::size_t i = 0; i < graph.tensors.size(); ++i)
        if (const auto index = static_cast<model::TensorIndex>(i);
            graph.tensors[i].is_variable && is_named(index))
            return index;
    return model::absent_tensor;
}

/// The plain model's tensor that is the compiled one's: an input and an output may have one name,
/// so that these are found by their numbers.
model::TensorIndex same_tensor(const model::Subgraph& plain, const model::Subgraph& compiled,
                               model::TensorIndex index) {
    const auto lists = {std::pair{&compiled.inputs, &plain.inputs},
                        std::pair{&compiled.outputs, &plain.outputs}};
    for (const auto& [list, same] : lists)
        for (std::size_t i = 0; i < std::min(list->size(), same->size()); ++i)
            if ((*list)[i] == index) return (*same)[i];
    return named(plain, compiled.tensors[static_cast<std::size_t>(index)].name);
}

bool is_state(const model::Subgraph& graph, model::TensorIndex index) {
    return graph.tensors[static_cast<std::size_t>(index)].is_variable;
}

/// The operators of the plain model that a program computes, as a model of their own: what the CPU
/// makes of its inputs, and of its outputs, is none of the program's.
Result<model::Model> part_of(const model::Model& plain, const model::Subgraph& compiled,
                             const model::Operator& program) {
    model::Model part = plain;
    auto& graph = part.subgraphs.front();
    const auto find = [&](model::TensorIndex index) -> Result<model::TensorIndex> {
        const auto found = same_tensor(plain.subgraphs.front(), compiled, index);
        if (found != model::absent_tensor) return found;
        return fail(Cause::bad_input,
                    fmt::format("the plain model has no tensor '{}'",
                                compiled.tensors[static_cast<std::size_t>(index)].name));
    };
    graph.inputs.clear();
    graph.outputs.clear();
    // States are the part's own.
    for (const auto index : program.inputs) {
        const auto found = REEF_TRY(find(index));
        if (!is_state(graph, found)) graph.inputs.push_back(found);
    }
    for (const auto index : program.outputs) graph.outputs.push_back(REEF_TRY(find(index)));
    std::set<model::TensorIndex> needed(graph.outputs.begin(), graph.outputs.end());
    for (const auto index : graph.inputs) needed.erase(index);
    std::vector<model::Operator> kept;
    for (auto op = graph.operators.rbegin(); op != graph.operators.rend(); ++op) {
        if (std::ranges::none_of(op->outputs, [&](auto o) { return needed.contains(o); })) continue;
        needed.insert(op->inputs.begin(), op->inputs.end());
        for (const auto index : graph.inputs) needed.erase(index);
        kept.push_back(std::move(*op));
    }
    std::ranges::reverse(kept);
    graph.operators = std::move(kept);
    part.signatures.clear();
    return part;
}

class Verifier {
  public:
    Verifier(runtime::Session& compiled, const runtime::Driver& driver)
        : compiled_(compiled), driver_(driver) {}

    Status add_parts(const model::Model& plain, const cpu::Arithmetic& arithmetic) {
        for (const auto& op : compiled_.graph().operators) {
            if (!driver_.is_compiled(op)) continue;
            const auto part = REEF_TRY(part_of(plain, compiled_.graph(), op));
            parts_.push_back(
                {&op, REEF_TRY(runtime::Session::open(part, {.arithmetic = &arithmetic}))});
        }
        return {};
    }

    Result<Verification> run() {
        std::mt19937 random(1);
        for (const auto& [how, name] : drawings) {
            for (std::size_t i = 0; i < compiled_.input_count(); ++i) {
                const auto tensor = static_cast<std::size_t>(compiled_.graph().inputs[i]);
                draw(compiled_.input(i), compiled_.graph().tensors[tensor].type, how, random);
            }
            REEF_CHECK(compiled_.run());
            ++out_.runs;
            for (auto& part : parts_) REEF_CHECK(compare(part, name));
            for (const auto& finding : compiled_.findings()) note(finding.message);
        }
        return std::move(out_);
    }

  private:
    struct Part {
        const model::Operator* program;
        runtime::Session plain;
    };

    void note(const std::string& message) {
        if (std::ranges::find(out_.findings, message) == out_.findings.end())
            out_.findings.push_back(message);
    }

    /// The plain operators get what the program got; states go on in both by themselves.
    Status compare(Part& part, std::string_view input) {
        std::size_t given = 0;
        for (const auto index : part.program->inputs)
            if (!is_state(compiled_.graph(), index))
                std::ranges::copy(compiled_.tensor(index), part.plain.input(given++).begin());
        REEF_CHECK(part.plain.run());
        for (const auto index : part.program->inputs) {
            if (!is_state(compiled_.graph(), index)) continue;
            const auto& name = compiled_.graph().tensors[static_cast<std::size_t>(index)].name;
            compare(compiled_.tensor(index), part.plain.tensor(named(part.plain.graph(), name)),
                    name, input);
        }
        for (std::size_t i = 0; i < part.plain.output_count(); ++i) {
            const auto index = part.program->outputs[i];
            compare(compiled_.tensor(index), part.plain.output(i),
                    compiled_.graph().tensors[static_cast<std::size_t>(index)].name, input);
        }
        return {};
    }

    void compare(Bytes got, Bytes want, const std::string& name, std::string_view input) {
        out_.bytes += want.size();
        std::uint64_t differing = got.size() == want.size() ? 0 : want.size();
        for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i)
            differing += got[i] != want[i] ? 1 : 0;
        if (differing != 0 && out_.first_difference.empty())
            out_.first_difference =
                fmt::format("{} of {} bytes of '{}' on {}", differing, want.size(), name, input);
        out_.differing += differing;
    }

    runtime::Session& compiled_;
    const runtime::Driver& driver_;
    std::vector<Part> parts_;
    Verification out_;
};

}  // namespace

Result<Verification> verify_compiled(const model::Model& plain, const model::Model& compiled,
                                     std::string_view family, OrderSeed random_seed) {
    const auto& registry = runtime::Registry::of_process();
    // A family with a device has a driver.
    const std::string device = REEF_TRY(watched_device(registry, family));
    const auto* arithmetic = REEF_TRY(chip_arithmetic(registry, family));
    runtime::DeviceChoice watched(device, {{"strict", true}});
    if (random_seed)
        watched.options.push_back({"random_seed", static_cast<std::int64_t>(*random_seed)});
    auto chip = REEF_TRY(runtime::Session::open(
        compiled, {.devices = {std::move(watched)}, .keep_all_tensors = true}));
    Verifier verifier(chip, *registry.find_driver(family));
    const auto renamed = model::with_distinct_names(plain);
    REEF_CHECK(verifier.add_parts(renamed ? *renamed : plain, *arithmetic));
    Verification done = REEF_TRY(verifier.run());
    done.random_seed = random_seed;
    return done;
}

std::string why_not_verifiable(std::string_view family) {
    const auto& registry = runtime::Registry::of_process();
    if (const auto device = watched_device(registry, family); !device) return device.error().what;
    if (const auto known = chip_arithmetic(registry, family); !known) return known.error().what;
    return {};
}

Result<Proof> verify_if_it_runs(const model::Model& plain, const model::Model& compiled,
                                std::string_view family) {
    auto verified = verify_compiled(plain, compiled, family);
    if (verified) return Proof{.verification = std::move(*verified)};
    if (verified.error().cause == Cause::unsupported)
        if (const auto runs = runtime::Session::open(plain, {});
            !runs && runs.error().cause == Cause::unsupported)
            return Proof{.missing = runs.error().message()};
    return std::unexpected(std::move(verified).error());
}

}  // namespace reef::tool
