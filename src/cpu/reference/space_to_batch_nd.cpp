// SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: pixels at the same place of every block become an image
// of the batch, and back.
#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <vector>

#include "base/worker_pool.h"
#include "cpu/prepare/kernels.h"
#include "cpu/prepare/quantized.h"

namespace reef::cpu {
namespace {

/// Images of pixels: rows and columns of one run of bytes each.
struct Images {
    std::size_t count = 0, height = 0, width = 0;
};

/// Along rows and columns; a block of 1 without a border where there are no columns.
struct Blocks {
    std::size_t height = 1, width = 1;
    std::size_t top = 0, left = 0;  ///< padding that is added, or cropped
};

struct BatchPlan {
    Images in, out;
    Blocks blocks;
    std::size_t pixel_bytes = 0;
    std::byte fill{0};
};

/// What each pixel of the output is: one of the input, or a border.
class PixelMoves final : public Kernel {
  public:
    PixelMoves(const char* name, const BatchPlan& plan, bool to_batch)
        : name_(name), plan_(plan), to_batch_(to_batch) {}
    [[nodiscard]] std::string name() const override { return std::string(name_) + " reference"; }

    [[nodiscard]] Status run(const Frame& frame) override {
        const std::size_t bytes = plan_.pixel_bytes;
        // The other lengths of an empty tensor may be any.
        if (bytes == 0 || plan_.out.width == 0) return {};
        frame.pool.parallel_for(
            plan_.out.count * plan_.out.height, 16384 / (bytes * plan_.out.width + 1) + 1,
            [&](std::size_t begin, std::size_t end, std::size_t /*worker*/) {
                std::byte* out = frame.outputs[0] + begin * plan_.out.width * bytes;
                for (std::size_t row = begin; row < end; ++row)
                    for (std::size_t x = 0; x < plan_.out.width; ++x, out += bytes) {
                        const std::size_t from =
                            source(row / plan_.out.height, row % plan_.out.height, x);
                        if (from == border)
                            std::memset(out, std::to_integer<int>(plan_.fill), bytes);
                        else
                            std::memcpy(out, frame.inputs[0] + from * bytes, bytes);
                    }
            });
        return {};
    }

  private:
    static constexpr std::size_t border = ~std::size_t{0};

    [[nodiscard]] std::size_t source(std::size_t image, std::size_t y, std::size_t x) const {
        const Blocks& b = plan_.blocks;
        if (!to_batch_) {
            const std::size_t row = y + b.top, column = x + b.left;
            const std::size_t place = row % b.height * b.width + column % b.width;
            return at(place * plan_.out.count + image, row / b.height, column / b.width);
        }
        const std::size_t place = image / plan_.in.count;
        const std::size_t row = y * b.height + place / b.width;
        const std::size_t column = x * b.width + place % b.width;
        const bool inside = row >= b.top && row < b.top + plan_.in.height && column >= b.left &&
                            column < b.left + plan_.in.width;
        return inside ? at(image % plan_.in.count, row - b.top, column - b.left) : border;
    }
    [[nodiscard]] std::size_t at(std::size_t image, std::size_t y, std::size_t x) const {
        return (image * plan_.in.height + y) * plan_.in.width + x;
    }

    const char* name_;
    BatchPlan plan_;
    bool to_batch_;
};

/// Of three dimensions the second are rows, and there is one column.
Images images_of(const std::vector<std::int32_t>& shape) {
    return {static_cast<std::size_t>(shape[0]), static_cast<std::size_t>(shape[1]),
            shape.size() == 4 ? static_cast<std::size_t>(shape[2]) : 1};
}

struct BlockNumbers {
    std::vector<std::int64_t> blocks, borders;
};

Result<BlockNumbers> block_numbers(const OperatorView& op, const char* borders) {
    const std::size_t rank = op.input(0).shape.size();
    if (rank != 3 && rank != 4)
        return fail(Cause::unsupported, fmt::format("an input of {} dimensions", rank));
    BlockNumbers numbers{REEF_TRY(constant_integers(op, 1, "the block")),
                         REEF_TRY(constant_integers(op, 2, borders))};
    const std::size_t sides = rank - 2;
    if (numbers.blocks.size() != sides || numbers.borders.size() != 2 * sides)
        return fail(Cause::bad_input,
                    fmt::format("{} sides of a block and {} {} for {} dimensions",
                                numbers.blocks.size(), numbers.borders.size(), borders, rank));
    constexpr std::int64_t most = std::int64_t{1} << 30;
    for (const std::int64_t side : numbers.blocks)
        if (side < 1 || side > most)
            return fail(Cause::bad_input, fmt::format("a block with a side of {}", side));
    for (const std::int64_t border : numbers.borders)
        if (border < 0 || border > most)
            return fail(Cause::bad_input, fmt::format("{}: {}", borders, border));
    return numbers;
}

/// The image's shape, with or without the border, divided into blocks or made of them.
Result<std::vector<std::int32_t>> moved_shape(const std::vector<std::int32_t>& in,
                                              const BlockNumbers& numbers, bool to_batch) {
    std::vector<std::int32_t> out = in;
    std::int64_t batch = in[0];
    for (std::size_t i = 0; i < numbers.blocks.size(); ++i) {
        const std::int64_t block = numbers.blocks[i];
        const std::int64_t border = numbers.borders[2 * i] + numbers.borders[2 * i + 1];
        const std::int64_t length = to_batch ? in[i + 1] + border : in[i + 1] * block - border;
        const bool whole = to_batch ? length % block == 0 : batch % block == 0;
        if (length < 0 || !whole)
            return fail(Cause::bad_input, fmt::format("blocks of {} in an input of {}", block,
                                                      model::shape_text(in)));
        batch = to_batch ? batch * block : batch / block;
        const std::int64_t moved = to_batch ? length / block : length;
        constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
        if (batch > most || moved > most)
            return fail(Cause::bad_input, "the output's shape is beyond 32 bits");
        out[i + 1] = static_cast<std::int32_t>(moved);
    }
    out[0] = static_cast<std::int32_t>(batch);
    return out;
}

Result<BatchPlan> check_blocks(const OperatorView& op, bool to_batch) {
    REEF_CHECK(op.expect_counts(3, 3, 1));
    const model::Tensor& input = op.input(0);
    REEF_CHECK(expect_type(op.output(0), "output 0", {input.type}));
    const auto element = size_of(input.type);
    if (!element)
        return fail(Cause::unsupported, fmt::format("elements of type {}", name_of(input.type)));
    const auto numbers = REEF_TRY(block_numbers(op, to_batch ? "the paddings" : "the crops"));
    const auto shape = REEF_TRY(moved_shape(input.shape, numbers, to_batch));
    REEF_CHECK(expect_shape(op.output(0), "output 0", shape));
    BatchPlan plan;
    plan.in = images_of(input.shape);
    plan.out = images_of(shape);
    plan.pixel_bytes = *element * static_cast<std::size_t>(input.shape.back());
    plan.blocks.height = static_cast<std::size_t>(numbers.blocks[0]);
    plan.blocks.top = static_cast<std::size_t>(numbers.borders[0]);
    if (input.shape.size() == 4) {
        plan.blocks.width = static_cast<std::size_t>(numbers.blocks[1]);
        plan.blocks.left = static_cast<std::size_t>(numbers.borders[2]);
    }
    return plan;
}

}  // namespace

PreparedKernel prepare_space_to_batch_nd(const OperatorView& op,
                                         const PrepareOptions& /*options*/) {
    BatchPlan plan = REEF_TRY(check_blocks(op, true));
    REEF_CHECK(expect_type(op.input(0), "input 0",
                           {ElementType::uint8, ElementType::int8, ElementType::int16,
                            ElementType::int32, ElementType::int64, ElementType::float32}));
    plan.fill = REEF_TRY(padding_byte(op));
    return std::make_unique<PixelMoves>("space_to_batch_nd", plan, true);
}

PreparedKernel prepare_batch_to_space_nd(const OperatorView& op,
                                         const PrepareOptions& /*options*/) {
    return std::make_unique<PixelMoves>("batch_to_space_nd", REEF_TRY(check_blocks(op, false)),
                                        false);
}

}  // namespace reef::cpu
