#include "edgetpu/usb/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "edgetpu/usb/link.h"

namespace reef::edgetpu::usb {
namespace {

constexpr std::size_t output_requests = 8;
/// Linux gives all USB transfers of a process 16 MiB by default.
constexpr std::size_t most_bytes_under_way = 8 << 20;
constexpr std::size_t most_out_under_way = 32;
/// Transfers that the chip asks for come in whole units of its FIFOs, and may run this far beyond a
/// layer.
constexpr std::size_t most_asked_beyond = 64;

/// Device::lost() says what comes next.
Error device_error(std::string what, std::string place) {
    return {.cause = Cause::device_failed,
            .what = std::move(what),
            .place = std::move(place),
            .hint = {}};
}

// Bit 7 of an endpoint's address is its direction, seen from the host.
constexpr bool goes_to_the_chip(std::uint8_t endpoint) {
    return (endpoint & 0x80) == 0;
}

std::string_view name_of(std::uint8_t endpoint) {
    switch (endpoint) {
        case out_endpoint:
            return "ep 01 (to the chip)";
        case inputs_endpoint:
            return "ep 02 (inputs)";
        case parameters_endpoint:
            return "ep 03 (parameters)";
        case output_endpoint:
            return "ep 81 (outputs)";
        case event_endpoint:
            return "ep 82 (events)";
        default:
            return "ep 83 (fatal errors)";
    }
}

}  // namespace

Runner::Runner(Bus& bus, Connection& connection, std::size_t request_bytes, Endpoints endpoints)
    : bus_(bus),
      connection_(connection),
      endpoints_(endpoints),
      room_(output_requests * request_bytes) {
    for (std::size_t i = 0; i < output_requests; ++i) {
        output_requests_.push_back(
            {.room = MutableBytes(room_).subspan(i * request_bytes, request_bytes)});
    }
    event_request_.room = event_room_;
    interrupt_request_.room = interrupt_room_;
    sent_.reserve(most_out_under_way + 1);
}

Runner::~Runner() {
    connection_.watch(nullptr);
    cancel();
}

void Runner::cancel() {
    connection_.cancel_all();
    const auto waiting = [&] {
        return !sent_.empty() || event_request_.waiting || interrupt_request_.waiting ||
               std::ranges::any_of(output_requests_, &Request::waiting);
    };
    const TimePoint end = bus_.now() + Milliseconds(1000);
    while (waiting() && bus_.now() < end) {
        const auto completion = connection_.wait(Milliseconds(50));
        if (!completion) break;
        if (*completion) forget(**completion);
    }
    sent_.clear();
    out_bytes_under_way_ = 0;
    count_ = 0;
}

void Runner::forget(const Completion& completion) {
    const auto ended = [&](Request& request) {
        if (request.waiting && request.id == completion.id) request.waiting = false;
    };
    std::ranges::for_each(output_requests_, ended);
    ended(event_request_);
    ended(interrupt_request_);
    std::erase_if(sent_, [&](const Sent& sent) { return sent.id == completion.id; });
}

Status Runner::supply() {
    const auto submit_request = [&](Request& request, std::uint8_t endpoint,
                                    EndpointType type) -> Status {
        if (request.waiting) return {};
        const auto id = connection_.submit_in(endpoint, type, request.room);
        if (!id) return std::unexpected(lost_transfer(id.error(), name_of(endpoint)));
        request.id = *id;
        request.waiting = true;
        return {};
    };
    REEF_CHECK(submit_request(event_request_, event_endpoint, EndpointType::bulk));
    REEF_CHECK(submit_request(interrupt_request_, interrupt_endpoint, EndpointType::interrupt));
    for (Request& request : output_requests_) {
        REEF_CHECK(submit_request(request, output_endpoint, EndpointType::bulk));
    }
    return {};
}

namespace {

std::size_t interrupt_of(Tag tag) {
    return static_cast<std::size_t>(tag) - static_cast<std::size_t>(Tag::interrupt_0);
}

}  // namespace

void Runner::add_part(Flight& flight, const Program::Part& part) {
    for (const Transfer& transfer : part.plan.transfers) {
        flight.steps.push_back({&part, &transfer});
        if (transfer.kind == Transfer::Kind::receive && transfer.size != 0) {
            auto& memory = transfer.scratch ? flight.scratch : flight.layers[transfer.index];
            flight.targets.push_back(
                {MutableBytes(memory).subspan(transfer.offset, transfer.size)});
        }
        if (transfer.kind == Transfer::Kind::wait) {
            ++flight.interrupts[interrupt_of(transfer.tag)];
        }
    }
}

Status Runner::prepare(Flight& flight, bool load_parameters, std::span<const Bytes> inputs) {
    const Program& program = *flight.program;
    const Program::Part& main = program.main_;
    // Hints tell how far transfers run over the layers.
    const std::size_t beyond = program.asks() ? most_asked_beyond : 0;
    flight.packed.resize(std::max(flight.packed.size(), inputs.size()));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        flight.packed[i].resize(std::max(main.plan.input_bytes[i], program.tensor_bytes_[i]) +
                                beyond);
        REEF_CHECK(pack_input(main.executable.inputs[i], inputs[i], flight.packed[i]));
    }
    flight.layers.resize(std::max(flight.layers.size(), main.plan.output_bytes.size()));
    for (std::size_t i = 0; i < main.plan.output_bytes.size(); ++i) {
        flight.layers[i].resize(main.plan.output_bytes[i] + beyond);
    }
    flight.steps.clear();
    flight.targets.clear();
    flight.target = flight.targets_due = flight.next_header = flight.out_under_way = 0;
    flight.interrupts.fill(0);
    flight.interrupts_due.fill(0);
    flight.next_hint.fill(0);
    flight.asked.clear();
    flight.early.clear();
    flight.scratch.assign(static_cast<std::size_t>(std::max(main.executable.scratch_size_bytes, 0)),
                          std::byte{0});
    if (load_parameters) add_part(flight, *program.caching_);
    const int before = flight.interrupts[0];
    add_part(flight, main);
    // The end of a program, when it is not among the hints.
    if (program.asks() && flight.interrupts[0] == before) {
        ++flight.interrupts[0];
        ++flight.interrupts_due[0];
    }
    flight.interrupts_left = flight.interrupts;
    return {};
}

Status Runner::start(const std::shared_ptr<const Program>& program, bool load_parameters,
                     std::span<const Bytes> inputs, Milliseconds deadline) {
    end_ = bus_.now() + deadline;
    Flight& flight = flights_[(oldest_ + count_) % most_under_way];
    flight.program = program;
    REEF_CHECK(prepare(flight, load_parameters, inputs));
    ++count_;
    REEF_CHECK(supply());
    for (const Step& step : flight.steps) {
        switch (step.transfer->kind) {
            case Transfer::Kind::send:
                REEF_CHECK(send(flight, step));
                break;
            case Transfer::Kind::receive:
                flight.targets_due += step.transfer->size != 0;
                break;
            case Transfer::Kind::wait:
                ++flight.interrupts_due[interrupt_of(step.transfer->tag)];
                break;
            case Transfer::Kind::fence:
                REEF_CHECK(settle());
                break;
        }
    }
    return {};
}

Status Runner::finish(std::span<const MutableBytes> outputs) {
    Flight& flight = flights_[oldest_];
    REEF_CHECK(await(flight));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        flight.program->unpackers_[i].run(flight.layers[i], outputs[i]);
    }
    flight.program.reset();
    oldest_ = (oldest_ + 1) % most_under_way;
    --count_;
    return {};
}

Status Runner::send(Flight& flight, const Step& step) {
    const Transfer& transfer = *step.transfer;
    Bytes bytes = step.part->executable.parameters.view();
    if (transfer.tag == Tag::instructions) bytes = step.part->bitstreams[transfer.index];
    if (transfer.tag == Tag::input_activations)
        bytes = transfer.scratch ? flight.scratch : flight.packed[transfer.index];
    return send(flight, transfer.tag, bytes.subspan(transfer.offset, transfer.size));
}

Status Runner::send(Flight& flight, Tag tag, Bytes bytes) {
    std::uint8_t endpoint = out_endpoint;
    if (endpoints_ == Endpoints::multiple) {
        // Tags 0 to 2 are in the order of their endpoints.
        endpoint = static_cast<std::uint8_t>(out_endpoint + static_cast<std::uint8_t>(tag));
    } else {
        REEF_CHECK(send_header(flight, tag, bytes.size()));
    }
    while (!bytes.empty()) {
        const Bytes piece = bytes.first(std::min(bytes.size(), most_out_bytes));
        if (auto status = submit(flight, endpoint, piece); !status)
            return in_place(std::move(status), to_string(tag));
        bytes = bytes.subspan(piece.size());
    }
    return {};
}

Status Runner::send_header(Flight& flight, Tag tag, std::size_t size) {
    if (flight.next_header == flight.headers.size()) flight.headers.emplace_back();
    auto& header = flight.headers[flight.next_header++];
    const std::uint32_t words[2] = {static_cast<std::uint32_t>(size),
                                    static_cast<std::uint32_t>(tag)};
    std::memcpy(header.data(), words, sizeof words);
    auto status = submit(flight, out_endpoint, header);
    return status ? status : in_place(std::move(status), to_string(tag));
}

Status Runner::submit(Flight& flight, std::uint8_t endpoint, Bytes bytes) {
    while (sent_.size() >= most_out_under_way ||
           (!sent_.empty() && out_bytes_under_way_ + bytes.size() > most_bytes_under_way)) {
        REEF_CHECK(next_completion());
    }
    REEF_CHECK(may_go_on());
    const auto id = connection_.submit_out(endpoint, bytes);
    if (!id) return std::unexpected(lost_transfer(id.error(), name_of(endpoint)));
    sent_.push_back({*id, bytes.size(), &flight});
    out_bytes_under_way_ += bytes.size();
    ++flight.out_under_way;
    return {};
}

/// As far as its steps were taken; when all were, it is complete.
bool Runner::Flight::done() const {
    if (out_under_way != 0 || target < targets_due || !asked.empty() || !early.empty()) {
        return false;
    }
    for (std::size_t i = 0; i < interrupts.size(); ++i) {
        if (interrupts[i] - interrupts_left[i] < interrupts_due[i]) return false;
    }
    return true;
}

Status Runner::await(Flight& flight) {
    while (!flight.done()) {
        if (!REEF_TRY(send_asked(flight))) REEF_CHECK(next_completion());
    }
    return {};
}

Result<bool> Runner::advance(Milliseconds most) {
    if (complete()) return false;
    if (REEF_TRY(send_asked(flight(0)))) return true;
    const auto completion = connection_.wait(most);
    if (!completion) return std::unexpected(lost_transfer(completion.error(), "wait"));
    if (!*completion) return false;
    REEF_CHECK(take(**completion));
    return true;
}

int Runner::interrupts() const {
    const Flight& oldest = flight(0);
    int count = 0;
    for (std::size_t i = 0; i < oldest.interrupts.size(); ++i)
        count += oldest.interrupts[i] - oldest.interrupts_left[i];
    return count;
}

Status Runner::settle() {
    for (std::size_t i = 0; i < count_; ++i) REEF_CHECK(await(flight(i)));
    return {};
}

std::string Runner::waiting_for() const {
    std::string text;
    const auto add = [&](std::string what) { text += (text.empty() ? "" : ", ") + what; };
    if (!sent_.empty()) {
        add(fmt::format("{} transfers of {} bytes to end", sent_.size(), out_bytes_under_way_));
    }
    for (std::size_t position = 0; position < count_; ++position) {
        const Flight& each = flight(position);
        std::size_t bytes = 0;
        for (std::size_t i = each.target; i < each.targets.size(); ++i) {
            bytes += each.targets[i].room.size();
        }
        if (bytes != 0) add(fmt::format("{} output bytes", bytes));
        for (std::size_t i = 0; i < each.interrupts_left.size(); ++i) {
            if (each.interrupts_left[i] > 0) add(fmt::format("interrupt {}", i));
        }
    }
    return text;
}

Error Runner::lost_transfer(const Failure& failure, std::string_view place) const {
    Error error = error_of(failure, place);
    if (const std::string awaited = waiting_for(); !awaited.empty()) {
        error.what += fmt::format("; still waiting for {}", awaited);
    }
    return error;
}

Status Runner::may_go_on() {
    Status status = watch_ == nullptr ? Status() : watch_->may_go_on();
    stopped_ = !status;
    return status;
}

Status Runner::next_completion() {
    REEF_CHECK(may_go_on());
    const TimePoint now = bus_.now();
    const auto left = std::chrono::duration_cast<Milliseconds>(end_ - now);
    if (left > Milliseconds(0)) {
        const auto completion = connection_.wait(left);
        if (!completion) return std::unexpected(lost_transfer(completion.error(), "wait"));
        if (*completion) return take(**completion);
        if (bus_.now() < end_) return {};
        REEF_CHECK(may_go_on());
    }
    return std::unexpected(device_error(
        fmt::format("the deadline is over; still waiting for {}", waiting_for()), "wait"));
}

Status Runner::take(const Completion& completion) {
    const auto place = [&] { return std::string(name_of(completion.endpoint)); };
    if (completion.fault) {
        forget(completion);
        return std::unexpected(
            lost_transfer({*completion.fault, std::string(to_string(*completion.fault))}, place()));
    }
    if (goes_to_the_chip(completion.endpoint)) {
        const auto sent = std::ranges::find(sent_, completion.id, &Sent::id);
        if (sent == sent_.end()) return {};
        const std::size_t size = sent->size;
        --sent->flight->out_under_way;
        sent_.erase(sent);
        out_bytes_under_way_ -= size;
        if (completion.size == size) return {};
        return std::unexpected(device_error(
            fmt::format("the device took {} of {} bytes", completion.size, size), place()));
    }
    if (completion.endpoint == event_endpoint) {
        event_request_.waiting = false;
        REEF_CHECK(in_place(take_event(Bytes(event_room_).first(completion.size)), place()));
    } else if (completion.endpoint == interrupt_endpoint) {
        interrupt_request_.waiting = false;
        return std::unexpected(
            device_error(fmt::format("the chip reports a fatal error, {}",
                                     to_hex(Bytes(interrupt_room_).first(completion.size))),
                         place()));
    } else {
        const auto request = std::ranges::find_if(output_requests_, [&](const Request& each) {
            return each.waiting && each.id == completion.id;
        });
        if (request == output_requests_.end()) return {};
        request->waiting = false;
        REEF_CHECK(in_place(take_output(Bytes(request->room).first(completion.size)), place()));
    }
    return supply();
}

void Runner::fill_targets(Flight& flight, Bytes& bytes) {
    while (!bytes.empty() && flight.target < flight.targets.size()) {
        MutableBytes& room = flight.targets[flight.target].room;
        const std::size_t size = std::min(room.size(), bytes.size());
        std::ranges::copy(bytes.first(size), room.begin());
        room = room.subspan(size);
        bytes = bytes.subspan(size);
        if (room.empty()) ++flight.target;
    }
}

/// The bytes of one transfer belong to one inference: bytes that an inference lacks must not be
/// taken from the next.
Status Runner::take_output(Bytes bytes) {
    std::size_t position = 0;
    while (position < count_ && flight(position).target == flight(position).targets.size() &&
           !flight(position).program->asks()) {
        ++position;
    }
    if (position < count_) {
        Flight& each = flight(position);
        fill_targets(each, bytes);
        if (each.program->asks()) {
            each.early.insert(each.early.end(), bytes.begin(), bytes.end());
            bytes = {};
        }
    }
    if (bytes.empty()) return {};
    return std::unexpected(device_error(
        fmt::format("the device sends {} bytes more than the outputs have", bytes.size()), ""));
}

Status Runner::take_event(Bytes bytes) {
    if (bytes.size() != event_bytes) {
        return std::unexpected(device_error(
            fmt::format("an event of {} bytes, {} expected", bytes.size(), event_bytes), ""));
    }
    const auto tag = static_cast<Tag>(bytes[12]);
    if (tag >= Tag::input_activations && tag <= Tag::output_activations) {
        std::uint64_t address = 0;
        std::uint32_t size = 0;
        std::memcpy(&address, bytes.data(), sizeof address);
        std::memcpy(&size, bytes.data() + sizeof address, sizeof size);
        return take_descriptor(tag, address, size);
    }
    if (tag < Tag::interrupt_0 || static_cast<int>(tag) > 7) {
        return std::unexpected(
            device_error(fmt::format("an unexpected event: {}", to_string(tag)), ""));
    }
    for (std::size_t position = 0; position < count_; ++position) {
        int& left = flight(position).interrupts_left[interrupt_of(tag)];
        if (left == 0) continue;
        --left;
        return {};
    }
    return std::unexpected(
        device_error(fmt::format("{} that nothing waits for", to_string(tag)), ""));
}

}  // namespace reef::edgetpu::usb
