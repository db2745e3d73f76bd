#include "edgetpu/params/selections.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

namespace reef::edgetpu {
namespace {

using model::Model;
using model::Op;
using model::Operator;
using model::Subgraph;
using model::Tensor;
using model::TensorIndex;

constexpr std::uint32_t channels_per_word = 4;
/// The compiler gathers one tile's numbers with one instruction; 16 are known.
constexpr std::int64_t most_taps = 16;

std::uint32_t whole_words(std::uint32_t channels) {
    return (channels + channels_per_word - 1) / channels_per_word * channels_per_word;
}

/// Output channel i * out_step is input channel i * in_step.
std::vector<std::uint32_t> spaced(std::uint32_t count, std::uint32_t in_step,
                                  std::uint32_t out_step) {
    std::vector<std::uint32_t> sources(std::size_t{count} * out_step, no_source);
    for (std::uint32_t i = 0; i < count; ++i) sources[std::size_t{i} * out_step] = i * in_step;
    return sources;
}

/// Channels of a tensor that is in memory as it is.
struct Piece {
    TensorIndex tensor = model::absent_tensor;
    std::uint32_t first = 0, count = 0;
};

/// The moves of channels in one plain model.
class ChannelMoves {
  public:
    explicit ChannelMoves(const Model& plain) : plain_(plain), graph_(plain.subgraphs.front()) {}

    std::vector<Selection> of(const Operator& op) const {
        switch (op.code.builtin) {
            case Op::pad:
                return of_pad(op);
            case Op::reshape:
                return of_reshape(op);
            case Op::transpose:
                return of_transpose(op);
            case Op::split:
            case Op::concatenation:
                return of_pieces(op);
            default:
                return {};
        }
    }

  private:
    const Tensor* tensor(TensorIndex index) const {
        return index == model::absent_tensor ? nullptr
                                             : &graph_.tensors[static_cast<std::size_t>(index)];
    }

    const Tensor* at(const std::vector<TensorIndex>& list, std::size_t position) const {
        return position < list.size() ? tensor(list[position]) : nullptr;
    }

    static bool quantized_bytes(const Tensor* tensor) {
        return tensor != nullptr &&
               (tensor->type == ElementType::int8 || tensor->type == ElementType::uint8) &&
               tensor->quantization && tensor->quantization->quantized();
    }

    static std::uint32_t channels(const Tensor& tensor) {
        return tensor.shape.empty() ? 1 : static_cast<std::uint32_t>(tensor.shape.back());
    }

    std::vector<std::int32_t> numbers(const Tensor* tensor) const {
        if (tensor == nullptr || tensor->type != ElementType::int32) return {};
        const Bytes bytes = plain_.constant(*tensor);
        std::vector<std::int32_t> values(bytes.size() / 4);
        if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * 4);
        return values;
    }

    const Operator* producer(TensorIndex index) const {
        for (const Operator& op : graph_.operators)
            if (std::ranges::find(op.outputs, index) != op.outputs.end()) return &op;
        return nullptr;
    }

    /// Whether the chip computes the tensor, rather than getting it from the host.
    bool computed(TensorIndex index) const {
        const Operator* op = producer(index);
        if (op == nullptr) return false;
        return op->code.builtin != Op::quantize || op->inputs.empty() ||
               std::ranges::find(graph_.inputs, op->inputs[0]) == graph_.inputs.end();
    }

    std::vector<Selection> of_pad(const Operator& op) const {
        const Tensor* in = at(op.inputs, 0);
        const auto padding = numbers(at(op.inputs, 1));
        if (!quantized_bytes(in) || in->shape.size() < 2 || padding.size() != in->shape.size() * 2)
            return {};
        const bool only_behind_channels =
            padding.back() > 0 &&
            std::all_of(padding.begin(), padding.end() - 1, [](auto value) { return value == 0; });
        if (!only_behind_channels) return {};
        Selection copy{.in_channels = channels(*in), .sources = spaced(channels(*in), 1, 1)};
        copy.sources.resize(copy.sources.size() + static_cast<std::uint32_t>(padding.back()),
                            no_source);
        return {std::move(copy)};
    }

    std::vector<Selection> of_reshape(const Operator& op) const {
        const Tensor *in = at(op.inputs, 0), *out = at(op.outputs, 0);
        if (!quantized_bytes(in) || out == nullptr || !computed(op.inputs[0])) return {};
        const Operator& before = *producer(op.inputs[0]);
        if (before.code.builtin == Op::transpose && channels_to_front(before)) {
            return of_rows(in->shape, channels(*out));
        }
        if (channels(*in) != 1 || channels(*out) == 1) return {};
        const auto taps =
            static_cast<std::uint32_t>(std::min<std::int64_t>(in->element_count(), most_taps));
        return {{.kind = LayerKind::fully_connected,
                 .in_channels = taps * channels_per_word,
                 .sources = spaced(taps, channels_per_word, 1)}};
    }

    /// Rows of a width that is no multiple of four move together.
    static std::vector<Selection> of_rows(const std::vector<std::int32_t>& shape,
                                          std::uint32_t out) {
        const auto rows = static_cast<std::uint32_t>(shape[2]);
        const auto width = static_cast<std::uint32_t>(shape[3]);
        if (width % channels_per_word == 0 || std::uint64_t{rows} * width != out) return {};
        Selection together{.in_channels = rows * whole_words(width)};
        for (std::uint32_t row = 0; row < rows; ++row)
            for (std::uint32_t column = 0; column < width; ++column)
                together.sources.push_back(row * whole_words(width) + column);
        return {std::move(together)};
    }

    bool channels_to_front(const Operator& op) const {
        const Tensor* in = at(op.inputs, 0);
        return quantized_bytes(in) && in->shape.size() == 4 && in->shape[0] == 1 &&
               numbers(at(op.inputs, 1)) == std::vector<std::int32_t>{0, 3, 1, 2};
    }

    std::vector<Selection> of_transpose(const Operator& op) const {
        if (!channels_to_front(op)) return {};
        const auto width = static_cast<std::uint32_t>(at(op.inputs, 0)->shape[2]);
        auto all = exchange(width, width);
        // The four channels of a word, each to a word of its own.
        all.front() = {.in_channels = channels_per_word,
                       .biases = false,
                       .sources = spaced(channels_per_word, 1, channels_per_word)};
        return all;
    }

    /// Whether the operator joins or splits channels, and no other axis.
    bool moves_channels(const Operator& op) const {
        const bool split = op.code.builtin == Op::split;
        const Tensor* whole = split ? at(op.inputs, 1) : at(op.outputs, 0);
        if (whole == nullptr || whole->shape.empty()) return false;
        const auto* options = std::get_if<model::ConcatenationOptions>(&op.options);
        const auto axis = numbers(at(op.inputs, 0));
        if (split ? axis.size() != 1 : options == nullptr) return false;
        const auto last = static_cast<std::int32_t>(whole->shape.size()) - 1;
        const std::int32_t of = split ? axis[0] : options->axis;
        return of == last || of == -1;
    }

    /// What the tensor's channels are, where no instruction joins or splits them.
    std::vector<Piece> pieces_of(TensorIndex index) const {
        const Operator* op = producer(index);
        const bool moved = op != nullptr && moves_channels(*op) &&
                           (op->code.builtin == Op::split || op->code.builtin == Op::concatenation);
        if (!moved) return {{index, 0, channels(*tensor(index))}};
        if (op->code.builtin == Op::concatenation) {
            std::vector<Piece> all;
            for (const TensorIndex input : op->inputs) {
                if (tensor(input) == nullptr) continue;
                std::ranges::copy(pieces_of(input), std::back_inserter(all));
            }
            return all;
        }
        std::uint32_t first = 0;
        for (const TensorIndex output : op->outputs) {
            if (output == index) break;
            first += channels(*tensor(output));
        }
        return cut(pieces_of(op->inputs[1]), first, channels(*tensor(index)));
    }

    /// Those of `count` channels from `first` on.
    static std::vector<Piece> cut(const std::vector<Piece>& pieces, std::uint32_t first,
                                  std::uint32_t count) {
        std::vector<Piece> all;
        std::uint32_t at = 0;
        for (const Piece& piece : pieces) {
            const std::uint32_t begin = std::max(first, at);
            const std::uint32_t end = std::min(first + count, at + piece.count);
            if (begin < end) all.push_back({piece.tensor, piece.first + begin - at, end - begin});
            at += piece.count;
        }
        return all;
    }

    /// Whether it is there as a whole: what is only joined or split again is not.
    bool stored(TensorIndex index) const {
        if (std::ranges::find(graph_.outputs, index) != graph_.outputs.end()) return true;
        return std::ranges::any_of(graph_.operators, [&](const Operator& op) {
            const bool reads = std::ranges::find(op.inputs, index) != op.inputs.end();
            const bool moves = op.code.builtin == Op::split || op.code.builtin == Op::concatenation;
            return reads && !(moves && moves_channels(op));
        });
    }

    std::vector<Selection> of_pieces(const Operator& op) const {
        std::vector<Selection> all;
        if (!moves_channels(op)) return all;
        for (const TensorIndex output : op.outputs) {
            if (!quantized_bytes(tensor(output)) || !stored(output)) continue;
            auto words = of_words(pieces_of(output));
            if (!words) continue;
            const auto& shape = tensor(output)->shape;
            if (shape.size() < 4 || shape[1] * shape[2] == 1)
                words->kind = LayerKind::fully_connected;
            all.push_back(std::move(*words));
        }
        return all;
    }

    /// Of pieces of at most a word, each of which is read with the word that it is in. Nothing
    /// where one piece begins its word: it is read as it is.
    static std::optional<Selection> of_words(const std::vector<Piece>& pieces) {
        Selection words;
        for (const Piece& piece : pieces) {
            const std::uint32_t in_word = piece.first % channels_per_word;
            if (in_word + piece.count > channels_per_word) return std::nullopt;
            for (std::uint32_t i = 0; i < piece.count; ++i)
                words.sources.push_back(words.in_channels + in_word + i);
            words.in_channels += channels_per_word;
        }
        const bool as_it_is = pieces.size() == 1 && words.sources.front() == 0;
        if (pieces.empty() || pieces.size() > most_taps || as_it_is) return std::nullopt;
        return words;
    }

    const Model& plain_;
    const Subgraph& graph_;
};

}  // namespace

std::vector<Selection> selections_of(const Model& plain, std::size_t op) {
    return ChannelMoves(plain).of(plain.subgraphs.front().operators[op]);
}

std::vector<Selection> exchange(std::uint32_t steps, std::uint32_t features) {
    constexpr std::uint32_t word = channels_per_word;
    return {
        // Each feature to a word of its own,
        {.in_channels = features, .sources = spaced(features, 1, word)},
        // of each word the first byte,
        {.in_channels = steps * word, .biases = false, .sources = spaced(steps, word, word)},
        // and those together again.
        {.in_channels = features * word, .biases = false, .sources = spaced(features, word, 1)},
    };
}

}  // namespace reef::edgetpu
