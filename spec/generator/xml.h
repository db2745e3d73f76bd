// Attributes and text of XML elements, with errors that name the line.
#pragma once

#include <tinyxml2.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "reef/base/result.h"
#include "spec.h"

namespace reef::specgen {

using Element = tinyxml2::XMLElement;

[[nodiscard]] std::unexpected<Error> fail_at(const Element& element, const std::string& what);

/// Refuses attributes that are not in `known`.
[[nodiscard]] Status only_attributes(const Element& element,
                                     std::initializer_list<std::string_view> known);

/// The attribute's text; an error without it.
[[nodiscard]] Result<std::string> attribute(const Element& element, const char* name);
[[nodiscard]] std::string attribute_or(const Element& element, const char* name,
                                       const std::string& otherwise);
/// Decimal, or hexadecimal after 0x; at most 2^31 - 1.
[[nodiscard]] Result<unsigned> number(const Element& element, const char* name);
/// The same, of up to 63 bits.
[[nodiscard]] Result<std::uint64_t> address(const Element& element, const char* name);
[[nodiscard]] Result<unsigned> parse_number(const Element& element, const std::string& text);

/// The grade attribute, checked against the known grades.
[[nodiscard]] Result<std::string> grade_of(const Element& element);

/// The chip's name from the root: lower case letters, digits and "_", a letter first.
[[nodiscard]] Result<std::string> chip_name(const Element& root);
/// The text of the child <doc>; empty without one.
[[nodiscard]] std::string doc_of(const Element& element);

/// Refuses values and names that occur twice.
[[nodiscard]] Result<Enumeration> read_enumeration(const Element& element);

/// The element's own text, with runs of white space made one blank.
[[nodiscard]] std::string text_of(const Element& element);

}  // namespace reef::specgen
