#include "rk3588/captures.h"

#include <charconv>
#include <cstring>

#include "reef/base/file.h"
#include "reef/base/npy.h"
#include "support/shared_data.h"

namespace reef::rk3588::test {
namespace {

bool is_word(std::string_view text) {
    return text.size() == 16 &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::uint64_t word_of(std::string_view text) {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value, 16);
    return value;
}

std::vector<std::uint64_t> words_of(Bytes bytes) {
    std::vector<std::uint64_t> words(bytes.size() / 8);
    std::memcpy(words.data(), bytes.data(), words.size() * 8);
    return words;
}

}  // namespace

std::vector<Stream> json_streams(const std::filesystem::path& file) {
    const auto contents = read_file(file.string());
    std::vector<Stream> out;
    if (!contents) return out;
    std::string_view text = as_text(contents->view());
    // Strings of 16 hexadecimal digits are words; "words" begins a task's list.
    while (true) {
        const auto open = text.find('"');
        const auto close = open == text.npos ? open : text.find('"', open + 1);
        if (close == text.npos) break;
        const auto string = text.substr(open + 1, close - open - 1);
        text.remove_prefix(close + 1);
        if (string == "words" || out.empty())
            out.push_back({file.filename().string() + " " + std::to_string(out.size()), {}});
        if (is_word(string)) out.back().words.push_back(word_of(string));
    }
    std::erase_if(out, [](const Stream& stream) { return stream.words.empty(); });
    return out;
}

Stream binary_stream(const std::filesystem::path& file) {
    const auto contents = read_file(file.string());
    return {file.filename().string(),
            contents ? words_of(contents->view()) : std::vector<std::uint64_t>{}};
}

std::vector<Stream> captured_streams(const std::filesystem::path& shared) {
    const auto folder = shared / "data/rknpu/captures";
    std::vector<Stream> out;
    const auto add = [&](std::vector<Stream> streams) {
        for (auto& stream : streams) out.push_back(std::move(stream));
    };
    add(json_streams(folder / "liej6799_add_tasks.json"));
    add(json_streams(folder / "liej6799_dual_residual_tasks.json"));
    for (const auto& file : reef::test::shared_files("data/rknpu/captures/fp16_conv_live", ".json"))
        add(json_streams(file));
    out.push_back(binary_stream(folder / "phhusson_x2/gem2.bin"));
    return out;
}

std::vector<Stream> independent_streams(const std::filesystem::path&) {
    std::vector<Stream> out;
    for (const auto& file : reef::test::shared_files("data/rknpu/conv_int8", ".npz")) {
        const auto contents = read_file(file.string());
        if (!contents) continue;
        const auto arrays = read_npz(contents->view());
        if (!arrays) continue;
        for (const auto& [name, array] : *arrays)
            if (name == "mem_regcmd") out.push_back({file.stem().string(), words_of(array.data)});
    }
    return out;
}

}  // namespace reef::rk3588::test
