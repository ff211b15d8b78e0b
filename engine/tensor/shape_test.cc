#include "engine/tensor/shape.h"

#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(ShapeTest, GivesOtherExtents) {
  EXPECT_EQ(Shape({2, 3}).Batched(8), Shape({8, 2, 3}));
  EXPECT_EQ(Shape({2, 3, 4}).WithExtent(0, 7), Shape({7, 3, 4}));
  EXPECT_EQ(Shape({2, 3, 4}).WithExtent(-1, 7), Shape({2, 3, 7}));
}

TEST(ShapeTest, GivesTheFirstAndTheLastDimensions) {
  const Shape shape({2, 3, 4});
  EXPECT_EQ(shape.From(0), shape);
  EXPECT_EQ(shape.From(1), Shape({3, 4}));
  EXPECT_EQ(shape.From(-1), Shape({4}));
  EXPECT_EQ(shape.From(3), Shape());
  EXPECT_EQ(shape.UpTo(0), Shape());
  EXPECT_EQ(shape.UpTo(1), Shape({2}));
  EXPECT_EQ(shape.UpTo(-1), Shape({2, 3}));
  EXPECT_EQ(shape.UpTo(-3), Shape());
}

}  // namespace
}  // namespace tandem
