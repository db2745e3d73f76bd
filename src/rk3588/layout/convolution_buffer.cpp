#include "rk3588/layout/convolution_buffer.h"

#include <algorithm>

#include "reef_spec/rk3588_machine.h"

namespace reef::rk3588 {
namespace {

constexpr std::size_t bank_entries = spec::cbuf_bank_bytes / spec::cbuf_entry_bytes;

constexpr std::size_t whole(std::size_t value, std::size_t step) {
    return (value + step - 1) / step;
}

}  // namespace

std::size_t entries_of_row(std::size_t pixels, std::size_t atoms) {
    constexpr std::size_t atoms_of_entry = spec::cbuf_entry_bytes / spec::atom_bytes;
    const std::size_t rest = atoms % atoms_of_entry;
    const bool alone = rest == spec::cbuf_atoms_alone;
    return atoms / atoms_of_entry * pixels +
           (alone ? pixels : whole(rest * pixels, atoms_of_entry));
}

std::size_t BufferedRows::banks_of(std::size_t rows) const {
    const std::size_t entries = entries_of_row(pixels, atoms) * rows;
    const std::size_t banks = whole(entries, bank_entries);
    const bool all_but_full =
        pixels == 1 && entries * 100 >= banks * bank_entries * spec::cbuf_read_ahead_percent;
    return all_but_full ? banks + 1 : banks;
}

std::size_t BufferedRows::rows_in(std::size_t banks, std::size_t most) const {
    std::size_t rows = std::min(bank_entries * banks / entries_of_row(pixels, atoms), most);
    while (rows > 0 && banks_of(rows) > banks) --rows;
    return rows;
}

std::size_t banks_of_weights(std::size_t bytes) {
    return whole(bytes, spec::cbuf_bank_bytes);
}

std::size_t banks_of_streamed_weights(std::size_t group_bytes) {
    return std::max<std::size_t>(spec::streamed_weight_banks, banks_of_weights(group_bytes));
}

}  // namespace reef::rk3588
