#include "hw/assembly_text.h"
#include "reef/rk3588/command_words.h"

namespace reef::rk3588 {
namespace {

class Reader final : public hw::InstructionReader {
  public:
    Status read(std::string_view mnemonic, hw::LineTokens& fields,
                std::vector<std::byte>& out) override {
        const auto* info = command_words().find(mnemonic);
        if (!info) return hw::wrong_token("unknown register", mnemonic);
        hw::InstructionBuilder builder(*info);
        if (const auto* target = info->find("target"); target != nullptr && target->only >= 0)
            REEF_CHECK(builder.set("target", target->only));
        hw::FieldWriter writer(builder);
        for (auto token = fields.next(); !token.empty(); token = fields.next())
            REEF_CHECK(in_place(set(writer, token), info->name));
        const Bytes made = builder.bytes();
        out.insert(out.end(), made.begin(), made.end());
        return {};
    }

  private:
    static Status set(hw::FieldWriter& writer, std::string_view token) {
        const auto [name, value] = REEF_TRY(hw::field_text_of(token));
        const auto index = writer.find(name);
        if (!index) return hw::wrong_token("no such field", token);
        return writer.set(*index, value);
    }
};

}  // namespace

Result<std::vector<AssembledStream>> assemble(std::string_view text) {
    Reader reader;
    return hw::assemble_streams(text, word_bytes, reader);
}

}  // namespace reef::rk3588
