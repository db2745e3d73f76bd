// Kinds of files that a chip's tools know besides models: what a file is, what it holds, how two
// differ, what can be taken out.
//
// A file's first bytes decide its kind, never its name. All of it is for untrusted files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/chip/part.h"
#include "reef/chip/report.h"

namespace reef::chip {

/// What parts for files have in common.
class FileKind : public Part {
  public:
    /// For people, without article: "toy tape".
    [[nodiscard]] virtual std::string_view kind() const = 0;
    /// What names of such files end in, without the dot, for examples: "tape".
    [[nodiscard]] virtual std::string_view ending() const = 0;
    /// Cheap, and never true for a TFLite model. A broken file of this kind is one of this kind.
    [[nodiscard]] virtual bool recognises(Bytes file) const = 0;
};

/// Sections for people, the same for programs.
struct FileReport {
    std::vector<Section> sections;
    Object document;
};

/// Enrolled as a part of a family of chips, one for each kind.
class FileInspector : public FileKind {
  public:
    /// Errors: bad_input, unsupported with the place in the file.
    [[nodiscard]] virtual Result<FileReport> inspect(const SharedBytes& file,
                                                     Detail detail) const = 0;
};

struct FileDifferences {
    bool same = true;
    FileReport report;
};

class FileComparer : public FileKind {
  public:
    /// Of two files of this kind. Errors: as FileInspector; their place begins with "A" or "B".
    [[nodiscard]] virtual Result<FileDifferences> differences(const SharedBytes& a,
                                                              const SharedBytes& b) const = 0;
};

/// A stretch of a file that has a name; '/' separates its parts, the last of which has an ending.
struct FilePart {
    std::string name;
    std::string what;  ///< for people
    SharedBytes bytes;
};

class FileExtractor : public FileKind {
  public:
    /// How names of parts may begin, for examples.
    [[nodiscard]] virtual std::vector<std::string_view> example_parts() const = 0;
    /// In the order of the file's own tables. Names are different from each other and have no
    /// empty part, "." or "..". Errors: as FileInspector.
    [[nodiscard]] virtual Result<std::vector<FilePart>> parts_of(const SharedBytes& file) const = 0;
};

}  // namespace reef::chip
