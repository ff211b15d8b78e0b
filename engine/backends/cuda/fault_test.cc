// A real fault of a GPU, which no process survives. The process reports it correctly, and the next process
// works.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/backends/cuda/kernels/elementwise.h"
#include "gtest/gtest.h"

namespace tandem::cuda {
namespace {

// The exit code of the failing process after it has reported the fault in all ways.
constexpr int kTold = 7;

// Returns whether a worker recognises that its process must end.
bool TellsTheEnd(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.code() == absl::StatusCode::kInternal && absl::StartsWith(status.message(), "cuda: ");
}

[[noreturn]] void Fault() {
  if (!UseDevice(0).ok()) std::_Exit(1);
  const auto stream = OwnedStream::Create();
  if (!stream.ok()) std::_Exit(2);
  auto* const nowhere = reinterpret_cast<double*>(uintptr_t{256});
  ScaleNumber(nowhere, 2, nowhere, (*stream)->get());
  // The next call of any kind may return the fault.
  if (!TellsTheEnd((*stream)->Synchronize())) std::_Exit(3);
  if (!TellsTheEnd(DeviceMemory::Allocate(256).status())) std::_Exit(4);
  if (!TellsTheEnd(WithFault(absl::InternalError("a library's own words")))) std::_Exit(5);
  std::_Exit(kTold);
}

TEST(FaultDeathTest, AFaultIsToldAndTheNextProcessWorks) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const absl::StatusOr<int> devices = CountDevices();
  if (!devices.ok() || *devices == 0) GTEST_SKIP() << "no GPU: " << devices.status();
  EXPECT_EXIT(Fault(), testing::ExitedWithCode(kTold), "cudaErrorIllegalAddress");
  ASSERT_TRUE(UseDevice(0).ok());
  const auto stream = OwnedStream::Create();
  ASSERT_TRUE(stream.ok()) << stream.status();
  const absl::StatusOr<DeviceMemory> memory = DeviceMemory::Allocate(256);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const double three = 3;
  auto* const number = reinterpret_cast<double*>(memory->data());
  ASSERT_TRUE(Copy(number, &three, sizeof(three), (*stream)->get()).ok());
  ScaleNumber(number, 2, number, (*stream)->get());
  double six = 0;
  ASSERT_TRUE(Copy(&six, number, sizeof(six), (*stream)->get()).ok());
  const absl::Status status = (*stream)->Synchronize();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(six, 6);
}

}  // namespace
}  // namespace tandem::cuda
