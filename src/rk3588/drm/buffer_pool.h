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
    /// Of all its buffers: at most twice what was ever in use at once. What would be more is given
    /// back to the kernel, what lay there longest first.
    [[nodiscard]] std::uint64_t bytes() const { return in_use_ + free_bytes_; }

  private:
    friend class PooledBuffer;
    struct Free {
        Buffer buffer;
        std::uint64_t since = 0;  ///< the return that brought it
        [[nodiscard]] std::uint64_t size() const { return buffer.bytes.size(); }
    };
    void put_back(const Buffer& buffer);
    void forget(std::vector<Free>::iterator one);

    Port& port_;
    std::vector<Free> free_;  ///< by size
    std::size_t count_ = 0;
    std::uint64_t returns_ = 0;
    std::uint64_t in_use_ = 0, most_in_use_ = 0, free_bytes_ = 0;
};

}  // namespace reef::rk3588::drm
