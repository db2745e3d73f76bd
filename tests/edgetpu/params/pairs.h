// Compiled models of the reference data whose plain source is there too.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace reef::test {

struct CompiledPair {
    std::string name;  ///< of the compiled file, without "_edgetpu.tflite"
    std::string plain;
    std::string compiled;
};
inline void PrintTo(const CompiledPair& pair, std::ostream* out) {
    *out << pair.name;
}

/// NAME.tflite with NAME_edgetpu.tflite or NAME_cocompiled_with_..._edgetpu.tflite.
[[nodiscard]] std::vector<CompiledPair> compiled_pairs();
/// The same of models that others compiled and published.
[[nodiscard]] std::vector<CompiledPair> wild_pairs();

}  // namespace reef::test
