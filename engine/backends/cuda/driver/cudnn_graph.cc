#include "engine/backends/cuda/driver/cudnn_graph.h"

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

// The names of the graph's tensors when it is executed.
enum TensorId : int64_t { kX = 1, kWeight, kY, kBias, kProduct, kBiased };

// Attributes that newer versions no longer need, but accept.
constexpr auto kGraphHandle = static_cast<cudnnBackendAttributeName_t>(800);
constexpr auto kPlanHandle = static_cast<cudnnBackendAttributeName_t>(400);
constexpr auto kNanPropagation = static_cast<cudnnBackendAttributeName_t>(2);
// Attributes of a described GPU. Older headers lack them.
constexpr auto kGpuDescriptor = static_cast<cudnnBackendDescriptorType_t>(38);
constexpr auto kGpuJson = static_cast<cudnnBackendAttributeName_t>(2702);
constexpr auto kHeuristicGpu = static_cast<cudnnBackendAttributeName_t>(204);
constexpr auto kEngineGpu = static_cast<cudnnBackendAttributeName_t>(1307);
constexpr auto kPlanGpu = static_cast<cudnnBackendAttributeName_t>(407);

}  // namespace

absl::StatusOr<Descriptor> Descriptor::Create(const CudnnApi& api, cudnnBackendDescriptorType_t type) {
  Descriptor descriptor;
  TANDEM_CUDNN(api, create_descriptor(type, &descriptor.descriptor_));
  descriptor.api_ = &api;
  return descriptor;
}

absl::Status Descriptor::Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                             int64_t count, const void* values) {
  const cudnnStatus_t status = api_->set_attribute(descriptor_, name, type, count, values);
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  return api_->Check(status, absl::StrCat("cudnnBackendSetAttribute of ", static_cast<int>(name)));
}

absl::Status Descriptor::SetInts(cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
  return Set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()), values.data());
}

absl::Status Descriptor::SetType(cudnnBackendAttributeName_t name, cudnnDataType_t type) {
  return Set(name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

absl::Status Descriptor::SetDescriptor(cudnnBackendAttributeName_t name, const Descriptor& descriptor) {
  const cudnnBackendDescriptor_t raw = descriptor.get();
  return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
}

absl::Status Descriptor::Finalize() {
  return api_->Check(api_->finalize(descriptor_), "cudnnBackendFinalize");
}

absl::StatusOr<int64_t> Descriptor::Get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                        int64_t count, void* values) const {
  int64_t found = 0;
  const cudnnStatus_t status = api_->get_attribute(descriptor_, name, type, count, &found, values);
  if (status == CUDNN_STATUS_SUCCESS) return found;
  return api_->Check(status, absl::StrCat("cudnnBackendGetAttribute of ", static_cast<int>(name)));
}

EngineFit FitOf(const NumericalNotes& notes, DType type, const LibraryOptions& options) {
  const bool is_strict = type == DType::kFloat32 && !options.allow_tf32;
  EngineFit fit = EngineFit::kFits;
  for (const cudnnBackendNumericalNote_t note : notes) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        return EngineFit::kRefused;
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        if (options.deterministic) return EngineFit::kRefused;
        break;
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        if (type == DType::kFloat32) return EngineFit::kRefused;
        break;
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      case CUDNN_NUMERICAL_NOTE_FFT:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
        if (is_strict) return EngineFit::kRefused;
        break;
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        fit = EngineFit::kLastResort;
        break;
      default:
        break;
    }
  }
  return fit;
}

absl::StatusOr<Descriptor> DescribeGpu(const CudnnApi& api, absl::string_view json) {
  TANDEM_ASSIGN_OR_RETURN(Descriptor gpu, Descriptor::Create(api, kGpuDescriptor));
  TANDEM_RETURN_IF_ERROR(gpu.Set(kGpuJson, CUDNN_TYPE_CHAR, static_cast<int64_t>(json.size()), json.data()));
  TANDEM_RETURN_IF_ERROR(gpu.Finalize());
  return gpu;
}

absl::StatusOr<std::unique_ptr<ConvolutionGraph>> ConvolutionGraph::Create(
    std::shared_ptr<CudnnHandle> handle, const ConvolutionSpec& spec, bool with_bias, bool with_relu,
    const Descriptor* gpu) {
  std::unique_ptr<ConvolutionGraph> graph(new ConvolutionGraph(std::move(handle), with_bias, with_relu, gpu));
  TANDEM_RETURN_IF_ERROR(graph->Build(spec));
  return graph;
}

absl::StatusOr<Descriptor> ConvolutionGraph::Tensor(int64_t id, DType type,
                                                    const std::array<int64_t, 4>& nchw,
                                                    bool is_virtual) const {
  const auto [n, c, h, w] = nchw;
  TANDEM_ASSIGN_OR_RETURN(Descriptor tensor,
                          Descriptor::Create(handle_->api, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
  TANDEM_RETURN_IF_ERROR(tensor.SetType(CUDNN_ATTR_TENSOR_DATA_TYPE, ToCudnn(type)));
  TANDEM_RETURN_IF_ERROR(tensor.SetInts(CUDNN_ATTR_TENSOR_DIMENSIONS, {n, c, h, w}));
  TANDEM_RETURN_IF_ERROR(tensor.SetInts(CUDNN_ATTR_TENSOR_STRIDES, {h * w * c, 1, w * c, c}));
  TANDEM_RETURN_IF_ERROR(tensor.SetInts(CUDNN_ATTR_TENSOR_UNIQUE_ID, {id}));
  TANDEM_RETURN_IF_ERROR(tensor.SetInts(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {16}));
  TANDEM_RETURN_IF_ERROR(tensor.Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual));
  TANDEM_RETURN_IF_ERROR(tensor.Finalize());
  return tensor;
}

absl::StatusOr<Descriptor> ConvolutionGraph::Pointwise(cudnnPointwiseMode_t mode, const Descriptor& x,
                                                       const Descriptor* b, const Descriptor& y) {
  TANDEM_ASSIGN_OR_RETURN(Descriptor kind,
                          Descriptor::Create(handle_->api, CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
  TANDEM_RETURN_IF_ERROR(kind.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode));
  TANDEM_RETURN_IF_ERROR(kind.SetType(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT));
  // A ReLU that turned NaN into 0 would hide a failed training.
  const cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
  (void)kind.Set(kNanPropagation, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
  TANDEM_RETURN_IF_ERROR(kind.Finalize());
  TANDEM_ASSIGN_OR_RETURN(Descriptor operation,
                          Descriptor::Create(handle_->api, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR));
  TANDEM_RETURN_IF_ERROR(operation.SetDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind));
  TANDEM_RETURN_IF_ERROR(operation.SetDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x));
  if (b != nullptr) {
    TANDEM_RETURN_IF_ERROR(operation.SetDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b));
  }
  TANDEM_RETURN_IF_ERROR(operation.SetDescriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y));
  TANDEM_RETURN_IF_ERROR(operation.Finalize());
  parts_.push_back(std::move(kind));
  return operation;
}

absl::Status ConvolutionGraph::Build(const ConvolutionSpec& s) {
  const CudnnApi& api = handle_->api;
  const std::array<int64_t, 4> y_extents = {s.n, s.k, s.out_h, s.out_w};
  const bool follows = with_bias_ || with_relu_;  // An op follows the convolution.
  TANDEM_ASSIGN_OR_RETURN(Descriptor x, Tensor(kX, s.type, {s.n, s.c, s.h, s.w}, false));
  TANDEM_ASSIGN_OR_RETURN(Descriptor weight,
                          Tensor(kWeight, s.type, {s.k, s.c / s.groups, s.kernel_h, s.kernel_w}, false));
  TANDEM_ASSIGN_OR_RETURN(Descriptor y, Tensor(kY, s.type, y_extents, false));

  TANDEM_ASSIGN_OR_RETURN(Descriptor kind, Descriptor::Create(api, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  TANDEM_RETURN_IF_ERROR(kind.SetType(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT));
  TANDEM_RETURN_IF_ERROR(kind.Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode));
  TANDEM_RETURN_IF_ERROR(kind.SetInts(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {2}));
  TANDEM_RETURN_IF_ERROR(kind.SetInts(CUDNN_ATTR_CONVOLUTION_DILATIONS, {s.dilation_h, s.dilation_w}));
  TANDEM_RETURN_IF_ERROR(kind.SetInts(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {s.stride_h, s.stride_w}));
  TANDEM_RETURN_IF_ERROR(kind.SetInts(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {s.pad_h, s.pad_w}));
  TANDEM_RETURN_IF_ERROR(kind.SetInts(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {s.pad_h, s.pad_w}));
  TANDEM_RETURN_IF_ERROR(kind.Finalize());

  // The tensor names of each kind.
  struct Names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t conv, x, weight, y, alpha, beta;
  };
  static constexpr Names kNames[] = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
  };
  const Names& names = kNames[static_cast<int>(s.kind)];
  Descriptor product;
  if (follows) {
    TANDEM_ASSIGN_OR_RETURN(product, Tensor(kProduct, DType::kFloat32, y_extents, true));
  }
  const float one = 1;
  const float zero = 0;
  std::vector<Descriptor> operations;
  TANDEM_ASSIGN_OR_RETURN(Descriptor convolution, Descriptor::Create(api, names.type));
  TANDEM_RETURN_IF_ERROR(convolution.SetDescriptor(names.conv, kind));
  TANDEM_RETURN_IF_ERROR(convolution.SetDescriptor(names.x, x));
  TANDEM_RETURN_IF_ERROR(convolution.SetDescriptor(names.weight, weight));
  TANDEM_RETURN_IF_ERROR(convolution.SetDescriptor(names.y, follows ? product : y));
  TANDEM_RETURN_IF_ERROR(convolution.Set(names.alpha, CUDNN_TYPE_FLOAT, 1, &one));
  TANDEM_RETURN_IF_ERROR(convolution.Set(names.beta, CUDNN_TYPE_FLOAT, 1, &zero));
  TANDEM_RETURN_IF_ERROR(convolution.Finalize());
  operations.push_back(std::move(convolution));
  if (with_bias_) {
    TANDEM_ASSIGN_OR_RETURN(Descriptor bias, Tensor(kBias, s.type, {1, s.k, 1, 1}, false));
    Descriptor biased;
    if (with_relu_) {
      TANDEM_ASSIGN_OR_RETURN(biased, Tensor(kBiased, DType::kFloat32, y_extents, true));
    }
    TANDEM_ASSIGN_OR_RETURN(Descriptor add,
                            Pointwise(CUDNN_POINTWISE_ADD, product, &bias, with_relu_ ? biased : y));
    operations.push_back(std::move(add));
    parts_.push_back(std::move(bias));
    if (with_relu_) {
      parts_.push_back(std::move(product));
      product = std::move(biased);
    }
  }
  if (with_relu_) {
    TANDEM_ASSIGN_OR_RETURN(Descriptor relu, Pointwise(CUDNN_POINTWISE_RELU_FWD, product, nullptr, y));
    operations.push_back(std::move(relu));
  }

  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& operation : operations) raw.push_back(operation.get());
  TANDEM_ASSIGN_OR_RETURN(graph_, Descriptor::Create(api, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
  TANDEM_RETURN_IF_ERROR(graph_.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                    static_cast<int64_t>(raw.size()), raw.data()));
  if (gpu_ == nullptr) (void)graph_.Set(kGraphHandle, CUDNN_TYPE_HANDLE, 1, &handle_->handle);
  TANDEM_RETURN_IF_ERROR(graph_.Finalize());
  for (Descriptor* part : {&x, &weight, &y, &kind, &product}) parts_.push_back(std::move(*part));
  for (Descriptor& operation : operations) parts_.push_back(std::move(operation));
  return absl::OkStatus();
}

absl::StatusOr<ConvolutionGraph::Engine> ConvolutionGraph::Describe(Descriptor configuration) const {
  const CudnnApi& api = handle_->api;
  Engine engine;
  TANDEM_ASSIGN_OR_RETURN(Descriptor number, Descriptor::Create(api, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  cudnnBackendDescriptor_t raw = number.get();
  TANDEM_RETURN_IF_ERROR(
      configuration.Get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw).status());
  int64_t index = 0;
  TANDEM_RETURN_IF_ERROR(number.Get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index).status());
  engine.notes.resize(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  TANDEM_ASSIGN_OR_RETURN(const int64_t notes,
                          number.Get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                     CUDNN_NUMERICAL_NOTE_TYPE_COUNT, engine.notes.data()));
  engine.notes.resize(std::min<int64_t>(notes, CUDNN_NUMERICAL_NOTE_TYPE_COUNT));
  engine.word = absl::StrCat("eng", index);

  std::vector<Descriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> raw_knobs;
  for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i) {
    TANDEM_ASSIGN_OR_RETURN(Descriptor knob, Descriptor::Create(api, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
    raw_knobs.push_back(knob.get());
    knobs.push_back(std::move(knob));
  }
  // An engine without knobs may return an error here.
  const int64_t count = configuration
                            .Get(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 static_cast<int64_t>(raw_knobs.size()), raw_knobs.data())
                            .value_or(0);
  for (int64_t i = 0; i < std::min<int64_t>(count, CUDNN_KNOB_TYPE_COUNTS); ++i) {
    cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
    int64_t value = 0;
    TANDEM_RETURN_IF_ERROR(
        knobs[i].Get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type).status());
    TANDEM_RETURN_IF_ERROR(
        knobs[i].Get(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value).status());
    absl::StrAppend(&engine.word, "_k", static_cast<int>(type), "=", value);
  }
  engine.configuration = std::move(configuration);
  return engine;
}

absl::Status ConvolutionGraph::ProposeIn(cudnnBackendHeurMode_t mode, std::vector<Engine>& engines) const {
  const CudnnApi& api = handle_->api;
  TANDEM_ASSIGN_OR_RETURN(Descriptor heuristic, Descriptor::Create(api, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
  TANDEM_RETURN_IF_ERROR(heuristic.SetDescriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_));
  TANDEM_RETURN_IF_ERROR(heuristic.Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode));
  if (gpu_ != nullptr) TANDEM_RETURN_IF_ERROR(heuristic.SetDescriptor(kHeuristicGpu, *gpu_));
  TANDEM_RETURN_IF_ERROR(heuristic.Finalize());
  TANDEM_ASSIGN_OR_RETURN(const int64_t count, heuristic.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr));
  std::vector<Descriptor> configurations;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < count; ++i) {
    TANDEM_ASSIGN_OR_RETURN(Descriptor one, Descriptor::Create(api, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    raw.push_back(one.get());
    configurations.push_back(std::move(one));
  }
  TANDEM_ASSIGN_OR_RETURN(
      const int64_t found,
      heuristic.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, raw.data()));
  for (int64_t i = 0; i < std::min(found, count); ++i) {
    absl::StatusOr<Engine> engine = Describe(std::move(configurations[i]));
    if (engine.ok()) engines.push_back(*std::move(engine));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ConvolutionGraph::Engine>> ConvolutionGraph::Propose() const {
  std::vector<Engine> of_a;
  std::vector<Engine> of_b;
  std::vector<Engine> fallback;
  const absl::Status status = ProposeIn(CUDNN_HEUR_MODE_A, of_a);
  // The other heuristics may have no answer.
  (void)ProposeIn(CUDNN_HEUR_MODE_B, of_b);
  (void)ProposeIn(CUDNN_HEUR_MODE_FALLBACK, fallback);
  std::vector<Engine> engines;
  std::set<std::string> seen;
  const auto take = [&](std::vector<Engine>& from, size_t begin, size_t end) {
    for (size_t i = begin; i < std::min(end, from.size()); ++i) {
      if (seen.insert(from[i].word).second) engines.push_back(std::move(from[i]));
    }
  };
  constexpr size_t kAll = ~size_t{0};
  take(of_a, 0, 8);
  take(of_b, 0, 4);
  take(of_a, 8, kAll);
  take(of_b, 4, kAll);
  take(fallback, 0, kAll);
  if (engines.empty()) {
    TANDEM_RETURN_IF_ERROR(status);
    return absl::UnimplementedError("cudnn: no engine is proposed");
  }
  return engines;
}

absl::StatusOr<ConvolutionGraph::Engine> ConvolutionGraph::EngineOf(const std::string& word) const {
  const CudnnApi& api = handle_->api;
  const absl::Status unknown = absl::InvalidArgumentError(absl::StrCat("cudnn: no engine \"", word, "\""));
  const std::vector<std::string> parts = absl::StrSplit(word, '_');
  absl::string_view number = parts[0];
  int64_t index = 0;
  if (!absl::ConsumePrefix(&number, "eng") || !absl::SimpleAtoi(number, &index)) return unknown;
  TANDEM_ASSIGN_OR_RETURN(Descriptor engine, Descriptor::Create(api, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  TANDEM_RETURN_IF_ERROR(engine.SetDescriptor(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph_));
  TANDEM_RETURN_IF_ERROR(engine.SetInts(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, {index}));
  if (gpu_ != nullptr) TANDEM_RETURN_IF_ERROR(engine.SetDescriptor(kEngineGpu, *gpu_));
  TANDEM_RETURN_IF_ERROR(engine.Finalize());
  std::vector<Descriptor> knobs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::vector<absl::string_view> sides = absl::StrSplit(absl::StripPrefix(parts[i], "k"), '=');
    int type_number = 0;
    int64_t value = 0;
    if (sides.size() != 2 || !absl::SimpleAtoi(sides[0], &type_number) ||
        !absl::SimpleAtoi(sides[1], &value)) {
      return unknown;
    }
    const auto type = static_cast<cudnnBackendKnobType_t>(type_number);
    TANDEM_ASSIGN_OR_RETURN(Descriptor knob, Descriptor::Create(api, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
    TANDEM_RETURN_IF_ERROR(knob.Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type));
    TANDEM_RETURN_IF_ERROR(knob.SetInts(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, {value}));
    TANDEM_RETURN_IF_ERROR(knob.Finalize());
    raw.push_back(knob.get());
    knobs.push_back(std::move(knob));
  }
  TANDEM_ASSIGN_OR_RETURN(Descriptor configuration,
                          Descriptor::Create(api, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
  TANDEM_RETURN_IF_ERROR(configuration.SetDescriptor(CUDNN_ATTR_ENGINECFG_ENGINE, engine));
  if (!raw.empty()) {
    TANDEM_RETURN_IF_ERROR(configuration.Set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                             static_cast<int64_t>(raw.size()), raw.data()));
  }
  TANDEM_RETURN_IF_ERROR(configuration.Finalize());
  return Describe(std::move(configuration));
}

absl::StatusOr<Descriptor> ConvolutionGraph::PlanFor(const Engine& engine) const {
  TANDEM_ASSIGN_OR_RETURN(Descriptor plan,
                          Descriptor::Create(handle_->api, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
  if (gpu_ != nullptr) {
    TANDEM_RETURN_IF_ERROR(plan.SetDescriptor(kPlanGpu, *gpu_));
  } else {
    (void)plan.Set(kPlanHandle, CUDNN_TYPE_HANDLE, 1, &handle_->handle);
  }
  TANDEM_RETURN_IF_ERROR(plan.SetDescriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine.configuration));
  TANDEM_RETURN_IF_ERROR(plan.Finalize());
  return plan;
}

absl::StatusOr<int64_t> ConvolutionGraph::WorkspaceBytes(const Descriptor& plan) {
  int64_t bytes = 0;
  TANDEM_RETURN_IF_ERROR(
      plan.Get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes).status());
  return bytes;
}

absl::Status ConvolutionGraph::Execute(const Descriptor& plan, void* x, void* weight, void* y,
                                       const void* bias, void* workspace, Stream stream) const {
  const CudnnApi& api = handle_->api;
  std::vector<void*> data = {x, weight, y};
  std::vector<int64_t> ids = {kX, kWeight, kY};
  if (with_bias_) {
    data.push_back(const_cast<void*>(bias));  // Only read.
    ids.push_back(kBias);
  }
  TANDEM_ASSIGN_OR_RETURN(Descriptor memory, Descriptor::Create(api, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
  TANDEM_RETURN_IF_ERROR(memory.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                                    static_cast<int64_t>(data.size()), data.data()));
  TANDEM_RETURN_IF_ERROR(memory.SetInts(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids));
  TANDEM_RETURN_IF_ERROR(memory.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace));
  TANDEM_RETURN_IF_ERROR(memory.Finalize());
  TANDEM_CUDNN(api, set_stream(handle_->handle, stream));
  return api.Check(api.execute(handle_->handle, plan.get(), memory.get()), "cudnnBackendExecute");
}

}  // namespace tandem::cuda
