// Compiled packages, alone and in a custom operator's options: whatever reads keeps the rules, and
// comes back equal after being written, unless the reader said beforehand what would be lost.
#include "check.h"
#include "reef/edgetpu/package.h"
#include "reef/edgetpu/parameter_memory.h"

namespace reef::fuzz {
namespace {

using edgetpu::Package;

/// A package with a NaN is not equal to itself.
bool equal(const Package& a, const Package& b) {
    return a == b || a != a;
}

void write_and_read(const Package& package) {
    check(edgetpu::validate(package).has_value(), "what was read keeps the rules");
    const auto memory = edgetpu::parameter_memory_of(package);
    check(memory.occupied_bytes.value_or(0) <= edgetpu::parameter_memory_bytes,
          "a program occupies no more than there is");
    const auto bytes = edgetpu::write_package(package);
    if (!bytes) {
        check(!package.not_preserved.empty(),
              "a package is written unless something would be lost");
        return;
    }
    const auto again = edgetpu::read_package(SharedBytes::copy_of(*bytes));
    check(again.has_value(), "what was written reads");
    check(equal(*again, package), "package read -> write -> read is equal");
    const auto second = edgetpu::write_package(*again);
    check(second.has_value() && *second == *bytes, "equal packages give equal bytes");
}

void visit_package(Bytes input) {
    const auto package = edgetpu::read_package(SharedBytes::copy_of(input));
    if (package) {
        write_and_read(*package);
    } else {
        check(!package.error().what.empty(), "an error says what is wrong");
    }
}

void visit_options(Bytes input) {
    model::Operator op;
    op.code.custom = std::string(edgetpu::custom_operator_name);
    op.custom_options = SharedBytes::copy_of(input);
    const auto package = edgetpu::package_of(op);
    if (package) write_and_read(*package);
    // Whatever the options' package is, another one can take its place.
    Package other;
    other.model_identifier = "other";
    const SharedBytes before = op.custom_options;
    if (edgetpu::replace_package(op, other)) {
        const auto again = edgetpu::package_of(op);
        check(again.has_value() && *again == other, "a replaced package is the one given");
    } else {
        check(op.custom_options == before, "a failed replacement changes nothing");
    }
}

}  // namespace
}  // namespace reef::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const reef::Bytes input = std::as_bytes(std::span(data, size));
    reef::fuzz::visit_package(input);
    reef::fuzz::visit_options(input);
    return 0;
}
