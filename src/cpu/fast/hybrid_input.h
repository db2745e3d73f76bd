// Activations of hybrid operators (prepare/hybrid.h) by vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/worker_pool.h"
#include "cpu/prepare/hybrid.h"

namespace reef::cpu {

[[nodiscard]] ValueRange range_fast(std::span<const float> values);
/// Steps as int8, or with `flip` 0x80 as uint8 that are 128 more.
void quantise_to_bytes(std::span<const float> values, const StepRule& rule, std::uint8_t flip,
                       std::uint8_t* out);
/// Steps less their zero.
void quantise_to_steps(std::span<const float> values, const StepRule& rule, std::int16_t* out);

/// The input of a hybrid operator, whose images are quantised each by itself: in pieces, so that
/// the threads share large images, too. The result depends on none of it.
class HybridInput {
  public:
    HybridInput(std::size_t images, std::size_t image_size, bool asymmetric)
        : images_(images),
          image_size_(image_size),
          asymmetric_(asymmetric),
          pieces_((image_size + piece - 1) / piece) {}

    /// Of the rules, and behind them what making them takes.
    [[nodiscard]] std::size_t scratch_bytes() const {
        return images_ * (sizeof(StepRule) + pieces_ * sizeof(ValueRange));
    }

    /// One rule per image, at the beginning of `scratch`; `write(values, rule, position)` is called
    /// for all pieces, each with its position in the input.
    template <typename Write>
    [[nodiscard]] Result<const StepRule*> quantise(const float* input, std::byte* scratch,
                                                   WorkerPool& pool, const Write& write) const {
        auto* rules = reinterpret_cast<StepRule*>(scratch);
        auto* ranges = reinterpret_cast<ValueRange*>(rules + images_);
        each_piece(pool, [&](std::size_t i, std::size_t position, std::size_t count) {
            ranges[i] = range_fast({input + position, count});
        });
        for (std::size_t b = 0; b < images_; ++b) {
            ValueRange range;
            for (std::size_t i = 0; i < pieces_; ++i) range.add(ranges[b * pieces_ + i]);
            rules[b] = REEF_TRY(step_rule(range, asymmetric_));
        }
        each_piece(pool, [&](std::size_t i, std::size_t position, std::size_t count) {
            write(std::span(input + position, count), rules[i / pieces_], position);
        });
        return rules;
    }

  private:
    static constexpr std::size_t piece = 4096;
    /// Of values: that many take some microseconds.
    static constexpr std::size_t worth_a_thread = 1 << 15;

    template <typename Tell>
    void each_piece(WorkerPool& pool, const Tell& tell) const {
        const std::size_t grain = worth_a_thread / (std::min(piece, image_size_) + 1) + 1;
        pool.parallel_for(images_ * pieces_, grain,
                          [&](std::size_t begin, std::size_t end, std::size_t) {
                              for (std::size_t i = begin; i < end; ++i) {
                                  const std::size_t within = i % pieces_ * piece;
                                  tell(i, i / pieces_ * image_size_ + within,
                                       std::min(piece, image_size_ - within));
                              }
                          });
    }

    std::size_t images_;
    std::size_t image_size_;
    bool asymmetric_;
    std::size_t pieces_;  ///< of an image
};

}  // namespace reef::cpu
