#include "rk3588/drm/buffer_pool.h"

#include <algorithm>

#include "rk3588/drm/node.h"

namespace reef::rk3588::drm {
namespace {

std::size_t size_of(const Buffer& buffer) {
    return buffer.bytes.size();
}

}  // namespace

PooledBuffer::~PooledBuffer() {
    if (pool_ == nullptr) return;
    auto& free = pool_->free_;
    free.insert(std::ranges::upper_bound(free, size_of(buffer_), {}, size_of), buffer_);
}

BufferPool::~BufferPool() {
    for (const Buffer& buffer : free_) port_.release(buffer);
}

Result<PooledBuffer> BufferPool::take(std::uint64_t bytes) {
    const auto found = std::ranges::lower_bound(free_, bytes, {}, size_of);
    if (found == free_.end() || found->bytes.size() / 2 > whole_pages(bytes)) {
        const Buffer made = REEF_TRY(port_.allocate(std::max<std::uint64_t>(bytes, 1)));
        ++count_;
        return PooledBuffer(this, made);
    }
    PooledBuffer taken(this, *found);
    free_.erase(found);
    return taken;
}

}  // namespace reef::rk3588::drm
