// One operator and the tensors that it is measured on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reef/model/builder.h"

namespace reef::cpu {

struct Operand {
    ElementType type = ElementType::float32;
    std::vector<std::int32_t> shape;
    model::Quantization quantization{};
    std::vector<std::byte> constant{};  ///< in the model; else the operand changes from run to run

    [[nodiscard]] std::size_t count() const;
    [[nodiscard]] std::size_t bytes() const;
};

/// A constant int32 vector, a scalar where it is one value.
[[nodiscard]] Operand constant_of(std::vector<std::int32_t> values);
/// A constant of random bytes, or of int32s near 0.
[[nodiscard]] Operand random_constant(ElementType type, std::vector<std::int32_t> shape,
                                      model::Quantization quantization);

struct Case {
    std::string text;
    model::Op op;
    std::vector<Operand> inputs;
    std::vector<Operand> outputs;
    model::Options options{};
    bool is_large = false;  ///< --smoke leaves it out
};

/// Its one operator as a network. Error (bad_argument): it is none.
[[nodiscard]] Result<model::Model> model_of(const Case& one);

/// What it reads and writes, constants left out: a memcpy of half as many moves as many.
[[nodiscard]] std::size_t bytes_moved(const Case& one);

}  // namespace reef::cpu
