#include "engine/backend/op_table.h"

#include <array>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

// Which backends offer an op.
enum Offered : unsigned { kByReference = 1u << 0, kByCpu = 1u << 1 };

struct Row {
  absl::string_view kind;
  unsigned offered;
};

constexpr Row kTable[] = {
    {"accumulate", kByReference | kByCpu},
    {"accumulate_gradient", kByReference | kByCpu},
    {"activation", kByReference | kByCpu},
    {"activation_grad", kByReference | kByCpu},
    {"adadelta", kByReference | kByCpu},
    {"adagrad", kByReference | kByCpu},
    {"adam", kByReference | kByCpu},
    {"adamax", kByReference | kByCpu},
    {"add", kByReference | kByCpu},
    {"add_sinusoids", kByReference | kByCpu},
    {"add_to_each", kByReference | kByCpu},
    {"all_reduce", kByReference | kByCpu},
    {"attention_softmax", kByReference | kByCpu},
    {"attention_softmax_grad", kByReference | kByCpu},
    {"average_pool2d", kByReference | kByCpu},
    {"average_pool2d_grad", kByReference | kByCpu},
    {"batch_norm", kByReference | kByCpu},
    {"batch_norm_grad", kByReference | kByCpu},
    {"batch_norm_inference", kByReference | kByCpu},
    {"batch_norm_inference_grad", kByReference | kByCpu},
    {"batch_norm_moments", kByReference | kByCpu},
    {"batch_norm_running", kByReference | kByCpu},
    {"batch_norm_sums", kByReference | kByCpu},
    {"batch_norm_sync", kByReference | kByCpu},
    {"batch_norm_sync_grad", kByReference | kByCpu},
    {"channel_bias", kByReference | kByCpu},
    {"channel_bias_grad", kByReference | kByCpu},
    {"class_loss", kByReference | kByCpu},
    {"class_loss_grad", kByReference | kByCpu},
    {"clip_gradients", kByReference | kByCpu},
    {"concat", kByReference | kByCpu},
    {"conv2d", kByReference | kByCpu},
    {"conv2d_grad_input", kByReference | kByCpu},
    {"conv2d_grad_weight", kByReference | kByCpu},
    {"cosine_embedding", kByReference | kByCpu},
    {"cosine_embedding_grad", kByReference | kByCpu},
    {"count_correct", kByReference | kByCpu},
    {"count_labels", kByReference | kByCpu},
    {"count_sides", kByReference | kByCpu},
    {"crop2d", kByReference | kByCpu},
    {"dropout", kByReference | kByCpu},
    {"gather_rows", kByReference | kByCpu},
    {"gather_rows_grad", kByReference | kByCpu},
    {"group_norm", kByReference | kByCpu},
    {"group_norm_grad", kByReference | kByCpu},
    {"lamb", kByReference | kByCpu},
    {"layer_norm", kByReference | kByCpu},
    {"layer_norm_grad", kByReference | kByCpu},
    {"linear", kByReference | kByCpu},
    {"linear_grad_input", kByReference | kByCpu},
    {"linear_grad_weight", kByReference | kByCpu},
    {"lion", kByReference | kByCpu},
    {"lstm", kByReference | kByCpu},
    {"lstm_grad", kByReference | kByCpu},
    {"matmul", kByReference | kByCpu},
    {"max_pool2d", kByReference | kByCpu},
    {"max_pool2d_grad", kByReference | kByCpu},
    {"merge_heads", kByReference | kByCpu},
    {"moving_average", kByReference | kByCpu},
    {"multiply", kByReference | kByCpu},
    {"muon", kByReference | kByCpu},
    {"nadam", kByReference | kByCpu},
    {"normalize", kByReference | kByCpu},
    {"pad2d", kByReference | kByCpu},
    {"relu", kByReference | kByCpu},
    {"relu_grad", kByReference | kByCpu},
    {"reshape", kByReference | kByCpu},
    {"rmsprop", kByReference | kByCpu},
    {"scale", kByReference | kByCpu},
    {"sgd", kByReference | kByCpu},
    {"softmax", kByReference | kByCpu},
    {"softmax_cross_entropy", kByReference | kByCpu},
    {"softmax_cross_entropy_grad", kByReference | kByCpu},
    {"softmax_grad", kByReference | kByCpu},
    {"split", kByReference | kByCpu},
    {"split_heads", kByReference | kByCpu},
    {"sum_of_each", kByReference | kByCpu},
    {"upsample", kByReference | kByCpu},
    {"upsample_grad", kByReference | kByCpu},
    {"value_loss", kByReference | kByCpu},
    {"value_loss_grad", kByReference | kByCpu},
};

constexpr size_t kRows = sizeof(kTable) / sizeof(kTable[0]);

}  // namespace

absl::string_view ToString(BackendKind backend) {
  switch (backend) {
    case BackendKind::kReference:
      return "reference";
    case BackendKind::kCpu:
      return "cpu";
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
