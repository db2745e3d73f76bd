// The module's one door: `reef_sophgo_final_engine`.
#include "cut.h"
#include "reader.h"

namespace reef::sophgo {
namespace {

class MlirEngine final : public FinalEngine {
  public:
    [[nodiscard]] Result<FinalProgram> read(std::string_view text) const override {
        const Parsed parsed = REEF_TRY(parse(text));
        return program_of(parsed);
    }
    [[nodiscard]] Result<std::string> print(std::string_view text) const override {
        const Parsed parsed = REEF_TRY(parse(text));
        return printed(parsed);
    }
    [[nodiscard]] Result<Cut> cut(std::string_view text, const CutRequest& request) const override {
        return cut_at(text, request);
    }
};

}  // namespace
}  // namespace reef::sophgo

/// Lives as long as the module.
extern "C" const reef::sophgo::FinalEngine* reef_sophgo_final_engine() {
    static const reef::sophgo::MlirEngine engine;
    return &engine;
}
