/* Events: threads that handle them, their locks and descriptors, hot-plug. */
/* fopencookie */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "exercise.h"

struct handler {
    libusb_context* context;
    atomic_int runs;
};

/* What the vendor's driver does: a thread for each device, which closing the device wakes. */
static void* handle_while_running(void* argument) {
    struct handler* handler = argument;
    while (atomic_load(&handler->runs)) CHECK(libusb_handle_events(handler->context) == 0);
    return NULL;
}

static void closing_wakes(void) {
    for (int i = 0; i < 20; ++i) {
        struct handler handler = {new_context(), 1};
        libusb_device_handle* handle = open_chip(handler.context);
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, handle_while_running, &handler), 0);
        uint32_t value = 0;
        CHECK_EQ(read_register(handle, &value), 4);
        const double begin = seconds();
        atomic_store(&handler.runs, 0);
        libusb_close(handle);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK(seconds() - begin < 30);
        libusb_exit(handler.context);
    }
}

struct asker {
    libusb_device_handle* handle;
    int times;
};

static void* ask(void* argument) {
    const struct asker* asker = argument;
    for (int i = 0; i < asker->times; ++i) {
        uint32_t value = 0;
        CHECK_EQ(read_register(asker->handle, &value), 4);
        /* Nothing to read there; the timeouts of one thread do not disturb the others. */
        unsigned char data[16];
        if (i % 50 == 0) {
            CHECK_EQ(libusb_bulk_transfer(asker->handle, 0x82, data, sizeof data, NULL, 2),
                     LIBUSB_ERROR_TIMEOUT);
        }
    }
    return NULL;
}

/* Several threads, two sticks, synchronous calls, and a thread that only handles events. */
static void threads(void) {
    enum { count = 4 };
    struct handler handler = {new_context(), 1};
    libusb_device** list = NULL;
    CHECK_EQ(libusb_get_device_list(handler.context, &list), 2);
    libusb_device_handle* handles[2];
    for (int i = 0; i < 2; ++i) CHECK_EQ(libusb_open(list[i], &handles[i]), 0);
    libusb_free_device_list(list, 1);
    pthread_t events, askers[count];
    struct asker tasks[count];
    CHECK_EQ(pthread_create(&events, NULL, handle_while_running, &handler), 0);
    for (int i = 0; i < count; ++i) {
        tasks[i] = (struct asker){handles[i % 2], 200};
        CHECK_EQ(pthread_create(&askers[i], NULL, ask, &tasks[i]), 0);
    }
    for (int i = 0; i < count; ++i) CHECK_EQ(pthread_join(askers[i], NULL), 0);
    atomic_store(&handler.runs, 0);
    libusb_interrupt_event_handler(handler.context);
    CHECK_EQ(pthread_join(events, NULL), 0);
    libusb_close(handles[0]);
    libusb_close(handles[1]);
    libusb_exit(handler.context);
}

static void LIBUSB_CALL mark_done(struct libusb_transfer* transfer) {
    *(int*)transfer->user_data = 1;
}

static void* wait_for_event(void* argument) {
    libusb_context* context = argument;
    struct timeval time = {10, 0};
    libusb_lock_event_waiters(context);
    const int late = libusb_wait_for_event(context, &time);
    libusb_unlock_event_waiters(context);
    return late ? argument : NULL;
}

static void locks(void) {
    libusb_context* context = new_context();
    libusb_device_handle* handle = open_chip(context);
    CHECK(!libusb_event_handler_active(context));
    CHECK(libusb_event_handling_ok(context));
    CHECK_EQ(libusb_try_lock_events(context), 0);
    CHECK_EQ(libusb_try_lock_events(context), 1);
    CHECK(libusb_event_handler_active(context));

    struct timeval soon = {0, 30000}, bad = {0, 1000000};
    double begin = seconds();
    CHECK_EQ(libusb_handle_events_locked(context, &soon), 0);
    CHECK(seconds() - begin >= 0.025);
    CHECK_EQ(libusb_handle_events_locked(context, &bad), LIBUSB_ERROR_INVALID_PARAM);
    libusb_lock_event_waiters(context);
    begin = seconds();
    CHECK_EQ(libusb_wait_for_event(context, &soon), 1);
    CHECK(seconds() - begin >= 0.025);
    libusb_unlock_event_waiters(context);

    /* Whoever waits is told when a transfer completes. */
    pthread_t waiter;
    CHECK_EQ(pthread_create(&waiter, NULL, wait_for_event, context), 0);
    const struct timespec moment = {0, 50000000};
    nanosleep(&moment, NULL);
    unsigned char data[16];
    int done = 0;
    struct libusb_transfer* transfer = libusb_alloc_transfer(0);
    libusb_fill_bulk_transfer(transfer, handle, 0x82, data, sizeof data, mark_done, &done, 1);
    CHECK_EQ(libusb_submit_transfer(transfer), 0);
    while (!done) CHECK_EQ(libusb_handle_events_locked(context, &soon), 0);
    CHECK_EQ(transfer->status, LIBUSB_TRANSFER_TIMED_OUT);
    void* late = context;
    CHECK_EQ(pthread_join(waiter, &late), 0);
    CHECK(late == NULL);
    libusb_free_transfer(transfer);
    libusb_unlock_events(context);
    CHECK(!libusb_event_handler_active(context));

    /* An interruption ends the next handling at once. */
    libusb_interrupt_event_handler(context);
    begin = seconds();
    CHECK_EQ(libusb_handle_events(context), 0);
    CHECK(seconds() - begin < 30);
    libusb_close(handle);
    libusb_exit(context);
}

/* An event loop of the program's own. */
static void descriptors(void) {
    libusb_context* context = new_context();
    libusb_device_handle* handle = open_chip(context);
    /* Opening left nothing behind that a loop would have to handle. */
    struct timeval now = {0, 0};
    CHECK_EQ(libusb_handle_events_timeout(context, &now), 0);
    CHECK_EQ(libusb_pollfds_handle_timeouts(context), 1);
    CHECK_EQ(libusb_get_next_timeout(context, &now), 0);
    libusb_set_pollfd_notifiers(context, NULL, NULL, NULL);
    const struct libusb_pollfd** list = libusb_get_pollfds(context);
    CHECK(list != NULL);
    struct pollfd polled[8];
    nfds_t count = 0;
    for (; list[count] != NULL; ++count) {
        CHECK(count < 8);
        polled[count] = (struct pollfd){list[count]->fd, list[count]->events, 0};
    }
    CHECK(count >= 1);
    libusb_free_pollfds(list);
    CHECK_EQ(poll(polled, count, 0), 0);

    int done = 0;
    unsigned char data[16];
    struct libusb_transfer* transfer = libusb_alloc_transfer(0);
    libusb_fill_bulk_transfer(transfer, handle, 0x82, data, sizeof data, mark_done, &done, 50);
    CHECK_EQ(libusb_submit_transfer(transfer), 0);
    const double end = seconds() + 10;
    while (!done) {
        CHECK(seconds() < end);
        CHECK(poll(polled, count, 10000) > 0 || errno == EINTR);
        CHECK_EQ(libusb_handle_events_timeout_completed(context, &now, NULL), 0);
    }
    CHECK_EQ(transfer->status, LIBUSB_TRANSFER_TIMED_OUT);
    CHECK_EQ(poll(polled, count, 0), 0);
    libusb_free_transfer(transfer);
    libusb_close(handle);
    libusb_exit(context);
}

enum { race_transfers = 400 };

struct racer {
    libusb_device_handle* handle;
    atomic_int submitted, ended, gone;
};

static void LIBUSB_CALL count_end(struct libusb_transfer* transfer) {
    struct racer* racer = transfer->user_data;
    CHECK(transfer->status == LIBUSB_TRANSFER_CANCELLED ||
          transfer->status == LIBUSB_TRANSFER_TIMED_OUT ||
          transfer->status == LIBUSB_TRANSFER_NO_DEVICE);
    if (transfer->status == LIBUSB_TRANSFER_NO_DEVICE) atomic_store(&racer->gone, 1);
    CHECK_EQ(transfer->actual_length, 0);
    atomic_fetch_add(&racer->ended, 1);
}

/* Transfers that end by their time, by being cancelled, or by the stick's leaving. */
static void* race(void* argument) {
    struct racer* racer = argument;
    for (int i = 0; i < race_transfers; ++i) {
        struct libusb_transfer* transfer = libusb_alloc_transfer(0);
        unsigned char* data = malloc(1024);
        libusb_fill_bulk_transfer(transfer, racer->handle, 0x81, data, 1024, count_end, racer,
                                  i % 3 == 0 ? 1 : 5000);
        /* Freed by hand at the end: a transfer that is cancelled must still be there. */
        transfer->flags = LIBUSB_TRANSFER_FREE_BUFFER;
        const int code = libusb_submit_transfer(transfer);
        if (code == LIBUSB_ERROR_NO_DEVICE) {
            atomic_store(&racer->gone, 1);
            libusb_free_transfer(transfer);
            continue;
        }
        CHECK_EQ(code, 0);
        const int number = atomic_fetch_add(&racer->submitted, 1) + 1;
        const int cancelled = libusb_cancel_transfer(transfer);
        CHECK(cancelled == 0 || cancelled == LIBUSB_ERROR_NOT_FOUND ||
              cancelled == LIBUSB_ERROR_NO_DEVICE);
        while (atomic_load(&racer->ended) < number) {
            const struct timespec moment = {0, 100000};
            nanosleep(&moment, NULL);
        }
        libusb_free_transfer(transfer);
    }
    return NULL;
}

/* Each on a handle of its own, of one stick; with REEF_USB_FAULTS the stick leaves in between. */
static void race_to(int unplugs) {
    enum { count = 3 };
    struct handler handler = {new_context(), 1};
    struct racer racers[count] = {0};
    pthread_t events[2], threads_of[count];
    for (int i = 0; i < 2; ++i) {
        CHECK_EQ(pthread_create(&events[i], NULL, handle_while_running, &handler), 0);
    }
    for (int i = 0; i < count; ++i) racers[i].handle = open_chip(handler.context);
    for (int i = 0; i < count; ++i) {
        CHECK_EQ(pthread_create(&threads_of[i], NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < count; ++i) {
        CHECK_EQ(pthread_join(threads_of[i], NULL), 0);
        CHECK_EQ(atomic_load(&racers[i].ended), atomic_load(&racers[i].submitted));
        CHECK_EQ(atomic_load(&racers[i].gone), unplugs);
    }
    atomic_store(&handler.runs, 0);
    for (int i = 0; i < count; ++i) libusb_close(racers[i].handle);
    /* One interruption wakes one thread; the other may have waited for it. */
    libusb_interrupt_event_handler(handler.context);
    for (int i = 0; i < 2; ++i) CHECK_EQ(pthread_join(events[i], NULL), 0);
    libusb_exit(handler.context);
}

static void racing(void) {
    race_to(0);
}

static void racing_and_unplugged(void) {
    race_to(1);
}

struct plugs {
    int arrived, left, done, result;
    uint16_t product;
    libusb_device* device;
};

static int LIBUSB_CALL plugged(libusb_context* context, libusb_device* device,
                               libusb_hotplug_event event, void* user_data) {
    struct plugs* plugs = user_data;
    struct libusb_device_descriptor descriptor;
    (void)context;
    CHECK_EQ(libusb_get_device_descriptor(device, &descriptor), 0);
    plugs->product = descriptor.idProduct;
    plugs->device = device;
    if (event == LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED) ++plugs->arrived;
    if (event == LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT) ++plugs->left;
    plugs->done = 1;
    return plugs->result;
}

enum {
    both = LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED | LIBUSB_HOTPLUG_EVENT_DEVICE_LEFT,
    any = LIBUSB_HOTPLUG_MATCH_ANY
};

/* During the registration a callback may use what it is told of. */
static int LIBUSB_CALL open_and_read(libusb_context* context, libusb_device* device,
                                     libusb_hotplug_event event, void* user_data) {
    libusb_device_handle* handle = NULL;
    unsigned char bytes[18];
    (void)context;
    CHECK_EQ(event, LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED);
    CHECK_EQ(libusb_open(device, &handle), 0);
    CHECK_EQ(libusb_get_descriptor(handle, LIBUSB_DT_DEVICE, 0, bytes, sizeof bytes), 18);
    libusb_close(handle);
    ++*(int*)user_data;
    return 1;
}

static void hotplug(void) {
    libusb_context* context = new_context();
    struct plugs all = {0}, chips = {0}, once = {.result = 1}, hubs = {0}, removed = {0};
    libusb_hotplug_callback_handle number = 0, other = 0;
    CHECK_EQ(libusb_hotplug_register_callback(context, both, LIBUSB_HOTPLUG_ENUMERATE, any, any,
                                              any, plugged, &all, &number),
             0);
    CHECK_EQ(all.arrived, 1); /* before the call returns */
    CHECK_EQ(all.product, boot_product);
    CHECK(libusb_hotplug_get_user_data(context, number) == &all);
    int read = 0;
    CHECK_EQ(libusb_hotplug_register_callback(context, LIBUSB_HOTPLUG_EVENT_DEVICE_ARRIVED,
                                              LIBUSB_HOTPLUG_ENUMERATE, any, any, any,
                                              open_and_read, &read, &other),
             0);
    CHECK_EQ(read, 1);
    CHECK(libusb_hotplug_get_user_data(context, other) == NULL); /* It returned 1. */
    CHECK_EQ(libusb_hotplug_register_callback(context, both, LIBUSB_HOTPLUG_NO_FLAGS, chip_vendor,
                                              chip_product, any, plugged, &chips, NULL),
             0);
    CHECK_EQ(libusb_hotplug_register_callback(context, both, LIBUSB_HOTPLUG_NO_FLAGS, any, any,
                                              LIBUSB_CLASS_HUB, plugged, &hubs, NULL),
             0);
    CHECK_EQ(libusb_hotplug_register_callback(context, both, LIBUSB_HOTPLUG_NO_FLAGS, any, any, any,
                                              plugged, &once, NULL),
             0);
    CHECK_EQ(libusb_hotplug_register_callback(context, both, LIBUSB_HOTPLUG_NO_FLAGS, any, any, any,
                                              plugged, &removed, &other),
             0);
    CHECK(other != number);
    libusb_hotplug_deregister_callback(context, other);
    CHECK(libusb_hotplug_get_user_data(context, other) == NULL);
    CHECK_EQ(libusb_hotplug_register_callback(context, 0, 0, any, any, any, plugged, &all, NULL),
             LIBUSB_ERROR_INVALID_PARAM);
    CHECK_EQ(libusb_hotplug_register_callback(context, both, 0, any, any, any, NULL, &all, NULL),
             LIBUSB_ERROR_INVALID_PARAM);
    CHECK_EQ(
        libusb_hotplug_register_callback(context, both, 0, 0x12345, any, any, plugged, &all, NULL),
        LIBUSB_ERROR_INVALID_PARAM);

    /* Firmware: one device leaves, another arrives; told to who handles events. */
    libusb_device_handle* handle = open_boot_loader(context);
    download_firmware(handle, 10783);
    CHECK_EQ(libusb_reset_device(handle), LIBUSB_ERROR_NOT_FOUND);
    handle_until(context, &chips.done);
    CHECK_EQ(all.left, 1);
    CHECK_EQ(all.arrived, 2);
    CHECK_EQ(all.product, chip_product);
    CHECK_EQ(chips.arrived, 1);
    CHECK_EQ(chips.left, 0);
    CHECK_EQ(hubs.arrived + hubs.left, 0);
    CHECK_EQ(removed.arrived + removed.left, 0);
    CHECK_EQ(once.arrived + once.left, 1);
    libusb_device_handle* chip = NULL;
    CHECK_EQ(libusb_open(chips.device, &chip), 0);
    uint32_t value = 0;
    CHECK_EQ(read_register(chip, &value), 4);
    libusb_close(handle);
    libusb_close(chip);
    libusb_exit(context);
}

/* REEF_USB_FAULTS=unplug@3+100 */
static void hotplug_and_back(void) {
    libusb_context* context = new_context();
    struct plugs plugs = {0};
    CHECK_EQ(libusb_hotplug_register_callback(context, both, LIBUSB_HOTPLUG_NO_FLAGS, any, any, any,
                                              plugged, &plugs, NULL),
             0);
    libusb_device_handle* handle = open_chip(context);
    uint32_t value = 0;
    int code = 0;
    for (int i = 0; i < 10 && code >= 0; ++i) code = read_register(handle, &value);
    CHECK_EQ(code, LIBUSB_ERROR_NO_DEVICE);
    handle_until(context, &plugs.done);
    CHECK_EQ(plugs.left, 1);
    CHECK_EQ(plugs.arrived, 0);
    CHECK(plugs.device == libusb_get_device(handle));
    libusb_device_handle* again = NULL;
    CHECK_EQ(libusb_open(plugs.device, &again), LIBUSB_ERROR_NO_DEVICE);
    plugs.done = 0;
    handle_until(context, &plugs.done);
    CHECK_EQ(plugs.arrived, 1);
    CHECK_EQ(plugs.product, boot_product);
    libusb_close(handle);
    libusb_exit(context);
}

static ssize_t write_slowly(void* cookie, const char* bytes, size_t size) {
    const struct timespec time = {0, 300000000};
    (void)cookie;
    (void)bytes;
    nanosleep(&time, NULL);
    return (ssize_t)size;
}

/* REEF_USB_FAULTS=unplug@3+100: the stick comes back when the process has destroyed all of its
   objects. Buffered bytes are written after that. */
static void back_at_the_end(void) {
    libusb_context* context = new_context();
    libusb_device_handle* handle = open_chip(context);
    uint32_t value = 0;
    int code = 0;
    for (int i = 0; i < 10 && code >= 0; ++i) code = read_register(handle, &value);
    CHECK_EQ(code, LIBUSB_ERROR_NO_DEVICE);
    FILE* slow = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_slowly});
    CHECK(slow != NULL);
    CHECK(fputc(' ', slow) == ' ');
    libusb_close(handle);
    libusb_exit(context);
}

/* REEF_USB_HOTPLUG=no */
static void no_hotplug(void) {
    libusb_context* context = new_context();
    struct plugs plugs = {0};
    CHECK_EQ(libusb_has_capability(LIBUSB_CAP_HAS_HOTPLUG), 0);
    CHECK_EQ(libusb_hotplug_register_callback(context, both, LIBUSB_HOTPLUG_ENUMERATE, any, any,
                                              any, plugged, &plugs, NULL),
             LIBUSB_ERROR_NOT_SUPPORTED);
    CHECK_EQ(plugs.arrived, 0);
    libusb_exit(context);
}

const struct exercise event_cases[] = {{"closing_wakes", closing_wakes},
                                       {"threads", threads},
                                       {"racing", racing},
                                       {"racing_and_unplugged", racing_and_unplugged},
                                       {"locks", locks},
                                       {"descriptors", descriptors},
                                       {"hotplug", hotplug},
                                       {"hotplug_and_back", hotplug_and_back},
                                       {"back_at_the_end", back_at_the_end},
                                       {"no_hotplug", no_hotplug},
                                       {NULL, NULL}};
