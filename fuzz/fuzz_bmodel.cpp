// Bmodels: any bytes are reported on, checked and taken apart, or refused.
#include "check.h"
#include "sophgo/bmodel/parts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reef;
    const auto file = SharedBytes::copy_of(std::as_bytes(std::span(data, size)));
    const auto report = sophgo::bmodel_inspector()->inspect(file, chip::Detail::all);
    const auto checked = sophgo::bmodel_checker()->check(file);
    fuzz::check(report.has_value() == checked.has_value(), "what can be read can be checked");
    const auto parts = sophgo::bmodel_extractor()->parts_of(file);
    if (parts)
        for (const auto& part : *parts)
            fuzz::check(!part.name.empty() && part.bytes.size() <= size, "parts are of the file");
    if (report) {
        const auto same = sophgo::bmodel_comparer()->differences(file, file);
        fuzz::check(same.has_value() && same->same, "a file is equal to itself");
    }
    fuzz::check(sophgo::cvimodel_inspector()->inspect(file, chip::Detail::all).has_value() ==
                    sophgo::cvimodel_checker()->check(file).has_value(),
                "a cvimodel that can be read can be checked");
    return 0;
}
