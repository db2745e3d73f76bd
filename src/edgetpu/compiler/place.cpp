// Pass "place": addresses in narrow memory, by when tensors are in use.
#include <fmt/format.h>

#include <algorithm>

#include "edgetpu/compiler/plan.h"

namespace reef::edgetpu::lowering {
namespace {

/// In front: words that are filled with constants.
constexpr std::uint32_t first_narrow_byte = 128;
constexpr std::uint32_t narrow_alignment = 16;

/// What packages may ask of the host.
constexpr std::uint64_t most_host_bytes = 64 << 20;

std::uint64_t aligned(std::uint64_t bytes, std::uint32_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

/// Of all products of a step, from what is fastest to what takes least.
constexpr auto product_bytes = std::to_array<std::uint64_t>({1U << 17U, 1U << 15U, 1U << 14U});

struct ScratchOf {
    const Plan& plan;
    const Step& step;
    std::uint64_t most_product_bytes;

    [[nodiscard]] std::uint64_t operator()(const InputStep&) const {
        // The rows of a tile's part as they arrive; units of 8 bytes begin and end in between.
        const Tensor& t = plan.tensors[step.out];
        std::int32_t rows = 0;
        for (const Span& s : t.own_rows) rows = std::max(rows, s.size());
        return aligned(static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(t.width) *
                               static_cast<std::uint64_t>(t.channels) +
                           24,
                       4);
    }
    [[nodiscard]] std::uint64_t operator()(const ProductStep&) const {
        const Tensor& t = plan.tensors[step.out];
        const std::uint32_t words = plan.tensors[step.in[0]].words();
        std::int32_t rows = 0;
        for (const Span& s : t.own_rows) rows = std::max(rows, s.size());
        return product_row_bytes(t, words) * static_cast<std::uint32_t>(std::min(
                                                 rows, product_rows(t, words, most_product_bytes)));
    }
    [[nodiscard]] std::uint64_t operator()(const GlobalAverageStep&) const {
        const Tensor& t = plan.tensors[step.in[0]];
        if (t.layout != Layout::pixels) return 0;
        return whole() / t.words() * words_averaged_at_once(t);
    }
    [[nodiscard]] std::uint64_t operator()(const RearrangeStep&) const { return whole(); }
    [[nodiscard]] std::uint64_t operator()(const SoftmaxStep&) const {
        return softmax_room(plan.tensors[step.in[0]]).bytes();
    }
    [[nodiscard]] std::uint64_t operator()(const LstmStep& s) const { return lstm_bytes(s); }
    [[nodiscard]] std::uint64_t whole() const {
        const Tensor& t = plan.tensors[step.in[0]];
        return static_cast<std::uint64_t>(t.height) * static_cast<std::uint64_t>(t.width) *
               t.pixel_bytes();
    }
    [[nodiscard]] std::uint64_t operator()(const auto&) const { return 0; }
};

/// Bytes that are in use from one step to another.
struct Life {
    std::size_t first = 0, last = 0;
    std::uint64_t bytes = 0;
    std::uint32_t* base = nullptr;
    std::uint64_t at = 0;
    [[nodiscard]] bool meets(const Life& o) const { return first <= o.last && o.first <= last; }
};

/// Of those on the tiles, or those on the host.
std::vector<Life> lives_of_tensors(Plan& plan, bool on_host = false) {
    std::vector<Life> lives;
    std::vector<std::optional<std::size_t>> of(plan.tensors.size());
    const auto use = [&](TensorId used, std::size_t step) {
        const TensorId id = plan.tensors[used].band_of.value_or(used);
        Tensor& t = plan.tensors[id];
        if ((t.layout == Layout::host) != on_host) return;
        if (!of[id]) {
            of[id] = lives.size();
            lives.push_back({step, step, on_host ? t.host_bytes : t.bytes(), &t.base});
        }
        lives[*of[id]].last = std::max(lives[*of[id]].last, step);
    };
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        use(plan.steps[i].out, i);
        for (const TensorId in : plan.steps[i].in) use(in, i);
    }
    for (const Port& port : plan.outputs) use(port.tensor, plan.steps.size() + 1);
    return lives;
}

void add_scratch(Plan& plan, std::vector<Life>& lives, std::uint64_t most_product_bytes) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        Step& step = plan.steps[i];
        const std::uint64_t bytes =
            std::visit(ScratchOf{plan, step, most_product_bytes}, step.kind);
        if (bytes == 0) continue;
        step.scratch =
            Buffer{0, static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, 1U << 31U))};
        lives.push_back({i, i, bytes, &step.scratch->base});
    }
}

/// The lowest place beside all that are in use at the same time.
std::uint64_t lowest_place(const Life& life, const std::vector<const Life*>& placed,
                           std::uint64_t first) {
    const std::uint64_t size = aligned(life.bytes, narrow_alignment);
    std::uint64_t at = first;
    for (const Life* other : placed) {
        if (!other->meets(life)) continue;
        if (at + size <= other->at) break;
        at = std::max(at, other->at + aligned(other->bytes, narrow_alignment));
    }
    return at;
}

std::unexpected<Error> too_many(const Plan& plan, std::uint64_t bytes, const Step& step) {
    return fail(Cause::unsupported,
                fmt::format("activations need {} bytes of each tile, of which there are {}", bytes,
                            plan.most_narrow_bytes),
                place_of(plan, step));
}

Status place_all(Plan& plan, std::uint64_t most_product_bytes) {
    std::vector<Life> lives = lives_of_tensors(plan);
    add_scratch(plan, lives, most_product_bytes);
    std::ranges::stable_sort(lives, std::ranges::greater{}, &Life::bytes);
    std::vector<const Life*> placed;
    plan.narrow_bytes = 64;
    for (Life& life : lives) {
        life.at = lowest_place(life, placed, first_narrow_byte);
        placed.insert(std::ranges::upper_bound(placed, life.at, {}, &Life::at), &life);
        const std::uint64_t end = life.at + aligned(life.bytes, narrow_alignment);
        if (end <= plan.most_narrow_bytes) {
            *life.base = static_cast<std::uint32_t>(life.at);
            plan.narrow_bytes = std::max(plan.narrow_bytes, static_cast<std::uint32_t>(end));
            continue;
        }
        return too_many(plan, end, plan.steps[life.first]);
    }
    return {};
}

/// Two tensors share bytes of the host when one is fetched for the last time before the other
/// comes.
Status place_on_host(Plan& plan) {
    std::vector<Life> lives = lives_of_tensors(plan, true);
    std::ranges::stable_sort(lives, std::ranges::greater{}, &Life::bytes);
    std::vector<const Life*> placed;
    plan.host_bytes = 0;
    for (Life& life : lives) {
        life.at = lowest_place(life, placed, 0);
        placed.insert(std::ranges::upper_bound(placed, life.at, {}, &Life::at), &life);
        const std::uint64_t end = life.at + aligned(life.bytes, narrow_alignment);
        if (end > most_host_bytes)
            return fail(Cause::unsupported,
                        fmt::format("tensors that lie on the host in between need {} bytes there, "
                                    "of which there are {}",
                                    end, most_host_bytes),
                        place_of(plan, plan.steps[life.first]));
        *life.base = static_cast<std::uint32_t>(life.at);
        plan.host_bytes = std::max(plan.host_bytes, static_cast<std::uint32_t>(end));
    }
    return {};
}

}  // namespace

Pressure pressure_of(Plan plan, std::size_t begin, std::size_t end) {
    std::vector<Life> lives = lives_of_tensors(plan);
    add_scratch(plan, lives, product_bytes.back());
    Pressure most;
    for (std::size_t i = begin; i < end; ++i) {
        std::uint64_t bytes = first_narrow_byte;
        for (const Life& life : lives)
            if (life.first <= i && i <= life.last) bytes += aligned(life.bytes, narrow_alignment);
        if (bytes > most.bytes) most = {bytes, i};
    }
    return most;
}

Status check_whole_images(const Plan& plan) {
    for (const Step& step : plan.steps) {
        if (!needs_whole_image(step)) continue;
        const std::uint64_t bytes = first_narrow_byte +
                                    std::visit(ScratchOf{plan, step, 0}, step.kind) +
                                    plan.tensors[step.in[0]].bytes();
        if (bytes > plan.most_narrow_bytes) return too_many(plan, bytes, step);
    }
    return {};
}

Status place_tensors(Plan& plan) {
    Status done;
    for (const std::uint64_t bytes : product_bytes)
        if (done = place_all(plan, bytes); done) break;
    REEF_CHECK(done);
    for (Tensor& t : plan.tensors)
        if (t.band_of) t.base = plan.tensors[*t.band_of].base;
    return place_on_host(plan);
}

}  // namespace reef::edgetpu::lowering
