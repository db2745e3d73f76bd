// One operator of random sizes, values and options against its definition in real numbers. The
// first byte chooses the operator, the others its case.
#include <algorithm>
#include <iterator>

#include "check.h"
#include "cpu/plain/operator_case.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reef;
    if (size == 0) return 0;
    static const std::vector<plain::NamedMaker> makers = [] {
        std::vector<plain::NamedMaker> all = plain::all_makers();
        std::ranges::copy(plain::hybrid_makers(), std::back_inserter(all));
        return all;
    }();
    const plain::NamedMaker& maker = makers[data[0] % makers.size()];
    plain::Choices choices(std::span(data + 1, size - 1));
    const plain::Outcome outcome = plain::run_case(maker.make(choices));
    fuzz::check(outcome.wrong.empty(), model::builtin_name(maker.op) + ": " + outcome.wrong);
    return 0;
}
