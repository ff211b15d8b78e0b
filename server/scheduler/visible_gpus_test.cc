#include "server/scheduler/visible_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int> Visible(absl::string_view text) {
  return VisibleGpus(text, {"GPU-8932f937-d72c", "GPU-aa0f0000-0001", "GPU-aa110000-0002"});
}

TEST(VisibleGpusTest, NumbersInTheirOrder) {
  EXPECT_THAT(Visible("0,1,2"), ElementsAre(0, 1, 2));
  EXPECT_THAT(Visible("2,0"), ElementsAre(2, 0));
  EXPECT_THAT(Visible(" 1 , +2 "), ElementsAre(1, 2));
  EXPECT_THAT(Visible("1gpu,2nd"), ElementsAre(1, 2));
}

TEST(VisibleGpusTest, NothingBehindAnEntryThatIsNone) {
  EXPECT_THAT(Visible("0,2,-1,1"), ElementsAre(0, 2));
  EXPECT_THAT(Visible("1,3,0"), ElementsAre(1));
  EXPECT_THAT(Visible("1,,0"), ElementsAre(1));
  EXPECT_THAT(Visible("0,GPU-aa0f"), ElementsAre(0));
  EXPECT_THAT(Visible("GPU-aa0f,0"), ElementsAre(1));
  EXPECT_THAT(Visible("99999999999999999999"), IsEmpty());
}

TEST(VisibleGpusTest, Uuids) {
  EXPECT_THAT(Visible("GPU-aa110000-0002,GPU-8932f937-d72c"), ElementsAre(2, 0));
  EXPECT_THAT(Visible("GPU-aa1,GPU-8"), ElementsAre(2, 0));
  EXPECT_THAT(Visible("GPU-8,GPU-aa"), ElementsAre(0)) << "of two";
  EXPECT_THAT(Visible("GPU-8,GPU-8932f937-d72d"), ElementsAre(0));
}

TEST(VisibleGpusTest, NoneForNothingAndForWhatComesTwice) {
  EXPECT_THAT(Visible(""), IsEmpty());
  EXPECT_THAT(Visible("-1"), IsEmpty());
  EXPECT_THAT(Visible("none"), IsEmpty());
  EXPECT_THAT(Visible("NoDevFiles"), IsEmpty());
  EXPECT_THAT(Visible("0,1,0"), IsEmpty());
  EXPECT_THAT(Visible("GPU-8,GPU-8932"), IsEmpty());
  EXPECT_THAT(Visible("MIG-8932f937-d72c"), IsEmpty());
}

}  // namespace
}  // namespace tandem
