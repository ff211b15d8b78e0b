#include "engine/base/field_violations.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FieldViolationsTest, NoneIsOk) { EXPECT_TRUE(FieldViolations().ToStatus().ok()); }

TEST(FieldViolationsTest, AStatusMovesUnderAField) {
  EXPECT_TRUE(UnderField("model", absl::OkStatus()).ok());
  EXPECT_THAT(GetFieldViolations(UnderField("model", FieldError("layers[0]", "is missing"))),
              ElementsAre(FieldViolation{"model.layers[0]", "is missing"}));
  EXPECT_THAT(GetFieldViolations(UnderField("dataset", absl::NotFoundError("no such file"))),
              ElementsAre(FieldViolation{"dataset", "no such file"}));
}

TEST(FieldViolationsTest, NumbersOutsideTheirRangeAreViolations) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  FieldViolations good;
  CheckAboveZero("a", 1e-300, good);
  CheckAtLeastZero("b", 0, good);
  CheckZeroToOne("c", 0, good);
  CheckZeroToOne("d", 1, good);
  EXPECT_TRUE(good.empty());
  FieldViolations wrong;
  CheckAboveZero("a", 0, wrong);
  CheckAboveZero("b", kInfinity, wrong);
  CheckAtLeastZero("c", -0.5, wrong);
  CheckAtLeastZero("d", kNan, wrong);
  CheckZeroToOne("e", 1.5, wrong);
  CheckZeroToOne("f", kNan, wrong);
  EXPECT_THAT(wrong.violations(),
              ElementsAre(FieldViolation{"a", "is 0; it must be finite and above 0"},
                          FieldViolation{"b", "is inf; it must be finite and above 0"},
                          FieldViolation{"c", "is -0.5; it must be finite and at least 0"},
                          FieldViolation{"d", "is nan; it must be finite and at least 0"},
                          FieldViolation{"e", "is 1.5; it must be from 0 to 1"},
                          FieldViolation{"f", "is nan; it must be from 0 to 1"}));
}

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

TEST(FieldViolationsTest, AFullMemoryIsNoFaultOfAField) {
  EXPECT_EQ(UnderField("csv.train", absl::InvalidArgumentError("has no rows")),
            FieldError("csv.train", "has no rows"));
  const absl::Status full = absl::ResourceExhaustedError("no memory to read train.csv.xz");
  EXPECT_EQ(UnderField("csv.train", full), full);
}

TEST(FieldViolationsTest, OtherStatusesCarryNone) {
  EXPECT_THAT(GetFieldViolations(absl::InternalError("broken")), IsEmpty());
  EXPECT_THAT(GetFieldViolations(absl::OkStatus()), IsEmpty());
}

}  // namespace
}  // namespace tandem
