// Files: read whole or mapped, written so that nothing is ever half written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "reef/base/bytes.h"
#include "reef/base/result.h"

namespace reef {

/// What read_file takes from something that is not a regular file.
inline constexpr std::size_t max_stream_bytes = std::size_t{1} << 28;

enum class FileAccess : std::uint8_t {
    whole,
    /// Little of a large file: the system reads the pages that are touched or asked for with
    /// will_read(), and none around them.
    scattered,
};

/// Maps a regular file read-only; "-" reads standard input to its end, and other things that cannot
/// be mapped (pipes, empty files) are read, up to max_stream_bytes. A mapped file must not be
/// truncated while it is in use; files that write_file replaces are not.
///
/// Errors carry the path as place: not_found, io_failed for a folder and, with the system's words,
/// for the rest (permission, medium); bad_argument for what is no path.
[[nodiscard]] Result<SharedBytes> read_file(const std::string& path,
                                            FileAccess access = FileAccess::whole);

/// Lets the system begin to read these bytes of a mapped file. No effect on others.
void will_read(Bytes mapped);

/// Lets go of the memory that whole pages of these bytes take, where they are of a file that
/// read_file() mapped: whoever reads them all the same gets them from the file again. No effect on
/// others.
void will_not_read(const SharedBytes& bytes);

/// Writes to a temporary file beside `path` and renames it over `path`; on failure `path` is as it
/// was and the temporary file is gone. The mode stays that of the file before; the umask gives a
/// new one's. "-" writes to standard output. A symbolic link stays and what it points to is
/// replaced; devices and pipes are written to as they are.
[[nodiscard]] Status write_file(const std::string& path, Bytes contents);

struct NamedContents {
    std::string path;
    Bytes contents;
};
/// Files that belong together, as write_file: all are written beside their places before the first
/// is replaced, and when one of them cannot be put in its place, those before it are what they
/// were. What went to a stream or a device is gone.
[[nodiscard]] Status write_files(std::span<const NamedContents> files);

}  // namespace reef
