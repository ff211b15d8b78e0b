#include "engine/backends/cuda/device_communicator.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "engine/backends/cuda/kernels/ranks.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

// Slices begin at multiples of this number of bytes.
constexpr int64_t kLineBytes = 128;

// Returns the first element of a rank's slice.
int64_t SliceBegin(const BufferView& buffer, int rank, int world_size) {
  const int64_t line = kLineBytes / SizeOf(buffer.dtype);
  const int64_t lines = (buffer.elements + line - 1) / line;
  return std::min(buffer.elements, lines * rank / world_size * line);
}

// Returns a number that another process very probably does not have.
int64_t ProcessNumber() {
  static const int64_t number = [] {
    std::random_device random;
    return static_cast<int64_t>(static_cast<uint64_t>(random()) << 31 | random());
  }();
  return number;
}

// Holds the objects that rank 0 creates for its group, by a number that it tells the others. They may ask for
// it after rank 0 has failed and left. Thread-safe.
class Shelf {
 public:
  static Shelf& OfProcess() {
    static Shelf* const shelf = new Shelf;
    return *shelf;
  }
  int64_t Put(const std::shared_ptr<void>& what) {
    MutexLock lock(&mutex_);
    kept_[++last_] = what;
    return last_;
  }
  // Returns null if the object is gone.
  std::shared_ptr<void> Get(int64_t number) {
    MutexLock lock(&mutex_);
    const auto found = kept_.find(number);
    return found == kept_.end() ? nullptr : found->second.lock();
  }
  void Remove(int64_t number) {
    MutexLock lock(&mutex_);
    kept_.erase(number);
  }

 private:
  Mutex mutex_;
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, std::weak_ptr<void>> kept_ ABSL_GUARDED_BY(mutex_);
};

// A rank's data about itself. In a sum over ranks, each card comes from a single rank, so the sum gathers the
// cards.
struct Card {
  int64_t process = 0;
  int64_t ordinal = 0;
  int64_t offers = 0;  // From rank 0: its number on the shelf.
};
constexpr int64_t kCardNumbers = sizeof(Card) / sizeof(int64_t);

}  // namespace

absl::Status DeviceCommunicator::Meet() {
  if (has_met_) return absl::OkStatus();
  const int ranks = world_size();
  std::vector<Card> cards(ranks);
  std::shared_ptr<Offers> own;
  cards[rank()] = {ProcessNumber(), device_->ordinal, 0};
  if (rank() == 0) {
    own = std::make_shared<Offers>(ranks);
    cards[0].offers = Shelf::OfProcess().Put(own);
  }
  const int64_t own_number = cards[rank()].offers;
  const absl::Cleanup leave = [own_number] { Shelf::OfProcess().Remove(own_number); };
  TANDEM_RETURN_IF_ERROR(
      host_->AllReduce({cards.data(), ranks * kCardNumbers, DType::kInt64}, ReduceOp::kSum));
  int64_t reached = 0;
  for (const Card& card : cards) {
    if (card.process != ProcessNumber() || ranks > RankBuffers::kMost) continue;
    TANDEM_ASSIGN_OR_RETURN(const bool reaches, ReachPeer(device_->ordinal, static_cast<int>(card.ordinal)));
    reached += reaches ? 1 : 0;
  }
  TANDEM_RETURN_IF_ERROR(host_->AllReduce({&reached, 1, DType::kInt64}, ReduceOp::kSum));
  if (reached == int64_t{ranks} * ranks) {
    const auto offers = std::static_pointer_cast<Offers>(Shelf::OfProcess().Get(cards[0].offers));
    if (offers == nullptr) {
      TANDEM_RETURN_IF_ERROR(host_->status());
      return absl::AbortedError("rank 0 has left the group while it met");
    }
    TANDEM_ASSIGN_OR_RETURN((*offers)[rank()].ready, Event::Create());
    TANDEM_ASSIGN_OR_RETURN((*offers)[rank()].done, Event::Create());
    offers_ = offers;
  }
  // Rank 0's offers stay on the shelf until all ranks have them.
  TANDEM_RETURN_IF_ERROR(host_->Barrier());
  if (offers_ == nullptr) TANDEM_RETURN_IF_ERROR(others_.Join().status());
  has_met_ = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> DeviceCommunicator::Show(Call call, int root, BufferView buffer, Stream stream) {
  Offer& own = (*offers_)[rank()];
  own.call = call;
  own.root = root;
  own.buffer = buffer;
  TANDEM_RETURN_IF_ERROR(own.ready->Record(stream));
  TANDEM_RETURN_IF_ERROR(host_->Barrier());
  // The host's communicator does or refuses calls that differ or that the GPUs cannot do.
  const bool possible =
      call == Call::kBroadcast ? root >= 0 && root < world_size() : CanSumRanks(buffer.dtype);
  return possible && std::all_of(offers_->begin(), offers_->end(), [&](const Offer& other) {
           return other.call == call && other.root == root && other.buffer.elements == buffer.elements &&
                  other.buffer.dtype == buffer.dtype;
         });
}

absl::Status DeviceCommunicator::End(Stream stream) {
  TANDEM_RETURN_IF_ERROR(CheckLaunches());
  TANDEM_RETURN_IF_ERROR((*offers_)[rank()].done->Record(stream));
  TANDEM_RETURN_IF_ERROR(host_->Barrier());
  for (const Offer& other : *offers_) TANDEM_RETURN_IF_ERROR(other.done->Hold(stream));
  return absl::OkStatus();
}

absl::Status DeviceCommunicator::Reduce(BufferView buffer, ReduceOp op, Stream stream) {
  RankBuffers buffers;
  for (const Offer& other : *offers_) {
    TANDEM_RETURN_IF_ERROR(other.ready->Hold(stream));
    buffers.data[buffers.count++] = other.buffer.data;
  }
  const int ranks = world_size();
  SumRanks(buffers, buffer.dtype, SliceBegin(buffer, rank(), ranks), SliceBegin(buffer, rank() + 1, ranks),
           op == ReduceOp::kAverage ? 1.0 / ranks : 1.0, stream);
  return End(stream);
}

absl::Status DeviceCommunicator::AllReduce(BufferView buffer, ReduceOp op) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  TANDEM_RETURN_IF_ERROR(Meet());
  if (offers_ == nullptr) return others_.AllReduce(buffer, op);
  TANDEM_RETURN_IF_ERROR(reductions_.AwaitAll());
  const Call call = op == ReduceOp::kAverage ? Call::kAverage : Call::kSum;
  TANDEM_ASSIGN_OR_RETURN(const bool possible, Show(call, 0, buffer, device_->stream->get()));
  if (!possible) return others_.AllReduce(buffer, op);
  return Reduce(buffer, op, device_->stream->get());
}

absl::StatusOr<int64_t> DeviceCommunicator::BeginAllReduce(BufferView buffer, ReduceOp op) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  TANDEM_RETURN_IF_ERROR(Meet());
  if (offers_ == nullptr) return others_.BeginAllReduce(buffer, op);
  TANDEM_ASSIGN_OR_RETURN(const Stream stream, reductions_.Begin());
  const Call call = op == ReduceOp::kAverage ? Call::kAverage : Call::kSum;
  TANDEM_ASSIGN_OR_RETURN(const bool possible, Show(call, 0, buffer, stream));
  absl::Status status = possible ? Reduce(buffer, op, stream) : reductions_.AwaitAll();
  if (!possible && status.ok()) status = others_.AllReduce(buffer, op);
  const absl::StatusOr<int64_t> begun = reductions_.End();
  if (status.ok()) return begun;
  // Work that reached the stream still ends before the caller's next use of the memory.
  (void)reductions_.AwaitAll();
  return status;
}

absl::Status DeviceCommunicator::Await(int64_t begun) {
  if (offers_ == nullptr) return others_.Await(begun);
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  TANDEM_RETURN_IF_ERROR(reductions_.Await(begun));
  return host_->status();
}

absl::Status DeviceCommunicator::Broadcast(BufferView buffer, int root) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  TANDEM_RETURN_IF_ERROR(Meet());
  if (offers_ == nullptr) return others_.Broadcast(buffer, root);
  TANDEM_RETURN_IF_ERROR(reductions_.AwaitAll());
  const Stream stream = device_->stream->get();
  TANDEM_ASSIGN_OR_RETURN(const bool possible, Show(Call::kBroadcast, root, buffer, stream));
  if (!possible) return others_.Broadcast(buffer, root);
  if (rank() != root) {
    const Offer& from = (*offers_)[root];
    TANDEM_RETURN_IF_ERROR(from.ready->Hold(stream));
    TANDEM_RETURN_IF_ERROR(
        Copy(buffer.data, from.buffer.data, buffer.elements * SizeOf(buffer.dtype), stream));
  }
  return End(stream);
}

}  // namespace tandem::cuda
