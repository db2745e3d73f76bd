// EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, LOGICAL_AND and LOGICAL_OR.
#include <functional>

#include "cpu/prepare/kernels.h"
#include "cpu/reference/elementwise.h"
#include "cpu/reference/unary.h"

namespace reef::cpu {
namespace {

/// What is no number is not equal to anything, nor less, nor greater.
template <typename Holds>
PreparedKernel compared(const OperatorView& op, const char* name,
                        std::initializer_list<ElementType> types) {
    auto broadcast = REEF_TRY(check_comparison(op, types));
    const auto kernel = [&]<typename T>(T) -> PreparedKernel {
        return binary_kernel<T, std::uint8_t>(
            std::string(name) + " reference", std::move(broadcast),
            [](T a, T b) { return static_cast<std::uint8_t>(Holds{}(a, b)); });
    };
    if (op.input(0).type == ElementType::boolean) return kernel(std::uint8_t{});
    return with_type_of(op.input(0).type, "input 0", kernel);
}

template <typename Holds>
PreparedKernel ordered(const OperatorView& op, const char* name) {
    return compared<Holds>(op, name,
                           {ElementType::int32, ElementType::int64, ElementType::float32});
}

template <typename Holds>
PreparedKernel matched(const OperatorView& op, const char* name) {
    return compared<Holds>(
        op, name,
        {ElementType::boolean, ElementType::int32, ElementType::int64, ElementType::float32});
}

template <typename Holds>
PreparedKernel combined(const OperatorView& op, const char* name) {
    return compared<Holds>(op, name, {ElementType::boolean});
}

}  // namespace

PreparedKernel prepare_equal(const OperatorView& op, const PrepareOptions& /*options*/) {
    return matched<std::equal_to<>>(op, "equal");
}

PreparedKernel prepare_not_equal(const OperatorView& op, const PrepareOptions& /*options*/) {
    return matched<std::not_equal_to<>>(op, "not_equal");
}

PreparedKernel prepare_less(const OperatorView& op, const PrepareOptions& /*options*/) {
    return ordered<std::less<>>(op, "less");
}

PreparedKernel prepare_less_equal(const OperatorView& op, const PrepareOptions& /*options*/) {
    return ordered<std::less_equal<>>(op, "less_equal");
}

PreparedKernel prepare_greater(const OperatorView& op, const PrepareOptions& /*options*/) {
    return ordered<std::greater<>>(op, "greater");
}

PreparedKernel prepare_greater_equal(const OperatorView& op, const PrepareOptions& /*options*/) {
    return ordered<std::greater_equal<>>(op, "greater_equal");
}

PreparedKernel prepare_logical_and(const OperatorView& op, const PrepareOptions& /*options*/) {
    return combined<std::logical_and<>>(op, "logical_and");
}

PreparedKernel prepare_logical_or(const OperatorView& op, const PrepareOptions& /*options*/) {
    return combined<std::logical_or<>>(op, "logical_or");
}

}  // namespace reef::cpu
