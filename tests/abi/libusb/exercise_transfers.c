/* Transfers: synchronous and not, cancelled, late, refused, and of a stick that leaves. */
#include <string.h>

#include "exercise.h"

static void LIBUSB_CALL mark_done(struct libusb_transfer* transfer) {
    *(int*)transfer->user_data = 1;
}

static void synchronous(void) {
    libusb_context* context = new_context();
    libusb_device_handle* handle = open_chip(context);
    uint32_t value = 0;
    CHECK_EQ(read_register(handle, &value), 4);
    CHECK(value != 0);
    unsigned char bytes[8] = {0};
    /* No register there; no such width; no such request. */
    CHECK_EQ(libusb_control_transfer(handle, 0xc0, 1, 0xfff0, 0, bytes, 4, 1000),
             LIBUSB_ERROR_PIPE);
    CHECK_EQ(libusb_control_transfer(handle, 0xc0, 0, scu_ctrl_3_value, scu_ctrl_3_index, bytes, 8,
                                     1000),
             LIBUSB_ERROR_PIPE);
    CHECK_EQ(libusb_control_transfer(handle, 0xc0, 9, 0, 0, bytes, 4, 1000), LIBUSB_ERROR_PIPE);
    CHECK_EQ(read_register(handle, &value), 4);

    /* Nothing to read: the time passes, really. */
    int moved = -1;
    double begin = seconds();
    CHECK_EQ(libusb_bulk_transfer(handle, 0x81, bytes, 8, &moved, 60), LIBUSB_ERROR_TIMEOUT);
    CHECK_EQ(moved, 0);
    CHECK(seconds() - begin >= 0.055);
    begin = seconds();
    CHECK_EQ(libusb_interrupt_transfer(handle, 0x83, bytes, 4, NULL, 30), LIBUSB_ERROR_TIMEOUT);
    CHECK(seconds() - begin >= 0.025);
    /* Not a header. */
    CHECK_EQ(libusb_bulk_transfer(handle, 0x01, bytes, 3, &moved, 1000), LIBUSB_ERROR_PIPE);
    CHECK_EQ(libusb_clear_halt(handle, 0x01), 0);
    libusb_close(handle);
    libusb_exit(context);
}

/* The vendor's driver, told to load the firmware always: a running chip is detached and reset. */
static void detach(void) {
    libusb_context* context = new_context();
    libusb_device_handle* handle = open_chip(context);
    CHECK_EQ(libusb_control_transfer(handle, 0x21, 0, 1000, 0, NULL, 0, 1000), 0);
    CHECK_EQ(libusb_reset_device(handle), LIBUSB_ERROR_NOT_FOUND);
    libusb_close(handle);
    CHECK(libusb_open_device_with_vid_pid(context, chip_vendor, chip_product) == NULL);
    handle = libusb_open_device_with_vid_pid(context, boot_vendor, boot_product);
    CHECK(handle != NULL);
    libusb_close(handle);
    libusb_exit(context);
}

/* A time of 0 is no limit, for any kind of transfer. */
static void no_time_limit(void) {
    libusb_context* context = new_context();
    libusb_device_handle* handle = open_chip(context);
    unsigned char data[16];
    int done = 0;
    struct libusb_transfer* transfer = libusb_alloc_transfer(0);
    libusb_fill_bulk_transfer(transfer, handle, 0x81, data, sizeof data, mark_done, &done, 0);
    CHECK_EQ(libusb_submit_transfer(transfer), 0);
    for (const double end = seconds() + 0.3; seconds() < end;) {
        struct timeval soon = {0, 20000};
        CHECK_EQ(libusb_handle_events_timeout_completed(context, &soon, &done), 0);
    }
    CHECK_EQ(done, 0);
    CHECK_EQ(libusb_control_transfer(handle, 0x80, LIBUSB_REQUEST_GET_DESCRIPTOR, 0x0100, 0, data,
                                     16, 0),
             16);
    CHECK_EQ(libusb_cancel_transfer(transfer), 0);
    handle_until(context, &done);
    CHECK_EQ(transfer->status, LIBUSB_TRANSFER_CANCELLED);
    libusb_free_transfer(transfer);
    libusb_close(handle);
    libusb_exit(context);
}

/* REEF_USB_FAULTS=time_out@1: the second transaction is never answered. */
static void unanswered_control(void) {
    libusb_context* context = new_context();
    libusb_device_handle* handle = open_chip(context);
    uint32_t value = 0;
    CHECK_EQ(read_register(handle, &value), 4);
    unsigned char bytes[4];
    const double begin = seconds();
    CHECK_EQ(
        libusb_control_transfer(handle, 0xc0, 1, scu_ctrl_3_value, scu_ctrl_3_index, bytes, 4, 80),
        LIBUSB_ERROR_TIMEOUT);
    CHECK(seconds() - begin >= 0.075);
    CHECK_EQ(read_register(handle, &value), 4);
    libusb_close(handle);
    libusb_exit(context);
}

/* REEF_USB_FAULTS=stall@0,long_read@1,short_read@2 */
static void faults(void) {
    libusb_context* context = new_context();
    libusb_device_handle* handle = open_chip(context);
    uint32_t value = 0;
    CHECK_EQ(read_register(handle, &value), LIBUSB_ERROR_PIPE);
    CHECK_EQ(read_register(handle, &value), LIBUSB_ERROR_OVERFLOW);
    CHECK_EQ(read_register(handle, &value), 2);
    CHECK_EQ(read_register(handle, &value), 4);
    libusb_close(handle);
    libusb_exit(context);
}

static void cancelling(void) {
    libusb_context* context = new_context();
    libusb_device_handle* handle = open_chip(context);
    unsigned char data[16];
    int done = 0;
    struct libusb_transfer* transfer = libusb_alloc_transfer(0);
    libusb_fill_bulk_transfer(transfer, handle, 0x82, data, sizeof data, mark_done, &done, 0);
    CHECK_EQ(libusb_cancel_transfer(transfer), LIBUSB_ERROR_NOT_FOUND);
    CHECK_EQ(libusb_submit_transfer(transfer), 0);
    CHECK_EQ(libusb_submit_transfer(transfer), LIBUSB_ERROR_BUSY);
    struct timeval soon = {0, 20000};
    CHECK_EQ(libusb_handle_events_timeout(context, &soon), 0);
    CHECK_EQ(done, 0);
    CHECK_EQ(libusb_cancel_transfer(transfer), 0);
    CHECK_EQ(libusb_cancel_transfer(transfer), LIBUSB_ERROR_NOT_FOUND);
    CHECK_EQ(done, 0); /* Only who handles events calls it. */
    handle_until(context, &done);
    CHECK_EQ(transfer->status, LIBUSB_TRANSFER_CANCELLED);
    CHECK_EQ(transfer->actual_length, 0);
    CHECK_EQ(libusb_cancel_transfer(transfer), LIBUSB_ERROR_NOT_FOUND);

    /* The same transfer again, and its time is over. */
    done = 0;
    transfer->timeout = 40;
    CHECK_EQ(libusb_submit_transfer(transfer), 0);
    handle_until(context, &done);
    CHECK_EQ(transfer->status, LIBUSB_TRANSFER_TIMED_OUT);

    /* Releasing the interface ends what is under way on it. */
    done = 0;
    transfer->timeout = 0;
    CHECK_EQ(libusb_claim_interface(handle, 0), 0);
    CHECK_EQ(libusb_submit_transfer(transfer), 0);
    CHECK_EQ(libusb_release_interface(handle, 0), 0);
    handle_until(context, &done);
    CHECK_EQ(transfer->status, LIBUSB_TRANSFER_CANCELLED);

    /* Closing ends it without a callback; the program frees it. */
    done = 0;
    CHECK_EQ(libusb_submit_transfer(transfer), 0);
    libusb_close(handle);
    CHECK_EQ(done, 0);
    libusb_free_transfer(transfer);
    libusb_exit(context);
}

static int freed_callbacks;
static void LIBUSB_CALL count_callback(struct libusb_transfer* transfer) {
    CHECK_EQ(transfer->status, LIBUSB_TRANSFER_COMPLETED);
    ++freed_callbacks;
}

static struct libusb_transfer* descriptor_request(libusb_device_handle* handle, uint16_t room,
                                                  libusb_transfer_cb_fn callback, void* user_data) {
    unsigned char* buffer = malloc(LIBUSB_CONTROL_SETUP_SIZE + room);
    struct libusb_transfer* transfer = libusb_alloc_transfer(0);
    libusb_fill_control_setup(buffer, 0x80, LIBUSB_REQUEST_GET_DESCRIPTOR, 0x0100, 0, room);
    libusb_fill_control_transfer(transfer, handle, buffer, callback, user_data, 1000);
    transfer->flags = LIBUSB_TRANSFER_FREE_BUFFER;
    return transfer;
}

static void flags(void) {
    libusb_context* context = new_context();
    libusb_device_handle* handle = open_chip(context);
    int done = 0;
    struct libusb_transfer* transfer = descriptor_request(handle, 64, mark_done, &done);
    CHECK_EQ(libusb_submit_transfer(transfer), 0);
    handle_until(context, &done);
    CHECK_EQ(transfer->status, LIBUSB_TRANSFER_COMPLETED);
    CHECK_EQ(transfer->actual_length, 18);
    CHECK_EQ(libusb_control_transfer_get_data(transfer)[0], 18);

    /* 18 bytes of 64 are an error for who says so, and arrive all the same. */
    done = 0;
    transfer->flags |= LIBUSB_TRANSFER_SHORT_NOT_OK;
    CHECK_EQ(libusb_submit_transfer(transfer), 0);
    handle_until(context, &done);
    CHECK_EQ(transfer->status, LIBUSB_TRANSFER_ERROR);
    CHECK_EQ(transfer->actual_length, 18);

    /* Setups that do not fit their buffers. */
    transfer->length = 7;
    CHECK_EQ(libusb_submit_transfer(transfer), LIBUSB_ERROR_INVALID_PARAM);
    transfer->length = 8 + 63;
    CHECK_EQ(libusb_submit_transfer(transfer), LIBUSB_ERROR_INVALID_PARAM);
    libusb_free_transfer(transfer);

    for (int i = 0; i < 50; ++i) {
        transfer = descriptor_request(handle, 18, count_callback, NULL);
        transfer->flags |= LIBUSB_TRANSFER_FREE_TRANSFER | LIBUSB_TRANSFER_SHORT_NOT_OK;
        CHECK_EQ(libusb_submit_transfer(transfer), 0);
    }
    const double end = seconds() + 10;
    while (freed_callbacks < 50) {
        CHECK_EQ(libusb_handle_events(context), 0);
        CHECK(seconds() < end);
    }

    unsigned char* memory = libusb_dev_mem_alloc(handle, 100000);
    CHECK(memory != NULL);
    memset(memory, 1, 100000);
    CHECK_EQ(libusb_dev_mem_free(handle, memory, 100000), 0);
    libusb_close(handle);
    libusb_exit(context);
}

struct resubmission {
    int left, done;
    libusb_device_handle* handle;
};

static void LIBUSB_CALL submit_again(struct libusb_transfer* transfer) {
    struct resubmission* state = transfer->user_data;
    /* Waiting inside a callback would wait for ever. */
    uint32_t value = 0;
    CHECK_EQ(read_register(state->handle, &value), LIBUSB_ERROR_BUSY);
    CHECK_EQ(libusb_handle_events(NULL), LIBUSB_ERROR_BUSY);
    CHECK_EQ(transfer->actual_length, 18);
    if (--state->left == 0) {
        state->done = 1;
    } else {
        CHECK_EQ(libusb_submit_transfer(transfer), 0);
    }
}

static void LIBUSB_CALL close_inside(struct libusb_transfer* transfer) {
    struct resubmission* state = transfer->user_data;
    libusb_close(state->handle);
    state->done = 1;
}

static void inside_callbacks(void) {
    CHECK_EQ(libusb_init(NULL), 0);
    struct resubmission state = {.left = 100, .done = 0, .handle = open_chip(NULL)};
    struct libusb_transfer* transfer = descriptor_request(state.handle, 18, submit_again, &state);
    CHECK_EQ(libusb_submit_transfer(transfer), 0);
    handle_until(NULL, &state.done);
    CHECK_EQ(state.left, 0);

    state.done = 0;
    transfer->callback = close_inside;
    CHECK_EQ(libusb_submit_transfer(transfer), 0);
    handle_until(NULL, &state.done);
    libusb_free_transfer(transfer);
    libusb_exit(NULL);
}

/* From the boot loader to the chip: the handle's device is gone, another one is at its port. */
static void firmware(void) {
    libusb_context* context = new_context();
    libusb_device_handle* handle = open_boot_loader(context);
    libusb_device* boot = libusb_get_device(handle);
    const int address = libusb_get_device_address(boot);
    CHECK_EQ(libusb_claim_interface(handle, 0), 0);
    /* Without firmware it stays what it is. */
    CHECK_EQ(libusb_reset_device(handle), 0);
    download_firmware(handle, 12117);
    unsigned char block[256];
    CHECK_EQ(libusb_control_transfer(handle, 0xa1, 2, 47, 0, block, 256, 1000), 12117 - 47 * 256);
    CHECK_EQ(block[0], 0x5a);
    CHECK_EQ(libusb_release_interface(handle, 0), 0);
    CHECK_EQ(libusb_reset_device(handle), LIBUSB_ERROR_NOT_FOUND);
    CHECK_EQ(libusb_control_transfer(handle, 0xa1, 3, 0, 0, block, 6, 1000),
             LIBUSB_ERROR_NO_DEVICE);
    CHECK_EQ(libusb_claim_interface(handle, 0), LIBUSB_ERROR_NO_DEVICE);
    CHECK_EQ(libusb_reset_device(handle), LIBUSB_ERROR_NO_DEVICE);

    libusb_device_handle* chip = open_chip(context);
    CHECK_EQ(libusb_get_port_number(libusb_get_device(chip)), libusb_get_port_number(boot));
    CHECK(libusb_get_device_address(libusb_get_device(chip)) != address);
    libusb_close(handle);
    uint32_t value = 0;
    CHECK_EQ(read_register(chip, &value), 4);
    libusb_close(chip);
    libusb_exit(context);
}

/* REEF_USB_FAULTS=unplug@20+150: it leaves while transfers wait, and comes back without
 * firmware. */
static void unplugged(void) {
    enum { count = 4 };
    libusb_context* context = new_context();
    libusb_device_handle* handle = open_chip(context);
    struct libusb_transfer* transfers[count];
    unsigned char data[count][1024];
    int done[count] = {0};
    for (int i = 0; i < count; ++i) {
        transfers[i] = libusb_alloc_transfer(0);
        libusb_fill_bulk_transfer(transfers[i], handle, 0x81, data[i], 1024, mark_done, &done[i],
                                  5000);
        CHECK_EQ(libusb_submit_transfer(transfers[i]), 0);
    }
    uint32_t value = 0;
    int code = 0;
    for (int i = 0; i < 30 && code >= 0; ++i) code = read_register(handle, &value);
    CHECK_EQ(code, LIBUSB_ERROR_NO_DEVICE);
    for (int i = 0; i < count; ++i) {
        handle_until(context, &done[i]);
        CHECK_EQ(transfers[i]->status, LIBUSB_TRANSFER_NO_DEVICE);
    }
    CHECK_EQ(libusb_submit_transfer(transfers[0]), LIBUSB_ERROR_NO_DEVICE);
    libusb_device** list = NULL;
    CHECK_EQ(libusb_get_device_list(context, &list), 0);
    libusb_free_device_list(list, 1);

    const double end = seconds() + 10;
    libusb_device_handle* back = NULL;
    while (back == NULL && seconds() < end) {
        struct timeval soon = {0, 10000};
        CHECK_EQ(libusb_handle_events_timeout(context, &soon), 0);
        back = libusb_open_device_with_vid_pid(context, boot_vendor, boot_product);
    }
    CHECK(back != NULL);
    CHECK_EQ(read_register(handle, &value), LIBUSB_ERROR_NO_DEVICE);
    for (int i = 0; i < count; ++i) libusb_free_transfer(transfers[i]);
    libusb_close(handle);
    libusb_close(back);
    libusb_exit(context);
}

const struct exercise transfer_cases[] = {{"synchronous", synchronous},
                                          {"detach", detach},
                                          {"no_time_limit", no_time_limit},
                                          {"unanswered_control", unanswered_control},
                                          {"faults", faults},
                                          {"cancelling", cancelling},
                                          {"flags", flags},
                                          {"inside_callbacks", inside_callbacks},
                                          {"firmware", firmware},
                                          {"unplugged", unplugged},
                                          {NULL, NULL}};
