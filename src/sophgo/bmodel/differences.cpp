#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "sophgo/bmodel/reports.h"

namespace reef::sophgo {
namespace {

using chip::Array;
using chip::Object;

/// What is compared, by name: a fact of one side or of both.
using Facts = std::vector<std::pair<std::string, std::string>>;

void add_tensors(Facts& facts, const std::string& place, std::string_view role,
                 const std::vector<std::unique_ptr<schema::TensorT>>& tensors) {
    facts.emplace_back(fmt::format("{}: {}s", place, role), std::to_string(tensors.size()));
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const auto& t = *tensors[i];
        std::vector<std::string> shapes;
        for (const auto& shape : t.shape) shapes.push_back(shape_name(*shape));
        facts.emplace_back(
            fmt::format("{}: {} {}", place, role, i),
            fmt::format("{} [{}] {} scale {} zero point {}", t.name, fmt::join(shapes, "], ["),
                        data_type_name(t.data_type), t.scale, t.zero_point));
        facts.emplace_back(fmt::format("{}: {} {} in memory", place, role, i),
                           fmt::format("{} bytes at {:#x}", t.size, t.device_addr));
    }
}

/// `by_name`: nets of two files meet by their names, not by their numbers.
Facts facts_of(const Bmodel& bmodel) {
    const auto& model = *bmodel.model;
    const BmodelMemory memory = memory_of(bmodel);
    Facts facts = {{"chip", model.chip},
                   {"version", model.type + "." + model.version},
                   {"nets", std::to_string(model.net.size())},
                   {"kernel module", model.kernel_module ? model.kernel_module->file_name : "none"},
                   {"coefficient bytes", std::to_string(memory.coefficients)},
                   {"command bytes", std::to_string(memory.commands)},
                   {"runtime bytes", std::to_string(memory.runtime)},
                   {"host bytes", std::to_string(memory.host())}};
    std::map<std::string, std::size_t> times;
    for (std::size_t n = 0; n < model.net.size(); ++n) {
        const auto& net = *model.net[n];
        const std::size_t again = times[net.name]++;
        const std::string name =
            again == 0 ? "net " + net.name : fmt::format("net {} ({})", net.name, again + 1);
        facts.emplace_back(name + ": address mode", address_mode_name(net.addr_mode));
        facts.emplace_back(name + ": stages", std::to_string(net.parameter.size()));
        for (std::size_t s = 0; s < net.parameter.size(); ++s) {
            const auto& stage = *net.parameter[s];
            const std::string place = fmt::format("{} stage {}", name, s);
            facts.emplace_back(place + ": form", stage.is_dynamic != 0 ? "dynamic" : "static");
            facts.emplace_back(place + ": subnets", std::to_string(stage.sub_net.size()));
            facts.emplace_back(place + ": command bytes",
                               std::to_string(command_bytes(bmodel, n, s)));
            facts.emplace_back(
                place + ": activations",
                fmt::format("{} bytes at {:#x}", activation_bytes(stage), stage.ctx_addr));
            add_tensors(facts, place, "input", stage.input_tensor);
            add_tensors(facts, place, "output", stage.output_tensor);
        }
    }
    return facts;
}

/// Their bytes, under the names of their places.
std::map<std::string, std::optional<Bytes>> contents_of(const Bmodel& bmodel) {
    std::map<std::string, std::optional<Bytes>> out;
    for (const Blob& blob : blobs_of(bmodel)) out.emplace(blob.what, bytes_of(bmodel, blob));
    return out;
}

struct Differing {
    std::string what, a, b;
};

void compare_facts(const Facts& a, const Facts& b, std::vector<Differing>& out) {
    std::set<std::string> seen;
    for (const auto& [name, value] : a) {
        seen.insert(name);
        const auto other = std::ranges::find(b, name, &Facts::value_type::first);
        if (other == b.end())
            out.push_back({name, value, "-"});
        else if (other->second != value)
            out.push_back({name, value, other->second});
    }
    for (const auto& [name, value] : b)
        if (!seen.contains(name)) out.push_back({name, "-", value});
}

void compare_contents(const Bmodel& a, const Bmodel& b, std::vector<Differing>& out) {
    const auto text = [](const std::optional<Bytes>& bytes) {
        return bytes ? fmt::format("{} bytes", bytes->size()) : std::string("outside the file");
    };
    const auto left = contents_of(a), right = contents_of(b);
    for (const auto& [name, bytes] : left) {
        const auto other = right.find(name);
        if (other == right.end()) {
            out.push_back({name, text(bytes), "-"});
        } else if (!bytes || !other->second || bytes->size() != other->second->size()) {
            if (bytes || other->second) out.push_back({name, text(bytes), text(other->second)});
        } else {
            const auto at = std::ranges::mismatch(*bytes, *other->second).in1 - bytes->begin();
            if (static_cast<std::size_t>(at) < bytes->size())
                out.push_back(
                    {name, text(bytes), fmt::format("as many, others from byte {} on", at)});
        }
    }
    for (const auto& [name, bytes] : right)
        if (!left.contains(name)) out.push_back({name, "-", text(bytes)});
}

}  // namespace

chip::FileDifferences bmodel_differences(const Bmodel& a, const Bmodel& b) {
    std::vector<Differing> list;
    compare_facts(facts_of(a), facts_of(b), list);
    compare_contents(a, b, list);
    chip::FileDifferences out;
    out.same = list.empty();
    chip::Table table{{{"what"}, {"A"}, {"B"}}, {}, 0};
    Array rows;
    for (const auto& [what, left, right] : list) {
        table.rows.push_back({what, left, right});
        rows.emplace_back(Object{{"what", what}, {"a", left}, {"b", right}});
    }
    auto& section = out.report.sections.emplace_back(chip::Section{"Differences", {}, {}});
    if (out.same)
        section.lines.emplace_back(chip::Note{"none"});
    else
        section.lines.emplace_back(std::move(table));
    out.report.document = {{"same", out.same}, {"differences", std::move(rows)}};
    return out;
}

}  // namespace reef::sophgo
