#include "engine/backend/op_table.h"

#include <array>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

// Bits of the backends that offer an op.
enum Offered : unsigned { kByReference = 1u << 0, kByCpu = 1u << 1, kByCuda = 1u << 2 };

struct Row {
  absl::string_view kind;
  unsigned offered;
};

constexpr Row kTable[] = {
    {"accumulate", kByReference | kByCpu | kByCuda},
    {"accumulate_gradient", kByReference | kByCpu | kByCuda},
    {"activation", kByReference | kByCpu | kByCuda},
    {"activation_grad", kByReference | kByCpu | kByCuda},
    {"adadelta", kByReference | kByCpu | kByCuda},
    {"adagrad", kByReference | kByCpu | kByCuda},
    {"adam", kByReference | kByCpu | kByCuda},
    {"adamax", kByReference | kByCpu | kByCuda},
    {"add", kByReference | kByCpu | kByCuda},
    {"add_sinusoids", kByReference | kByCpu | kByCuda},
    {"add_to_each", kByReference | kByCpu | kByCuda},
    {"all_reduce", kByReference | kByCpu | kByCuda},
    {"attention_softmax", kByReference | kByCpu | kByCuda},
    {"attention_softmax_grad", kByReference | kByCpu | kByCuda},
    {"average_pool2d", kByReference | kByCpu | kByCuda},
    {"average_pool2d_grad", kByReference | kByCpu | kByCuda},
    {"batch_norm", kByReference | kByCpu | kByCuda},
    {"batch_norm_grad", kByReference | kByCpu | kByCuda},
    {"batch_norm_inference", kByReference | kByCpu | kByCuda},
    {"batch_norm_inference_grad", kByReference | kByCpu | kByCuda},
    {"batch_norm_moments", kByReference | kByCpu | kByCuda},
    {"batch_norm_running", kByReference | kByCpu | kByCuda},
    {"batch_norm_sums", kByReference | kByCpu | kByCuda},
    {"batch_norm_sync", kByReference | kByCpu | kByCuda},
    {"batch_norm_sync_grad", kByReference | kByCpu | kByCuda},
    {"channel_bias", kByReference | kByCpu | kByCuda},
    {"channel_bias_grad", kByReference | kByCpu | kByCuda},
    {"class_loss", kByReference | kByCpu | kByCuda},
    {"class_loss_grad", kByReference | kByCpu | kByCuda},
    {"clip_gradients", kByReference | kByCpu | kByCuda},
    {"concat", kByReference | kByCpu | kByCuda},
    {"conv2d", kByReference | kByCpu | kByCuda},
    {"conv2d_grad_input", kByReference | kByCpu | kByCuda},
    {"conv2d_grad_weight", kByReference | kByCpu | kByCuda},
    {"cosine_embedding", kByReference | kByCpu | kByCuda},
    {"cosine_embedding_grad", kByReference | kByCpu | kByCuda},
    {"count_correct", kByReference | kByCpu | kByCuda},
    {"count_labels", kByReference | kByCpu | kByCuda},
    {"count_sides", kByReference | kByCpu | kByCuda},
    {"crop2d", kByReference | kByCpu | kByCuda},
    {"divide", kByReference | kByCpu | kByCuda},
    {"dropout", kByReference | kByCpu | kByCuda},
    {"enlarge_images", kByReference | kByCuda},
    {"erase_images", kByReference | kByCuda},
    {"flip_images", kByReference | kByCuda},
    {"gather_rows", kByReference | kByCpu | kByCuda},
    {"gather_rows_grad", kByReference | kByCpu | kByCuda},
    {"gather_samples", kByReference | kByCuda},
    {"group_norm", kByReference | kByCpu | kByCuda},
    {"group_norm_grad", kByReference | kByCpu | kByCuda},
    {"lamb", kByReference | kByCpu | kByCuda},
    {"layer_norm", kByReference | kByCpu | kByCuda},
    {"layer_norm_grad", kByReference | kByCpu | kByCuda},
    {"linear", kByReference | kByCpu | kByCuda},
    {"linear_grad_input", kByReference | kByCpu | kByCuda},
    {"linear_grad_weight", kByReference | kByCpu | kByCuda},
    {"lion", kByReference | kByCpu | kByCuda},
    {"lstm", kByReference | kByCpu | kByCuda},
    {"lstm_grad", kByReference | kByCpu | kByCuda},
    {"matmul", kByReference | kByCpu | kByCuda},
    {"max_pool2d", kByReference | kByCpu | kByCuda},
    {"max_pool2d_grad", kByReference | kByCpu | kByCuda},
    {"merge_heads", kByReference | kByCpu | kByCuda},
    {"moving_average", kByReference | kByCpu | kByCuda},
    {"multiply", kByReference | kByCpu | kByCuda},
    {"muon", kByReference | kByCpu | kByCuda},
    {"nadam", kByReference | kByCpu | kByCuda},
    {"normalize", kByReference | kByCpu | kByCuda},
    {"orthonormalize", kByReference | kByCpu | kByCuda},
    {"pad2d", kByReference | kByCpu | kByCuda},
    {"relu", kByReference | kByCpu | kByCuda},
    {"relu_grad", kByReference | kByCpu | kByCuda},
    {"resample_images", kByReference | kByCuda},
    {"reshape", kByReference | kByCpu | kByCuda},
    {"restore_gradient", kByReference | kByCpu | kByCuda},
    {"rmsprop", kByReference | kByCpu | kByCuda},
    {"saturate_images", kByReference | kByCuda},
    {"scale", kByReference | kByCpu | kByCuda},
    {"sgd", kByReference | kByCpu | kByCuda},
    {"shift_hues", kByReference | kByCuda},
    {"softmax", kByReference | kByCpu | kByCuda},
    {"softmax_cross_entropy", kByReference | kByCpu | kByCuda},
    {"softmax_cross_entropy_grad", kByReference | kByCpu | kByCuda},
    {"softmax_grad", kByReference | kByCpu | kByCuda},
    {"split", kByReference | kByCpu | kByCuda},
    {"split_heads", kByReference | kByCpu | kByCuda},
    {"spread_images", kByReference | kByCuda},
    {"sum_of_each", kByReference | kByCpu | kByCuda},
    {"translate_images", kByReference | kByCuda},
    {"unscale_gradients", kByReference | kByCuda},
    {"upsample", kByReference | kByCpu | kByCuda},
    {"upsample_grad", kByReference | kByCpu | kByCuda},
    {"value_loss", kByReference | kByCpu | kByCuda},
    {"value_loss_grad", kByReference | kByCpu | kByCuda},
};

constexpr size_t kRows = sizeof(kTable) / sizeof(kTable[0]);

}  // namespace

absl::string_view ToString(BackendKind backend) {
  switch (backend) {
    case BackendKind::kReference:
      return "reference";
    case BackendKind::kCpu:
      return "cpu";
    case BackendKind::kCuda:
      return "cuda";
  }
  return "unknown";
}

absl::Span<const absl::string_view> OpKinds() {
  static constexpr auto kKinds = [] {
    std::array<absl::string_view, kRows> kinds;
    for (size_t i = 0; i < kRows; ++i) kinds[i] = kTable[i].kind;
    return kinds;
  }();
  return kKinds;
}

bool OffersOp(BackendKind backend, absl::string_view op_kind) {
  for (const Row& row : kTable) {
    if (row.kind == op_kind) return (row.offered >> static_cast<unsigned>(backend) & 1u) != 0;
  }
  return false;
}

absl::Status CheckOpsOffered(const Graph& graph, BackendKind backend) {
  for (const Node& node : graph.nodes()) {
    if (OffersOp(backend, node.op->kind())) continue;
    return absl::UnimplementedError(
        absl::StrCat("the ", ToString(backend), " backend does not offer the op ", node.op->kind()));
  }
  return absl::OkStatus();
}

}  // namespace tandem
