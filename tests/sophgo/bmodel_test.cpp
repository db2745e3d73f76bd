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

/// What is said to differ, or the error.
std::vector<std::string> differing(const std::vector<std::byte>& a,
                                   const std::vector<std::byte>& b) {
    const auto found =
        bmodel_comparer()->differences(SharedBytes::copy_of(a), SharedBytes::copy_of(b));
    if (!found) return {found.error().message()};
    std::vector<std::string> rows;
    for (const auto& line : found->report.sections[0].lines)
        if (const auto* table = std::get_if<chip::Table>(&line))
            for (const auto& row : table->rows) rows.push_back(row[0]);
    EXPECT_EQ(found->same, rows.empty());
    return rows;
}

TEST(Bmodel, DifferencesAreNamed) {
    const auto a = small_bmodel();
    EXPECT_THAT(differing(a, a), testing::IsEmpty());
    auto tables = small_bmodel_tables();
    tables.net[0]->parameter[0]->input_tensor[0]->scale = 1;
    tables.net[0]->parameter.push_back(std::make_unique<schema::NetParameterT>());
    tables.net.push_back(std::make_unique<schema::NetT>());
    tables.net[1]->name = "other";
    const auto rows = differing(a, bmodel_file(tables, 20480, 20480));
    EXPECT_THAT(
        rows, testing::ElementsAre("net small: stages", "net small stage 0: input_tensor[0].scale",
                                   "net other: stages", "nets"));
}

struct FieldChange {
    const char* what;
    void (*change)(schema::ModelT& model);
};

schema::NetParameterT& stage_of(schema::ModelT& model) {
    return *model.net[0]->parameter[0];
}

/// With everything that the small one has not: lists of two, a cascade, a relocation.
schema::ModelT full_tables() {
    auto model = small_bmodel_tables();
    auto& stage = stage_of(model);
    stage.ctx_sizes = {4096, 8192};
    stage.coeff_mem->location.push_back(std::make_unique<schema::LocationT>());
    stage.cmd_group[0]->reloc_entries = {{0, 1, 2}, {3, 4, 5}};
    stage.stage_ir.push_back(std::make_unique<schema::StageIRT>());
    stage.sub_net[0]->next_subnet_ids = {1, 2};
    stage.sub_net[0]->input_tensor.push_back(std::make_unique<schema::TensorT>());
    stage.sub_net[0]->merge_param = std::make_unique<schema::MergeParamT>();
    stage.sub_net[0]->merge_param->output_from.push_back(std::make_unique<schema::OutputFromT>());
    model.net[0]->cascade = std::make_unique<schema::CascadeT>();
    return model;
}

TEST(Bmodel, EveryFieldIsCompared) {
    using schema::ModelT;
    const std::vector<FieldChange> changes = {
        {"time", [](ModelT& m) { m.time = "later"; }},
        {"device_num", [](ModelT& m) { m.device_num = 2; }},
        {"kernel_module.mode", [](ModelT& m) { m.kernel_module->mode = 1; }},
        {"net small: addr_mode", [](ModelT& m) { m.net[0]->addr_mode = 1; }},
        {"net small: cascade.step", [](ModelT& m) { m.net[0]->cascade->step = 1; }},
        {"net small: cascade.main_name", [](ModelT& m) { m.net[0]->cascade->main_name = "all"; }},
        {"net small stage 0: core_num", [](ModelT& m) { stage_of(m).core_num = 2; }},
        {"net small stage 0: io_addr", [](ModelT& m) { stage_of(m).io_addr = 4096; }},
        {"net small stage 0: ctx_sizes",
         [](ModelT& m) {
             stage_of(m).ctx_sizes = {8192, 4096};
         }},
        {"net small stage 0: coeff_mem.address",
         [](ModelT& m) { stage_of(m).coeff_mem->address = 0; }},
        {"net small stage 0: coeff_mem.check_code",
         [](ModelT& m) { stage_of(m).coeff_mem->check_code[31] ^= 1; }},
        {"net small stage 0: coeff_mem.location[0].offset",
         [](ModelT& m) { stage_of(m).coeff_mem->location[0]->offset = 64; }},
        {"net small stage 0: cmd_group[0].reloc_entries",
         [](ModelT& m) {
             stage_of(m).cmd_group[0]->reloc_entries[1] = {3, 4, 6};
         }},
        {"net small stage 0: stage_ir[0].width_low",
         [](ModelT& m) { stage_of(m).stage_ir[0]->width_low = 7; }},
        {"net small stage 0: output_tensor[0].relentry",
         [](ModelT& m) {
             stage_of(m).output_tensor[0]->relentry = std::make_unique<schema::RelEntry>(1, 2, 3);
         }},
        {"net small stage 0: input_tensor[0].shape[0].dim",
         [](ModelT& m) {
             stage_of(m).input_tensor[0]->shape[0]->dim = {1, 4, 3, 4};
         }},
        {"net small stage 0: sub_net[0].id", [](ModelT& m) { stage_of(m).sub_net[0]->id = 0; }},
        {"net small stage 0: sub_net[0].run_core",
         [](ModelT& m) { stage_of(m).sub_net[0]->run_core = 1; }},
        {"net small stage 0: sub_net[0].next_subnet_ids",
         [](ModelT& m) { stage_of(m).sub_net[0]->next_subnet_ids[1] = 3; }},
        {"net small stage 0: sub_net[0].input_tensor[0].device_addr",
         [](ModelT& m) { stage_of(m).sub_net[0]->input_tensor[0]->device_addr = 64; }},
        {"net small stage 0: sub_net[0].merge_param.output_from[0].indice",
         [](ModelT& m) { stage_of(m).sub_net[0]->merge_param->output_from[0]->indice = {1}; }},
    };
    const auto a = bmodel_file(full_tables(), 20480, 20480);
    for (const FieldChange& each : changes) {
        auto tables = full_tables();
        each.change(tables);
        const auto rows = differing(a, bmodel_file(tables, 20480, 20480));
        EXPECT_THAT(rows, testing::ElementsAre(each.what));
    }
    auto tables = full_tables();
    stage_of(tables).io_size = 64;
    EXPECT_THAT(differing(a, bmodel_file(tables, 20480, 20480)),
                testing::ElementsAre("net small stage 0: io_size", "runtime bytes"));
}

TEST(Bmodel, WhatNoFieldHoldsIsComparedAsBytes) {
    const auto a = small_bmodel();
    const std::size_t section = a.size() - 5 * 4096;
    const auto with = [&](std::size_t at) {
        auto file = a;
        file[at] ^= std::byte{1};
        return file;
    };
    EXPECT_THAT(differing(a, with(63)), testing::ElementsAre("bytes of the file")) << "reserved";
    EXPECT_THAT(differing(a, with(section - 1)), testing::ElementsAre("bytes of the tables"));
    EXPECT_THAT(differing(a, with(section + 5000)), testing::ElementsAre("bytes of the file"))
        << "between two ranges";
    auto longer = a;
    longer.push_back(std::byte{0});
    EXPECT_THAT(differing(a, longer), testing::ElementsAre("bytes of the file"));
    auto tables = small_bmodel_tables();
    tables.kernel_module->binary = std::make_unique<schema::Binary>(12288 + 251 * 4, 100);
    auto moved = small_bmodel_tables();
    moved.kernel_module->binary = std::make_unique<schema::Binary>(12288 + 251 * 4 + 64, 100);
    const auto rows =
        differing(bmodel_file(tables, 20480, 20480), bmodel_file(moved, 20480, 20480));
    EXPECT_THAT(rows, Contains("starts of ranges"));
}

TEST(Bmodel, NetsOfTheSameNameAreToldApart) {
    auto tables = small_bmodel_tables();
    tables.net.push_back(std::move(small_bmodel_tables().net[0]));
    tables.net[1]->parameter[0]->coeff_mem->binary_coeff =
        std::make_unique<schema::Binary>(4096 + 96, 1000);
    const auto a = bmodel_file(tables, 20480, 20480);
    auto b = a;
    b[b.size() - 20480 + 4096 + 96 + 7] ^= std::byte{1};
    EXPECT_THAT(differing(a, b), testing::ElementsAre("net small (2) stage 0: coefficients"));
    EXPECT_THAT(faults_of(a), Contains(HasSubstr("net small (2) stage 0: their SHA-256")));
    tables.net[1]->addr_mode = 2;
    EXPECT_THAT(differing(a, bmodel_file(tables, 20480, 20480)),
                testing::ElementsAre("net small (2): addr_mode"));
    // A name that looks like the second one's.
    tables.net.push_back(std::make_unique<schema::NetT>());
    tables.net[2]->name = "small (2)";
    EXPECT_THAT(read_bmodel(SharedBytes::copy_of(bmodel_file(tables, 20480, 20480)))->net_names,
                testing::ElementsAre("small", "small (2)", "small (2) (2)"));
}

TEST(Bmodel, SumsBeyondSixtyFourBitsAreAFault) {
    const std::uint64_t half = std::uint64_t{1} << 63;
    auto tables = small_bmodel_tables();
    stage_of(tables).ctx_sizes = {half, half + 4096};
    const auto file = bmodel_file(tables, 20480, 20480);
    EXPECT_THAT(faults_of(file),
                Contains("memory: device memory: the sizes in the tables add up to more than 64 "
                         "bits hold"));
    const Bmodel bmodel = read_bmodel(SharedBytes::copy_of(file)).value();
    EXPECT_EQ(activation_bytes(stage_of(tables)), ~std::uint64_t{0});
    EXPECT_EQ(memory_of(bmodel).device(), ~std::uint64_t{0});
    // Two nets with parts of their own.
    stage_of(tables).ctx_sizes = {};
    stage_of(tables).ctx_size = half;
    stage_of(tables).sub_net.push_back(std::make_unique<schema::SubNetT>());
    tables.net.push_back(std::make_unique<schema::NetT>(*tables.net[0]));
    const Bmodel two = read_bmodel(SharedBytes::copy_of(bmodel_file(tables, 20480, 20480))).value();
    EXPECT_EQ(memory_by_model_tool(two).runtime, ~std::uint64_t{0});
    EXPECT_EQ(memory_of(two).runtime, half) << "one at a time";
}

TEST(Bmodel, FieldsBeyondTheSchemaAreNamed) {
    flatbuffers::FlatBufferBuilder builder;
    const auto text = builder.CreateString("B");
    const auto nets = builder.CreateVector(std::vector<flatbuffers::Offset<schema::Net>>{});
    const auto start = builder.StartTable();
    for (const auto field : {schema::Model::VT_TYPE, schema::Model::VT_VERSION,
                             schema::Model::VT_TIME, schema::Model::VT_CHIP})
        builder.AddOffset(field, text);
    builder.AddOffset(schema::Model::VT_NET, nets);
    builder.AddElement<std::uint32_t>(schema::Model::VT_LIB_BACKEND + 2, 7, 0);
    builder.Finish(flatbuffers::Offset<schema::Model>(builder.EndTable(start)));
    const Bytes tables = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
    const Bmodel bmodel =
        read_bmodel(SharedBytes::copy_of(bmodel_file(tables, 4096, 4096))).value();
    EXPECT_THAT(bmodel.not_read, testing::ElementsAre("field 11 of the tables"));
    const auto report = report_of(bmodel, chip::Detail::glance);
    const bool shown = std::ranges::any_of(report.sections[0].lines, [](const auto& line) {
        const auto* field = std::get_if<chip::Field>(&line);
        return field != nullptr && field->name == "not read" &&
               field->text.starts_with("field 11 of the tables");
    });
    EXPECT_TRUE(shown);
    const auto findings = check_bmodel(bmodel).findings;
    const auto remark = std::ranges::find(findings, "not-read", &chip::Finding::rule);
    ASSERT_NE(remark, findings.end());
    EXPECT_FALSE(remark->fault);
    EXPECT_THAT(remark->what, HasSubstr("field 11 of the tables"));
}

TEST(Bmodel, AnyChangedOrMissingByteIsReadOrRefused) {
    const auto good = small_bmodel();
    const auto whole = SharedBytes::copy_of(good);
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
        const auto found = bmodel_comparer()->differences(whole, shared);
        EXPECT_TRUE(!found || found->same == (file == good)) << trial;
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
