#include "tflite_child.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "peers/tflite_peer.h"

namespace reef::peers {
namespace {

constexpr int child_refused = 2;
/// One operator, or some runs of it, take milliseconds.
constexpr unsigned most_seconds = 60;

void put(int file, Bytes bytes) {
    while (!bytes.empty()) {
        const auto written = ::write(file, bytes.data(), bytes.size());
        if (written <= 0) std::_Exit(1);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
}

std::vector<std::byte> everything_from(int file) {
    std::vector<std::byte> bytes;
    std::array<std::byte, 4096> piece{};
    for (ssize_t n = 0; (n = ::read(file, piece.data(), piece.size())) > 0;)
        bytes.insert(bytes.end(), piece.begin(), piece.begin() + n);
    return bytes;
}

/// Writes each output behind its size.
Status run_all(const model::Model& model, std::span<const TensorBytes> runs, int file) {
    auto peer = REEF_TRY(TflitePeer::create(model, TfliteKernels::builtin, 1));
    for (const TensorBytes& inputs : runs) {
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            if (peer.input(i).size() != inputs[i].size())
                return fail(Cause::bad_input, fmt::format("input {} has another size there", i));
            std::ranges::copy(inputs[i], peer.input(i).begin());
        }
        REEF_CHECK(peer.run());
        for (const Bytes output : peer.outputs()) {
            const std::size_t size = output.size();
            put(file, std::as_bytes(std::span(&size, 1)));
            put(file, output);
        }
    }
    return {};
}

TensorBytes taken_apart(Bytes bytes) {
    TensorBytes parts;
    while (!bytes.empty()) {
        std::size_t size = 0;
        std::memcpy(&size, bytes.data(), sizeof size);
        bytes = bytes.subspan(sizeof size);
        parts.emplace_back(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
        bytes = bytes.subspan(size);
    }
    return parts;
}

}  // namespace

Result<std::vector<TensorBytes>> run_tflite_child(const model::Model& model,
                                                  std::span<const TensorBytes> inputs) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return fail(Cause::io_failed, "no pipe");
    const pid_t child = ::fork();
    if (child < 0) return fail(Cause::io_failed, "no process");
    if (child == 0) {
        ::alarm(most_seconds);
        const auto status = run_all(model, inputs, ends[1]);
        if (status) std::_Exit(0);
        put(ends[1], as_bytes(status.error().what));
        std::_Exit(child_refused);
    }
    ::close(ends[1]);
    const auto bytes = everything_from(ends[0]);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        return fail(Cause::unsupported, fmt::format("ended by signal {}", WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        return fail(Cause::unsupported,
                    std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    const TensorBytes all = taken_apart(bytes);
    const std::size_t each = all.size() / inputs.size();
    std::vector<TensorBytes> runs;
    for (std::size_t r = 0; r < inputs.size(); ++r)
        runs.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(r * each),
                          all.begin() + static_cast<std::ptrdiff_t>((r + 1) * each));
    return runs;
}

}  // namespace reef::peers
