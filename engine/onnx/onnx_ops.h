#ifndef TANDEM_ENGINE_ONNX_ONNX_OPS_H_
#define TANDEM_ENGINE_ONNX_ONNX_OPS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/graph/graph.h"
#include "engine/onnx/onnx_graph.h"

namespace tandem {

// A node of a network that predicts. The first dimension of each input and intermediate is the batch, or a
// multiple of it, and has any extent in the file.
struct OnnxSource {
  const Graph& graph;
  const Node& node;
  const std::vector<std::string>& names;  // Of all values of the graph, by id.

  const std::string& input(int i) const { return names[node.inputs[i]]; }
  const std::string& output(int i = 0) const { return names[node.outputs[i]]; }
  const Shape& input_shape(int i = 0) const { return graph.value(node.inputs[i]).shape; }
  const Shape& output_shape(int i = 0) const { return graph.value(node.outputs[i]).shape; }
  int inputs() const { return static_cast<int>(node.inputs.size()); }
};

// Returns whether the node is written with its consumer: the projection of an LSTM's input.
bool IsWrittenWithConsumer(const Graph& graph, const Node& node);

// Appends the ONNX nodes of a node's op. UNIMPLEMENTED with the op's kind if there are none.
absl::Status WriteOnnxOp(const OnnxSource& source, OnnxGraph& onnx);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ONNX_ONNX_OPS_H_
