#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job_file/enum_names.h"
#include "tandem/v1/job.pb.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

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
