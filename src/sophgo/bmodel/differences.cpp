#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "sophgo/bmodel/reports.h"
#include "sophgo/bmodel/table_differences.h"

namespace reef::sophgo {
namespace {

using chip::Array;
using chip::Object;

/// What is compared besides fields, by name: the same names of every file.
using Facts = std::vector<std::pair<std::string_view, std::string>>;

/// Sums over the tables, and what is not among their fields.
Facts facts_of(const Bmodel& bmodel) {
    const BmodelMemory memory = memory_of(bmodel);
    return {{"nets", std::to_string(bmodel.model->net.size())},
            {"coefficient bytes", std::to_string(memory.coefficients)},
            {"command bytes", std::to_string(memory.commands)},
            {"runtime bytes", std::to_string(memory.runtime)},
            {"host bytes", std::to_string(memory.host())},
            {"fields that are not read", fmt::format("{}", fmt::join(bmodel.not_read, "; "))},
            {"bytes of the binary section", std::to_string(bmodel.header.binary_size)}};
}

/// A range of the binary section with its bytes; none where it leaves the section.
struct Content {
    std::uint64_t start = 0, size = 0;
    std::optional<Bytes> bytes;

    [[nodiscard]] std::string text() const {
        return fmt::format("{} bytes{}", size, bytes ? "" : " outside of the file");
    }
};

/// Under the names of their places, which differ because those of nets do.
std::map<std::string, Content> contents_of(const Bmodel& bmodel) {
    std::map<std::string, Content> out;
    for (const Blob& blob : blobs_of(bmodel))
        out.emplace(blob.what, Content{blob.start, blob.size, bytes_of(bmodel, blob)});
    return out;
}

void compare_facts(const Facts& a, const Facts& b, std::vector<Differing>& out) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i].second != b[i].second)
            out.push_back({std::string(a[i].first), a[i].second, b[i].second});
}

/// The first one that begins elsewhere: those behind it mostly do so because of it.
void compare_starts(const std::map<std::string, Content>& a,
                    const std::map<std::string, Content>& b, std::vector<Differing>& out) {
    for (const auto& [name, content] : a) {
        const auto other = b.find(name);
        if (other == b.end() || other->second.start == content.start) continue;
        const auto text = [&](std::uint64_t start) { return fmt::format("{} at {}", name, start); };
        out.push_back({"starts of ranges", text(content.start), text(other->second.start)});
        return;
    }
}

/// "as many, others from byte 7 on"; empty for equal ones.
std::string difference_text(Bytes a, Bytes b) {
    if (a.size() != b.size()) return fmt::format("{} bytes", b.size());
    const auto at = std::ranges::mismatch(a, b).in1 - a.begin();
    return static_cast<std::size_t>(at) == a.size()
               ? std::string()
               : fmt::format("as many, others from byte {} on", at);
}

void compare_bytes(const std::string& what, Bytes a, Bytes b, std::vector<Differing>& out) {
    if (std::string other = difference_text(a, b); !other.empty())
        out.push_back({what, fmt::format("{} bytes", a.size()), std::move(other)});
}

void compare_contents(const Bmodel& a, const Bmodel& b, std::vector<Differing>& out) {
    const auto left = contents_of(a), right = contents_of(b);
    for (const auto& [name, content] : left) {
        const auto other = right.find(name);
        if (other == right.end())
            out.push_back({name, content.text(), "-"});
        else if (content.bytes && other->second.bytes)
            compare_bytes(name, *content.bytes, *other->second.bytes, out);
        else if (content.text() != other->second.text())
            out.push_back({name, content.text(), other->second.text()});
    }
    for (const auto& [name, content] : right)
        if (!left.contains(name)) out.push_back({name, "-", content.text()});
    compare_starts(left, right, out);
}

std::vector<Differing> differences_of(const Bmodel& a, const Bmodel& b) {
    std::vector<Differing> list = table_differences(a, b);
    compare_facts(facts_of(a), facts_of(b), list);
    compare_contents(a, b, list);
    // Fields that the schema does not have, or the same fields in another order.
    if (list.empty()) compare_bytes("bytes of the tables", a.table_bytes(), b.table_bytes(), list);
    // Reserved words of the header, and what no range names.
    if (list.empty()) compare_bytes("bytes of the file", a.file.view(), b.file.view(), list);
    return list;
}

}  // namespace

chip::FileDifferences bmodel_differences(const Bmodel& a, const Bmodel& b) {
    const std::vector<Differing> list = differences_of(a, b);
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
