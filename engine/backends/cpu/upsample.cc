#include "engine/backends/cpu/upsample.h"

#include <algorithm>
#include <vector>

#include "engine/backends/cpu/lanes.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/upsample.h"

namespace tandem::cpu {
namespace {

// A row or column of the result, with its shares of two of the image's.
struct Tap {
  int64_t first;
  int64_t second;
  float first_share;
  float second_share;
};

// The sources of a plane [height][width][lanes] of the result.
struct Resize {
  std::vector<Tap> rows;
  std::vector<Tap> columns;
  int64_t in_height = 0;
  int64_t in_width = 0;
  int64_t lanes = 1;
  bool nearest = false;

  int64_t in_plane() const { return in_height * in_width * lanes; }
  int64_t out_row() const { return static_cast<int64_t>(columns.size()) * lanes; }
  int64_t out_plane() const { return static_cast<int64_t>(rows.size()) * out_row(); }
};

std::vector<Tap> TapsOf(const UpsampleRule& rule, int64_t in, int64_t out, double scale) {
  std::vector<Tap> taps;
  for (const UpsampleTap& tap : UpsampleTaps(rule.mode, rule.align_corners, in, out, scale)) {
    taps.push_back({tap.first, tap.second, static_cast<float>(1 - tap.share), static_cast<float>(tap.share)});
  }
  return taps;
}

Resize ResizeOf(const UpsampleRule& rule, const Shape& x, const Shape& y, const Lanes& lanes) {
  return {.rows = TapsOf(rule, x[2], y[2], rule.scale_h),
          .columns = TapsOf(rule, x[3], y[3], rule.scale_w),
          .in_height = x[2],
          .in_width = x[3],
          .lanes = lanes.lanes,
          .nearest = rule.mode == UpsampleMode::kNearest};
}

void ResizePlane(const Resize& resize, const float* x, float* y) {
  const int64_t lanes = resize.lanes;
  for (const Tap& row : resize.rows) {
    const float* above = x + row.first * resize.in_width * lanes;
    const float* below = x + row.second * resize.in_width * lanes;
    for (const Tap& column : resize.columns) {
      const int64_t left = column.first * lanes;
      const int64_t right = column.second * lanes;
      if (resize.nearest) {
        std::copy_n(above + left, lanes, y);
      } else {
        for (int64_t lane = 0; lane < lanes; ++lane) {
          y[lane] = row.first_share * (column.first_share * above[left + lane] +
                                       column.second_share * above[right + lane]) +
                    row.second_share *
                        (column.first_share * below[left + lane] + column.second_share * below[right + lane]);
        }
      }
      y += lanes;
    }
  }
}

void ResizePlaneGrad(const Resize& resize, const float* dy, float* dx) {
  const int64_t lanes = resize.lanes;
  std::fill_n(dx, resize.in_plane(), 0.0f);
  for (const Tap& row : resize.rows) {
    float* above = dx + row.first * resize.in_width * lanes;
    float* below = dx + row.second * resize.in_width * lanes;
    for (const Tap& column : resize.columns) {
      const int64_t left = column.first * lanes;
      const int64_t right = column.second * lanes;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        if (resize.nearest) {
          above[left + lane] += dy[lane];
          continue;
        }
        const float up = row.first_share * dy[lane];
        const float down = row.second_share * dy[lane];
        above[left + lane] += column.first_share * up;
        above[right + lane] += column.second_share * up;
        below[left + lane] += column.first_share * down;
        below[right + lane] += column.second_share * down;
      }
      dy += lanes;
    }
  }
}

}  // namespace

absl::Status LowerUpsample(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& x_shape = lowering.shape(node.inputs[0]);
  const Shape& y_shape = lowering.shape(node.outputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  const Lanes lanes = LanesOf(home.layout);
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.Get(node.inputs[0], lanes.LayoutOf(x_shape)));
  const Region y = lowering.Define(node.outputs[0], lanes.LayoutOf(y_shape));
  const int64_t planes = lanes.blocks * x_shape[1];
  const UpsampleRule& rule = static_cast<const UpsampleOp&>(*node.op).rule;
  lowering.Emit({.name = "upsample",
                 .reads = {x},
                 .writes = {y},
                 .run = [=, resize = ResizeOf(rule, x_shape, y_shape, lanes)](const RunContext& run) {
                   run.team->For(planes, [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       ResizePlane(resize, run.At<const float>(x) + i * resize.in_plane(),
                                   run.At<float>(y) + i * resize.out_plane());
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerUpsampleGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& y_shape = lowering.shape(node.inputs[0]);
  const Shape& x_shape = lowering.shape(node.outputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  const Lanes lanes = LanesOf(home.layout);
  TANDEM_ASSIGN_OR_RETURN(const Region dy, lowering.Get(node.inputs[0], lanes.LayoutOf(y_shape)));
  const Region dx = lowering.Define(node.outputs[0], lanes.LayoutOf(x_shape));
  const int64_t planes = lanes.blocks * x_shape[1];
  const UpsampleRule& rule = static_cast<const UpsampleGradOp&>(*node.op).rule;
  lowering.Emit({.name = "upsample_grad",
                 .reads = {dy},
                 .writes = {dx},
                 .run = [=, resize = ResizeOf(rule, x_shape, y_shape, lanes)](const RunContext& run) {
                   run.team->For(planes, [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       ResizePlaneGrad(resize, run.At<const float>(dy) + i * resize.out_plane(),
                                       run.At<float>(dx) + i * resize.in_plane());
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace tandem::cpu
