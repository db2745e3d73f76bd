// Instructions of forms that no program of the vendor has: each is there for a reason.
#include "edgetpu/compiler/forms.h"

#include <gtest/gtest.h>

#include <set>

#include "compiler/random_network.h"
#include "reef/base/file.h"
#include "reef/model/operator_samples.h"

namespace reef::edgetpu {
namespace {

/// Adds "part instruction" of those without a reason, and counts the others.
std::size_t add_unexplained(const model::Model& model, CompileOptions options,
                            std::set<std::string>& unexplained) {
    options.list_forms = options.keep_islands = true;
    options.most_programs = 4;
    const auto compiled = compile(model, options);
    if (!compiled) return 0;
    std::size_t explained = 0;
    for (const UnprovenForm& f : compiled->forms.unproven) {
        if (f.reason.empty())
            unexplained.insert(f.part + " " + f.form.substr(0, f.form.find(' ')));
        else
            ++explained;
    }
    return explained;
}

TEST(Forms, NoneIsWithoutItsReason) {
    std::set<std::string> unexplained;
    std::size_t explained = 0;
    for (const auto type : {ElementType::uint8, ElementType::int8}) {
        const auto samples = model::operator_samples(type).value();
        for (const auto& sample : samples)
            explained += add_unexplained(sample.model, {}, unexplained);
    }
    for (unsigned seed = 1; seed <= 40; ++seed) {
        const auto model = test::random_network(seed);
        explained += add_unexplained(model, {}, unexplained);
        explained += add_unexplained(model, {.settings = {{"spill", "always"}}}, unexplained);
        explained += add_unexplained(model, {.stream_parameters = true}, unexplained);
        explained += add_unexplained(test::random_network_of_small_images(seed), {}, unexplained);
    }
    for (unsigned seed = 1; seed <= 4; ++seed)
        explained += add_unexplained(test::random_recurrent_network(seed), {}, unexplained);
    EXPECT_EQ(unexplained, std::set<std::string>{});
    EXPECT_GT(explained, 1000U);
}

TEST(Forms, TheReasonsAreThoseOfThePage) {
    const auto bytes = read_file(REEF_COMPILER_PAGE);
    ASSERT_TRUE(bytes) << bytes.error().message();
    const Bytes all = bytes->view();
    const std::string_view page(reinterpret_cast<const char*>(all.data()), all.size());
    for (const lowering::FormReason& r : lowering::form_reasons()) {
        EXPECT_NE(page.find(r.reason), std::string_view::npos) << r.reason;
        EXPECT_NE(page.find(r.instruction), std::string_view::npos) << r.instruction;
    }
}

}  // namespace
}  // namespace reef::edgetpu
