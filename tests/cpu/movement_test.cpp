// Operators that move elements: TRANSPOSE, slices, tiles, blocks, splits, shapes, the nearest
// neighbour, and any of them on tensors without elements.
#include <gmock/gmock.h>

#include <limits>
#include <numeric>

#include "cpu/one_operator.h"

namespace reef::test {
namespace {

using model::Op;
using model::per_tensor;
using testing::ElementsAre;
using testing::HasSubstr;

/// 0, 1, 2, ... in int32.
OneOperator counting(const Shape& shape) {
    std::size_t count = 1;
    for (const std::int32_t length : shape) count *= static_cast<std::size_t>(length);
    std::vector<std::int32_t> values(count);
    std::iota(values.begin(), values.end(), 0);
    OneOperator one;
    one.input(ElementType::int32, shape, values);
    return one;
}

TEST(Transpose, PermutesDimensions) {
    EXPECT_THAT(counting({2, 3})
                    .numbers({1, 0})
                    .output(ElementType::int32, {3, 2})
                    .run<std::int32_t>(Op::transpose),
                ElementsAre(0, 3, 1, 4, 2, 5));
    // out[c][a][b] = in[a][b][c]
    EXPECT_THAT(counting({2, 2, 2})
                    .numbers({-1, 0, 1})
                    .output(ElementType::int32, {2, 2, 2})
                    .run<std::int32_t>(Op::transpose),
                ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
    EXPECT_THAT(
        counting({2, 3}).numbers({1, 1}).output(ElementType::int32, {3, 3}).refused(Op::transpose),
        HasSubstr("holds 1 twice"));
}

TEST(Transpose, MovesBytesOfAnyWidth) {
    EXPECT_THAT(OneOperator()
                    .input<std::uint8_t>(ElementType::uint8, {1, 2, 3}, {1, 2, 3, 4, 5, 6},
                                         per_tensor(1, 0))
                    .numbers({2, 0, 1})
                    .output(ElementType::uint8, {3, 1, 2}, per_tensor(1, 0))
                    .run<std::uint8_t>(Op::transpose),
                ElementsAre(1, 4, 2, 5, 3, 6));
    EXPECT_THAT(OneOperator()
                    .input<std::int64_t>(ElementType::int64, {2, 2}, {1, 2, 3, 4})
                    .numbers({1, 0})
                    .output(ElementType::int64, {2, 2})
                    .run<std::int64_t>(Op::transpose),
                ElementsAre(1, 3, 2, 4));
}

struct Slicing {
    Shape begin, end, strides;
    model::StridedSliceOptions options = {};
    Shape out;
};
OneOperator sliced(const Slicing& s) {
    return counting({3, 4}).numbers(s.begin).numbers(s.end).numbers(s.strides).output(
        ElementType::int32, s.out);
}

TEST(StridedSlice, FollowsEndsStridesAndMasks) {
    const auto run = [](const Slicing& s) {
        return sliced(s).run<std::int32_t>(Op::strided_slice, s.options);
    };
    EXPECT_THAT(run({{1, 1}, {3, 4}, {1, 2}, {}, {2, 2}}), ElementsAre(5, 7, 9, 11));
    EXPECT_THAT(run({{-1, 3}, {-4, 0}, {-2, -2}, {}, {2, 2}}), ElementsAre(11, 9, 3, 1));
    // Ends beyond the edge move to it; masks take the edge.
    EXPECT_THAT(run({{2, 2}, {9, 1}, {1, 1}, {.end_mask = 2}, {1, 2}}), ElementsAre(10, 11));
    EXPECT_THAT(run({{0, -2}, {1, 9}, {1, 1}, {.begin_mask = 1}, {1, 2}}), ElementsAre(2, 3));
    // One row, without its dimension; what is not named is taken whole.
    EXPECT_THAT(run({{1}, {2}, {1}, {.shrink_axis_mask = 1}, {4}}), ElementsAre(4, 5, 6, 7));
    EXPECT_THAT(run({{0, 1}, {0, 2}, {1, 1}, {.ellipsis_mask = 1, .shrink_axis_mask = 2}, {3}}),
                ElementsAre(1, 5, 9));
    EXPECT_THAT(run({{0, 2}, {0, 3}, {1, 1}, {.new_axis_mask = 1}, {1, 1, 4}}),
                ElementsAre(8, 9, 10, 11));
    EXPECT_THAT(run({{2, 0}, {1, 4}, {1, 1}, {}, {0, 4}}), ElementsAre());
}

TEST(StridedSlice, RefusesWhatLiesOutside) {
    const auto refused = [](const Slicing& s) {
        return sliced(s).refused(Op::strided_slice, s.options);
    };
    EXPECT_THAT(refused({{3}, {4}, {1}, {.shrink_axis_mask = 1}, {4}}),
                HasSubstr("element 3 of a dimension of 3"));
    EXPECT_THAT(refused({{0}, {1}, {0}, {}, {1, 4}}), HasSubstr("a stride of 0"));
    EXPECT_THAT(refused({{0, 0, 0}, {1, 1, 1}, {1, 1, 1}, {}, {1, 1}}),
                HasSubstr("more than the 2 dimensions"));
    EXPECT_THAT(refused({{0}, {1}, {1}, {.offset = true}, {1, 4}}), HasSubstr("offset"));
}

TEST(SliceOperator, TakesAPart) {
    EXPECT_THAT(counting({3, 4})
                    .numbers({1, 2})
                    .numbers({-1, 1})
                    .output(ElementType::int32, {2, 1})
                    .run<std::int32_t>(Op::slice),
                ElementsAre(6, 10));
    EXPECT_THAT(counting({3, 4})
                    .numbers({1, 2})
                    .numbers({1, 3})
                    .output(ElementType::int32, {1, 3})
                    .refused(Op::slice),
                HasSubstr("3 elements from 2 on of a dimension of 4"));
}

TEST(Tile, RepeatsEveryDimension) {
    EXPECT_THAT(counting({2, 2})
                    .numbers({2, 2})
                    .output(ElementType::int32, {4, 4})
                    .run<std::int32_t>(Op::tile),
                ElementsAre(0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3));
}

TEST(Blocks, BecomeChannelsAndComeBack) {
    // Two channels, 2 x 4 pixels: blocks of 2 x 2 side by side.
    const std::vector<std::int32_t> packed{0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15};
    EXPECT_EQ(counting({1, 2, 4, 2})
                  .output(ElementType::int32, {1, 1, 2, 8})
                  .run<std::int32_t>(Op::space_to_depth, model::SpaceToDepthOptions{2}),
              packed);
    std::vector<std::int32_t> original(16);
    std::iota(original.begin(), original.end(), 0);
    EXPECT_EQ(OneOperator()
                  .input(ElementType::int32, {1, 1, 2, 8}, packed)
                  .output(ElementType::int32, {1, 2, 4, 2})
                  .run<std::int32_t>(Op::depth_to_space, model::DepthToSpaceOptions{2}),
              original);
    EXPECT_THAT(counting({1, 3, 4, 1})
                    .output(ElementType::int32, {1, 1, 2, 4})
                    .refused(Op::space_to_depth, model::SpaceToDepthOptions{2}),
                HasSubstr("does not split into blocks of 2"));
}

TEST(ResizeNearestNeighbor, CopiesThePixelUnderEachCentre) {
    const auto resized = [](std::int32_t width, model::ResizeNearestNeighborOptions options) {
        return OneOperator()
            .input<std::uint8_t>(ElementType::uint8, {1, 1, 3, 1}, {7, 8, 9}, per_tensor(1, 0))
            .numbers({1, width})
            .output(ElementType::uint8, {1, 1, width, 1}, per_tensor(1, 0))
            .run<std::uint8_t>(Op::resize_nearest_neighbor, options);
    };
    EXPECT_THAT(resized(6, {}), ElementsAre(7, 7, 8, 8, 9, 9));
    EXPECT_THAT(resized(2, {}), ElementsAre(7, 8));
    EXPECT_THAT(resized(2, {.half_pixel_centers = true}), ElementsAre(7, 9));
    // 2 / 3 of a pixel a step, halves up: 0, 0.67, 1.33, 2
    EXPECT_THAT(resized(4, {.align_corners = true}), ElementsAre(7, 8, 8, 9));
}

TEST(SplitV, TakesTheGivenLengths) {
    const auto outputs = counting({2, 4})
                             .numbers({1, -1})
                             .constant<std::int32_t>(ElementType::int32, {}, {-1})
                             .output(ElementType::int32, {2, 1})
                             .output(ElementType::int32, {2, 3})
                             .run_all(Op::split_v, model::SplitVOptions{2});
    ASSERT_EQ(outputs.size(), 2U);
    EXPECT_THAT(values_of<std::int32_t>(outputs[0]), ElementsAre(0, 4));
    EXPECT_THAT(values_of<std::int32_t>(outputs[1]), ElementsAre(1, 2, 3, 5, 6, 7));
    EXPECT_THAT(counting({2, 4})
                    .numbers({1, 2})
                    .constant<std::int32_t>(ElementType::int32, {}, {1})
                    .output(ElementType::int32, {2, 1})
                    .output(ElementType::int32, {2, 2})
                    .refused(Op::split_v, model::SplitVOptions{2}),
                HasSubstr("leave 1 of 4"));
}

TEST(Shapes, AreGivenAndExtended) {
    EXPECT_THAT(counting({3, 2})
                    .output(ElementType::int64, {2})
                    .run<std::int64_t>(Op::shape, model::ShapeOptions{ElementType::int64}),
                ElementsAre(3, 2));
    EXPECT_THAT(counting({2})
                    .numbers({-1})
                    .output(ElementType::int32, {2, 1})
                    .run<std::int32_t>(Op::expand_dims),
                ElementsAre(0, 1));
}

TEST(Shapes, ComputedAtRunTimeMustBeTheDeclaredOne) {
    const auto reshape = [](const std::vector<std::int32_t>& wanted) {
        return counting({2, 3})
            .input(ElementType::int32, {2}, wanted)
            .output(ElementType::int32, {3, 2})
            .model(Op::reshape);
    };
    const auto run = [&](const std::vector<std::int32_t>& wanted) {
        auto executor = on_cpu(reshape(wanted));
        if (!executor) return executor.error().message();
        std::ranges::copy(bytes_of(wanted), executor->input(1).begin());
        const Status ran = executor->run();
        return ran ? std::string() : ran.error().message();
    };
    EXPECT_EQ(run({3, -1}), "");
    EXPECT_THAT(run({2, 3}), HasSubstr("whose dimension 0 is 2, declared as 3"));
}

// Where one length is 0 the others take no memory: a small file names any of them, and neither
// preparing nor running may take time or memory for each of their positions.
constexpr std::int32_t longest = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t many = 1 << 28;
const std::vector<float> nothing;

OneOperator of_floats(const Shape& shape) {
    OneOperator one;
    one.input(ElementType::float32, shape, nothing);
    return one;
}

TEST(EmptyTensors, AreMirrored) {
    for (const auto mode : {model::Mirror::reflect, model::Mirror::symmetric}) {
        const model::MirrorPadOptions options{mode};
        EXPECT_EQ(of_floats({longest, 0})
                      .constant<std::int32_t>(ElementType::int32, {2, 2}, {0, 0, 0, 0})
                      .output(ElementType::float32, {longest, 0})
                      .run<float>(Op::mirror_pad, options),
                  nothing);
        EXPECT_EQ(of_floats({many, 64, 0, 2})
                      .constant<std::int32_t>(ElementType::int32, {4, 2}, {1, 1, 2, 2, 0, 0, 1, 1})
                      .output(ElementType::float32, {many + 2, 68, 0, 4})
                      .run<float>(Op::mirror_pad, options),
                  nothing);
        EXPECT_THAT(of_floats({longest, 0})
                        .constant<std::int32_t>(ElementType::int32, {2, 2}, {1, 0, 0, 0})
                        .output(ElementType::float32, {longest, 0})
                        .refused(Op::mirror_pad, options),
                    HasSubstr("beyond 32 bits"));
        EXPECT_THAT(of_floats({1, 0})
                        .constant<std::int32_t>(ElementType::int32, {2, 2}, {0, 0, 0, 1})
                        .output(ElementType::float32, {1, 1})
                        .refused(Op::mirror_pad, options),
                    HasSubstr("paddings 0 and 1 of a dimension of 0"));
    }
}

TEST(EmptyTensors, BecomeBlocks) {
    EXPECT_EQ(of_floats({1, 1, 1, 0})
                  .numbers({1, 1})
                  .constant<std::int32_t>(ElementType::int32, {2, 2}, {0, many - 1, 0, 511})
                  .output(ElementType::float32, {1, many, 512, 0})
                  .run<float>(Op::space_to_batch_nd),
              nothing);
    EXPECT_EQ(of_floats({many, 256, 0, 3})
                  .numbers({1, 1})
                  .constant<std::int32_t>(ElementType::int32, {2, 2}, {0, 0, 0, 0})
                  .output(ElementType::float32, {many, 256, 0, 3})
                  .run<float>(Op::batch_to_space_nd),
              nothing);
}

TEST(EmptyTensors, AreGathered) {
    const model::GatherOptions along_1{.axis = 1};
    EXPECT_EQ(of_floats({many, 5, 0})
                  .numbers(std::vector<std::int32_t>(512, 4))
                  .output(ElementType::float32, {many, 512, 0})
                  .run<float>(Op::gather, along_1),
              nothing);
    EXPECT_EQ(of_floats({many, 256, 0, 3})
                  .input<std::int32_t>(ElementType::int32, {0}, {})
                  .output(ElementType::float32, {many, 256, 0, 3})
                  .run<float>(Op::gather, model::GatherOptions{.axis = 2}),
              nothing);
    EXPECT_EQ(of_floats({0})
                  .input<std::int32_t>(ElementType::int32, {many, 512, 0}, {})
                  .output(ElementType::float32, {many, 512, 0})
                  .run<float>(Op::gather_nd),
              nothing);
}

TEST(EmptyTensors, HaveNoPlaceForAnIndexOutside) {
    for (const Op op : {Op::gather, Op::gather_nd}) {
        const Shape indices = op == Op::gather ? Shape{1} : Shape{1, 1};
        auto executor = on_cpu(of_floats({2, 0})
                                   .constant<std::int32_t>(ElementType::int32, indices, {2})
                                   .output(ElementType::float32, {1, 0})
                                   .model(op));
        ASSERT_TRUE(executor) << executor.error().message();
        const Status ran = executor->run();
        ASSERT_FALSE(ran);
        EXPECT_THAT(ran.error().message(), HasSubstr("is outside a dimension of 2"));
    }
}

}  // namespace
}  // namespace reef::test
