#include "reef/runtime/registry.h"
#include "rk3588/compiler/compiler_part.h"
#include "rk3588/device/driver.h"
#include "rk3588/device/estimator.h"
#include "rk3588/device/layer_gatherer.h"
#include "rk3588/device/prober.h"
#include "rk3588/device/traffic_recorder.h"
#include "rk3588/inspect/disassembler.h"
#include "rk3588/inspect/inspection.h"

namespace reef::rk3588 {

void enrol(runtime::Registry& registry);

void enrol(runtime::Registry& registry) {
    registry.add_driver(std::make_unique<Driver>());
    registry.add_part<chip::Compiler>(std::make_unique<CompilerPart>());
    registry.add_part<chip::TargetChecker>(std::make_unique<TargetCheckerPart>());
    registry.add_part<chip::Disassembler>(std::make_unique<Disassembler>());
    registry.add_part<chip::Inspector>(std::make_unique<Inspector>());
    registry.add_part<chip::LayerGatherer>(std::make_unique<LayerGatherer>());
    registry.add_part<chip::Estimator>(std::make_unique<Estimator>());
    registry.add_part<chip::Prober>(std::make_unique<Prober>());
    registry.add_part<chip::TrafficRecorder>(std::make_unique<TrafficRecorder>());
}

}  // namespace reef::rk3588
