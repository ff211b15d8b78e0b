#include "engine/backends/cuda/driver/measure.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/tensor/half.h"

namespace tandem::cuda {
namespace {

// Lives to the end of the process: CUDA may read it after a copy has returned, on systems whose GPUs read the
// host's pages.
template <typename T>
const std::vector<T>& PatternOf() {
  static const std::vector<T>& pattern = *[] {
    auto* made = new std::vector<T>();
    std::minstd_rand engine(1);
    for (int64_t i = 0; i < kRandomPatternLength<T>; ++i) {
      made->push_back(T(static_cast<float>(engine() % 2001) / 1000.0f - 1.0f));
    }
    return made;
  }();
  return pattern;
}

// Calls function(the pattern in the type).
template <typename Function>
void WithPattern(DType type, const Function& function) {
  if (type == DType::kBFloat16) {
    function(PatternOf<BFloat16>());
  } else if (type == DType::kFloat16) {
    function(PatternOf<Float16>());
  } else {
    function(PatternOf<float>());
  }
}

}  // namespace

std::vector<double> RandomPattern(DType type) {
  std::vector<double> numbers;
  WithPattern(type, [&](const auto& pattern) {
    for (const auto number : pattern) numbers.push_back(static_cast<float>(number));
  });
  return numbers;
}

absl::Status CheckRoom(const LibraryOptions& options, int64_t bytes) {
  if (options.room == nullptr) return absl::OkStatus();
  const int64_t room = options.room();
  if (bytes <= room) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("to measure algorithms takes ", bytes, " bytes, and ", room, " are left"));
}

absl::StatusOr<DeviceMemory> RandomNumbers(DType type, int64_t elements, Stream stream) {
  const int64_t bytes = elements * SizeOf(type);
  TANDEM_ASSIGN_OR_RETURN(DeviceMemory memory, DeviceMemory::Allocate(bytes));
  int64_t filled = std::min(bytes, kRandomPatternLength<std::byte>);
  absl::Status copied;
  WithPattern(type,
              [&](const auto& pattern) { copied = Copy(memory.data(), pattern.data(), filled, stream); });
  TANDEM_RETURN_IF_ERROR(copied);
  while (filled < bytes) {
    const int64_t more = std::min(filled, bytes - filled);
    TANDEM_RETURN_IF_ERROR(Copy(memory.data() + filled, memory.data(), more, stream));
    filled += more;
  }
  return memory;
}

absl::StatusOr<double> MeasureSeconds(const OwnedStream& stream,
                                      const std::function<absl::Status(Stream)>& run) {
  constexpr int kRounds = 3;
  constexpr int kRuns = 8;
  // The first run loads code, which must not happen during recording.
  TANDEM_RETURN_IF_ERROR(run(stream.get()));
  TANDEM_RETURN_IF_ERROR(stream.Synchronize());
  TANDEM_RETURN_IF_ERROR(RecordedWork::Begin(stream.get()));
  absl::Status status;
  for (int i = 0; i < kRuns && status.ok(); ++i) status = run(stream.get());
  absl::StatusOr<std::unique_ptr<RecordedWork>> work = RecordedWork::End(stream.get());
  if (status.ok()) status = work.status();
  if (!status.ok()) {
    (void)CheckLaunches();  // Clears the error of a failed record, which means nothing later.
    return status;
  }
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Event> begin, Event::Create(/*timed=*/true));
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Event> end, Event::Create(/*timed=*/true));
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    TANDEM_RETURN_IF_ERROR(begin->Record(stream.get()));
    TANDEM_RETURN_IF_ERROR((*work)->Launch(stream.get()));
    TANDEM_RETURN_IF_ERROR(end->Record(stream.get()));
    TANDEM_RETURN_IF_ERROR(stream.Synchronize());
    TANDEM_ASSIGN_OR_RETURN(const double seconds, Event::SecondsBetween(*begin, *end));
    best = std::min(best, seconds / kRuns);
  }
  return best;
}

}  // namespace tandem::cuda
