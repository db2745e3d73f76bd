#include "reef/edgetpu/transfers.h"

#include <gmock/gmock.h>

#include <cstring>

#include "edgetpu/package/package_data.h"

namespace reef::edgetpu {
namespace {

using ::testing::HasSubstr;

SharedBytes zeros(std::size_t size) {
    return SharedBytes::copy_of(std::vector<std::byte>(size));
}

DmaHint transfer_hint(BaseAddress base, std::string layer, int offset, int size,
                      Direction direction) {
    return {.what = DmaDescriptorHint{.meta = {.base = base, .name = std::move(layer)},
                                      .offset_bytes = offset,
                                      .size_bytes = size},
            .direction = direction};
}

/// One input "in" of 13 bytes sent in two overlapping transfers that end 3 bytes behind it; two
/// outputs that arrive in another order than they are listed.
Executable split_input() {
    Executable executable;
    executable.type = ExecutableType::execution_only;
    executable.bitstreams.push_back({.instructions = zeros(16), .field_offsets = {}});
    executable.parameters = zeros(8);
    Layer in;
    in.name = "in";
    in.size_bytes = in.z_dim = 13;
    in.y_dim = in.x_dim = 1;
    in.kind = InputLayer{};
    executable.inputs = {in};
    for (const char* name : {"a", "b"}) {
        Layer out = in;
        out.name = name;
        out.size_bytes = 4;
        out.z_dim = 3;
        out.kind = OutputLayer{};
        executable.outputs.push_back(out);
    }
    using enum BaseAddress;
    executable.dma_hints =
        DmaHints{.hints = {{.what = InstructionHint{0}},
                           transfer_hint(input_activation, "in", 0, 8, Direction::infeed),
                           transfer_hint(input_activation, "in", 6, 10, Direction::infeed),
                           transfer_hint(parameter, "", 0, 8, Direction::infeed),
                           transfer_hint(output_activation, "b", 0, 4, Direction::outfeed),
                           transfer_hint(output_activation, "a", 0, 4, Direction::outfeed),
                           {.what = FenceHint{}},
                           {.what = InterruptHint{1}, .direction = Direction::outfeed}},
                 .fully_deterministic = true};
    return executable;
}

TEST(Transfers, FollowTheHints) {
    const auto plan = plan_transfers(split_input());
    ASSERT_TRUE(plan) << plan.error().message();
    using enum Transfer::Kind;
    const std::vector<Transfer> expected = {
        {send, Tag::instructions, 0, 0, 16},         {send, Tag::input_activations, 0, 0, 8},
        {send, Tag::input_activations, 0, 6, 10},    {send, Tag::parameters, 0, 0, 8},
        {receive, Tag::output_activations, 1, 0, 4}, {receive, Tag::output_activations, 0, 0, 4},
        {fence, Tag::instructions, 0, 0, 0},         {wait, static_cast<Tag>(5), 0, 0, 0}};
    EXPECT_EQ(plan->transfers, expected);
    EXPECT_EQ(plan->input_bytes, std::vector<std::size_t>{16});
    EXPECT_EQ(plan->output_bytes, (std::vector<std::size_t>{4, 4}));
    EXPECT_TRUE(plan->complete);
}

TEST(Transfers, OverlappingInputsAreSentTwiceAndPadded) {
    const Executable executable = split_input();
    const auto plan = plan_transfers(executable);
    std::vector<std::byte> tensor;
    for (int i = 1; i <= 13; ++i) tensor.push_back(static_cast<std::byte>(i));
    const Bytes tensors[] = {tensor};
    const auto packed = pack_inputs(executable, *plan, tensors);
    ASSERT_TRUE(packed) << packed.error().message();
    const auto stream = sent_stream(executable, *plan, Tag::input_activations, *packed);
    ASSERT_TRUE(stream) << stream.error().message();
    std::vector<int> numbers;
    for (const std::byte byte : *stream) numbers.push_back(static_cast<int>(byte));
    EXPECT_EQ(numbers, (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8,  //
                                         7, 8, 9, 10, 11, 12, 13, 0, 0, 0}));
}

TEST(Transfers, TheOutputStreamIsCutInTheOrderOfTheHints) {
    const auto plan = plan_transfers(split_input());
    std::vector<std::byte> stream;
    for (int i = 0; i < 8; ++i) stream.push_back(static_cast<std::byte>(i));
    const auto layers = cut_output_stream(*plan, stream);
    ASSERT_TRUE(layers) << layers.error().message();
    EXPECT_EQ(layers->at(0)[0], std::byte{4});
    EXPECT_EQ(layers->at(1)[0], std::byte{0});
    stream.pop_back();
    EXPECT_THAT(cut_output_stream(*plan, stream).error().message(),
                HasSubstr("7 bytes, 8 expected"));
}

TEST(Transfers, HintsThatContradictTheExecutableAreErrorsWithTheirPlace) {
    const auto refusal = [](auto change) {
        Executable executable = split_input();
        change(executable, executable.dma_hints->hints);
        const auto plan = plan_transfers(executable);
        return plan ? std::string("accepted") : plan.error().message();
    };
    using Hints = std::vector<DmaHint>;
    EXPECT_THAT(refusal([](Executable& e, Hints&) { e.dma_hints.reset(); }),
                HasSubstr("without DMA hints"));
    EXPECT_THAT(refusal([](Executable& e, Hints&) { e.bitstreams.clear(); }),
                HasSubstr("DMA hint 0: bitstream 0 of 0"));
    EXPECT_THAT(refusal([](Executable& e, Hints&) { e.inputs.clear(); }),
                HasSubstr("DMA hint 1: no layer in"));
    EXPECT_THAT(refusal([](Executable& e, Hints&) { e.parameters = {}; }),
                HasSubstr("DMA hint 3: bytes 0 to 8 of 0 parameter bytes"));
    EXPECT_THAT(refusal([](Executable&, Hints& hints) {
                    std::get<DmaDescriptorHint>(hints[1].what).size_bytes = 1 << 20;
                }),
                HasSubstr("of layer in with 13 bytes"));
    EXPECT_THAT(refusal([](Executable&, Hints& hints) {
                    std::get<DmaDescriptorHint>(hints[4].what).meta.base = BaseAddress::scratch;
                }),
                HasSubstr("not modelled: out transfer of scratch"));
    EXPECT_THAT(refusal([](Executable&, Hints& hints) {
                    std::get<InterruptHint>(hints[7].what).interrupt = 4;
                }),
                HasSubstr("interrupt 4"));
}

TEST(Transfers, BaseAddressesGiveEveryRegionItsOwn) {
    Executable executable = split_input();
    executable.bitstreams[0].field_offsets = {
        {.meta = {.base = BaseAddress::output_activation,
                  .name = "b",
                  .half = AddressHalf::upper_32_bits},
         .offset_bit = 6},
        {.meta = {.base = BaseAddress::parameter, .name = {}, .half = AddressHalf::lower_32_bits},
         .offset_bit = 96}};
    executable.bitstreams[0].instructions =
        SharedBytes::copy_of(std::vector<std::byte>(16, std::byte{0xff}));
    const auto bytes = with_base_addresses(executable, 0);
    ASSERT_TRUE(bytes) << bytes.error().message();
    std::uint64_t low;
    std::memcpy(&low, bytes->data(), sizeof low);
    EXPECT_EQ(low >> 6 & 0xffffffff, 5U);  // parameters 1, scratch 2, in 3, a 4, b 5
    EXPECT_EQ(low & 0x3f, 0x3fU);
    EXPECT_EQ(low >> 38, 0x3ffffffU);
    EXPECT_EQ((*bytes)[11], std::byte{0xff});
    for (std::size_t i = 12; i < 16; ++i) EXPECT_EQ((*bytes)[i], std::byte{0});

    executable.bitstreams[0].field_offsets[0].meta.name = "c";
    EXPECT_THAT(with_base_addresses(executable, 0).error().message(),
                HasSubstr("field offset 0: no layer c"));
}

TEST(Transfers, EveryExecutableOfTheReferenceDataHasAPlan) {
    REEF_SHARED_OR_SKIP(folder);
    ASSERT_FALSE(folder.empty());
    std::size_t executables = 0;
    for (const auto& path : test::compiled_files()) {
        for (const auto& op : test::packages_in(path)) {
            for (const Executable& executable : op.package.executables) {
                SCOPED_TRACE(path.filename().string());
                const auto plan = plan_transfers(executable);
                ASSERT_TRUE(plan) << plan.error().message();
                for (std::size_t i = 0; i < executable.bitstreams.size(); ++i) {
                    EXPECT_TRUE(with_base_addresses(executable, i));
                }
                // Of these, one LSTM leaves what comes after its inputs to the chip.
                EXPECT_EQ(plan->complete, !path.filename().string().starts_with("keras_lstm") ||
                                              executable.type == ExecutableType::parameter_caching);
                ++executables;
            }
        }
    }
    EXPECT_GE(executables, 30U);
}

}  // namespace
}  // namespace reef::edgetpu
