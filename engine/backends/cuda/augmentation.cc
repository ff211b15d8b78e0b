#include "engine/graph/ops/augmentation.h"

#include "engine/backends/cuda/kernels/augmentation.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/gather_samples.h"

namespace tandem::cuda {
namespace {

static_assert(SampleRows::kMost == GatherSamplesOp::kMostData);

absl::Status LowerGatherSamples(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Region indices, lowering.GetPlain(node.inputs[0]));
  const int64_t samples = lowering.shape(node.inputs[0])[0];
  struct Part {
    Region data;
    Region batch;
    int64_t bytes;
  };
  std::vector<Part> parts;
  Step step = {.name = "gather_samples", .reads = {indices}};
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Value& data = lowering.value(node.inputs[1 + i]);
    Part part;
    TANDEM_ASSIGN_OR_RETURN(part.data, lowering.GetPlain(data.id));
    part.batch = lowering.Define(node.outputs[i], Layout::Plain(data.dtype, lowering.shape(node.outputs[i])));
    part.bytes = data.shape.elements() / data.shape[0] * SizeOf(data.dtype);
    step.reads.push_back(part.data);
    step.writes.push_back(part.batch);
    parts.push_back(part);
  }
  step.run = [=](const RunContext& run) {
    SampleRows rows;
    for (const Part& part : parts) {
      rows.data[rows.count++] = {run.At(part.data), run.At(part.batch), part.bytes};
    }
    GatherSamples(rows, samples, run.At<const int32_t>(indices), run.stream);
    return absl::OkStatus();
  };
  lowering.Emit(std::move(step));
  return absl::OkStatus();
}

constexpr Beyond BeyondOf(ImageFill fill) {
  return fill == ImageFill::kZero ? Beyond::kZero
                                  : (fill == ImageFill::kEdge ? Beyond::kEdge : Beyond::kReflect);
}

void RunOp(const FlipImagesOp& op, const ImageBytes& images, Stream stream) {
  FlipImages(images, op.vertical, stream);
}
void RunOp(const TranslateImagesOp& op, const ImageBytes& images, Stream stream) {
  TranslateImages(images, BeyondOf(op.fill), stream);
}
void RunOp(const ResampleImagesOp& op, const ImageBytes& images, Stream stream) {
  ResampleImages(images, BeyondOf(op.fill), stream);
}
void RunOp(const EraseImagesOp& /*op*/, const ImageBytes& images, Stream stream) {
  EraseImages(images, stream);
}
void RunOp(const SpreadImagesOp& op, const ImageBytes& images, Stream stream) {
  SpreadImages(images, op.about_mean, stream);
}
void RunOp(const EnlargeImagesOp& /*op*/, const ImageBytes& images, Stream stream) {
  EnlargeImages(images, stream);
}
void RunOp(const SaturateImagesOp& /*op*/, const ImageBytes& images, Stream stream) {
  SaturateImages(images, stream);
}
void RunOp(const ShiftHuesOp& /*op*/, const ImageBytes& images, Stream stream) { ShiftHues(images, stream); }

template <typename Op>
absl::Status LowerAugmentation(Lowering& lowering, const Node& node) {
  const auto op = std::static_pointer_cast<const Op>(node.op);
  const Shape& shape = lowering.shape(node.inputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.GetPlain(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region drawn, lowering.GetPlain(node.inputs[1]));
  const Region y = lowering.Define(node.outputs[0], Layout::Plain(DType::kUInt8, shape));
  const ImageBytes sizes = {.outer = shape[0],
                            .channels = static_cast<int>(shape[1]),
                            .height = static_cast<int>(shape[2]),
                            .width = static_cast<int>(shape[3]),
                            .stride = lowering.shape(node.inputs[1])[1]};
  lowering.Emit({.name = std::string(op->kind()),
                 .reads = {x, drawn},
                 .writes = {y},
                 .run = [=](const RunContext& run) {
                   ImageBytes images = sizes;
                   images.x = run.At<const uint8_t>(x);
                   images.drawn = run.At<const double>(drawn) + op->column;
                   images.y = run.At<uint8_t>(y);
                   RunOp(*op, images, run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> AugmentationOps() {
  static constexpr Offered kOps[] = {
      {"enlarge_images", LowerAugmentation<EnlargeImagesOp>},
      {"erase_images", LowerAugmentation<EraseImagesOp>},
      {"flip_images", LowerAugmentation<FlipImagesOp>},
      {"gather_samples", LowerGatherSamples},
      {"resample_images", LowerAugmentation<ResampleImagesOp>},
      {"saturate_images", LowerAugmentation<SaturateImagesOp>},
      {"shift_hues", LowerAugmentation<ShiftHuesOp>},
      {"spread_images", LowerAugmentation<SpreadImagesOp>},
      {"translate_images", LowerAugmentation<TranslateImagesOp>},
  };
  return kOps;
}

}  // namespace tandem::cuda
