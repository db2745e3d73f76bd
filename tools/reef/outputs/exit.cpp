#include "outputs/exit.h"

namespace reef::tool {

Exit exit_for(Cause cause) {
    switch (cause) {
        case Cause::bad_argument:
            return Exit::usage;
        case Cause::device_missing:
        case Cause::device_denied:
            return Exit::device;
        case Cause::bad_input:
        case Cause::unsupported:
        case Cause::not_found:
        case Cause::io_failed:
        case Cause::device_failed:
        case Cause::cancelled:
        case Cause::timed_out:
            return Exit::failed;
    }
    return Exit::failed;
}

Error of_file(Error error) {
    if (error.cause == Cause::bad_argument) error.cause = Cause::bad_input;
    return error;
}

}  // namespace reef::tool
