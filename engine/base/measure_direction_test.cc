#include "engine/base/measure_direction.h"

#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(MeasureDirectionTest, ErrorsAreBetterIfSmaller) {
  for (const char* measure : {"loss", "mae", "rmse", "perplexity"}) {
    EXPECT_TRUE(IsBetterIfSmaller(measure)) << measure;
  }
  for (const char* measure : {"accuracy", "top_5_accuracy", "precision", "recall", "f1", "auc", "r2"}) {
    EXPECT_FALSE(IsBetterIfSmaller(measure)) << measure;
  }
}

}  // namespace
}  // namespace tandem
