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

Error device_error(std::string what, std::string place) {
    return {.cause = Cause::device_failed,
            .what = std::move(what),
            .place = std::move(place),
            .hint = "the next run restarts the device"};
}

}  // namespace

Runner::Runner(Bus& bus, Connection& connection, std::size_t request_bytes)
    : bus_(bus), connection_(connection), room_(output_requests * request_bytes) {
    for (std::size_t i = 0; i < output_requests; ++i) {
        output_requests_.push_back(
            {.room = MutableBytes(room_).subspan(i * request_bytes, request_bytes)});
    }
    event_request_.room = event_room_;
    interrupt_request_.room = interrupt_room_;
    out_sizes_.reserve(most_out_under_way + 1);
}

Runner::~Runner() {
    cancel();
}

void Runner::cancel() {
    connection_.cancel_all();
    const auto waiting = [&] {
        return out_under_way_ != 0 || event_request_.waiting || interrupt_request_.waiting ||
               std::ranges::any_of(output_requests_, &Request::waiting);
    };
    const TimePoint end = bus_.now() + Milliseconds(1000);
    while (waiting() && bus_.now() < end) {
        const auto completion = connection_.wait(Milliseconds(50));
        if (!completion) break;
        if (!*completion) continue;
        const auto forget = [&](Request& request) {
            if (request.waiting && request.id == (*completion)->id) request.waiting = false;
        };
        std::ranges::for_each(output_requests_, forget);
        forget(event_request_);
        forget(interrupt_request_);
        if ((*completion)->endpoint == out_endpoint && out_under_way_ != 0) --out_under_way_;
    }
}

Status Runner::supply() {
    const auto submit_request = [&](Request& request, std::uint8_t endpoint,
                                    EndpointType type) -> Status {
        if (request.waiting) return {};
        const auto id = connection_.submit_in(endpoint, type, request.room);
        if (!id) return std::unexpected(error_of(id.error(), fmt::format("ep {:02x}", endpoint)));
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

Status Runner::add_part(const Program::Part& part) {
    for (const Transfer& transfer : part.plan.transfers) {
        steps_.push_back({&part, &transfer});
        if (transfer.kind == Transfer::Kind::receive && transfer.size != 0) {
            targets_.push_back(
                {MutableBytes(layers_[transfer.index]).subspan(transfer.offset, transfer.size)});
        }
    }
    return {};
}

Status Runner::prepare(const Program& program, bool load_parameters,
                       std::span<const Bytes> inputs) {
    const Program::Part& main = program.main_;
    packed_.resize(std::max(packed_.size(), inputs.size()));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        packed_[i].resize(std::max(main.plan.input_bytes[i], program.tensor_bytes_[i]));
        REEF_CHECK(pack_input(main.executable.inputs[i], inputs[i], packed_[i]));
    }
    layers_.resize(std::max(layers_.size(), main.plan.output_bytes.size()));
    for (std::size_t i = 0; i < main.plan.output_bytes.size(); ++i) {
        layers_[i].resize(main.plan.output_bytes[i]);
    }
    steps_.clear();
    targets_.clear();
    target_ = targets_due_ = 0;
    next_header_ = 0;
    interrupts_due_.fill(0);
    if (load_parameters) REEF_CHECK(add_part(*program.caching_));
    REEF_CHECK(add_part(main));
    if (headers_.size() < steps_.size()) headers_.resize(steps_.size());
    return {};
}

Status Runner::run(const Program& program, bool load_parameters, std::span<const Bytes> inputs,
                   std::span<const MutableBytes> outputs, Milliseconds deadline) {
    end_ = bus_.now() + deadline;
    REEF_CHECK(prepare(program, load_parameters, inputs));
    REEF_CHECK(supply());
    for (const Step& step : steps_) {
        switch (step.transfer->kind) {
            case Transfer::Kind::send:
                REEF_CHECK(send(step));
                break;
            case Transfer::Kind::receive:
                targets_due_ += step.transfer->size != 0;
                break;
            case Transfer::Kind::wait:
                ++interrupts_due_[static_cast<std::size_t>(step.transfer->tag) -
                                  static_cast<std::size_t>(Tag::interrupt_0)];
                break;
            case Transfer::Kind::fence:
                REEF_CHECK(drain());
                break;
        }
    }
    REEF_CHECK(drain());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        program.unpackers_[i].run(layers_[i], outputs[i]);
    }
    return {};
}

Status Runner::send(const Step& step) {
    const Transfer& transfer = *step.transfer;
    Bytes bytes = step.part->executable.parameters.view();
    if (transfer.tag == Tag::instructions) bytes = step.part->bitstreams[transfer.index];
    if (transfer.tag == Tag::input_activations) bytes = packed_[transfer.index];
    bytes = bytes.subspan(transfer.offset, transfer.size);
    auto& header = headers_[next_header_++];
    const std::uint32_t words[2] = {static_cast<std::uint32_t>(bytes.size()),
                                    static_cast<std::uint32_t>(transfer.tag)};
    std::memcpy(header.data(), words, sizeof words);
    REEF_CHECK(in_place(submit(header), to_string(transfer.tag)));
    while (!bytes.empty()) {
        const Bytes piece = bytes.first(std::min(bytes.size(), most_out_bytes));
        REEF_CHECK(in_place(submit(piece), to_string(transfer.tag)));
        bytes = bytes.subspan(piece.size());
    }
    return {};
}

Status Runner::submit(Bytes bytes) {
    while (out_under_way_ >= most_out_under_way ||
           (out_under_way_ != 0 && out_bytes_under_way_ + bytes.size() > most_bytes_under_way)) {
        REEF_CHECK(next_completion());
    }
    const auto id = connection_.submit_out(out_endpoint, bytes);
    if (!id) return std::unexpected(error_of(id.error(), "ep 01"));
    out_sizes_.push_back({*id, bytes.size()});
    out_bytes_under_way_ += bytes.size();
    ++out_under_way_;
    return {};
}

bool Runner::done() const {
    return out_under_way_ == 0 && target_ >= targets_due_ &&
           std::ranges::all_of(interrupts_due_, [](int due) { return due <= 0; });
}

Status Runner::drain() {
    while (!done()) REEF_CHECK(next_completion());
    return {};
}

std::string Runner::waiting_for() const {
    std::string text;
    const auto add = [&](std::string what) { text += (text.empty() ? "" : ", ") + what; };
    if (out_under_way_ != 0) {
        add(fmt::format("{} transfers of {} bytes to end", out_under_way_, out_bytes_under_way_));
    }
    if (target_ < targets_.size()) {
        std::size_t bytes = 0;
        for (std::size_t i = target_; i < targets_.size(); ++i) bytes += targets_[i].room.size();
        add(fmt::format("{} output bytes", bytes));
    }
    for (std::size_t i = 0; i < interrupts_due_.size(); ++i) {
        if (interrupts_due_[i] > 0) add(fmt::format("interrupt {}", i));
    }
    return text;
}

Status Runner::next_completion() {
    const TimePoint now = bus_.now();
    const auto left = std::chrono::duration_cast<Milliseconds>(end_ - now);
    if (left > Milliseconds(0)) {
        const auto completion = connection_.wait(left);
        if (!completion) return std::unexpected(error_of(completion.error(), "run"));
        if (*completion) return take(**completion);
        if (bus_.now() < end_) return {};
    }
    return std::unexpected(device_error(
        fmt::format("the deadline is over; still waiting for {}", waiting_for()), "run"));
}

Status Runner::take(const Completion& completion) {
    const auto place = [&] { return fmt::format("ep {:02x}", completion.endpoint); };
    if (completion.fault) {
        return std::unexpected(
            error_of({*completion.fault, std::string(to_string(*completion.fault))}, place()));
    }
    if (completion.endpoint == out_endpoint) {
        const auto sent = std::ranges::find(out_sizes_, completion.id,
                                            &std::pair<std::uint32_t, std::size_t>::first);
        if (sent == out_sizes_.end()) return {};
        const std::size_t size = sent->second;
        out_sizes_.erase(sent);
        --out_under_way_;
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

Status Runner::take_output(Bytes bytes) {
    while (!bytes.empty() && target_ < targets_.size()) {
        MutableBytes& room = targets_[target_].room;
        const std::size_t size = std::min(room.size(), bytes.size());
        std::memcpy(room.data(), bytes.data(), size);
        room = room.subspan(size);
        bytes = bytes.subspan(size);
        if (room.empty()) ++target_;
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
    if (tag < Tag::interrupt_0 || static_cast<int>(tag) > 7) {
        return std::unexpected(
            device_error(fmt::format("an unexpected event: {}", to_string(tag)), ""));
    }
    --interrupts_due_[static_cast<std::size_t>(tag) - static_cast<std::size_t>(Tag::interrupt_0)];
    return {};
}

}  // namespace reef::edgetpu::usb
