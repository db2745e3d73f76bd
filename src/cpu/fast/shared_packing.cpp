#include "cpu/fast/shared_packing.h"

#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace reef::cpu {
namespace {

struct Shared {
    Bytes weights;
    std::weak_ptr<const void> owner;  ///< of the weights
    std::weak_ptr<const std::byte> packed;
};

class PackingShelf {
  public:
    [[nodiscard]] PackedBytes find(const SharedBytes& weights, const PackingForm& form) {
        const std::scoped_lock lock(mutex_);
        const auto [begin, end] = shelf_.equal_range({weights.size(), form});
        for (auto at = begin; at != end;) {
            const auto owner = at->second.owner.lock();
            PackedBytes packed = at->second.packed.lock();
            if (owner == nullptr || packed == nullptr) {
                at = shelf_.erase(at);
                continue;
            }
            if (same(at->second.weights, weights.view())) return packed;
            ++at;
        }
        return nullptr;
    }
    void add(const SharedBytes& weights, const PackingForm& form, const PackedBytes& packed) {
        const std::scoped_lock lock(mutex_);
        // Forms that nobody asks for again would keep their entries.
        std::erase_if(shelf_, [](const auto& entry) { return entry.second.packed.expired(); });
        shelf_.insert({{weights.size(), form}, {weights.view(), weights.owner(), packed}});
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
