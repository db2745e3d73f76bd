#include "reef/edgetpu/package.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace reef::edgetpu {
namespace {

/// The name of `value`, "`what` 7" for a number without one.
template <typename Enum, std::size_t count>
std::string name_in(const std::pair<Enum, std::string_view> (&names)[count], Enum value,
                    std::string_view what) {
    const auto* found = std::ranges::find(names, value, &std::pair<Enum, std::string_view>::first);
    if (found != std::end(names)) return std::string(found->second);
    return fmt::format("{} {}", what, static_cast<int>(value));
}

const Layer* find_layer(const std::vector<Layer>& layers, std::string_view name) {
    const auto found = std::ranges::find(layers, name, &Layer::name);
    return found == layers.end() ? nullptr : &*found;
}

}  // namespace

std::string to_string(ExecutableType type) {
    static constexpr std::pair<ExecutableType, std::string_view> names[] = {
        {ExecutableType::stand_alone, "STAND_ALONE"},
        {ExecutableType::parameter_caching, "PARAMETER_CACHING"},
        {ExecutableType::execution_only, "EXECUTION_ONLY"},
    };
    return name_in(names, type, "type");
}

std::string to_string(BaseAddress base) {
    static constexpr std::pair<BaseAddress, std::string_view> names[] = {
        {BaseAddress::output_activation, "output"},
        {BaseAddress::input_activation, "input"},
        {BaseAddress::parameter, "parameters"},
        {BaseAddress::scratch, "scratch"},
    };
    return name_in(names, base, "base address");
}

std::string to_string(AddressHalf half) {
    static constexpr std::pair<AddressHalf, std::string_view> names[] = {
        {AddressHalf::lower_32_bits, "lower 32 bits"},
        {AddressHalf::upper_32_bits, "upper 32 bits"},
    };
    return name_in(names, half, "position");
}

std::string to_string(DataType type) {
    static constexpr std::pair<DataType, std::string_view> names[] = {
        {DataType::fixed_point8, "FIXED_POINT8"},
        {DataType::fixed_point16, "FIXED_POINT16"},
        {DataType::signed_fixed_point32, "SIGNED_FIXED_POINT32"},
        {DataType::bfloat, "BFLOAT"},
        {DataType::half, "HALF"},
        {DataType::single, "SINGLE"},
        {DataType::signed_fixed_point8, "SIGNED_FIXED_POINT8"},
        {DataType::signed_fixed_point16, "SIGNED_FIXED_POINT16"},
    };
    return name_in(names, type, "data type");
}

std::optional<std::size_t> size_of(DataType type) {
    switch (type) {
        case DataType::fixed_point8:
        case DataType::signed_fixed_point8:
            return 1;
        case DataType::fixed_point16:
        case DataType::signed_fixed_point16:
        case DataType::bfloat:
        case DataType::half:
            return 2;
        case DataType::signed_fixed_point32:
        case DataType::single:
            return 4;
    }
    return std::nullopt;
}

std::string to_string(Direction direction) {
    static constexpr std::pair<Direction, std::string_view> names[] = {
        {Direction::infeed, "in"},
        {Direction::outfeed, "out"},
    };
    return name_in(names, direction, "direction");
}

const OutputLayout* Layer::layout() const {
    const auto* output = std::get_if<OutputLayer>(&kind);
    return output == nullptr || !output->layout ? nullptr : &*output->layout;
}

const Layer* Executable::find_input(std::string_view layer) const {
    return find_layer(inputs, layer);
}
const Layer* Executable::find_output(std::string_view layer) const {
    return find_layer(outputs, layer);
}

const Executable* Package::find(ExecutableType type) const {
    const auto found = std::ranges::find(executables, type, &Executable::type);
    return found == executables.end() ? nullptr : &*found;
}
Result<const Executable*> computing_executable(const Package& package) {
    for (const auto type : {ExecutableType::execution_only, ExecutableType::stand_alone})
        if (const auto* executable = package.find(type)) return executable;
    return fail(Cause::bad_input, "the package has no executable that computes", {},
                "it holds only parameters: take the compiled file of the whole model");
}

Executable* Package::find(ExecutableType type) {
    return const_cast<Executable*>(std::as_const(*this).find(type));
}

}  // namespace reef::edgetpu
