#include "exercise.h"

#include <string.h>
#include <time.h>

libusb_context* new_context(void) {
    libusb_context* context = NULL;
    CHECK_EQ(libusb_init(&context), 0);
    CHECK(context != NULL);
    return context;
}

static libusb_device_handle* open_one(libusb_context* context, uint16_t vendor, uint16_t product) {
    libusb_device_handle* handle = libusb_open_device_with_vid_pid(context, vendor, product);
    CHECK(handle != NULL);
    return handle;
}

libusb_device_handle* open_boot_loader(libusb_context* context) {
    return open_one(context, boot_vendor, boot_product);
}

libusb_device_handle* open_chip(libusb_context* context) {
    return open_one(context, chip_vendor, chip_product);
}

int read_register(libusb_device_handle* handle, uint32_t* value) {
    unsigned char bytes[4] = {0};
    const int got = libusb_control_transfer(handle, 0xc0, 1, scu_ctrl_3_value, scu_ctrl_3_index,
                                            bytes, sizeof bytes, 1000);
    *value =
        bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    return got;
}

void download_firmware(libusb_device_handle* handle, int size) {
    unsigned char block[256], status[6];
    uint16_t number = 0;
    memset(block, 0x5a, sizeof block);
    for (int at = 0; at <= size; at += (int)sizeof block) {
        const int left = size - at < (int)sizeof block ? size - at : (int)sizeof block;
        CHECK_EQ(libusb_control_transfer(handle, 0x21, 1, number++, 0, block, (uint16_t)left, 1000),
                 left);
        CHECK_EQ(libusb_control_transfer(handle, 0xa1, 3, 0, 0, status, 6, 1000), 6);
        CHECK_EQ(status[0], 0);
        CHECK_EQ(status[4], left == 0 ? 2 : 5);
        if (left == 0) return;
    }
    CHECK_EQ(libusb_control_transfer(handle, 0x21, 1, number, 0, block, 0, 1000), 0);
}

double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void handle_until(libusb_context* context, int* done) {
    const double end = seconds() + 10;
    while (*done == 0) {
        struct timeval time = {1, 0};
        CHECK_EQ(libusb_handle_events_timeout_completed(context, &time, done), 0);
        CHECK(seconds() < end);
    }
}

static const struct exercise* find(const struct exercise* cases, const char* name) {
    for (; cases->name != NULL; ++cases) {
        if (strcmp(cases->name, name) == 0) return cases;
    }
    return NULL;
}

int main(int argc, char** argv) {
    const struct exercise* found = NULL;
    if (argc == 2) {
        found = find(device_cases, argv[1]);
        if (found == NULL) found = find(transfer_cases, argv[1]);
        if (found == NULL) found = find(event_cases, argv[1]);
    }
    if (found == NULL) {
        fprintf(stderr, "usage: usb_exercise CASE\n");
        return 2;
    }
    found->run();
    return 0;
}
