#include "engine/backends/cuda/device_communicator.h"

#include <algorithm>
#include <cstdint>
#include <random>

#include "engine/backends/cuda/kernels/ranks.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

// Slices begin on lines of so many bytes.
constexpr int64_t kLineBytes = 128;

// The first element of a rank's slice.
int64_t SliceBegin(const BufferView& buffer, int rank, int world_size) {
  const int64_t line = kLineBytes / SizeOf(buffer.dtype);
  const int64_t lines = (buffer.elements + line - 1) / line;
  return std::min(buffer.elements, lines * rank / world_size * line);
}

// A number that another process has with next to no probability.
int64_t ProcessNumber() {
  static const int64_t number = [] {
    std::random_device random;
    return static_cast<int64_t>(static_cast<uint64_t>(random()) << 31 | random());
  }();
  return number;
}

// What a rank tells the others of itself. A sum over ranks, all but one of which leave it 0, gathers it.
struct Card {
  int64_t process = 0;
  int64_t ordinal = 0;
  int64_t offers = 0;  // Rank 0's: where the shared pointer is.
};
constexpr int64_t kCardNumbers = sizeof(Card) / sizeof(int64_t);

}  // namespace

absl::Status DeviceCommunicator::Meet() {
  if (has_met_) return absl::OkStatus();
  const int ranks = world_size();
  std::vector<Card> cards(ranks);
  std::shared_ptr<Offers> own;
  if (rank() == 0) own = std::make_shared<Offers>(ranks);
  cards[rank()] = {ProcessNumber(), device_->ordinal, reinterpret_cast<int64_t>(&own)};
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
    offers_ = *reinterpret_cast<const std::shared_ptr<Offers>*>(cards[0].offers);
    TANDEM_ASSIGN_OR_RETURN((*offers_)[rank()].ready, Event::Create());
    TANDEM_ASSIGN_OR_RETURN((*offers_)[rank()].done, Event::Create());
  }
  // Rank 0's pointer is there until all have it.
  TANDEM_RETURN_IF_ERROR(host_->Barrier());
  if (offers_ == nullptr) TANDEM_RETURN_IF_ERROR(others_.Join().status());
  has_met_ = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> DeviceCommunicator::Show(Call call, int root, BufferView buffer) {
  Offer& own = (*offers_)[rank()];
  own.call = call;
  own.root = root;
  own.buffer = buffer;
  TANDEM_RETURN_IF_ERROR(own.ready->Record(device_->stream->get()));
  TANDEM_RETURN_IF_ERROR(host_->Barrier());
  // What differs, or cannot be done here, is for the host's communicator to do or to refuse.
  const bool possible =
      call == Call::kBroadcast ? root >= 0 && root < world_size() : CanSumRanks(buffer.dtype);
  return possible && std::all_of(offers_->begin(), offers_->end(), [&](const Offer& other) {
           return other.call == call && other.root == root && other.buffer.elements == buffer.elements &&
                  other.buffer.dtype == buffer.dtype;
         });
}

absl::Status DeviceCommunicator::End() {
  TANDEM_RETURN_IF_ERROR(CheckLaunches());
  TANDEM_RETURN_IF_ERROR((*offers_)[rank()].done->Record(device_->stream->get()));
  TANDEM_RETURN_IF_ERROR(host_->Barrier());
  for (const Offer& other : *offers_) TANDEM_RETURN_IF_ERROR(other.done->Hold(device_->stream->get()));
  return absl::OkStatus();
}

absl::Status DeviceCommunicator::AllReduce(BufferView buffer, ReduceOp op) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  TANDEM_RETURN_IF_ERROR(Meet());
  if (offers_ == nullptr) return others_.AllReduce(buffer, op);
  const bool average = op == ReduceOp::kAverage;
  TANDEM_ASSIGN_OR_RETURN(const bool possible, Show(average ? Call::kAverage : Call::kSum, 0, buffer));
  if (!possible) return others_.AllReduce(buffer, op);
  RankBuffers buffers;
  for (const Offer& other : *offers_) {
    TANDEM_RETURN_IF_ERROR(other.ready->Hold(device_->stream->get()));
    buffers.data[buffers.count++] = other.buffer.data;
  }
  const int ranks = world_size();
  SumRanks(buffers, buffer.dtype, SliceBegin(buffer, rank(), ranks), SliceBegin(buffer, rank() + 1, ranks),
           average ? 1.0 / ranks : 1.0, device_->stream->get());
  return End();
}

absl::Status DeviceCommunicator::Broadcast(BufferView buffer, int root) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  TANDEM_RETURN_IF_ERROR(Meet());
  if (offers_ == nullptr) return others_.Broadcast(buffer, root);
  TANDEM_ASSIGN_OR_RETURN(const bool possible, Show(Call::kBroadcast, root, buffer));
  if (!possible) return others_.Broadcast(buffer, root);
  if (rank() != root) {
    const Offer& from = (*offers_)[root];
    TANDEM_RETURN_IF_ERROR(from.ready->Hold(device_->stream->get()));
    TANDEM_RETURN_IF_ERROR(
        Copy(buffer.data, from.buffer.data, buffer.elements * SizeOf(buffer.dtype), device_->stream->get()));
  }
  return End();
}

}  // namespace tandem::cuda
