// Models of one operator, for kernels on values worked out by hand.
#pragma once

#include <string>
#include <vector>

#include "cpu/run_model.h"

namespace reef::test {

using Shape = std::vector<std::int32_t>;

/// Builds input by input, then the outputs, then runs.
class OneOperator {
  public:
    OneOperator() : builder_("one operator") {}

    template <typename T>
    OneOperator& input(ElementType type, const Shape& shape, const std::vector<T>& values,
                       model::Quantization quantization = {}) {
        inputs_.push_back(builder_.input("in", type, shape, std::move(quantization)));
        values_.push_back(bytes_of(values));
        return *this;
    }
    template <typename T>
    OneOperator& constant(ElementType type, const Shape& shape, const std::vector<T>& values,
                          model::Quantization quantization = {}) {
        inputs_.push_back(builder_.constant<T>("constant", type, shape, std::span<const T>(values),
                                               std::move(quantization)));
        return *this;
    }
    OneOperator& numbers(const std::vector<std::int32_t>& values) {
        return constant(ElementType::int32, {static_cast<std::int32_t>(values.size())}, values);
    }
    OneOperator& state(ElementType type, const Shape& shape, model::Quantization quantization) {
        inputs_.push_back(builder_.variable("state", type, shape, std::move(quantization)));
        return *this;
    }
    OneOperator& absent() {
        inputs_.push_back(model::absent_tensor);
        return *this;
    }
    OneOperator& output(ElementType type, const Shape& shape,
                        model::Quantization quantization = {}) {
        outputs_.push_back(builder_.tensor("out", type, shape, std::move(quantization)));
        return *this;
    }

    [[nodiscard]] model::Model model(model::Op op, model::Options options = {}) {
        builder_.add(op, inputs_, outputs_, std::move(options));
        for (const auto output : outputs_) builder_.output(output);
        auto model = builder_.finish();
        EXPECT_TRUE(model) << model.error().message();
        return model ? std::move(*model) : model::Model{};
    }
    /// Output 0; both kernel sets give the same.
    template <typename T>
    [[nodiscard]] std::vector<T> run(model::Op op, model::Options options = {}) {
        const model::Model one = model(op, std::move(options));
        const auto plain = run_model(one, values_, cpu::KernelSet::reference);
        EXPECT_EQ(plain, run_model(one, values_, cpu::KernelSet::fast, 2));
        return plain.empty() ? std::vector<T>{} : values_of<T>(plain[0]);
    }
    /// Output 0 of each kernel set: functions whose last bits are free.
    template <typename T>
    [[nodiscard]] std::vector<std::vector<T>> run_each(model::Op op, model::Options options = {}) {
        const model::Model one = model(op, std::move(options));
        std::vector<std::vector<T>> results;
        for (const auto kernels : {cpu::KernelSet::reference, cpu::KernelSet::fast})
            if (const auto outputs = run_model(one, values_, kernels); !outputs.empty())
                results.push_back(values_of<T>(outputs[0]));
        return results;
    }
    [[nodiscard]] std::vector<std::vector<std::byte>> run_all(model::Op op,
                                                              model::Options options = {}) {
        return run_model(model(op, std::move(options)), values_);
    }
    [[nodiscard]] std::string refused(model::Op op, model::Options options = {}) {
        return refusal(model(op, std::move(options)));
    }

  private:
    model::Builder builder_;
    std::vector<model::TensorIndex> inputs_, outputs_;
    std::vector<std::vector<std::byte>> values_;
};

}  // namespace reef::test
