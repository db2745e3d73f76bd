// Pass "emit": a placed plan becomes a program. One operator after the other, with a full stop in
// between, so that all counters but those of the rings begin anew.
#pragma once

#include <functional>

#include "edgetpu/compiler/emitter.h"
#include "reef/edgetpu/compiler.h"

namespace reef::edgetpu::lowering {

/// The row of wide memory with the 4x4 identity, through which words are copied.
constexpr std::int32_t identity_row = top_row - 1;
/// Ring slots of gathers and broadcasts.
constexpr std::int32_t gather_row = top_row - 6;
constexpr std::int32_t gather_source_row = top_row - 4;
constexpr std::int32_t output_row = top_row - 2;

struct Emission {
    explicit Emission(const Plan& placed);

    const Plan& plan;
    Emitter code{false};
    // Since the program's start.
    std::uint32_t messages_a = 0;          ///< of tiles on ring A, relayed ones included
    std::uint32_t messages_b = 0;          ///< on ring B
    std::uint32_t relay_taken = 0;         ///< units for the relay, and messages to the host
    std::uint32_t relay_sent = 0;          ///< units that the relay sent on
    std::vector<bool> bordered;            ///< tensors whose halo is there
    std::vector<bool> halo_read;           ///< tensors of which a step reads more than tiles own
    std::vector<std::size_t> last_writer;  ///< of each tensor: a step

    /// A step whose parameters are on their way, and what the counters had counted before, by tile.
    struct Ahead {
        bool early = false;  ///< while another step computes
        std::array<std::int32_t, all_tiles> received{}, consumed{};
    };
    std::optional<Ahead> ahead;

    struct Output {
        std::uint32_t bytes = 0;
        std::array<std::optional<std::uint32_t>, all_tiles> offsets{};  ///< by tile
    };
    std::vector<Output> outputs;  ///< as plan.outputs

    [[nodiscard]] const Tensor& tensor(TensorId id) const { return plan.tensors[id]; }
    [[nodiscard]] std::int32_t next_message_a() const { return wrapped(messages_a); }
    [[nodiscard]] std::int32_t next_message_b() const { return wrapped(messages_b); }
};

/// A tensor instruction on words of 4 channels that changes nothing.
[[nodiscard]] program::Tensor word_copy();
void apply(program::Tensor& op, const Scaling& scaling);
[[nodiscard]] program::Table table_of(const spec::Polynomials& function);
/// Dimensions as counts: {4, words} etc. of an area of a tensor.
[[nodiscard]] inline std::uint32_t count(std::int32_t n) {
    return static_cast<std::uint32_t>(n);
}

// By step; each begins and ends with all engines idle.
void emit(Emission& e, const Step& step, const InputStep& kind);
void emit(Emission& e, const Step& step, const ConvolutionStep& kind);
/// Its parameters from where they lie to the tiles that compute with them.
void load(Emission& e, const Step& step, const ConvolutionStep& kind,
          const Emission::Ahead& before);
void emit(Emission& e, const Step& step, const SumStep& kind);
void emit(Emission& e, const Step& step, const CombinationStep& kind);
void emit(Emission& e, const Step& step, const ProductStep& kind);
void emit(Emission& e, const Step& step, const CopyStep& kind);
void emit(Emission& e, const Step& step, const RearrangeStep& kind);
void emit(Emission& e, const Step& step, const MaxStep& kind);
void emit(Emission& e, const Step& step, const AverageStep& kind);
void emit(Emission& e, const Step& step, const GlobalAverageStep& kind);
void emit(Emission& e, const Step& step, const SoftmaxStep& kind);
void emit(Emission& e, const Step& step, const EnlargeStep& kind);
void emit(Emission& e, const Step& step, const GatherStep& kind);
void emit(Emission& e, const Step& step, const LstmStep& kind);
void emit(Emission& e, const Step& step, const SpillStep& kind);
void emit(Emission& e, const Step& step, const FetchStep& kind);

/// Whether a step reads nothing of its inputs but what tiles own. Of a band that is computed with
/// its margins no step does: they lie on other tiles' pixels.
[[nodiscard]] bool reads_own(const Plan& plan, const Step& step);
/// Borders, then what neighbours own, into the windows of a tensor.
void emit_halo(Emission& e, TensorId tensor);
/// The same while the last step that writes the tensor is at work: transfers wait for its data, and
/// no stop comes between. Nothing where that is not possible: then emit_halo() does it.
void emit_halo_of(Emission& e, const Step& step, std::size_t number);
/// From the program's first instruction until the tiles are idle.
void begin_computing(Emission& e);
/// Registers of the address of the host's parameters: its low and its high half.
constexpr std::pair parameter_address{1U, 0U};
/// The host's transfer of a part of the streamed parameters, which the instructions behind it take.
void ask_for_parameters(Emission& e, std::uint32_t offset, std::uint32_t bytes);
/// Words `first` to `first` + 3 of narrow memory, as one row whose quarters are the columns of the
/// 4x4 identity.
void emit_identity(Emission& e, std::int32_t first, std::int32_t row);
/// The host's transfer of an input into its FIFO, and units of it to tiles.
void ask_for_input(Emission& e, const Tensor& tensor);
/// The scalar core's side of such a transfer, and the transfer itself, from the address in its
/// registers 5 and 4.
void take_from_host(Emission& e, std::uint32_t bytes);
void transfer_activations(Emission& e, std::uint32_t bytes, spec::DmaTag tag);
[[nodiscard]] program::RingPush push_of_input(std::int64_t first, std::int64_t units,
                                              TileSet tiles);
void emit_output(Emission& e, const Port& port);
/// What each tile copies of an output to two rows of wide memory, from where it is sent.
using RowsOfOutput = std::function<std::optional<program::NarrowToWide>(unsigned tile)>;
void emit_output(Emission& e, const Port& port, const RowsOfOutput& rows);
/// ... sent to the address in the scalar core's registers 5 and 4, one tile after the other.
/// `first_row`: of those two. Behind `output_row` is the identity, which no step needs any more
/// when outputs are sent.
[[nodiscard]] Emission::Output send_to_host(Emission& e, const Tensor& tensor,
                                            const RowsOfOutput& rows, std::int32_t first_row);
/// Words of a tile's part of a tensor, as the host gets them.
struct TilePart {
    std::uint32_t words = 0;
    LoopNest source;
    unsigned row_level = 0;
    /// In rows of wide memory, and in units of the host's transfers.
    [[nodiscard]] std::uint32_t wide_rows() const;
    [[nodiscard]] std::uint32_t units() const;
};
[[nodiscard]] std::optional<TilePart> part_of(const Tensor& tensor, unsigned tile);
/// What brings it to those rows.
[[nodiscard]] std::optional<program::NarrowToWide> to_ring(const Tensor& tensor, unsigned tile,
                                                           std::int32_t first_row);
/// The last waits and the interrupt. `counters`: of the scalar core, for messages that were sent.
void end_computing(Emission& e, std::uint32_t counters);
/// Sends the parameters of the next layer, if they can be sent while this step computes.
void send_ahead(Emission& e, std::size_t step);
/// 16 words of constants as 4 rows of wide memory from `row` on, on every tile.
void emit_constants(Emission& e, const std::array<std::uint32_t, 16>& words, std::int32_t row);
/// Words of each pixel.
struct PixelWords {
    std::uint32_t first = 0, count = 0;
};
/// The whole of a tensor, or a part of each pixel, pixel by pixel from `base` on, to the narrow
/// memory of tiles. Ends with a full stop.
void emit_gather(Emission& e, const Tensor& tensor, TileSet to, std::uint32_t base,
                 const PixelWords& part);
/// Words of tile `from` to the wide memory of `to`, over ring A.
void emit_broadcast(Emission& e, unsigned from, TileSet to, const LoopNest& source,
                    const LoopNest& target, std::uint32_t rows);

/// What the emitter cannot express, found before it begins. Errors: unsupported.
[[nodiscard]] Status check_emittable(const Plan& plan);

struct Programs {
    Emitter::Program computing;
    std::optional<Emitter::Program> caching;
    std::vector<std::byte> cached;    ///< parameters, in the order in which they are loaded
    std::vector<std::byte> streamed;  ///< ... that come with every inference
    std::vector<Emission::Output> outputs;
    Forms forms;
};
struct EmitOptions {
    bool list_forms = false;        ///< fill Programs::forms
    bool known_forms_only = false;  ///< else unsupported, with the step's operator as its place
    /// Nothing but the program that computes: no parameters and what loads them.
    bool only_computing = false;
};
[[nodiscard]] Result<Programs> emit(const Plan& plan, const EmitOptions& options = {});

/// A piece's bytes, which are behind `first` units of others, from the FIFO to its tile.
[[nodiscard]] program::RingPush push_of_parameters(const ParameterLayer& layer,
                                                   const ParameterLayer::Piece& piece,
                                                   std::int64_t first);
/// The instructions that bring all pieces from the FIFO to their rows.
using LoadPieces = std::function<void(Emitter& code)>;
/// ... of one after the other.
void load_pieces(const Plan& plan, Emitter& code);
/// Both programs, of which the computing one is complete. `ends`: instructions behind each step.
[[nodiscard]] Result<Programs> finish(Emission& e, const std::vector<std::size_t>& ends,
                                      const EmitOptions& options, const LoadPieces& load);

}  // namespace reef::edgetpu::lowering
