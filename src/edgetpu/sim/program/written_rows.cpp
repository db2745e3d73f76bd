#include "written_rows.h"

namespace reef::edgetpu::sim {
namespace {

/// Nests of more visits are not walked: known programs write and send some thousand rows at a time.
constexpr double most_walked = 0x1p16;

bool is_row(std::int32_t row) {
    return row >= 0 && static_cast<std::size_t>(row) < wide_rows;
}

}  // namespace

// Who leaves the memory stops the run, but what was sent before may not be there any more.
void WrittenRows::include(std::int32_t row) {
    if (is_row(row))
        written_.set(static_cast<std::size_t>(row));
    else
        written_.set();
}

void WrittenRows::include(const Nest& nest, std::int32_t per_row) {
    if (nest.longest_walk() > most_walked) {
        written_.set();
        return;
    }
    for (NestCursor at(nest); !at.done(); at.advance())
        include(at.address() < 0 ? -1 : at.address() / per_row);
}

void WrittenRows::include(const Operation& operation) {
    if (const auto* receive = std::get_if<RingReceive>(&operation)) {
        include(receive->dst, 1);
        const auto& head = receive->head;
        if (!head.enabled) return;
        if (!is_row(head.base) || !is_row(head.last) || head.base > head.last) written_.set();
        for (std::int32_t row = head.base; row <= head.last && is_row(row); ++row) include(row);
    } else if (const auto* copy = std::get_if<NarrowToWide>(&operation)) {
        include(copy->dst, 1);
    } else if (const auto* op = std::get_if<TensorOp>(&operation)) {
        constexpr std::int32_t quarters = 4;
        if (!op->acc_internal) include(op->acc, quarters);
    }
}

bool WrittenRows::are_kept(const Nest& rows) const {
    if (rows.longest_walk() > most_walked) return false;
    for (NestCursor at(rows); !at.done(); at.advance())
        if (!is_row(at.address()) || written_.test(static_cast<std::size_t>(at.address())))
            return false;
    return true;
}

}  // namespace reef::edgetpu::sim
