#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "edgetpu/usb/protocol.h"
#include "edgetpu/usb/recording_items.h"
#include "reef/base/sha256.h"

namespace reef::edgetpu::usb {
namespace {

using Kind = RecordedItem::Kind;

/// The recording with the place up to which it was replayed.
class Script {
  public:
    static Result<std::shared_ptr<Script>> of(Recording recording) {
        auto script = std::make_shared<Script>();
        script->recording_ = std::move(recording);
        script->items_ = REEF_TRY(parse_recording(script->recording_));
        return script;
    }

    /// The recorded item of what the host does now, if it is of this kind and `same` accepts it.
    template <class Same>
    Io<const RecordedItem*> next(Kind kind, const std::string& doing, Same&& same) {
        if (!difference_.empty()) return std::unexpected(Failure{Fault::failed, difference_});
        // Input that the host had not asked to wait for was lost on the recorded host, too.
        const RecordedItem* due = next_action();
        if (due == nullptr) {
            return differs(fmt::format("the host does: {}; the recording has ended", doing));
        }
        if (due->kind != kind || !same(*due)) {
            return differs(fmt::format("line {}: the host does: {}; recorded: {}", due->line, doing,
                                       due->text));
        }
        place_ = static_cast<std::size_t>(due - items_.items.data()) + 1;
        collect();
        return due;
    }

    /// Input on an endpoint that has arrived, the first of it.
    const RecordedItem* arrived(std::uint8_t endpoint) {
        auto it = std::ranges::find(arrived_, endpoint,
                                    [](const RecordedItem* item) { return item->endpoint; });
        if (it == arrived_.end()) return nullptr;
        const RecordedItem* item = *it;
        arrived_.erase(it);
        return item;
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
    void guess_speed() {
        for (const RecordedItem& item : items_.items) {
            if (item.kind == Kind::in && item.endpoint == output_endpoint && item.asked <= 256) {
                speed_ = Speed::high;
            }
        }
        collect();
    }

  private:
    static bool is_action(Kind kind) {
        return kind != Kind::completed && kind != Kind::failed && kind != Kind::in;
    }

    const RecordedItem* next_action() const {
        for (std::size_t i = place_; i < items_.items.size(); ++i) {
            if (is_action(items_.items[i].kind)) return &items_.items[i];
        }
        return nullptr;
    }
    /// Input that was recorded before the host's next action.
    void collect() {
        for (; place_ < items_.items.size() && !is_action(items_.items[place_].kind); ++place_) {
            if (items_.items[place_].kind == Kind::completed) {
                arrived_.push_back(&items_.items[place_]);
            }
        }
    }
    std::unexpected<Failure> differs(std::string text) {
        difference_ = std::move(text);
        return std::unexpected(Failure{Fault::failed, difference_});
    }

    Recording recording_;
    RecordedItems items_;
    std::size_t place_ = 0;
    std::deque<const RecordedItem*> arrived_;
    std::string difference_;
    Speed speed_ = Speed::super;
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

    Io<std::size_t> control(const Setup& setup, MutableBytes data, Milliseconds) override {
        const std::string doing = fmt::format(
            "CTRL {} bmRequestType={:02x} bRequest={:02x} wValue={:04x} wIndex={:04x} wLength={} "
            "{}",
            setup.to_host() ? "IN " : "OUT", setup.request_type, setup.request, setup.value,
            setup.index, setup.length, setup.to_host() ? "" : shown(data));
        const auto item = script_->next(Kind::control, doing, [&](const RecordedItem& recorded) {
            return recorded.setup == setup &&
                   (setup.to_host() || std::ranges::equal(recorded.data, data));
        });
        if (!item) return std::unexpected(item.error());
        if ((*item)->result < 0) {
            return std::unexpected(Failure{Fault::stall, "failed in the recording"});
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
        const auto item = script_->next(Kind::reset, "RESET", [](const auto&) { return true; });
        if (!item) return std::unexpected(item.error());
        return {};
    }
    Io<void> clear_halt(std::uint8_t endpoint) override {
        const auto item = script_->next(
            Kind::clear, fmt::format("CLEAR {:02x}", endpoint),
            [&](const RecordedItem& recorded) { return recorded.endpoint == endpoint; });
        if (!item) return std::unexpected(item.error());
        return {};
    }

    Io<std::uint32_t> submit_out(std::uint8_t endpoint, Bytes bytes) override {
        const auto doing = fmt::format("BULK OUT ep={:02x} {}", endpoint, shown(bytes));
        const auto item = script_->next(Kind::out, doing, [&](const RecordedItem& recorded) {
            if (recorded.endpoint != endpoint) return false;
            if (std::ranges::equal(recorded.data, bytes)) return true;
            const RecordedItems& items = script_->items();
            return items.without_addresses(recorded.data) == items.without_addresses(bytes);
        });
        if (!item) return std::unexpected(item.error());
        done_.push_back({.id = next_id_, .endpoint = endpoint, .fault = {}, .size = bytes.size()});
        return next_id_++;
    }
    Io<std::uint32_t> submit_in(std::uint8_t endpoint, EndpointType, MutableBytes bytes) override {
        waiting_.push_back({next_id_, endpoint, bytes});
        return next_id_++;
    }

    Io<std::optional<Completion>> wait(Milliseconds) override {
        if (done_.empty()) deliver();
        if (done_.empty()) {
            return std::unexpected(Failure{
                Fault::failed, fmt::format("the host waits for the device; {}", script_->due())});
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
        waiting_.clear();
    }

  private:
    struct Waiting {
        std::uint32_t id;
        std::uint8_t endpoint;
        MutableBytes room;
    };

    Io<void> numbered(Kind kind, std::string_view name, unsigned interface) {
        const auto item = script_->next(
            kind, fmt::format("{} {}", name, interface),
            [&](const RecordedItem& recorded) { return recorded.interface == interface; });
        if (!item) return std::unexpected(item.error());
        return {};
    }

    void deliver() {
        for (auto it = waiting_.begin(); it != waiting_.end();) {
            const RecordedItem* item = script_->arrived(it->endpoint);
            if (item == nullptr) {
                ++it;
                continue;
            }
            const bool fits = item->data.size() <= it->room.size();
            if (fits) std::ranges::copy(item->data, it->room.begin());
            done_.push_back({.id = it->id,
                             .endpoint = it->endpoint,
                             .fault = fits ? std::nullopt : std::optional(Fault::overflow),
                             .size = fits ? item->data.size() : 0});
            it = waiting_.erase(it);
        }
    }

    std::shared_ptr<Script> script_;
    Speed speed_;
    std::deque<Waiting> waiting_;
    std::deque<Completion> done_;
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
        return std::make_unique<ReplayConnection>(script_, device.speed);
    }
    TimePoint now() override { return TimePoint(time_); }
    void sleep(Milliseconds time) override { time_ += time; }

  private:
    std::shared_ptr<Script> script_;
    std::chrono::steady_clock::duration time_{};
};

}  // namespace

Result<std::shared_ptr<Bus>> replay_bus(Recording recording) {
    auto script = REEF_TRY(Script::of(std::move(recording)));
    script->guess_speed();
    return std::make_shared<ReplayBus>(std::move(script));
}

}  // namespace reef::edgetpu::usb
