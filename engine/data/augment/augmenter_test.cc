#include "engine/data/augment/augmenter.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/field_violations.h"
#include "engine/base/philox.h"
#include "engine/base/testing/from_text.h"
#include "engine/data/augment/affine.h"
#include "engine/data/augment/colour.h"
#include "engine/data/augment/cutmix.h"
#include "engine/data/augment/erase.h"
#include "engine/data/augment/factor.h"
#include "engine/data/augment/flip.h"
#include "engine/data/augment/mixing.h"
#include "engine/data/augment/mixup.h"
#include "engine/data/augment/resized_crop.h"
#include "engine/data/augment/translation.h"
#include "engine/data/loader.h"
#include "engine/data/memory_dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Augmentations Parsed(const std::string& text) { return FromText<v1::DatasetSpec>(text).augmentation(); }

RandomStream Stream(uint64_t sample) { return RandomStream(1, RandomPurpose::kAugmentation, 1, sample); }

// Returns the first stream whose draws satisfy `wanted`.
template <typename Wanted>
RandomStream StreamThat(const Wanted& wanted) {
  for (uint64_t sample = 0;; ++sample) {
    RandomStream random = Stream(sample);
    if (wanted(random)) return Stream(sample);
  }
}

// Two channels of 2x3: 1 to 12.
const ImageShape kShape = {.channels = 2, .height = 2, .width = 3};
std::vector<uint8_t> Counting() {
  std::vector<uint8_t> image(12);
  std::iota(image.begin(), image.end(), 1);
  return image;
}

template <typename T = uint8_t>
std::vector<T> Applied(const Transform<T>& transform, RandomStream random, std::vector<T> image) {
  std::vector<T> scratch(image.size());
  std::vector<double> drawn(transform.numbers());
  transform.Draw(random, drawn.data());
  transform.Apply(drawn.data(), image.data(), scratch.data());
  return image;
}

TEST(FlipTest, MirrorsRowsOrColumns) {
  const auto always = FromText<v1::RandomFlip>("probability: 1");
  EXPECT_THAT(Applied(*MakeHorizontalFlip<uint8_t>(always, kShape), Stream(0), Counting()),
              ElementsAre(3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10));
  EXPECT_THAT(Applied(*MakeVerticalFlip<uint8_t>(always, kShape), Stream(0), Counting()),
              ElementsAre(4, 5, 6, 1, 2, 3, 10, 11, 12, 7, 8, 9));
}

TEST(FlipTest, HalfOfTheTimeByDefault) {
  const auto flip = MakeHorizontalFlip<uint8_t>({}, kShape);
  int flipped = 0;
  for (int i = 0; i < 10000; ++i) flipped += Applied(*flip, Stream(i), Counting())[0] == 3;
  EXPECT_NEAR(flipped, 5000, 5 * 50);
}

// Returns a stream whose first draws from [-1, 1] are these.
RandomStream Moves(int right, int down) {
  return StreamThat([&](RandomStream& random) {
    const int x = static_cast<int>(random.NextBelow(3)) - 1;
    return x == right && static_cast<int>(random.NextBelow(3)) - 1 == down;
  });
}

TEST(TranslationTest, MovesAndFills) {
  const std::vector<uint8_t> image = {1, 2, 3, 4, 5, 6};
  const ImageShape shape = {.channels = 1, .height = 2, .width = 3};
  const auto moved = [&](const std::string& fill, int right, int down) {
    const auto message = FromText<v1::RandomTranslation>("x: 1 y: 1 fill: FILL_MODE_" + fill);
    return Applied(*MakeTranslation<uint8_t>(message, shape), Moves(right, down), image);
  };
  EXPECT_THAT(moved("ZERO", 1, 0), ElementsAre(0, 1, 2, 0, 4, 5));
  EXPECT_THAT(moved("ZERO", -1, 1), ElementsAre(0, 0, 0, 2, 3, 0));
  EXPECT_THAT(moved("ZERO", 0, 0), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(moved("EDGE", 1, 1), ElementsAre(1, 1, 2, 1, 1, 2));
  EXPECT_THAT(moved("REFLECT", 1, -1), ElementsAre(5, 4, 5, 2, 1, 2));
}

TEST(TranslationTest, EveryPlaceIsEquallyLikely) {
  const auto crop = MakeCrop<uint8_t>(FromText<v1::RandomCrop>("padding: 1"), kShape);
  std::vector<int> counts(9);
  for (int i = 0; i < 9000; ++i) {
    const std::vector<uint8_t> image = Applied(*crop, Stream(i), {9, 9, 9, 9, 5, 9, 0, 0, 0, 0, 0, 0});
    for (int place = 0; place < 9; ++place) {
      RandomStream random = Stream(i);
      const int x = static_cast<int>(random.NextBelow(3)), y = static_cast<int>(random.NextBelow(3));
      if (3 * y + x == place) ++counts[place];
      // The new place of the 5, which was at row 1 and column 1.
      if (3 * y + x == place && y < 2) {
        ASSERT_EQ(image[3 * y + x], 5);
      }
    }
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 5 * 30);
}

TEST(AffineTest, AQuarterTurnIsCounterClockwise) {
  const ImageShape square = {.channels = 1, .height = 3, .width = 3};
  const auto rotation = MakeRotation<float>(FromText<v1::RandomRotation>("degrees: 90"), square);
  // This draw is so near to 1 that the angle is nearly 90 degrees.
  const RandomStream most = StreamThat([](RandomStream& random) { return random.NextUniform() > 1 - 1e-4; });
  const std::vector<float> turned = Applied<float>(*rotation, most, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const std::vector<float> expected = {3, 6, 9, 2, 5, 8, 1, 4, 7};
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(std::abs(turned[i] - expected[i]) <= 0.01) << i << " " << turned[i];
}

TEST(AffineTest, ScalesAboutTheCentre) {
  const ImageShape row = {.channels = 1, .height = 1, .width = 5};
  const auto twice = MakeScale<float>(FromText<v1::RandomScale>("min: 2 max: 2"), row);
  EXPECT_THAT(Applied<float>(*twice, Stream(0), {0, 10, 20, 30, 40}), ElementsAre(10, 15, 20, 25, 30));
  const auto half = MakeScale<uint8_t>(FromText<v1::RandomScale>("min: 0.5 max: 0.5"), row);
  EXPECT_THAT(Applied<uint8_t>(*half, Stream(0), {10, 20, 30, 40, 50}), ElementsAre(0, 10, 30, 50, 0));
  const auto edge =
      MakeScale<uint8_t>(FromText<v1::RandomScale>("min: 0.5 max: 0.5 fill: FILL_MODE_EDGE"), row);
  EXPECT_THAT(Applied<uint8_t>(*edge, Stream(0), {10, 20, 30, 40, 50}), ElementsAre(10, 10, 30, 50, 50));
}

TEST(EraseTest, CutsARectangleOutOfAllChannels) {
  const auto erase = MakeErase<uint8_t>(FromText<v1::RandomErase>("height: 1 width: 2"), kShape);
  const RandomStream random = StreamThat([](RandomStream& r) {
    r.NextUniform();
    return r.NextBelow(3) == 2 && r.NextBelow(2) == 1;
  });
  EXPECT_THAT(Applied(*erase, random, Counting()), ElementsAre(1, 2, 3, 4, 0, 0, 7, 8, 9, 10, 0, 0));
  const auto whole = MakeErase<uint8_t>(FromText<v1::RandomErase>("height: 50 width: 50"), kShape);
  for (const uint8_t byte : Applied(*whole, random, Counting())) EXPECT_EQ(byte, 0);
  const auto never =
      MakeErase<uint8_t>(FromText<v1::RandomErase>("probability: 0 height: 50 width: 50"), kShape);
  EXPECT_EQ(Applied(*never, random, Counting()), Counting());
}

TEST(FactorTest, BrightnessAndContrastFollowTheDraw) {
  const ImageShape shape = {.channels = 1, .height = 1, .width = 4};
  const std::vector<uint8_t> image = {0, 100, 200, 100};
  const auto message = FromText<v1::RandomFactor>("strength: 0.5");
  RandomStream random = Stream(7);
  const double factor = 1 + (2 * random.NextUniform() - 1) * 0.5;
  const std::vector<uint8_t> lighter = Applied(*MakeBrightness<uint8_t>(message, shape), Stream(7), image);
  const std::vector<uint8_t> stronger = Applied(*MakeContrast<uint8_t>(message, shape), Stream(7), image);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(lighter[i], std::lround(std::min(255.0, image[i] * factor)));
    EXPECT_EQ(stronger[i], std::lround(std::clamp(100 + factor * (image[i] - 100.0), 0.0, 255.0)));
  }
}

TEST(MixingTest, BetaHasItsMeanAndVariance) {
  for (const double alpha : {0.05, 0.2, 1.0, 4.0}) {
    SCOPED_TRACE(alpha);
    double sum = 0, squares = 0;
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) {
      RandomStream random = Stream(i);
      const double x = DrawBeta(random, alpha);
      ASSERT_TRUE(x >= 0 && x <= 1) << x;
      sum += x;
      squares += (x - 0.5) * (x - 0.5);
    }
    EXPECT_NEAR(sum / kDraws, 0.5, 0.02);
    EXPECT_NEAR(squares / kDraws, 1 / (4 * (2 * alpha + 1)), 0.01);
  }
}

TEST(MixingTest, BetaOfTheLeastAlphaIsANumber) {
  RandomStream random = Stream(1);
  int ones = 0;
  for (int i = 0; i < 1000; ++i) {
    const double x = DrawBeta(random, kLeastAlpha);
    ASSERT_TRUE(x >= 0 && x <= 1) << x;
    ones += x > 0.5 ? 1 : 0;
  }
  EXPECT_NEAR(ones, 500, 5 * 16);
}

TEST(MixingTest, MixupWeighsAndCutmixReplaces) {
  const auto mixup = MakeMixup<float>({}, 2);
  RandomStream first = Stream(3), again = Stream(3);
  const double own = DrawBeta(first, 0.2);
  std::vector<float> sample = {10, 20};
  const std::vector<float> partner = {30, 0};
  EXPECT_EQ(mixup->Apply(again, partner.data(), sample.data()), own);
  EXPECT_FLOAT_EQ(sample[0], static_cast<float>(own * 10 + (1 - own) * 30));
  EXPECT_FLOAT_EQ(sample[1], static_cast<float>(own * 20));

  const ImageShape shape = {.channels = 2, .height = 8, .width = 8};
  const auto cutmix = MakeCutmix<uint8_t>({}, shape);
  for (int i = 0; i < 50; ++i) {
    std::vector<uint8_t> image(128, 1);
    const std::vector<uint8_t> other(128, 2);
    RandomStream random = Stream(i);
    const double left = cutmix->Apply(random, other.data(), image.data());
    EXPECT_EQ(std::count(image.begin(), image.begin() + 64, 1), std::lround(64 * left));
    EXPECT_TRUE(std::equal(image.begin(), image.begin() + 64, image.begin() + 64));
  }
}

// Sample i is 1x4x4 bytes from 16 i to 16 i + 15, with class i.
class Digits final : public Dataset {
 public:
  int64_t size() const override { return 10; }
  int64_t sample_bytes() const override { return 16; }
  int64_t target_bytes() const override { return sizeof(int32_t); }
  absl::Status Gather(absl::Span<const uint32_t> indices, void* samples, void* targets) const override {
    auto* sample = static_cast<uint8_t*>(samples);
    auto* target = static_cast<int32_t*>(targets);
    for (const uint32_t index : indices) {
      for (int i = 0; i < 16; ++i) *sample++ = static_cast<uint8_t>(16 * index + i);
      *target++ = static_cast<int32_t>(index);
    }
    return absl::OkStatus();
  }
};

const DatasetInfo kDigits = {.shape = Shape({1, 4, 4}), .classes = 10, .train_samples = 10};

std::unique_ptr<const Dataset> Augmented(const std::string& text, uint64_t seed = 1) {
  return Augment(std::make_unique<Digits>(), Parsed(text), kDigits, seed);
}

constexpr char kMany[] = R"(
  augmentation { horizontal_flip {} } augmentation { crop { padding: 2 fill: FILL_MODE_REFLECT } }
  augmentation { rotation { degrees: 15 } } augmentation { resized_crop { min_area: 0.3 } }
  augmentation { erase { height: 2 width: 2 } }
  augmentation { brightness { strength: 0.2 } } augmentation { mixup {} })";

// Returns the samples that `replicas` replicas get over two epochs, by sample.
std::vector<std::vector<float>> Seen(int replicas, int64_t batch, int depth) {
  const std::unique_ptr<const Dataset> train = Augmented(kMany);
  std::vector<std::vector<float>> seen(20);
  for (int rank = 0; rank < replicas; ++rank) {
    Sampler sampler({.samples = 10,
                     .batch = batch,
                     .loads = std::vector<double>(replicas, 1.0),
                     .shuffle = true,
                     .seed = 5});
    Loader loader(train.get(), &sampler, rank, /*first_step=*/0, 2 * sampler.steps_per_epoch(), depth);
    for (int64_t epoch = 1; epoch <= 2; ++epoch) {
      for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
        const Batch got = *loader.Next();
        const Sampler::Share share = sampler.ShareOf(epoch, step, rank);
        for (int64_t i = 0; i < got.samples; ++i) {
          std::vector<float>& one = seen[10 * (epoch - 1) + share.indices()[i]];
          const auto* bytes = static_cast<const uint8_t*>(got.input) + 16 * i;
          const auto* target = static_cast<const float*>(got.target) + 10 * i;
          one.assign(bytes, bytes + 16);
          one.insert(one.end(), target, target + 10);
        }
      }
    }
  }
  return seen;
}

TEST(AugmentTest, IsTheSameForAnyReplicasBatchesAndThreads) {
  const std::vector<std::vector<float>> one = Seen(1, 4, 0);
  EXPECT_EQ(Seen(2, 4, 3), one);
  EXPECT_EQ(Seen(3, 7, 2), one);
  for (int i = 0; i < 10; ++i) {
    EXPECT_NE(one[i], one[10 + i]) << "the second epoch is to be another";
    EXPECT_NEAR(std::accumulate(one[i].begin() + 16, one[i].end(), 0.0F), 1, 1e-6);
  }
}

// Two classes have 8 samples and 1 sample. Sample 5 is left out of them.
TEST(AugmentTest, PartnersAreOfBalancedClasses) {
  const ClassSamples classes = {{0, 1, 2, 3, 4, 6, 7, 8}, {9}};
  for (const std::string mixing : {"mixup {}", "cutmix {}"}) {
    const Augmentations augmentations = Parsed("augmentation { " + mixing + " }");
    // Returns how many partners of sample 0 are sample 9, and how many are sample 5, in many epochs.
    const auto partners = [&](std::shared_ptr<const ClassSamples> balanced) {
      const auto train =
          Augment(std::make_unique<Digits>(), augmentations, kDigits, /*seed=*/1, std::move(balanced));
      std::pair<int, int> counts;
      for (int64_t epoch = 1; epoch <= 4000; ++epoch) {
        std::vector<uint8_t> sample(16);
        std::vector<float> target(10);
        EXPECT_TRUE(train->GatherEpoch(epoch, {0}, sample.data(), target.data()).ok());
        counts.first += target[9] > 0;
        counts.second += target[5] > 0;
      }
      return counts;
    };
    const std::pair<int, int> plain = partners(nullptr);
    const std::pair<int, int> balanced = partners(std::make_shared<ClassSamples>(classes));
    EXPECT_GT(plain.second, 0);
    EXPECT_EQ(balanced.second, 0);
    EXPECT_NEAR(balanced.first, 5.0 * plain.first, 0.25 * balanced.first) << mixing;
  }
}

TEST(AugmentTest, FollowsFromTheSeed) {
  std::vector<uint8_t> a(160), b(160), c(160);
  std::vector<int32_t> labels(10);
  std::vector<uint32_t> indices(10);
  std::iota(indices.begin(), indices.end(), 0);
  const std::string text = "augmentation { crop { padding: 2 } }";
  ASSERT_TRUE(Augmented(text)->GatherEpoch(1, indices, a.data(), labels.data()).ok());
  ASSERT_TRUE(Augmented(text)->GatherEpoch(1, indices, b.data(), labels.data()).ok());
  ASSERT_TRUE(Augmented(text, 2)->GatherEpoch(1, indices, c.data(), labels.data()).ok());
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  EXPECT_THAT(labels, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

// Draws without changes equal the draws of the changes: a transform with these numbers makes the same image.
TEST(AugmentTest, DrawsAreThoseOfTheChanges) {
  const Augmentations augmentations = Parsed(R"(
    augmentation { erase { probability: 0.5 height: 1 width: 2 } }
    augmentation { translation { x: 2 y: 1 } }
    augmentation { rotation { degrees: 90 } }
    augmentation { contrast { strength: 0.3 } }
    augmentation { resized_crop { min_area: 0.2 } }
    augmentation { saturation { strength: 0.6 } }
    augmentation { hue { strength: 0.4 } })");
  const DatasetInfo info = {.shape = Shape({3, 2, 3}), .classes = 2, .train_samples = 9};
  const ImageShape shape = {.channels = 3, .height = 2, .width = 3};
  std::vector<uint8_t> image(18);
  for (int i = 0; i < 18; ++i) image[i] = static_cast<uint8_t>(50 + 7 * i);
  const auto draws = DrawFor(augmentations, info, /*seed=*/3);
  ASSERT_EQ(draws->columns(), 4 + 2 + 4 + 1 + 4 + 1 + 1);
  const std::vector<std::unique_ptr<const Transform<uint8_t>>> transforms = [&] {
    std::vector<std::unique_ptr<const Transform<uint8_t>>> made;
    made.push_back(MakeErase<uint8_t>(augmentations[0].erase(), shape));
    made.push_back(MakeTranslation<uint8_t>(augmentations[1].translation(), shape));
    made.push_back(MakeRotation<uint8_t>(augmentations[2].rotation(), shape));
    made.push_back(MakeContrast<uint8_t>(augmentations[3].contrast(), shape));
    made.push_back(MakeResizedCrop<uint8_t>(augmentations[4].resized_crop(), shape));
    made.push_back(MakeSaturation<uint8_t>(augmentations[5].saturation(), shape));
    made.push_back(MakeHue(augmentations[6].hue(), shape));
    return made;
  }();
  std::vector<uint8_t> images;
  for (int i = 0; i < 9; ++i) images.insert(images.end(), image.begin(), image.end());
  const auto train = Augment(std::make_unique<MemoryDataset>(18, images, 4, BytesOf(std::vector<int32_t>(9))),
                             augmentations, info, /*seed=*/3);
  for (uint32_t index = 0; index < 9; ++index) {
    std::vector<uint8_t> expected(18), actual = image, scratch(18);
    int32_t label = 0;
    ASSERT_TRUE(train->GatherEpoch(5, {index}, expected.data(), &label).ok());
    std::vector<double> drawn(draws->columns());
    draws->Draw(5, index, drawn.data());
    const double* at = drawn.data();
    for (const auto& transform : transforms) {
      transform->Apply(at, actual.data(), scratch.data());
      at += transform->numbers();
    }
    EXPECT_EQ(actual, expected) << index;
  }
}

TEST(AugmentTest, WithoutAnyTheSamplesStayAsTheyAre) {
  auto digits = std::make_unique<Digits>();
  const Dataset* const plain = digits.get();
  EXPECT_EQ(Augment(std::move(digits), {}, kDigits, 1).get(), plain);
}

TEST(CheckAugmentationTest, NamesTheFieldsAtFault) {
  const auto faults = [](const std::string& text, const DatasetInfo& info = kDigits) {
    return std::string(CheckAugmentation(Parsed(text), info).message());
  };
  EXPECT_EQ(faults(kMany), "");
  EXPECT_THAT(faults("augmentation {}"), HasSubstr("augmentation[0]: names no change"));
  EXPECT_THAT(faults("augmentation { horizontal_flip { probability: 2 } }"),
              HasSubstr("augmentation[0].horizontal_flip.probability: is 2"));
  EXPECT_THAT(faults("augmentation { crop { padding: 4 } }"), HasSubstr("crop.padding: is 4; it must be"));
  EXPECT_THAT(faults("augmentation { translation { x: -1 } }"), HasSubstr("translation.x: is -1"));
  EXPECT_THAT(faults("augmentation { rotation {} }"), HasSubstr("rotation.degrees: is 0"));
  EXPECT_THAT(faults("augmentation { scale { min: 2 max: 1 } }"), HasSubstr("scale.max: is 1"));
  EXPECT_THAT(faults("augmentation { erase { height: 2 } }"), HasSubstr("erase.width: is 0"));
  EXPECT_THAT(faults("augmentation { contrast { strength: 3 } }"), HasSubstr("contrast.strength: is 3"));
  EXPECT_THAT(
      faults("augmentation { hue {} } augmentation { saturation {} }"),
      HasSubstr("augmentation[0].hue: needs samples of three channels, red, green and blue, but those "
                "of the data set have 1; leave it out; augmentation[0].hue.strength: is 0; it must be "
                "above 0 and at most 0.5; augmentation[1].saturation: needs samples of three channels"));
  DatasetInfo floats = kDigits;
  floats.shape = Shape({3, 4, 4});
  floats.sample_type = SampleType::kFloats;
  EXPECT_EQ(
      faults("augmentation { hue { strength: 0.1 } } augmentation { saturation { strength: 1 } }", floats),
      "augmentation[0].hue: needs samples of bytes, but those of the data set are floats; leave it out");
  EXPECT_THAT(faults("augmentation { resized_crop { min_area: 2 } }"),
              HasSubstr("augmentation[0].resized_crop.min_area: is 2"));
  EXPECT_THAT(faults("augmentation { mixup {} } augmentation { vertical_flip {} }"),
              HasSubstr("augmentation[0].mixup: must be the last"));
  EXPECT_THAT(faults("augmentation { cutmix { alpha: 0 } }"), HasSubstr("cutmix.alpha: is 0"));
  EXPECT_THAT(faults("augmentation { cutmix { alpha: 1e-310 } }"),
              HasSubstr("cutmix.alpha: is 1e-310; it must be from 1e-06 to 1000"));
  EXPECT_THAT(faults("augmentation { mixup { alpha: 1e-310 } }"),
              HasSubstr("mixup.alpha: is 1e-310; it must be from 1e-06 to 1000"));
  DatasetInfo features = kDigits;
  features.shape = Shape({4});
  EXPECT_THAT(faults("augmentation { horizontal_flip {} }", features), HasSubstr("needs samples [channels"));
  EXPECT_THAT(faults("augmentation { hue { strength: 0.1 } }", features),
              HasSubstr("augmentation[0].hue: needs samples [channels"));
  EXPECT_EQ(faults("augmentation { mixup {} }", features), "");
  features.target_type = TargetKind::kValues;
  EXPECT_THAT(faults("augmentation { mixup {} }", features), HasSubstr("mixes classes, but"));
}

}  // namespace
}  // namespace tandem
