#include "tensor_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "edgetpu/sim/program/memory.h"
#include "reduction_engine.h"

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

using Range = std::pair<std::int64_t, std::int64_t>;

bool overlap(Range a, Range b) {
    return a.first <= b.second && b.first <= a.second;
}

/// Addresses in [0, size).
bool within(Range range, std::size_t size) {
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

// Nothing where 32 bits leave a bias no room beside sum and start value.
std::optional<std::int32_t> most_bias(const TensorOp& op, const TensorShape& shape) {
    constexpr std::uint64_t most_sum = 1U << 30U;
    const std::uint64_t product = 255U * (op.par_16bit ? 32768U : 255U);
    const std::uint64_t elements = shape.steps / shape.positions * op.elements();
    const auto start = std::abs(std::int64_t{op.start_value});
    if (elements > most_sum / product || start > 1 << 28) return std::nullopt;
    return static_cast<std::int32_t>(std::numeric_limits<std::int32_t>::max() - start -
                                     static_cast<std::int64_t>(elements * product));
}

/// Four taps of a bilinear blend, one position after the other.
bool blends(const TensorOp& op, const TensorShape& shape) {
    constexpr std::uint32_t taps = 0b11;
    const auto by_two = [](const Nest& nest) {
        return !crops(nest) && nest.dimensions > 2 && nest.count[0] == 2 && nest.count[1] == 2;
    };
    const auto inside_a_position = [](const Wait& wait) {
        return !wait.destination && wait.level < 2;
    };
    return op.kind == TensorKind::resize && !op.resize.x.nearest && !op.resize.y.nearest &&
           (op.reduction_steps == 0 ? op.reduction_mask == taps : op.reduction_steps == 4) &&
           shape.live_positions == 1 && op.loops.visits() == shape.steps && by_two(op.loops) &&
           by_two(op.in) && op.in.visits() >= shape.steps && op.acc_internal && !op.bias &&
           !op.lane_scale && !op.table && !op.out_16bit && op.lanes <= 4 &&
           op.lanes == op.last_lanes && !op.par.rotates() && !op.parameters.enabled &&
           !op.partial_sums.enabled && std::ranges::none_of(op.waits.view(), inside_a_position);
}

/// Largest values or sums of parameters, each finished before the next begins; sums fit 32 bits.
bool reduces(const TensorOp& op, const TensorShape& shape) {
    constexpr std::uint64_t most_elements = 1U << 14U;
    constexpr std::int32_t most_zero = 1 << 16;
    if (op.kind != TensorKind::max && op.kind != TensorKind::sum) return false;
    if (shape.live_positions != 1 || shape.positions == 0 || shape.steps % shape.positions != 0)
        return false;
    const std::uint64_t elements = shape.steps / shape.positions * op.elements();
    const bool as_long = op.loops.visits() == shape.steps && op.par.visits() >= shape.steps;
    const bool evenly = op.reduction_steps != 0 || !crops(op.loops) || shape.positions == 1;
    // visits_below() says how long a pass is that is not cropped, and a crop may be longer.
    const bool known_groups =
        !op.par.rotates() ||
        (op.par.visits_below(op.par.rotate_level) <= ReductionEngine::most_rows_of_group &&
         (op.par.crop_level == 0 || op.par.crop_count <= op.par.count[op.par.crop_dimension]));
    const auto small = [](std::int32_t zero) { return zero >= -most_zero && zero <= most_zero; };
    return as_long && evenly && elements <= most_elements && small(op.par_zero) &&
           small(op.in_zero) && op.acc_internal && op.lanes == op.last_lanes && !op.par_zero_rows &&
           !op.bias && !op.lane_scale && known_groups;
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

/// Of a nest whose lowest dimension may be cropped.
Range range_of(const Nest& nest) {
    std::array<std::int64_t, Nest::most_dimensions> stride{};
    std::int64_t way = 0;
    for (unsigned d = 0; d < nest.dimensions; ++d) {
        stride[d] = way + nest.step[d];
        way += (std::int64_t{nest.count[d]} - 1) * stride[d];
    }
    const auto range = [&](const auto& counts, std::int64_t base) {
        Range all{base, base};
        for (unsigned d = 0; d < nest.dimensions; ++d) {
            const std::int64_t end = (std::int64_t{counts[d]} - 1) * stride[d];
            (end < 0 ? all.first : all.second) += end;
        }
        return all;
    };
    auto count = nest.count;
    if (!crops(nest) || nest.crop_dimension != 0) return range(count, nest.base);
    count[0] = nest.crop_count;
    const unsigned level = nest.crop_level;
    if (level >= nest.dimensions) return range(count, nest.base);
    count[level] = 1;
    const Range cropped =
        range(count, nest.base + (std::int64_t{nest.count[level]} - 1) * stride[level]);
    if (nest.count[level] == 1) return cropped;
    count[0] = nest.count[0];
    count[level] = nest.count[level] - 1;
    const Range whole = range(count, nest.base);
    return {std::min(cropped.first, whole.first), std::max(cropped.second, whole.second)};
}

bool out_fits(const TensorOp& op, const TensorShape& shape, Range& range) {
    Nest whole = op.out;
    if (crops(whole) && whole.crop_count > whole.count[0]) return false;
    whole.crop_level = 0;
    if (!digits_of(whole) || op.out.rotates()) return false;
    range = range_of(op.out);
    if (!within(range, narrow_bytes)) return false;
    range.second += 3;
    return op.out.visits() >= words_of(op, shape);
}

// Digits that go on evenly become one.
std::vector<Digit> merged(const std::vector<Digit>& digits) {
    std::vector<Digit> out;
    for (const auto& digit : digits) {
        if (!out.empty() &&
            digit.stride == out.back().stride * static_cast<std::int64_t>(out.back().count))
            out.back().count *= digit.count;
        else
            out.push_back(digit);
    }
    return out;
}

/// Whether each digit's stride leaves room for a word at every place of those before it.
bool goes_up(const std::vector<Digit>& digits) {
    std::int64_t least = narrow_word_bytes;
    for (const auto& digit : digits) {
        if (digit.stride < least) return false;
        least = digit.stride * static_cast<std::int64_t>(digit.count);
    }
    return true;
}

/// Whether nothing is overwritten that is read later, as many positions as are read at once, in an
/// instruction whose inputs and results overlap: each position's word goes where its input is, and
/// all are apart; or as far before it as those of all others, and each lies behind the one before.
/// `out` is where words begin.
bool in_place(const TensorOp& op, const TensorShape& shape, const Walks& walks, Range out) {
    constexpr std::uint64_t most_inputs = 64;
    const unsigned width = op.out_16bit ? 2 : 1;
    Digits in = walks.in;
    const auto to = digits_of(op.out);
    if (walks.steps_of_position > most_inputs || shape.live_positions != 1 || !to ||
        in.rotation_steps != 0 || !in.split(walks.steps_of_position) ||
        std::max(op.lanes, op.last_lanes) * width > narrow_word_bytes)
        return false;
    const auto positions = merged(in.between(walks.steps_of_position, ~std::uint64_t{0}));
    const auto words = merged(to->all);
    if (positions.size() != words.size()) return false;
    for (std::size_t d = 0; d < words.size(); ++d) {
        if (positions[d].stride != words[d].stride) return false;
        if (d + 1 < words.size() && positions[d].count != words[d].count) return false;
    }
    auto sorted = positions;
    std::ranges::sort(sorted, {}, &Digit::stride);
    const bool apart = goes_up(sorted);
    const bool in_order = goes_up(positions);
    const Nest inputs = nest_of(in.between(1, walks.steps_of_position), in.base);
    for (NestCursor at(inputs); !at.done(); at.advance()) {
        const std::int64_t first = at.address();
        Range read = Digits{positions, first}.range();
        read.second += op.elements() - 1;
        if (!overlap(read, {out.first, out.second + 3})) continue;
        const std::int64_t before = first - to->base;
        const bool same_word =
            before + static_cast<std::int64_t>(op.elements()) <= std::int64_t{narrow_word_bytes};
        if (before < 0 || !(same_word ? apart : in_order)) return false;
    }
    return true;
}

// Reads and writes of the instruction that must not pass each other.
bool set_order(const TensorOp& op, const TensorShape& shape, Walks& walks) {
    Range out;
    if (!out_fits(op, shape, out)) return false;
    auto in = walks.in.range();
    auto par = walks.par.range();
    auto acc = walks.acc.range();
    if (!within(in, narrow_bytes) || !within(par, 4 * wide_rows)) return false;
    in.second += 3;
    out.second -= 3;
    walks.one_by_one = overlap(in, {out.first, out.second + 3}) && !in_place(op, shape, walks, out);
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

void set_words(const TensorOp& op, TensorPlan& plan) {
    plan.out_of_word = op.out;
    const auto digits = digits_of(op.out);
    if (!digits) return;
    plan.out_of_word = nest_of(merged(digits->all), digits->base);
    plan.avdata_words = static_cast<std::uint32_t>(
        op.out.visits_below(std::min<unsigned>(op.avdata.level, op.out.dimensions)));
}

// Where a position's steps find their operands, relative to its first step.
void set_steps(const std::vector<Digit>& in, const std::vector<Digit>& par, TensorPlan& plan) {
    const Nest in_of_step = nest_of(in, 0);
    const Nest parameter_of_step = nest_of(par, 0);
    const auto bytes = static_cast<std::int32_t>(plan.step_bytes);
    for (NestCursor at(in_of_step); !at.done(); at.advance()) {
        const std::int32_t offset = at.address();
        if (!plan.runs.empty() &&
            offset ==
                plan.runs.back().offset + bytes * static_cast<std::int32_t>(plan.runs.back().steps))
            ++plan.runs.back().steps;
        else
            plan.runs.push_back({offset, 1});
    }
    plan.runs_of_quads = plan.runs;
    for (InputRun& run : plan.runs_of_quads) run.steps = (run.steps * plan.step_bytes + 3) / 4;
    plan.parameters.reserve(plan.reduction);
    for (NestCursor at(parameter_of_step); !at.done(); at.advance())
        plan.parameters.push_back(static_cast<std::uint32_t>(at.address()));
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
    plan.blends = blends(op, shape);
    plan.reduces = reduces(op, shape);
    if (!operands_known(op) || shape.steps == 0 || shape.steps > most_steps ||
        !most_bias(op, shape) || std::isnan(op.clamp_min) || std::isnan(op.clamp_max))
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
    plan.in_of_position = nest_of(merged(split->in.between(reduction, steps)), 0);
    if (!op.acc_internal) {
        plan.acc_of_block = outer_nest(split->acc, steps);
        plan.acc_of_position = nest_of(split->acc.between(reduction, steps), 0);
        plan.acc_of_last_step =
            static_cast<std::int32_t>(last_address(split->acc.between(1, reduction)));
    }
    set_events(op, plan);
    set_words(op, plan);
    plan.most_bias = *most_bias(op, shape);
    plan.step_bytes = op.elements();
    set_steps(split->in.between(1, reduction), split->par.between(1, reduction), plan);
    plan.step_pairs = (op.elements() + 1) / 2;
    plan.lanes =
        op.acc_internal ? std::bit_ceil(std::max({op.lanes, op.last_lanes, 4U})) : lane_count;
    plan.fast = plan.lanes <= lane_count;
    return plan;
}

}  // namespace reef::edgetpu::sim
