#ifndef TANDEM_ENGINE_ONNX_ONNX_GRAPH_H_
#define TANDEM_ENGINE_ONNX_ONNX_GRAPH_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/tensor/shape.h"
#include "engine/tensor/tensor.h"
#include "onnx/onnx_pb.h"

namespace tandem {

// An attribute of an ONNX node: its name and its value.
using OnnxAttribute = std::pair<std::string, std::variant<int64_t, float, std::string, std::vector<int64_t>>>;

// Appends nodes and tensors to the graph of an ONNX file. Values are known by their names. Thread-compatible.
class OnnxGraph {
 public:
  // `graph` must outlive this object.
  explicit OnnxGraph(onnx::GraphProto* graph) : graph_(graph) {}

  // Appends a node and returns the name of its output, which is `output`, or a new name if that is empty. An
  // empty input is an absent one.
  std::string Add(absl::string_view type, std::vector<std::string> inputs,
                  const std::vector<OnnxAttribute>& attributes = {}, std::string output = "");
  // As Add, for a node with several outputs. An empty output is not computed.
  void AddAll(absl::string_view type, const std::vector<std::string>& inputs,
              const std::vector<OnnxAttribute>& attributes, const std::vector<std::string>& outputs);

  // Return the name of a constant of the file. Equal constants have the same name.
  std::string Scalar(double number);                        // float32.
  std::string Integers(absl::Span<const int64_t> numbers);  // int64, one dimension.
  std::string Floats(const Tensor& tensor);                 // float32.
  // Adds a float32 tensor with a name of its own.
  void AddWeight(const std::string& name, const Tensor& tensor);

  // Returns the name of a new value.
  std::string NewName();

 private:
  // Adds the constant, without a name, if there is no equal one. Returns the constant's name.
  std::string AddConstant(onnx::TensorProto constant);

  onnx::GraphProto* const graph_;
  int names_ = 0;
  absl::flat_hash_map<std::string, std::string> constants_;  // The names, by the serialized tensors.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_ONNX_ONNX_GRAPH_H_
