// Transfers: asynchronous, and synchronous ones made of them.
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "abi/libusb/boundary.h"
#include "abi/libusb/handle.h"

namespace reef::abi::libusb {
namespace {

/// Linux's limit for the data of a control transfer.
constexpr int most_control_bytes = 4096;

int refuse(const libusb_transfer& transfer) {
    if (transfer.dev_handle == nullptr || transfer.length < 0) return LIBUSB_ERROR_INVALID_PARAM;
    if (transfer.length != 0 && transfer.buffer == nullptr) return LIBUSB_ERROR_INVALID_PARAM;
    switch (transfer.type) {
        case LIBUSB_TRANSFER_TYPE_BULK:
        case LIBUSB_TRANSFER_TYPE_INTERRUPT:
            return LIBUSB_SUCCESS;
        case LIBUSB_TRANSFER_TYPE_CONTROL: {
            const int room = transfer.length - static_cast<int>(LIBUSB_CONTROL_SETUP_SIZE);
            if (room < 0 || room > most_control_bytes) return LIBUSB_ERROR_INVALID_PARAM;
            const auto* setup = reinterpret_cast<const libusb_control_setup*>(transfer.buffer);
            return libusb_le16_to_cpu(setup->wLength) > room ? LIBUSB_ERROR_INVALID_PARAM
                                                             : LIBUSB_SUCCESS;
        }
        case LIBUSB_TRANSFER_TYPE_ISOCHRONOUS:
        case LIBUSB_TRANSFER_TYPE_BULK_STREAM:
            return LIBUSB_ERROR_NOT_SUPPORTED;
        default:
            return LIBUSB_ERROR_INVALID_PARAM;
    }
}

int code_of(libusb_transfer_status status) {
    switch (status) {
        case LIBUSB_TRANSFER_COMPLETED:
            return LIBUSB_SUCCESS;
        case LIBUSB_TRANSFER_TIMED_OUT:
            return LIBUSB_ERROR_TIMEOUT;
        case LIBUSB_TRANSFER_STALL:
            return LIBUSB_ERROR_PIPE;
        case LIBUSB_TRANSFER_NO_DEVICE:
            return LIBUSB_ERROR_NO_DEVICE;
        case LIBUSB_TRANSFER_OVERFLOW:
            return LIBUSB_ERROR_OVERFLOW;
        case LIBUSB_TRANSFER_ERROR:
        case LIBUSB_TRANSFER_CANCELLED:
            return LIBUSB_ERROR_IO;
    }
    return LIBUSB_ERROR_OTHER;
}

void LIBUSB_CALL mark_completed(libusb_transfer* transfer) {
    std::atomic_ref(*static_cast<int*>(transfer->user_data)).store(1);
}

/// Submits, and handles events until the transfer is completed.
int run(libusb_transfer* transfer, int& completed) {
    libusb_context& context = transfer->dev_handle->context();
    if (const int code = libusb_submit_transfer(transfer); code < 0) return code;
    while (std::atomic_ref(completed).load() == 0) {
        const int code = libusb_handle_events_completed(&context, &completed);
        if (code >= 0 || code == LIBUSB_ERROR_INTERRUPTED) continue;
        static_cast<void>(libusb_cancel_transfer(transfer));
    }
    return code_of(transfer->status);
}

int run_sync(libusb_device_handle* handle, unsigned char endpoint, unsigned char type,
             unsigned char* data, int length, int* transferred, unsigned timeout) {
    if (handle == nullptr) return LIBUSB_ERROR_INVALID_PARAM;
    if (handle->context().handling_here()) return LIBUSB_ERROR_BUSY;
    libusb_transfer* transfer = libusb_alloc_transfer(0);
    if (transfer == nullptr) return LIBUSB_ERROR_NO_MEM;
    int completed = 0;
    libusb_fill_bulk_transfer(transfer, handle, endpoint, data, length, mark_completed, &completed,
                              timeout);
    transfer->type = type;
    const int code = run(transfer, completed);
    if (transferred != nullptr) *transferred = transfer->actual_length;
    libusb_free_transfer(transfer);
    return code;
}

}  // namespace
}  // namespace reef::abi::libusb

using namespace reef::abi::libusb;

extern "C" {

libusb_transfer* libusb_alloc_transfer(int iso_packets) {
    if (iso_packets < 0) return nullptr;
    const std::size_t size =
        sizeof(Transfer) + sizeof(libusb_transfer) +
        static_cast<std::size_t>(iso_packets) * sizeof(libusb_iso_packet_descriptor);
    void* memory = std::calloc(1, size);
    if (memory == nullptr) return nullptr;
    auto* transfer = new (memory) Transfer;
    transfer->open().num_iso_packets = iso_packets;
    return &transfer->open();
}

void libusb_free_transfer(libusb_transfer* transfer) {
    if (transfer == nullptr) return;
    if ((transfer->flags & LIBUSB_TRANSFER_FREE_BUFFER) != 0) std::free(transfer->buffer);
    Transfer& whole = Transfer::of(transfer);
    whole.~Transfer();
    std::free(&whole);
}

int libusb_submit_transfer(libusb_transfer* transfer) try {
    if (transfer == nullptr) return LIBUSB_ERROR_INVALID_PARAM;
    if (const int code = refuse(*transfer); code != LIBUSB_SUCCESS) return code;
    return transfer->dev_handle->context().submit(Transfer::of(transfer), *transfer->dev_handle);
} catch (const std::exception& failure) {
    return error_of(failure);
}

int libusb_cancel_transfer(libusb_transfer* transfer) try {
    if (transfer == nullptr) return LIBUSB_ERROR_INVALID_PARAM;
    Transfer& whole = Transfer::of(transfer);
    // One that was never submitted belongs to no context.
    if (whole.context == nullptr) return LIBUSB_ERROR_NOT_FOUND;
    return whole.context->cancel(whole);
} catch (const std::exception& failure) {
    return error_of(failure);
}

int libusb_control_transfer(libusb_device_handle* handle, std::uint8_t request_type,
                            std::uint8_t request, std::uint16_t value, std::uint16_t index,
                            unsigned char* data, std::uint16_t length, unsigned timeout) try {
    if (handle == nullptr) return LIBUSB_ERROR_INVALID_PARAM;
    if (handle->context().handling_here()) return LIBUSB_ERROR_BUSY;
    auto* buffer = static_cast<unsigned char*>(std::malloc(LIBUSB_CONTROL_SETUP_SIZE + length));
    libusb_transfer* transfer = libusb_alloc_transfer(0);
    if (buffer == nullptr || transfer == nullptr) {
        std::free(buffer);
        libusb_free_transfer(transfer);
        return LIBUSB_ERROR_NO_MEM;
    }
    const bool in = (request_type & LIBUSB_ENDPOINT_DIR_MASK) == LIBUSB_ENDPOINT_IN;
    libusb_fill_control_setup(buffer, request_type, request, value, index, length);
    unsigned char* payload = buffer + LIBUSB_CONTROL_SETUP_SIZE;
    if (length != 0) {
        if (in) {
            std::memset(payload, 0, length);
        } else {
            std::memcpy(payload, data, length);
        }
    }
    int completed = 0;
    libusb_fill_control_transfer(transfer, handle, buffer, mark_completed, &completed, timeout);
    transfer->flags = LIBUSB_TRANSFER_FREE_BUFFER;
    int code = run(transfer, completed);
    if (code == LIBUSB_SUCCESS) {
        code = transfer->actual_length;
        if (in && code != 0) std::memcpy(data, payload, static_cast<std::size_t>(code));
    }
    libusb_free_transfer(transfer);
    return code;
} catch (const std::exception& failure) {
    return error_of(failure);
}

int libusb_bulk_transfer(libusb_device_handle* handle, unsigned char endpoint, unsigned char* data,
                         int length, int* transferred, unsigned timeout) try {
    return run_sync(handle, endpoint, LIBUSB_TRANSFER_TYPE_BULK, data, length, transferred,
                    timeout);
} catch (const std::exception& failure) {
    return error_of(failure);
}

int libusb_interrupt_transfer(libusb_device_handle* handle, unsigned char endpoint,
                              unsigned char* data, int length, int* transferred,
                              unsigned timeout) try {
    return run_sync(handle, endpoint, LIBUSB_TRANSFER_TYPE_INTERRUPT, data, length, transferred,
                    timeout);
} catch (const std::exception& failure) {
    return error_of(failure);
}

unsigned char* libusb_dev_mem_alloc(libusb_device_handle* handle, std::size_t length) {
    if (handle == nullptr || length == 0 || handle->is_gone()) return nullptr;
    void* memory =
        ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<unsigned char*>(memory);
}

int libusb_dev_mem_free(libusb_device_handle*, unsigned char* memory, std::size_t length) {
    return ::munmap(memory, length) == 0 ? LIBUSB_SUCCESS : LIBUSB_ERROR_OTHER;
}

}  // extern "C"
