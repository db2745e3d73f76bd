#include "rk3588/captures.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
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

ConvolutionVector::Buffer* ConvolutionVector::find(std::string_view buffer) {
    const auto found = std::ranges::find(buffers, buffer, &Buffer::name);
    return found == buffers.end() ? nullptr : &*found;
}

namespace {

/// The whole numbers behind a key, as far as the next key's: the JSON is flat but for lists.
std::vector<std::uint64_t> numbers_of(std::string_view json, std::string_view key) {
    std::vector<std::uint64_t> out;
    const auto at = json.find('"' + std::string(key) + "\":");
    if (at == json.npos) return out;
    auto rest = json.substr(at + key.size() + 3);
    rest = rest.substr(0, rest.find_first_of("\"}"));
    while (!rest.empty()) {
        const auto digit = rest.find_first_of("0123456789");
        if (digit == rest.npos) break;
        rest.remove_prefix(digit);
        std::uint64_t value = 0;
        const auto [stop, code] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
        rest.remove_prefix(static_cast<std::size_t>(stop - rest.data()));
        if (code == std::errc{}) out.push_back(value);
    }
    return out;
}

double real_of(std::string_view json, std::string_view key) {
    const auto at = json.find('"' + std::string(key) + "\":");
    return at == json.npos
               ? std::nan("")
               : std::strtod(std::string(json.substr(at + key.size() + 3)).c_str(), nullptr);
}

void read_starts(std::string_view json, ConvolutionVector& out) {
    auto tasks = json.substr(json.find("\"tasks\""));
    while (tasks.find("\"regcmd\"") != tasks.npos) {
        tasks.remove_prefix(tasks.find("\"regcmd\""));
        out.starts.push_back({static_cast<std::uint32_t>(numbers_of(tasks, "regcmd").at(0)),
                              static_cast<std::size_t>(numbers_of(tasks, "count").at(0))});
        tasks.remove_prefix(8);
    }
}

}  // namespace

const Array* ConvolutionArrays::find(std::string_view array) const {
    for (const auto& [key, value] : arrays)
        if (key == array) return &value;
    return nullptr;
}

std::vector<ConvolutionArrays> independent_arrays() {
    std::vector<ConvolutionArrays> out;
    for (const auto& file : reef::test::shared_files("data/rknpu/conv_int8", ".npz")) {
        auto description = file;
        const auto json = read_file(description.replace_extension(".json").string());
        const auto archive = read_file(file.string());
        if (!json || !archive) continue;
        auto arrays = read_npz(archive->view());
        if (!arrays) continue;
        out.push_back({file.stem().string(), std::move(*arrays),
                       static_cast<std::byte>(numbers_of(as_text(json->view()), "wzp").at(0))});
    }
    return out;
}

std::vector<ConvolutionVector> convolution_vectors() {
    std::vector<ConvolutionVector> out;
    for (const auto& file : reef::test::shared_files("data/rknpu/conv_int8", ".json")) {
        const auto json_file = read_file(file.string());
        auto archive = file;
        const auto archive_file = read_file(archive.replace_extension(".npz").string());
        if (!json_file || !archive_file) continue;
        const auto arrays = read_npz(archive_file->view());
        if (!arrays) continue;
        const auto json = as_text(json_file->view());
        auto& one = out.emplace_back();
        one.name = file.stem().string();
        one.size = static_cast<unsigned>(numbers_of(json, "oh").at(0));
        one.channels = static_cast<unsigned>(numbers_of(json, "oc").at(0));
        for (const char* key : {"h", "c", "oc", "k", "stride", "pad_top", "dw", "oh", "izp", "wzp",
                                "ozp", "isc", "wsc", "osc", "add", "azp", "asc"})
            one.layer[key] = real_of(json, key);
        const auto memory = json.substr(json.find("\"mem\""));
        for (const char* name : {"input", "output", "weights", "biases", "regcmd", "addend"}) {
            const auto place = numbers_of(memory, name);
            if (place.size() < 2) continue;
            auto& buffer = one.buffers.emplace_back();
            buffer.name = name;
            buffer.address = static_cast<std::uint32_t>(place[0]);
            buffer.bytes.resize(place[1]);
            for (const auto& [key, array] : *arrays)
                if (key == "mem_" + buffer.name)
                    std::copy_n(array.data.begin(),
                                std::min(array.data.size(), buffer.bytes.size()),
                                buffer.bytes.begin());
        }
        for (const auto& [key, array] : *arrays)
            if (key == "expected") one.expected = array.data;
        read_starts(json, one);
    }
    return out;
}

}  // namespace reef::rk3588::test
