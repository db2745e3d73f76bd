// Each pass of the compiler alone, on graphs of a few operators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "compiler/legalise.h"
#include "edgetpu/compiler/embed.h"
#include "edgetpu/compiler/target.h"
#include "reef/edgetpu/program_check.h"
#include "reef/model/builder.h"
#include "reef_spec/edgetpu_machine.h"

namespace reef::edgetpu::lowering {
namespace {

using model::Op;
using model::TensorIndex;
using testing::ElementsAre;

/// A network while it is made, of uint8 tensors with one quantisation.
class Network {
  public:
    TensorIndex in(std::vector<std::int32_t> shape) {
        return builder_.input(name(), ElementType::uint8, std::move(shape), numbers_);
    }
    TensorIndex tensor(std::vector<std::int32_t> shape) {
        return builder_.tensor(name(), ElementType::uint8, std::move(shape), numbers_);
    }
    TensorIndex ints(const std::vector<std::int32_t>& values) {
        return builder_.constant<std::int32_t>(name(), ElementType::int32,
                                               {static_cast<std::int32_t>(values.size())}, values);
    }
    TensorIndex weights(std::vector<std::int32_t> shape) {
        std::size_t size = 1;
        for (const auto n : shape) size *= static_cast<std::size_t>(n);
        const std::vector<std::uint8_t> data(size, 130);
        return builder_.constant<std::uint8_t>(name(), ElementType::uint8, std::move(shape), data,
                                               model::per_tensor(0.01F, 128));
    }
    /// Of side x side taps, padding SAME.
    TensorIndex conv(TensorIndex from, std::vector<std::int32_t> shape, std::int32_t in_channels,
                     std::int32_t side, std::int32_t stride = 1) {
        const std::int32_t channels = shape.back();
        const auto to = tensor(std::move(shape));
        builder_.add(Op::conv_2d, {from, weights({channels, side, side, in_channels})}, {to},
                     model::Conv2dOptions{
                         model::Padding::same, stride, stride, 1, 1, model::Activation::none, {}});
        return to;
    }
    TensorIndex depthwise(TensorIndex from, const std::vector<std::int32_t>& shape) {
        const auto to = tensor(shape);
        builder_.add(Op::depthwise_conv_2d, {from, weights({1, 3, 3, shape.back()})}, {to},
                     model::DepthwiseConv2dOptions{model::Padding::same, 1, 1, 1, 1, 1,
                                                   model::Activation::none});
        return to;
    }
    TensorIndex make(Op op, const std::vector<TensorIndex>& from, std::vector<std::int32_t> shape,
                     model::Options options = {}) {
        const auto to = tensor(std::move(shape));
        builder_.add(op, from, {to}, std::move(options));
        return to;
    }
    void out(TensorIndex tensor) { builder_.output(tensor); }
    model::Model finish() { return builder_.finish().value(); }

  private:
    std::string name() { return "t" + std::to_string(names_++); }
    model::Builder builder_{"small"};
    model::Quantization numbers_ = model::per_tensor(0.05F, 100);
    int names_ = 0;
};

/// The plan holds on to the graph, which holds on to the model.
struct Small {
    explicit Small(const std::function<void(Network&)>& make) {
        Network network;
        make(network);
        model = network.finish();
        graph = compiler::read_graph(model);
        compiler::legalise(graph, {}, most_taps);
        const auto parts = compiler::partition(graph, Target{}, 1);
        EXPECT_EQ(parts.programs.size(), 1U);
        plan = tile(graph, parts.programs.front());
    }
    model::Model model;
    compiler::Graph graph;
    Plan plan;
};

template <typename Kind>
std::vector<const Step*> steps_of(const Plan& plan) {
    std::vector<const Step*> found;
    for (const Step& step : plan.steps)
        if (std::holds_alternative<Kind>(step.kind)) found.push_back(&step);
    return found;
}
template <typename Kind>
std::size_t count_of(const Plan& plan) {
    return steps_of<Kind>(plan).size();
}

TEST(PassTile, CutsImagesIntoAGridAndOperatorsIntoSteps) {
    const Small one([](Network& n) {
        const auto to = n.make(
            Op::transpose_conv,
            {n.ints({1, 14, 14, 4}), n.weights({4, 3, 3, 8}), n.in({1, 7, 7, 8})}, {1, 14, 14, 4},
            model::TransposeConvOptions{model::Padding::same, 2, 2, model::Activation::none, {}});
        n.out(n.make(Op::maximum, {to, to}, {1, 14, 14, 4}));
    });
    const Tensor& in = one.plan.tensors[one.plan.inputs.front().tensor];
    EXPECT_THAT(in.own_rows, ElementsAre(Span{0, 2}, Span{2, 4}, Span{4, 6}, Span{6, 7}));
    // A phase of the result each, and the maximum by halves.
    EXPECT_EQ(count_of<ConvolutionStep>(one.plan), 4U);
    EXPECT_EQ(count_of<CombinationStep>(one.plan), 2U);
}

TEST(PassFuse, PartsOfAConcatenationAreWrittenInPlace) {
    const Small one([](Network& n) {
        const auto in = n.in({1, 8, 8, 16});
        const auto a = n.conv(in, {1, 8, 8, 8}, 16, 3), b = n.conv(in, {1, 8, 8, 12}, 16, 1);
        n.out(n.make(Op::concatenation, {a, b, in}, {1, 8, 8, 36}, model::ConcatenationOptions{3}));
    });
    ASSERT_EQ(count_of<CopyStep>(one.plan), 3U);
    const Plan plan = fused(one.plan);
    // The input comes from the host: it is copied.
    EXPECT_EQ(count_of<CopyStep>(plan), 1U);
    const auto convolutions = steps_of<ConvolutionStep>(plan);
    ASSERT_EQ(convolutions.size(), 2U);
    EXPECT_EQ(convolutions[0]->out, convolutions[1]->out);
    EXPECT_EQ(convolutions[0]->first_channel, 0);
    EXPECT_EQ(convolutions[1]->first_channel, 8);
}

/// How much of its input such a copy takes shows in its output alone.
TEST(PassFuse, ChannelsThatAreTakenFromAnImageAreCopiedTwice) {
    const Small one([](Network& n) {
        const auto in = n.in({1, 8, 8, 16});
        const auto taken =
            n.make(Op::slice, {in, n.ints({0, 0, 0, 0}), n.ints({1, 8, 8, 8})}, {1, 8, 8, 8});
        n.out(
            n.make(Op::concatenation, {in, taken}, {1, 8, 8, 24}, model::ConcatenationOptions{3}));
    });
    ASSERT_EQ(count_of<CopyStep>(one.plan), 3U);
    EXPECT_EQ(count_of<CopyStep>(fused(one.plan)), 3U);
}

TEST(PassFuse, LimitsAreThoseOfTheStepInFront) {
    const auto network = [](bool given) {
        return Small([given](Network& n) {
            const auto a = n.conv(n.in({1, 8, 8, 16}), {1, 8, 8, 8}, 16, 3);
            if (given) n.out(a);
            n.out(n.make(Op::relu6, {a}, {1, 8, 8, 8}));
        });
    };
    const Small alone = network(false), given = network(true);
    const Plan plan = fused(alone.plan);
    EXPECT_EQ(count_of<CopyStep>(plan), 0U);
    const auto& limits =
        std::get<ConvolutionStep>(steps_of<ConvolutionStep>(plan).front()->kind).scaling.clamp;
    EXPECT_EQ(limits.min, 0);
    EXPECT_NEAR(limits.max, 6 / 0.05, 1e-3);
    EXPECT_EQ(count_of<CopyStep>(fused(given.plan)), 1U) << "the host wants what is not limited";
}

TEST(PassBands, CutsOnlyWhatDoesNotFit) {
    Small one([](Network& n) {
        const auto a = n.conv(n.in({1, 64, 64, 4}), {1, 64, 64, 64}, 4, 3);
        n.out(n.conv(a, {1, 32, 32, 16}, 64, 3, 2));
    });
    EXPECT_EQ(in_bands(one.plan)->steps.size(), one.plan.steps.size());
    one.plan.most_narrow_bytes = 16000;
    Plan banded = in_bands(one.plan).value();
    EXPECT_GT(count_of<InputStep>(banded), 1U);
    EXPECT_EQ(count_of<ConvolutionStep>(banded), 2 * count_of<InputStep>(banded));
    find_windows(banded);
    EXPECT_TRUE(place_tensors(banded));
    EXPECT_LE(banded.narrow_bytes, 16000U);
    find_windows(one.plan);
    EXPECT_FALSE(place_tensors(one.plan));
}

/// The rearrangement needs the whole of its input: no bands begin there.
TEST(PassBands, CutsInTheMidstWhereTheBeginningIsNeededWhole) {
    Small one([](Network& n) {
        const auto turned =
            n.make(Op::transpose, {n.in({1, 40, 40, 8}), n.ints({0, 2, 1, 3})}, {1, 40, 40, 8});
        const auto wide = n.conv(turned, {1, 40, 40, 128}, 8, 3);
        n.out(n.conv(wide, {1, 40, 40, 8}, 128, 3));
    });
    one.plan.most_narrow_bytes = 16000;
    const auto banded = in_bands(one.plan);
    ASSERT_TRUE(banded);
    EXPECT_EQ(count_of<InputStep>(*banded), 1U);
    EXPECT_EQ(count_of<RearrangeStep>(*banded), 1U);
    EXPECT_GE(count_of<ConvolutionStep>(*banded), 4U);
    Plan placed = *banded;
    find_windows(placed);
    EXPECT_TRUE(place_tensors(placed));
    // Each band makes rows of its own of the result; together they are all of it, once.
    const TensorId result = one.plan.outputs.front().tensor;
    std::array<std::int32_t, grid> rows{};
    for (const Step* step : steps_of<ConvolutionStep>(*banded)) {
        const Tensor& part = banded->tensors[step->out];
        if (part.band_of != result) continue;
        for (unsigned i = 0; i < grid; ++i) {
            EXPECT_EQ(part.own_rows[i].begin, one.plan.tensors[result].own_rows[i].begin + rows[i]);
            rows[i] += part.own_rows[i].size();
        }
    }
    EXPECT_THAT(rows, testing::Each(10));
    // Nothing helps where not even a row fits.
    one.plan.most_narrow_bytes = 4000;
    EXPECT_FALSE(in_bands(one.plan));
}

/// The input does not fit as a whole, nor do the layers behind a tensor that the host wants.
TEST(PassBands, CutsAtTheBeginningAndInTheMidst) {
    Small one([](Network& n) {
        const auto between = n.conv(n.in({1, 128, 128, 12}), {1, 64, 64, 4}, 12, 3, 2);
        n.out(between);
        const auto deep = n.conv(between, {1, 64, 64, 64}, 4, 3);
        n.out(n.conv(n.depthwise(deep, {1, 64, 64, 64}), {1, 64, 64, 4}, 64, 1));
    });
    one.plan.most_narrow_bytes = 25000;
    Plan banded = in_bands(one.plan).value();
    EXPECT_GT(count_of<InputStep>(banded), 1U);
    const TensorId between = one.plan.steps[1].out, result = one.plan.steps[4].out;
    const auto bands_of = [&](TensorId whole) {
        return std::ranges::count_if(banded.steps, [&](const Step& step) {
            return banded.tensors[step.out].band_of == whole;
        });
    };
    EXPECT_GT(bands_of(between), 1);
    EXPECT_GT(bands_of(result), 1);
    find_windows(banded);
    EXPECT_TRUE(place_tensors(banded));
    EXPECT_LE(banded.narrow_bytes, 25000U);
}

/// Two tensors on the host at a time, the second fetched twice, and the bytes of one used again.
TEST(PassSpill, TensorsOnTheHostTogetherHaveTheirOwnBytes) {
    Small one([](Network& n) {
        const auto layer = [&](TensorIndex from) {
            return n.conv(n.conv(from, {1, 16, 16, 16}, 16, 3), {1, 16, 16, 16}, 16, 3);
        };
        const auto sum = [&](TensorIndex a, TensorIndex b) {
            return n.make(Op::add, {a, b}, {1, 16, 16, 16}, model::AddOptions{});
        };
        const auto first = n.conv(n.in({1, 16, 16, 16}), {1, 16, 16, 16}, 16, 3);
        const auto second = layer(first);
        const auto third = sum(second, layer(second));
        const auto fourth = sum(first, sum(second, layer(third)));
        n.out(sum(fourth, layer(fourth)));
    });
    Plan plan = with_all_spilled(one.plan);
    find_windows(plan);
    ASSERT_TRUE(place_tensors(plan));
    struct OnHost {
        std::size_t from = 0, to = 0;
        TensorId tensor = 0;
    };
    std::vector<OnHost> all;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        if (std::holds_alternative<SpillStep>(step.kind)) all.push_back({i, i, step.out});
        if (!std::holds_alternative<FetchStep>(step.kind)) continue;
        EXPECT_EQ(plan.tensors[step.out].own_rows, one.plan.tensors[0].own_rows);
        std::ranges::find(all, step.in[0], &OnHost::tensor)->to = i;
    }
    EXPECT_EQ(all.size(), 3U);
    EXPECT_EQ(count_of<FetchStep>(plan), 4U);
    EXPECT_EQ(plan.host_bytes, 2U * 16 * 16 * 16);
    for (const OnHost& a : all)
        for (const OnHost& b : all) {
            if (&a == &b || a.to < b.from || b.to < a.from) continue;
            const Tensor &s = plan.tensors[a.tensor], &t = plan.tensors[b.tensor];
            EXPECT_TRUE(s.base + s.host_bytes <= t.base || t.base + t.host_bytes <= s.base);
        }
    EXPECT_TRUE(fits(one.plan));
    EXPECT_EQ(spilled(one.plan)->steps.size(), one.plan.steps.size());
}

TEST(PassSpread, SmallImagesLieByChannels) {
    const auto network = [](std::int32_t side) {
        return Small([side](Network& n) {
            n.out(n.conv(n.in({1, side, side, 1024}), {1, side, side, 512}, 1024, 1));
        });
    };
    const Small small = network(4), large = network(20);
    const Plan spread = spread_channels(small.plan, true);
    EXPECT_TRUE(spread.layers.front().spread);
    EXPECT_EQ(count_of<GatherStep>(spread), 2U) << "to the tiles, and to the whole image again";
    const Tensor& result = spread.tensors[steps_of<ConvolutionStep>(spread).front()->out];
    EXPECT_EQ(result.layout, Layout::channels);
    EXPECT_EQ(result.spread_tiles, 8U);
    EXPECT_FALSE(spread_channels(small.plan, false).layers.front().spread);
    EXPECT_FALSE(spread_channels(large.plan, true).layers.front().spread);
}

/// A pixel of 4096 values, of which two layers make one each: the rows of both do not fit one tile.
TEST(PassSpread, RowsOfLayersOfOnePixelLieStill) {
    const auto dense = [](Network& n, TensorIndex from, std::int32_t units, std::int32_t inputs) {
        return n.make(Op::fully_connected, {from, n.weights({units, inputs})}, {1, units},
                      model::FullyConnectedOptions{model::Activation::none, 0, false, false, {}});
    };
    Small one([&](Network& n) {
        const auto in = n.in({1, 4096});
        n.out(dense(n, in, 1, 4096));
        n.out(dense(n, in, 1, 4096));
        n.out(dense(n, in, 100, 4096));
    });
    EXPECT_FALSE(with_still_rows(Small([&](Network& n) {
                                     n.out(n.conv(n.in({1, 2, 2, 64}), {1, 2, 2, 64}, 64, 1));
                                 }).plan))
        << "four tiles have a pixel each";
    Plan plan = with_still_rows(one.plan).value();
    EXPECT_TRUE(plan.layers[0].spread && plan.layers[1].spread);
    EXPECT_FALSE(plan.layers[2].spread) << "too many channels";
    EXPECT_EQ(plan.layers[0].first_tile, 0U);
    EXPECT_EQ(plan.layers[1].first_tile, 1U);
    const auto layers = steps_of<ConvolutionStep>(plan);
    EXPECT_EQ(plan.tensors[layers[0]->out].layout, Layout::pixels) << "where the pixel is";
    EXPECT_EQ(plan.tensors[layers[1]->out].first_tile, 1U);
    const auto gathers = steps_of<GatherStep>(plan);
    ASSERT_EQ(gathers.size(), 2U) << "the input there, and the result back";
    EXPECT_EQ(std::get<GatherStep>(gathers[0]->kind).to, 2);
    EXPECT_EQ(std::get<GatherStep>(gathers[1]->kind).to, 1);
    find_windows(plan);
    lay_out_parameters(plan);
    plan_ahead(plan);
    ASSERT_TRUE(place_tensors(plan));
    ASSERT_TRUE(place_parameters(plan, false));
    for (const unsigned i : {0, 1}) {
        ASSERT_EQ(plan.layers[i].pieces.size(), 1U);
        EXPECT_EQ(plan.layers[i].pieces.front().tile, i);
        EXPECT_EQ(plan.layers[i].pieces.front().count, 1U + 1024);
    }
    // Beside other programs' rows there is room on the third tile.
    one.plan.beside.first_rows[0] = one.plan.beside.first_rows[1] = 600;
    const Plan beside = with_still_rows(one.plan).value();
    EXPECT_EQ(beside.layers[0].first_tile, 2U);
    EXPECT_EQ(beside.layers[1].first_tile, 3U);
}

TEST(PassWindows, TilesStoreWhatTheirReadersNeed) {
    Small one([](Network& n) {
        const auto in = n.in({1, 16, 16, 4});
        const auto a = n.conv(in, {1, 16, 16, 4}, 4, 3);
        const auto b = n.conv(in, {1, 16, 16, 4}, 4, 1);
        const auto sum = n.make(Op::add, {a, b}, {1, 16, 16, 4}, model::AddOptions{});
        n.out(n.conv(a, {1, 16, 16, 4}, 4, 5));
        n.out(sum);
    });
    find_windows(one.plan);
    const auto& tensors = one.plan.tensors;
    EXPECT_THAT(tensors[one.plan.inputs.front().tensor].window_rows,
                ElementsAre(Span{-1, 5}, Span{3, 9}, Span{7, 13}, Span{11, 17}));
    // One instruction walks both operands: the second has the first one's windows.
    const Step& sum = *steps_of<SumStep>(one.plan).front();
    EXPECT_THAT(tensors[sum.in[0]].window_columns,
                ElementsAre(Span{-2, 6}, Span{2, 10}, Span{6, 14}, Span{10, 18}));
    EXPECT_EQ(tensors[sum.in[0]].window_columns, tensors[sum.in[1]].window_columns);
}

TEST(PassParameters, RowsLieInTheOrderOfReading) {
    Small one([](Network& n) {
        const auto a = n.conv(n.in({1, 8, 8, 16}), {1, 8, 8, 96}, 16, 1);
        n.out(n.depthwise(a, {1, 8, 8, 96}));
    });
    find_windows(one.plan);
    lay_out_parameters(one.plan);
    const ParameterLayer &dense = one.plan.layers[0], &depthwise = one.plan.layers[1];
    // Two groups of a row of biases and four of weights, of 64 lanes.
    EXPECT_EQ(dense.schedule.groups, 2U);
    EXPECT_EQ(dense.row_count(), 2U * (1 + 4));
    EXPECT_EQ(dense.row_bytes, 256U);
    EXPECT_EQ(dense.bytes, 2U * (1 + 4) * 256);
    std::vector<std::byte> rows(dense.bytes);
    write_rows(dense, rows);
    EXPECT_EQ(rows[256], std::byte{130});
    EXPECT_TRUE(depthwise.relayed);
    // Each word of channels: a row of biases and nine of weights, of 16 bytes, in units of 4.
    EXPECT_EQ(depthwise.relay_units, 24U * (1 + 9) * 4);
}

TEST(PassAhead, LayersBehindOneAnotherShareNoRows) {
    Small one([](Network& n) {
        const auto a = n.conv(n.in({1, 8, 8, 16}), {1, 8, 8, 128}, 16, 1);
        n.out(n.conv(a, {1, 8, 8, 128}, 128, 1));
    });
    find_windows(one.plan);
    lay_out_parameters(one.plan);
    EXPECT_EQ(one.plan.layers[0].scratch_end, one.plan.layers[1].scratch_end);
    plan_ahead(one.plan);
    EXPECT_TRUE(one.plan.ahead);
    const ParameterLayer &a = one.plan.layers[0], &b = one.plan.layers[1];
    EXPECT_TRUE(a.scratch_end <= b.schedule.head || b.scratch_end <= a.schedule.head);
}

TEST(PassPlace, AGlobalAverageTakesEqualSharesOfItsChannels) {
    const auto at_once = [](std::int32_t side, std::int32_t channels) {
        Tensor t;
        t.height = t.width = side;
        t.channels = channels;
        return words_averaged_at_once(t);
    };
    EXPECT_EQ(at_once(7, 1280), 320U) << "all of them";
    EXPECT_EQ(at_once(14, 1280), 160U);
    EXPECT_EQ(at_once(100, 38), 3U);
    EXPECT_EQ(at_once(300, 4), 1U) << "one at least";
}

TEST(PassPlace, WhatIsInUseTogetherHasItsOwnBytes) {
    Small one([](Network& n) {
        const auto in = n.in({1, 16, 16, 16});
        const auto a = n.conv(in, {1, 16, 16, 32}, 16, 3), b = n.conv(a, {1, 16, 16, 16}, 32, 3);
        n.out(n.make(Op::add, {in, b}, {1, 16, 16, 16}, model::AddOptions{}));
    });
    find_windows(one.plan);
    lay_out_parameters(one.plan);
    ASSERT_TRUE(place_tensors(one.plan));
    ASSERT_TRUE(place_parameters(one.plan, false));
    // The input is read again behind the convolutions.
    const Step& sum = *steps_of<SumStep>(one.plan).front();
    const auto apart = [&](TensorId x, TensorId y) {
        const Tensor &s = one.plan.tensors[x], &t = one.plan.tensors[y];
        return s.base + s.bytes() <= t.base || t.base + t.bytes() <= s.base;
    };
    for (const Step* step : steps_of<ConvolutionStep>(one.plan)) {
        EXPECT_TRUE(apart(sum.in[0], step->out));
        EXPECT_TRUE(apart(step->in[0], step->out));
    }
    EXPECT_FALSE(one.plan.layers[0].pieces.empty());
    one.plan.most_narrow_bytes = 2000;
    EXPECT_FALSE(place_tensors(one.plan));
}

struct TwoPlacedLayers : Small {
    TwoPlacedLayers()
        : Small([](Network& n) {
              const auto a = n.conv(n.in({1, 16, 16, 16}), {1, 16, 16, 32}, 16, 3);
              n.out(n.conv(a, {1, 16, 16, 8}, 32, 1));
          }) {
        find_windows(plan);
        lay_out_parameters(plan);
        EXPECT_TRUE(place_tensors(plan));
        EXPECT_TRUE(place_parameters(plan, false));
    }
};

TEST(PassEmit, StepsBecomeProgramsThatKeepTheRules) {
    const TwoPlacedLayers one;
    const auto done = emit(one.plan, {.list_forms = true});
    ASSERT_TRUE(done) << done.error().message();
    ASSERT_EQ(done->computing.streams.size(), 1U);
    // The input, the result and the interrupt.
    const Emitter::Transfer transfer{.stream = 0};
    EXPECT_THAT(done->computing.transfers, ElementsAre(transfer, transfer, transfer));
    ASSERT_EQ(done->outputs.size(), 1U);
    EXPECT_EQ(done->outputs.front().bytes, 16U * 16 * 8);
    // Rows of both layers, in their order, and a program of its own that loads them.
    EXPECT_EQ(done->cached.size(), one.plan.layers[0].bytes + one.plan.layers[1].bytes);
    EXPECT_TRUE(done->streamed.empty());
    ASSERT_TRUE(done->caching);
    for (const auto* program : {&done->computing, &*done->caching}) {
        const std::vector<Bytes> streams{program->streams.front().bytes};
        for (const auto& rule : {check_program, check_synchronisation, unmodelled_instructions})
            EXPECT_TRUE(rule(streams).empty());
    }
    EXPECT_GT(done->forms.instructions, done->forms.known);
    // To find out how long it takes nothing else is needed.
    const auto computing = emit(one.plan, {.only_computing = true});
    ASSERT_TRUE(computing);
    EXPECT_EQ(computing->computing.streams.front().bytes, done->computing.streams.front().bytes);
    EXPECT_TRUE(computing->cached.empty());
    EXPECT_FALSE(computing->caching);
    const auto known = emit(one.plan, {.list_forms = true, .known_forms_only = true});
    ASSERT_TRUE(known) << known.error().message();
    EXPECT_EQ(known->forms.instructions, known->forms.known);
    EXPECT_NE(known->computing.streams.front().bytes, done->computing.streams.front().bytes);
}

TEST(PassEmbed, ProgramsBecomeAPackageThatSaysWhatTheHostSends) {
    const TwoPlacedLayers one;
    const auto package = package_of(one.plan, emit(one.plan).value(), {.runtime_version = 12});
    EXPECT_EQ(package.min_runtime_version, 12);
    ASSERT_EQ(package.executables.size(), 2U);
    const Executable &computing = package.executables[0], &caching = package.executables[1];
    EXPECT_EQ(computing.type, ExecutableType::execution_only);
    EXPECT_EQ(caching.type, ExecutableType::parameter_caching);
    EXPECT_EQ(caching.parameters.size(), one.plan.layers[0].bytes + one.plan.layers[1].bytes);
    EXPECT_EQ(computing.parameters.size(), 0U);
    EXPECT_EQ(computing.parameter_caching_token, caching.parameter_caching_token);
    ASSERT_EQ(computing.inputs.size(), 1U);
    EXPECT_EQ(computing.inputs[0].name, "t0");
    EXPECT_EQ(computing.inputs[0].size_bytes, 16 * 16 * 16);
    ASSERT_EQ(computing.outputs.size(), 1U);
    EXPECT_EQ(computing.outputs[0].size_bytes, 16 * 16 * 8);
    EXPECT_EQ(computing.outputs[0].numerics->zero_point, 100);
    // Instructions, the input, the output and the interrupt.
    EXPECT_EQ(computing.dma_hints->hints.size(), 4U);
    // The token is of what is cached, and may be another's.
    const auto token = [&](const EmbedOptions& options) {
        return package_of(one.plan, emit(one.plan).value(), options)
            .executables[0]
            .parameter_caching_token;
    };
    EXPECT_EQ(token({}), computing.parameter_caching_token);
    EXPECT_EQ(token({.token = 7}), 7U);
    EXPECT_NE(to_text(package).find("PARAMETER_CACHING 'parameters'"), std::string::npos);
}

/// Many short operators, then some of which no two fit one stream: stops in front of a stream's
/// begin are no places for its end.
TEST(PassEmit, StreamsEndBehindTheirBegin) {
    Emitter code(false);
    const auto operator_of = [&](int fences) {
        for (int i = 0; i < fences; ++i) code.fence();
        code.full_stop();
    };
    constexpr int most_of_a_stream = static_cast<int>(spec::stream_words) * 3 / 4;
    code.start();
    for (int i = 0; i < 100; ++i) operator_of(2);
    for (int i = 0; i < 3; ++i) operator_of(most_of_a_stream);
    code.end({4, 5}, {6, 7}, {8, 9});
    const auto program = code.finish();
    ASSERT_TRUE(program) << program.error().message();
    EXPECT_EQ(program->streams.size(), 3U);
}

}  // namespace
}  // namespace reef::edgetpu::lowering
