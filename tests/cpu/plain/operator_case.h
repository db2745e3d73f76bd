// One operator on random values, with the result that its definition gives in real numbers.
//
// Nothing here is shared with the kernels: quantised values are numbers of type double, sums are
// taken in double, and the result is rounded once, at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "reef/model/builder.h"

namespace reef::plain {

using Shape = std::vector<std::int32_t>;

inline constexpr auto u8 = ElementType::uint8;
inline constexpr auto i8 = ElementType::int8;
inline constexpr auto i16 = ElementType::int16;
inline constexpr auto i32 = ElementType::int32;
inline constexpr auto i64 = ElementType::int64;
inline constexpr auto f16 = ElementType::float16;
inline constexpr auto f32 = ElementType::float32;
inline constexpr auto b8 = ElementType::boolean;
/// Types whose random values have a scale.
[[nodiscard]] constexpr bool is_quantised(ElementType type) {
    return type == u8 || type == i8 || type == i16;
}

/// Where a case's sizes and values come from: a seed, or a fuzzer's bytes and then a seed.
class Choices {
  public:
    explicit Choices(std::uint64_t seed) : random_(seed) {}
    explicit Choices(std::span<const std::uint8_t> bytes) : random_(bytes.size()), bytes_(bytes) {}

    /// In [low, high].
    std::int32_t pick(std::int32_t low, std::int32_t high);
    double real(double low, double high);
    bool one_in(std::int32_t count) { return pick(1, count) == count; }
    template <typename T>
    T one_of(std::initializer_list<T> values) {
        return values.begin()[pick(0, static_cast<std::int32_t>(values.size()) - 1)];
    }
    Shape shape(std::int32_t min_rank, std::int32_t max_rank, std::int32_t longest);
    /// Sometimes with a length of 0.
    Shape shape_or_empty(std::int32_t min_rank, std::int32_t max_rank, std::int32_t longest);

    /// From now on quantised tensors have scales far apart: results lie up to 2^30 times beyond
    /// their type's range, or are all the zero point. A definition in real numbers knows nothing
    /// of what such rescaling rounds first, so that only another implementation is to be asked.
    void draw_far_scales() { far_scales_ = true; }
    /// A power of two from 2^low to 2^high, or 1.
    double far_factor(std::int32_t low, std::int32_t high);

  private:
    std::uint32_t next();
    std::mt19937 random_;
    std::span<const std::uint8_t> bytes_;
    bool far_scales_ = false;
};

enum class Role : std::uint8_t { input, constant, state, absent };

struct Values {
    ElementType type = ElementType::float32;
    Shape shape = {};
    std::vector<double> stored = {};
    std::vector<float> scales = {};  ///< none; one; or one for each index of `axis`
    std::int64_t zero = 0;
    std::int32_t axis = 0;
    Role role = Role::input;

    [[nodiscard]] double scale(std::size_t i) const;
    [[nodiscard]] double real(std::size_t i) const {
        return scale(i) * (stored[i] - static_cast<double>(zero));
    }
    [[nodiscard]] bool quantised() const { return !scales.empty(); }
};

/// What an output must hold.
struct Expected {
    ElementType type = ElementType::float32;
    Shape shape = {};
    std::vector<double> real = {};
    /// Of a quantised output; 0: `real` is what is stored.
    float scale = 0;
    std::int64_t zero = 0;
    /// Quantised: how far the stored value may lie from the real one, in steps. 0: equal.
    double steps = 0;
    /// float32 sums: how many terms, and for each element the sum of their absolute values.
    double terms = 0;
    std::vector<double> magnitude = {};
};

struct OperatorCase {
    model::Op op = model::Op::custom;
    model::Options options = {};
    std::vector<Values> inputs = {};
    std::vector<Values> intermediates = {};
    std::vector<Expected> outputs = {};
};

/// The case as a model of one operator; constants hold their values.
[[nodiscard]] Result<model::Model> model_of(const OperatorCase& one);
/// As a tensor of the model has them.
[[nodiscard]] std::vector<std::byte> stored_bytes(const Values& values);

/// What running a case showed.
struct Outcome {
    std::string wrong;  ///< empty: both kernel sets keep the bounds, and agree
    /// Largest distance from the real result: in steps of a quantised output, for float32 in the
    /// unit of the kernel's bound.
    double most_steps = 0;
    double most_float = 0;
};
[[nodiscard]] Outcome run_case(const OperatorCase& one);

/// A distance of element i of a float32 output, in the unit of the bound that Reef's kernel states;
/// of exact and of rounded results, in units of the last place.
[[nodiscard]] double float_distance(const OperatorCase& one, std::size_t output, std::size_t i,
                                    double distance);
/// How many of these units the kernel's float32 results may lie from the real ones: 0 of exact and
/// of rounded results.
[[nodiscard]] double float_bound(model::Op op);

using CaseMaker = OperatorCase (*)(Choices& choices);
struct NamedMaker {
    model::Op op;
    CaseMaker make;
};
/// Every operator that is compared, in groups as the files have them.
[[nodiscard]] std::vector<NamedMaker> all_makers();
[[nodiscard]] std::span<const NamedMaker> elementwise_makers();
[[nodiscard]] std::span<const NamedMaker> comparison_makers();
[[nodiscard]] std::span<const NamedMaker> movement_makers();
[[nodiscard]] std::span<const NamedMaker> border_makers();
[[nodiscard]] std::span<const NamedMaker> reduction_makers();
[[nodiscard]] std::span<const NamedMaker> window_makers();
[[nodiscard]] std::span<const NamedMaker> product_makers();

/// Of float32 activations and int8 weights, for operators that all_makers() has in other types.
[[nodiscard]] std::vector<NamedMaker> hybrid_makers();
[[nodiscard]] std::span<const NamedMaker> hybrid_product_makers();
[[nodiscard]] std::span<const NamedMaker> hybrid_recurrent_makers();

// Values

[[nodiscard]] std::size_t count_of(const Shape& shape);
[[nodiscard]] std::size_t flat_index(const Shape& shape, const Shape& index);
/// `visit(index, position)` for every element in order.
void each_index(const Shape& shape,
                const std::function<void(const Shape& index, std::size_t position)>& visit);
struct TypeRange {
    double low, high;
};
[[nodiscard]] TypeRange range_of(ElementType type);
/// Where an input that repeats along some of the output's dimensions has the element for `index`.
[[nodiscard]] std::size_t broadcast_index(const Shape& shape, const Shape& index);
/// `shape` with some lengths 1 and some leading dimensions left out.
[[nodiscard]] Shape part_of(Choices& choices, Shape shape);
/// Random values over much of the type's range: uniform, nearly constant, near the zero point, or
/// extremes. uint8, int8 and int16 are quantised (int16 with zero point 0), others are not.
[[nodiscard]] Values random_values(Choices& choices, ElementType type, Shape shape,
                                   Role role = Role::input);
/// The same, not quantised.
[[nodiscard]] Values raw_values(Choices& choices, ElementType type, Shape shape,
                                Role role = Role::input);
/// A constant list of int32.
[[nodiscard]] Values numbers(const std::vector<std::int32_t>& values);
[[nodiscard]] Values absent();
/// An output with the quantisation of `values`, which holds stored values.
[[nodiscard]] Expected stored_like(const Values& values, Shape shape);
/// Gives a quantised output a scale at which its values use the type's range, and some lie beyond.
void choose_quantisation(Choices& choices, Expected& expected, double steps);
[[nodiscard]] double activated(model::Activation activation, double value);
[[nodiscard]] model::Activation random_activation(Choices& choices);

}  // namespace reef::plain
