#include "reef/runtime/device_pool.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

namespace reef::runtime {

struct DevicePool::Impl {
    std::mutex mutex;
    std::map<std::string, std::weak_ptr<Device>> open;  ///< by Device::uri()
};

DevicePool::DevicePool() : impl_(std::make_unique<Impl>()) {}
DevicePool::~DevicePool() = default;

const std::shared_ptr<DevicePool>& DevicePool::of_process() {
    static const auto devices = std::make_shared<DevicePool>();
    return devices;
}

Result<std::shared_ptr<Device>> DevicePool::open(const Registry::Found& device,
                                                 const OptionValues& options, int threads) {
    if (!device.driver->shares(device.uri, options))
        return device.driver->open(device.uri, options, threads);
    const std::lock_guard lock(impl_->mutex);
    const std::string wanted = device.uri.device();
    const bool any = device.backend->one_per_process && device.uri.name.empty();
    for (const auto& [uri, weak] : impl_->open)
        if (uri == wanted || (any && uri.starts_with(wanted + ":")))
            if (auto found = weak.lock()) return found;
    auto opened = REEF_TRY(device.driver->open(device.uri, options, threads));
    std::erase_if(impl_->open, [](const auto& each) { return each.second.expired(); });
    impl_->open[opened->uri()] = opened;
    return opened;
}

}  // namespace reef::runtime
