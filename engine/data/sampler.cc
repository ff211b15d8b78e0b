#include "engine/data/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/base/philox.h"
#include "engine/data/dealing.h"

namespace tandem {

namespace {

// The `sample` of RandomPurpose::kShuffle. Shuffling all samples uses 0.
constexpr uint64_t kShardOrder = 1;
constexpr uint64_t kBufferDraws = 2;

void Shuffle(uint64_t seed, int64_t epoch, std::vector<uint32_t>& order) {
  RandomStream random(seed, RandomPurpose::kShuffle, epoch, 0);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.NextBelow(static_cast<uint32_t>(i))]);
  }
}

}  // namespace

std::vector<uint32_t> ShuffledOrder(int64_t samples, uint64_t seed, int64_t epoch) {
  std::vector<uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0);
  Shuffle(seed, epoch, order);
  return order;
}

std::vector<uint32_t> ShardedOrder(const std::vector<int64_t>& ends, int64_t buffer, uint64_t seed,
                                   int64_t epoch) {
  std::vector<uint32_t> shards(ends.size());
  std::iota(shards.begin(), shards.end(), 0);
  RandomStream random(seed, RandomPurpose::kShuffle, epoch, kShardOrder);
  for (size_t i = shards.size(); i > 1; --i) {
    std::swap(shards[i - 1], shards[random.NextBelow(static_cast<uint32_t>(i))]);
  }
  std::vector<uint32_t> order;
  order.reserve(ends.back());
  for (const uint32_t shard : shards) {
    for (int64_t i = shard == 0 ? 0 : ends[shard - 1]; i < ends[shard]; ++i) {
      order.push_back(static_cast<uint32_t>(i));
    }
  }
  // The buffer is a part of `order`: before step i, the samples at [i, i + size of the buffer). So a step
  // swaps the drawn sample to i.
  RandomStream draws(seed, RandomPurpose::kShuffle, epoch, kBufferDraws);
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    const auto held = std::min<int64_t>(buffer, static_cast<int64_t>(order.size() - i));
    std::swap(order[i], order[i + draws.NextBelow(static_cast<uint32_t>(held))]);
  }
  return order;
}

std::vector<uint32_t> BalancedOrder(const ClassSamples& classes, int64_t samples, uint64_t seed,
                                    int64_t epoch) {
  const auto count = static_cast<int64_t>(classes.size());
  // The first class of those with the rounded-up share.
  const int64_t rest = samples % count;
  const int64_t first = (epoch - 1) % count * rest % count;
  std::vector<uint32_t> order;
  order.reserve(samples);
  for (int64_t c = 0; c < count; ++c) {
    std::vector<uint32_t> members = classes[c];
    const auto size = static_cast<int64_t>(members.size());
    int64_t wanted = samples / count + ((c - first + count) % count < rest ? 1 : 0);
    for (; wanted >= size; wanted -= size) order.insert(order.end(), members.begin(), members.end());
    RandomStream random(seed, RandomPurpose::kBalance, epoch, c);
    for (int64_t i = 0; i < wanted; ++i) {
      std::swap(members[i], members[i + random.NextBelow(static_cast<uint32_t>(size - i))]);
      order.push_back(members[i]);
    }
  }
  Shuffle(seed, epoch, order);
  return order;
}

Sampler::Sampler(Options options)
    : options_(std::move(options)),
      full_(std::min(options_.batch, options_.samples)),
      steps_((options_.samples + (options_.drop_last ? 0 : full_ - 1)) / full_),
      last_(std::min(full_, options_.samples - (steps_ - 1) * full_)),
      full_counts_(DealSamples(full_, options_.loads)),
      last_counts_(DealSamples(last_, options_.loads)) {}

std::vector<uint32_t> Sampler::OrderOf(int64_t epoch) const {
  if (!options_.shuffle) {
    std::vector<uint32_t> plain(options_.samples);
    std::iota(plain.begin(), plain.end(), 0);
    return plain;
  }
  if (options_.classes != nullptr) {
    return BalancedOrder(*options_.classes, options_.samples, options_.seed, epoch);
  }
  if (!options_.shard_ends.empty()) {
    return ShardedOrder(options_.shard_ends, options_.shuffle_buffer, options_.seed, epoch);
  }
  return ShuffledOrder(options_.samples, options_.seed, epoch);
}

Sampler::Share Sampler::ShareOf(int64_t epoch, int64_t step, int rank) {
  const int64_t key = options_.shuffle ? epoch : 0;
  Share share;
  {
    MutexLock lock(&mutex_);
    auto& order = orders_[key];
    if (order == nullptr) {
      order = std::make_shared<std::vector<uint32_t>>(OrderOf(epoch));
    }
    share.order = order;
    // Replicas take steps together and queues are short. So a replica is rarely more than an epoch behind,
    // and then has the order computed again.
    orders_.erase(orders_.begin(), orders_.lower_bound(key - 1));
  }
  share.begin = step * full_ + ShareFirst(step, rank);
  share.count = ShareSamples(step, rank);
  return share;
}

int64_t Sampler::ShareFirst(int64_t step, int rank) const {
  const std::vector<int64_t>& counts = Counts(step);
  return std::accumulate(counts.begin(), counts.begin() + rank, int64_t{0});
}

}  // namespace tandem
