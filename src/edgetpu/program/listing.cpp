#include "reef/edgetpu/listing.h"

#include "edgetpu/isa/line_text.h"
#include "edgetpu/program/annotation.h"

namespace reef::edgetpu {
namespace {

void append_disassembly(Bytes stream, const TextOptions& options, std::string& text) {
    TextWriter out(text);
    program::Annotator annotator;
    std::string comment;
    InstructionCursor cursor(stream);
    while (const auto instruction = cursor.next()) {
        out.begin_line();
        put_line(out, *instruction, options);
        if (options.symbolic) {
            annotator.comment(*instruction, comment);
            if (!comment.empty()) {
                out.put("  ; ");
                out.put(comment);
            }
        }
        out.put('\n');
        out.end_line();
    }
}

}  // namespace

std::string disassemble(Bytes stream, const TextOptions& options) {
    std::string text;
    append_disassembly(stream, options, text);
    return text;
}

}  // namespace reef::edgetpu
