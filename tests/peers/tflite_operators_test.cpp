// Reef's kernels against TensorFlow Lite itself, on random cases of every operator:
// REEF_TFLITE_LIBRARY names its library (`./dev tflite` fetches it). REEF_FIRST_SEED and REEF_SEEDS
// choose the cases.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>

#include "cpu/plain/operator_case.h"
#include "peers/tflite_peer.h"
#include "reef/cpu/placer.h"
#include "reef/graph/executor.h"

namespace reef::peers {
namespace {

using plain::NamedMaker;
using plain::OperatorCase;
using Outputs = std::vector<std::vector<std::byte>>;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::vector<std::vector<std::byte>> inputs_of(const OperatorCase& one) {
    std::vector<std::vector<std::byte>> inputs;
    for (const plain::Values& values : one.inputs)
        if (values.role == plain::Role::input) inputs.push_back(plain::stored_bytes(values));
    return inputs;
}

Result<Outputs> run_ours(const model::Model& model, const OperatorCase& one,
                         cpu::KernelSet kernels) {
    auto ours =
        REEF_TRY(graph::Executor::create(model, {.placers = {cpu::placer({.kernels = kernels})}}));
    const auto inputs = inputs_of(one);
    for (std::size_t i = 0; i < inputs.size(); ++i)
        std::ranges::copy(inputs[i], ours.input(i).begin());
    REEF_CHECK(ours.run());
    Outputs outputs;
    for (std::size_t o = 0; o < ours.output_count(); ++o)
        outputs.emplace_back(ours.output(o).begin(), ours.output(o).end());
    return outputs;
}

Result<Outputs> run_tflite(const model::Model& model, const OperatorCase& one) {
    auto theirs = REEF_TRY(TflitePeer::create(model, TfliteKernels::builtin, 1));
    const auto inputs = inputs_of(one);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (theirs.input(i).size() != inputs[i].size())
            return fail(Cause::bad_input, fmt::format("input {} has another size there", i));
        std::ranges::copy(inputs[i], theirs.input(i).begin());
    }
    REEF_CHECK(theirs.run());
    Outputs outputs;
    for (const Bytes output : theirs.outputs()) outputs.emplace_back(output.begin(), output.end());
    return outputs;
}

void write_all(int file, Bytes bytes) {
    while (!bytes.empty()) {
        const auto written = ::write(file, bytes.data(), bytes.size());
        if (written <= 0) std::_Exit(1);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
}

void write_sized(int file, Bytes bytes) {
    const std::size_t size = bytes.size();
    write_all(file, std::as_bytes(std::span(&size, 1)));
    write_all(file, bytes);
}

std::vector<std::byte> read_all(int file) {
    std::vector<std::byte> bytes;
    std::array<std::byte, 4096> piece{};
    for (ssize_t n = 0; (n = ::read(file, piece.data(), piece.size())) > 0;)
        bytes.insert(bytes.end(), piece.begin(), piece.begin() + n);
    return bytes;
}

/// In a process of its own: what the library does not check, it aborts or falls over.
/// Its outputs, or why it has none.
Result<Outputs> run_theirs(const model::Model& model, const OperatorCase& one) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return fail(Cause::io_failed, "no pipe");
    const pid_t child = ::fork();
    if (child == 0) {
        const auto outputs = run_tflite(model, one);
        if (!outputs) {
            write_all(ends[1], as_bytes(outputs.error().what));
            std::_Exit(2);
        }
        for (const auto& output : *outputs) write_sized(ends[1], output);
        std::_Exit(0);
    }
    ::close(ends[1]);
    const auto bytes = read_all(ends[0]);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        return fail(Cause::unsupported, fmt::format("ended by signal {}", WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        return fail(Cause::unsupported,
                    std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    Outputs outputs;
    for (std::size_t at = 0; at < bytes.size();) {
        std::size_t size = 0;
        std::memcpy(&size, bytes.data() + at, sizeof size);
        const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at + sizeof size);
        outputs.emplace_back(first, first + static_cast<std::ptrdiff_t>(size));
        at += sizeof size + size;
    }
    return outputs;
}

float float_at(const std::vector<std::byte>& bytes, std::size_t i) {
    float value = 0;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
}

/// How far two float32 results of the operator may be from each other, in the unit of the kernel's
/// bound: each within it of the real one.
double most_apart(model::Op op) {
    return 2 * plain::float_bound(op);
}

/// In that unit. TFLite's GELU, x (1 + erf(x / sqrt 2)) / 2, has lost all digits where x is far
/// below zero: its distance is that of a sum near 1 times x.
double apart(const OperatorCase& one, std::size_t output, std::size_t i, float a, float b) {
    const double distance = std::abs(static_cast<double>(a) - static_cast<double>(b));
    if (one.op != model::Op::gelu) return plain::float_distance(one, output, i, distance);
    constexpr double last_bit_of_one = 0x1p-23;
    return distance / (last_bit_of_one * std::abs(one.inputs[0].stored[i]));
}

/// Where Reef differs from TFLite 2.9 on purpose (docs/exactness.md): it knows one scale of
/// FULLY_CONNECTED's weights.
bool differs_on_purpose(const OperatorCase& one) {
    return one.op == model::Op::fully_connected && one.inputs[1].scales.size() > 1 &&
           one.outputs[0].type != ElementType::float32;
}

/// What all cases of an operator showed.
struct Findings {
    int compared = 0, wrong = 0, on_purpose = 0;
    double farthest = 0;  ///< of float32, in the unit of the kernel's bound
    std::map<std::string, int> refusals{};
    std::string first_wrong{};
};

std::string compare(const OperatorCase& one, const Outputs& ours, const Outputs& theirs,
                    Findings& found) {
    for (std::size_t o = 0; o < one.outputs.size(); ++o) {
        if (ours[o].size() != theirs[o].size())
            return fmt::format("output {} has {} bytes, theirs {}", o, ours[o].size(),
                               theirs[o].size());
        if (one.outputs[o].type != ElementType::float32) {
            if (ours[o] == theirs[o]) continue;
            const auto at = static_cast<std::size_t>(std::ranges::mismatch(ours[o], theirs[o]).in1 -
                                                     ours[o].begin());
            return fmt::format("output {}, byte {} of {}: {}, theirs {}", o, at, ours[o].size(),
                               std::to_integer<int>(ours[o][at]),
                               std::to_integer<int>(theirs[o][at]));
        }
        for (std::size_t i = 0; i < ours[o].size() / sizeof(float); ++i) {
            const float a = float_at(ours[o], i), b = float_at(theirs[o], i);
            if (a == b || (std::isnan(a) && std::isnan(b))) continue;
            found.farthest = std::max(found.farthest, apart(one, o, i, a, b));
            if (!(apart(one, o, i, a, b) <= most_apart(one.op)))
                return fmt::format("output {}, float {}: {}, theirs {}", o, i, a, b);
        }
    }
    return {};
}

void try_case(const OperatorCase& one, std::uint64_t seed, Findings& found) {
    const auto model = plain::model_of(one);
    ASSERT_TRUE(model);
    const auto theirs = run_theirs(*model, one);
    if (!theirs) {
        ++found.refusals[theirs.error().what];
        return;
    }
    if (differs_on_purpose(one)) {
        ++found.on_purpose;
        return;
    }
    ++found.compared;
    for (const cpu::KernelSet kernels : {cpu::KernelSet::reference, cpu::KernelSet::fast}) {
        const auto ours = run_ours(*model, one, kernels);
        const std::string wrong =
            ours ? compare(one, *ours, *theirs, found) : ours.error().message();
        if (wrong.empty()) continue;
        if (++found.wrong == 1) found.first_wrong = fmt::format("seed {}: {}", seed, wrong);
        return;
    }
}

class TfliteOperators : public testing::TestWithParam<NamedMaker> {};

TEST_P(TfliteOperators, GiveTheSameBytes) {
    if (const auto reason = why_no_tflite(); !reason.empty()) GTEST_SKIP() << reason;
    const std::uint64_t first = number_from("REEF_FIRST_SEED", 1);
    const std::uint64_t seeds = number_from("REEF_SEEDS", 250);
    Findings found;
    for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
        plain::Choices choices(seed);
        try_case(GetParam().make(choices), seed, found);
    }
    std::cout << fmt::format(
        "{} compared, {} different, {} left out as different on purpose; float32 at most {:.2f} of "
        "{:.2f} units apart\n",
        found.compared, found.wrong, found.on_purpose, found.farthest, most_apart(GetParam().op));
    for (const auto& [why, count] : found.refusals)
        std::cout << fmt::format("  {} not taken there: {}\n", count, why);
    EXPECT_EQ(found.wrong, 0) << found.first_wrong;
    EXPECT_GT(found.compared, 0);
}

std::string operator_name(const testing::TestParamInfo<NamedMaker>& info) {
    return model::builtin_name(info.param.op);
}

INSTANTIATE_TEST_SUITE_P(Operators, TfliteOperators, testing::ValuesIn(plain::all_makers()),
                         operator_name);

}  // namespace
}  // namespace reef::peers
