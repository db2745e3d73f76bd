#include <fmt/format.h>

#include "edgetpu/isa/loop_nest.h"
#include "hw/assembly_text.h"
#include "hw/value_parser.h"
#include "reef/edgetpu/assembly.h"

namespace reef::edgetpu {
namespace {

// Sets the fields that one line names.
class LineAssembler {
  public:
    explicit LineAssembler(InstructionBuilder& builder) : fields_(builder) {}

    Status set(std::string_view token) {
        const auto [name, value] = REEF_TRY(hw::field_text_of(token));
        const auto index = fields_.find(name);
        if (index) return with_name(fields_.set(*index, value), name);
        for (const auto& group : fields_.info().groups)
            if (group.name == name) return with_name(set_group(group, value), name);
        return fail(Cause::bad_input, fmt::format("no field '{}'", name.substr(0, 60)));
    }

  private:
    static Status with_name(Status status, std::string_view name) {
        return status ? status : in_place(std::move(status), fmt::format("'{}'", name));
    }

    Status put(const FieldGroup& group, std::size_t offset, std::int64_t value) {
        return fields_.set(group.first + offset, value);
    }

    Status set_group(const FieldGroup& group, std::string_view text) {
        switch (group.kind) {
            case GroupKind::loop_nest:
                return set_nest(group, text);
            case GroupKind::loops:
                return set_loops(group, text);
            case GroupKind::wait:
                return set_wait(group, text);
            case GroupKind::signal:
                return set_signal(group, text);
            case GroupKind::slot:
                return set_slot(group, text);
            case GroupKind::plain:
                break;
        }
        return fail(Cause::bad_input, "its fields are given one by one");
    }

    // BASE[STRIDExCOUNT]...
    Status set_nest(const FieldGroup& group, std::string_view text) {
        hw::ValueScanner scan(text);
        const auto base = REEF_TRY(scan.number());
        Strides strides{};
        Strides limits{};
        for (unsigned d = 0; scan.take("["); ++d) {
            if (d == group.dimensions)
                return fail(Cause::bad_input,
                            fmt::format("there are only {} dimensions", group.dimensions));
            strides[d] = static_cast<std::uint64_t>(REEF_TRY(scan.signed_decimal()));
            REEF_CHECK(scan.expect("x"));
            limits[d] = REEF_TRY(scan.count());
            REEF_CHECK(scan.expect("]"));
        }
        REEF_CHECK(scan.finish());
        REEF_CHECK(put(group, 0, static_cast<std::int64_t>(base)));
        const auto steps = steps_of(strides, limits, group.dimensions);
        for (unsigned d = 0; d < group.dimensions; ++d) {
            REEF_CHECK(put(group, 1 + 2 * d, static_cast<std::int64_t>(steps[d])));
            REEF_CHECK(put(group, 2 + 2 * d, static_cast<std::int64_t>(limits[d])));
        }
        return {};
    }

    // COUNTxCOUNT...
    Status set_loops(const FieldGroup& group, std::string_view text) {
        hw::ValueScanner scan(text);
        for (unsigned d = 0; d == 0 || scan.take("x"); ++d) {
            if (d == group.dimensions)
                return fail(Cause::bad_input, fmt::format("there are only {} loops", d));
            REEF_CHECK(put(group, d, static_cast<std::int64_t>(REEF_TRY(scan.count()))));
        }
        return scan.finish();
    }

    // COUNTER@LEVEL>=START+STEP[,destination]
    Status set_wait(const FieldGroup& group, std::string_view text) {
        hw::ValueScanner scan(text);
        const auto& counters = *fields_.info().fields[group.first].enumeration;
        REEF_CHECK(put(group, 0, REEF_TRY(scan.name(counters))));
        REEF_CHECK(scan.expect("@"));
        REEF_CHECK(put(group, 1, REEF_TRY(scan.signed_number())));
        REEF_CHECK(scan.expect(">="));
        REEF_CHECK(put(group, 2, REEF_TRY(scan.signed_number())));
        REEF_CHECK(scan.expect("+"));
        REEF_CHECK(put(group, 3, REEF_TRY(scan.signed_number())));
        REEF_CHECK(put(group, 4, 1));
        if (group.count > 5) REEF_CHECK(put(group, 5, scan.take(",destination") ? 1 : 0));
        return scan.finish();
    }

    // @LEVEL
    Status set_signal(const FieldGroup& group, std::string_view text) {
        hw::ValueScanner scan(text);
        REEF_CHECK(scan.expect("@"));
        REEF_CHECK(put(group, 0, 1));
        REEF_CHECK(put(group, 1, REEF_TRY(scan.signed_number())));
        return scan.finish();
    }

    // OPERATION(OPERAND,...)
    Status set_slot(const FieldGroup& group, std::string_view text) {
        hw::ValueScanner scan(text);
        const auto fields = fields_.info().fields.subspan(group.first, group.count);
        REEF_CHECK(put(group, 0, REEF_TRY(scan.name(*fields[0].enumeration))));
        for (std::size_t f = 1; f < fields.size(); ++f) {
            REEF_CHECK(scan.expect(f == 1 ? "(" : ","));
            REEF_CHECK(put(group, f, REEF_TRY(hw::parse_value(fields[f], scan.take_until(",)")))));
        }
        REEF_CHECK(scan.expect(")"));
        return scan.finish();
    }

    hw::FieldWriter fields_;
};

class Reader final : public hw::InstructionReader {
  public:
    Status read(std::string_view mnemonic, hw::LineTokens& fields,
                std::vector<std::byte>& out) override {
        const auto* info = find_instruction(mnemonic);
        if (!info) return hw::wrong_token("unknown instruction", mnemonic);
        InstructionBuilder builder(*info);
        LineAssembler assembler(builder);
        for (auto token = fields.next(); !token.empty(); token = fields.next())
            REEF_CHECK(in_place(assembler.set(token), info->name));
        const Bytes made = builder.bytes();
        out.insert(out.end(), made.begin(), made.end());
        return {};
    }
};

}  // namespace

Result<std::vector<AssembledStream>> assemble_streams(std::string_view text) {
    Reader reader;
    return hw::assemble_streams(text, word_bytes, reader);
}

Result<std::vector<std::byte>> assemble(std::string_view text) {
    auto streams = REEF_TRY(assemble_streams(text));
    if (streams.size() > 1)
        return fail(Cause::bad_input,
                    fmt::format("the text has {} streams where one is expected", streams.size()));
    return streams.empty() ? std::vector<std::byte>{} : std::move(streams[0].bytes);
}

}  // namespace reef::edgetpu
