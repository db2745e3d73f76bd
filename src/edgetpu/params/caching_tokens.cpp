// Caching tokens of packages that changed.
#include <algorithm>

#include "reef/edgetpu/compiled_parameters.h"

namespace reef::edgetpu {
namespace {

std::uint64_t token_of(const Package& package) {
    return package.executables.empty() ? 0 : package.executables.front().parameter_caching_token;
}

/// FNV-1a over the parameters and, so that two programs with the same ones differ, the old tokens.
class TokenHash {
  public:
    void add(const Package& package) {
        for (const Executable& executable : package.executables) {
            for (int i = 0; i < 8; ++i) add(executable.parameter_caching_token >> (8 * i) & 255);
            for (const std::byte byte : executable.parameters.view())
                add(static_cast<std::uint64_t>(byte));
        }
    }
    [[nodiscard]] std::uint64_t value() const { return hash_; }

  private:
    void add(std::uint64_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3U; }

    std::uint64_t hash_ = 0xcbf29ce484222325U;
};

/// Indices of packages of one token; those without a token are alone.
using TokenGroup = std::vector<std::size_t>;

std::vector<TokenGroup> groups_of(const std::vector<CompiledOperator>& operators) {
    std::vector<TokenGroup> groups;
    for (std::size_t i = 0; i < operators.size(); ++i) {
        const std::uint64_t token = token_of(operators[i].package);
        const auto its = std::ranges::find_if(groups, [&](const TokenGroup& group) {
            return token != 0 && token_of(operators[group.front()].package) == token;
        });
        (its == groups.end() ? groups.emplace_back() : *its).push_back(i);
    }
    return groups;
}

}  // namespace

Result<model::Model> with_packages(model::Model model,
                                   const std::vector<CompiledOperator>& operators,
                                   std::vector<Package> packages,
                                   std::optional<std::uint64_t> token) {
    for (const TokenGroup& group : groups_of(operators)) {
        const auto changed = [&](std::size_t i) { return packages[i] != operators[i].package; };
        if (std::ranges::none_of(group, changed)) continue;
        TokenHash hash;
        for (const std::size_t i : group) hash.add(packages[i]);
        const std::uint64_t fresh = token.value_or(hash.value());
        for (const std::size_t i : group) {
            for (Executable& executable : packages[i].executables)
                executable.parameter_caching_token = fresh;
            auto& graph = model.subgraphs[operators[i].subgraph];
            REEF_CHECK(in_place(replace_package(graph.operators[operators[i].index], packages[i]),
                                operators[i].place));
        }
    }
    return model;
}

}  // namespace reef::edgetpu
