#include "cpu/fast/shared_packing.h"

#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace reef::cpu {
namespace {

/// Bytes to compare with, as long as they are there.
struct Original {
    Bytes weights;
    std::weak_ptr<const void> owner;
};

struct Shared {
    /// Equal weights of all who share: the first who packed them may go before the others.
    std::vector<Original> originals;
    std::weak_ptr<const std::byte> packed;
};

class PackingShelf {
  public:
    [[nodiscard]] PackedBytes find(const SharedBytes& weights, const PackingForm& form) {
        const std::scoped_lock lock(mutex_);
        const auto [begin, end] = shelf_.equal_range({weights.size(), form});
        for (auto at = begin; at != end;) {
            auto& originals = at->second.originals;
            std::erase_if(originals, [](const Original& one) { return one.owner.expired(); });
            PackedBytes packed = at->second.packed.lock();
            if (originals.empty() || packed == nullptr) {
                at = shelf_.erase(at);
                continue;
            }
            const auto owner = originals.front().owner.lock();
            if (owner != nullptr && same(originals.front().weights, weights.view())) {
                const auto is_this = [&](const Original& one) {
                    return one.weights.data() == weights.view().data();
                };
                if (std::ranges::none_of(originals, is_this))
                    originals.push_back({weights.view(), weights.owner()});
                return packed;
            }
            ++at;
        }
        return nullptr;
    }
    void add(const SharedBytes& weights, const PackingForm& form, const PackedBytes& packed) {
        const std::scoped_lock lock(mutex_);
        // Forms that nobody asks for again would keep their entries.
        std::erase_if(shelf_, [](const auto& entry) { return entry.second.packed.expired(); });
        shelf_.insert({{weights.size(), form}, {{{weights.view(), weights.owner()}}, packed}});
    }

  private:
    static bool same(Bytes a, Bytes b) {
        return a.data() == b.data() || std::memcmp(a.data(), b.data(), a.size()) == 0;
    }
    std::mutex mutex_;
    std::multimap<std::pair<std::size_t, PackingForm>, Shared> shelf_;
};

}  // namespace

std::shared_ptr<std::byte> allocate_packed(std::size_t bytes) {
    auto block = hwy::AllocateAligned<std::byte>(std::max<std::size_t>(bytes, 1));
    std::fill_n(block.get(), bytes, std::byte{0});
    const auto free = block.get_deleter();
    return {block.release(), free};
}

PackedBytes share_packed(const SharedBytes& weights, const PackingForm& form,
                         const std::function<PackedBytes()>& pack) {
    // Never destroyed: kernels in static storage may outlive it.
    static auto& shelf = *new PackingShelf;
    if (weights.owner() == nullptr || weights.empty()) return pack();
    if (PackedBytes found = shelf.find(weights, form)) return found;
    PackedBytes packed = pack();
    shelf.add(weights, form, packed);
    return packed;
}

}  // namespace reef::cpu
