#include "reef/base/log.h"

#include <memory>
#include <mutex>

namespace reef {
namespace {

// Recursive: a sink may log.
struct Installed {
    std::recursive_mutex mutex;
    std::shared_ptr<const LogSink> sink;
};

// Never destroyed: threads may log while static objects are torn down.
Installed& installed() {
    static Installed& object = *new Installed;
    return object;
}

}  // namespace

void set_log_sink(LogSink sink) {
    std::shared_ptr<const LogSink> next;
    if (sink) next = std::make_shared<const LogSink>(std::move(sink));
    Installed& current = installed();
    const std::lock_guard lock(current.mutex);
    current.sink.swap(next);
}

void log(LogLevel level, std::string_view message) {
    Installed& current = installed();
    const std::lock_guard lock(current.mutex);
    const std::shared_ptr<const LogSink> sink = current.sink;
    if (sink) (*sink)(level, message);
}

}  // namespace reef
