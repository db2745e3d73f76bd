// ZIP archives in memory, as far as .npz needs them: stored and deflated members, no encryption,
// one disk; zip64 is read, not written. Field layout: PKWARE APPNOTE.TXT 6.3, sections 4.3 to 4.5.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"

namespace reef {

enum class ZipMethod : std::uint16_t { stored = 0, deflated = 8 };

struct ZipMember {
    std::string name;  ///< UTF-8
    ZipMethod method = ZipMethod::stored;
    std::uint32_t crc = 0;
    std::uint64_t size = 0;  ///< unpacked; not above max_deflate_ratio times packed.size()
    Bytes packed;            ///< inside the archive
};

/// A length and distance pair of 2 bits makes 258 bytes: no deflate stream expands more.
inline constexpr std::uint64_t max_deflate_ratio = 1032;

/// The members in the order of the central directory. Members may not share bytes, so all of them
/// together unpack to at most max_deflate_ratio times the archive.
[[nodiscard]] Result<std::vector<ZipMember>> read_zip(Bytes archive);

/// The unpacked bytes; the length and the CRC-32 are checked.
[[nodiscard]] Result<std::vector<std::byte>> unpack(const ZipMember& member);

/// Builds an archive member by member; equal calls give equal bytes (every date is 1980-01-01).
class ZipWriter {
  public:
    [[nodiscard]] Status add(const std::string& name, Bytes contents, ZipMethod method);
    [[nodiscard]] Result<std::vector<std::byte>> finish() &&;

  private:
    std::vector<std::byte> archive_;
    std::vector<std::byte> directory_;
    std::uint32_t count_ = 0;
};

[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace reef
