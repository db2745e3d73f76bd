#include "rk3588/drm/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <list>
#include <map>

#include "reef/base/file.h"
#include "rk3588/drm/uapi.h"

namespace reef::rk3588::drm {
namespace {

constexpr std::string_view first_word = "rk3588-recording-1 ";

struct CallName {
    std::uint32_t request;
    const char* name;
};
constexpr CallName call_names[] = {
    {pseudo::nodes, "nodes"},
    {pseudo::open, "open"},
    {pseudo::lock, "lock"},
    {version_request, "VERSION"},
    {gem_close_request, "GEM_CLOSE"},
    {rknpu::action_request, "ACTION"},
    {rknpu::submit_request, "SUBMIT (rknpu)"},
    {rknpu::create_request, "MEM_CREATE"},
    {rknpu::map_request, "MEM_MAP"},
    {rknpu::destroy_request, "MEM_DESTROY"},
    {rknpu::sync_request, "MEM_SYNC"},
    {rocket::create_request, "CREATE_BO"},
    {rocket::submit_request, "SUBMIT (rocket)"},
    {rocket::prep_request, "PREP_BO"},
    {rocket::fini_request, "FINI_BO"},
};

std::size_t struct_bytes(std::uint32_t request) {
    constexpr unsigned size_at = 16, size_bits = 14;
    return request >> size_at & ((1U << size_bits) - 1);
}

/// At least so many of a version, whose name follows.
std::size_t bytes_left_by(std::uint32_t request) {
    if (request == rocket::submit_request || request == rocket::prep_request) return 0;
    return request == version_request ? sizeof Version::name_size : struct_bytes(request);
}

template <class T>
void append(std::vector<std::byte>& to, const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    to.insert(to.end(), bytes.begin(), bytes.end());
}
void append_at(std::vector<std::byte>& to, std::uint64_t address, std::size_t size) {
    const auto* from = reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(address));
    to.insert(to.end(), from, from + size);
}

std::vector<std::byte> bytes_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

/// The mainline driver's submission with its jobs, without this process's addresses.
std::vector<std::byte> whole_submission(const rocket::Submit& submit) {
    std::vector<std::byte> out;
    auto without = submit;
    without.jobs = 0;
    append(out, without);
    for (std::uint32_t i = 0; i < submit.job_count; ++i) {
        rocket::Job job;
        std::memcpy(&job,
                    reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(submit.jobs)) +
                        i * sizeof job,
                    sizeof job);
        append_at(out, job.tasks, job.task_count * sizeof(rocket::Task));
        append_at(out, job.in_handles, job.in_count * sizeof(std::uint32_t));
        append_at(out, job.out_handles, job.out_count * sizeof(std::uint32_t));
        job.tasks = job.in_handles = job.out_handles = 0;
        append(out, job);
    }
    return out;
}

/// The struct, with what it points to.
std::vector<std::byte> given_with(std::uint32_t request, const void* argument) {
    if (request == rocket::submit_request)
        return whole_submission(*static_cast<const rocket::Submit*>(argument));
    std::vector<std::byte> out;
    if (request == version_request) {
        append(out, static_cast<const Version*>(argument)->name_size);
    } else if (request == rocket::prep_request) {
        auto prep = *static_cast<const rocket::PrepBo*>(argument);
        prep.timeout_ns = 0;
        append(out, prep);
    } else {
        append_at(out, static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(argument)),
                  struct_bytes(request));
    }
    return out;
}

/// What a call has left in the struct; nothing of one that only gives.
std::vector<std::byte> got_from(std::uint32_t request, const void* argument) {
    if (bytes_left_by(request) == 0) return {};
    if (request != version_request) return given_with(request, argument);
    const auto& version = *static_cast<const Version*>(argument);
    std::vector<std::byte> out;
    append(out, version.name_size);
    if (version.name != nullptr)
        append_at(out, reinterpret_cast<std::uintptr_t>(version.name), std::strlen(version.name));
    return out;
}

/// Whether a call leaves so many bytes.
bool fits(std::uint32_t request, std::size_t bytes) {
    if (request == pseudo::nodes) return true;
    if (request == version_request) return bytes >= sizeof Version::name_size;
    return bytes == bytes_left_by(request);
}

void put_back(std::uint32_t request, const std::vector<std::byte>& got, void* argument) {
    if (got.empty()) return;
    if (request != version_request) {
        std::memcpy(argument, got.data(), got.size());
        return;
    }
    auto& version = *static_cast<Version*>(argument);
    if (version.name == nullptr) return;
    const std::size_t length =
        std::min<std::size_t>(got.size() - sizeof version.name_size, version.name_size);
    std::memcpy(version.name, got.data() + sizeof version.name_size, length);
    std::memcpy(&version.name_size, got.data(), sizeof version.name_size);
}

/// Which mapped bytes belong to a handle or to an object of the vendor's driver.
class Mappings {
  public:
    void learn(std::uint32_t request, const void* argument) {
        if (request == rknpu::create_request) {
            const auto& memory = *static_cast<const rknpu::MemCreate*>(argument);
            handle_of_object_[memory.object] = memory.handle;
        } else if (request == rknpu::map_request) {
            const auto& map = *static_cast<const rknpu::MemMap*>(argument);
            handle_at_[map.offset] = map.handle;
        } else if (request == rocket::create_request) {
            const auto& bo = *static_cast<const rocket::CreateBo*>(argument);
            handle_at_[bo.offset] = bo.handle;
        }
    }
    void mapped(std::uint64_t offset, MutableBytes bytes) {
        if (const auto at = handle_at_.find(offset); at != handle_at_.end())
            bytes_[at->second] = bytes;
    }
    void unmapped(MutableBytes bytes) {
        std::erase_if(bytes_, [&](const auto& each) { return each.second.data() == bytes.data(); });
    }
    /// Bytes that the call moves to the NPU, and from it.
    [[nodiscard]] MutableBytes sent(std::uint32_t request, const void* argument) const {
        if (request == rknpu::sync_request) {
            const auto& sync = *static_cast<const rknpu::MemSync*>(argument);
            if (sync.flags == rknpu::sync_to_device) return of_sync(sync);
        } else if (request == rknpu::submit_request) {
            return of_tasks(*static_cast<const rknpu::Submit*>(argument));
        } else if (request == rocket::fini_request) {
            return of_handle(static_cast<const rocket::FiniBo*>(argument)->handle);
        }
        return {};
    }
    [[nodiscard]] MutableBytes received(std::uint32_t request, const void* argument) const {
        if (request == rknpu::sync_request) {
            const auto& sync = *static_cast<const rknpu::MemSync*>(argument);
            if (sync.flags == rknpu::sync_from_device) return of_sync(sync);
        } else if (request == rknpu::submit_request) {
            return of_tasks(*static_cast<const rknpu::Submit*>(argument));
        } else if (request == rocket::prep_request) {
            return of_handle(static_cast<const rocket::PrepBo*>(argument)->handle);
        }
        return {};
    }

  private:
    [[nodiscard]] MutableBytes of_handle(std::uint32_t handle) const {
        const auto at = bytes_.find(handle);
        return at == bytes_.end() ? MutableBytes{} : at->second;
    }
    [[nodiscard]] MutableBytes of_object(std::uint64_t object) const {
        const auto at = handle_of_object_.find(object);
        return at == handle_of_object_.end() ? MutableBytes{} : of_handle(at->second);
    }
    [[nodiscard]] MutableBytes of_sync(const rknpu::MemSync& sync) const {
        const MutableBytes all = of_object(sync.object);
        if (sync.offset > all.size() || sync.size > all.size() - sync.offset) return {};
        return all.subspan(sync.offset, sync.size);
    }
    /// The kernel reads tasks and writes into them.
    [[nodiscard]] MutableBytes of_tasks(const rknpu::Submit& submit) const {
        const MutableBytes all = of_object(submit.task_object);
        std::uint64_t end = 0;
        for (const auto& core : submit.subcore)
            end = std::max(end, (std::uint64_t{core.first} + core.count) * sizeof(rknpu::Task));
        return all.first(std::min<std::uint64_t>(end, all.size()));
    }

    std::map<std::uint64_t, std::uint32_t> handle_of_object_, handle_at_;
    std::map<std::uint32_t, MutableBytes> bytes_;
};

std::vector<std::byte> copy_of(MutableBytes bytes) {
    return {bytes.begin(), bytes.end()};
}

class RecordingKernel final : public Kernel {
  public:
    RecordingKernel(std::shared_ptr<Kernel> kernel, Recording& recording)
        : kernel_(std::move(kernel)), recording_(recording) {}
    [[nodiscard]] std::vector<std::string> nodes(std::string_view folder,
                                                 std::string_view beginning) override {
        auto found = kernel_->nodes(folder, beginning);
        std::string joined;
        for (const auto& path : found) joined += path + "\n";
        recording_.calls.push_back({pseudo::nodes,
                                    0,
                                    bytes_of(fmt::format("{} {}", folder, beginning)),
                                    bytes_of(joined),
                                    {},
                                    {}});
        return found;
    }
    [[nodiscard]] int open(const std::string& path) override {
        const int result = kernel_->open(path);
        recording_.calls.push_back({pseudo::open, std::min(result, 0), bytes_of(path), {}, {}, {}});
        return result;
    }
    void close(int file) override { kernel_->close(file); }
    [[nodiscard]] int lock(int file) override {
        const int result = kernel_->lock(file);
        recording_.calls.push_back({pseudo::lock, result, {}, {}, {}, {}});
        return result;
    }
    [[nodiscard]] int ioctl(int file, std::uint32_t request, void* argument) override {
        RecordedCall call{request,
                          0,
                          given_with(request, argument),
                          {},
                          copy_of(mappings_.sent(request, argument)),
                          {}};
        call.result = kernel_->ioctl(file, request, argument);
        call.got = got_from(request, argument);
        if (call.result >= 0) mappings_.learn(request, argument);
        call.received = copy_of(mappings_.received(request, argument));
        recording_.calls.push_back(std::move(call));
        return recording_.calls.back().result;
    }
    [[nodiscard]] MutableBytes map(int file, std::uint64_t size, std::uint64_t offset) override {
        const MutableBytes bytes = kernel_->map(file, size, offset);
        mappings_.mapped(offset, bytes);
        return bytes;
    }
    void unmap(MutableBytes bytes) override {
        mappings_.unmapped(bytes);
        kernel_->unmap(bytes);
    }
    [[nodiscard]] std::int64_t nanoseconds() override { return kernel_->nanoseconds(); }
    [[nodiscard]] std::string failure() const override { return kernel_->failure(); }

  private:
    std::shared_ptr<Kernel> kernel_;
    Recording& recording_;
    Mappings mappings_;
};

class Replay final : public ReplayingKernel {
  public:
    explicit Replay(const Recording& recording) : recording_(recording) {}
    [[nodiscard]] const std::string& difference() const override { return difference_; }
    [[nodiscard]] std::size_t answered() const override { return next_; }
    [[nodiscard]] std::string failure() const override { return difference_; }

    [[nodiscard]] std::vector<std::string> nodes(std::string_view folder,
                                                 std::string_view beginning) override {
        const auto* call =
            ask({pseudo::nodes, 0, bytes_of(fmt::format("{} {}", folder, beginning)), {}, {}, {}});
        std::vector<std::string> found;
        if (call == nullptr) return found;
        std::string_view text(reinterpret_cast<const char*>(call->got.data()), call->got.size());
        for (auto end = text.find('\n'); end != text.npos; end = text.find('\n')) {
            found.emplace_back(text.substr(0, end));
            text.remove_prefix(end + 1);
        }
        return found;
    }
    [[nodiscard]] int open(const std::string& path) override {
        constexpr int file = 9;
        const auto* call = ask({pseudo::open, 0, bytes_of(path), {}, {}, {}});
        if (call == nullptr) return -EPROTO;
        return call->result < 0 ? call->result : file;
    }
    void close(int) override {}
    [[nodiscard]] int lock(int) override {
        const auto* call = ask({pseudo::lock, 0, {}, {}, {}, {}});
        return call == nullptr ? -EPROTO : call->result;
    }
    [[nodiscard]] int ioctl(int, std::uint32_t request, void* argument) override {
        const auto* call = ask({request,
                                0,
                                given_with(request, argument),
                                {},
                                copy_of(mappings_.sent(request, argument)),
                                {}});
        if (call == nullptr) return -EPROTO;
        if (!fits(request, call->got.size()))
            return refuse(*call, "got", call->got.size(), bytes_left_by(request));
        put_back(request, call->got, argument);
        if (call->result >= 0) mappings_.learn(request, argument);
        const MutableBytes to = mappings_.received(request, argument);
        if (to.size() != call->received.size())
            return refuse(*call, "received", call->received.size(), to.size());
        std::ranges::copy(call->received, to.begin());
        return call->result;
    }
    [[nodiscard]] MutableBytes map(int, std::uint64_t size, std::uint64_t offset) override {
        constexpr std::uint64_t most = std::uint64_t{1} << 32;
        if (size > most) return {};
        auto& bytes = memory_.emplace_back(size);
        mappings_.mapped(offset, bytes);
        return bytes;
    }
    void unmap(MutableBytes bytes) override {
        mappings_.unmapped(bytes);
        memory_.remove_if([&](const auto& each) { return each.data() == bytes.data(); });
    }
    [[nodiscard]] std::int64_t nanoseconds() override { return 0; }

  private:
    /// The last call's answer is not whole.
    int refuse(const RecordedCall& call, std::string_view part, std::size_t recorded,
               std::size_t needed) {
        --next_;
        difference_ = fmt::format("call {}: {}; {}: {} bytes recorded, {} needed", next_,
                                  text_of(call), part, recorded, needed);
        return -EPROTO;
    }
    /// The recorded answer, or null when it was another call.
    const RecordedCall* ask(const RecordedCall& call) {
        if (!difference_.empty()) return nullptr;
        if (next_ == recording_.calls.size()) {
            difference_ = fmt::format("call {}: {}, the recording has ended", next_, text_of(call));
            return nullptr;
        }
        const RecordedCall& recorded = recording_.calls[next_];
        if (recorded.request != call.request || recorded.given != call.given ||
            recorded.sent != call.sent) {
            difference_ = fmt::format("call {}: {}, recorded was {}", next_, text_of(call),
                                      text_of(recorded));
            return nullptr;
        }
        ++next_;
        return &recorded;
    }

    const Recording& recording_;
    std::size_t next_ = 0;
    std::string difference_;
    Mappings mappings_;
    std::list<std::vector<std::byte>> memory_;
};

/// So that lines tell whether bytes are the same.
std::uint32_t sum_of(const std::vector<std::byte>& bytes) {
    std::uint32_t sum = 2166136261;
    for (const std::byte b : bytes) sum = (sum ^ std::to_integer<std::uint32_t>(b)) * 16777619;
    return sum;
}

std::unexpected<Error> bad_line(std::size_t line, std::string what) {
    return fail(Cause::bad_input, std::move(what), fmt::format("line {}", line + 1),
                "reef record writes such files");
}

/// The next number of a line.
template <class Number>
bool take(std::string_view& line, Number& out, int base = 10) {
    while (line.starts_with(' ')) line.remove_prefix(1);
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), out, base);
    if (error != std::errc{}) return false;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    return true;
}

}  // namespace

std::string text_of(const RecordedCall& call) {
    const auto known = std::ranges::find(call_names, call.request, &CallName::request);
    std::string text = known == std::end(call_names) ? fmt::format("ioctl {:#x}", call.request)
                                                     : std::string(known->name);
    if (call.result != 0) text += fmt::format(" = {}", call.result);
    if (call.request == pseudo::open)
        return text +
               fmt::format(" {}", std::string_view(reinterpret_cast<const char*>(call.given.data()),
                                                   call.given.size()));
    const auto part = [&](const char* name, const std::vector<std::byte>& bytes) {
        if (!bytes.empty())
            text += fmt::format(", {} {} bytes {:08x}", name, bytes.size(), sum_of(bytes));
    };
    part("given", call.given);
    part("sent", call.sent);
    part("got", call.got);
    part("received", call.received);
    return text;
}

bool is_work(const RecordedCall& call) {
    return call.request == rknpu::create_request || call.request == rocket::create_request ||
           call.request == rknpu::submit_request || call.request == rocket::submit_request;
}

Status write_recording(const std::string& path, const Recording& recording) {
    std::string text = fmt::format("{}{}\n", first_word, recording.device);
    std::vector<std::byte> data;
    for (const RecordedCall& call : recording.calls) {
        text += fmt::format("{:08x} {}", call.request, call.result);
        for (const auto* bytes : {&call.given, &call.got, &call.sent, &call.received}) {
            text += fmt::format(" {}", bytes->size());
            data.insert(data.end(), bytes->begin(), bytes->end());
        }
        text += '\n';
    }
    REEF_CHECK(write_file(path + ".bin", data));
    return write_file(path, std::as_bytes(std::span(text)));
}

Result<Recording> read_recording(const std::string& path) {
    const auto text = REEF_TRY(read_file(path));
    const auto data = REEF_TRY(read_file(path + ".bin"));
    return in_place(parse_recording(text.view(), data.view()), path);
}

Result<Recording> parse_recording(Bytes text, Bytes data) {
    std::string_view rest(reinterpret_cast<const char*>(text.data()), text.size());
    const auto line = [&] {
        const std::string_view one = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(one.size() + 1, rest.size()));
        return one;
    };
    Recording out;
    const std::string_view head = line();
    if (!head.starts_with(first_word))
        return bad_line(0, "no recording of an RK3588's kernel driver");
    out.device = head.substr(first_word.size());
    for (std::size_t number = 1; !rest.empty(); ++number) {
        std::string_view one = line();
        RecordedCall& call = out.calls.emplace_back();
        bool good = take(one, call.request, 16) && take(one, call.result);
        for (auto* bytes : {&call.given, &call.got, &call.sent, &call.received}) {
            std::size_t size = 0;
            good = good && take(one, size);
            if (!good || size > data.size()) return bad_line(number, "it is cut off, or no call");
            bytes->assign(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size));
            data = data.subspan(size);
        }
        if (!one.empty()) return bad_line(number, "more than a call");
        if (!fits(call.request, call.got.size()))
            return bad_line(
                number, fmt::format("{}: {} bytes recorded of what it left, {} needed",
                                    text_of(call), call.got.size(), bytes_left_by(call.request)));
    }
    if (!data.empty()) return bad_line(out.calls.size(), "there are more bytes than calls have");
    return out;
}

std::shared_ptr<Kernel> recording_kernel(std::shared_ptr<Kernel> kernel, Recording& recording) {
    return std::make_shared<RecordingKernel>(std::move(kernel), recording);
}

std::shared_ptr<ReplayingKernel> replaying_kernel(const Recording& recording) {
    return std::make_shared<Replay>(recording);
}

}  // namespace reef::rk3588::drm
