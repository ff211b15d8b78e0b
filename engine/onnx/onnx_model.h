#ifndef TANDEM_ENGINE_ONNX_ONNX_MODEL_H_
#define TANDEM_ENGINE_ONNX_ONNX_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/training/trained_model.h"

namespace tandem {

// Returns the bytes of an ONNX file (opset 17, https://onnx.ai/onnx) with the network as it predicts, in
// float32:
//
//   input [batch, ...]: samples of the data set before normalization, uint8, float32 or int32 tokens
//   output [batch, ...]: the network's output, in the scale of the table
//
// The metadata are those of the model file, without the job. RESOURCE_EXHAUSTED: the file would have more
// than 2 GiB. DATA_LOSS: a weight is missing. UNIMPLEMENTED: the export does not know an op.
absl::StatusOr<std::string> ToOnnx(const TrainedModel& model);

}  // namespace tandem

#endif  // TANDEM_ENGINE_ONNX_ONNX_MODEL_H_
