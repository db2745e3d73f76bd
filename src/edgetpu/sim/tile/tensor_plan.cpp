#include "tensor_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <vector>

#include "edgetpu/sim/program/memory.h"

namespace reef::edgetpu::sim {
namespace {

// Bounds of what a block keeps in scratch memory.
constexpr std::uint64_t most_reduction = 1U << 14U;
constexpr std::uint64_t most_positions = 1U << 16U;
/// A block is not interrupted.
constexpr std::uint64_t most_block_steps = 1U << 22U;
constexpr std::uint64_t most_steps = std::uint64_t{1} << 31U;

/// One dimension with its stride as a distance, without the way back through the inner ones.
struct Digit {
    std::uint64_t count = 1;
    std::int64_t stride = 0;
    bool reduction = false;  ///< of loops only
};

/// A nest as mixed-radix digits, lowest first.
struct Digits {
    std::vector<Digit> all;
    std::int64_t base = 0;
    std::uint64_t rotation_steps = 0;  ///< 0: does not rotate
    std::int32_t rotation = 0;

    [[nodiscard]] std::uint64_t visits() const {
        std::uint64_t n = 1;
        for (const auto& digit : all) n *= digit.count;
        return n;
    }
    /// Least and largest address.
    [[nodiscard]] std::pair<std::int64_t, std::int64_t> range() const {
        std::int64_t low = base + std::min(rotation, 0);
        std::int64_t high = base + std::max(rotation, 0);
        for (const auto& digit : all) {
            const auto way = static_cast<std::int64_t>(digit.count - 1) * digit.stride;
            (way < 0 ? low : high) += way;
        }
        return {low, high};
    }
    /// Makes two digits of one where `visits` ends inside it.
    [[nodiscard]] bool split(std::uint64_t visits) {
        std::uint64_t below = 1;
        for (std::size_t d = 0; d < all.size() && below < visits; ++d) {
            const std::uint64_t above = below * all[d].count;
            if (above > visits) {
                if (visits % below != 0 || above % visits != 0) return false;
                Digit outer = all[d];
                const std::uint64_t inner = visits / below;
                outer.count /= inner;
                outer.stride *= static_cast<std::int64_t>(inner);
                all[d].count = inner;
                all.insert(all.begin() + static_cast<std::ptrdiff_t>(d) + 1, outer);
                return true;
            }
            below = above;
        }
        return below == visits;
    }
    /// The digits between two numbers of visits at which it was split.
    [[nodiscard]] std::vector<Digit> between(std::uint64_t from, std::uint64_t to) const {
        std::vector<Digit> digits;
        std::uint64_t below = 1;
        for (const auto& digit : all) {
            if (below >= from && below < to) digits.push_back(digit);
            below *= digit.count;
        }
        return digits;
    }
};

bool crops(const Nest& nest) {
    return nest.crop_level != 0 && nest.crop_count != nest.count[0];
}

/// Nothing for nests that are no mixed radix or are too long.
std::optional<Digits> digits_of(const Nest& nest) {
    if (crops(nest)) return std::nullopt;
    Digits digits;
    digits.base = nest.base;
    std::int64_t way = 0;
    std::uint64_t visits = 1;
    for (unsigned d = 0; d < nest.dimensions; ++d) {
        const std::int64_t stride = way + nest.step[d];
        if (nest.count[d] == 1) continue;
        visits *= nest.count[d];
        if (visits > most_steps) return std::nullopt;
        digits.all.push_back({nest.count[d], stride, false});
        way += static_cast<std::int64_t>(nest.count[d] - 1) * stride;
        if (std::abs(way) > std::int64_t{1} << 30U) return std::nullopt;
    }
    if (nest.rotates()) {
        if (nest.rotate_level > nest.dimensions) return std::nullopt;
        digits.rotation_steps = nest.visits_below(nest.rotate_level);
        digits.rotation = nest.rotate_size;
    }
    return digits;
}

Nest nest_of(const std::vector<Digit>& digits, std::int64_t base) {
    Nest nest;
    nest.base = static_cast<std::int32_t>(base);
    nest.count.fill(1);
    nest.dimensions = std::max<unsigned>(1, static_cast<unsigned>(digits.size()));
    std::int64_t way = 0;
    for (std::size_t d = 0; d < digits.size(); ++d) {
        nest.step[d] = static_cast<std::int32_t>(digits[d].stride - way);
        nest.count[d] = static_cast<std::uint32_t>(digits[d].count);
        way += static_cast<std::int64_t>(digits[d].count - 1) * digits[d].stride;
    }
    return nest;
}

/// What remains of a nest when one visit stands for `steps`. Precondition: split there, and the
/// rotation is a multiple of it.
Nest outer_nest(const Digits& digits, std::uint64_t steps) {
    Nest nest = nest_of(digits.between(steps, ~std::uint64_t{0}), digits.base);
    if (digits.rotation_steps == 0) return nest;
    std::uint64_t below = steps;
    unsigned level = 0;
    for (; level < nest.dimensions && below < digits.rotation_steps; ++level)
        below *= nest.count[level];
    nest.rotate_size = digits.rotation;
    nest.rotate_level = level;
    return nest;
}

std::int64_t last_address(const std::vector<Digit>& digits) {
    std::int64_t at = 0;
    for (const auto& digit : digits)
        at += static_cast<std::int64_t>(digit.count - 1) * digit.stride;
    return at;
}

bool stands_still(const std::vector<Digit>& digits) {
    return std::ranges::all_of(digits, [](const Digit& digit) { return digit.stride == 0; });
}

bool multiple(std::uint64_t number, std::uint64_t of) {
    return number % of == 0;
}

/// Everything about an instruction that blocks are chosen from.
struct Walks {
    Digits in;
    Digits par;
    Digits acc;
    Digits loops;  ///< strides: numbers of positions
    bool acc_used = false;
    std::uint64_t steps_of_position = 1;
    std::uint64_t positions_of_group = 1;
    std::vector<std::uint64_t> waits;
    bool one_by_one = false;

    [[nodiscard]] std::optional<Walks> split(std::uint64_t reduction,
                                             std::uint64_t positions) const;
};

// The walks, split into blocks; nothing when such blocks do not exist.
std::optional<Walks> Walks::split(std::uint64_t reduction, std::uint64_t positions) const {
    const std::uint64_t steps = reduction * positions;
    if (reduction > most_reduction || positions > most_positions || steps > most_block_steps)
        return std::nullopt;
    if (one_by_one && positions != 1) return std::nullopt;
    if (!multiple(steps_of_position, reduction) || !multiple(positions_of_group, positions))
        return std::nullopt;
    for (const std::uint64_t wait : waits)
        if (!multiple(wait, steps)) return std::nullopt;
    for (const auto* digits : {&in, &par})
        if (digits->rotation_steps != 0 && !multiple(digits->rotation_steps, steps))
            return std::nullopt;
    Walks out = *this;
    for (auto* digits : {&out.in, &out.par, &out.acc, &out.loops}) {
        if (digits == &out.acc && !acc_used) continue;
        if (!digits->split(reduction) || !digits->split(steps)) return std::nullopt;
        if (digits->between(steps, ~std::uint64_t{0}).size() > Nest::most_dimensions)
            return std::nullopt;
    }
    if (acc_used && out.acc.rotation_steps != 0 && !multiple(out.acc.rotation_steps, steps))
        return std::nullopt;
    if (!stands_still(out.par.between(reduction, steps))) return std::nullopt;
    const auto of_sum = [](const Digit& digit) { return digit.reduction; };
    if (!std::ranges::all_of(out.loops.between(1, reduction), of_sum)) return std::nullopt;
    if (std::ranges::any_of(out.loops.between(reduction, steps), of_sum)) return std::nullopt;
    return out;
}

/// Numbers of steps at which some walk changes its direction, largest first.
std::vector<std::uint64_t> boundaries(const Walks& walks) {
    std::vector<std::uint64_t> all{1};
    for (const auto* digits : {&walks.in, &walks.par, &walks.acc, &walks.loops}) {
        std::uint64_t below = 1;
        for (const auto& digit : digits->all) all.push_back(below *= digit.count);
        if (digits->rotation_steps != 0) all.push_back(digits->rotation_steps);
    }
    all.insert(all.end(), walks.waits.begin(), walks.waits.end());
    std::ranges::sort(all, std::greater{});
    all.erase(std::ranges::unique(all).begin(), all.end());
    return all;
}

bool overlap(std::pair<std::int64_t, std::int64_t> a, std::pair<std::int64_t, std::int64_t> b) {
    return a.first <= b.second && b.first <= a.second;
}

/// Addresses in [0, size).
bool within(std::pair<std::int64_t, std::int64_t> range, std::size_t size) {
    return range.first >= 0 && range.second < static_cast<std::int64_t>(size);
}

// Loops whose addresses are numbers of positions.
std::optional<Digits> position_digits(const TensorOp& op, const TensorShape& shape) {
    auto loops = digits_of(op.loops);
    if (!loops || loops->visits() != shape.steps) return std::nullopt;
    if (op.reduction_steps != 0) {
        loops->all = {{op.reduction_steps, 0, true}, {shape.positions, 1, false}};
    } else {
        std::int64_t weight = 1;
        std::size_t at = 0;
        for (unsigned d = 0; d < op.loops.dimensions; ++d) {
            if (op.loops.count[d] == 1) continue;
            Digit& digit = loops->all[at++];
            digit.reduction = (op.reduction_mask >> d & 1U) != 0;
            digit.stride = digit.reduction ? 0 : weight;
            if (!digit.reduction) weight *= op.loops.count[d];
        }
    }
    std::erase_if(loops->all, [](const Digit& digit) { return digit.count == 1; });
    loops->base = 0;
    loops->rotation_steps = 0;
    loops->rotation = 0;
    return loops;
}

bool sums_fit(const TensorOp& op, const TensorShape& shape) {
    // The rest of 32 bits is the start value's and the bias'.
    constexpr std::uint64_t most_sum = 1U << 30U;
    const std::uint64_t weight = op.par_16bit ? 32768 : 255;
    const std::uint64_t elements = shape.steps / shape.positions * op.elements();
    return elements <= most_sum / (255 * weight) &&
           std::abs(std::int64_t{op.start_value}) <= 1 << 28;
}

bool operands_known(const TensorOp& op) {
    if (op.kind != TensorKind::mac || op.in_16bit) return false;
    if (op.in_zero < 0 || op.in_zero > 255) return false;
    if (op.par_16bit)
        return !op.single && !op.par_zero_rows && op.par_zero >= 0 && op.par_zero <= 65535;
    return op.par_zero_rows || (op.par_zero >= 0 && op.par_zero <= 255);
}

// Words that all results take.
std::uint64_t words_of(const TensorOp& op, const TensorShape& shape) {
    const unsigned width = op.out_16bit ? 2 : 1;
    return (shape.positions - shape.positions_of_group) * ((op.lanes * width + 3) / 4) +
           shape.positions_of_group * ((op.last_lanes * width + 3) / 4);
}

bool out_fits(const TensorOp& op, const TensorShape& shape,
              std::pair<std::int64_t, std::int64_t>& range) {
    Nest whole = op.out;
    if (crops(whole) && whole.crop_count > whole.count[0]) return false;
    whole.crop_level = 0;
    const auto digits = digits_of(whole);
    if (!digits || op.out.rotates()) return false;
    range = digits->range();
    if (!within(range, narrow_bytes)) return false;
    range.second += 3;
    return op.out.visits() >= words_of(op, shape);
}

// Reads and writes of the instruction that must not pass each other.
bool set_order(const TensorOp& op, const TensorShape& shape, Walks& walks) {
    std::pair<std::int64_t, std::int64_t> out;
    if (!out_fits(op, shape, out)) return false;
    auto in = walks.in.range();
    auto par = walks.par.range();
    auto acc = walks.acc.range();
    if (!within(in, narrow_bytes) || !within(par, 4 * wide_rows)) return false;
    in.second += 3;
    walks.one_by_one = overlap(in, out);
    if (walks.one_by_one && shape.live_positions != 1) return false;
    if (!walks.acc_used) return true;
    if (!within(acc, 4 * wide_rows)) return false;
    for (auto* range : {&par, &acc}) *range = {range->first / 4, range->second / 4};
    if (overlap(acc, par)) return false;
    return !op.par_zero_rows || !overlap(acc, {std::min(op.zero_row_first, op.zero_row_last),
                                               std::max(op.zero_row_first, op.zero_row_last)});
}

std::optional<Walks> walks_of(const TensorOp& op, const TensorShape& shape) {
    auto in = digits_of(op.in);
    auto par = digits_of(op.par);
    auto acc = digits_of(op.acc);
    auto loops = position_digits(op, shape);
    if (!in || !par || !acc || !loops) return std::nullopt;
    if (in->visits() < shape.steps || par->visits() < shape.steps) return std::nullopt;
    Walks walks{
        std::move(*in), std::move(*par), std::move(*acc), std::move(*loops), {}, {}, {}, {}, {}};
    walks.steps_of_position = shape.steps / shape.positions;
    walks.acc_used = !op.acc_internal;
    walks.positions_of_group = shape.positions_of_group;
    for (const auto& wait : op.waits.view())
        if (!wait.destination) walks.waits.push_back(op.loops.visits_below(wait.level));
    if (!set_order(op, shape, walks)) return std::nullopt;
    return walks;
}

// The largest blocks: first as much of a sum as parameters allow, then as many positions.
std::optional<std::pair<std::uint64_t, std::uint64_t>> largest_block(const Walks& walks) {
    const auto ends = boundaries(walks);
    for (const std::uint64_t reduction : ends) {
        if (!walks.split(reduction, 1)) continue;
        for (const std::uint64_t end : ends)
            if (multiple(end, reduction) && walks.split(reduction, end / reduction))
                return std::pair{reduction, end / reduction};
    }
    return std::nullopt;
}

void set_events(const TensorOp& op, TensorPlan& plan) {
    const auto passes = [](const Nest& nest, unsigned level) {
        return static_cast<std::uint32_t>(nest.visits_below(level));
    };
    for (std::size_t w = 0; w < op.waits.count; ++w)
        plan.wait_steps[w] = passes(op.loops, op.waits.all[w].level);
    plan.parameters_steps = passes(op.par, op.parameters.level);
    plan.partial_sums_steps = passes(op.loops, op.partial_sums.level);
    plan.release_steps = passes(op.par, op.par.rotate_level);
}

}  // namespace

TensorPlan plan_of(const TensorOp& op, const TensorShape& shape) {
    TensorPlan plan;
    if (!operands_known(op) || shape.steps == 0 || shape.steps > most_steps ||
        !sums_fit(op, shape) || std::isnan(op.clamp_min) || std::isnan(op.clamp_max))
        return plan;
    const auto walks = walks_of(op, shape);
    if (!walks) return plan;
    const auto block = largest_block(*walks);
    if (!block) return plan;
    const auto [reduction, positions] = *block;
    const std::uint64_t steps = reduction * positions;
    const auto split = walks->split(reduction, positions);
    plan.reduction = static_cast<std::uint32_t>(reduction);
    plan.positions = static_cast<std::uint32_t>(positions);
    plan.in_parts = reduction != shape.steps / shape.positions;
    plan.in_of_block = outer_nest(split->in, steps);
    plan.parameter_of_block = outer_nest(split->par, steps);
    plan.position_of_block = outer_nest(split->loops, steps);
    const auto outer = split->loops.between(steps, ~std::uint64_t{0});
    for (std::size_t d = 0; d < outer.size(); ++d)
        plan.reduction_mask |= std::uint32_t{outer[d].reduction} << d;
    plan.in_of_step = nest_of(split->in.between(1, reduction), 0);
    plan.parameter_of_step = nest_of(split->par.between(1, reduction), 0);
    plan.in_of_position = nest_of(split->in.between(reduction, steps), 0);
    if (!op.acc_internal) {
        plan.acc_of_block = outer_nest(split->acc, steps);
        plan.acc_of_position = nest_of(split->acc.between(reduction, steps), 0);
        plan.acc_of_last_step =
            static_cast<std::int32_t>(last_address(split->acc.between(1, reduction)));
    }
    set_events(op, plan);
    plan.step_bytes = op.elements();
    plan.step_pairs = (op.elements() + 1) / 2;
    plan.lanes =
        op.acc_internal ? std::bit_ceil(std::max({op.lanes, op.last_lanes, 4U})) : lane_count;
    plan.fast = plan.lanes <= lane_count;
    return plan;
}

}  // namespace reef::edgetpu::sim
