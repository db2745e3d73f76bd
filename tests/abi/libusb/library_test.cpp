// The library file itself: what it exports, what it needs, what it is called.
#include <gmock/gmock.h>

#include <sstream>

#include "abi/libusb/simulated_libusb.h"
#include "support/process.h"

namespace reef::abi::libusb {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

/// The last words of the lines of a program's output.
std::vector<std::string> last_words(const std::vector<std::string>& command) {
    const auto result = test::run_process(command);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::vector<std::string> words;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
        words.push_back(line.substr(line.rfind(' ') + 1));
    }
    return words;
}

std::vector<std::string> exports_of(const std::string& library) {
    return last_words({NM, "--dynamic", "--defined-only", library});
}

TEST(Library, ExportsWhatLibusbExportsAndNothingElse) {
    const auto wanted = exports_of(SYSTEM_LIBUSB), ours = exports_of(LIBREEF_USB);
    ASSERT_GE(wanted.size(), 90U);
    EXPECT_THAT(ours, IsSupersetOf(wanted));
    EXPECT_THAT(ours, Each(StartsWith("libusb_")));
}

TEST(Library, PassesForLibusbAndDoesWithoutIt) {
    const auto result = test::run_process({READELF, "--dynamic", "--wide", LIBREEF_USB});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("Library soname: [libusb-1.0.so.0]"));
    EXPECT_THAT(result.out, Not(HasSubstr("Shared library: [libusb")));
}

TEST(Library, TheDriversOwnTransportIsNotInIt) {
    const auto result = test::run_process({NM, "--demangle", LIBREEF_USB});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("reef::edgetpu::usb::SimulatedBus::plug"));
    EXPECT_THAT(result.out, Not(HasSubstr("libusb_bus")));
}

}  // namespace
}  // namespace reef::abi::libusb
