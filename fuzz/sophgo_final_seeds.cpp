#include "final_mlir/demo_network.h"
#include "reef/base/bytes.h"
#include "seeds.h"

namespace reef::fuzz {
namespace {

// In the form of 2022: names are attributes, functions have no prefix, addresses no locations.
constexpr std::string_view old_form =
    R"(module attributes {module.chip = "bm1684x", module.coeff_addr = 4294967296 : i64, module.coeff_size = 4096 : i64, module.neuron_addr = 4294971392 : i64, module.neuron_size = 8192 : i64, module.state = "TPU_ADDRESSED"} {
  func @main(%arg0: tensor<1x16xf32>) -> tensor<1x16xf32, 4294975488 : i64> {
    %0 = "top.Input"(%arg0) {name = "x"} : (tensor<1x16xf32>) -> tensor<1x16xf32, 4294971392 : i64>
    %1 = call @subfunc_0(%0) : (tensor<1x16xf32, 4294971392 : i64>) -> tensor<1x16xf32, 4294975488 : i64>
    return %1 : tensor<1x16xf32, 4294975488 : i64>
  }
  func @subfunc_0(%arg0: tensor<1x16xf32, 4294971392 : i64>) -> tensor<1x16xf32, 4294975488 : i64> attributes {id = 0 : i64, mode = "TPU"} {
    %0 = "top.Weight"() {name = "w"} : () -> tensor<1x16xf32, 4294967296 : i64>
    %1 = "tpu.Add"(%arg0, %0) {name = "sum"} : (tensor<1x16xf32, 4294971392 : i64>, tensor<1x16xf32, 4294967296 : i64>) -> tensor<1x16xf32, 4294975488 : i64>
    return %1 : tensor<1x16xf32, 4294975488 : i64>
  }
}
)";

std::vector<std::byte> bytes_of(std::string_view text) {
    const auto bytes = as_bytes(text);
    return {bytes.begin(), bytes.end()};
}

}  // namespace

Result<Seeds> sophgo_final_seeds() {
    return Seeds{{"small", bytes_of(tool::demo_network())}, {"of_2022", bytes_of(old_form)}};
}

}  // namespace reef::fuzz
