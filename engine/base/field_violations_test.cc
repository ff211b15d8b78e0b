#include "engine/base/field_violations.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FieldViolationsTest, NoneIsOk) { EXPECT_TRUE(FieldViolations().ToStatus().ok()); }

TEST(FieldViolationsTest, TravelThroughAStatusUnderAPrefix) {
  FieldViolations inner;
  inner.Add("units", "is -1; it must be at least 1");
  inner.Add("[0]", "is 0");
  FieldViolations outer;
  outer.Add("name", "is too long");
  outer.AddAll("layers[2].dense", inner.ToStatus());
  outer.AddAll("dataset", absl::NotFoundError("no such file"));
  outer.AddAll("model", absl::OkStatus());

  const absl::Status status = outer.ToStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      status.message(),
      "name: is too long; layers[2].dense.units: is -1; it must be at least 1; layers[2].dense[0]: is 0; "
      "dataset: no such file");
  EXPECT_THAT(
      GetFieldViolations(status),
      ElementsAre(FieldViolation{"name", "is too long"},
                  FieldViolation{"layers[2].dense.units", "is -1; it must be at least 1"},
                  FieldViolation{"layers[2].dense[0]", "is 0"}, FieldViolation{"dataset", "no such file"}));
}

TEST(FieldViolationsTest, OtherStatusesCarryNone) {
  EXPECT_THAT(GetFieldViolations(absl::InternalError("broken")), IsEmpty());
  EXPECT_THAT(GetFieldViolations(absl::OkStatus()), IsEmpty());
}

}  // namespace
}  // namespace tandem
