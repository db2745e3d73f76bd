#include <fmt/format.h>

#include <string_view>
#include <unordered_set>

#include "base/zip.h"
#include "reef/base/npy.h"

namespace reef {
namespace {

constexpr std::string_view ending = ".npy";

/// A small file that would take all memory is refused before any is spent.
Status check_expansion(const std::vector<ZipMember>& members, std::size_t packed) {
    constexpr std::uint64_t never_too_large = std::uint64_t{256} << 20, most_times = 200;
    std::uint64_t unpacked = 0;
    for (const ZipMember& member : members) unpacked += member.size;
    if (unpacked <= never_too_large || unpacked <= most_times * packed) return {};
    return fail(Cause::bad_input,
                fmt::format("an .npz file of {} bytes that unpacks to {}", packed, unpacked), {},
                "give arrays that are so regular and so large as .npy files");
}

}  // namespace

Result<NamedArrays> read_npz(Bytes file) {
    const std::vector<ZipMember> members = REEF_TRY(read_zip(file));
    REEF_CHECK(check_expansion(members, file.size()));
    std::unordered_set<std::string_view> names;
    NamedArrays arrays;
    arrays.reserve(members.size());
    for (const ZipMember& member : members) {
        const std::string place = fmt::format("member '{}'", member.name);
        if (!member.name.ends_with(ending)) {
            return fail(Cause::unsupported, "a member of an .npz file that is not .npy", place,
                        "remove it from the archive");
        }
        if (!names.insert(member.name).second) {
            return fail(Cause::bad_input, "two members with the same name", place);
        }
        const std::vector<std::byte> unpacked = REEF_TRY(in_place(unpack(member), place));
        arrays.emplace_back(member.name.substr(0, member.name.size() - ending.size()),
                            REEF_TRY(in_place(read_npy(unpacked), place)));
    }
    return arrays;
}

Result<std::vector<std::byte>> write_npz(const NamedArrays& arrays, Compression compression) {
    const ZipMethod method =
        compression == Compression::stored ? ZipMethod::stored : ZipMethod::deflated;
    std::unordered_set<std::string_view> names;
    ZipWriter writer;
    for (const auto& [name, array] : arrays) {
        const std::string place = fmt::format("array '{}'", name);
        if (!names.insert(name).second) {
            return fail(Cause::bad_argument, "two arrays with the same name", place);
        }
        const std::vector<std::byte> file = REEF_TRY(in_place(write_npy(array), place));
        REEF_CHECK(in_place(writer.add(name + std::string(ending), file, method), place));
    }
    return std::move(writer).finish();
}

}  // namespace reef
