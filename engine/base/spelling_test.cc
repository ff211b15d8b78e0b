#include "engine/base/spelling.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(EditDistanceTest, CountsEditsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("kernel", "kernel"), 0);
  EXPECT_EQ(EditDistance("kernle", "kernel"), 1);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("ca", "abc"), 3);
}

TEST(NearestNameTest, FindsWhatWasMeant) {
  const std::vector<std::string> layers = {"conv2d", "max_pool2d", "average_pool2d",
                                           "dense",  "flatten",    "activation"};
  EXPECT_EQ(NearestName("max_pol2d", layers), "max_pool2d");
  EXPECT_EQ(NearestName("maxpool", layers), "max_pool2d");
  EXPECT_EQ(NearestName("MaxPool2D", layers), "max_pool2d");
  EXPECT_EQ(NearestName("Conv2D", layers), "conv2d");
  EXPECT_EQ(NearestName("conv", layers), "conv2d");
  EXPECT_EQ(NearestName("densee", layers), "dense");
  EXPECT_EQ(NearestName("lstm", layers), "");
  EXPECT_EQ(NearestName("", layers), "");
  EXPECT_EQ(NearestName(std::string(1000, 'x'), layers), "");
  EXPECT_EQ(NearestName("batch_size", {"epochs", "global_batch_size", "validation_batch_size"}),
            "global_batch_size");
  // What is two of four or five letters away is another word.
  for (const char* word : {"king", "moon", "mesh", "dance"}) {
    EXPECT_EQ(NearestName(word, {"ring2", "mean", "mish7", "dense", "loss"}), "") << word;
  }
  EXPECT_EQ(NearestName("lr", {"learning_rate", "momentum"}), "");
}

TEST(SpellingHintTest, ListsNamesWhereNoneIsNear) {
  EXPECT_EQ(SpellingHint("epoch", {"epochs", "seed"}), "did you mean `epochs`?");
  EXPECT_EQ(SpellingHint("zzzz", {"epochs", "seed"}), "known here: epochs, seed");
}

TEST(NearestNameTest, FindsOptionsAndDataSets) {
  const std::vector<std::string> names = {"state-folder", "data-folder", "listen", "cpu-devices",
                                          "fashion-mnist"};
  EXPECT_EQ(NearestName("state-foldr", names), "state-folder");
  EXPECT_EQ(NearestName("STATE_FOLDER", names), "state-folder");
  EXPECT_EQ(NearestName("lisetn", names), "listen");
  EXPECT_EQ(NearestName("cpu-device", names), "cpu-devices");
  EXPECT_EQ(NearestName("fashon-mnist", names), "fashion-mnist");
  EXPECT_EQ(NearestName("something-else", names), "");
  EXPECT_EQ(NearestName("", names), "");
  EXPECT_EQ(NearestName(std::string(100000, 'x'), names), "");
  EXPECT_EQ(NearestName("x", {}), "");
}

}  // namespace
}  // namespace tandem
