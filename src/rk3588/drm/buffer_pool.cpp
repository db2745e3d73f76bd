#include "rk3588/drm/buffer_pool.h"

#include <algorithm>

#include "rk3588/drm/node.h"

namespace reef::rk3588::drm {
namespace {

std::uint64_t size_of(const Buffer& buffer) {
    return buffer.bytes.size();
}

}  // namespace

PooledBuffer::~PooledBuffer() {
    if (pool_ != nullptr) pool_->put_back(buffer_);
}

BufferPool::~BufferPool() {
    for (const Free& one : free_) port_.release(one.buffer);
}

void BufferPool::put_back(const Buffer& buffer) {
    const auto size = size_of(buffer);
    free_.insert(std::ranges::upper_bound(free_, size, {}, &Free::size), {buffer, ++returns_});
    in_use_ -= size;
    free_bytes_ += size;
    while (bytes() > 2 * most_in_use_) {
        const auto oldest = std::ranges::min_element(free_, {}, &Free::since);
        port_.release(oldest->buffer);
        forget(oldest);
        --count_;
    }
}

void BufferPool::forget(std::vector<Free>::iterator one) {
    free_bytes_ -= one->size();
    free_.erase(one);
}

Result<PooledBuffer> BufferPool::take(std::uint64_t bytes) {
    // There are no buffers without a page.
    bytes = std::max<std::uint64_t>(bytes, 1);
    const auto found = std::ranges::lower_bound(free_, bytes, {}, &Free::size);
    Buffer taken;
    if (found == free_.end() || found->size() / 2 > whole_pages(bytes)) {
        taken = REEF_TRY(port_.allocate(bytes));
        ++count_;
    } else {
        taken = found->buffer;
        forget(found);
    }
    in_use_ += size_of(taken);
    most_in_use_ = std::max(most_in_use_, in_use_);
    return PooledBuffer(this, taken);
}

}  // namespace reef::rk3588::drm
