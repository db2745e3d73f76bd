// Bmodels: what is read, which faults are found, and that no file breaks the reader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "reef/base/file.h"
#include "reef/base/sha256.h"
#include "sophgo/bmodel/md5.h"
#include "sophgo/bmodel/parts.h"
#include "sophgo/bmodel/reports.h"
#include "sophgo/small_bmodel.h"
#include "support/shared_data.h"

namespace reef::sophgo {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::vector<std::string> faults_of(const std::vector<std::byte>& file) {
    const auto report = bmodel_checker()->check(SharedBytes::copy_of(file));
    if (!report) return {report.error().message()};
    std::vector<std::string> out;
    for (const auto& one : report->findings)
        if (one.fault) out.push_back(one.rule + ": " + one.place + ": " + one.what);
    return out;
}

TEST(Bmodel, TheSmallOneIsRight) {
    const auto file = SharedBytes::copy_of(small_bmodel());
    EXPECT_TRUE(is_bmodel(file.view()));
    const auto report = bmodel_checker()->check(file);
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_TRUE(report->findings.empty()) << report->findings.front().what;
    const Bmodel bmodel = read_bmodel(file).value();
    const BmodelMemory memory = memory_of(bmodel);
    EXPECT_EQ(memory.coefficients, 4096U);
    EXPECT_EQ(memory.commands, 4096U + 96U) << "the net and its subnet share them";
    EXPECT_EQ(memory.runtime, 8192U);
}

/// A subnet on the CPU with one constant, which two tables name.
std::unique_ptr<schema::SubNetT> cpu_subnet() {
    auto subnet = std::make_unique<schema::SubNetT>();
    subnet->subnet_mode = 1;
    auto param = std::make_unique<schema::CpuParamT>();
    for (int i = 0; i < 2; ++i) {
        auto constant = std::make_unique<schema::CpuConstT>();
        constant->const_data = std::make_unique<schema::Binary>(8192, 100);
        constant->check_code = {1, 2, 3};
        param->cpu_const.push_back(std::move(constant));
    }
    subnet->cpu_param.push_back(std::move(param));
    return subnet;
}

TEST(Bmodel, MemoryIsCountedOnceAndAsTheVendorsToolDoes) {
    auto tables = small_bmodel_tables();
    tables.chip = "BM1684";
    auto& net = *tables.net[0];
    net.parameter.push_back(std::move(small_bmodel_tables().net[0]->parameter[0]));
    net.parameter[0]->sub_net.push_back(cpu_subnet());
    net.parameter[0]->cpu_mem_size = 10;
    net.parameter[1]->ctx_size = 12288;
    net.parameter[1]->cpu_mem_size = 30;
    net.parameter[1]->binary_ir = std::make_unique<schema::Binary>(12288, 500);
    const Bmodel bmodel =
        read_bmodel(SharedBytes::copy_of(bmodel_file(tables, 20480, 20480))).value();
    // Commands of each stage, coefficients and the constant once, the larger stage.
    EXPECT_EQ(memory_of(bmodel),
              (BmodelMemory{4096, 2 * (4096U + 96U) + 500U, 12288, 100, 4 * 30U}));
    // The first stage twice: 5 commands of 128 bytes, and a buffer for 48 bytes of int8.
    EXPECT_EQ(memory_by_model_tool(bmodel),
              (BmodelMemory{4096, 2 * 5 * 128U, 8192U + 48U, 100, 2 * 4 * 10U}));
    const auto report = report_of(bmodel, chip::Detail::glance);
    const auto& file = report.sections[0].lines;
    const auto row = std::ranges::find_if(file, [](const auto& line) {
        const auto* field = std::get_if<chip::Field>(&line);
        return field != nullptr && field->name == "model_tool";
    });
    ASSERT_NE(row, file.end());
    EXPECT_THAT(
        std::get<chip::Field>(*row).text,
        HasSubstr("device 13616 (coefficients 4096, commands 1280, runtime 8240), host 180"));
}

TEST(Bmodel, CascadesAreShownWhole) {
    auto tables = small_bmodel_tables();
    tables.device_num = 2;
    tables.net.push_back(std::move(small_bmodel_tables().net[0]));
    for (std::uint32_t device = 0; device < 2; ++device) {
        auto& net = *tables.net[device];
        net.name = device == 0 ? "part0" : "part1";
        net.cascade = std::make_unique<schema::CascadeT>();
        net.cascade->main_name = "whole";
        net.cascade->device_id = device;
        net.cascade->step = device;
        net.parameter[0]->input_tensor[0]->hidden = device == 0 ? 1 : 5;
        net.parameter[0]->output_tensor[0]->hidden = device == 0 ? 5 : 2;
    }
    const Bmodel bmodel =
        read_bmodel(SharedBytes::copy_of(bmodel_file(tables, 20480, 20480))).value();
    const auto report = report_of(bmodel, chip::Detail::glance);
    const auto& whole = report.sections.back();
    EXPECT_EQ(whole.title, "Cascade");
    ASSERT_EQ(whole.lines.size(), 2U);
    EXPECT_THAT(std::get<chip::Field>(whole.lines[0]).text, HasSubstr("device 0: in, "));
    EXPECT_THAT(std::get<chip::Field>(whole.lines[1]).text, HasSubstr("device 1: out, "));
    // Values whose meaning nobody knows are named, not passed over.
    const auto findings = check_bmodel(bmodel).findings;
    EXPECT_EQ(std::ranges::count_if(
                  findings, [](const auto& each) { return each.what.contains("hidden is 5"); }),
              2);
}

TEST(Bmodel, EveryBitOfTheCoefficientsCounts) {
    const auto good = small_bmodel();
    const std::size_t section = good.size() - 5 * 4096;
    for (std::size_t at : {std::size_t{0}, std::size_t{1234}, std::size_t{4095}}) {
        for (int bit = 0; bit < 8; ++bit) {
            auto file = good;
            file[section + 8192 + at] ^= static_cast<std::byte>(1U << bit);
            EXPECT_THAT(faults_of(file),
                        Contains(HasSubstr("coefficients: net small stage 0: their "
                                           "SHA-256 is ")));
        }
    }
}

TEST(Bmodel, RangesAreHeldToTheSection) {
    auto tables = small_bmodel_tables();
    tables.kernel_module->binary = std::make_unique<schema::Binary>(12288, 8193);
    EXPECT_THAT(faults_of(bmodel_file(tables, 20480, 20480)),
                Contains("bounds: kernel module lib.so: 8193 bytes at 12288 leave the section of "
                         "20480"));
    tables.kernel_module->binary = std::make_unique<schema::Binary>(~0ULL, 2);
    EXPECT_THAT(faults_of(bmodel_file(tables, 20480, 20480)),
                Contains(HasSubstr("bounds: kernel")));
    tables.kernel_module->binary = std::make_unique<schema::Binary>(8000, 4096);
    EXPECT_THAT(faults_of(bmodel_file(tables, 20480, 20480)), Contains(HasSubstr("overlap: ")));
}

TEST(Bmodel, SizesAboveFourGigabytesAreRead) {
    const auto file = SharedBytes::copy_of(bmodel_file(small_bmodel_tables(), 20480, 0x200005000));
    const Bmodel bmodel = read_bmodel(file).value();
    EXPECT_EQ(bmodel.header.binary_size, 0x200005000U);
    EXPECT_EQ(bmodel.binary.size(), 20480U);
    const auto report = check_bmodel(bmodel);
    EXPECT_FALSE(report.passed()) << "most of it is missing";
    EXPECT_THAT(report.findings, Contains(testing::Field(&chip::Finding::rule, "old-runtimes")));
}

TEST(Bmodel, TensorsFitTheirBytes) {
    auto tables = small_bmodel_tables();
    tables.net[0]->parameter[0]->input_tensor[0]->size = 47;
    tables.net[0]->parameter[0]->output_tensor[0]->data_type = 17;
    EXPECT_THAT(
        faults_of(bmodel_file(tables, 20480, 20480)),
        testing::ElementsAre("tensor-size: net small stage 0: in: 47 bytes do not hold "
                             "[1x3x4x4] of int8",
                             "data-type: net small stage 0: out: data type 17 has no name"));
}

TEST(Bmodel, OldTablesAreRefusedByName) {
    auto tables = small_bmodel_tables();
    tables.net[0]->net_static.push_back(std::make_unique<schema::NetStaticT>());
    EXPECT_THAT(faults_of(bmodel_file(tables, 20480, 20480)),
                Contains(HasSubstr("net_static or net_dynamic")));
}

TEST(Bmodel, PartsAreTheBytesOfTheirRanges) {
    const auto good = small_bmodel();
    const auto parts = bmodel_extractor()->parts_of(SharedBytes::copy_of(good)).value();
    ASSERT_EQ(parts.size(), 6U);
    EXPECT_EQ(parts[0].name, "net0/stage0/coeff.bin");
    EXPECT_EQ(parts.back().name, "kernel_module.so");
    EXPECT_TRUE(
        std::ranges::equal(parts.back().bytes.view(), std::span(good).subspan(good.size() - 8192)));
    std::set<std::string> names;
    for (const auto& part : parts) EXPECT_TRUE(names.insert(part.name).second) << part.name;
}

TEST(Bmodel, DifferencesAreNamed) {
    const auto a = SharedBytes::copy_of(small_bmodel());
    EXPECT_TRUE(bmodel_comparer()->differences(a, a).value().same);
    auto tables = small_bmodel_tables();
    tables.net[0]->parameter[0]->input_tensor[0]->scale = 0.25F;
    tables.net[0]->parameter.push_back(std::make_unique<schema::NetParameterT>());
    const auto found = bmodel_comparer()
                           ->differences(a, SharedBytes::copy_of(bmodel_file(tables, 20480, 20480)))
                           .value();
    EXPECT_FALSE(found.same);
    const auto& table = std::get<chip::Table>(found.report.sections[0].lines[0]);
    std::vector<std::string> rows;
    for (const auto& row : table.rows) rows.push_back(row[0]);
    EXPECT_THAT(rows, Contains("net small: stages"));
    EXPECT_THAT(rows, Contains("net small stage 0: input 0"));
}

TEST(Bmodel, AnyChangedOrMissingByteIsReadOrRefused) {
    const auto good = small_bmodel();
    std::mt19937 random(7);
    for (int trial = 0; trial < 3000; ++trial) {
        auto file = good;
        const std::size_t tables = std::min<std::size_t>(file.size(), 1500);
        for (int change = 0; change < 3; ++change)
            file[random() % tables] = static_cast<std::byte>(random());
        if (trial % 3 == 0) file.resize(random() % file.size());
        const auto shared = SharedBytes::copy_of(file);
        (void)bmodel_inspector()->inspect(shared, chip::Detail::all);
        (void)bmodel_checker()->check(shared);
        (void)bmodel_extractor()->parts_of(shared);
    }
}

/// The vendor's: sizes equal to the file's, no fault.
TEST(Bmodel, PublishedFiles) {
    REEF_SHARED_OR_SKIP(shared);
    std::size_t files = 0;
    for (const auto& path : test::shared_files("data/sophgo/bmodel", ".bmodel")) {
        SCOPED_TRACE(path);
        const auto file = read_file(path).value();
        const auto bmodel = read_bmodel(file);
        ASSERT_TRUE(bmodel) << bmodel.error().message();
        EXPECT_EQ(bmodel->section_offset() + bmodel->header.binary_size, file.size());
        EXPECT_TRUE(check_bmodel(*bmodel).passed());
        EXPECT_FALSE(report_of(*bmodel, chip::Detail::all).sections.empty());
        ++files;
    }
    EXPECT_EQ(files, 5U) << shared;
    const auto path = shared / "data/sophgo/bmodel/toy_constructed.bmodel";
    const auto good = read_file(path).value();
    std::vector<std::byte> flipped(good.view().begin(), good.view().end());
    flipped[flipped.size() - 5] ^= std::byte{1};
    EXPECT_THAT(faults_of(flipped), Contains(HasSubstr("SHA-256")));
}

std::string md5_text(std::string_view text) {
    const Md5 digest = md5(as_bytes(text));
    return to_hex(std::as_bytes(std::span(digest)));
}

// The suite of RFC 1321, and lengths around a block's end by coreutils' md5sum.
TEST(Md5, IsTheStandards) {
    EXPECT_EQ(md5_text(""), "d41d8cd98f00b204e9800998ecf8427e");
    EXPECT_EQ(md5_text("abc"), "900150983cd24fb0d6963f7d28e17f72");
    EXPECT_EQ(md5_text("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
    EXPECT_EQ(md5_text("12345678901234567890123456789012345678901234567890123456789012345678901234"
                       "567890"),
              "57edf4a22be3c955ac49da2e2107b67a");
    EXPECT_EQ(md5_text(std::string(55, 'a')), "ef1772b6dff9a122358552954ad0df65");
    EXPECT_EQ(md5_text(std::string(56, 'a')), "3b0c8ac703f828b04c6c197006d17218");
    EXPECT_EQ(md5_text(std::string(64, 'a')), "014842d480b571495a4a0363793f7367");
}

/// A header as the format has it, around a body with its MD5.
std::string small_cvimodel() {
    const std::string body = "the tables and the sections";
    const Md5 digest = md5(as_bytes(body));
    return "CviModel" + std::string("\x0a\0\0\0\x01\x04", 6) +
           std::string(digest.begin(), digest.end()) + "cv181x" + std::string(10, '\0') + "Cv" +
           body;
}

TEST(Cvimodel, TellsAndChecksItsHeader) {
    std::string file = small_cvimodel();
    const auto inspector = cvimodel_inspector();
    const auto checker = cvimodel_checker();
    const auto bytes = [&] { return SharedBytes::copy_of(as_bytes(file)); };
    EXPECT_TRUE(inspector->recognises(as_bytes(file)));
    const auto report = inspector->inspect(bytes(), chip::Detail::all);
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_TRUE(checker->check(bytes())->passed());
    for (std::size_t at = 48; at < file.size(); ++at) {
        file[at] ^= 1;
        EXPECT_FALSE(checker->check(bytes())->passed()) << at;
        file[at] ^= 1;
    }
    for (const std::size_t size : {20U, 47U, 57U}) {
        file = small_cvimodel().substr(0, size);
        EXPECT_FALSE(inspector->inspect(bytes(), chip::Detail::all)) << size;
        EXPECT_FALSE(checker->check(bytes())) << size;
    }
    // Cut off behind the tables: read, but not whole.
    file = small_cvimodel().substr(0, 60);
    EXPECT_FALSE(checker->check(bytes())->passed());
}

}  // namespace
}  // namespace reef::sophgo
