#include "edgetpu/retarget/retargeter.h"

#include <utility>

#include "reef/edgetpu/retarget.h"

namespace reef::edgetpu {

Result<chip::Retargeting> Retargeter::retarget(const chip::RetargetRequest& request) const {
    const RetargetOptions options{.token = request.token,
                                  .source_name = request.source_name,
                                  .target_name = request.target_name};
    auto done = REEF_TRY(
        request.source == nullptr
            ? edgetpu::retarget(request.compiled, request.target, options)
            : edgetpu::retarget(request.compiled, *request.source, request.target, options));
    return chip::Retargeting{std::move(done.model), done.changed_instructions,
                             done.changed_parameter_bytes, done.first_operator};
}

}  // namespace reef::edgetpu
