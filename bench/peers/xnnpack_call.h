// What the adapters of XNNPACK's versions have in common: each offers Functions<T>, by element
// type, whose create_*() make an operator and whose setup_*() give it shapes and addresses.
#pragma once

#include <pthreadpool.h>
#include <xnnpack.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace reef::peers {

/// Memory that an operator of a later version works in.
class Workspace {
  public:
    static constexpr std::size_t alignment = 64;
    /// At least `bytes`, which the next call may move.
    void* of(std::size_t bytes) {
        if (bytes > size_) memory_.reset(::operator new (bytes, std::align_val_t{alignment}));
        size_ = bytes > size_ ? bytes : size_;
        return memory_.get();
    }

  private:
    struct Delete {
        void operator()(void* p) const { ::operator delete (p, std::align_val_t{alignment}); }
    };
    std::unique_ptr<void, Delete> memory_;
    std::size_t size_ = 0;
};

/// The pool decides how the work is cut.
struct Call {
    xnn_operator_t op;
    pthreadpool_t pool;
    Workspace& workspace;
};

/// scale * (q - zero), and what of the type's values an operator may give.
struct Quantized {
    std::int32_t zero = 0;
    float scale = 1;
};
template <typename T>
struct Limits {
    T min, max;
};

/// Rows of `channels` elements, one behind the other.
struct Rows {
    std::size_t count = 0;
    std::size_t channels = 0;
};
struct Images {
    std::size_t count = 0;
    std::size_t height = 0;
    std::size_t width = 0;
    std::size_t channels = 0;
};

enum class Binary : std::uint8_t { add, multiply };
enum class Function : std::uint8_t { sigmoid, tanh };

using Shape = std::vector<std::size_t>;

}  // namespace reef::peers
