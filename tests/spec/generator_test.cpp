#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "spec.h"

namespace reef::specgen {
namespace {

// One instruction of one word with the opcode in its place and these fields.
std::string isa_with(const std::string& fields) {
    return R"(<isa name="x" title="x" wordbits="128">
<space is="0" name="tile"/>
<enum name="colour" grade="guess"><value is="0" name="red"/><value is="3" name="blue"/></enum>
<record name="pair"><parameter name="A">a</parameter>
<field name="low" width="A" type="unsigned" grade="exact">Low.</field>
<repeat count="2"><field name="part{i}" width="A+1" type="signed" grade="exact">Part {i}.</field>
</repeat></record>
<instruction space="tile" opcode="1" name="one" words="1" grade="exact">
<opcode at="6" width="5"/><space at="11" width="1"/>)" +
           fields + "</instruction></isa>";
}

std::string error_of(const std::string& fields) {
    const auto isa = read_isa(isa_with(fields));
    return isa ? "" : isa.error().message();
}

TEST(Generator, CoversEveryBitOnce) {
    const auto isa =
        read_isa(isa_with(R"(<field name="a" at="12" width="4" type="mask" grade="exact">A.</field>
                    <use record="pair" name="p" at="40" A="3"/>)"));
    ASSERT_TRUE(isa) << isa.error().message();
    const auto& one = isa->instructions.at(0);
    unsigned covered = 6;  // opcode and space
    for (const auto& field : one.fields) covered += field.width;
    EXPECT_EQ(covered, 128u);
    EXPECT_TRUE(std::ranges::is_sorted(one.fields, {}, &Field::position));
    ASSERT_EQ(one.groups.size(), 1u);
    const auto& part = one.fields.at(one.groups[0].first + 2);
    EXPECT_EQ(part.name, "p.part1");
    EXPECT_EQ(part.position, 47u);
    EXPECT_EQ(part.width, 4u);
    EXPECT_EQ(part.meaning, "Part 1.");
}

TEST(Generator, SeenValuesReachTheTablesAndThePage) {
    const auto isa = read_isa(isa_with(R"(
        <field name="a" at="12" width="4" type="mask" grade="exact" seen="0 2..4 0xd">A.</field>
        <field name="b" at="16" width="4" type="mask" grade="exact" only="5">B.</field>
        <field name="c" at="20" width="4" type="mask" grade="exact" seen="0..3">C.</field>)"));
    ASSERT_TRUE(isa) << isa.error().message();
    const auto header = isa_header(*isa);
    EXPECT_NE(header.find("seen_0_2_3_4_13[] = {0, 2, 3, 4, 13};"), std::string::npos);
    EXPECT_NE(header.find(R"("A.", "", seen_0_2_3_4_13, -1})"), std::string::npos) << header;
    EXPECT_NE(header.find(R"("B.", "", seen_5, 5})"), std::string::npos);
    const auto page = isa_page(*isa);
    EXPECT_NE(page.find("Only 0, 2, 3, 4 and 13 are simulated."), std::string::npos) << page;
    EXPECT_NE(page.find("Only 5 is simulated."), std::string::npos);
    EXPECT_NE(page.find("Only 0 to 3 are simulated."), std::string::npos);
}

TEST(Generator, RefusesOverlappingFields) {
    const auto text =
        error_of(R"(<field name="a" at="12" width="4" type="mask" grade="exact">A.</field>
                    <field name="b" at="15" width="4" type="mask" grade="exact">B.</field>)");
    EXPECT_NE(text.find("fields a and b overlap at bit 15"), std::string::npos) << text;
}

TEST(Generator, RefusesFieldOverTheOpcode) {
    const auto text =
        error_of(R"(<field name="a" at="8" width="4" type="mask" grade="exact">A.</field>)");
    EXPECT_NE(text.find("overlap at bit 8"), std::string::npos) << text;
}

TEST(Generator, RefusesFieldBeyondTheInstruction) {
    const auto text =
        error_of(R"(<field name="a" at="120" width="9" type="mask" grade="exact">A.</field>)");
    EXPECT_NE(text.find("ends beyond bit 127"), std::string::npos) << text;
}

TEST(Generator, RefusesUnknownGradesTypesNamesAndRecords) {
    const auto field = [](const std::string& rest) {
        return error_of(R"(<field name="a" at="12" )" + rest + ">A.</field>");
    };
    EXPECT_NE(field(R"(width="4" type="mask" grade="sure")").find("unknown grade sure"),
              std::string::npos);
    EXPECT_NE(field(R"(width="4" type="number" grade="exact")").find("unknown type number"),
              std::string::npos);
    EXPECT_NE(field(R"(width="4" type="enum:x" grade="exact")").find("unknown enumeration"),
              std::string::npos);
    EXPECT_NE(field(R"(width="1" type="enum:colour" grade="exact")").find("blue does not fit"),
              std::string::npos);
    EXPECT_NE(field(R"(width="57" type="mask" grade="exact")").find("1 to 56 bits"),
              std::string::npos);
    EXPECT_NE(field(R"(width="4" typo="mask" grade="exact")").find("unknown attribute typo"),
              std::string::npos);
    EXPECT_NE(field(R"(type="mask" grade="exact")").find("width is missing"), std::string::npos);
    EXPECT_NE(field(R"(width="2" type="mask" grade="exact" only="4")").find("a does not hold 4"),
              std::string::npos);
    EXPECT_NE(field(R"(width="2" type="mask" grade="exact" seen="0 4")").find("a does not hold 4"),
              std::string::npos);
    EXPECT_NE(field(R"(width="4" type="mask" grade="exact" seen="3")").find("at least two values"),
              std::string::npos);
    EXPECT_NE(field(R"(width="4" type="mask" grade="exact" seen="3 3")").find("ascending order"),
              std::string::npos);
    EXPECT_NE(field(R"(width="4" type="mask" grade="exact" seen="3..1")").find("ascending order"),
              std::string::npos);
    EXPECT_NE(field(R"(width="9" type="mask" grade="exact" seen="0..99")").find("more than 64"),
              std::string::npos);
    EXPECT_NE(
        field(R"(width="4" type="mask" grade="exact" only="1" seen="1 2")").find("only and seen"),
        std::string::npos);
    EXPECT_NE(error_of(R"(<use record="none" name="p" at="40"/>)").find("unknown record"),
              std::string::npos);
    EXPECT_NE(error_of(R"(<use record="pair" name="p" at="40"/>)").find("A is missing"),
              std::string::npos);
    EXPECT_NE(error_of(R"(<include layout="none"/>)").find("unknown layout"), std::string::npos);
}

TEST(Generator, RefusesOpcodesAndFieldsThatOccurTwice) {
    auto twice = isa_with("");
    const auto begin = twice.find("<instruction");
    const auto instruction = twice.substr(begin, twice.find("</isa>") - begin);
    twice.insert(begin, instruction);
    const auto isa = read_isa(twice);
    ASSERT_FALSE(isa);
    EXPECT_NE(isa.error().message().find("occurs twice"), std::string::npos);
    const auto text =
        error_of(R"(<field name="a" at="12" width="4" type="mask" grade="exact">A.</field>
                    <field name="a" at="20" width="4" type="mask" grade="exact">B.</field>)");
    EXPECT_NE(text.find("field a occurs twice"), std::string::npos) << text;
}

TEST(Generator, RefusesOpcodesThatStandElsewhere) {
    const auto with = [](const std::string& second) {
        auto xml = isa_with("");
        return read_isa(xml.insert(xml.find("</isa>"),
                                   "<instruction space='tile' opcode='2' name='two' "
                                   "words='1' grade='exact'>" +
                                       second + "</instruction>"));
    };
    const std::string space = "<space at='11' width='1'/>";
    EXPECT_TRUE(with("<opcode at='6' width='5'/>" + space));
    EXPECT_FALSE(with("<opcode at='5' width='5'/>" + space));
    EXPECT_FALSE(with("<opcode at='6' width='1'/>" + space));
    EXPECT_FALSE(with("<opcode at='6' width='5'/>"));
    EXPECT_FALSE(with(space));
    EXPECT_FALSE(read_isa(
        "<isa name='x' title='x' wordbits='128'><instruction opcode='1' name='one' words='1' "
        "grade='exact'><opcode at='62' width='5'/></instruction></isa>"));
    EXPECT_FALSE(read_isa(
        "<isa name='x' title='x' wordbits='64'><record name='r' kind='bag'><field name='f' "
        "width='1' "
        "type='flag' grade='exact'>F.</field></record><instruction opcode='1' name='one' words='1' "
        "grade='exact'><opcode at='0' width='5'/><use record='r' name='r' at='8'/></instruction>"
        "</isa>"));
}

TEST(Generator, NamesTheChipOfTheDescription) {
    const auto isa = read_isa(isa_with(""));
    ASSERT_TRUE(isa) << isa.error().message();
    const auto header = isa_header(*isa);
    EXPECT_NE(header.find("namespace reef::x::spec {"), std::string::npos);
    EXPECT_NE(header.find("enum class Colour"), std::string::npos);
    EXPECT_NE(isa_page(*isa).find("Generated from spec/x/isa.xml"), std::string::npos);
}

TEST(Generator, RefusesBrokenXml) {
    for (const auto* xml :
         {"", "<isa", "<other/>", "<isa name='x' title='x' wordbits='64'/>",
          "<isa name='x' title='x' wordbits='32'/>", "<isa name='X-1' title='x' wordbits='64'/>"})
        EXPECT_FALSE(read_isa(xml)) << xml;
    for (const auto* xml :
         {"", "<registers/>", "<registers name='x' title='x'><group/></registers>"})
        EXPECT_FALSE(read_registers(xml)) << xml;
}

TEST(Generator, RefusesOverlappingRegisterFields) {
    const auto file = read_registers(
        "<registers name='x' title='x'><group name='g'><register name='r' offset='0x10'>"
        "<field name='a' at='0' width='4' grade='exact'>A.</field>"
        "<field name='b' at='3' width='4' grade='exact'>B.</field>"
        "</register></group></registers>");
    ASSERT_FALSE(file);
    EXPECT_NE(file.error().message().find("overlaps"), std::string::npos);
}

TEST(Generator, ReadsWidthsAndResetValues) {
    const auto file = read_registers(
        "<registers name='x' title='x'><group name='g' bits='32'><register name='r' offset='0x10' "
        "reset='0xff'/></group><group name='h'><register name='s' offset='0x20'/></group>"
        "</registers>");
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ(file->registers[0].bits, 32U);
    EXPECT_EQ(file->registers[0].reset, std::optional<std::uint64_t>(0xff));
    EXPECT_EQ(file->registers[1].bits, 64U);
    EXPECT_FALSE(file->registers[1].reset);
    EXPECT_FALSE(
        read_registers("<registers name='x' title='x'><group name='g' bits='16'/></registers>"));
    const auto outside = read_registers(
        "<registers name='x' title='x'><group name='g' bits='32'><register name='r' offset='0x10'>"
        "<field name='a' at='30' width='4' "
        "grade='exact'>A.</field></register></group></registers>");
    EXPECT_FALSE(outside);
}

TEST(Generator, ReadsCountsOfRegisterFiles) {
    const auto file = read_registers(
        "<registers name='x' title='x'><group name='g'><register name='r' offset='0x10' count='8'/>"
        "<register name='s' offset='0x60'/></group></registers>");
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ(file->registers[0].count, 8U);
    EXPECT_EQ(file->registers[1].count, 1U);
    EXPECT_NE(registers_page(*file).find("a file of 8 registers"), std::string::npos);
    EXPECT_FALSE(
        read_registers("<registers name='x' title='x'><group name='g'><register name='r' "
                       "offset='0x10' count='0'/></group></registers>"));
}

TEST(Operators, RefusesOtherGradesAndTheSameTwice) {
    const auto list = [](std::string_view rows) {
        return read_operators(
            fmt::format("<operators name=\"x\" title=\"t\">{}</operators>", rows));
    };
    const auto good = list("<operator name=\"ADD\" grade=\"seen\">no limit</operator>");
    ASSERT_TRUE(good) << good.error().message();
    EXPECT_EQ(good->operators.at(0).limit, "no limit");
    EXPECT_FALSE(list("<operator name=\"ADD\" grade=\"exact\"/>"));
    EXPECT_FALSE(
        list("<operator name=\"ADD\" grade=\"seen\"/><operator name=\"ADD\" "
             "grade=\"seen\"/>"));
    EXPECT_FALSE(list("<register name=\"ADD\"/>"));
}

std::string segments(unsigned count) {
    std::string out;
    for (unsigned s = 0; s < count; ++s)
        out += s + 1 < count ? fmt::format("<segment below='{}' is='1 2 3 4 5'/>", s)
                             : "<segment is='1 2 3 4 -5e-1'/>";
    return out;
}

Result<MachineFacts> machine(const std::string& rows) {
    return read_machine("<machine name='x' title='t'>" + rows + "</machine>");
}

TEST(Machine, ReadsSizesAssumptionsAndFunctions) {
    const auto facts = machine(
        "<size name='rows' is='0x10' unit='rows' grade='fitted'>of something</size>"
        "<assumption name='clock' title='the clock' is='5e8' unit='Hz'>press</assumption>"
        "<function name='f' least='-1' most='2' grade='exact' meaning='x'>" +
        segments(8) + "</function>");
    ASSERT_TRUE(facts) << facts.error().message();
    EXPECT_EQ(facts->sizes.at(0).value, 16U);
    EXPECT_EQ(facts->assumptions.at(0).value, 5e8);
    EXPECT_EQ(facts->functions.at(0).segments.at(7), (Polynomial{1, 2, 3, 4, -0.5F}));
    EXPECT_EQ(facts->functions.at(0).breaks, (std::vector<float>{0, 1, 2, 3, 4, 5, 6}));
    const auto header = machine_header(*facts);
    EXPECT_NE(header.find("using Polynomials = hw::Piecewise<8, 5>;"), std::string::npos);
    EXPECT_NE(header.find("inline constexpr std::size_t rows = 0x10;"), std::string::npos);
    EXPECT_NE(header.find("{1.0F, 2.0F, 3.0F, 4.0F, -0.5F, }"), std::string::npos) << header;
}

TEST(Machine, RefusesWhatIsIncomplete) {
    EXPECT_FALSE(machine("<size name='rows' is='many' unit='rows' grade='fitted'/>"));
    EXPECT_FALSE(machine("<size name='rows' is='1' unit='rows' grade='sure'/>"));
    EXPECT_FALSE(machine("<assumption name='c' title='c' is='1' unit='Hz'/>"));
    EXPECT_FALSE(machine("<assumption name='c' title='c' is='1 2' unit='Hz'>press</assumption>"));
    EXPECT_FALSE(
        machine("<size name='a' is='1' unit='rows' grade='exact'/>"
                "<size name='a' is='2' unit='rows' grade='exact'/>"));
    const auto function = [](const std::string& rows) {
        return machine("<function name='f' least='-1' most='2' grade='exact' meaning='x'>" + rows +
                       "</function>");
    };
    EXPECT_FALSE(machine("<function name='f' least='2' most='2' grade='exact' meaning='x'>" +
                         segments(8) + "</function>"));
    EXPECT_FALSE(function(""));
    EXPECT_TRUE(function(segments(7)));
    EXPECT_FALSE(machine("<function name='f' least='0' most='1' grade='exact' meaning='x'>" +
                         segments(8) +
                         "</function><function name='g' least='0' most='1' grade='exact' "
                         "meaning='x'>" +
                         segments(7) + "</function>"));
    EXPECT_FALSE(function(segments(1) + segments(7)));
    EXPECT_FALSE(function("<segment below='2' is='1 2 3 4 5'/>" + segments(7)));
    EXPECT_FALSE(function("<segment below='-1' is='1 2 3 4'/>" + segments(7)));
    EXPECT_FALSE(function("<segment below='-1' is='1 2 3 4 5 6'/>" + segments(7)));
    EXPECT_TRUE(function("<segment below='-1' is='1 2 3 4 5'/>" + segments(7)));
}

TEST(Forms, AreRefusedTwiceWithoutATextAndWithoutAFile) {
    const auto read = [](const std::string& rows) {
        return read_forms(
            fmt::format("<forms name=\"x\" title=\"t\"><doc>d</doc>{}</forms>", rows));
    };
    const auto good = read(
        "<form seen=\"3\" files=\"2\">b one</form><form seen=\"1\" "
        "files=\"1\">a</form>");
    ASSERT_TRUE(good) << good.error().message();
    EXPECT_EQ(good->forms.front().text, "b one");
    const auto header = forms_header(*good);
    EXPECT_NE(header.find("\"a\",\n    \"b one\",\n"), std::string::npos) << header;
    EXPECT_NE(forms_page(*good).find("| b one | 3 | 2 |"), std::string::npos);
    EXPECT_FALSE(
        read("<form seen=\"1\" files=\"1\">a</form><form seen=\"1\" files=\"1\">a</form>"));
    EXPECT_FALSE(read("<form seen=\"1\" files=\"1\"></form>"));
    EXPECT_FALSE(read("<form seen=\"1\" files=\"2\">a</form>"));
    EXPECT_FALSE(read("<form seen=\"1\" files=\"0\">a</form>"));
    EXPECT_FALSE(read("<other/>"));
}

}  // namespace
}  // namespace reef::specgen
