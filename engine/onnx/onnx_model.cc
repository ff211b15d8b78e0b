#include "engine/onnx/onnx_model.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/base/version.h"
#include "engine/graph/graph.h"
#include "engine/onnx/onnx_graph.h"
#include "engine/onnx/onnx_ops.h"
#include "engine/training/model_file.h"
#include "engine/training/prediction.h"

namespace tandem {
namespace {

constexpr int kIrVersion = 8;
constexpr int kOpset = 17;
constexpr char kInput[] = "input";
constexpr char kOutput[] = "output";

int ElementType(DType dtype) {
  switch (dtype) {
    case DType::kUInt8:
      return onnx::TensorProto::UINT8;
    case DType::kInt32:
      return onnx::TensorProto::INT32;
    default:
      return onnx::TensorProto::FLOAT;
  }
}

// Describes a value [batch, ...].
void Describe(const std::string& name, const Value& value, onnx::ValueInfoProto& info) {
  info.set_name(name);
  onnx::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(ElementType(value.dtype));
  type.mutable_shape()->add_dim()->set_dim_param("batch");
  for (int i = 1; i < value.shape.rank(); ++i) type.mutable_shape()->add_dim()->set_dim_value(value.shape[i]);
}

Tensor TensorOf(const Value& constant) {
  Tensor tensor(DType::kFloat32, constant.shape);
  const absl::Span<float> numbers = tensor.data<float>();
  std::fill(numbers.begin(), numbers.end(), static_cast<float>(constant.constant));
  return tensor;
}

// Appends the tensors of the network's weights and constants, and returns the names of all values.
absl::StatusOr<std::vector<std::string>> NameValues(const Graph& graph, const TrainedModel& model,
                                                    OnnxGraph& onnx) {
  // WriteLstm needs no constants.
  absl::flat_hash_set<ValueId> read;
  for (const Node& node : graph.nodes()) {
    if (node.op->kind() != "lstm") read.insert(node.inputs.begin(), node.inputs.end());
  }
  std::vector<std::string> names;
  for (const Value& value : graph.values()) {
    switch (value.role) {
      case ValueRole::kInput:
        names.emplace_back(kInput);
        break;
      case ValueRole::kVariable: {
        const auto weight = model.weights.find(value.name);
        if (weight == model.weights.end()) {
          return absl::DataLossError(absl::StrCat("cannot export the model: it has no weight ", value.name));
        }
        names.push_back(value.name);
        onnx.AddWeight(value.name, weight->second);
        break;
      }
      case ValueRole::kConstant:
        names.push_back(read.contains(value.id) ? onnx.Floats(TensorOf(value)) : "");
        break;
      case ValueRole::kIntermediate:
        names.push_back(onnx.NewName());
        break;
    }
  }
  return names;
}

}  // namespace

absl::StatusOr<std::string> ToOnnx(const TrainedModel& model) {
  TANDEM_ASSIGN_OR_RETURN(const Graph graph, BuildPredictionGraph(model, model.trained_on.sample_type,
                                                                  /*samples=*/1, DType::kFloat32));
  onnx::ModelProto file;
  file.set_ir_version(kIrVersion);
  file.set_producer_name("tandem");
  file.set_producer_version(kVersion);
  onnx::OperatorSetIdProto& opset = *file.add_opset_import();
  opset.set_domain("");
  opset.set_version(kOpset);
  file.mutable_graph()->set_name(model.spec.name().empty() ? "network" : model.spec.name());
  OnnxGraph onnx(file.mutable_graph());
  TANDEM_ASSIGN_OR_RETURN(std::vector<std::string> names, NameValues(graph, model, onnx));

  const ValueId output = graph.outputs()[0];
  const auto& preparation = model.trained_on.preparation;
  const bool is_scaled = preparation.has_value() && preparation->target_deviation() > 0;
  if (!is_scaled) names[output] = kOutput;
  for (const Node& node : graph.nodes()) {
    if (IsWrittenWithConsumer(graph, node)) continue;
    TANDEM_RETURN_IF_ERROR(WriteOnnxOp({graph, node, names}, onnx));
  }
  if (is_scaled) {
    const std::string scaled = onnx.Add("Mul", {names[output], onnx.Scalar(preparation->target_deviation())});
    onnx.Add("Add", {scaled, onnx.Scalar(preparation->target_mean())}, {}, kOutput);
  }
  Describe(kInput, graph.value(graph.inputs()[0]), *file.mutable_graph()->add_input());
  Describe(kOutput, graph.value(output), *file.mutable_graph()->add_output());

  TANDEM_ASSIGN_OR_RETURN(auto metadata, ModelMetadata(model.spec, model.trained_on));
  metadata.erase("job");
  for (const auto& [key, value] : metadata) {
    onnx::StringStringEntryProto& entry = *file.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  if (const size_t bytes = file.ByteSizeLong(); bytes > std::numeric_limits<int32_t>::max()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot export the model: the file would have ", bytes >> 20,
                     " MiB, and an ONNX file has at most 2 GiB; use the safetensors file"));
  }
  return file.SerializeAsString();
}

}  // namespace tandem
