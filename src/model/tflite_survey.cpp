#include "model/tflite_survey.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/flatbuffer_survey.h"
#include "reef_schema/tflite_generated.h"

namespace reef::model {
namespace {

Status check_identifier(Bytes file) {
    constexpr std::size_t header = 8;  // root offset, identifier
    if (file.size() < header) {
        return fail(Cause::bad_input,
                    fmt::format("{} bytes are too few for a .tflite file", file.size()), {},
                    "the file is empty or truncated");
    }
    const std::string_view identifier = as_text(file.subspan(4, 4));
    if (identifier == schema::ModelIdentifier()) return {};
    const bool text = std::ranges::all_of(identifier, [](char c) { return c > ' ' && c < 0x7f; });
    if (text) {
        return fail(Cause::bad_input,
                    fmt::format("file identifier '{}' at byte 4, not 'TFL3'", identifier), {},
                    "this is no TFLite model");
    }
    return fail(Cause::bad_input, "no file identifier 'TFL3' at byte 4", {},
                "this is no TFLite model");
}

/// The root table's place, which a truncated file most often loses: TFLite's writers put it near
/// the front, but others need not.
Status check_root(Bytes file) {
    const auto root = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(file.data());
    if (root >= 8 && root <= file.size() - 4) return {};
    return fail(Cause::bad_input,
                fmt::format("the root table would be at byte {} of {}", root, file.size()), {},
                "the file is truncated or damaged");
}

Status check_sound(Bytes file) {
    flatbuffers::Verifier::Options limits;
    limits.max_depth = 16;  // the schema's own nesting is 5
    limits.max_tables =
        static_cast<flatbuffers::uoffset_t>(std::min<std::size_t>(file.size() / 4, 4'000'000));
    // Data beyond 2 GiB lie outside the FlatBuffer.
    const std::size_t size = std::min<std::size_t>(file.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
    flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(file.data()), size,
                                   limits);
    if (schema::VerifyModelBuffer(verifier)) return {};
    return fail(Cause::bad_input,
                fmt::format("not a sound FlatBuffer: a table, vector or string is misplaced or "
                            "reaches past the file's {} bytes",
                            file.size()),
                {}, "the file is truncated or damaged");
}

}  // namespace

std::uint64_t expansion_limit(std::size_t file_size) {
    return std::uint64_t{8} * file_size + (std::uint64_t{1} << 20);
}

Result<Survey> survey_tflite(Bytes file) {
    REEF_CHECK(check_identifier(file));
    REEF_CHECK(check_root(file));
    REEF_CHECK(check_sound(file));
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
    FlatbufferSurvey found = survey_flatbuffer(*flatbuffers::GetRoot<flatbuffers::Table>(bytes),
                                               *schema::ModelTypeTable(), "the model");
    if (found.misaligned != nullptr) {
        return fail(
            Cause::bad_input,
            fmt::format("the vector at byte {} is off its alignment", found.misaligned - bytes), {},
            "the file is damaged");
    }
    if (found.payload_bytes > expansion_limit(file.size())) {
        return fail(Cause::bad_input,
                    fmt::format("{} bytes of file stand for {} bytes of model: the same vectors "
                                "are referred to again and again",
                                file.size(), found.payload_bytes),
                    {}, "the file is damaged or hostile");
    }
    return Survey{std::move(found.unknown)};
}

}  // namespace reef::model
