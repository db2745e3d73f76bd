#include "reef/model/builder.h"

#include <utility>

#include "reef/model/tflite.h"

namespace reef::model {

Quantization per_tensor(float scale, std::int64_t zero_point) {
    Quantization quantization;
    quantization.scale = {scale};
    quantization.zero_point = {zero_point};
    return quantization;
}

Quantization per_channel(std::vector<float> scales, std::int32_t axis) {
    Quantization quantization;
    quantization.zero_point.resize(scales.size(), 0);
    quantization.scale = std::move(scales);
    quantization.axis = axis;
    return quantization;
}

Builder::Builder(std::string description) {
    start(std::move(description));
}

void Builder::start(std::string description) {
    model_ = {};
    model_.description = std::move(description);
    model_.buffers.resize(1);
    model_.subgraphs.resize(1);
    model_.subgraphs[0].name = "main";
    constants_.clear();
}

TensorIndex Builder::append(Tensor tensor, Quantization quantization) {
    if (quantization != Quantization{}) tensor.quantization = std::move(quantization);
    tensor.has_rank = true;
    std::vector<Tensor>& tensors = model_.subgraphs[0].tensors;
    tensors.push_back(std::move(tensor));
    return static_cast<TensorIndex>(tensors.size() - 1);
}

std::uint32_t Builder::append_buffer(Bytes data) {
    model_.buffers.push_back(SharedBytes::copy_of(data));
    return static_cast<std::uint32_t>(model_.buffers.size() - 1);
}

TensorIndex Builder::input(std::string name, ElementType type, std::vector<std::int32_t> shape,
                           Quantization quantization) {
    const TensorIndex index =
        tensor(std::move(name), type, std::move(shape), std::move(quantization));
    model_.subgraphs[0].inputs.push_back(index);
    return index;
}

TensorIndex Builder::tensor(std::string name, ElementType type, std::vector<std::int32_t> shape,
                            Quantization quantization) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.shape = std::move(shape);
    tensor.type = type;
    return append(std::move(tensor), std::move(quantization));
}

TensorIndex Builder::variable(std::string name, ElementType type, std::vector<std::int32_t> shape,
                              Quantization quantization) {
    const TensorIndex index =
        tensor(std::move(name), type, std::move(shape), std::move(quantization));
    model_.subgraphs[0].tensors.back().is_variable = true;
    return index;
}

TensorIndex Builder::constant_bytes(std::string name, ElementType type,
                                    std::vector<std::int32_t> shape, Bytes data,
                                    Quantization quantization) {
    const TensorIndex index =
        tensor(std::move(name), type, std::move(shape), std::move(quantization));
    model_.subgraphs[0].tensors.back().buffer = append_buffer(data);
    constants_.push_back(index);
    return index;
}

void Builder::add(Op op, std::vector<TensorIndex> inputs, std::vector<TensorIndex> outputs,
                  Options options, std::int32_t version) {
    Operator added;
    added.code = {.builtin = op, .custom = {}, .version = version};
    added.inputs = std::move(inputs);
    added.outputs = std::move(outputs);
    added.options = std::move(options);
    model_.subgraphs[0].operators.push_back(std::move(added));
}

void Builder::add_custom(std::string name, std::vector<TensorIndex> inputs,
                         std::vector<TensorIndex> outputs, Bytes custom_options) {
    add(Op::custom, std::move(inputs), std::move(outputs));
    Operator& added = model_.subgraphs[0].operators.back();
    added.code.custom = std::move(name);
    added.custom_options = SharedBytes::copy_of(custom_options);
}

void Builder::output(TensorIndex tensor) {
    model_.subgraphs[0].outputs.push_back(tensor);
}

void Builder::metadata(std::string name, Bytes contents) {
    const std::uint32_t buffer = append_buffer(contents);
    model_.metadata.push_back({std::move(name), buffer});
}

Result<Model> Builder::finish() {
    Model model = std::exchange(model_, {});
    const std::vector<TensorIndex> constants = std::exchange(constants_, {});
    start({});
    if (auto status = validate(model); !status) {
        status.error().cause = Cause::bad_argument;
        return std::unexpected(std::move(status).error());
    }
    // To validate() an empty buffer is a tensor computed at run time.
    for (const TensorIndex index : constants) {
        const Tensor& tensor = model.subgraphs[0].tensors[static_cast<std::size_t>(index)];
        if (model.constant(tensor).empty() && tensor.byte_count().value_or(0) != 0) {
            return fail(Cause::bad_argument, "a constant without data",
                        place_of_tensor(model.subgraphs[0], index));
        }
    }
    return model;
}

}  // namespace reef::model
