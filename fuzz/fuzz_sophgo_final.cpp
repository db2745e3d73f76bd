// final.mlir: any text is read or refused, prints back the same, and a cut of a network without
// fault has none. Words of a text take each other's places, because few bytes can change alone
// without leaving MLIR's grammar.
#include <algorithm>
#include <random>
#include <string_view>
#include <vector>

#include "check.h"
#include "reef/sophgo/bisect.h"
#include "reef/sophgo/final_engine.h"
#include "sophgo/final/check.h"
#include "sophgo/final/parts.h"

extern "C" const reef::sophgo::FinalEngine* reef_sophgo_final_engine();
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace reef;

bool right(const sophgo::FinalProgram& program) {
    const auto findings = sophgo::check_program(program).findings;
    return std::ranges::none_of(findings, [](const auto& one) { return one.fault; });
}

void cut(const sophgo::FinalEngine& engine, std::string_view text, bool was_right,
         const std::string& at, bool keep_results) {
    sophgo::CutRequest request;
    request.at = {at};
    request.keep_group_results = keep_results;
    const auto cut = engine.cut(text, request);
    if (!cut) return;
    const auto again = engine.read(cut->text);
    fuzz::check(again.has_value(), "a cut is read again");
    fuzz::check(!was_right || right(*again), "a cut of what has no fault has none");
    fuzz::check(engine.print(cut->text) == cut->text, "a cut is a canonical print");
}

enum class Kind : std::uint8_t { digit, letter, blank, sign };
Kind kind_of(char c) {
    if (c >= '0' && c <= '9') return Kind::digit;
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') return Kind::letter;
    return c == ' ' || c == '\n' ? Kind::blank : Kind::sign;
}

/// Numbers, words and signs, without what is between them.
std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> out;
    for (std::size_t begin = 0; begin < text.size();) {
        const Kind kind = kind_of(text[begin]);
        std::size_t end = begin + 1;
        while (kind != Kind::sign && end < text.size() && kind_of(text[end]) == kind) ++end;
        if (kind != Kind::blank) out.push_back(text.substr(begin, end - begin));
        begin = end;
    }
    return out;
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.size() - 1, text.find('\n')) + 1;
        out.push_back(text.substr(0, end));
        text.remove_prefix(end);
    }
    return out;
}

/// A word in place of another of its kind, or a line taken out, doubled or moved.
std::string changed(std::string_view text, std::minstd_rand& random) {
    const bool whole_line = random() % 4 == 0;
    const auto parts = whole_line ? lines_of(text) : words_of(text);
    if (parts.empty()) return std::string(text);
    const auto any = [&] { return parts[random() % parts.size()]; };
    const std::string_view at = any();
    std::string_view other = any();
    for (int i = 0; i < 20 && !whole_line && kind_of(other[0]) != kind_of(at[0]); ++i)
        other = any();
    const auto before = static_cast<std::size_t>(at.data() - text.data());
    std::string out(text.substr(0, before));
    if (!whole_line || random() % 2 == 0) out += other;
    if (whole_line && random() % 2 == 0) out += at;
    return out += text.substr(before + at.size());
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
    std::minstd_rand random(seed);
    if (random() % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
    const std::string text =
        changed({reinterpret_cast<const char*>(data), size}, random).substr(0, max_size);
    std::ranges::copy(text, data);
    return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const sophgo::FinalEngine& engine = *reef_sophgo_final_engine();
    if (const auto printed = engine.print(text))
        fuzz::check(engine.print(*printed) == *printed, "a print prints back as it is");
    const auto program = engine.read(text);
    if (!program) return 0;
    const bool was_right = right(*program);
    (void)sophgo::report_of(*program, chip::Detail::all);
    const auto units = sophgo::units_of(*program);
    for (std::size_t i = 0; i < std::min<std::size_t>(units.size(), 8); ++i)
        for (const std::string& name : units[i].names)
            cut(engine, text, was_right, name, i % 2 != 0);
    return 0;
}
