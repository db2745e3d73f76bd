// The memory that the simulated chip sees: buffers at addresses of 32 bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "rk3588/stream/task_work.h"

namespace reef::rk3588::sim {

using Traffic = BytesMoved;

/// What a buffer holds before a run. Bytes that are unknown may be read when somebody wrote them.
enum class Contents : std::uint8_t { known, unknown };

/// Bytes that somebody read or wrote, each as ranges in order that do not touch.
class Accesses {
  public:
    struct Range {
        std::uint64_t begin = 0, end = 0;
    };
    void add_read(std::uint64_t address, std::uint64_t size) { add(reads_, address, size); }
    void add_write(std::uint64_t address, std::uint64_t size) { add(writes_, address, size); }
    /// The first byte that the one writes and the other reads or writes, whoever comes first.
    [[nodiscard]] static std::optional<std::uint64_t> conflict(Accesses& a, Accesses& b);

  private:
    static void add(std::vector<Range>& list, std::uint64_t address, std::uint64_t size);
    void sort();
    std::vector<Range> reads_, writes_;
};

/// Buffers that belong to somebody else. An access outside of all of them, or over a buffer's end,
/// is what the chip's address translation refuses.
class Memory {
  public:
    /// Errors: bad_argument for an empty buffer, one that overlaps another, or one that ends beyond
    /// 32 bits.
    [[nodiscard]] Status add(std::uint32_t address, MutableBytes bytes,
                             Contents contents = Contents::known);
    /// All bytes of the buffer of unknown contents that begins there are unknown again.
    void forget(std::uint32_t address);
    /// Nothing happens when no buffer begins there.
    void remove(std::uint32_t address);

    /// `what` names the access in the error: "weights". Errors: bad_input, also for bytes that
    /// nobody wrote.
    [[nodiscard]] Result<Bytes> read(std::uint64_t address, std::uint64_t size,
                                     std::string_view what) const;
    /// The bytes count as written.
    [[nodiscard]] Result<MutableBytes> write(std::uint64_t address, std::uint64_t size,
                                             std::string_view what);
    /// Errors: those of write(), without writing.
    [[nodiscard]] Status check_write(std::uint64_t address, std::uint64_t size,
                                     std::string_view what) const;
    /// From now on accesses are added there; null: no longer. It outlives them.
    void watch(Accesses* accesses) { accesses_ = accesses; }

  private:
    struct Buffer {
        std::uint32_t address;
        MutableBytes bytes;
        std::vector<std::uint8_t> written;  ///< 1 for each byte; empty: all are known
    };
    /// The number of the buffer that holds the bytes.
    [[nodiscard]] Result<std::size_t> find(std::uint64_t address, std::uint64_t size,
                                           std::string_view what, std::string_view verb) const;

    std::vector<Buffer> buffers_;  ///< by address
    Accesses* accesses_ = nullptr;
};

}  // namespace reef::rk3588::sim
