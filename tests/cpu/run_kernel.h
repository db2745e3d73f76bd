// Runs one kernel on memory that ends where its tensors do.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <new>
#include <span>
#include <vector>

#include "base/worker_pool.h"
#include "cpu/prepare/kernel.h"
#include "reef/model/graph.h"
#include "support/upper_halves.h"

namespace reef::test {

/// Memory of exactly `size` bytes, so that AddressSanitizer sees every access beyond it.
class Block {
  public:
    explicit Block(std::size_t size, std::align_val_t alignment = std::align_val_t{64})
        : size_(size),
          alignment_(alignment),
          data_(static_cast<std::byte*>(::operator new(size, alignment_))) {}
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block() { ::operator delete(data_, alignment_); }
    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::span<std::byte> view() const { return {data_, size_}; }

  private:
    std::size_t size_;
    std::align_val_t alignment_;
    std::byte* data_;
};

/// The output's bytes, of a kernel of the model's only operator, which reads no input but the
/// model's or packs the others.
inline std::vector<std::byte> run_kernel(cpu::Kernel& kernel, const model::Model& model,
                                         std::span<const Bytes> model_inputs, WorkerPool& pool) {
    kernel.pack();
    const model::Subgraph& graph = model.subgraphs[0];
    const model::Operator& op = graph.operators[0];
    const Block out(static_cast<std::size_t>(
                        *graph.tensors[static_cast<std::size_t>(op.outputs[0])].byte_count()),
                    std::align_val_t{16});
    const Block scratch(kernel.scratch_bytes());
    // Weights and bias are packed: the kernels see no address of theirs.
    std::vector<std::byte*> inputs(op.inputs.size(), nullptr);
    std::list<Block> blocks;
    for (std::size_t i = 0; i < model_inputs.size(); ++i) {
        const Block& in = blocks.emplace_back(model_inputs[i].size(), std::align_val_t{16});
        std::ranges::copy(model_inputs[i], in.data());
        for (std::size_t k = 0; k < inputs.size(); ++k)
            if (op.inputs[k] == graph.inputs[i]) inputs[k] = in.data();
    }
    const std::vector<std::byte*> outputs{out.data()};
    // Between two runs others have its scratch.
    std::vector<std::byte> first;
    for (int run = 0; run < 2; ++run) {
        std::memset(scratch.data(), 0xA5, scratch.view().size());
        Status status;
        const auto call = [&] { status = kernel.run({inputs, outputs, scratch.view(), pool}); };
        EXPECT_FALSE(leaves_upper_halves(call));
        EXPECT_TRUE(status) << status.error().message();
        const std::span<std::byte> bytes = out.view();
        if (run == 0)
            first.assign(bytes.begin(), bytes.end());
        else
            EXPECT_TRUE(std::ranges::equal(first, bytes)) << "a second run gave other bytes";
        std::memset(out.data(), 0x5A, bytes.size());
    }
    return first;
}

inline std::vector<std::byte> run_kernel(cpu::Kernel& kernel, const model::Model& model,
                                         Bytes input, WorkerPool& pool) {
    return run_kernel(kernel, model, std::span<const Bytes>(&input, 1), pool);
}

}  // namespace reef::test
