// Products of matrices on the RK3588's NPU: C = A x B, where B stays in the NPU's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "reef/base/bytes.h"
#include "reef/base/result.h"

namespace reef::rk3588 {

/// Of A and B. int8: C is int32 and exact. fp16: C is fp32; products and sums have the precision of
/// binary32, in an order that is not known of a real chip.
enum class MatrixElements : std::uint8_t { int8, fp16 };

/// How B's bytes are given.
enum class MatrixOrder : std::uint8_t {
    rows,     ///< [k][n]: one row of B behind the other
    columns,  ///< [n][k]: one column behind the other, as layers keep their weights
};

struct MatmulOptions {
    std::size_t cores = 1;  ///< 1 to 3, that share B's columns
    /// Named matrices that nobody holds stay in the NPU's memory, with the buffers of their
    /// products, up to so many bytes; those longest unused go first.
    std::size_t cache_bytes = std::size_t{256} << 20;
};

/// What the last product did, as its command words say.
struct MatmulCounters {
    std::uint64_t tasks = 0;
    std::uint64_t bytes_moved = 0;  ///< by the NPU, to and from memory
    std::uint64_t loads = 0;        ///< matrices that were packed since open()
    std::uint64_t cache_hits = 0;   ///< matrices that were there already
    std::uint64_t buffers = 0;      ///< of the NPU's memory, in use or in the pool
};

/// A matrix B in the NPU's memory. Copies are the same one.
class ResidentMatrix {
  public:
    [[nodiscard]] MatrixElements elements() const;
    [[nodiscard]] std::size_t k() const;  ///< rows
    [[nodiscard]] std::size_t n() const;  ///< columns
    /// That it takes, with what fills up blocks.
    [[nodiscard]] std::size_t bytes() const;

  private:
    friend class Matmul;
    struct Impl;
    explicit ResidentMatrix(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
    std::shared_ptr<Impl> impl_;
};

/// An open NPU. One thread at a time.
class Matmul {
  public:
    /// `device` as runtime::Session takes it: "rk3588:sim", "rk3588:rknpu", ... Errors:
    /// bad_argument for other devices and numbers of cores; those of opening it.
    [[nodiscard]] static Result<Matmul> open(std::string_view device,
                                             const MatmulOptions& options = {});
    Matmul(Matmul&&) noexcept;
    Matmul& operator=(Matmul&&) noexcept;
    ~Matmul();

    /// Packs B and keeps it. A name that was given before is the same matrix again: its bytes are
    /// not looked at; empty: it has no name and goes with its last holder. Errors: bad_argument for
    /// a size that is 0, above 2^17 - 1 rows or 2^15 columns, or not that of `b`, and for a name
    /// that has another matrix; those of the NPU's memory.
    [[nodiscard]] Result<ResidentMatrix> load(std::string_view name, MatrixElements elements,
                                              std::size_t k, std::size_t n, MatrixOrder order,
                                              Bytes b);

    /// A: [m][k], C: [m][n], one row behind the other, int32 or fp32. A second product of as many
    /// rows allocates nothing. Errors: bad_argument for sizes that are not these, or m of 0 or
    /// above 2^16; those of running, after which the NPU has been reset.
    [[nodiscard]] Status multiply(const ResidentMatrix& b, std::size_t m, Bytes a, MutableBytes c);

    [[nodiscard]] MatmulCounters counters() const;

  private:
    struct Impl;
    explicit Matmul(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace reef::rk3588
