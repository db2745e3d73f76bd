// The library as a whole: contexts, options, versions, names of errors.
#include <fmt/format.h>

#include <array>
#include <cstdarg>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>

#include "abi/libusb/boundary.h"
#include "abi/libusb/handle.h"
#include "abi/libusb/log.h"

namespace reef::abi::libusb {
namespace {

/// The context of programs that pass a null pointer.
struct DefaultContext {
    std::mutex mutex;
    libusb_context* context = nullptr;
    int users = 0;
    libusb_context* first = nullptr;  ///< the oldest of the others stands in for it
    bool discovers = true;
};
DefaultContext& default_context() {
    static auto& only = *new DefaultContext;
    return only;
}

int make_context(libusb_context*& context) {
    const auto ports = Ports::get();
    if (!ports) {
        complain(ports.error().message());
        return LIBUSB_ERROR_INVALID_PARAM;
    }
    auto made = std::make_unique<libusb_context>();
    if (!default_context().discovers) made->stop_discovery();
    (*ports)->attach(*made);
    context = made.release();
    return LIBUSB_SUCCESS;
}

void destroy(libusb_context* context) {
    if (const auto ports = Ports::get()) (*ports)->detach(*context);
    for (libusb_device_handle* handle : context->open_handles()) {
        log(context->log(), LIBUSB_LOG_LEVEL_WARNING,
            "a handle was open at libusb_exit; it is closed");
        delete handle;
    }
    delete context;
}

struct NamedError {
    int code;
    const char* name;
    const char* sentence;
};
constexpr NamedError errors[] = {
    {LIBUSB_SUCCESS, "LIBUSB_SUCCESS / LIBUSB_TRANSFER_COMPLETED", "Done"},
    {LIBUSB_ERROR_IO, "LIBUSB_ERROR_IO", "The transfer failed"},
    {LIBUSB_ERROR_INVALID_PARAM, "LIBUSB_ERROR_INVALID_PARAM", "An argument is wrong"},
    {LIBUSB_ERROR_ACCESS, "LIBUSB_ERROR_ACCESS", "The system forbids it"},
    {LIBUSB_ERROR_NO_DEVICE, "LIBUSB_ERROR_NO_DEVICE", "The device is not there any more"},
    {LIBUSB_ERROR_NOT_FOUND, "LIBUSB_ERROR_NOT_FOUND", "There is no such thing"},
    {LIBUSB_ERROR_BUSY, "LIBUSB_ERROR_BUSY", "It is in use"},
    {LIBUSB_ERROR_TIMEOUT, "LIBUSB_ERROR_TIMEOUT", "No answer in time"},
    {LIBUSB_ERROR_OVERFLOW, "LIBUSB_ERROR_OVERFLOW", "The device sent more than was asked for"},
    {LIBUSB_ERROR_PIPE, "LIBUSB_ERROR_PIPE", "The device refused"},
    {LIBUSB_ERROR_INTERRUPTED, "LIBUSB_ERROR_INTERRUPTED", "A signal interrupted the call"},
    {LIBUSB_ERROR_NO_MEM, "LIBUSB_ERROR_NO_MEM", "Out of memory"},
    {LIBUSB_ERROR_NOT_SUPPORTED, "LIBUSB_ERROR_NOT_SUPPORTED",
     "The simulated stick does not model it"},
    {LIBUSB_ERROR_OTHER, "LIBUSB_ERROR_OTHER", "Another error"}};

const NamedError* find_error(int code) {
    for (const NamedError& each : errors) {
        if (each.code == code) return &each;
    }
    return nullptr;
}

}  // namespace

libusb_context* context_or_default(libusb_context* context) {
    if (context != nullptr) return context;
    DefaultContext& only = default_context();
    const std::lock_guard lock(only.mutex);
    return only.context != nullptr ? only.context : only.first;
}

}  // namespace reef::abi::libusb

using namespace reef::abi::libusb;
namespace edgetpu_usb = reef::edgetpu::usb;

extern "C" {

int libusb_init(libusb_context** context) try {
    DefaultContext& only = default_context();
    const std::lock_guard lock(only.mutex);
    if (context == nullptr && only.context != nullptr) {
        ++only.users;
        return LIBUSB_SUCCESS;
    }
    libusb_context* made = nullptr;
    if (const int code = make_context(made); code != LIBUSB_SUCCESS) return code;
    if (context == nullptr) {
        only.context = made;
        only.users = 1;
    } else {
        if (only.first == nullptr) only.first = made;
        *context = made;
    }
    return LIBUSB_SUCCESS;
} catch (const std::exception& failure) {
    return error_of(failure);
}

// Since libusb 1.0.27, whose header this is not compiled with.
struct libusb_init_option {
    int option;  ///< a libusb_option, or any number that a caller in C puts there
    union {
        int ival;
        libusb_log_cb logcbv;
    } value;
};

int libusb_init_context(libusb_context** context, const libusb_init_option options[],
                        int count) try {
    constexpr int log_callback = 3;
    if (count < 0 || (count != 0 && options == nullptr)) return LIBUSB_ERROR_INVALID_PARAM;
    libusb_context* made = nullptr;
    libusb_context** to = context == nullptr ? nullptr : &made;
    if (const int code = libusb_init(to); code != LIBUSB_SUCCESS) return code;
    for (int i = 0; i < count; ++i) {
        const libusb_init_option& each = options[i];
        int code = LIBUSB_SUCCESS;
        if (each.option < LIBUSB_OPTION_LOG_LEVEL || each.option > log_callback) {
            code = LIBUSB_ERROR_INVALID_PARAM;
        } else if (each.option == log_callback) {
            libusb_set_log_cb(made, each.value.logcbv, LIBUSB_LOG_CB_CONTEXT);
        } else {
            code =
                libusb_set_option(made, static_cast<libusb_option>(each.option), each.value.ival);
        }
        if (code == LIBUSB_SUCCESS) continue;
        libusb_exit(made);
        return code;
    }
    if (context != nullptr) *context = made;
    return LIBUSB_SUCCESS;
} catch (const std::exception& failure) {
    return error_of(failure);
}

void libusb_exit(libusb_context* context) try {
    DefaultContext& only = default_context();
    {
        const std::lock_guard lock(only.mutex);
        if (context == nullptr || context == only.context) {
            if (only.context == nullptr || --only.users != 0) return;
            context = std::exchange(only.context, nullptr);
        }
        if (context == only.first) only.first = nullptr;
    }
    destroy(context);
} catch (const std::exception&) {
}

int libusb_set_option(libusb_context* context, libusb_option option, ...) try {
    static_assert(sizeof option == sizeof(int), "nothing is promoted when it is passed");
    va_list arguments;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wvarargs"  // clang's, about enumerations that could be narrower
    va_start(arguments, option);
#pragma GCC diagnostic pop
    const int level = option == LIBUSB_OPTION_LOG_LEVEL ? va_arg(arguments, int) : 0;
    va_end(arguments);
    if (option == LIBUSB_OPTION_LOG_LEVEL) {
        if (level < LIBUSB_LOG_LEVEL_NONE || level > LIBUSB_LOG_LEVEL_DEBUG) {
            return LIBUSB_ERROR_INVALID_PARAM;
        }
        const auto wanted = static_cast<libusb_log_level>(level);
        if (context == nullptr) set_initial_log_level(wanted);
        if (auto* one = context_or_default(context)) one->log().set_level(wanted);
        return LIBUSB_SUCCESS;
    }
    if (option == LIBUSB_OPTION_NO_DEVICE_DISCOVERY) {
        if (context != nullptr) {
            context->stop_discovery();
        } else {
            DefaultContext& only = default_context();
            const std::lock_guard lock(only.mutex);
            only.discovers = false;
        }
        return LIBUSB_SUCCESS;
    }
    return option == LIBUSB_OPTION_USE_USBDK ? LIBUSB_ERROR_NOT_SUPPORTED
                                             : LIBUSB_ERROR_INVALID_PARAM;
} catch (const std::exception& failure) {
    return error_of(failure);
}

void libusb_set_debug(libusb_context* context, int level) {
    static_cast<void>(libusb_set_option(context, LIBUSB_OPTION_LOG_LEVEL, level));
}

void libusb_set_log_cb(libusb_context* context, libusb_log_cb callback, int mode) try {
    if ((mode & LIBUSB_LOG_CB_GLOBAL) != 0) set_global_log_callback(callback);
    if ((mode & LIBUSB_LOG_CB_CONTEXT) == 0) return;
    if (auto* one = context_or_default(context)) one->log().set_callback(callback);
} catch (const std::exception&) {
}

const libusb_version* libusb_get_version(void) {
    // The version of the interface that the header describes.
    static const libusb_version version = {.major = 1,
                                           .minor = 0,
                                           .micro = 26,
                                           .nano = 0,
                                           .rc = "",
                                           .describe = edgetpu_usb::simulated_library.data()};
    return &version;
}

int libusb_has_capability(std::uint32_t capability) try {
    if (capability == LIBUSB_CAP_HAS_HOTPLUG) {
        const auto ports = Ports::get();
        return ports && (*ports)->hotplug() ? 1 : 0;
    }
    return capability == LIBUSB_CAP_HAS_CAPABILITY ||
                   capability == LIBUSB_CAP_SUPPORTS_DETACH_KERNEL_DRIVER
               ? 1
               : 0;
} catch (const std::exception&) {
    return 0;
}

const char* libusb_error_name(int code) {
    const NamedError* error = find_error(code);
    return error != nullptr ? error->name : "**UNKNOWN**";
}

const char* libusb_strerror(int code) {
    const NamedError* error = find_error(code);
    return error != nullptr ? error->sentence : "An unknown error";
}

int libusb_setlocale(const char* locale) {
    if (locale == nullptr) return LIBUSB_ERROR_INVALID_PARAM;
    const std::string_view name(locale);
    if (name.size() < 2 || (name.size() > 2 && std::strchr("-_.", name[2]) == nullptr)) {
        return LIBUSB_ERROR_INVALID_PARAM;
    }
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    const bool english = lower(name[0]) == 'e' && lower(name[1]) == 'n';
    return english ? LIBUSB_SUCCESS : LIBUSB_ERROR_NOT_FOUND;
}

}  // extern "C"
