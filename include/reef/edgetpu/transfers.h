// What the host sends and receives for one run of an executable, in the order of its DMA hints.
//
// The bytes of inputs, parameters and outputs travel in streams, one per tag; the chip's program
// takes them in the order that the compiler wrote down as hints. Input transfers may overlap, may
// run some bytes past the tensor (zeros) and come in another order than the layers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reef/base/bytes.h"
#include "reef/base/result.h"
#include "reef/edgetpu/layer_tensor.h"
#include "reef/edgetpu/package.h"

namespace reef::edgetpu {

/// What a transfer's bytes are, as the chip's USB unit numbers it.
enum class Tag : std::uint8_t {
    instructions = 0,
    input_activations = 1,
    parameters = 2,
    output_activations = 3,
    interrupt_0 = 4,  ///< interrupts 0 to 3 are tags 4 to 7
    interrupt_3 = 7,
};
/// "instructions", "input activations", ..., "interrupt 0"; "tag 9".
[[nodiscard]] std::string to_string(Tag tag);

/// One step of a run.
struct Transfer {
    enum class Kind : std::uint8_t {
        send,     ///< to the chip, with `tag`
        receive,  ///< from the chip, `tag` is output_activations
        wait,     ///< for the interrupt of `tag`
        fence,    ///< everything before is complete before anything after starts
    };
    Kind kind = Kind::send;
    Tag tag = Tag::instructions;
    std::size_t index = 0;   ///< of the bitstream, input layer or output layer
    std::size_t offset = 0;  ///< bytes, in the layer's, parameters' or scratch memory's bytes
    std::size_t size = 0;    ///< bytes
    bool scratch = false;    ///< the executable's scratch memory on the host, not a layer
    friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// The transfers of one executable with the buffers that they need.
struct TransferPlan {
    std::vector<Transfer> transfers;
    /// Bytes of each input layer's buffer: the layer or the end of its last transfer, whichever is
    /// later. What lies beyond the tensor is zero.
    std::vector<std::size_t> input_bytes;
    /// The same of each output layer.
    std::vector<std::size_t> output_bytes;
    /// The transfers are all there is. If not, the chip asks for the rest by itself.
    bool complete = false;

    /// Sum of the sizes of the transfers with `tag`.
    [[nodiscard]] std::size_t stream_bytes(Tag tag) const;
};

/// Errors: unsupported for executables without hints and for transfers to or from scratch memory,
/// which the hints do not tell apart (transfer_plan() of the simulator's rooms does); bad_input
/// when a hint contradicts the executable (layers, bitstreams, parameters, sizes).
[[nodiscard]] Result<TransferPlan> plan_transfers(const Executable& executable);

/// Makes a plan of transfers that come one by one.
class TransferPlanner {
  public:
    explicit TransferPlanner(const Executable& executable);
    /// Errors: bad_input for a bitstream that the executable does not have.
    Status add_stream(std::size_t bitstream);
    /// Errors: bad_input for an interrupt that does not exist.
    Status add_interrupt(int interrupt);
    void add_fence();
    /// Errors: bad_input for a layer that is none, and for bytes beyond what `base` has.
    Status add_transfer(BaseAddress base, std::string_view layer, Direction direction,
                        std::size_t offset, std::size_t size);
    [[nodiscard]] TransferPlan take(bool complete) &&;

  private:
    Status add_layer(std::string_view name, const std::vector<Layer>& layers,
                     std::vector<std::size_t>& bytes, Transfer& transfer) const;

    const Executable* executable_;
    TransferPlan plan_;
};

/// The stream of all transfers with `tag` that the host sends, from the packed input layers (in
/// the order of Executable::inputs, of TransferPlan::input_bytes each). Bitstreams are as in the
/// file: without base addresses. Errors: bad_argument for plans with scratch memory, whose bytes
/// the chip makes.
[[nodiscard]] Result<std::vector<std::byte>> sent_stream(
    const Executable& executable, const TransferPlan& plan, Tag tag,
    std::span<const std::vector<std::byte>> packed_inputs);

/// Cuts the chip's output stream into layers (in the order of Executable::outputs, of
/// TransferPlan::output_bytes each). Errors: bad_argument when the stream's size is another.
[[nodiscard]] Result<std::vector<std::vector<std::byte>>> cut_output_stream(
    const TransferPlan& plan, Bytes stream);

/// Tensors in the order of Executable::inputs -> the packed layers.
[[nodiscard]] Result<std::vector<std::vector<std::byte>>> pack_inputs(
    const Executable& executable, const TransferPlan& plan, std::span<const Bytes> tensors);

/// The bitstream with base addresses in its field offsets. Over USB the chip uses addresses only to
/// tell regions apart, so every region (each input and output layer, the parameters, the scratch
/// memory) gets 4 GiB of its own: lower halves are 0, upper halves count from 1.
/// Errors: bad_input for a field offset that names no layer or lies outside the bitstream.
[[nodiscard]] Result<std::vector<std::byte>> with_base_addresses(const Executable& executable,
                                                                 std::size_t bitstream);

/// Those upper halves; the output layers come behind the input layers.
inline constexpr std::uint32_t parameter_region = 1, scratch_region = 2, first_layer_region = 3;

/// What an address of with_base_addresses() points to.
struct AddressPlace {
    BaseAddress base{};
    std::size_t layer = 0;   ///< of input and output activations
    std::size_t offset = 0;  ///< bytes
    friend bool operator==(const AddressPlace&, const AddressPlace&) = default;
};
/// Nothing for addresses in no region.
[[nodiscard]] std::optional<AddressPlace> place_of_address(const Executable& executable,
                                                           std::uint64_t address);

}  // namespace reef::edgetpu
