#include "engine/backends/cuda/cuda_executable.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/late_communicator.h"
#include "engine/backend/op_cases.h"
#include "engine/backend/training_case.h"
#include "engine/backends/cuda/cuda_device.h"
#include "engine/backends/cuda/driver/emulated_stream.h"
#include "engine/backends/reference/reference_device.h"
#include "engine/graph/ops/accumulate_gradient.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/linear.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<CudaDevice> Open(const cuda::CudaOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Open("gpu:0", 0, options);
  EXPECT_TRUE(device.ok()) << device.status();
  return device.ok() ? *std::move(device) : nullptr;
}

// sum += 2 x, with 2 x as output, for `elements` numbers.
CaseGraph Sums(int64_t elements) {
  CaseGraph graph(DType::kFloat32);
  const ValueId x = graph.Input("x", {elements});
  const ValueId twice = graph.Add(std::make_shared<ScaleOp>(2), {x})[0];
  graph.AddHidden(std::make_shared<AccumulateGradientOp>(1, /*overwrite=*/false),
                  {graph.Variable("sum", {elements}), twice});
  return graph;
}

// A number of streams work as late as possible: first the stream of runs, then the stream of copies.
class LateStreamsTest : public testing::TestWithParam<int> {
 protected:
  void TearDown() override { cuda::DeferStreams(0); }
};

// Runs follow each other without a wait, so that inputs of several runs are being copied. No input may be
// overwritten before its run has read it, or read before it has arrived.
TEST_P(LateStreamsTest, EveryRunReadsItsOwnInputs) {
  constexpr int kRuns = 11;
  for (const int64_t elements : {int64_t{100}, int64_t{1} << 14}) {  // With a single buffer, and with two.
    const CaseGraph graph = Sums(elements);
    cuda::DeferStreams(GetParam());
    const std::unique_ptr<CudaDevice> device = Open();
    ASSERT_NE(device, nullptr);
    const std::unique_ptr<Variables> variables = device->CreateVariables();
    const auto compiled = device->Compile(graph.graph(), variables.get());
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    EXPECT_EQ((*compiled)->bytes() >= 3 * 4 * elements, elements > 100);
    std::vector<float> x(elements);
    float sum = 0;
    for (int run = 0; run < kRuns; ++run) {
      const auto number = static_cast<float>(1 << run);
      std::fill(x.begin(), x.end(), number);
      sum += 2 * number;
      ASSERT_TRUE((*compiled)->Run({x.data()}, nullptr).ok());
      std::fill(x.begin(), x.end(), -1.0f);
    }
    const absl::StatusOr<Tensor> output = (*compiled)->Output(0);
    ASSERT_TRUE(output.ok()) << output.status();
    const absl::StatusOr<Tensor> total = variables->Read("sum");
    ASSERT_TRUE(total.ok()) << total.status();
    for (int64_t i = 0; i < elements; ++i) {
      ASSERT_EQ(output->data<float>()[i], static_cast<float>(2 << (kRuns - 1))) << i;
      ASSERT_EQ(total->data<float>()[i], sum) << i;
    }
    EXPECT_EQ((*compiled)->notice(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Streams, LateStreamsTest, testing::Values(0, 1, 2));

// Without memory for two buffers, a single buffer is enough.
TEST(CudaExecutableTest, OneBufferOfInputsWillDo) {
  const CaseGraph graph = Sums(1 << 14);
  const auto bytes_of = [&](int64_t limit) -> absl::StatusOr<int64_t> {
    const std::unique_ptr<CudaDevice> device = Open({.memory_limit_bytes = limit});
    const std::unique_ptr<Variables> variables = device->CreateVariables();
    const auto compiled = device->Compile(graph.graph(), variables.get());
    if (!compiled.ok()) return compiled.status();
    const absl::StatusOr<RunResult> result = RunCase(graph, **compiled, *variables);
    if (!result.ok()) return result.status();
    EXPECT_EQ(result->outputs[0].data<float>()[7], 2 * graph.inputs()[0].data<float>()[7]);
    return variables->bytes() + (*compiled)->bytes();
  };
  const absl::StatusOr<int64_t> with_two = bytes_of(0);
  ASSERT_TRUE(with_two.ok()) << with_two.status();
  EXPECT_EQ(*bytes_of(*with_two), *with_two);
  const absl::StatusOr<int64_t> with_one = bytes_of(*with_two - 1);
  ASSERT_TRUE(with_one.ok()) << with_one.status();
  EXPECT_EQ(*with_one, *with_two - graph.inputs()[0].bytes());
}

// A group of two. The other rank has the same elements.
class Twin final : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 2; }
  absl::Status AllReduce(BufferView buffer, ReduceOp) override {
    auto* const elements = static_cast<float*>(buffer.data);
    seen.emplace_back(elements, elements + buffer.elements);
    for (int64_t i = 0; i < buffer.elements; ++i) elements[i] *= 2;
    return absl::OkStatus();
  }
  absl::Status Broadcast(BufferView, int) override { return absl::OkStatus(); }
  absl::Status Barrier() override { return absl::OkStatus(); }
  void Abort(absl::Status) override {}
  absl::Status status() const override { return absl::OkStatus(); }

  std::vector<std::vector<float>> seen;
};

// 40 arrays of `elements` numbers, each computed from the last.
CaseGraph Chain(int64_t elements) {
  CaseGraph graph(DType::kFloat32);
  ValueId x = graph.Input("x", {elements});
  for (int i = 0; i < 39; ++i) x = graph.AddHidden(std::make_shared<ScaleOp>(2), {x})[0];
  graph.Add(std::make_shared<ScaleOp>(2), {x});
  return graph;
}

// Without extra room, memory is reused. With room, each buffer has its own memory.
TEST(CudaExecutableTest, BuffersShareMemoryOnlyForWantOfRoom) {
  for (const auto& [elements, shares] : {std::pair(1 << 10, false), std::pair(1 << 20, true)}) {
    const CaseGraph graph = Chain(elements);
    const std::unique_ptr<CudaDevice> device = Open();
    const std::unique_ptr<Variables> variables = device->CreateVariables();
    const auto compiled = device->Compile(graph.graph(), variables.get());
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const int64_t of_all = int64_t{40} * elements * static_cast<int64_t>(sizeof(float));
    EXPECT_EQ((*compiled)->bytes() < of_all, shares) << (*compiled)->bytes();
  }
}

// A reduction reads a whole bucket, with the gaps between its tensors.
TEST(CudaExecutableTest, WhatIsReducedWasWritten) {
  CaseGraph graph(DType::kFloat32);
  const ValueId a = graph.AddHidden(std::make_shared<ScaleOp>(2), {graph.Input("a", {3})})[0];
  const ValueId b = graph.AddHidden(std::make_shared<ScaleOp>(2), {graph.Input("b", {70})})[0];
  graph.Add(std::make_shared<AllReduceOp>(1, 0, 2), {a, b});
  const std::unique_ptr<CudaDevice> device = Open();
  const std::unique_ptr<Variables> variables = device->CreateVariables();
  const auto compiled = device->Compile(graph.graph(), variables.get());
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  Twin twin;
  for (int run = 0; run < 3; ++run) {
    const absl::StatusOr<RunResult> result = RunCase(graph, **compiled, *variables, &twin);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->outputs[1].data<float>()[69], 4 * graph.inputs()[1].data<float>()[69]);
  }
  ASSERT_EQ(twin.seen.size(), 3);
  for (const std::vector<float>& seen : twin.seen) {
    ASSERT_EQ(seen.size(), 64 + 128);
    for (size_t i = 3; i < 64; ++i) EXPECT_EQ(seen[i], 0) << i;
    for (size_t i = 64 + 70; i < seen.size(); ++i) EXPECT_EQ(seen[i], 0) << i;
  }
}

// The first run loads kernels, which may wait for all running work.
TEST(CudaExecutableTest, TheFirstRunAwaitsEachReduction) {
  const CaseGraph graph = TrainingCase(DType::kFloat32, 4, 0.5, 4);
  const std::unique_ptr<CudaDevice> device = Open();
  const std::unique_ptr<Variables> variables = device->CreateVariables();
  const auto compiled = device->Compile(graph.graph(), variables.get());
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ASSERT_TRUE(WriteVariables(graph, *variables).ok());
  LateCommunicator communicator(/*is_late=*/true);
  for (const bool is_first : {true, false}) {
    const absl::StatusOr<RunResult> result = RunCase(graph, **compiled, *variables, &communicator);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(communicator.most_going_on() == 1, is_first);
  }
}

// relu(x weight^T + bias).
CaseGraph Dense(DType dtype = DType::kFloat32) {
  CaseGraph graph(dtype);
  const ValueId y = graph.AddHidden(
      std::make_shared<LinearOp>(),
      {graph.Input("x", {5, 7}), graph.Variable("weight", {9, 7}), graph.Variable("bias", {9})})[0];
  graph.Add(std::make_shared<ReluOp>(), {y});
  return graph;
}

// The emulation's products, with a missing feature.
class LackingBlas final : public cuda::Blas {
 public:
  // Records: no product can be recorded. Launches: CUDA refuses a product's launch in a record. First
  // launches: CUDA refuses a product's launch outside of records. Memory: there is none for the second
  // product that is recorded.
  enum class Lack { kEpilogues, kRecords, kLaunches, kFirstLaunches, kMemory };
  LackingBlas(Lack lack, std::unique_ptr<cuda::Blas> whole) : lack_(lack), whole_(std::move(whole)) {}

  absl::StatusOr<std::unique_ptr<cuda::Gemm>> Plan(const cuda::GemmSpec& spec, int64_t cap) override {
    if (lack_ == Lack::kEpilogues && spec.bias) {
      return absl::UnimplementedError("no algorithm for the epilogue");
    }
    absl::StatusOr<std::unique_ptr<cuda::Gemm>> gemm = whole_->Plan(spec, cap);
    if (!gemm.ok() || lack_ == Lack::kEpilogues) return gemm;
    return std::unique_ptr<cuda::Gemm>(new LackingGemm(lack_, *std::move(gemm)));
  }

 private:
  class LackingGemm final : public cuda::Gemm {
   public:
    LackingGemm(Lack lack, std::unique_ptr<cuda::Gemm> gemm) : lack_(lack), gemm_(std::move(gemm)) {}
    int64_t workspace_bytes() const override { return gemm_->workspace_bytes(); }
    absl::Status Run(const void* a, const void* b, void* c, const void* bias, void* workspace,
                     cuda::Stream stream) const override {
      const absl::StatusOr<cuda::DeviceMemory> memory = cuda::DeviceMemory::Allocate(256);
      if (!memory.ok()) {  // A record.
        if (lack_ == Lack::kRecords) return memory.status();
        if (lack_ == Lack::kMemory && ++recorded_ == 2) return absl::ResourceExhaustedError("no room");
        if (lack_ == Lack::kLaunches) {
          cuda::RefuseLaunch(absl::InternalError("a refused launch"));
          return absl::OkStatus();
        }
      } else if (lack_ == Lack::kFirstLaunches) {
        cuda::RefuseLaunch(absl::InternalError("a refused launch"));
        return absl::OkStatus();
      }
      return gemm_->Run(a, b, c, bias, workspace, stream);
    }

   private:
    const Lack lack_;
    const std::unique_ptr<cuda::Gemm> gemm_;
    mutable int recorded_ = 0;
  };

  const Lack lack_;
  const std::unique_ptr<cuda::Blas> whole_;
};

std::unique_ptr<CudaDevice> OpenLacking(LackingBlas::Lack lack, DType compute = DType::kFloat32) {
  auto context = std::make_shared<cuda::DeviceContext>(cuda::CudaOptions{.compute = compute});
  context->stream = *cuda::OwnedStream::Create();
  context->blas = std::make_unique<LackingBlas>(lack, *cuda::CreateBlas({}));
  context->dnn = *cuda::CreateDnn({});
  return CudaDevice::Over("gpu:0", std::move(context));
}

void ExpectDense(const absl::StatusOr<RunResult>& actual, double tolerance) {
  ASSERT_TRUE(actual.ok()) << actual.status();
  const absl::StatusOr<RunResult> expected = RunCaseOn(*CreateReferenceDevice(), Dense(DType::kFloat64));
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_LE(RelativeError(actual->outputs[0].CastTo(DType::kFloat64), expected->outputs[0]), tolerance);
}

TEST(CudaExecutableTest, BiasAndReluAreAddedWhereTheLibraryHasNoEpilogue) {
  const CaseGraph graph = Dense();
  for (const DType compute : {DType::kFloat32, DType::kBFloat16}) {
    const std::unique_ptr<CudaDevice> device = OpenLacking(LackingBlas::Lack::kEpilogues, compute);
    ExpectDense(RunCaseOn(*device, graph), compute == DType::kFloat32 ? 1e-6 : 2e-2);
  }
}

TEST(CudaExecutableTest, WhatCannotBeRecordedIsGivenStepByStepAndSaysWhy) {
  const CaseGraph graph = Dense();
  const std::unique_ptr<CudaDevice> device = OpenLacking(LackingBlas::Lack::kRecords);
  const std::unique_ptr<Variables> variables = device->CreateVariables();
  const auto compiled = device->Compile(graph.graph(), variables.get());
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ASSERT_TRUE(WriteVariables(graph, *variables).ok());
  for (int run = 0; run < 4; ++run) {
    EXPECT_EQ((*compiled)->notice().empty(), run < 2);
    ExpectDense(RunCase(graph, **compiled, *variables), 1e-6);
  }
  EXPECT_THAT((*compiled)->notice(), AllOf(HasSubstr("not as a CUDA graph: an allocation while work is"),
                                           HasSubstr("(in \"linear + relu\")")));
}

// Otherwise the kernel would be missing in every later run.
TEST(CudaExecutableTest, AKernelThatIsRefusedInARecordEndsTheRecord) {
  const CaseGraph graph = Dense();
  const std::unique_ptr<CudaDevice> device = OpenLacking(LackingBlas::Lack::kLaunches);
  const std::unique_ptr<Variables> variables = device->CreateVariables();
  const auto compiled = device->Compile(graph.graph(), variables.get());
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ASSERT_TRUE(WriteVariables(graph, *variables).ok());
  for (int run = 0; run < 3; ++run) ExpectDense(RunCase(graph, **compiled, *variables), 1e-6);
  EXPECT_THAT((*compiled)->notice(), HasSubstr("not as a CUDA graph: a refused launch"));
}

// A reduction by NCCL. Its polls of events clear the error of an earlier launch, as cudaEventQuery does.
class Polling final : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 2; }
  absl::Status AllReduce(BufferView, ReduceOp) override {
    (void)cuda::CheckLaunches();
    return absl::OkStatus();
  }
  absl::Status Broadcast(BufferView, int) override { return absl::OkStatus(); }
  absl::Status Barrier() override { return absl::OkStatus(); }
  void Abort(absl::Status) override {}
  absl::Status status() const override { return absl::OkStatus(); }
};

// Otherwise the ranks would add up numbers that nobody wrote.
TEST(CudaExecutableTest, AKernelThatIsRefusedBeforeAReductionFailsTheRun) {
  CaseGraph graph(DType::kFloat32);
  const ValueId y = graph.AddHidden(
      std::make_shared<LinearOp>(),
      {graph.Input("x", {5, 7}), graph.Variable("weight", {9, 7}), graph.Variable("bias", {9})})[0];
  graph.Add(std::make_shared<AllReduceOp>(1, 0, 1), {y});
  const std::unique_ptr<CudaDevice> device = OpenLacking(LackingBlas::Lack::kFirstLaunches);
  const std::unique_ptr<Variables> variables = device->CreateVariables();
  const auto compiled = device->Compile(graph.graph(), variables.get());
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  Polling communicator;
  const absl::Status status = RunCase(graph, **compiled, *variables, &communicator).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("a refused launch"), HasSubstr("(in \"linear\")")));
}

// The records of single runs need less memory.
TEST(CudaExecutableTest, WithoutMemoryForARecordOfSeveralRunsRunsAreSingle) {
  const CaseGraph graph = Dense();
  const std::unique_ptr<CudaDevice> device = OpenLacking(LackingBlas::Lack::kMemory);
  const std::unique_ptr<Variables> variables = device->CreateVariables();
  const auto compiled = device->Compile(graph.graph(), variables.get());
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ASSERT_TRUE(WriteVariables(graph, *variables).ok());
  ExpectDense(RunCase(graph, **compiled, *variables), 1e-6);
  const void* const inputs[] = {graph.inputs()[0].data<float>().data()};
  const int64_t bytes = (*compiled)->bytes();
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = (*compiled)->RunSeveral(
        4, [&](int64_t) { return absl::Span<const void* const>(inputs); }, nullptr);
    ASSERT_TRUE(status.ok()) << status;
    absl::StatusOr<Tensor> output = (*compiled)->Output(0);
    ASSERT_TRUE(output.ok()) << output.status();
    RunResult result;
    result.outputs.push_back(*std::move(output));
    ExpectDense(result, 1e-6);
  }
  EXPECT_GT((*compiled)->bytes(), bytes);  // Runs were launched together.
  EXPECT_EQ((*compiled)->notice(), "");
}

TEST(CudaExecutableTest, RecordsThatAreSwitchedOffAreTold) {
  setenv("TANDEM_CUDA_GRAPHS", "0", 1);
  const CaseGraph graph = Dense();
  const std::unique_ptr<CudaDevice> device = Open();
  const std::unique_ptr<Variables> variables = device->CreateVariables();
  const auto compiled = device->Compile(graph.graph(), variables.get());
  unsetenv("TANDEM_CUDA_GRAPHS");
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_THAT((*compiled)->notice(), HasSubstr("TANDEM_CUDA_GRAPHS is 0"));
}

}  // namespace
}  // namespace tandem
