// UNIDIRECTIONAL_SEQUENCE_LSTM with the instructions of the vendor's program of one, all on tile 0,
// step by step: gates in 8 bits of the hidden state's scale, products of them and the cell in 16.
// The scalar core repeats a step where that takes less time than to send each one's instructions.
#include <algorithm>
#include <utility>

#include "edgetpu/compiler/cycles.h"
#include "edgetpu/compiler/emission.h"

namespace reef::edgetpu::lowering {
namespace {

constexpr TileSet recurrent_tile = 1;
/// Of wide memory: factors of sums of two gates, and of the cell's two summands; a FIFO.
constexpr std::int32_t gate_sum_row = top_row - 16;
constexpr std::int32_t cell_sum_row = top_row - 12;
constexpr std::int32_t factor_row = top_row - 8;
/// ... and a step's inputs, on their way to where each repeated step has them.
constexpr std::int32_t input_row = top_row - 6;
constexpr std::uint32_t most_input_rows = 4;
/// Of an instruction's table of tanh, which begins at 0.
constexpr unsigned odd_function = 3;

constexpr std::uint32_t bytes_of_word = spec::narrow_word_bytes;
constexpr std::int32_t pair_bytes = 2 * bytes_of_word;  ///< 4 lanes of 16 bits

class LstmWriter {
  public:
    LstmWriter(Emission& e, const Step& step, const LstmStep& kind)
        : e_(e),
          kind_(kind),
          layer_(e.plan.layers[kind.layer]),
          words_(kind.words()),
          cell_words_(e.tensor(step.in[2]).words()),
          inputs_(e.tensor(step.in[0]).address(0, 0, 0)),
          hidden_(e.tensor(step.in[1]).address(0, 0, 0)),
          cell_(e.tensor(step.in[2]).address(0, 0, 0)),
          given_(e.tensor(step.out).address(0, 0, 0)),
          scratch_(static_cast<std::int32_t>(step.scratch->base)),
          rows_(e.plan.first_free_row()) {}

    void run() {
        const std::uint32_t f = kind_.cell_factors.first, g = kind_.cell_factors.second;
        emit_constants(
            e_, {1, 1U << 16U, 0, 0, 0, 0, 1, 1U << 16U, 1, 1U << 16U, 0, 0, 0, 0, 1, 1U << 16U},
            gate_sum_row);
        const std::uint32_t both = g << 16U | f;
        emit_constants(e_, {both, 0, 0, 0, 0, both, 0, 0, 0, 0, both, 0, 0, 0, 0, both},
                       cell_sum_row);
        load_rows();
        clear_behind_cell();
        e_.code.full_stop();
        if (repeats())
            repeat();
        else
            write_out();
    }

  private:
    /// Words of a step's instructions; cycles of starting those that a repeated one has besides.
    static constexpr std::uint64_t words_of_step = 311, cycles_of_moves = 100;
    /// Of the scalar core: the word of the next step's inputs.
    static constexpr unsigned input_register = 7;

    /// Results of all steps move on with each, because no instruction's destination is in a
    /// register.
    [[nodiscard]] bool repeats() const {
        const auto steps = static_cast<std::uint64_t>(kind_.steps);
        return steps > 1 && input_rows() <= most_input_rows &&
               steps * (cycles_of_moves + step_cycles(steps * words_)) <
                   (steps - 1) * instruction_cycles(words_of_step);
    }
    [[nodiscard]] std::uint32_t input_rows() const {
        return (4 * words_ * bytes_of_word + spec::row_bytes - 1) / spec::row_bytes;
    }

    void write_out() const {
        for (std::int32_t t = 0; t < kind_.steps; ++t) {
            const std::int32_t to = given_ + t * kind_.gate_bytes;
            take_gates(inputs_ + 4 * t * kind_.gate_bytes,
                       t == 0 ? hidden_ : to - kind_.gate_bytes);
            take_cell();
            give(to);
            e_.code.full_stop();
        }
        copy(given_ + (kind_.steps - 1) * kind_.gate_bytes, hidden_, words_);
        e_.code.full_stop();
    }

    void repeat() const {
        const auto first = static_cast<std::uint32_t>(inputs_ / 4);
        const auto all = static_cast<std::uint32_t>(kind_.steps) * words_;
        clear(given_ / 4, all);
        e_.code.full_stop();
        e_.code.begin_loop(input_register, first);
        take_inputs();
        take_gates(room(LstmRoom::inputs), hidden_);
        take_cell();
        give(hidden_);
        copy(given_ + kind_.gate_bytes, given_, all - words_);
        copy(hidden_, given_ + (kind_.steps - 1) * kind_.gate_bytes, words_);
        e_.code.full_stop();
        e_.code.end_loop(input_register, 4 * words_, first + 4 * all);
    }

    [[nodiscard]] std::int32_t room(std::int32_t gates) const {
        return scratch_ + gates * kind_.gate_bytes;
    }
    template <typename Op>
    void send(Op op) const {
        e_.code.tile(recurrent_tile, std::move(op));
    }
    /// Behind it all counters begin anew.
    void rest() const { e_.code.fence(all_but_producers); }

    /// Those of the next step: the one instruction whose source may be in a register.
    void take_inputs() const {
        const std::uint32_t words = 4 * words_;
        program::NarrowToWide take;
        take.work.base_register = input_register;
        take.base_indirect = true;
        take.src = nest(6, inputs_ / 4, {{1, words}});
        take.dst = nest(4, input_row, {{1, input_rows()}});
        take.written = signal_at(0);
        take.row_level = 1;
        send(take);
        program::WideToNarrow store;
        store.src = nest(4, input_row, {{1, input_rows()}});
        store.dst = nest(6, room(LstmRoom::inputs) / 4, {{1, words}});
        store.written = signal_at(0);
        store.wait[0] = wait_for(counter::NARROW_TO_WIDE_, 0, 1, 1);
        store.row_level = 1;
        send(store);
        rest();
    }

    /// Known programs read what stays on the chip with one instruction: rows that each step reads
    /// are copied behind it.
    void load_rows() const {
        const auto& piece = layer_.pieces.front();
        program::RingReceive take;
        take.ring = program::Ring::b;
        take.dst = nest(4, rows_, {{1, piece.count}});
        take.ring_read = signal_at(1);
        send(take);
        program::RingSend give;
        give.src = nest(4, static_cast<std::int32_t>(piece.row), {{1, piece.count}});
        give.producer = signal_at(0);
        give.wait[0] = wait_for(counter::RING_PRODUCER_B_, 1, e_.next_message_b(), 1);
        give.ring = program::Ring::b;
        give.to_tiles = recurrent_tile;
        send(give);
        e_.messages_b += piece.count;
    }

    /// The cell is computed in whole gates, of which the host sends what has units.
    void clear_behind_cell() const {
        if (cell_words_ != 2 * words_)
            clear(cell_ / 4 + static_cast<std::int32_t>(cell_words_), 2 * words_ - cell_words_);
    }
    void clear(std::int32_t word, std::uint32_t words) const {
        program::Mesh fill;
        fill.to = program::Direction::north;
        fill.src = nest(4, 0, {});
        fill.dst = nest(4, word, {{1, words}});
        if (words == 1) fill.dst.mask = 0;
        fill.in = signal_at(1);
        fill.fills = true;
        send(fill);
    }

    // -- Gates

    /// 64 units of the recurrent layer, or what is left of them: the vendor's form of one pixel.
    void multiply(std::int32_t from, std::uint32_t first, std::int32_t row) const {
        const std::uint32_t units = std::min(lanes, 4 * bytes_of_word * words_ - first);
        program::WideToNarrow head;
        head.src = nest(4, row, {{1, 1}});
        head.dst = rotating(nest(6, 0, {{1, layer_.schedule.row_lanes / 2}, {64, 1}}), 2, 32);
        head.written = signal_at(2);
        head.wait[0] = room_for(counter::AVDATA_, 2, -1, 1);
        head.to_scaling = true;
        head.row_level = 1;
        send(head);
        program::Tensor op;
        op.par_zero_set = op.acc_internal = true;
        op.lanes = op.last_lanes = units;
        apply(op, kind_.product);
        op.lane_scale = op.par_zero_rows = true;
        op.zero_row_last = op.zero_row_first = row + 1;
        op.zero_row_step = 1;
        op.loops = loops({words_});
        op.in = nest(8, from, {{4, words_}, {kind_.gate_bytes, 1}, {kind_.gate_bytes, 1}});
        op.out = nest(8, room(LstmRoom::sums) + static_cast<std::int32_t>(first),
                      {{4, units / 4}, {64, 1}, {64, 1}});
        op.par = nest(8, 4 * (row + static_cast<std::int32_t>(layer_.schedule.head_rows)),
                      {{4, words_}});
        op.acc = nest(8, 0, {{0, words_}});
        op.avdata = signal_at(2);
        op.parameters = signal_at(1);
        op.wait[0] = wait_for(counter::WIDE_TO_SCALING_, 1, 1, 1);
        op.group_level = 1;
        op.reduction_mask = 1;
        send(op);
        rest();
    }

    /// `inputs`: what the layer of all steps made for this one; `from`: the hidden state.
    void take_gates(std::int32_t inputs, std::int32_t from) const {
        std::int32_t row = rows_;
        for (std::uint32_t first = 0; first < 4 * bytes_of_word * words_; first += lanes) {
            multiply(from, first, row);
            row += static_cast<std::int32_t>(layer_.schedule.rows_of_group());
        }
        load(spec::sigmoid_255);
        add_gates(inputs, 0, 3 * words_, kind_.gate, 0);
        load(spec::tanh_127_5);
        add_gates(inputs, 3 * words_, words_, kind_.candidate, odd_function);
    }

    void load(const spec::Polynomials& function) const {
        program::LoadTable load;
        load.table = table_of(function);
        send(load);
    }

    /// A function of both layers' results, `words` from word `first` on.
    void add_gates(std::int32_t inputs, std::uint32_t first, std::uint32_t words,
                   const Scaling& scaling, unsigned odd) const {
        const auto skipped = static_cast<std::int32_t>(first * bytes_of_word);
        const std::int32_t a = inputs + skipped;
        const std::int32_t b = room(LstmRoom::sums) + skipped;
        const auto all = static_cast<std::int32_t>(words * bytes_of_word);
        program::Tensor op = word_copy();
        apply(op, scaling);
        op.par_16bit = op.table = true;
        op.table_odd = odd;
        op.initial = kind_.initial;
        op.loops = loops({2, 2, words});
        op.in = nest(8, a, {{2, 2}, {b - a, 2}, {all, 1}, {all, 1}, {all, 1}, {4, words}});
        op.out = nest(8, room(LstmRoom::gates) + skipped,
                      {{4, 1}, {all, 1}, {all, 1}, {all, 1}, {4, words}});
        op.par = nest(8, 4 * gate_sum_row, {{4, 4}, {0, words}});
        op.acc = rotating(nest(8, 0, {{0, 4}, {0, words}}), 1, 4);
        op.group_level = 2;
        op.reduction_mask = 3;
        op.avdata = signal_at(4);
        op.wait[0] = factors_are_there();
        send(op);
        rest();
    }
    /// They stay from step to step.
    static program::Wait factors_are_there() { return wait_for(counter::NARROW_TO_WIDE_, 3, 0, 0); }

    // -- Products

    /// A gate, word by word, in 16 bits.
    void widen(std::int32_t from, std::uint32_t words) const {
        const auto all = static_cast<std::int32_t>(words * bytes_of_word);
        program::Tensor op = word_copy();
        op.clamp_min = 0;
        op.clamp_max = 255;
        op.out_16bit = true;
        op.loops = loops({words});
        op.in = nest(8, from, {{4, 1}, {all, 1}, {4, words}});
        op.out = nest(8, room(LstmRoom::wide), {{4, 2}, {2 * all, 1}, {pair_bytes, words}});
        op.par = nest(8, 4 * identity_row, {{0, words}});
        op.acc = rotating(nest(8, 0, {{0, words}}), 0, 4);
        op.avdata = signal_at(2);
        op.parameters = signal_at(0);
        op.wait[0] = wait_for(counter::NARROW_TO_WIDE_, 1, 0, 0);
        send(op);
        rest();
    }

    /// Words one by one as rows, of which the tensor instruction reads one after the other.
    void feed(std::int32_t from, std::uint32_t words) const {
        program::NarrowToWide op;
        op.src = nest(6, from / 4, {{1, words}});
        op.dst = rotating(nest(4, factor_row, {{0, words}}), 0, 1);
        op.written = signal_at(0);
        op.wait[0] = room_for(counter::PARAMETERS_, 0, -1, 1);
        send(op);
    }

    /// Each of a gate's elements times the second factor's of the same place: `elements` of them in
    /// a word of the factors, the results in the first lane of `lanes_bytes` each.
    [[nodiscard]] program::Tensor product(std::int32_t a, std::uint32_t elements,
                                          std::int32_t lanes_bytes) const {
        const std::uint32_t all = words_ * bytes_of_word;
        const auto element = static_cast<std::int32_t>(bytes_of_word / elements);
        // Pixels and rows, of which there is one each.
        const Dimension from{element * static_cast<std::int32_t>(all), 1};
        const Dimension to{lanes_bytes * static_cast<std::int32_t>(all), 1};
        program::Tensor op = word_copy();
        op.loops = loops({elements, all / elements});
        op.in = nest(8, a, {{element, all}, from, from, from});
        op.out = nest(8, room(LstmRoom::products),
                      {{4, static_cast<std::uint32_t>(lanes_bytes) / bytes_of_word},
                       {lanes_bytes, all},
                       to,
                       to,
                       to});
        op.par =
            rotating(nest(8, 4 * factor_row, {{element, elements}, {0, all / elements}}), 1, 4);
        op.acc = rotating(nest(8, 0, {{1, 1}, {0, all}}), 1, 4);
        op.acc.mask = 1;
        op.group_level = 4;
        op.parameters = signal_at(1);
        op.wait[0] = wait_for(counter::NARROW_TO_WIDE_, 1, 1, 1);
        return op;
    }

    /// The first lane of each product, four to a result.
    void pick(std::int32_t to, bool wide) const {
        const std::uint32_t all = words_ * bytes_of_word;
        const std::int32_t lane = wide ? pair_bytes : 4;
        const Dimension from{lane * static_cast<std::int32_t>(all), 1};
        const Dimension past{lane * static_cast<std::int32_t>(words_), 1};
        program::Tensor op = word_copy();
        op.single = op.single_par = true;
        op.in_bytewise = !wide;
        op.in_16bit = op.out_16bit = wide;
        op.loops = loops({4, words_});
        op.in = nest(8, room(LstmRoom::products), {{lane, all}, from, from, from});
        op.out = nest(8, to, {{4, wide ? 2 * words_ : words_}, past, past, past});
        op.par = nest(8, 4 * identity_row, {{1, 4}, {0, words_}});
        op.acc = rotating(nest(8, 0, {{0, 4}, {0, words_}}), 1, 4);
        op.group_level = 2;
        send(op);
        rest();
    }

    /// 8 bits times 8 bits.
    void multiply_bytes(std::int32_t a, std::int32_t b, const Scaling& scaling,
                        std::int32_t zero) const {
        program::Tensor op = product(a, 4, pair_bytes);
        apply(op, scaling);
        op.in_bytewise = op.single = op.single_par = op.out_16bit = true;
        op.par_zero = zero;
        send(op);
        feed(b, words_);
        rest();
    }
    /// 16 bits times 16 bits.
    void multiply_halfwords(std::int32_t a, std::int32_t b, const Scaling& scaling,
                            std::int32_t zero, bool wide) const {
        program::Tensor op = product(a, 2, wide ? pair_bytes : 4);
        apply(op, scaling);
        op.in_16bit = op.par_16bit = true;
        op.out_16bit = wide;
        op.par_zero = zero;
        send(op);
        feed(b, 2 * words_);
        rest();
    }

    void take_cell() const {
        multiply_bytes(room(LstmRoom::gates), room(LstmRoom::gates + 3), kind_.added,
                       LstmStep::candidate_zero);
        pick(room(LstmRoom::added), true);
        widen(room(LstmRoom::gates + 1), 2 * words_);
        multiply_halfwords(room(LstmRoom::wide), cell_, kind_.kept, LstmStep::cell_zero, true);
        pick(room(LstmRoom::kept), true);
        add_products(kind_.cell, cell_, false);
    }

    /// What is kept and what is added, each times its factor.
    void add_products(const Scaling& scaling, std::int32_t to, bool squashed) const {
        const std::int32_t a = room(LstmRoom::kept), b = room(LstmRoom::added);
        const auto all = pair_bytes * static_cast<std::int32_t>(words_);
        program::Tensor op = word_copy();
        apply(op, scaling);
        op.in_16bit = op.par_16bit = op.out_16bit = true;
        op.table = squashed;
        op.table_odd = squashed ? odd_function : 0;
        op.initial = kind_.cell_initial;
        op.loops = loops({4, 2, words_});
        op.in =
            nest(8, a, {{2, 4}, {b - a, 2}, {all, 1}, {all, 1}, {all, 1}, {pair_bytes, words_}});
        op.out = nest(8, to, {{4, 2}, {all, 1}, {all, 1}, {all, 1}, {pair_bytes, words_}});
        op.par = nest(8, 4 * cell_sum_row, {{4, 4}, {2, 2}, {0, words_}});
        op.acc = rotating(nest(8, 0, {{0, 8}, {0, words_}}), 1, 4);
        op.group_level = 2;
        op.reduction_mask = 3;
        op.avdata = signal_at(4);
        op.wait[0] = factors_are_there();
        send(op);
        rest();
    }

    /// The output gate times the cell's tanh.
    void give(std::int32_t to) const {
        load(spec::tanh_16383_5);
        add_products(kind_.squashed, room(LstmRoom::squashed), true);
        multiply_halfwords(room(LstmRoom::wide + 2), room(LstmRoom::squashed), kind_.output,
                           LstmStep::added_zero, false);
        pick(to, false);
    }

    void copy(std::int32_t from, std::int32_t to, std::uint32_t words) const {
        program::Tensor op = word_copy();
        op.loops = loops({words});
        op.in = nest(8, from, {{4, words}});
        op.out = nest(8, to, {{4, words}});
        op.par = nest(8, 4 * identity_row, {{0, words}});
        op.acc = rotating(nest(8, 0, {{0, words}}), 0, 4);
        op.group_level = 1;
        op.avdata = signal_at(1);
        send(op);
        rest();
    }

    Emission& e_;
    const LstmStep& kind_;
    const ParameterLayer& layer_;
    std::uint32_t words_;       ///< of a gate
    std::uint32_t cell_words_;  ///< that the host sends
    // Bytes of narrow memory.
    std::int32_t inputs_, hidden_, cell_, given_, scratch_;
    std::int32_t rows_;  ///< of the recurrent layer, in wide memory
};

}  // namespace

void emit(Emission& e, const Step& step, const LstmStep& kind) {
    LstmWriter(e, step, kind).run();
}

}  // namespace reef::edgetpu::lowering
