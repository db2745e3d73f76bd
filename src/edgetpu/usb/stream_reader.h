// Instruction streams as they come over USB: cut where they end, translated once.
#pragma once

#include <memory>
#include <vector>

#include "edgetpu/sim/machine/machine.h"

namespace reef::edgetpu::usb {

/// A translated stream with its bytes.
struct TranslatedStream {
    std::vector<std::byte> bytes;
    sim::Program program;  ///< of this one stream
};

class StreamReader {
  public:
    /// Takes bytes up to the end of a stream; gives the stream when it is complete, else null.
    /// `bytes` then begins behind what was taken.
    /// Errors: those of translate_program; bad_input for words that are no instruction and for
    /// streams without end.
    [[nodiscard]] Result<std::shared_ptr<const TranslatedStream>> take(Bytes& bytes);

    /// Forgets the stream that has begun; translated ones stay.
    void clear();

    [[nodiscard]] std::uint64_t translations() const { return translations_; }

  private:
    /// The one that the bytes begin with.
    [[nodiscard]] std::shared_ptr<const TranslatedStream> known(Bytes bytes);
    [[nodiscard]] Result<bool> find_end();
    [[nodiscard]] Result<std::shared_ptr<const TranslatedStream>> translate();
    void keep(std::shared_ptr<const TranslatedStream> stream);

    std::vector<std::byte> begun_;
    std::size_t walked_ = 0;  ///< bytes of begun_ up to the next instruction
    std::vector<std::shared_ptr<const TranslatedStream>> known_;  ///< used last at the end
    std::uint64_t translations_ = 0;
};

}  // namespace reef::edgetpu::usb
