/* usb_exercise CASE: a C program against libusb's header, linked with the system's libusb. It
 * stops with exit code 1 and a line on standard error at the first thing that is not as it should
 * be. */
#ifndef USB_EXERCISE_H
#define USB_EXERCISE_H

#include <libusb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

/* Two ints that must be equal. */
#define CHECK_EQ(got, wanted)                                                          \
    do {                                                                               \
        const long long exercise_got = (got), exercise_wanted = (wanted);              \
        if (exercise_got != exercise_wanted) {                                         \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got, \
                    exercise_got, exercise_wanted);                                    \
            exit(1);                                                                   \
        }                                                                              \
    } while (0)

enum { boot_vendor = 0x1a6e, boot_product = 0x089a, chip_vendor = 0x18d1, chip_product = 0x9302 };

/* scu_ctrl_3, which a stick that has just started says is running. */
enum { scu_ctrl_3_value = 0xa318, scu_ctrl_3_index = 0x0001 };

libusb_context* new_context(void);
/* The first stick in that mode. */
libusb_device_handle* open_boot_loader(libusb_context* context);
libusb_device_handle* open_chip(libusb_context* context);
int read_register(libusb_device_handle* handle, uint32_t* value);
/* A whole DFU download of `size` bytes. */
void download_firmware(libusb_device_handle* handle, int size);
double seconds(void);
/* Handles events until *done is not 0, for at most ten seconds. */
void handle_until(libusb_context* context, int* done);

typedef void (*exercise_case)(void);
struct exercise {
    const char* name;
    exercise_case run;
};
extern const struct exercise device_cases[], transfer_cases[], event_cases[];

#endif
