#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job_file/enum_names.h"
#include "proto/job_file/spelling.h"
#include "tandem/v1/job.pb.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

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
  // A name of four or five letters with two other letters is another word.
  for (const char* word : {"king", "moon", "mesh", "dance"}) {
    EXPECT_EQ(NearestName(word, {"ring2", "mean", "mish7", "dense", "loss"}), "") << word;
  }
  EXPECT_EQ(NearestName("lr", {"learning_rate", "momentum"}), "");
}

TEST(SpellingHintTest, ListsNamesWhereNoneIsNear) {
  EXPECT_EQ(SpellingHint("epoch", {"epochs", "seed"}), "did you mean `epochs`?");
  EXPECT_EQ(SpellingHint("zzzz", {"epochs", "seed"}), "known here: epochs, seed");
}

TEST(EnumNamesTest, ShortFormIsWithoutThePrefix) {
  EXPECT_EQ(ShortEnumName(v1::ACTIVATION_RELU), "relu");
  EXPECT_EQ(ShortEnumName(v1::JOB_STATE_SUCCEEDED), "succeeded");
  EXPECT_EQ(ShortEnumName(v1::STATE_REASON_WORKER_LOST), "worker_lost");
  EXPECT_EQ(ShortEnumName(v1::Waiting::REASON_DEVICES_BUSY), "devices_busy");
  EXPECT_EQ(ShortEnumName(static_cast<v1::JobState>(99)), "99");
  EXPECT_THAT(ShortEnumNames(*v1::PaddingMode_descriptor()), ElementsAre("explicit", "same", "valid"));
}

TEST(EnumNamesTest, BothFormsAreFound) {
  const auto& type = *v1::Activation_descriptor();
  EXPECT_EQ(FindEnumValue(type, "relu")->number(), v1::ACTIVATION_RELU);
  EXPECT_EQ(FindEnumValue(type, "ReLU")->number(), v1::ACTIVATION_RELU);
  EXPECT_EQ(FindEnumValue(type, "ACTIVATION_RELU")->number(), v1::ACTIVATION_RELU);
  EXPECT_EQ(FindEnumValue(type, "relu6"), nullptr);
}

}  // namespace
}  // namespace tandem
