#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>

#include "reef/base/file.h"
#include "reef/rk3588/command_words.h"
#include "reef_schema/rk3588_generated.h"
#include "rk3588/compiler/compile.h"
#include "rk3588/compiler/two_convolutions.h"
#include "rk3588/drm/recording.h"
#include "rk3588/drm/simulated_kernel.h"
#include "rk3588/regs/register_set.h"
#include "rk3588/small_tasks.h"
#include "rk3588_session.h"
#include "seeds.h"

namespace reef::fuzz {
namespace {

std::vector<std::byte> as_bytes_of(const std::vector<std::uint64_t>& words) {
    const auto bytes = std::as_bytes(std::span(words));
    return {bytes.begin(), bytes.end()};
}

/// A task that writes every register, a small one behind it in a chain.
Result<std::vector<std::uint64_t>> two_tasks() {
    rk3588::RegisterSet all;
    for (rk3588::RegisterIndex i = 0; i < rk3588::register_count; ++i)
        if (rk3588::spec::instructions[i].opcode >= 0x1000) all.write(i, 0x01010101U * (i % 16U));
    rk3588::RegisterSet few;
    few.set<"DPU_DATA_CUBE_WIDTH.WIDTH">(7);
    auto words = REEF_TRY(task_words(all, rk3588::Blocks::convolution));
    const auto first_bytes = (words.size() * rk3588::word_bytes + 63) / 64 * 64;
    words = REEF_TRY(
        task_words(all, rk3588::Blocks::convolution, {static_cast<std::uint32_t>(first_bytes), 5}));
    words.resize(first_bytes / rk3588::word_bytes);
    for (const auto word : REEF_TRY(task_words(few, rk3588::Blocks::flying))) words.push_back(word);
    return words;
}

/// The program, whose list of operators refers to the first one alone.
std::vector<std::byte> with_shared_operators(std::vector<std::byte> program) {
    using flatbuffers::uoffset_t;
    const auto& list = *rk3588::schema::GetProgram(program.data())->operators();
    std::byte* entry =
        program.data() + (reinterpret_cast<const std::byte*>(list.Data()) - program.data());
    auto distance = flatbuffers::ReadScalar<uoffset_t>(entry);
    for (std::size_t left = list.size(); left > 0; --left) {
        flatbuffers::WriteScalar(entry, distance);
        entry += sizeof distance;
        distance -= static_cast<uoffset_t>(sizeof distance);
    }
    return program;
}

namespace drm = rk3588::drm;

/// A whole session with a simulated kernel, as the target reads it: lines, a zero, their bytes.
Result<std::vector<std::byte>> session_recording(drm::KernelDriver driver) {
    drm::Recording recording{.device = fmt::format("rk3588:{}", name_of(driver)), .calls = {}};
    {
        const auto port = REEF_TRY(drm::open_port(
            drm::recording_kernel(
                std::make_shared<drm::SimulatedKernel>(drm::SimulatedBoard{.driver = driver}),
                recording),
            driver, {}, drm::Start::each_task));
        REEF_CHECK(copy_on(*port));
    }
    const auto path = (std::filesystem::temp_directory_path() /
                       fmt::format("reef_seed_{}_{}", name_of(driver), getpid()))
                          .string();
    REEF_CHECK(drm::write_recording(path, recording));
    std::vector<std::byte> out;
    for (const auto* ending : {"", ".bin"}) {
        const auto part = REEF_TRY(read_file(path + ending));
        if (!out.empty()) out.push_back(std::byte{0});
        out.insert(out.end(), part.view().begin(), part.view().end());
        std::filesystem::remove(path + ending);
    }
    return out;
}

}  // namespace

Result<Seeds> rk3588_words_seeds() {
    auto chain = as_bytes_of(REEF_TRY(two_tasks()));
    auto container = chain;
    container.insert(container.begin(), 16, std::byte{0x55});
    std::memcpy(container.data(), "RKNN", 4);
    auto cut = chain;
    cut.resize(cut.size() - 5);
    return Seeds{
        {"chain", std::move(chain)}, {"container", std::move(container)}, {"cut", std::move(cut)}};
}

Result<Seeds> rk3588_simulator_seeds() {
    // Addresses are those of the target's buffer of data.
    constexpr std::uint32_t data = 0x4000;
    namespace small = rk3588::test;
    small::SmallConvolution direct{.width = 4, .height = 4, .kernel_width = 2, .pad_left = 1};
    direct.features = direct.weights = direct.biases = data;
    direct.results = data + 0x800;
    auto depthwise = direct;
    depthwise.depthwise = true;
    depthwise.dilation = 2;
    const auto words = [](const rk3588::RegisterSet& set, std::uint32_t blocks) {
        return as_bytes_of(task_words(set, blocks).value());
    };
    const small::FunctionEntries entries{{-100, -50, -10, 0, 3}, {7, 20, 21, 50, 90}};
    auto function = as_bytes_of(entries.words());
    const auto task =
        words(small::flying_function(4, 4, 16, data, data + 0x800), rk3588::Blocks::flying);
    function.insert(function.end(), task.begin(), task.end());
    return Seeds{
        {"function", std::move(function)},
        {"direct", words(direct.registers(), rk3588::Blocks::convolution)},
        {"depthwise", words(depthwise.registers(), rk3588::Blocks::convolution)},
        {"copy", words(small::flying_copy(4, 4, 16, data, data + 0x800), rk3588::Blocks::flying)},
        {"pooling",
         words(small::pooling(4, 4, 16, 2, 2, 1, data, data + 0x800), rk3588::Blocks::pooling)}};
}

Result<Seeds> rk3588_artifact_seeds() {
    Seeds seeds;
    for (const std::int32_t cores : {1, 3}) {
        rk3588::Options numbers;
        numbers.cores = cores;
        const auto compiled = REEF_TRY(
            rk3588::compile(REEF_TRY(reef::test::two_convolutions(cores * 2 - 1)), numbers, {}));
        for (const auto& op : compiled.model.subgraphs.front().operators) {
            const Bytes options = op.custom_options.view();
            seeds.emplace_back("program" + std::to_string(cores),
                               std::vector<std::byte>(options.begin(), options.end()));
        }
    }
    auto cut = seeds.front().second;
    cut.resize(cut.size() / 2);
    seeds.emplace_back("shared", with_shared_operators(seeds.front().second));
    seeds.emplace_back("cut", std::move(cut));
    return seeds;
}

Result<Seeds> rk3588_recording_seeds() {
    const auto bytes = [](std::string_view text) {
        const auto view = as_bytes(text);
        return std::vector<std::byte>(view.begin(), view.end());
    };
    // The lines, a zero, and their bytes.
    std::string calls =
        "rk3588-recording-1 rk3588:rknpu\n00000002 0 4 0 0 0\nc0086440 -1 8 8 3 2\n";
    calls += '\0';
    calls += "/dev12345678abcdefghxyzuv";
    Seeds seeds{{"calls", bytes(calls)}, {"head", bytes("rk3588-recording-1 rk3588:rocket")}};
    for (const auto driver : {drm::KernelDriver::rknpu, drm::KernelDriver::rocket})
        seeds.emplace_back(std::string(name_of(driver)), REEF_TRY(session_recording(driver)));
    return seeds;
}

Result<Seeds> rk3588_asm_seeds() {
    const auto bytes = as_bytes_of(REEF_TRY(two_tasks()));
    Seeds seeds;
    for (const bool symbolic : {false, true}) {
        const auto text =
            rk3588::disassemble(bytes, {.symbolic = symbolic, .addresses = !symbolic});
        const auto view = as_bytes(text);
        seeds.emplace_back(symbolic ? "symbolic" : "plain",
                           std::vector<std::byte>(view.begin(), view.end()));
    }
    const auto other = as_bytes(std::string_view(
        ".stream a\n.word 0x1f ; data\n.stream b\n0x0004: OP_EN CNA=1\n.bytes 0102\n"));
    seeds.emplace_back("directives", std::vector<std::byte>(other.begin(), other.end()));
    return seeds;
}

}  // namespace reef::fuzz
