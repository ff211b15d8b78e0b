#ifndef TANDEM_ENGINE_BACKEND_LATE_COMMUNICATOR_H_
#define TANDEM_ENGINE_BACKEND_LATE_COMMUNICATOR_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/backend/communicator.h"
#include "engine/tensor/dtype.h"

namespace tandem {

// A communicator over host memory for tests of executables. It acts as if a second rank had the same
// elements, so sums are twice the input. A begun reduction ends only at its Await. Until then its elements
// hold rubbish, and changes to them are counted. Used by a single thread.
class LateCommunicator final : public Communicator {
 public:
  // If not `is_late`, every reduction ends at once.
  explicit LateCommunicator(bool is_late) : is_late_(is_late) {}

  int rank() const override { return 0; }
  int world_size() const override { return 2; }

  absl::Status AllReduce(BufferView buffer, ReduceOp) override {
    const absl::StatusOr<int64_t> begun = Start(buffer);
    return begun.ok() ? Finish(*begun) : begun.status();
  }
  absl::StatusOr<int64_t> BeginAllReduce(BufferView buffer, ReduceOp) override {
    ++begun_;
    return Start(buffer);
  }
  absl::Status Await(int64_t begun) override { return Finish(begun); }
  absl::Status Broadcast(BufferView, int) override { return status_; }
  absl::Status Barrier() override { return status_; }
  void Abort(absl::Status status) override { status_ = std::move(status); }
  absl::Status status() const override { return status_; }

  // Lets reduction number `reduction`, from 0, fail at its begin. The group fails with it.
  void FailAt(int64_t reduction, absl::Status failure) {
    failing_ = reduction;
    failure_ = std::move(failure);
  }

  // Return the number of all reductions so far, and of those by BeginAllReduce.
  int64_t reductions() const { return reductions_; }
  int64_t begun() const { return begun_; }
  int64_t going_on() const { return static_cast<int64_t>(going_on_.size()); }
  int64_t most_going_on() const { return most_going_on_; }
  // Returns the number of reductions whose elements changed before Await.
  int64_t touched() const { return touched_; }

 private:
  static constexpr char kRubbish = static_cast<char>(0xff);  // NaN as a number.

  struct Reduction {
    BufferView buffer;
    std::vector<char> kept;
  };

  absl::StatusOr<int64_t> Start(BufferView buffer) {
    if (reductions_++ == failing_) {
      status_ = failure_;
      return status_;
    }
    const int64_t bytes = buffer.elements * SizeOf(buffer.dtype);
    Reduction reduction = {.buffer = buffer, .kept = std::vector<char>(bytes)};
    std::memcpy(reduction.kept.data(), buffer.data, bytes);
    std::memset(buffer.data, kRubbish, bytes);
    going_on_.push_back(std::move(reduction));
    if (!is_late_) (void)Finish(reductions_);
    most_going_on_ = std::max(most_going_on_, going_on());
    return reductions_;
  }

  absl::Status Finish(int64_t begun) {
    while (finished_ < begun && !going_on_.empty()) {
      const Reduction& reduction = going_on_.front();
      auto* bytes = static_cast<char*>(reduction.buffer.data);
      const bool whole =
          std::all_of(bytes, bytes + reduction.kept.size(), [](char byte) { return byte == kRubbish; });
      if (!whole) ++touched_;
      std::memcpy(bytes, reduction.kept.data(), reduction.kept.size());
      if (reduction.buffer.dtype == DType::kFloat32) {
        Double(static_cast<float*>(reduction.buffer.data), reduction.buffer.elements);
      } else {
        Double(static_cast<double*>(reduction.buffer.data), reduction.buffer.elements);
      }
      going_on_.pop_front();
      ++finished_;
    }
    return status_;
  }

  template <typename T>
  static void Double(T* elements, int64_t count) {
    for (int64_t i = 0; i < count; ++i) elements[i] += elements[i];
  }

  const bool is_late_;
  std::deque<Reduction> going_on_;
  int64_t reductions_ = 0;
  int64_t begun_ = 0;
  int64_t finished_ = 0;
  int64_t most_going_on_ = 0;
  int64_t touched_ = 0;
  int64_t failing_ = -1;
  absl::Status failure_;
  absl::Status status_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_LATE_COMMUNICATOR_H_
