#include "cpu/fast/shared_packing.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cpu/fast/aligned_array.h"

namespace reef::cpu {
namespace {

std::size_t hash_of(Bytes bytes) {
    return std::hash<std::string_view>{}(
        {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

/// Bytes to compare with, as long as they are there.
struct Original {
    Bytes weights;
    std::weak_ptr<const void> owner;
};

struct Shared {
    /// Equal weights of all who share: the first who packed them may go before the others.
    std::vector<Original> originals{};
    std::size_t bytes = 0;
    bool is_being_packed = true;
    std::weak_ptr<const std::byte> packed{};

    [[nodiscard]] bool is_dead() const { return !is_being_packed && packed.expired(); }
};

PackedBytes packed_now(std::size_t bytes, const std::function<void(std::byte*)>& pack) {
    auto block = aligned_array<std::byte>(bytes);
    std::fill_n(block.get(), bytes, std::byte{0});
    pack(block.get());
    const auto free = block.get_deleter();
    return {block.release(), free};
}

class PackingShelf {
  public:
    [[nodiscard]] PackedBytes share(const SharedBytes& weights, const PackingForm& form,
                                    std::size_t bytes,
                                    const std::function<void(std::byte*)>& pack) {
        const Key key{weights.size(), hash_of(weights.view()), form};
        std::unique_lock lock(mutex_);
        for (auto at = find(weights, key); at != shelf_.end(); at = find(weights, key)) {
            if (PackedBytes packed = at->second.packed.lock()) {
                remember(weights, at->second);
                return packed;
            }
            if (at->second.is_being_packed) packed_or_failed_.wait(lock);
        }
        // Forms that nobody asks for again would keep their entries.
        std::erase_if(shelf_, [](const auto& entry) { return entry.second.is_dead(); });
        const auto own = shelf_.insert({key, {.bytes = bytes}});
        try {
            remember(weights, own->second);
            lock.unlock();
            const PackedBytes packed = packed_now(bytes, pack);
            lock.lock();
            const auto [equal, their_packed] = find_packed(key, packed, bytes);
            if (equal == nullptr) {
                own->second.packed = packed;
                own->second.is_being_packed = false;
            } else {
                remember(weights, *equal);
                shelf_.erase(own);
            }
            packed_or_failed_.notify_all();
            return equal == nullptr ? packed : their_packed;
        } catch (...) {
            if (!lock.owns_lock()) lock.lock();
            shelf_.erase(own);
            packed_or_failed_.notify_all();
            throw;
        }
    }

    [[nodiscard]] SharedPackings held() {
        const std::scoped_lock lock(mutex_);
        SharedPackings held;
        for (const auto& [key, shared] : shelf_) {
            if (shared.packed.expired()) continue;
            ++held.count;
            held.bytes += shared.bytes;
        }
        return held;
    }

  private:
    /// The weights' size, their hash when they were packed, and the form. A mapped file that is
    /// overwritten in place, or a buffer that is filled anew, no longer is what was packed.
    using Key = std::tuple<std::size_t, std::size_t, PackingForm>;
    using Shelf = std::multimap<Key, Shared>;

    /// What is packed, or being packed, of equal weights. Takes away what no kernel holds.
    [[nodiscard]] Shelf::iterator find(const SharedBytes& weights, const Key& key) {
        const auto [begin, end] = shelf_.equal_range(key);
        for (auto at = begin; at != end;) {
            if (at->second.is_dead()) {
                at = shelf_.erase(at);
                continue;
            }
            auto& originals = at->second.originals;
            std::erase_if(originals, [](const Original& one) { return one.owner.expired(); });
            if (!originals.empty()) {
                const auto owner = originals.front().owner.lock();
                if (owner != nullptr && same(originals.front().weights, weights.view())) return at;
            }
            ++at;
        }
        return shelf_.end();
    }
    /// What has the same bytes packed.
    [[nodiscard]] std::pair<Shared*, PackedBytes> find_packed(const Key& key,
                                                              const PackedBytes& packed,
                                                              std::size_t bytes) {
        const auto [begin, end] = shelf_.equal_range(key);
        for (auto at = begin; at != end; ++at)
            if (PackedBytes theirs = at->second.packed.lock())
                if (at->second.bytes == bytes && same({theirs.get(), bytes}, {packed.get(), bytes}))
                    return {&at->second, std::move(theirs)};
        return {nullptr, nullptr};
    }
    static void remember(const SharedBytes& weights, Shared& shared) {
        const auto is_this = [&](const Original& one) {
            return one.weights.data() == weights.view().data();
        };
        if (std::ranges::none_of(shared.originals, is_this))
            shared.originals.push_back({weights.view(), weights.owner()});
    }
    static bool same(Bytes a, Bytes b) {
        return a.data() == b.data() || std::memcmp(a.data(), b.data(), a.size()) == 0;
    }

    std::mutex mutex_;
    std::condition_variable packed_or_failed_;
    Shelf shelf_;
};

// Never destroyed: kernels in static storage may outlive it.
PackingShelf& packing_shelf() {
    static auto& shelf = *new PackingShelf;
    return shelf;
}

}  // namespace

PackedBytes share_packed(const SharedBytes& weights, const PackingForm& form, std::size_t bytes,
                         const std::function<void(std::byte*)>& pack) {
    if (weights.owner() == nullptr || weights.empty()) return packed_now(bytes, pack);
    return packing_shelf().share(weights, form, bytes, pack);
}

SharedPackings shared_packings() {
    return packing_shelf().held();
}

}  // namespace reef::cpu
