// What BATCH_MATMUL, SVDF and UNIDIRECTIONAL_SEQUENCE_LSTM of float32 activations and int8 weights
// refuse; differential_test.cpp has their results.
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "cpu/plain/operator_case.h"
#include "cpu/run_model.h"

namespace reef::plain {
namespace {

using model::Op;
using testing::HasSubstr;

struct HybridInputs {
    Op op;
    std::vector<std::size_t> weights;
};
const std::vector<HybridInputs>& hybrids() {
    static const std::vector<HybridInputs> all = {
        {Op::batch_matmul, {1}},
        {Op::svdf, {1, 2}},
        {Op::unidirectional_sequence_lstm, {1, 2, 3, 4, 5, 6, 7, 8}}};
    return all;
}

OperatorCase case_of(Op op) {
    const auto makers = hybrid_makers();
    Choices choices(3);
    return std::ranges::find(makers, op, &NamedMaker::op)->make(choices);
}

/// With one change to the weights at `position`.
std::string refusal_of(Op op, std::size_t position, const std::function<void(Values&)>& change) {
    OperatorCase one = case_of(op);
    change(one.inputs[position]);
    const auto model = model_of(one);
    return model ? test::refusal(*model) : model.error().message();
}

TEST(HybridOperators, RefuseOtherWeights) {
    for (const auto& [op, positions] : hybrids())
        for (const std::size_t i : positions) {
            SCOPED_TRACE(testing::Message() << model::builtin_name(op) << ", input " << i);
            EXPECT_THAT(refusal_of(op, i, [](Values& w) { w.role = Role::input; }),
                        HasSubstr("constant ones are needed"));
            EXPECT_THAT(refusal_of(op, i, [](Values& w) { w.zero = 3; }),
                        HasSubstr("zero point 3"));
            EXPECT_THAT(refusal_of(op, i,
                                   [](Values& w) {
                                       w.scales.assign(static_cast<std::size_t>(w.shape[0]), 1);
                                       w.scales.resize(std::max<std::size_t>(2, w.scales.size()));
                                   }),
                        testing::AnyOf(HasSubstr("scale per channel"), HasSubstr("scales")));
            EXPECT_NE(refusal_of(op, i, [](Values& w) { w.type = i16; }), "");
            EXPECT_NE(refusal_of(op, i, [](Values& w) { w.type = u8; }), "");
        }
}

TEST(HybridOperators, RefuseOneFloat32AmongInt8Weights) {
    for (const auto& [op, positions] : hybrids())
        for (const std::size_t i : positions)
            if (positions.size() > 1) {
                EXPECT_NE(refusal_of(op, i,
                                     [](Values& w) {
                                         w.type = f32;
                                         w.scales.clear();
                                     }),
                          "")
                    << model::builtin_name(op) << ", input " << i;
            }
}

TEST(HybridOperators, EndARunOnWhatIsNoNumber) {
    for (const auto& [op, positions] : hybrids())
        for (const double bad :
             {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
            OperatorCase one = case_of(op);
            one.inputs[0].stored.back() = bad;
            const auto model = model_of(one);
            ASSERT_TRUE(model);
            auto executor = test::on_cpu(*model, {});
            ASSERT_TRUE(executor) << executor.error().message();
            std::ranges::copy(stored_bytes(one.inputs[0]), executor->input(0).begin());
            EXPECT_FALSE(executor->run()) << model::builtin_name(op) << " of " << bad;
        }
}

/// A gate that is shut leaves an output far below what has steps.
TEST(HybridOperators, LstmGoesOnAfterOutputsOfNothing) {
    OperatorCase one = case_of(Op::unidirectional_sequence_lstm);
    std::ranges::fill(one.inputs[15].stored, -86.0);
    for (const std::size_t i : {std::size_t{4}, std::size_t{8}})
        std::ranges::fill(one.inputs[i].stored, 0.0);
    const auto model = model_of(one);
    ASSERT_TRUE(model);
    auto executor = test::on_cpu(*model, {});
    ASSERT_TRUE(executor) << executor.error().message();
    std::ranges::copy(stored_bytes(one.inputs[0]), executor->input(0).begin());
    for (int run = 0; run < 2; ++run) {
        const Status status = executor->run();
        EXPECT_TRUE(status) << status.error().message();
    }
}

}  // namespace
}  // namespace reef::plain
