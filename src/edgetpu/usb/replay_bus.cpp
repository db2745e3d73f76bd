#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <tuple>

#include "edgetpu/usb/protocol.h"
#include "edgetpu/usb/recording_items.h"
#include "reef/base/sha256.h"

namespace reef::edgetpu::usb {
namespace {

using Kind = RecordedItem::Kind;

std::string_view name_of(Kind kind) {
    switch (kind) {
        case Kind::open:
            return "open";
        case Kind::reset:
            return "bus reset";
        case Kind::claim:
            return "claim";
        case Kind::release:
            return "release";
        case Kind::clear:
            return "clear halt";
        case Kind::control:
            return "control transfer";
        case Kind::waited:
            return "wait";
        default:
            return "submit";
    }
}

Failure failure(Fault fault, Kind kind) {
    return {fault, fmt::format("{}: {}", name_of(kind), to_string(fault))};
}

/// How a transfer that was submitted ended in the recording, if it did.
const RecordedItem* end_of(const RecordedItems& items, const RecordedItem& submitted) {
    const RecordedItem* const end = items.items.data() + items.items.size();
    for (const RecordedItem* item = &submitted + 1; item != end; ++item) {
        if (item->kind == Kind::open || item->kind == Kind::close) return nullptr;
        const bool ends = item->kind == Kind::sent || item->kind == Kind::failed;
        if (ends && item->endpoint == submitted.endpoint && item->id == submitted.id) return item;
    }
    return nullptr;
}

/// The recording with the place up to which it was replayed.
class Script {
  public:
    static Result<std::shared_ptr<Script>> of(Recording recording) {
        auto script = std::make_shared<Script>();
        script->recording_ = std::move(recording);
        script->items_ = REEF_TRY(parse_recording(script->recording_));
        script->guess_speed();
        script->number_refused();
        script->collect();
        return script;
    }

    /// The recorded item of what the host does now, if it is of this kind and `same` accepts it.
    template <class Same>
    Io<const RecordedItem*> next(Kind kind, const std::string& doing, Same&& same) {
        if (!difference_.empty()) return std::unexpected(Failure{Fault::failed, difference_});
        // Input that the host had not asked to wait for was lost on the recorded host, too.
        const RecordedItem* due = next_action();
        if (due == nullptr) {
            return differs(fmt::format("the host does: {}; the recording has ended{}", doing,
                                       when_no_more_is_sent(kind)));
        }
        if (due->kind != kind || !same(*due)) {
            return differs(fmt::format("line {}: the host does: {}; recorded: {}{}", due->line,
                                       doing, due->text, when_no_more_is_sent(kind)));
        }
        place_ = static_cast<std::size_t>(due - items_.items.data()) + 1;
        if (kind == Kind::open) {
            arrived_.clear();
            ++opened_;
        }
        std::erase_if(arrived_, [](const auto* item) { return item->kind == Kind::waited; });
        collect();
        give_up_in_time(*due);
        return due;
    }
    /// The same for what has no answer but its fault.
    template <class Same>
    Io<void> next_plain(Kind kind, const std::string& doing, Same&& same) {
        const auto item = next(kind, doing, same);
        if (!item) return std::unexpected(item.error());
        return checked(**item);
    }
    static Io<void> checked(const RecordedItem& item) {
        if (!item.fault) return {};
        return std::unexpected(failure(*item.fault, item.kind));
    }

    /// Ends of transfers that have come and nobody has taken, and waits in vain, in order.
    std::deque<const RecordedItem*>& arrived() { return arrived_; }

    /// The fault with which the recorded host's submission of that number on the endpoint was
    /// refused, counted since the device was opened.
    std::optional<Fault> refused(std::uint8_t endpoint, std::size_t number) const {
        const auto it = refused_.find({opened_, endpoint, number});
        return it == refused_.end() ? std::nullopt : std::optional(it->second);
    }

    /// What the host should do instead of waiting.
    std::string due() {
        const RecordedItem* item = next_action();
        return item == nullptr ? "the recording has ended"
                               : fmt::format("line {}: recorded: {}", item->line, item->text);
    }

    const RecordedItems& items() const { return items_; }

    /// The devices that the recording opens next.
    std::vector<DeviceInfo> devices() const {
        for (std::size_t i = place_; i < items_.items.size(); ++i) {
            const RecordedItem& item = items_.items[i];
            if (item.kind == Kind::open) {
                return {{.vendor = item.vendor,
                         .product = item.product,
                         .port = "replay",
                         .address = 1,
                         .speed = speed_}};
            }
        }
        return {};
    }

    TimePoint now() const { return TimePoint(time_); }
    void pass(Milliseconds time) { time_ += time; }

  private:
    static bool is_action(const RecordedItem& item) {
        switch (item.kind) {
            case Kind::completed:
            case Kind::sent:
            case Kind::failed:
            case Kind::in:
            case Kind::waited:
                return false;
            default:
                return true;
        }
    }

    const RecordedItem* next_action() const {
        for (std::size_t i = place_; i < items_.items.size(); ++i) {
            if (is_action(items_.items[i])) return &items_.items[i];
        }
        return nullptr;
    }
    /// What was recorded before the host's next action.
    void collect() {
        for (; place_ < items_.items.size() && !is_action(items_.items[place_]); ++place_) {
            const RecordedItem& item = items_.items[place_];
            if (item.kind == Kind::in || item.fault == Fault::cancelled) continue;
            arrived_.push_back(&item);
        }
    }
    /// The recorded host did the same again and again, and then no more: it had what it polled for,
    /// or its deadline was over. How often it asked in that time is not how often this host would.
    void give_up_in_time(const RecordedItem& done) {
        const auto same = [&](const RecordedItem* item) {
            return item != nullptr && item->kind == done.kind && item->setup == done.setup;
        };
        const bool repeats =
            done.kind == Kind::open ? done.fault.has_value() : done.setup.to_host() && same(last_);
        if (repeats && !same(next_action())) pass(std::chrono::hours(1));
        last_ = &done;
    }
    /// What helps a host that sends on where the recorded one was done.
    std::string_view when_no_more_is_sent(Kind kind) const {
        const auto rest = std::span(items_.items).subspan(place_);
        if (kind != Kind::out ||
            std::ranges::find(rest, Kind::out, &RecordedItem::kind) != rest.end())
            return "";
        return "; no further inference is recorded: `reef record --runs` records more, the "
               "`--runs` of `reef run` and `reef bench` run fewer";
    }
    std::unexpected<Failure> differs(std::string text) {
        difference_ = std::move(text);
        return std::unexpected(Failure{Fault::failed, difference_});
    }
    void guess_speed() {
        for (const RecordedItem& item : items_.items) {
            if (item.kind == Kind::in && item.endpoint == output_endpoint && item.asked <= 256) {
                speed_ = Speed::high;
            }
        }
    }
    void number_refused() {
        std::size_t opened = 0;
        std::map<std::uint8_t, std::size_t> numbers;
        for (const RecordedItem& item : items_.items) {
            if (item.kind == Kind::open) {
                ++opened;
                numbers.clear();
            }
            if (item.kind != Kind::in) continue;
            const std::size_t number = numbers[item.endpoint]++;
            if (item.fault) refused_[{opened, item.endpoint, number}] = *item.fault;
        }
    }

    Recording recording_;
    RecordedItems items_;
    std::size_t place_ = 0;
    std::deque<const RecordedItem*> arrived_;
    const RecordedItem* last_ = nullptr;  ///< action
    std::size_t opened_ = 0;
    std::map<std::tuple<std::size_t, std::uint8_t, std::size_t>, Fault> refused_;
    std::string difference_;
    Speed speed_ = Speed::super;
    std::chrono::steady_clock::duration time_{};
};

std::string shown(Bytes bytes) {
    constexpr std::size_t most = 32;
    return fmt::format("len={} data={}{}", bytes.size(),
                       to_hex(bytes.first(std::min(bytes.size(), most))),
                       bytes.size() > most ? ".." : "");
}

class ReplayConnection final : public Connection {
  public:
    explicit ReplayConnection(std::shared_ptr<Script> script, Speed speed)
        : script_(std::move(script)), speed_(speed) {}
    ~ReplayConnection() override {
        static_cast<void>(script_->next(Kind::close, "CLOSE", [](const auto&) { return true; }));
    }

    Speed speed() const override { return speed_; }

    Io<std::size_t> control(const Setup& setup, MutableBytes data, Milliseconds timeout) override {
        const std::string doing = fmt::format(
            "CTRL {} bmRequestType={:02x} bRequest={:02x} wValue={:04x} wIndex={:04x} wLength={} "
            "{}",
            setup.to_host() ? "IN " : "OUT", setup.request_type, setup.request, setup.value,
            setup.index, setup.length, setup.to_host() ? "" : shown(data));
        const auto item = script_->next(Kind::control, doing, [&](const RecordedItem& recorded) {
            return recorded.setup == setup && (setup.to_host() || equal_bytes(recorded.data, data));
        });
        if (!item) return std::unexpected(item.error());
        if ((*item)->result < 0) {
            // Recordings without names of faults.
            const Fault fault = (*item)->fault.value_or(Fault::stall);
            if (fault == Fault::timed_out) script_->pass(timeout);
            return std::unexpected(failure(fault, Kind::control));
        }
        if (setup.to_host()) std::ranges::copy((*item)->data, data.begin());
        return static_cast<std::size_t>((*item)->result);
    }
    Io<void> claim(unsigned interface) override {
        return numbered(Kind::claim, "CLAIM", interface);
    }
    Io<void> release(unsigned interface) override {
        return numbered(Kind::release, "RELEASE", interface);
    }
    Io<void> reset() override {
        return script_->next_plain(Kind::reset, "RESET", [](const auto&) { return true; });
    }
    Io<void> clear_halt(std::uint8_t endpoint) override {
        return script_->next_plain(
            Kind::clear, fmt::format("CLEAR {:02x}", endpoint),
            [&](const RecordedItem& recorded) { return recorded.endpoint == endpoint; });
    }

    Io<std::uint32_t> submit_out(std::uint8_t endpoint, Bytes bytes) override {
        const auto doing = fmt::format("BULK OUT ep={:02x} {}", endpoint, shown(bytes));
        const auto item = script_->next(Kind::out, doing, [&](const RecordedItem& recorded) {
            if (recorded.endpoint != endpoint) return false;
            if (recorded.fault) return recorded.asked == bytes.size();
            if (recorded.cut()) {
                return recorded.size == bytes.size() &&
                       equal_bytes(recorded.data, bytes.first(recorded.data.size()));
            }
            if (equal_bytes(recorded.data, bytes)) return true;
            const RecordedItems& items = script_->items();
            return items.without_addresses(recorded.data) == items.without_addresses(bytes);
        });
        if (!item) return std::unexpected(item.error());
        if (const auto taken = Script::checked(**item); !taken) {
            return std::unexpected(taken.error());
        }
        sending_.push_back({next_id_, bytes.size(), *item, end_of(script_->items(), **item)});
        return next_id_++;
    }
    Io<std::uint32_t> submit_in(std::uint8_t endpoint, EndpointType, MutableBytes bytes) override {
        if (const auto fault = script_->refused(endpoint, submitted_[endpoint]++)) {
            return std::unexpected(failure(*fault, Kind::in));
        }
        waiting_.push_back({next_id_, endpoint, bytes});
        return next_id_++;
    }

    Io<std::optional<Completion>> wait(Milliseconds timeout) override {
        if (done_.empty()) {
            auto ended = next_end(timeout);
            if (!ended || !*ended) return ended;
            done_.push_back(**ended);
        }
        const Completion first = done_.front();
        done_.pop_front();
        return first;
    }

    void cancel(std::uint32_t id) override {
        const auto it = std::ranges::find(waiting_, id, &Waiting::id);
        if (it == waiting_.end()) return;
        done_.push_back({.id = id, .endpoint = it->endpoint, .fault = Fault::cancelled});
        waiting_.erase(it);
    }
    void cancel_all() override {
        for (const Waiting& waiting : waiting_) {
            done_.push_back(
                {.id = waiting.id, .endpoint = waiting.endpoint, .fault = Fault::cancelled});
        }
        for (const Sending& sending : sending_) {
            done_.push_back({.id = sending.id,
                             .endpoint = sending.recorded->endpoint,
                             .fault = Fault::cancelled});
        }
        waiting_.clear();
        sending_.clear();
        // What came on the recorded host until then ended transfers that are cancelled now.
        script_->arrived().clear();
    }

  private:
    struct Waiting {
        std::uint32_t id;
        std::uint8_t endpoint;
        MutableBytes room;
    };

    struct Sending {
        std::uint32_t id;
        std::size_t size;
        const RecordedItem* recorded;
        const RecordedItem* end;  ///< in the recording; may be none
    };

    Io<void> numbered(Kind kind, std::string_view name, unsigned interface) {
        return script_->next_plain(
            kind, fmt::format("{} {}", name, interface),
            [&](const RecordedItem& recorded) { return recorded.interface == interface; });
    }

    /// The next end of a transfer, in the recording's order as far as this host has submitted it;
    /// nothing when the recorded host waited in vain.
    Io<std::optional<Completion>> next_end(Milliseconds timeout) {
        auto& arrived = script_->arrived();
        for (auto it = arrived.begin(); it != arrived.end();) {
            const RecordedItem& item = **it;
            if (item.kind == Kind::waited && item.fault) return failed_wait(item);
            if (item.kind == Kind::waited) return waited(it, timeout);
            const bool in = (item.endpoint & 0x80) != 0;
            const auto ended = in ? received(item) : sent(item);
            // Input waits for its request; an out transfer that is not under way has ended before.
            it = ended || !in ? arrived.erase(it) : std::next(it);
            if (ended) return ended;
        }
        // This host may wait for what the recorded one did not wait for yet.
        const auto it = std::ranges::find_if(sending_, [](const Sending& sending) {
            return sending.end == nullptr || sending.end->fault != Fault::cancelled;
        });
        if (it != sending_.end()) return take(it);
        return std::unexpected(Failure{
            Fault::failed, fmt::format("the host waits for the device; {}", script_->due())});
    }

    static Io<std::optional<Completion>> failed_wait(const RecordedItem& item) {
        return std::unexpected(failure(*item.fault, item.kind));
    }
    /// As long as the recorded host did, and then for as long as this one likes: its clock is not
    /// the recorded one's.
    Io<std::optional<Completion>> waited(std::deque<const RecordedItem*>::iterator it,
                                         Milliseconds timeout) {
        if (waited_ != *it) {
            waited_ = *it;
            left_ = waited_->waited;
        }
        const bool last = std::next(it) == script_->arrived().end();
        const Milliseconds passed =
            last && left_ <= Milliseconds(0) ? timeout : std::min(timeout, left_);
        script_->pass(passed);
        left_ -= passed;
        if (!last && left_ <= Milliseconds(0)) script_->arrived().erase(it);
        return std::optional<Completion>();
    }

    std::optional<Completion> received(const RecordedItem& item) {
        const auto it = std::ranges::find(waiting_, item.endpoint, &Waiting::endpoint);
        if (it == waiting_.end()) return std::nullopt;
        Completion completion{.id = it->id, .endpoint = it->endpoint, .fault = item.fault};
        if (!item.fault && item.size > it->room.size()) completion.fault = Fault::overflow;
        if (!completion.fault) {
            // What was not recorded is 0.
            std::ranges::fill(it->room.first(item.size), std::byte{0});
            std::ranges::copy(item.data, it->room.begin());
            completion.size = item.size;
        }
        waiting_.erase(it);
        return completion;
    }
    std::optional<Completion> sent(const RecordedItem& item) {
        const auto it = std::ranges::find(sending_, &item, &Sending::end);
        if (it == sending_.end()) return std::nullopt;
        return take(it);
    }
    std::optional<Completion> take(std::deque<Sending>::iterator it) {
        Completion completion{.id = it->id, .endpoint = it->recorded->endpoint, .fault = {}};
        if (it->end != nullptr) completion.fault = it->end->fault;
        if (!completion.fault) completion.size = it->size;
        sending_.erase(it);
        return completion;
    }

    std::shared_ptr<Script> script_;
    Speed speed_;
    std::deque<Waiting> waiting_;
    std::deque<Sending> sending_;
    std::deque<Completion> done_;
    std::map<std::uint8_t, std::size_t> submitted_;  ///< in transfers, by endpoint
    const RecordedItem* waited_ = nullptr;           ///< the wait that goes on
    Milliseconds left_{0};                           ///< of it
    std::uint32_t next_id_ = 0;
};

class ReplayBus final : public Bus {
  public:
    explicit ReplayBus(std::shared_ptr<Script> script) : script_(std::move(script)) {}

    Io<std::vector<DeviceInfo>> list() override { return script_->devices(); }
    Io<std::unique_ptr<Connection>> open(const DeviceInfo& device) override {
        const auto item = script_->next(
            Kind::open, fmt::format("OPEN {:04x}:{:04x}", device.vendor, device.product),
            [&](const RecordedItem& recorded) {
                return recorded.vendor == device.vendor && recorded.product == device.product;
            });
        if (!item) return std::unexpected(item.error());
        if (const auto opened = Script::checked(**item); !opened) {
            return std::unexpected(opened.error());
        }
        return std::make_unique<ReplayConnection>(script_, device.speed);
    }
    TimePoint now() override { return script_->now(); }
    void sleep(Milliseconds time) override { script_->pass(time); }

  private:
    std::shared_ptr<Script> script_;
};

}  // namespace

Result<std::shared_ptr<Bus>> replay_bus(Recording recording) {
    auto script = REEF_TRY(Script::of(std::move(recording)));
    return std::make_shared<ReplayBus>(std::move(script));
}

}  // namespace reef::edgetpu::usb
