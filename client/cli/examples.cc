#include "client/cli/examples.h"

#include <utility>

namespace tandem::cli {
namespace {

constexpr std::pair<absl::string_view, absl::string_view> kExamples[] = {
    {"init", "tandem init lenet > job.yaml"},
    {"validate", "tandem validate job.yaml --set replicas.count=2"},
    {"submit", "tandem submit job.yaml --set training.epochs=10 --follow"},
    {"sweep",
     "tandem sweep job.yaml --grid training.seed=1,2 --grid training.global_batch_size=64,128 --wait"},
    {"sweep show", "tandem sweep show learning-rate"},
    {"sweep list", "tandem sweep list"},
    {"sweep cancel", "tandem sweep cancel learning-rate"},
    {"sweep delete", "tandem sweep delete learning-rate"},
    {"watch", "tandem watch lenet --plot"},
    {"dashboard", "tandem dashboard --no-open --listen 127.0.0.1:7449"},
    {"tensorboard", "tandem tensorboard curves --once"},
    {"list", "tandem list --state running,queued"},
    {"queue", "tandem queue --users"},
    {"describe", "tandem describe lenet -o yaml > again.yaml"},
    {"logs", "tandem logs lenet --follow"},
    {"download", "tandem download lenet model.safetensors --to models"},
    {"pause", "tandem pause lenet"},
    {"resume", "tandem resume lenet"},
    {"checkpoints", "tandem checkpoints lenet"},
    {"fork", "tandem fork lenet --set training.epochs=20 --follow"},
    {"priority", "tandem priority lenet -10"},
    {"cancel", "tandem cancel lenet"},
    {"delete", "tandem delete lenet"},
    {"evaluate", "tandem evaluate lenet --split training --metric top_k"},
    {"predict", "tandem predict lenet photo.png --top-k 3"},
    {"predict", "tandem predict lenet --split validation --csv > predictions.csv"},
    {"export", "tandem export lenet lenet.onnx"},
    {"devices", "tandem devices"},
    {"devices list", "tandem devices list"},
    {"devices show", "tandem devices show gpu:0"},
    {"devices drain", "tandem devices drain gpu:0 --reason \"new cooler\""},
    {"devices resume", "tandem devices resume gpu:0"},
    {"devices exclude", "tandem devices exclude gpu:0 --reason \"memory errors\""},
    {"datasets", "tandem datasets"},
    {"datasets list", "tandem datasets list"},
    {"datasets fetch", "tandem datasets fetch mnist"},
    {"datasets show", "tandem datasets show mnist"},
    {"datasets remove", "tandem datasets remove throws"},
    {"datasets uploads", "tandem datasets uploads"},
    {"tokens", "tandem tokens"},
    {"tokens list", "tandem tokens list"},
    {"tokens create", "tandem tokens create ann > ann.token"},
    {"tokens revoke", "tandem tokens revoke ann"},
    {"backup", "tandem backup"},
    {"backup create", "tandem backup create"},
    {"backup list", "tandem backup list"},
    {"doctor", "tandem doctor"},
    {"shutdown", "tandem shutdown"},
    {"schema", "tandem schema job > job.schema.json"},
    {"version", "tandem version"},
    {"completion", "source <(tandem completion bash)"},
};

}  // namespace

absl::string_view ExampleOf(absl::string_view command) {
  for (const auto& [name, example] : kExamples) {
    if (name == command) return example;
  }
  return "";
}

}  // namespace tandem::cli
