/* Lists, descriptors, opening, interfaces, configurations. */
#define _GNU_SOURCE /* for pthread_setattr_default_np() */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "exercise.h"

static void library(void) {
    const struct libusb_version* version = libusb_get_version();
    CHECK_EQ(version->major, 1);
    CHECK_EQ(version->minor, 0);
    CHECK(strstr(version->describe, "simulated") != NULL);
    CHECK(libusb_has_capability(LIBUSB_CAP_HAS_CAPABILITY));
    CHECK(libusb_has_capability(LIBUSB_CAP_HAS_HOTPLUG));
    CHECK(!libusb_has_capability(LIBUSB_CAP_HAS_HID_ACCESS));
    CHECK(strcmp(libusb_error_name(LIBUSB_ERROR_PIPE), "LIBUSB_ERROR_PIPE") == 0);
    CHECK(strcmp(libusb_error_name(LIBUSB_ERROR_OTHER), "LIBUSB_ERROR_OTHER") == 0);
    CHECK(strcmp(libusb_error_name(12345), "**UNKNOWN**") == 0);
    CHECK(strlen(libusb_strerror(LIBUSB_ERROR_NO_DEVICE)) > 0);
    CHECK_EQ(libusb_setlocale("en_GB.UTF-8"), 0);
    CHECK_EQ(libusb_setlocale("fr"), LIBUSB_ERROR_NOT_FOUND);
    CHECK_EQ(libusb_setlocale("x"), LIBUSB_ERROR_INVALID_PARAM);

    /* The default context counts its users. */
    libusb_device** list = NULL;
    CHECK(libusb_get_device_list(NULL, &list) < 0);
    CHECK_EQ(libusb_init(NULL), 0);
    CHECK_EQ(libusb_init(NULL), 0);
    libusb_exit(NULL);
    CHECK_EQ(libusb_get_device_list(NULL, &list), 1);
    libusb_free_device_list(list, 1);
    CHECK_EQ(libusb_set_option(NULL, LIBUSB_OPTION_LOG_LEVEL, LIBUSB_LOG_LEVEL_WARNING), 0);
    CHECK_EQ(libusb_set_option(NULL, LIBUSB_OPTION_LOG_LEVEL, 9), LIBUSB_ERROR_INVALID_PARAM);
    CHECK_EQ(libusb_set_option(NULL, LIBUSB_OPTION_USE_USBDK), LIBUSB_ERROR_NOT_SUPPORTED);
    libusb_exit(NULL);

    libusb_context* blind = new_context();
    CHECK_EQ(libusb_set_option(blind, LIBUSB_OPTION_NO_DEVICE_DISCOVERY), 0);
    CHECK_EQ(libusb_get_device_list(blind, &list), 0);
    CHECK(list[0] == NULL);
    libusb_free_device_list(list, 1);
    libusb_exit(blind);
}

/* libusb 1.0.27's way to begin, which the header of 1.0.26 does not declare. */
union init_value {
    int ival;
    libusb_log_cb logcbv;
};
struct init_option {
    enum libusb_option option;
    union init_value value;
};
typedef int (*init_context_fn)(libusb_context**, const struct init_option[], int);

static void LIBUSB_CALL ignore_log(libusb_context* context, enum libusb_log_level level,
                                   const char* text) {
    (void)context;
    (void)level;
    (void)text;
}

static void init_options(void) {
    init_context_fn init = NULL;
    *(void**)&init = dlsym(RTLD_DEFAULT, "libusb_init_context");
    CHECK(init != NULL);
    const struct init_option options[] = {
        {LIBUSB_OPTION_LOG_LEVEL, {.ival = LIBUSB_LOG_LEVEL_DEBUG}},
        {LIBUSB_OPTION_NO_DEVICE_DISCOVERY, {0}},
        {(enum libusb_option)3, {.logcbv = ignore_log}}};
    libusb_context* context = NULL;
    CHECK_EQ(init(&context, options, 3), 0);
    libusb_device** list = NULL;
    CHECK_EQ(libusb_get_device_list(context, &list), 0);
    libusb_free_device_list(list, 1);
    libusb_exit(context);
    CHECK_EQ(init(&context, NULL, 0), 0);
    CHECK_EQ(libusb_get_device_list(context, &list), 1);
    libusb_free_device_list(list, 1);
    libusb_exit(context);
    const struct init_option wrong = {(enum libusb_option)77, {0}};
    context = NULL;
    CHECK_EQ(init(&context, &wrong, 1), LIBUSB_ERROR_INVALID_PARAM);
    CHECK(context == NULL);
    CHECK_EQ(init(&context, NULL, 1), LIBUSB_ERROR_INVALID_PARAM);
}

static libusb_device* only_device(libusb_context* context) {
    libusb_device** list = NULL;
    CHECK_EQ(libusb_get_device_list(context, &list), 1);
    libusb_device* device = libusb_ref_device(list[0]);
    CHECK(list[1] == NULL);
    libusb_free_device_list(list, 1);
    return device;
}

static void boot_descriptors(void) {
    libusb_context* context = new_context();
    libusb_device* device = only_device(context);
    struct libusb_device_descriptor descriptor;
    CHECK_EQ(libusb_get_device_descriptor(device, &descriptor), 0);
    CHECK_EQ(descriptor.bLength, 18);
    CHECK_EQ(descriptor.bDescriptorType, LIBUSB_DT_DEVICE);
    CHECK_EQ(descriptor.idVendor, boot_vendor);
    CHECK_EQ(descriptor.idProduct, boot_product);
    CHECK_EQ(descriptor.bMaxPacketSize0, 64);
    CHECK_EQ(descriptor.bNumConfigurations, 1);

    struct libusb_config_descriptor* config = NULL;
    CHECK_EQ(libusb_get_active_config_descriptor(device, &config), 0);
    CHECK_EQ(config->bNumInterfaces, 1);
    CHECK_EQ(config->interface[0].num_altsetting, 1);
    const struct libusb_interface_descriptor* dfu = &config->interface[0].altsetting[0];
    CHECK_EQ(dfu->bInterfaceClass, LIBUSB_CLASS_APPLICATION);
    CHECK_EQ(dfu->bInterfaceSubClass, 1);
    CHECK_EQ(dfu->bInterfaceProtocol, 2);
    CHECK_EQ(dfu->bNumEndpoints, 0);
    CHECK_EQ(dfu->extra_length, 9);
    CHECK_EQ(dfu->extra[1], 0x21);
    CHECK_EQ(dfu->extra[5] | dfu->extra[6] << 8, 256);
    libusb_free_config_descriptor(config);
    CHECK_EQ(libusb_get_config_descriptor(device, 1, &config), LIBUSB_ERROR_NOT_FOUND);
    CHECK_EQ(libusb_get_config_descriptor_by_value(device, 2, &config), LIBUSB_ERROR_NOT_FOUND);
    CHECK_EQ(libusb_get_config_descriptor_by_value(device, 1, &config), 0);
    libusb_free_config_descriptor(config);

    libusb_unref_device(device);
    libusb_exit(context);
}

static void object_store(libusb_context* context, libusb_device_handle* handle) {
    struct libusb_bos_descriptor* store = NULL;
    CHECK_EQ(libusb_get_bos_descriptor(handle, &store), 0);
    CHECK_EQ(store->bNumDeviceCaps, 2);
    CHECK_EQ(store->wTotalLength, 22);
    struct libusb_usb_2_0_extension_descriptor* extension = NULL;
    CHECK_EQ(libusb_get_usb_2_0_extension_descriptor(context, store->dev_capability[0], &extension),
             0);
    CHECK_EQ(extension->bmAttributes, LIBUSB_BM_LPM_SUPPORT);
    libusb_free_usb_2_0_extension_descriptor(extension);
    struct libusb_ss_usb_device_capability_descriptor* super = NULL;
    CHECK_EQ(libusb_get_ss_usb_device_capability_descriptor(context, store->dev_capability[0],
                                                            &super),
             LIBUSB_ERROR_INVALID_PARAM);
    CHECK_EQ(libusb_get_ss_usb_device_capability_descriptor(context, store->dev_capability[1],
                                                            &super),
             0);
    CHECK_EQ(super->wSpeedSupported,
             LIBUSB_HIGH_SPEED_OPERATION | LIBUSB_SUPER_SPEED_OPERATION);
    CHECK_EQ(super->bU1DevExitLat, 0);
    CHECK_EQ(super->bU2DevExitLat, 0);
    libusb_free_ss_usb_device_capability_descriptor(super);
    struct libusb_container_id_descriptor* container = NULL;
    CHECK_EQ(libusb_get_container_id_descriptor(context, store->dev_capability[1], &container),
             LIBUSB_ERROR_INVALID_PARAM);
    libusb_free_bos_descriptor(store);
}

static void chip_descriptors(void) {
    libusb_context* context = new_context();
    libusb_device* device = only_device(context);
    CHECK_EQ(libusb_get_bus_number(device), 2);
    CHECK_EQ(libusb_get_port_number(device), 1);
    uint8_t ports[7];
    CHECK_EQ(libusb_get_port_numbers(device, ports, 7), 1);
    CHECK_EQ(ports[0], 1);
    CHECK_EQ(libusb_get_port_numbers(device, ports, 0), LIBUSB_ERROR_INVALID_PARAM);
    CHECK(libusb_get_parent(device) == NULL);
    CHECK(libusb_get_device_address(device) >= 2);
    CHECK_EQ(libusb_get_device_speed(device), LIBUSB_SPEED_SUPER);
    CHECK_EQ(libusb_get_max_packet_size(device, 0x81), 1024);
    CHECK_EQ(libusb_get_max_packet_size(device, 0x83), 64);
    CHECK_EQ(libusb_get_max_packet_size(device, 0x05), LIBUSB_ERROR_NOT_FOUND);

    struct libusb_config_descriptor* config = NULL;
    CHECK_EQ(libusb_get_config_descriptor(device, 0, &config), 0);
    const struct libusb_interface_descriptor* chip = &config->interface[0].altsetting[0];
    CHECK_EQ(chip->bInterfaceClass, LIBUSB_CLASS_VENDOR_SPEC);
    const struct {
        uint8_t address, type;
    } endpoints[] = {{0x01, 2}, {0x02, 2}, {0x03, 2}, {0x81, 2}, {0x82, 2}, {0x83, 3}};
    CHECK_EQ(config->MaxPower, 112);
    CHECK_EQ(chip->bNumEndpoints, 6);
    for (int i = 0; i < 6; ++i) {
        CHECK_EQ(chip->endpoint[i].bEndpointAddress, endpoints[i].address);
        CHECK_EQ(chip->endpoint[i].bmAttributes, endpoints[i].type);
        CHECK_EQ(chip->endpoint[i].extra_length, 6);
        struct libusb_ss_endpoint_companion_descriptor* companion = NULL;
        CHECK_EQ(libusb_get_ss_endpoint_companion_descriptor(context, &chip->endpoint[i],
                                                             &companion),
                 0);
        CHECK_EQ(companion->bLength, 6);
        CHECK_EQ(companion->bDescriptorType, LIBUSB_DT_SS_ENDPOINT_COMPANION);
        CHECK_EQ(companion->wBytesPerInterval, endpoints[i].type == 3 ? 64 : 0);
        libusb_free_ss_endpoint_companion_descriptor(companion);
    }
    libusb_free_config_descriptor(config);

    libusb_device_handle* handle = NULL;
    CHECK_EQ(libusb_open(device, &handle), 0);
    CHECK(libusb_get_device(handle) == device);
    unsigned char raw[18];
    CHECK_EQ(libusb_get_descriptor(handle, LIBUSB_DT_DEVICE, 0, raw, sizeof raw), 18);
    CHECK_EQ(raw[8] | raw[9] << 8, chip_vendor);
    /* As a real stick's it names no string, but there is one for who asks. */
    CHECK(raw[14] == 0 && raw[15] == 0 && raw[16] == 0);
    CHECK_EQ(libusb_get_string_descriptor_ascii(handle, 2, raw, sizeof raw), 17);
    CHECK(strcmp((const char*)raw, "simulated Edge TP") == 0);
    CHECK_EQ(libusb_get_string_descriptor_ascii(handle, 3, raw, sizeof raw), LIBUSB_ERROR_PIPE);
    object_store(context, handle);
    libusb_close(handle);
    libusb_unref_device(device);
    libusb_exit(context);
}

static void interfaces(void) {
    libusb_context* context = new_context();
    libusb_device_handle* one = open_chip(context);
    libusb_device_handle* other = open_chip(context);
    CHECK_EQ(libusb_release_interface(one, 0), LIBUSB_ERROR_NOT_FOUND);
    CHECK_EQ(libusb_claim_interface(one, 1), LIBUSB_ERROR_NOT_FOUND);
    CHECK_EQ(libusb_claim_interface(one, 77), LIBUSB_ERROR_INVALID_PARAM);
    CHECK_EQ(libusb_claim_interface(one, 0), 0);
    CHECK_EQ(libusb_claim_interface(one, 0), 0);
    CHECK_EQ(libusb_claim_interface(other, 0), LIBUSB_ERROR_BUSY);
    CHECK_EQ(libusb_set_configuration(one, 1), LIBUSB_ERROR_BUSY);
    CHECK_EQ(libusb_set_interface_alt_setting(one, 0, 0), 0);
    CHECK_EQ(libusb_set_interface_alt_setting(one, 0, 1), LIBUSB_ERROR_NOT_FOUND);
    CHECK_EQ(libusb_clear_halt(one, 0x81), 0);
    CHECK_EQ(libusb_clear_halt(one, 0x04), LIBUSB_ERROR_NOT_FOUND);
    CHECK_EQ(libusb_reset_device(one), 0);
    CHECK_EQ(libusb_release_interface(one, 0), 0);
    CHECK_EQ(libusb_claim_interface(other, 0), 0);
    libusb_close(other);
    CHECK_EQ(libusb_claim_interface(one, 0), 0);
    CHECK_EQ(libusb_release_interface(one, 0), 0);

    int configuration = -1;
    CHECK_EQ(libusb_get_configuration(one, &configuration), 0);
    CHECK_EQ(configuration, 1);
    CHECK_EQ(libusb_set_configuration(one, 2), LIBUSB_ERROR_NOT_FOUND);
    CHECK_EQ(libusb_set_configuration(one, -1), 0);
    CHECK_EQ(libusb_get_configuration(one, &configuration), 0);
    CHECK_EQ(configuration, 0);
    struct libusb_config_descriptor* config = NULL;
    CHECK_EQ(libusb_get_active_config_descriptor(libusb_get_device(one), &config),
             LIBUSB_ERROR_NOT_FOUND);
    CHECK_EQ(libusb_claim_interface(one, 0), LIBUSB_ERROR_NOT_FOUND);
    CHECK_EQ(libusb_set_configuration(one, 1), 0);

    CHECK_EQ(libusb_kernel_driver_active(one, 0), 0);
    CHECK_EQ(libusb_detach_kernel_driver(one, 0), LIBUSB_ERROR_NOT_FOUND);
    CHECK_EQ(libusb_attach_kernel_driver(one, 0), LIBUSB_ERROR_NOT_FOUND);
    CHECK_EQ(libusb_set_auto_detach_kernel_driver(one, 1), 0);
    libusb_close(one);
    libusb_exit(context);
}

static void refused(void) {
    libusb_context* context = new_context();
    libusb_device_handle* handle = open_chip(context);
    libusb_device* device = libusb_get_device(handle);
    unsigned char endpoint = 0x81;
    libusb_device_handle* wrapped = NULL;
    CHECK_EQ(libusb_wrap_sys_device(context, 0, &wrapped), LIBUSB_ERROR_NOT_SUPPORTED);
    CHECK_EQ(libusb_alloc_streams(handle, 2, &endpoint, 1), LIBUSB_ERROR_NOT_SUPPORTED);
    CHECK_EQ(libusb_free_streams(handle, &endpoint, 1), LIBUSB_ERROR_NOT_SUPPORTED);
    CHECK_EQ(libusb_get_max_iso_packet_size(device, 0x81), LIBUSB_ERROR_NOT_SUPPORTED);
    struct libusb_transfer* transfer = libusb_alloc_transfer(3);
    unsigned char data[64];
    libusb_fill_iso_transfer(transfer, handle, 0x81, data, sizeof data, 3, NULL, NULL, 0);
    CHECK_EQ(libusb_submit_transfer(transfer), LIBUSB_ERROR_NOT_SUPPORTED);
    libusb_fill_bulk_stream_transfer(transfer, handle, 0x81, 1, data, sizeof data, NULL, NULL, 0);
    CHECK_EQ(libusb_submit_transfer(transfer), LIBUSB_ERROR_NOT_SUPPORTED);
    libusb_free_transfer(transfer);
    libusb_close(handle);
    libusb_exit(context);
}

static void no_sticks(void) {
    libusb_context* context = new_context();
    libusb_device** list = NULL;
    CHECK_EQ(libusb_get_device_list(context, &list), 0);
    libusb_free_device_list(list, 1);
    CHECK(libusb_open_device_with_vid_pid(context, chip_vendor, chip_product) == NULL);
    libusb_exit(context);
}

static void wrong_settings(void) {
    libusb_context* context = NULL;
    CHECK_EQ(libusb_init(&context), LIBUSB_ERROR_INVALID_PARAM);
}

/* Two sticks behind hubs, in different modes and at different speeds. */
static void several_sticks(void) {
    libusb_context* context = new_context();
    libusb_device** list = NULL;
    CHECK_EQ(libusb_get_device_list(context, &list), 2);
    libusb_device *first = list[0], *second = list[1];
    uint8_t ports[7];
    CHECK_EQ(libusb_get_bus_number(first), 1);
    CHECK_EQ(libusb_get_port_numbers(first, ports, 7), 3);
    CHECK(ports[0] == 1 && ports[1] == 4 && ports[2] == 2);
    CHECK_EQ(libusb_get_port_numbers(first, ports, 2), LIBUSB_ERROR_OVERFLOW);
    CHECK_EQ(libusb_get_device_speed(first), LIBUSB_SPEED_HIGH);
    CHECK_EQ(libusb_get_bus_number(second), 1);
    CHECK_EQ(libusb_get_port_number(second), 3);
    CHECK(libusb_get_device_address(first) != libusb_get_device_address(second));
    struct libusb_device_descriptor descriptor;
    CHECK_EQ(libusb_get_device_descriptor(first, &descriptor), 0);
    CHECK_EQ(descriptor.idVendor, chip_vendor);
    CHECK_EQ(libusb_get_max_packet_size(first, 0x81), 512);
    CHECK_EQ(libusb_get_device_descriptor(second, &descriptor), 0);
    CHECK_EQ(descriptor.idVendor, boot_vendor);
    libusb_free_device_list(list, 1);
    libusb_exit(context);
}

/* A handle that is still open is closed. */
static void exit_with_open_handle(void) {
    libusb_context* context = new_context();
    CHECK(open_chip(context) != NULL);
    libusb_exit(context);
}

/* What the system refuses is a number, not an exception in a C program. An open stick has a thread
 * of its own, which here would need a stack larger than the address space. */
static void no_thread(void) {
    libusb_context* context = new_context();
    libusb_device* device = only_device(context);
    libusb_device_handle* handle = NULL;
    pthread_attr_t before, larger;
    CHECK_EQ(pthread_getattr_default_np(&before), 0);
    CHECK_EQ(pthread_attr_init(&larger), 0);
    CHECK_EQ(pthread_attr_setstacksize(&larger, (size_t)1 << 60), 0);
    CHECK_EQ(pthread_setattr_default_np(&larger), 0);
    CHECK_EQ(libusb_open(device, &handle), LIBUSB_ERROR_OTHER);
    CHECK(handle == NULL);
    CHECK_EQ(pthread_setattr_default_np(&before), 0);
    CHECK_EQ(libusb_open(device, &handle), 0);
    uint32_t value = 0;
    CHECK_EQ(read_register(handle, &value), 4);
    libusb_close(handle);
    libusb_unref_device(device);
    libusb_exit(context);
}

const struct exercise device_cases[] = {{"library", library},
                                        {"init_options", init_options},
                                        {"boot_descriptors", boot_descriptors},
                                        {"chip_descriptors", chip_descriptors},
                                        {"interfaces", interfaces},
                                        {"refused", refused},
                                        {"no_sticks", no_sticks},
                                        {"wrong_settings", wrong_settings},
                                        {"several_sticks", several_sticks},
                                        {"exit_with_open_handle", exit_with_open_handle},
                                        {"no_thread", no_thread},
                                        {NULL, NULL}};
