#include "edgetpu/package/small_packages.h"
#include "seeds.h"

namespace reef::fuzz {

Result<Seeds> edgetpu_package_seeds() {
    namespace test = edgetpu::test;
    Seeds seeds;
    seeds.emplace_back("rich.package", REEF_TRY(edgetpu::write_package(test::rich_package())));
    seeds.emplace_back("chips.package", REEF_TRY(edgetpu::write_package(test::two_chip_package())));
    seeds.emplace_back("empty.package", REEF_TRY(edgetpu::write_package({})));
    for (const auto& package : {test::rich_package(), edgetpu::Package()}) {
        const model::Operator op = test::compiled_operator(package);
        const Bytes options = op.custom_options.view();
        seeds.emplace_back(package.executables.empty() ? "empty.flexbuffer" : "rich.flexbuffer",
                           std::vector<std::byte>(options.begin(), options.end()));
    }
    return seeds;
}

}  // namespace reef::fuzz
