#include "engine/collectives/gloo/gloo_group.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"
#include "engine/collectives/background_communicator.h"
#include "engine/collectives/gloo/peer_line.h"
#include "engine/collectives/offer.h"
#include "engine/collectives/rank_order_sum.h"
#include "engine/tensor/dtype.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/store.h"
#include "gloo/transport/tcp/device.h"
#include "gloo/transport/unbound_buffer.h"

namespace tandem {
namespace {

// Gloo needs a limit for each wait. The lines detect silence.
constexpr std::chrono::hours kNoLimit(24 * 365);
// The piece of each rank's slice that is reduced at a time, in bytes. It bounds the extra memory for large
// buffers.
constexpr int64_t kSliceBytes = int64_t{4} << 20;
// The longest time that an ending group waits for acknowledgements, of all ranks together.
constexpr absl::Duration kFarewell = absl::Seconds(2);

// Gloo's view of a rendezvous. Throws gloo::Exception, which ConnectGlooGroup catches.
class StoreOfRendezvous final : public gloo::rendezvous::Store {
 public:
  StoreOfRendezvous(Rendezvous& rendezvous, absl::string_view prefix, absl::Duration deadline)
      : rendezvous_(rendezvous), prefix_(prefix), deadline_(deadline) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    Check(rendezvous_.Publish(KeyOf(key), std::string(data.begin(), data.end())));
  }
  std::vector<char> get(const std::string& key) override {
    const absl::StatusOr<std::string> value =
        rendezvous_.Await(KeyOf(key), deadline_ - Clock::Real()->Elapsed());
    Check(value.status());
    return std::vector<char>(value->begin(), value->end());
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }

  const absl::Status& status() const { return status_; }

 private:
  // Gloo's key is a rank's number.
  std::string KeyOf(const std::string& key) const { return absl::StrCat(prefix_, "-", key); }
  void Check(const absl::Status& status) {
    if (status.ok()) return;
    status_ = status;
    throw gloo::Exception(std::string(status.message()));
  }

  Rendezvous& rendezvous_;
  const std::string prefix_;
  const absl::Duration deadline_;
  absl::Status status_;
};

// Gloo may write to closed connections. This must be an error and not end the process.
void IgnoreBrokenPipes() {
  struct sigaction now = {};
  if (sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) signal(SIGPIPE, SIG_IGN);
}

class GlooCommunicator final : public Communicator, public PeerListener {
 public:
  GlooCommunicator(const GlooOptions& options, std::unique_ptr<gloo::Context> data,
                   std::unique_ptr<gloo::Context> talk)
      : options_(options), data_(std::move(data)), talk_(std::move(talk)) {
    const absl::Duration sign_every = std::min(options_.silence_limit / 8, absl::Seconds(1));
    lines_.resize(options_.world_size);
    for (int peer = 0; peer < options_.world_size; ++peer) {
      if (peer == options_.rank) continue;
      lines_[peer] = std::make_unique<PeerLine>(talk_.get(), peer, sign_every, this);
    }
    // Lines start after all exist, because a message of one is passed to all.
    ForEachLine([](PeerLine& line) { line.Start(); });
    watch_ = std::thread([this, sign_every] { Watch(sign_every); });
  }

  ~GlooCommunicator() override {
    {
      MutexLock lock(&mutex_);
      ending_ = true;
    }
    watch_.join();
    ForEachLine([](PeerLine& line) { line.Leave(); });
    const absl::Duration deadline = Clock::Real()->Elapsed() + kFarewell;
    ForEachLine([&](PeerLine& line) { line.Stop(deadline); });
  }

  int rank() const override { return options_.rank; }
  int world_size() const override { return options_.world_size; }

  absl::Status AllReduce(BufferView buffer, ReduceOp op) override {
    const bool average = op == ReduceOp::kAverage;
    const CollectiveCall call = average ? CollectiveCall::kAverage : CollectiveCall::kSum;
    TANDEM_RETURN_IF_ERROR(Meet({.call = call, .dtype = buffer.dtype, .elements = buffer.elements}));
    const int64_t element_bytes = SizeOf(buffer.dtype);
    const int64_t at_a_time = kSliceBytes / element_bytes * world_size();
    for (int64_t begin = 0; begin < buffer.elements; begin += at_a_time) {
      const BufferView part = {static_cast<char*>(buffer.data) + begin * element_bytes,
                               std::min(at_a_time, buffer.elements - begin), buffer.dtype};
      TANDEM_RETURN_IF_ERROR(ReducePart(part, average ? 1.0 / world_size() : 1.0));
    }
    return absl::OkStatus();
  }

  absl::Status Broadcast(BufferView buffer, int root) override {
    TANDEM_RETURN_IF_ERROR(Meet({.call = CollectiveCall::kBroadcast,
                                 .dtype = buffer.dtype,
                                 .root = root,
                                 .elements = buffer.elements}));
    const int64_t bytes = buffer.elements * SizeOf(buffer.dtype);
    std::vector<char> unwanted;
    if (buffer.data == nullptr) {
      unwanted.resize(bytes);
      buffer.data = unwanted.data();
    }
    Transfers transfers;
    for (int peer = 0; peer < world_size(); ++peer) {
      if (peer == rank()) continue;
      if (rank() == root)
        transfers.push_back({.peer = peer, .send = true, .data = buffer.data, .bytes = bytes});
      if (peer == root)
        transfers.push_back({.peer = peer, .send = false, .data = buffer.data, .bytes = bytes});
    }
    return Exchange(transfers);
  }

  absl::Status Barrier() override { return Meet({.call = CollectiveCall::kBarrier}); }

  // Returns when the others know. So of two aborts, one after the other, the first counts for all ranks. Does
  // not wait longer than kFarewell for ranks that hang.
  void Abort(absl::Status status) override {
    End(std::move(status), /*tell=*/true);
    const absl::Duration deadline = Clock::Real()->Elapsed() + kFarewell;
    ForEachLine([&](PeerLine& line) { line.AwaitKnown(deadline); });
  }

  absl::Status status() const override {
    MutexLock lock(&mutex_);
    return status_;
  }

 private:
  // Data to or from a peer.
  struct Transfer {
    int peer = 0;
    bool send = false;
    void* data = nullptr;
    int64_t bytes = 0;
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer = nullptr;
  };
  using Transfers = std::vector<Transfer>;

  // Returns when all ranks have made this call, with the result of CheckOffers.
  absl::Status Meet(const Offer& offer) {
    std::vector<Offer> offers(world_size());
    Offer mine = offer;
    Transfers transfers;
    for (int peer = 0; peer < world_size(); ++peer) {
      offers[peer] = offer;
      if (peer == rank()) continue;
      transfers.push_back({.peer = peer, .send = true, .data = &mine, .bytes = sizeof(Offer)});
      transfers.push_back({.peer = peer, .send = false, .data = &offers[peer], .bytes = sizeof(Offer)});
    }
    TANDEM_RETURN_IF_ERROR(Exchange(transfers));
    return CheckOffers(offers);
  }

  // Returns the first element of `part` that `rank` adds.
  int64_t SliceBegin(const BufferView& part, int rank) const { return part.elements * rank / world_size(); }

  absl::Status ReducePart(const BufferView& part, double factor) {
    const int64_t element_bytes = SizeOf(part.dtype);
    const auto slice = [&](int rank) {
      const int64_t begin = SliceBegin(part, rank);
      return std::pair(static_cast<char*>(part.data) + begin * element_bytes,
                       (SliceBegin(part, rank + 1) - begin) * element_bytes);
    };
    const auto [own, own_bytes] = slice(rank());
    received_.resize(std::max<int64_t>(received_.size(), own_bytes * (world_size() - 1)));
    std::vector<const void*> terms(world_size());
    Transfers gather, scatter;
    char* free = received_.data();
    for (int peer = 0; peer < world_size(); ++peer) {
      terms[peer] = own;
      if (peer == rank()) continue;
      const auto [theirs, their_bytes] = slice(peer);
      gather.push_back({.peer = peer, .send = false, .data = free, .bytes = own_bytes});
      gather.push_back({.peer = peer, .send = true, .data = theirs, .bytes = their_bytes});
      scatter.push_back({.peer = peer, .send = false, .data = theirs, .bytes = their_bytes});
      scatter.push_back({.peer = peer, .send = true, .data = own, .bytes = own_bytes});
      terms[peer] = free;
      free += own_bytes;
    }
    TANDEM_RETURN_IF_ERROR(Exchange(gather));
    SumInRankOrder(part.dtype, terms, own_bytes / element_bytes, factor, {own});
    return Exchange(scatter);
  }

  // Starts all transfers and returns when all have ended, or when the group has ended. All ranks make the
  // same calls in the same order, so they agree on the slot.
  absl::Status Exchange(Transfers& transfers) {
    const uint64_t slot = slot_++;
    // Gloo has no transfers of zero bytes.
    transfers.erase(std::remove_if(transfers.begin(), transfers.end(),
                                   [](const Transfer& one) { return one.bytes == 0; }),
                    transfers.end());
    for (Transfer& one : transfers) one.buffer = data_->createUnboundBuffer(one.data, one.bytes);
    int waits_for = -1;
    {
      MutexLock lock(&mutex_);
      if (!status_.ok()) return status_;
      current_ = &transfers;
      waits_for_ = -1;
      waits_since_ = Clock::Real()->Elapsed();
    }
    bool done = true;
    try {
      for (Transfer& one : transfers) {
        waits_for = one.peer;
        one.send ? one.buffer->send(one.peer, slot) : one.buffer->recv(one.peer, slot);
      }
      for (Transfer& one : transfers) {
        waits_for = one.peer;
        {
          MutexLock lock(&mutex_);
          waits_for_ = one.peer;
          if (!status_.ok()) done = false;
        }
        if (!done) break;
        done = one.send ? one.buffer->waitSend(kNoLimit) : one.buffer->waitRecv(kNoLimit);
        if (!done) break;
      }
    } catch (const std::exception& error) {
      done = false;
      PeerLost(waits_for, error.what());
    }
    MutexLock lock(&mutex_);
    current_ = nullptr;
    if (done) return absl::OkStatus();
    // The buffers end here, and Gloo releases their memory.
    transfers.clear();
    return status_.ok() ? absl::InternalError("a transfer ended without a reason") : status_;
  }

  // Ends the group. The first reason counts. `tell` says whether to tell the other ranks.
  void End(absl::Status status, bool tell) {
    {
      MutexLock lock(&mutex_);
      if (!status_.ok()) return;
      status_ = status;
      WakeCall();
    }
    if (tell) ForEachLine([&](PeerLine& line) { line.Abort(status); });
  }

  template <typename Function>
  void ForEachLine(const Function& function) {
    for (const std::unique_ptr<PeerLine>& line : lines_) {
      if (line != nullptr) function(*line);
    }
  }

  void WakeCall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (current_ == nullptr) return;
    for (const Transfer& one : *current_) {
      one.send ? one.buffer->abortWaitSend() : one.buffer->abortWaitRecv();
    }
  }

  std::string NameOf(int peer) const {
    const bool noted = peer < static_cast<int>(options_.notes.size());
    return absl::StrCat("rank ", peer, " of ", world_size(),
                        noted ? absl::StrCat(" (", options_.notes[peer], ")") : "");
  }

  void PeerAborted(int, absl::Status status) override { End(std::move(status), /*tell=*/false); }

  void PeerLost(int peer, absl::string_view why) override {
    End(absl::UnavailableError(lines_[peer]->left() ? absl::StrCat(NameOf(peer), " has left the group")
                                                    : absl::StrCat(NameOf(peer), " was lost: ", why)),
        /*tell=*/true);
  }

  // Watches for silent ranks and for calls that take too long, until the end.
  void Watch(absl::Duration every) {
    while (true) {
      bool ended, called_too_long;
      int waits_for;
      {
        MutexLock lock(&mutex_);
        mutex_.AwaitWithTimeout(absl::Condition(&ending_), status_.ok() ? every : absl::Milliseconds(5));
        if (ending_) return;
        ended = !status_.ok();
        // Repeated, because a wait that begins after the wake-up would miss it.
        if (ended) WakeCall();
        waits_for = waits_for_;
        called_too_long = current_ != nullptr && waits_for >= 0 &&
                          Clock::Real()->Elapsed() - waits_since_ > options_.call_limit;
        if (ended && current_ == nullptr) return;
      }
      if (ended) continue;
      if (called_too_long) {
        End(absl::DeadlineExceededError(absl::StrCat(NameOf(waits_for), " has not come to a call within ",
                                                     absl::FormatDuration(options_.call_limit))),
            /*tell=*/true);
      }
      for (int peer = 0; peer < world_size(); ++peer) {
        if (lines_[peer] == nullptr || lines_[peer]->left()) continue;
        const absl::Duration silence = Clock::Real()->Elapsed() - lines_[peer]->last_heard();
        if (silence <= options_.silence_limit) continue;
        End(absl::UnavailableError(
                absl::StrCat(NameOf(peer), " has been silent for ",
                             absl::FormatDuration(absl::Trunc(silence, absl::Milliseconds(100))),
                             ": its process, its host or the network hangs")),
            /*tell=*/true);
      }
    }
  }

  const GlooOptions options_;
  const std::unique_ptr<gloo::Context> data_;
  const std::unique_ptr<gloo::Context> talk_;
  uint64_t slot_ = 0;           // Used by the calling thread.
  std::vector<char> received_;  // Used by the calling thread: other ranks' elements of this rank's slice.

  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  Transfers* current_ ABSL_GUARDED_BY(mutex_) = nullptr;  // Of the running call.
  int waits_for_ ABSL_GUARDED_BY(mutex_) = -1;            // The peer for which the running call waits.
  absl::Duration waits_since_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<std::unique_ptr<PeerLine>> lines_;  // By peer.
  std::thread watch_;
};

// Connects to each other rank. `purpose` is a part of the keys by which ranks find each other.
absl::StatusOr<std::unique_ptr<gloo::Context>> ConnectAll(const GlooOptions& options, Rendezvous& rendezvous,
                                                          absl::string_view purpose,
                                                          absl::Duration deadline) {
  StoreOfRendezvous store(rendezvous, purpose, deadline);
  try {
    std::shared_ptr<gloo::transport::Device> device =
        gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(options.host.c_str()));
    auto context = std::make_unique<gloo::rendezvous::Context>(options.rank, options.world_size);
    context->setTimeout(absl::ToChronoMilliseconds(options.connect_timeout));
    context->connectFullMesh(store, device);
    return context;
  } catch (const std::exception& error) {
    const std::string who =
        absl::StrCat("rank ", options.rank, " of ", options.world_size, " at ", options.host);
    if (!store.status().ok()) {
      return absl::Status(store.status().code(), absl::StrCat(who, ": ", store.status().message()));
    }
    return absl::UnavailableError(absl::StrCat(who, " could not connect to the others: ", error.what()));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> ConnectGlooGroup(const GlooOptions& options,
                                                               Rendezvous& rendezvous) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", options.rank, " is not one of a world of ", options.world_size));
  }
  IgnoreBrokenPipes();
  const absl::Duration deadline = Clock::Real()->Elapsed() + options.connect_timeout;
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<gloo::Context> data,
                          ConnectAll(options, rendezvous, "data", deadline));
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<gloo::Context> talk,
                          ConnectAll(options, rendezvous, "talk", deadline));
  return std::make_unique<BackgroundCommunicator>(
      std::make_unique<GlooCommunicator>(options, std::move(data), std::move(talk)));
}

}  // namespace tandem
