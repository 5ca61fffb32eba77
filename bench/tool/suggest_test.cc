#include "bench/tool/suggest.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace expanse::tool {
namespace {

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("compare", "compare"), 0u);
  EXPECT_EQ(EditDistance("compare", "compar"), 1u);
  EXPECT_EQ(EditDistance("compare", "comXare"), 1u);
  EXPECT_EQ(EditDistance("compare", "comapre"), 1u) << "a swap of neighbours";
  EXPECT_EQ(EditDistance("fit", "replay"), 6u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

TEST(Nearest, IsNearOrNothing) {
  EXPECT_EQ(Nearest("comapre", {"replay", "compare", "fit"}), "compare");
  EXPECT_EQ(Nearest("--capacty", {"--costs", "--capacity"}), "--capacity");
  EXPECT_EQ(Nearest("zebra", {"replay", "compare", "fit"}), "");
  EXPECT_EQ(Nearest("xy", {"fi"}), "") << "nothing of the word is left";
  EXPECT_EQ(Nearest(std::string(100000, 'a'), {std::string(100000, 'b')}), "") << "not worth the time";
}

TEST(DidYouMean, SuggestsFilesInTheSameFolder) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "suggest_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "trace.csv") << "x";
  EXPECT_EQ(DidYouMeanFile((folder / "tarce.csv").string()),
            "; did you mean '" + (folder / "trace.csv").string() + "'?");
  EXPECT_EQ(DidYouMeanFile((folder / "unlike").string()), "");
  EXPECT_EQ(DidYouMeanFile("/no/such/folder/trace.csv"), "");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace expanse::tool
