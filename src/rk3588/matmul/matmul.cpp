#include "reef/rk3588/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <string>

#include "reef/rk3588/layout.h"
#include "reef/runtime/registry.h"
#include "reef_spec/rk3588_machine.h"
#include "rk3588/device/ports.h"
#include "rk3588/drm/buffer_pool.h"
#include "rk3588/matmul/matmul_tasks.h"

namespace reef::rk3588 {
namespace {

using drm::PooledBuffer;
using matmul::ProductShape;

constexpr std::size_t most_m = std::size_t{1} << 16;
/// Sums of int8 products fit 32 bits.
constexpr std::size_t most_k = (std::size_t{1} << 17) - 1;
/// A row of C has 13 bits of atoms.
constexpr std::size_t most_n = std::size_t{1} << 15;
constexpr std::chrono::milliseconds time_out{3000};

std::unexpected<Error> bad(std::string what) {
    return fail(Cause::bad_argument, std::move(what), "matrix");
}

/// The NPU and its memory, as long as anything of it is in use.
struct Npu {
    std::unique_ptr<drm::Port> port;
    std::unique_ptr<drm::BufferPool> pool;
};

/// A product of so many rows, ready to run.
struct Prepared {
    ProductShape shape;
    std::size_t k_tiles = 1;
    std::uint64_t bytes_moved = 0;
    PooledBuffer commands, a, c;
    std::vector<std::vector<drm::SubmittedTask>> tasks;
    std::vector<std::span<const drm::SubmittedTask>> cores;

    [[nodiscard]] std::size_t held_bytes() const {
        return commands.get().bytes.size() + a.get().bytes.size() + c.get().bytes.size();
    }
};

/// Packed stretch by stretch of B's rows, each as kernels of its own.
void pack(const ProductShape& s, MatrixOrder order, Bytes b, MutableBytes packed) {
    const std::size_t tile = matmul::k_tile_size(s), bytes = s.element_bytes();
    for (std::size_t first = 0; first < s.stored_k(); first += tile) {
        const std::size_t stored = std::min(tile, s.stored_k() - first);
        const MatrixStretch stretch{.k = s.k,
                                    .n = s.n,
                                    .first = first,
                                    .count = std::min(stored, s.k - std::min(first, s.k)),
                                    .by_columns = order == MatrixOrder::columns};
        const MutableBytes part =
            packed.subspan(first * s.stored_n() * bytes, stored * s.stored_n() * bytes);
        if (s.elements == MatrixElements::int8)
            pack_int8_matrix(stretch, b, part);
        else
            pack_fp16_matrix(stretch, b, part);
    }
}

}  // namespace

struct ResidentMatrix::Impl {
    std::shared_ptr<Npu> npu;
    ProductShape shape;  ///< m is not set
    std::string name;
    PooledBuffer packed;
    std::list<Prepared> prepared;  ///< last used first

    /// Of the NPU's memory, with what products need beside B.
    [[nodiscard]] std::size_t held_bytes() const {
        std::size_t bytes = packed.get().bytes.size();
        for (const Prepared& p : prepared) bytes += p.held_bytes();
        return bytes;
    }
};

MatrixElements ResidentMatrix::elements() const {
    return impl_->shape.elements;
}
std::size_t ResidentMatrix::k() const {
    return impl_->shape.k;
}
std::size_t ResidentMatrix::n() const {
    return impl_->shape.n;
}
std::size_t ResidentMatrix::bytes() const {
    return impl_->shape.weight_bytes();
}

struct Matmul::Impl {
    std::shared_ptr<Npu> npu;
    MatmulOptions options;
    std::list<std::shared_ptr<ResidentMatrix::Impl>> cache;  ///< last used first
    MatmulCounters counters;

    using Matrix = ResidentMatrix::Impl;
    [[nodiscard]] std::shared_ptr<Matrix> find(std::string_view name);
    void evict();
    [[nodiscard]] Result<Prepared*> prepare(Matrix& b, std::size_t m);
    [[nodiscard]] Result<Prepared> make(Matrix& b, std::size_t m);
    [[nodiscard]] Status run(const Matrix& b, Prepared& p);
};

Matmul::Matmul(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Matmul::Matmul(Matmul&&) noexcept = default;
Matmul& Matmul::operator=(Matmul&&) noexcept = default;
Matmul::~Matmul() = default;

Result<Matmul> Matmul::open(std::string_view device, const MatmulOptions& options) {
    if (options.cores < 1 || options.cores > spec::core_count)
        return fail(Cause::bad_argument, fmt::format("{} cores", options.cores), {},
                    fmt::format("the chip has {}", spec::core_count));
    auto impl = std::make_unique<Impl>();
    impl->npu = std::make_shared<Npu>();
    impl->npu->port = REEF_TRY(open_port_of(device));
    impl->npu->pool = std::make_unique<drm::BufferPool>(*impl->npu->port);
    impl->options = options;
    return Matmul(std::move(impl));
}

std::shared_ptr<ResidentMatrix::Impl> Matmul::Impl::find(std::string_view name) {
    const auto known = std::ranges::find_if(cache, [&](const auto& m) { return m->name == name; });
    if (known == cache.end()) return nullptr;
    cache.splice(cache.begin(), cache, known);
    return cache.front();
}

void Matmul::Impl::evict() {
    std::size_t bytes = 0;
    for (auto it = cache.begin(); it != cache.end();) {
        const std::size_t held = (*it)->held_bytes();
        bytes += held;
        const bool goes = bytes > options.cache_bytes && it->use_count() == 1;
        if (goes) bytes -= held;
        it = goes ? cache.erase(it) : std::next(it);
    }
}

Result<ResidentMatrix> Matmul::load(std::string_view name, MatrixElements elements, std::size_t k,
                                    std::size_t n, MatrixOrder order, Bytes b) {
    const ProductShape shape{.elements = elements, .m = 0, .k = k, .n = n};
    if (k < 1 || k > most_k || n < 1 || n > most_n)
        return bad(fmt::format("B has {} x {} elements: 1 to {} rows and to {} columns are taken",
                               k, n, most_k, most_n));
    if (!name.empty()) {
        if (auto known = impl_->find(name)) {
            const ProductShape& other = known->shape;
            if (other.elements != elements || other.k != k || other.n != n)
                return bad(fmt::format("'{}' is a matrix of {} x {}", name, other.k, other.n));
            ++impl_->counters.cache_hits;
            return ResidentMatrix(std::move(known));
        }
    }
    if (b.size() != k * n * shape.element_bytes())
        return bad(fmt::format("B has {} bytes, {} x {} elements take {}", b.size(), k, n,
                               k * n * shape.element_bytes()));
    auto matrix = std::make_shared<ResidentMatrix::Impl>();
    matrix->npu = impl_->npu;
    matrix->shape = shape;
    matrix->name = name;
    matrix->packed = REEF_TRY(impl_->npu->pool->take(shape.weight_bytes()));
    pack(shape, order, b, matrix->packed.get().bytes.first(shape.weight_bytes()));
    REEF_CHECK(impl_->npu->port->to_device(matrix->packed.get()));
    ++impl_->counters.loads;
    if (!name.empty()) {
        impl_->cache.push_front(matrix);
        impl_->evict();
    }
    return ResidentMatrix(std::move(matrix));
}

Result<Prepared> Matmul::Impl::make(Matrix& b, std::size_t m) {
    Prepared p;
    p.shape = b.shape;
    p.shape.m = m;
    const auto plan = matmul::plan_product(p.shape, options.cores);
    p.k_tiles = plan.k_tiles;
    auto& pool = *npu->pool;
    p.a = REEF_TRY(pool.take(p.shape.stored_m() * p.shape.stored_k() * p.shape.element_bytes()));
    p.c = REEF_TRY(
        pool.take(p.k_tiles * p.shape.stored_m() * p.shape.stored_n() * sizeof(std::int32_t)));
    p.commands = REEF_TRY(pool.take(matmul::word_count(plan) * sizeof(std::uint64_t)));
    const std::uint32_t commands = p.commands.get().address;
    const auto words = REEF_TRY(matmul::product_words(
        p.shape, plan, {p.a.get().address, b.packed.get().address, p.c.get().address}, commands));
    std::ranges::copy(std::as_bytes(std::span(words.words)), p.commands.get().bytes.begin());
    REEF_CHECK(npu->port->to_device(p.commands.get()));
    for (const auto& core : words.cores) {
        auto& tasks = p.tasks.emplace_back();
        for (const auto& place : core)
            tasks.push_back(
                {static_cast<std::uint32_t>(commands + place.first_word * sizeof(std::uint64_t)),
                 place.words, place.blocks});
    }
    for (const auto& tasks : p.tasks) p.cores.emplace_back(tasks);
    p.bytes_moved = plan.bytes_moved() + words.words.size() * sizeof(std::uint64_t);
    // Rows and columns that fill up blocks.
    std::ranges::fill(p.a.get().bytes, std::byte{0});
    return p;
}

Result<Prepared*> Matmul::Impl::prepare(Matrix& b, std::size_t m) {
    constexpr std::size_t kept = 4;
    auto& all = b.prepared;
    const auto known = std::ranges::find(all, m, [](const Prepared& p) { return p.shape.m; });
    if (known != all.end()) {
        all.splice(all.begin(), all, known);
        return &all.front();
    }
    all.push_front(REEF_TRY(make(b, m)));
    if (all.size() > kept) all.pop_back();
    evict();
    return &all.front();
}

Status Matmul::Impl::run(const Matrix& b, Prepared& p) {
    auto& port = *npu->port;
    REEF_CHECK(port.to_device(p.a.get()));
    // What the cache still holds of C must not be written over the NPU's results later.
    REEF_CHECK(port.to_device(p.c.get()));
    const drm::Buffer* const reads[] = {&p.commands.get(), &p.a.get(), &b.packed.get()};
    const drm::Buffer* const writes[] = {&p.c.get()};
    REEF_CHECK(
        port.submit({.cores = p.cores, .reads = reads, .writes = writes, .time_out = time_out}));
    return port.from_device(p.c.get());
}

namespace {

void add_rows(MatrixElements elements, Bytes more, MutableBytes sum) {
    for (std::size_t at = 0; at < sum.size(); at += 4) {
        if (elements == MatrixElements::int8) {
            std::uint32_t a, b;
            std::memcpy(&a, sum.data() + at, 4);
            std::memcpy(&b, more.data() + at, 4);
            a += b;
            std::memcpy(sum.data() + at, &a, 4);
        } else {
            float a, b;
            std::memcpy(&a, sum.data() + at, 4);
            std::memcpy(&b, more.data() + at, 4);
            a += b;
            std::memcpy(sum.data() + at, &a, 4);
        }
    }
}

}  // namespace

Status Matmul::multiply(const ResidentMatrix& b, std::size_t m, Bytes a, MutableBytes c) {
    auto& matrix = *b.impl_;
    if (matrix.npu != impl_->npu) return bad("B lies in the memory of another NPU");
    const ProductShape& s = matrix.shape;
    const std::size_t row = s.k * s.element_bytes(), c_row = s.n * sizeof(std::int32_t);
    if (m < 1 || m > most_m) return bad(fmt::format("A has {} rows: 1 to {} are taken", m, most_m));
    if (a.size() != m * row || c.size() != m * c_row)
        return bad(fmt::format("A has {} bytes and C {}, {} rows take {} and {}", a.size(),
                               c.size(), m, m * row, m * c_row));
    Prepared& p = *REEF_TRY(impl_->prepare(matrix, m));
    const std::size_t stored_row = p.shape.stored_k() * s.element_bytes();
    for (std::size_t y = 0; y < m; ++y)
        std::ranges::copy(a.subspan(y * row, row),
                          p.a.get().bytes.begin() + static_cast<std::ptrdiff_t>(y * stored_row));
    REEF_CHECK(impl_->run(matrix, p));
    const std::size_t stored_c = p.shape.stored_n() * sizeof(std::int32_t);
    for (std::size_t t = 0; t < p.k_tiles; ++t)
        for (std::size_t y = 0; y < m; ++y) {
            const Bytes from =
                Bytes(p.c.get().bytes).subspan((t * p.shape.stored_m() + y) * stored_c, c_row);
            const MutableBytes to = c.subspan(y * c_row, c_row);
            if (t == 0)
                std::ranges::copy(from, to.begin());
            else
                add_rows(s.elements, from, to);
        }
    impl_->counters.tasks = 0;
    for (const auto& tasks : p.tasks) impl_->counters.tasks += tasks.size();
    impl_->counters.bytes_moved = p.bytes_moved;
    return {};
}

MatmulCounters Matmul::counters() const {
    MatmulCounters out = impl_->counters;
    out.buffers = impl_->npu->pool->buffer_count();
    return out;
}

}  // namespace reef::rk3588
