#include "engine/backend/data_cases.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/graph/ops/augmentation.h"
#include "engine/graph/ops/gather_samples.h"
#include "engine/graph/ops/normalize.h"

namespace tandem {
namespace {

constexpr ImageFill kFills[] = {ImageFill::kZero, ImageFill::kReflect, ImageFill::kEdge};

// Gathers `batch` of `samples` samples of `shape`, followed by the next ops of a training step.
OpCase Gathering(int64_t samples, Shape shape, int64_t batch) {
  return {absl::StrCat("gather_samples ", batch, " of ", samples, " ", shape.ToString()), [=](CaseGraph& g) {
            const ValueId indices = g.Labels("indices", batch, samples);
            const ValueId images = g.Bytes("images", shape.Batched(samples));
            const ValueId labels = g.Labels("labels", samples, 10);
            const ValueId numbers = g.Input("numbers", {samples, 3});
            const std::vector<ValueId> batches =
                g.Add(std::make_shared<GatherSamplesOp>(), {indices, images, labels, numbers});
            g.Add(std::make_shared<NormalizeOp>(1.0 / 255, std::vector<double>{0.5}, std::vector<double>{0.3},
                                                g.dtype()),
                  {batches[0]});
          }};
}

// Images with rows of random numbers, from `rows` in turn. The column before them belongs to another op.
OpCase Augmenting(const std::string& name, Shape shape, const std::vector<std::vector<double>>& rows,
                  std::shared_ptr<const AugmentOp> op) {
  return {absl::StrCat(name, " ", shape.ToString(), " ", op->attributes()), [=](CaseGraph& g) {
            const ValueId images = g.Bytes("images", shape);
            const auto columns = static_cast<int64_t>(rows[0].size()) + 1;
            std::vector<double> numbers;
            for (int64_t i = 0; i < shape[0]; ++i) {
              numbers.push_back(-1);
              const std::vector<double>& row = rows[i % rows.size()];
              numbers.insert(numbers.end(), row.begin(), row.end());
            }
            const Shape drawn_shape({shape[0], columns});
            g.inputs().push_back(Tensor::Of<double>(drawn_shape, numbers));
            const ValueId drawn = g.graph().AddInput("drawn", DType::kFloat64, drawn_shape);
            g.Add(op, {images, drawn});
          }};
}

std::vector<double> Turn(double angle) {
  return {std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle)};
}

}  // namespace

std::vector<OpCase> DataCases() {
  std::vector<OpCase> cases = {Gathering(11, {1, 4, 4}, 5), Gathering(7, {3, 5, 5}, 9),
                               Gathering(3, {1, 28, 28}, 2)};
  for (const bool vertical : {false, true}) {
    cases.push_back(Augmenting("flip_images", {4, 3, 5, 7}, {{1}, {0}, {1}},
                               std::make_shared<FlipImagesOp>(1, vertical)));
  }
  for (const ImageFill fill : kFills) {
    cases.push_back(Augmenting("translate_images", {6, 2, 5, 7}, {{0, 0}, {3, -2}, {-6, 4}, {1, 0}, {-2, -4}},
                               std::make_shared<TranslateImagesOp>(1, fill)));
    cases.push_back(Augmenting("resample_images", {6, 3, 8, 6},
                               {Turn(0.3), Turn(-2.5), {0.5, 0, 0, 0.5}, {1.7, 0, 0, 1.7}, {1, 0, 0, 1}},
                               std::make_shared<ResampleImagesOp>(1, fill)));
  }
  cases.push_back(Augmenting("translate_images", {2, 1, 1, 3}, {{2, 0}, {-1, 0}},
                             std::make_shared<TranslateImagesOp>(1, ImageFill::kReflect)));
  cases.push_back(Augmenting("erase_images", {5, 3, 6, 5},
                             {{1, 3, 2, 6}, {0, 5, 0, 6}, {0, 0, 0, 0}, {2, 3, 0, 1}},
                             std::make_shared<EraseImagesOp>(1)));
  cases.push_back(Augmenting("enlarge_images", {6, 3, 8, 6},
                             {{0, 0, 6, 8}, {1, 2, 3, 5}, {5, 7, 1, 1}, {0, 3, 6, 1}, {2, 0, 1, 8}},
                             std::make_shared<EnlargeImagesOp>(1)));
  cases.push_back(
      Augmenting("enlarge_images", {1, 1, 1, 1}, {{0, 0, 1, 1}}, std::make_shared<EnlargeImagesOp>(1)));
  cases.push_back(Augmenting("saturate_images", {5, 3, 16, 24}, {{0.4}, {1.9}, {1}, {0}, {2}},
                             std::make_shared<SaturateImagesOp>(1)));
  cases.push_back(Augmenting("shift_hues", {6, 3, 16, 24}, {{0.5}, {-0.5}, {0}, {0.07}, {-0.21}, {1.0 / 12}},
                             std::make_shared<ShiftHuesOp>(1)));
  for (const bool about_mean : {false, true}) {
    cases.push_back(Augmenting("spread_images", {5, 3, 28, 28}, {{0.4}, {1.9}, {1}, {0}},
                               std::make_shared<SpreadImagesOp>(1, about_mean)));
    cases.push_back(Augmenting("spread_images", {2, 1, 3, 3}, {{1.3}, {0.8}},
                               std::make_shared<SpreadImagesOp>(1, about_mean)));
  }
  return cases;
}

}  // namespace tandem
