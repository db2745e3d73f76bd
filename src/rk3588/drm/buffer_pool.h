// Buffers that are used again: the kernel's allocation of a large one takes longer than a run.
#pragma once

#include <utility>
#include <vector>

#include "rk3588/drm/port.h"

namespace reef::rk3588::drm {

class BufferPool;

/// A buffer of the pool, until it goes. The pool outlives it.
class PooledBuffer {
  public:
    PooledBuffer() = default;
    PooledBuffer(BufferPool* pool, const Buffer& buffer) : pool_(pool), buffer_(buffer) {}
    PooledBuffer(PooledBuffer&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), buffer_(other.buffer_) {}
    PooledBuffer& operator=(PooledBuffer&& other) noexcept {
        std::swap(pool_, other.pool_);
        std::swap(buffer_, other.buffer_);
        return *this;
    }
    ~PooledBuffer();
    [[nodiscard]] const Buffer& get() const { return buffer_; }

  private:
    BufferPool* pool_ = nullptr;
    Buffer buffer_;
};

class BufferPool {
  public:
    explicit BufferPool(Port& port) : port_(port) {}
    BufferPool(const BufferPool&) = delete;
    BufferPool& operator=(const BufferPool&) = delete;
    ~BufferPool();

    /// At least so many bytes, at most twice as many pages as they need; what they hold is
    /// anything.
    [[nodiscard]] Result<PooledBuffer> take(std::uint64_t bytes);
    [[nodiscard]] std::size_t free_count() const { return free_.size(); }
    /// With those in use.
    [[nodiscard]] std::size_t buffer_count() const { return count_; }

  private:
    friend class PooledBuffer;
    Port& port_;
    std::vector<Buffer> free_;  ///< by size
    std::size_t count_ = 0;
};

}  // namespace reef::rk3588::drm
