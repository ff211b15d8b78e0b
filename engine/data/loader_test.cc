#include "engine/data/loader.h"

#include <numeric>

#include "gtest/gtest.h"

namespace tandem {
namespace {

// Sample i is the bytes i, i and its label is i.
class CountingDataset final : public Dataset {
 public:
  int64_t size() const override { return 10; }
  const Shape& shape() const override { return shape_; }
  void Gather(absl::Span<const uint32_t> indices, uint8_t* images, int32_t* labels) const override {
    for (const uint32_t index : indices) {
      *images++ = static_cast<uint8_t>(index);
      *images++ = static_cast<uint8_t>(index);
      *labels++ = static_cast<int32_t>(index);
    }
  }

 private:
  const Shape shape_{2};
};

TEST(LoaderTest, GivesTheSamplersSharesAtAnyDepth) {
  const CountingDataset dataset;
  for (const int depth : {0, 1, 2, 64}) {
    SCOPED_TRACE(depth);
    Sampler sampler({.samples = 10, .batch = 4, .loads = {1, 1}, .shuffle = true, .seed = 1});
    Loader loader(&dataset, &sampler, 1, /*epochs=*/3, depth);
    for (int64_t epoch = 1; epoch <= 3; ++epoch) {
      const std::vector<uint32_t> order = ShuffledOrder(10, 1, epoch);
      for (int64_t step = 0; step < 3; ++step) {
        const Batch batch = loader.Next();
        ASSERT_EQ(batch.samples, step < 2 ? 2 : 1);
        for (int64_t i = 0; i < batch.samples; ++i) {
          const uint32_t expected = order[step * 4 + (step < 2 ? 2 : 1) + i];
          ASSERT_EQ(batch.labels[i], static_cast<int32_t>(expected));
          ASSERT_EQ(batch.images[2 * i + 1], expected);
        }
      }
    }
    EXPECT_GE(loader.wait_seconds(), 0);
  }
}

TEST(LoaderTest, MayBeLeftInTheMiddle) {
  const CountingDataset dataset;
  Sampler sampler({.samples = 10, .batch = 1, .loads = {1}, .shuffle = false, .seed = 0});
  Loader loader(&dataset, &sampler, 0, /*epochs=*/1000, /*depth=*/3);
  loader.Next();
}

}  // namespace
}  // namespace tandem
