// The engines of a tile: each takes one instruction at a time and walks its loop nests, held back
// by waits on counters and by the buses. One file per engine. each_nest() shows where they are.
// What only an engine's own file calls is inline: it becomes part of advance(), and the simulator
// takes a tenth less time.
#pragma once

#include <array>

#include "edgetpu/sim/program/program.h"
#include "tile.h"

namespace reef::edgetpu::sim {

class TableEngine {
  public:
    explicit TableEngine(const Table& table) : table_(&table) {}
    Outcome advance(Work& work) {
        work.tile.table = *table_;
        return Outcome::done;
    }

  private:
    const Table* table_;
};

class RingSendEngine {
  public:
    explicit RingSendEngine(const RingSend& op) : op_(&op), src_(op.src) {}
    Outcome advance(Work& work);
    void each_nest(auto&& tell) const { tell("src", src_); }

  private:
    inline std::uint32_t send_rows(Work& work, std::uint32_t row);

    const RingSend* op_;
    NestCursor src_;
};

class RingReceiveEngine {
  public:
    explicit RingReceiveEngine(const RingReceive& op)
        : op_(&op), dst_(op.dst), head_row_(op.head.base) {}
    Outcome advance(Work& work);
    void each_nest(auto&& tell) const { tell("dst", dst_); }

  private:
    inline void begin_group();
    inline bool take_head(Work& work, RingQueue& queue);
    inline bool receive(Work& work, RingQueue& queue, std::uint32_t row);
    inline std::uint32_t take_rows(Work& work, RingQueue& queue);

    const RingReceive* op_;
    NestCursor dst_;
    std::int32_t head_row_;
    std::uint32_t heads_due_ = 0;
    bool group_begun_ = false;
};

class NarrowToWideEngine {
  public:
    /// `source_base` is the source's own, or in its place what a register holds.
    NarrowToWideEngine(const NarrowToWide& op, std::int32_t source_base)
        : op_(&op), src_(op.src, source_base), dst_(op.dst) {}
    Outcome advance(Work& work);
    void each_nest(auto&& tell) const {
        tell("src", src_);
        tell("dst", dst_);
    }

  private:
    inline bool write_row(Work& work);
    inline std::uint32_t write_words(Work& work);
    [[nodiscard]] inline std::uint32_t words_at_once(const Work& work) const;

    const NarrowToWide* op_;
    NestCursor src_;
    NestCursor dst_;
    std::array<std::uint8_t, row_bytes> row_;
    unsigned filled_ = 0;  ///< bytes of row_
    bool complete_ = false;
};

class WideToNarrowEngine {
  public:
    explicit WideToNarrowEngine(const WideToNarrow& op)
        : op_(&op),
          src_(op.src),
          dst_(op.dst),
          skip_bytes_(op.skip.words() * (op.to_scaling ? scaling_word_bytes : narrow_word_bytes)) {}
    Outcome advance(Work& work);
    void each_nest(auto&& tell) const {
        tell("src", src_);
        tell("dst", dst_);
    }

  private:
    enum class Fill : std::uint8_t { ready, waiting, faulty };
    inline Fill fill_word(Work& work, unsigned unit);
    inline Fill next_row(Work& work);
    inline void write_word(Work& work, unsigned unit);
    inline bool write_run(Work& work, unsigned unit);
    inline void count_words(Work& work, std::uint32_t words);
    inline Outcome drain(Work& work, bool moved);
    inline Outcome copy(Work& work);

    const WideToNarrow* op_;
    NestCursor src_;
    NestCursor dst_;
    std::uint64_t skip_bytes_;
    /// The row, where it lies in wide memory; between two turns in row_, for others may fill it.
    const std::uint8_t* row_from_ = nullptr;
    std::array<std::uint8_t, row_bytes> row_;
    unsigned row_at_ = row_bytes;  ///< its next byte; row_bytes: none is left
    std::array<std::uint8_t, scaling_word_bytes> word_{};
    unsigned word_filled_ = 0;
};

class MeshEngine {
  public:
    explicit MeshEngine(const MeshTransfer& op)
        : op_(&op),
          src_(op.src),
          dst_(op.dst),
          sending_(op.sends),
          receiving_(op.receives || op.fills) {}
    Outcome advance(Work& work);
    void each_nest(auto&& tell) const {
        if (op_->sends) tell("src", src_);
        if (op_->receives || op_->fills) tell("dst", dst_);
    }

  private:
    inline Outcome send(Work& work);
    inline Outcome receive(Work& work);

    const MeshTransfer* op_;
    NestCursor src_;
    NestCursor dst_;
    bool sending_;
    bool receiving_;
};

}  // namespace reef::edgetpu::sim
