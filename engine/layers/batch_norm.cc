#include "engine/layers/batch_norm.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/batch_norm.h"
#include "engine/graph/ops/batch_norm_sync.h"
#include "engine/layers/activation.h"
#include "engine/layers/norm_fields.h"

namespace tandem {
namespace {

constexpr double kDefaultMomentum = 0.1;

class BatchNormLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "batch_norm"; }

  void FillDefaults(v1::Layer* layer) const override {
    v1::BatchNorm* norm = layer->mutable_batch_norm();
    FillNorm(norm);
    if (!norm->has_momentum()) norm->set_momentum(kDefaultMomentum);
    if (norm->activation() == v1::ACTIVATION_UNSPECIFIED) norm->set_activation(v1::ACTIVATION_IDENTITY);
  }

  absl::Status Check(const v1::Layer& layer) const override {
    const v1::BatchNorm& norm = layer.batch_norm();
    FieldViolations violations;
    CheckAtLeastZero("batch_norm.epsilon", norm.epsilon(), violations);
    if (!(norm.momentum() >= 0 && norm.momentum() <= 1)) {
      violations.Add(
          "batch_norm.momentum",
          absl::StrCat("is ", norm.momentum(), "; it must be from 0 to 1: the newest batch's share"));
    }
    CheckActivation("batch_norm.activation", norm.activation(), violations);
    violations.AddAll("batch_norm.weight_initializer", CheckInitializer(norm.weight_initializer()));
    violations.AddAll("batch_norm.bias_initializer", CheckInitializer(norm.bias_initializer()));
    return violations.ToStatus();
  }

 private:
  absl::StatusOr<Shape> Infer(const v1::Layer& /*layer*/, const Shape& input) const override { return input; }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const v1::BatchNorm& norm = layer.batch_norm();
    const Shape batch = context.graph.value(input).shape;
    const Shape channels({batch[1]});
    // A frozen layer uses its running statistics.
    const bool is_training = context.training && !context.frozen;
    const bool syncs = is_training && norm.sync();
    if (syncs && context.batch.fault != nullptr) return FieldError("batch_norm.sync", context.batch.fault);
    const bool is_whole = !syncs || context.batch.share == 1;
    // Replicas without samples synchronise too, so the share does not matter here.
    const bool joins = syncs && context.batch.replicas > 1;
    if (is_training && is_whole && batch.elements() == batch[1]) {
      return FieldError(
          "batch_norm",
          absl::StrCat("trains on a share of one sample, ", batch.ToString(),
                       ", where a single value a channel has no variance; choose a batch size that "
                       "leaves no replica a single sample, in the epoch's last batch too"));
    }
    std::vector<ValueId> inputs =
        NormInputs(norm, /*has_bias=*/norm.affine(), layer.name(), channels, input, context);
    inputs.push_back(AddStatistic(context, layer.name(), "running_mean", channels, 0));
    inputs.push_back(AddStatistic(context, layer.name(), "running_var", channels, 1));
    ValueId output = kNoValue;
    if (joins) {
      TANDEM_ASSIGN_OR_RETURN(output, BuildSync(norm, std::move(inputs), context));
    } else if (is_training) {
      TANDEM_ASSIGN_OR_RETURN(
          const std::vector<ValueId> outputs,
          context.graph.AddNode(std::make_shared<BatchNormOp>(norm.momentum(), norm.epsilon()),
                                std::move(inputs)));
      output = outputs[0];
    } else {
      TANDEM_ASSIGN_OR_RETURN(
          output,
          context.graph.Add(std::make_shared<BatchNormInferenceOp>(norm.epsilon()), std::move(inputs)));
    }
    return AddActivation(norm.activation(), output, context.graph);
  }

  // Normalises over the samples of all replicas. `inputs` are those of batch_norm.
  static absl::StatusOr<ValueId> BuildSync(const v1::BatchNorm& norm, std::vector<ValueId> inputs,
                                           LayerContext& context) {
    Graph& graph = context.graph;
    TANDEM_ASSIGN_OR_RETURN(const ValueId own, graph.Add(std::make_shared<BatchNormMomentsOp>(
                                                             context.batch.rank, context.batch.replicas),
                                                         {inputs[0]}));
    TANDEM_ASSIGN_OR_RETURN(
        const std::vector<ValueId> moments,
        graph.AddNode(std::make_shared<AllReduceOp>(1, CountAllReduces(graph), 1), {own}));
    inputs.push_back(moments[0]);
    TANDEM_ASSIGN_OR_RETURN(
        const std::vector<ValueId> outputs,
        graph.AddNode(std::make_shared<BatchNormSyncOp>(norm.momentum(), norm.epsilon(), context.batch.share),
                      std::move(inputs)));
    return outputs[0];
  }
};

}  // namespace

const LayerKind& BatchNormKind() { return TheOnly<BatchNormLayerKind>(); }

}  // namespace tandem
