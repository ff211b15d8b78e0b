#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDNN_GRAPH_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDNN_GRAPH_H_

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backends/cuda/driver/cudnn_api.h"
#include "engine/backends/cuda/driver/dnn.h"

namespace tandem::cuda {

// A descriptor of cuDNN's graph API. A value that owns it.
class Descriptor {
 public:
  Descriptor() = default;
  ~Descriptor() {
    if (descriptor_ != nullptr) api_->destroy_descriptor(descriptor_);
  }
  Descriptor(Descriptor&& other) noexcept { *this = std::move(other); }
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  static absl::StatusOr<Descriptor> Create(const CudnnApi& api, cudnnBackendDescriptorType_t type);

  absl::Status Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                   const void* values);
  absl::Status SetInts(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values);
  absl::Status SetType(cudnnBackendAttributeName_t name, cudnnDataType_t type);
  absl::Status SetDescriptor(cudnnBackendAttributeName_t name, const Descriptor& descriptor);
  absl::Status Finalize();
  // Fills `values`, which has room for `count`. Returns the number of values.
  absl::StatusOr<int64_t> Get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                              int64_t count, void* values) const;

  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  const CudnnApi* api_ = nullptr;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

// Returns a descriptor of a GPU that need not exist, from cuDNN's JSON.
absl::StatusOr<Descriptor> DescribeGpu(const CudnnApi& api, absl::string_view json);

// The numerical properties of an engine. See CUDNN_NUMERICAL_NOTE_*.
using NumericalNotes = std::vector<cudnnBackendNumericalNote_t>;

// Whether a convolution may use an engine.
enum class EngineFit {
  kRefused,
  kLastResort,  // Only if no engine fits: the engine adds up in fewer bits than float32.
  kFits,
};

// Judges an engine by its notes, for tensors of `type`:
// - Every type refuses Winograd's large tiles (6x6, 13x13): their errors exceed the type's rounding.
// - float32 refuses engines that narrow their inputs.
// - float32 without `allow_tf32` also refuses tensor cores, FFT and all of Winograd's tiles. The remaining
//   engines add products in float32.
// - With `deterministic`, engines that give different bits in different runs are refused.
EngineFit FitOf(const NumericalNotes& notes, DType type, const LibraryOptions& options);

// A convolution as a cuDNN graph. It includes the spec's bias and ReLU only as requested.
class ConvolutionGraph {
 public:
  // With `gpu`, which must outlive the graph, plans are for that GPU: they can be examined but not executed.
  static absl::StatusOr<std::unique_ptr<ConvolutionGraph>> Create(std::shared_ptr<CudnnHandle> handle,
                                                                  const ConvolutionSpec& spec, bool with_bias,
                                                                  bool with_relu,
                                                                  const Descriptor* gpu = nullptr);

  // A way to compute the graph.
  struct Engine {
    Descriptor configuration;
    NumericalNotes notes;
    std::string word;  // Its number and its knobs, without blanks.
  };
  // Returns the engines that cuDNN proposes, best guesses first, without repetition.
  absl::StatusOr<std::vector<Engine>> Propose() const;
  // Returns the engine of a word.
  absl::StatusOr<Engine> EngineOf(const std::string& word) const;

  // UNIMPLEMENTED if the engine does not support this problem.
  absl::StatusOr<Descriptor> PlanFor(const Engine& engine) const;
  static absl::StatusOr<int64_t> WorkspaceBytes(const Descriptor& plan);
  absl::Status Execute(const Descriptor& plan, void* x, void* weight, void* y, const void* bias,
                       void* workspace, Stream stream) const;

  bool with_bias() const { return with_bias_; }
  bool with_relu() const { return with_relu_; }

 private:
  ConvolutionGraph(std::shared_ptr<CudnnHandle> handle, bool with_bias, bool with_relu, const Descriptor* gpu)
      : handle_(std::move(handle)), with_bias_(with_bias), with_relu_(with_relu), gpu_(gpu) {}
  absl::Status Build(const ConvolutionSpec& spec);
  absl::StatusOr<Descriptor> Tensor(int64_t id, DType type, const std::array<int64_t, 4>& nchw,
                                    bool is_virtual) const;
  absl::StatusOr<Descriptor> Pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* b,
                                       const Descriptor& y);
  absl::StatusOr<Engine> Describe(Descriptor configuration) const;
  absl::Status ProposeIn(cudnnBackendHeurMode_t mode, std::vector<Engine>& engines) const;

  const std::shared_ptr<CudnnHandle> handle_;
  const bool with_bias_;
  const bool with_relu_;
  const Descriptor* const gpu_;
  std::vector<Descriptor> parts_;  // Objects that the graph refers to.
  Descriptor graph_;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CUDNN_GRAPH_H_
