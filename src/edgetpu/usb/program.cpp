#include <fmt/format.h>

#include <cstring>

#include "edgetpu/sim/core/transfer_plan.h"
#include "reef/edgetpu/usb/device.h"

namespace reef::edgetpu::usb {
namespace {

Sha256 content_of(std::uint64_t token, const Executable& executable) {
    // Digests of the pieces, so that nothing large is copied.
    std::vector<std::byte> pieces;
    const auto add = [&](Bytes bytes) { pieces.insert(pieces.end(), bytes.begin(), bytes.end()); };
    add(std::as_bytes(std::span(&token, 1)));
    const auto add_digest = [&](Bytes bytes) {
        const Sha256 digest = sha256(bytes);
        add(std::as_bytes(std::span(digest)));
    };
    add_digest(executable.parameters.view());
    for (const auto& bitstream : executable.bitstreams) add_digest(bitstream.instructions.view());
    return sha256(pieces);
}

}  // namespace

const Sha256& Program::cached_content() const {
    std::call_once(content_known_,
                   [this] { cached_content_ = content_of(token_, caching_->executable); });
    return cached_content_;
}

bool Program::caches_as(const Program& other) const {
    if (this == &other) return true;
    return caching_ && other.caching_ && token_ == other.token_ &&
           cached_content() == other.cached_content();
}

Result<Program::Part> Program::prepare_part(const Executable& executable) {
    Part part;
    part.executable = executable;
    part.plan = REEF_TRY(sim::transfer_plan(executable));
    for (std::size_t i = 0; i < executable.bitstreams.size(); ++i) {
        part.bitstreams.push_back(REEF_TRY(with_base_addresses(executable, i)));
    }
    return part;
}

Result<std::shared_ptr<const Program>> Program::prepare(const Package& package) {
    if (!package.multi_chip.empty()) {
        return fail(
            Cause::unsupported,
            fmt::format("not modelled: a model split over {} chips", package.multi_chip.size()), {},
            "compile it for one chip");
    }
    const Executable* main = REEF_TRY(computing_executable(package));
    auto program = std::make_shared<Program>();
    program->main_ = REEF_TRY(prepare_part(*main));
    program->token_ = main->parameter_caching_token;
    if (const Executable* caching = package.find(ExecutableType::parameter_caching)) {
        program->caching_ = REEF_TRY(prepare_part(*caching));
        program->token_ = caching->parameter_caching_token;
        program->cached_rows_ = parameter_rows_of(*caching);
        if (!program->caching_->plan.complete) {
            return fail(Cause::unsupported,
                        "not modelled: a PARAMETER_CACHING executable whose DMA hints are not "
                        "complete");
        }
        if (program->caching_->plan.stream_bytes(Tag::output_activations) != 0) {
            return fail(Cause::unsupported,
                        "not modelled: a PARAMETER_CACHING executable with outputs");
        }
    }
    for (const Layer& layer : main->outputs) {
        program->unpackers_.push_back(REEF_TRY(OutputUnpacker::prepare(layer)));
    }
    for (const Layer& layer : main->inputs) {
        program->tensor_bytes_.push_back(REEF_TRY(tensor_bytes(layer)));
    }
    return std::shared_ptr<const Program>(std::move(program));
}

}  // namespace reef::edgetpu::usb
