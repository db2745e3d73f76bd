// .npy and .npz: whatever reads must come back equal after being written in every form.
#include "check.h"
#include "reef/base/npy.h"

namespace reef::fuzz {
namespace {

void read_array(Bytes input) {
    const auto array = read_npy(input);
    if (!array) {
        check(!array.error().what.empty(), "an error says what is wrong");
        return;
    }
    for (const Order order : {Order::c, Order::fortran}) {
        const auto file = write_npy(*array, order);
        check(file.has_value(), "an array that was read can be written");
        const auto again = read_npy(*file);
        check(again.has_value() && *again == *array, ".npy read -> write -> read is equal");
    }
}

void read_archive(Bytes input) {
    const auto arrays = read_npz(input);
    if (!arrays) {
        check(!arrays.error().what.empty(), "an error says what is wrong");
        return;
    }
    for (const Compression compression : {Compression::stored, Compression::deflated}) {
        const auto file = write_npz(*arrays, compression);
        check(file.has_value(), "arrays that were read can be written");
        const auto again = read_npz(*file);
        check(again.has_value() && *again == *arrays, ".npz read -> write -> read is equal");
    }
}

}  // namespace
}  // namespace reef::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const reef::Bytes input = std::as_bytes(std::span(data, size));
    reef::fuzz::read_array(input);
    reef::fuzz::read_archive(input);
    return 0;
}
