#include "seeds.h"
#include "sophgo/small_bmodel.h"

namespace reef::fuzz {

Result<Seeds> bmodel_seeds() {
    Seeds seeds;
    seeds.emplace_back("small", sophgo::small_bmodel());
    auto tables = sophgo::small_bmodel_tables();
    tables.net[0]->parameter[0]->coeff_mem->location.push_back(
        std::make_unique<sophgo::schema::LocationT>());
    seeds.emplace_back("short", sophgo::bmodel_file(tables, 100, 1ULL << 33));
    return seeds;
}

}  // namespace reef::fuzz
