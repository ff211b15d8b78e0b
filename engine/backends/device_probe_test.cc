#include "engine/backend/device_probe.h"

#include <memory>
#include <string>
#include <utility>

#include "engine/backend/forwarding_device.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/reference/reference_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

TEST(DeviceProbeTest, WhatWorksPasses) {
  CpuDevice cpu("cpu:0", 1);
  EXPECT_TRUE(ProbeDevice(cpu, 1 << 16).ok());
  EXPECT_TRUE(ProbeDevice(*CreateReferenceDevice(), 1 << 16).ok());
}

// A device whose runs or memory corrupt an element.
class Faulty final : public ForwardingDevice {
 public:
  Faulty(int bad_run, bool bad_memory)
      : ForwardingDevice(std::make_unique<CpuDevice>("cpu:0", 1)),
        bad_run_(bad_run),
        bad_memory_(bad_memory) {}

  std::unique_ptr<Variables> CreateVariables(const Variables*) override {
    return std::make_unique<Memory>(ForwardingDevice::CreateVariables(/*like=*/nullptr), bad_memory_);
  }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph, Variables* variables) override {
    auto inner = ForwardingDevice::Compile(graph, static_cast<Memory*>(variables)->inner.get());
    if (!inner.ok()) return inner.status();
    return std::make_unique<Runs>(*std::move(inner), bad_run_);
  }

 private:
  static void Spoil(Tensor* tensor) { tensor->data<float>()[tensor->elements() / 2] += 1; }

  struct Memory final : Variables {
    Memory(std::unique_ptr<Variables> inner, bool bad) : inner(std::move(inner)), bad(bad) {}
    std::vector<std::string> names() const override { return inner->names(); }
    absl::StatusOr<VariableKind> kind(absl::string_view name) const override { return inner->kind(name); }
    absl::StatusOr<Tensor> Read(absl::string_view name) const override {
      absl::StatusOr<Tensor> tensor = inner->Read(name);
      if (bad && tensor.ok()) Spoil(&*tensor);
      return tensor;
    }
    absl::Status Write(absl::string_view name, const Tensor& value) override {
      return inner->Write(name, value);
    }
    absl::Status Clear(absl::string_view name) override { return inner->Clear(name); }
    absl::StatusOr<BufferView> View(absl::string_view name) override { return inner->View(name); }
    int64_t bytes() const override { return inner->bytes(); }
    const std::unique_ptr<Variables> inner;
    const bool bad;
  };
  struct Runs final : ForwardingExecutable {
    Runs(std::unique_ptr<Executable> inner, int bad_run)
        : ForwardingExecutable(std::move(inner)), bad_run(bad_run) {}
    absl::Status Run(absl::Span<const void* const> inputs, Communicator* communicator) override {
      ++runs;
      return ForwardingExecutable::Run(inputs, communicator);
    }
    absl::StatusOr<Tensor> Output(int i) const override {
      absl::StatusOr<Tensor> tensor = ForwardingExecutable::Output(i);
      if (runs == bad_run && tensor.ok()) Spoil(&*tensor);
      return tensor;
    }
    const int bad_run;
    int runs = 0;
  };

  const int bad_run_;
  const bool bad_memory_;
};

TEST(DeviceProbeTest, WhatIsWrongIsFound) {
  for (const int bad_run : {1, 2, 3}) {
    Faulty device(bad_run, /*bad_memory=*/false);
    const absl::Status status = ProbeDevice(device, 4096);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()), HasSubstr("product"));
  }
  Faulty device(/*bad_run=*/0, /*bad_memory=*/true);
  const absl::Status status = ProbeDevice(device, 4096);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("element 512 of 1024"));
}

}  // namespace
}  // namespace tandem
