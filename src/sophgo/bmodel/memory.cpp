#include <algorithm>
#include <map>
#include <set>

#include "reef_spec/sophgo_machine.h"
#include "sophgo/bmodel/reports.h"

namespace reef::sophgo {
namespace {

using CheckCode = std::vector<std::uint8_t>;

// Hosts' memory is counted in floats.
std::uint64_t host_bytes_of(const schema::NetParameterT& stage) {
    return std::uint64_t{stage.cpu_mem_size} * sizeof(float);
}

bool is_commands(const Blob& blob, bool subnets_alone, std::string_view prefix) {
    return blob.kind == Blob::Kind::commands &&
           (!subnets_alone || blob.name.starts_with(std::string(prefix) + "subnet"));
}

/// Equal contents once, by their SHA-256; those without one, by their place.
class Contents {
  public:
    void add(const CheckCode& code, const schema::Binary& range) {
        const auto key = std::pair(code, code.empty() ? range.start() : std::uint64_t{0});
        if (seen_.insert(key).second) bytes_ = plus(bytes_, range.size());
    }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  private:
    std::set<std::pair<CheckCode, std::uint64_t>> seen_;
    std::uint64_t bytes_ = 0;
};

void add_constants(Contents& out, const schema::SubNetT& subnet) {
    for (const auto& param : subnet.cpu_param)
        for (const auto& constant : param->cpu_const)
            if (constant->const_data) out.add(constant->check_code, *constant->const_data);
}

/// What the vendor's tool takes commands to need, by their number on chips whose commands have one
/// length.
std::uint64_t tool_bytes_of(const schema::CmdGroupT& group, const std::string& chip) {
    const std::uint64_t commands = std::uint64_t{group.bdc_num} + group.gdma_num;
    if (chip == "BM1682") return commands * spec::bm1682_command_bytes;
    if (chip == "BM1684") return commands * spec::bm1684_command_bytes;
    return plus(group.binary_bdc ? group.binary_bdc->size() : 0,
                group.binary_gdma ? group.binary_gdma->size() : 0);
}

std::uint64_t tool_bytes_of(const schema::SubNetT& subnet, const std::string& chip) {
    if (subnet.is_dynamic != 0) return std::uint64_t{subnet.ir_len} * sizeof(std::uint32_t);
    std::uint64_t sum = 0;
    for (const auto& group : subnet.cmd_group) sum = plus(sum, tool_bytes_of(*group, chip));
    for (const auto& core : subnet.core_commands) {
        for (const auto& group : core->gdma_tiu_commands)
            sum = plus(sum, tool_bytes_of(*group, chip));
        for (const auto* list : {&core->sdma_commands, &core->hau_commands})
            for (const schema::Binary& range : *list) sum = plus(sum, range.size());
    }
    return sum;
}

/// A buffer for the largest of these tensors, in which the oldest chip changes its form.
std::uint64_t largest_buffer(const std::vector<std::unique_ptr<schema::TensorT>>& tensors) {
    std::uint64_t largest = 0;
    for (const auto& tensor : tensors) {
        if (tensor->shape.empty()) continue;
        std::uint64_t bytes = data_type_bits(tensor->data_type) == 8 ? 1 : sizeof(float);
        for (const std::uint64_t dim : tensor->shape[0]->dim) bytes = times(bytes, dim);
        largest = std::max(largest, bytes);
    }
    return largest;
}

}  // namespace

std::uint64_t activation_bytes(const schema::NetParameterT& stage) {
    std::uint64_t sum = 0;
    for (const std::uint64_t size : stage.ctx_sizes) sum = plus(sum, size);
    return stage.ctx_sizes.empty() ? stage.ctx_size : sum;
}

std::uint64_t command_bytes(const Bmodel& bmodel, std::size_t net, std::size_t stage) {
    const std::vector<Blob> blobs = stage_blobs_of(bmodel, net, stage);
    const std::string prefix = stage_prefix(net, stage);
    // Old writers give the same commands twice.
    const bool in_subnets = std::ranges::any_of(
        blobs, [&](const Blob& blob) { return is_commands(blob, true, prefix); });
    std::set<std::pair<std::uint64_t, std::uint64_t>> ranges;
    for (const Blob& blob : blobs)
        if (is_commands(blob, in_subnets, prefix)) ranges.emplace(blob.start, blob.size);
    std::uint64_t sum = 0;
    for (const auto& [start, size] : ranges) sum = plus(sum, size);
    return sum;
}

BmodelMemory memory_of(const Bmodel& bmodel) {
    BmodelMemory memory;
    Contents coefficients, constants;
    std::set<std::pair<std::uint64_t, std::uint64_t>> code;
    const auto& nets = bmodel.model->net;
    for (std::size_t n = 0; n < nets.size(); ++n) {
        for (std::size_t s = 0; s < nets[n]->parameter.size(); ++s) {
            const auto& stage = *nets[n]->parameter[s];
            memory.commands = plus(memory.commands, command_bytes(bmodel, n, s));
            memory.runtime = std::max(memory.runtime, plus(activation_bytes(stage), stage.io_size));
            memory.host_runtime = std::max(memory.host_runtime, host_bytes_of(stage));
            if (stage.binary_ir &&
                code.emplace(stage.binary_ir->start(), stage.binary_ir->size()).second)
                memory.commands = plus(memory.commands, stage.binary_ir->size());
            if (stage.coeff_mem && stage.coeff_mem->binary_coeff)
                coefficients.add(stage.coeff_mem->check_code, *stage.coeff_mem->binary_coeff);
            for (const auto& subnet : stage.sub_net) add_constants(constants, *subnet);
        }
    }
    memory.coefficients = coefficients.bytes();
    memory.host_coefficients = constants.bytes();
    return memory;
}

// It goes through all stages and looks at the first each time.
BmodelMemory memory_by_model_tool(const Bmodel& bmodel) {
    const schema::ModelT& model = *bmodel.model;
    BmodelMemory memory;
    Contents coefficients, constants;
    std::uint64_t shared = 0, buffer = 0;
    for (const auto& net : model.net) {
        if (net->parameter.empty()) continue;
        const auto& first = *net->parameter.front();
        const std::uint64_t stages = net->parameter.size();
        if (first.coeff_mem && first.coeff_mem->binary_coeff)
            coefficients.add(first.coeff_mem->check_code, *first.coeff_mem->binary_coeff);
        for (const auto& subnet : first.sub_net) {
            if (subnet->subnet_mode == 1) add_constants(constants, *subnet);
            if (subnet->subnet_mode == 0)
                memory.commands =
                    plus(memory.commands, times(stages, tool_bytes_of(*subnet, model.chip)));
        }
        memory.host_runtime = plus(memory.host_runtime, times(stages, host_bytes_of(first)));
        // Nets of several parts do not share their activations with others.
        if (first.sub_net.size() > 1)
            memory.runtime = plus(memory.runtime, first.ctx_size);
        else
            shared = std::max(shared, first.ctx_size);
        buffer = std::max(
            {buffer, largest_buffer(first.input_tensor), largest_buffer(first.output_tensor)});
    }
    memory.coefficients = coefficients.bytes();
    memory.host_coefficients = constants.bytes();
    memory.runtime = plus(plus(memory.runtime, shared), model.chip == "BM1684" ? buffer : 0);
    return memory;
}

}  // namespace reef::sophgo
