// The command's verbs on the RK3588's streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reef/base/file.h"
#include "rk3588/regs/register_set.h"
#include "support/process.h"
#include "support/temporary_folder.h"

namespace reef::rk3588 {
namespace {

using testing::HasSubstr;

class StreamVerbs : public testing::Test {
  protected:
    StreamVerbs() {
        RegisterSet set;
        set.set<"DPU_FEATURE_MODE_CFG.CONV_MODE">(3);
        const auto words = task_words(set, Blocks::flying).value();
        EXPECT_TRUE(write_file(stream, std::as_bytes(std::span(words))));
        std::vector<std::byte> container(64, std::byte{0x11});
        std::ranges::copy(as_bytes("RKNN"), container.begin());
        EXPECT_TRUE(write_file(empty_container, container));
        std::ranges::copy(std::as_bytes(std::span(words)), std::back_inserter(container));
        EXPECT_TRUE(write_file(vendor_container, container));
    }
    static test::ProcessResult reef(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), REEF_COMMAND);
        return test::run_process(arguments);
    }

    test::TemporaryFolder folder;
    std::string stream = folder.file("stream.bin"), text = folder.file("stream.s"),
                again = folder.file("again.bin"), vendor_container = folder.file("net.rknn"),
                empty_container = folder.file("old.rknn");
};

TEST_F(StreamVerbs, DisasmAndAsmGiveTheSameBytes) {
    const auto shown = reef({"disasm", stream, "--chip", "rk3588", "--symbolic"});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_THAT(shown.out, HasSubstr("0x0000: DPU_FEATURE_MODE_CFG CONV_MODE=depthwise\n"));
    ASSERT_TRUE(write_file(text, as_bytes(shown.out)));
    const auto made = reef({"asm", text, "--chip", "rk3588", "-o", again});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    EXPECT_EQ(read_file(again).value(), read_file(stream).value());
}

TEST_F(StreamVerbs, DisasmFindsTheTasksOfAVendorsFile) {
    const auto shown = reef({"disasm", vendor_container});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_THAT(shown.out, HasSubstr("OP_EN DPU=1 DPU_RDMA=1"));
    const auto none = reef({"disasm", empty_container});
    EXPECT_EQ(none.exit_code, 1);
    EXPECT_THAT(none.err, HasSubstr("this .rknn file holds no plain command words"));
}

TEST_F(StreamVerbs, DisasmChecks) {
    const auto good = reef({"disasm", stream, "--chip", "rk3588", "--check"});
    EXPECT_EQ(good.exit_code, 0) << good.err;
    ASSERT_TRUE(write_file(text, as_bytes("DPU_BS_CFG target=PPU\nOP_EN CNA=1\n")));
    EXPECT_EQ(reef({"asm", text, "--chip", "rk3588", "-o", again}).exit_code, 0);
    const auto bad = reef({"disasm", again, "--chip", "rk3588", "--check"});
    EXPECT_EQ(bad.exit_code, 1);
    EXPECT_THAT(bad.out, HasSubstr("DPU_BS_CFG has target 0x4001, its own is 0x1001"));
    EXPECT_THAT(bad.out, HasSubstr("no mark stands in front of op_en"));
}

}  // namespace
}  // namespace reef::rk3588
