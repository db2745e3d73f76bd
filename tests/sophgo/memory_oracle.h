// A second opinion on address plans: the network is executed on tagged bytes. It shares no code
// with the checker.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reef/sophgo/final_program.h"

namespace reef::sophgo {

class MemoryOracle {
  public:
    /// Empty when every operator reads what was computed for it, writes inside a region, and main's
    /// results are whole at the end; else what went wrong first.
    static std::string harm_of(const FinalProgram& program);

  private:
    /// Bytes [key, end) hold root's content from `offset` on.
    struct Piece {
        std::uint64_t end = 0;
        std::size_t root = 0;
        std::uint64_t offset = 0;
    };
    using Pieces = std::map<std::uint64_t, Piece>;
    struct Range {
        std::uint64_t start = 0, end = 0;
    };

    MemoryOracle(const FinalProgram& program, const DeviceProgram& device)
        : program_(program), device_(device) {}

    void run();
    void run_function(const Operator& call, const Function& function);
    void run_operator(const Operator& op);
    void read(ValueIndex value, const std::string& who);
    void write(ValueIndex value, const std::string& who, const std::vector<Range>& kept);
    void destroy(const Range& range);
    void fill(Range range, std::size_t root, std::uint64_t offset);
    [[nodiscard]] std::vector<Piece> content(const Range& range) const;
    void report(const std::string& what);

    const FinalProgram& program_;
    const DeviceProgram& device_;
    Pieces memory_;
    std::map<ValueIndex, std::vector<Piece>> expected_;
    std::map<ValueIndex, bool> scratch_;  ///< not used yet
    std::size_t next_root_ = 1;           ///< 0 is nobody's
    std::string harm_;
};

}  // namespace reef::sophgo
