#include "compile/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace reef::tool {
namespace {

std::string text_of_value(const Json& value) {
    if (value.is_null()) return "";
    return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string html_text(const std::string& text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

/// A field with a quote, comma or line end stands between quotes (RFC 4180).
std::string csv_field(const std::string& text) {
    if (text.find_first_of("\",\r\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + '"';
}

bool is_list_of_objects(const Json& value) {
    return value.is_array() && !value.empty() &&
           std::ranges::all_of(value, [](const Json& row) { return row.is_object(); });
}

/// Members of members become its own: "bytes_moved.total".
Json flat(const Json& row) {
    Json out = Json::object();
    for (const auto& [key, value] : row.items()) {
        if (!value.is_object()) {
            out[key] = value;
            continue;
        }
        const Json inside = flat(value);
        for (const auto& [inner, held] : inside.items()) out[key + "." + inner] = held;
    }
    return out;
}

/// What stands in one line for each of them.
bool is_table(const Json& value) {
    return is_list_of_objects(value) && std::ranges::none_of(value, [](const Json& row) {
               const Json members = flat(row);
               return std::ranges::any_of(members, is_list_of_objects);
           });
}

/// Keys of all rows, in the order in which they first come.
std::vector<std::string> columns_of(const Json& rows) {
    std::vector<std::string> columns;
    for (const Json& row : rows)
        for (const auto& [key, value] : row.items())
            if (std::ranges::find(columns, key) == columns.end()) columns.push_back(key);
    return columns;
}

std::string html_row(const char* cell, const std::vector<std::string>& texts) {
    std::string out = "<tr>";
    for (const auto& text : texts) out += fmt::format("<{0}>{1}</{0}>", cell, html_text(text));
    return out + "</tr>\n";
}

std::string html_table(const Json& table) {
    Json rows = Json::array();
    for (const Json& row : table) rows.push_back(flat(row));
    const auto columns = columns_of(rows);
    std::string out = "<table>\n" + html_row("th", columns);
    for (const Json& row : rows) {
        std::vector<std::string> cells;
        for (const auto& column : columns)
            cells.push_back(row.contains(column) ? text_of_value(row[column]) : "");
        out += html_row("td", cells);
    }
    return out + "</table>\n";
}

/// Plain members as a table of two columns, then what is inside, each under its name; members of a
/// list that are no lines of a table under the list's name and their number.
std::string html_object(const Json& object, int level) {
    std::string plain, inside;
    for (const auto& [key, value] : object.items()) {
        const auto title = fmt::format("<h{0}>{1}</h{0}>\n", level, html_text(key));
        if (value.is_object())
            inside += title + html_object(value, std::min(level + 1, 6));
        else if (is_table(value))
            inside += title + html_table(value);
        else if (is_list_of_objects(value))
            for (std::size_t i = 0; i < value.size(); ++i)
                inside += fmt::format("<h{0}>{1} {2}</h{0}>\n", level, html_text(key), i) +
                          html_object(value[i], std::min(level + 1, 6));
        else
            plain += html_row("td", {key, text_of_value(value)});
    }
    return (plain.empty() ? "" : "<table>\n" + plain + "</table>\n") + inside;
}

/// Under which several models or one's segments stand in a document; none: it is of one model.
const char* key_of_several(const Json& document) {
    for (const char* key : {"models", "segments"})
        if (document.contains(key)) return key;
    return nullptr;
}

std::string html_page(const Json& document) {
    const char* several = key_of_several(document);
    std::vector<std::string> names;
    for (const Json& one : several != nullptr ? document[several] : Json::array({document}))
        if (const auto name = text_of_value(one.value("model", Json("")));
            std::ranges::find(names, name) == names.end())
            names.push_back(name);
    const std::string title = fmt::format("reef compile {}", fmt::join(names, " "));
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<title>{0}</title>\n<style>body{{font-family:sans-serif;margin:2em}}"
        "table{{border-collapse:collapse}}td,th{{border:1px solid #bbb;padding:.2em .6em;"
        "text-align:left;vertical-align:top}}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{1}"
        "</body>\n</html>\n",
        html_text(title), html_object(document, 2));
}

/// What the programs say of the operator; of some chips they count them alone.
Json in_programs(const Json& document, const Json& index) {
    Json out = Json::object();
    for (const Json& program : document.value("programs", Json::array())) {
        const Json operators = program.value("operators", Json());
        if (!is_list_of_objects(operators)) continue;
        for (const Json& row : operators)
            if (row.value("index", Json()) == index) out.update(flat(row));
    }
    return out;
}

/// One for each operator.
Json operator_rows(const Json& document) {
    Json rows = Json::array();
    for (const Json& row : document["operators"]) {
        Json whole = in_programs(document, row.value("index", Json()));
        for (const auto& [key, value] : row.items()) whole[key] = value;
        rows.push_back(std::move(whole));
    }
    return rows;
}

/// A line for each operator; of several models begun by the model, of segments by their number.
std::string csv_table(const Json& document) {
    std::vector<std::string> columns{"index", "name", "on_chip", "reason"};
    Json rows = Json::array();
    if (const char* several = key_of_several(document)) {
        const bool segments = document.contains("segments");
        columns.insert(columns.begin(), segments ? "segment" : "model");
        for (std::size_t i = 0; i < document[several].size(); ++i)
            for (Json& row : operator_rows(document[several][i])) {
                row[columns.front()] = segments ? Json(i) : document[several][i]["model"];
                rows.push_back(std::move(row));
            }
    } else {
        rows = operator_rows(document);
    }
    for (auto& column : columns_of(rows))
        if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
    std::string out = fmt::format("{}\n", fmt::join(columns, ","));
    for (const Json& row : rows) {
        std::vector<std::string> cells;
        for (const auto& column : columns)
            cells.push_back(csv_field(row.contains(column) ? text_of_value(row[column]) : ""));
        out += fmt::format("{}\n", fmt::join(cells, ","));
    }
    return out;
}

}  // namespace

Result<std::string> compile_report(const Json& document, const std::string& path) {
    if (path.ends_with(".json")) return document.dump(2) + "\n";
    if (path.ends_with(".csv")) return csv_table(document);
    if (path.ends_with(".html")) return html_page(document);
    return fail(Cause::bad_argument, "a report is .html, .csv or .json", path);
}

}  // namespace reef::tool
