#include "reef/base/sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

namespace reef {
namespace {

// Examples of FIPS 180-2, appendix B.
TEST(Sha256, GivesTheDigestsOfTheStandard) {
    EXPECT_EQ(to_hex(sha256(as_bytes("abc"))),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(to_hex(sha256(as_bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(to_hex(sha256(as_bytes(std::string(1000000, 'a')))),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    EXPECT_EQ(to_hex(sha256({})),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, PartsGiveTheDigestOfThemAll) {
    const std::string text(300, 'a');
    const Bytes all = as_bytes(text);
    for (std::size_t size = 0; size < all.size(); ++size)
        for (const std::size_t cut : {0, 1, 55, 56, 63, 64, 65, 128}) {
            const Bytes some = all.first(size);
            const std::size_t first = std::min(cut, size), second = (size - first) / 2;
            const std::array parts{some.first(first), some.subspan(first, second),
                                   some.subspan(first + second)};
            EXPECT_EQ(sha256_of(parts), sha256(some)) << size << " cut at " << cut;
        }
    // Sizes around those of a block, whose padding takes one or two; from another program.
    EXPECT_EQ(to_hex(sha256(all.first(55))),
              "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    EXPECT_EQ(to_hex(sha256(all.first(56))),
              "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
    EXPECT_EQ(to_hex(sha256(all.first(64))),
              "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

}  // namespace
}  // namespace reef
