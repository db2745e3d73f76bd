#include "reef/base/result.h"

namespace reef {

std::string_view to_string(Cause cause) {
    switch (cause) {
        case Cause::bad_argument:
            return "bad_argument";
        case Cause::bad_input:
            return "bad_input";
        case Cause::unsupported:
            return "unsupported";
        case Cause::not_found:
            return "not_found";
        case Cause::io_failed:
            return "io_failed";
        case Cause::device_missing:
            return "device_missing";
        case Cause::device_denied:
            return "device_denied";
        case Cause::device_failed:
            return "device_failed";
        case Cause::cancelled:
            return "cancelled";
        case Cause::timed_out:
            return "timed_out";
    }
    return "unknown";
}

Error Error::in(std::string_view outer) && {
    if (place.empty()) {
        place = outer;
    } else {
        place = std::string(outer) + ": " + place;
    }
    return std::move(*this);
}

Error Error::with_hint(std::string text) && {
    hint = std::move(text);
    return std::move(*this);
}

std::string Error::message() const {
    std::string text;
    if (!place.empty()) text = place + ": ";
    text += what;
    if (!hint.empty()) text += " (" + hint + ")";
    return text;
}

}  // namespace reef
