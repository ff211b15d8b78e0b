#include "engine/backend/communicator_conformance.h"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/tensor/half.h"

namespace tandem {
namespace {

constexpr int kMostRanks = 8;
// Sizes around the limits of splits and vectors.
constexpr int64_t kSizes[] = {1, 2, 3, 17, 64, 1000, 4099, 70001};

using Group = std::vector<std::unique_ptr<Communicator>>;

// Runs `body` on a separate thread for each rank, and waits for all.
void OnEachRank(const Group& group, const std::function<void(Communicator&)>& body) {
  std::vector<std::thread> threads;
  for (const std::unique_ptr<Communicator>& communicator : group) {
    threads.emplace_back([&body, &communicator] { body(*communicator); });
  }
  for (std::thread& thread : threads) thread.join();
}

template <typename T>
BufferView ViewOf(std::vector<T>& elements) {
  return {elements.data(), static_cast<int64_t>(elements.size()), DTypeOf<T>::value};
}

// Returns small whole numbers that depend on rank and place, so that sums are exact in every type.
template <typename T>
std::vector<T> WholeNumbers(int rank, int64_t size, int round = 0) {
  std::vector<T> elements(size);
  for (int64_t i = 0; i < size; ++i) {
    elements[i] = static_cast<T>((i * 7 + rank * 31 + round * 13) % 101 - 50);
  }
  return elements;
}

// Returns elements that depend on the rank, of many magnitudes, which make the order of additions visible.
std::vector<float> OfManyMagnitudes(int rank, int64_t size) {
  std::vector<float> elements(size);
  for (int64_t i = 0; i < size; ++i) {
    elements[i] = std::ldexp(std::sin(1.0f + i * 0.7f + rank * 1.3f), static_cast<int>((i + rank * 5) % 20));
  }
  return elements;
}

template <typename T>
std::vector<T> SumOfWholeNumbers(int world_size, int64_t size, int round = 0) {
  std::vector<T> sum(size, T{0});
  for (int rank = 0; rank < world_size; ++rank) {
    const std::vector<T> terms = WholeNumbers<T>(rank, size, round);
    for (int64_t i = 0; i < size; ++i) sum[i] += terms[i];
  }
  return sum;
}

template <typename T>
void CheckSums(const CommunicatorMaker& maker) {
  for (int world_size = 1; world_size <= kMostRanks; ++world_size) {
    const Group group = maker.make(world_size);
    ASSERT_EQ(group.size(), static_cast<size_t>(world_size));
    for (const int64_t size : kSizes) {
      const std::vector<T> expected = SumOfWholeNumbers<T>(world_size, size);
      OnEachRank(group, [&](Communicator& communicator) {
        std::vector<T> elements = WholeNumbers<T>(communicator.rank(), size);
        EXPECT_TRUE(communicator.AllReduce(ViewOf(elements), ReduceOp::kSum).ok());
        EXPECT_TRUE(elements == expected) << "rank " << communicator.rank() << " of " << world_size << ", "
                                          << size << " elements of " << ToString(DTypeOf<T>::value);
      });
    }
  }
}

template <typename T>
void CheckAverages(const CommunicatorMaker& maker, double tolerance) {
  for (int world_size = 1; world_size <= kMostRanks; ++world_size) {
    const Group group = maker.make(world_size);
    for (const int64_t size : kSizes) {
      const std::vector<T> sum = SumOfWholeNumbers<T>(world_size, size);
      OnEachRank(group, [&](Communicator& communicator) {
        std::vector<T> elements = WholeNumbers<T>(communicator.rank(), size);
        EXPECT_TRUE(communicator.AllReduce(ViewOf(elements), ReduceOp::kAverage).ok());
        for (int64_t i = 0; i < size; ++i) {
          const double difference =
              std::fabs(static_cast<double>(elements[i]) - static_cast<double>(sum[i]) / world_size);
          if (!(difference <= tolerance)) {
            ADD_FAILURE() << "rank " << communicator.rank() << " of " << world_size << ", element " << i
                          << " of " << size << ": " << elements[i] << " is off by " << difference;
            return;
          }
        }
      });
    }
  }
}

// Checks 16-bit numbers: exact sums, and averages to the precision of the type.
template <typename T>
void CheckNarrow(const CommunicatorMaker& maker, double precision) {
  const auto number = [](int rank, int64_t i) { return static_cast<float>((i * 5 + rank * 3) % 15 - 7); };
  for (int world_size = 1; world_size <= kMostRanks; ++world_size) {
    const Group group = maker.make(world_size);
    for (const int64_t size : kSizes) {
      OnEachRank(group, [&](Communicator& communicator) {
        std::vector<T> sums(size);
        for (int64_t i = 0; i < size; ++i) sums[i] = T(number(communicator.rank(), i));
        std::vector<T> means = sums;
        EXPECT_TRUE(communicator.AllReduce(ViewOf(sums), ReduceOp::kSum).ok());
        EXPECT_TRUE(communicator.AllReduce(ViewOf(means), ReduceOp::kAverage).ok());
        for (int64_t i = 0; i < size; ++i) {
          float sum = 0;
          for (int rank = 0; rank < world_size; ++rank) sum += number(rank, i);
          const double difference =
              std::fabs(static_cast<float>(means[i]) - sum / static_cast<float>(world_size));
          if (static_cast<float>(sums[i]) == sum && difference <= precision * 8) continue;
          ADD_FAILURE() << "rank " << communicator.rank() << " of " << world_size << ", element " << i
                        << " of " << size << ": " << static_cast<float>(sums[i]) << " and "
                        << static_cast<float>(means[i]) << ", not " << sum << " and its mean";
          return;
        }
      });
    }
  }
}

// Runs `call` on all ranks of a new group except the last rank, which aborts instead.
void CheckAbortReleases(const CommunicatorMaker& maker, int world_size,
                        const std::function<absl::Status(Communicator&)>& call) {
  const Group group = maker.make(world_size);
  const absl::Status reason = absl::DataLossError("rank lost its device");
  OnEachRank(group, [&](Communicator& communicator) {
    if (communicator.rank() == world_size - 1) {
      communicator.Abort(reason);
    } else {
      EXPECT_EQ(call(communicator), reason) << "rank " << communicator.rank() << " of " << world_size;
    }
  });
  // The group stays aborted, also for the rank that aborted.
  OnEachRank(group, [&](Communicator& communicator) {
    EXPECT_EQ(call(communicator), reason) << "rank " << communicator.rank() << " of " << world_size;
    EXPECT_EQ(communicator.Barrier(), reason) << "rank " << communicator.rank() << " of " << world_size;
  });
}

}  // namespace

TEST_P(CommunicatorConformance, KnowsRanksAndSize) {
  for (int world_size = 1; world_size <= kMostRanks; ++world_size) {
    const Group group = GetParam().make(world_size);
    ASSERT_EQ(group.size(), static_cast<size_t>(world_size));
    for (int rank = 0; rank < world_size; ++rank) {
      EXPECT_EQ(group[rank]->rank(), rank);
      EXPECT_EQ(group[rank]->world_size(), world_size);
    }
  }
}

TEST_P(CommunicatorConformance, SumsFloat32) { CheckSums<float>(GetParam()); }
TEST_P(CommunicatorConformance, SumsFloat64) { CheckSums<double>(GetParam()); }
TEST_P(CommunicatorConformance, SumsInt32) { CheckSums<int32_t>(GetParam()); }
TEST_P(CommunicatorConformance, SumsInt64) { CheckSums<int64_t>(GetParam()); }

TEST_P(CommunicatorConformance, KeepsAllBitsOfInt64) {
  const int64_t kLarge = (int64_t{1} << 60) + 1;
  const Group group = GetParam().make(3);
  OnEachRank(group, [&](Communicator& communicator) {
    std::vector<int64_t> elements(5, kLarge);
    EXPECT_TRUE(communicator.AllReduce(ViewOf(elements), ReduceOp::kSum).ok());
    EXPECT_EQ(elements, std::vector<int64_t>(5, 3 * kLarge));
  });
}

TEST_P(CommunicatorConformance, SumsBytesThatWrapAround) {
  const Group group = GetParam().make(3);
  OnEachRank(group, [](Communicator& communicator) {
    std::vector<uint8_t> elements(70, static_cast<uint8_t>(100 + communicator.rank()));
    EXPECT_TRUE(communicator.AllReduce(ViewOf(elements), ReduceOp::kSum).ok());
    EXPECT_EQ(elements, std::vector<uint8_t>(70, 303 - 256));
  });
}

TEST_P(CommunicatorConformance, ReducesBFloat16) { CheckNarrow<BFloat16>(GetParam(), 0x1p-8); }
TEST_P(CommunicatorConformance, ReducesFloat16) { CheckNarrow<Float16>(GetParam(), 0x1p-11); }

TEST_P(CommunicatorConformance, AveragesFloat32) { CheckAverages<float>(GetParam(), 1e-5); }
TEST_P(CommunicatorConformance, AveragesFloat64) { CheckAverages<double>(GetParam(), 1e-13); }

TEST_P(CommunicatorConformance, RefusesToAverageIntegers) {
  const Group group = GetParam().make(2);
  OnEachRank(group, [](Communicator& communicator) {
    std::vector<int32_t> elements(4, 1);
    EXPECT_EQ(communicator.AllReduce(ViewOf(elements), ReduceOp::kAverage).code(),
              absl::StatusCode::kInvalidArgument);
  });
}

TEST_P(CommunicatorConformance, GivesAllRanksTheSameBitsEachTime) {
  constexpr int64_t kSize = 4099;
  for (const int world_size : {2, 3, 5, 8}) {
    std::vector<std::vector<float>> first;
    for (int round = 0; round < 2; ++round) {
      const Group group = GetParam().make(world_size);
      std::vector<std::vector<float>> results(world_size);
      OnEachRank(group, [&](Communicator& communicator) {
        std::vector<float> elements = OfManyMagnitudes(communicator.rank(), kSize);
        EXPECT_TRUE(communicator.AllReduce(ViewOf(elements), ReduceOp::kSum).ok());
        results[communicator.rank()] = std::move(elements);
      });
      if (round == 0) first = results;
      for (const std::vector<float>& result : results) {
        EXPECT_EQ(std::memcmp(result.data(), first[0].data(), kSize * sizeof(float)), 0);
      }
    }
  }
}

TEST_P(CommunicatorConformance, SpreadsNaN) {
  const Group group = GetParam().make(3);
  OnEachRank(group, [](Communicator& communicator) {
    std::vector<float> elements(7, 1.0f);
    if (communicator.rank() == 1) elements[4] = std::nanf("");
    EXPECT_TRUE(communicator.AllReduce(ViewOf(elements), ReduceOp::kSum).ok());
    for (size_t i = 0; i < elements.size(); ++i) EXPECT_EQ(std::isnan(elements[i]), i == 4);
  });
}

TEST_P(CommunicatorConformance, BroadcastsFromEachRoot) {
  for (int world_size = 1; world_size <= kMostRanks; ++world_size) {
    const Group group = GetParam().make(world_size);
    for (int root = 0; root < world_size; ++root) {
      for (const int64_t size : {int64_t{1}, int64_t{17}, int64_t{4099}}) {
        OnEachRank(group, [&](Communicator& communicator) {
          std::vector<double> elements = WholeNumbers<double>(communicator.rank(), size);
          EXPECT_TRUE(communicator.Broadcast(ViewOf(elements), root).ok());
          EXPECT_TRUE(elements == WholeNumbers<double>(root, size))
              << "rank " << communicator.rank() << " of " << world_size << ", root " << root;
        });
      }
    }
  }
}

TEST_P(CommunicatorConformance, BroadcastsBytes) {
  const Group group = GetParam().make(3);
  OnEachRank(group, [](Communicator& communicator) {
    std::vector<uint8_t> elements(13, static_cast<uint8_t>(communicator.rank() + 250));
    EXPECT_TRUE(communicator.Broadcast(ViewOf(elements), 2).ok());
    EXPECT_EQ(elements, std::vector<uint8_t>(13, 252));
  });
}

TEST_P(CommunicatorConformance, RefusesARootThatIsNoRank) {
  for (const int root : {-1, 2}) {
    const Group group = GetParam().make(2);
    OnEachRank(group, [root](Communicator& communicator) {
      std::vector<float> elements(4, 1.0f);
      EXPECT_EQ(communicator.Broadcast(ViewOf(elements), root).code(), absl::StatusCode::kInvalidArgument);
    });
  }
}

TEST_P(CommunicatorConformance, BarrierHoldsUntilAllHaveCome) {
  for (int world_size = 1; world_size <= kMostRanks; ++world_size) {
    const Group group = GetParam().make(world_size);
    std::atomic<int> arrived = 0;
    OnEachRank(group, [&](Communicator& communicator) {
      for (int round = 1; round <= 20; ++round) {
        ++arrived;
        EXPECT_TRUE(communicator.Barrier().ok());
        EXPECT_GE(arrived.load(), round * world_size);
        EXPECT_TRUE(communicator.Barrier().ok());
      }
    });
  }
}

TEST_P(CommunicatorConformance, RefusesSizesThatDiffer) {
  for (const int world_size : {2, 3, 8}) {
    for (const bool broadcast : {false, true}) {
      const Group group = GetParam().make(world_size);
      OnEachRank(group, [&](Communicator& communicator) {
        std::vector<float> elements(communicator.rank() == world_size - 1 ? 5 : 4, 1.0f);
        const absl::Status status = broadcast ? communicator.Broadcast(ViewOf(elements), 0)
                                              : communicator.AllReduce(ViewOf(elements), ReduceOp::kSum);
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
            << status << ", rank " << communicator.rank() << " of " << world_size;
      });
    }
  }
}

TEST_P(CommunicatorConformance, RefusesTypesThatDiffer) {
  const Group group = GetParam().make(3);
  OnEachRank(group, [](Communicator& communicator) {
    std::vector<float> floats(4, 1.0f);
    std::vector<int32_t> integers(4, 1);
    const absl::Status status = communicator.rank() == 0
                                    ? communicator.AllReduce(ViewOf(integers), ReduceOp::kSum)
                                    : communicator.AllReduce(ViewOf(floats), ReduceOp::kSum);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  });
}

TEST_P(CommunicatorConformance, KeepsCallsApart) {
  for (const int world_size : {2, 3, 5}) {
    const Group group = GetParam().make(world_size);
    OnEachRank(group, [&](Communicator& communicator) {
      for (int round = 0; round < 100; ++round) {
        const int64_t size = 1 + round * 37 % 500;
        std::vector<float> sums = WholeNumbers<float>(communicator.rank(), size, round);
        EXPECT_TRUE(communicator.AllReduce(ViewOf(sums), ReduceOp::kSum).ok());
        EXPECT_TRUE(sums == SumOfWholeNumbers<float>(world_size, size, round)) << "round " << round;
        const int root = round % world_size;
        std::vector<int64_t> copies = WholeNumbers<int64_t>(communicator.rank(), size, round);
        EXPECT_TRUE(communicator.Broadcast(ViewOf(copies), root).ok());
        EXPECT_TRUE(copies == WholeNumbers<int64_t>(root, size, round)) << "round " << round;
        if (round % 3 == 0) {
          EXPECT_TRUE(communicator.Barrier().ok());
        }
      }
    });
  }
}

TEST_P(CommunicatorConformance, ReducesWhatWasBegun) {
  for (const int world_size : {1, 2, 3, 8}) {
    const Group group = GetParam().make(world_size);
    OnEachRank(group, [&](Communicator& communicator) {
      const int rank = communicator.rank();
      for (int round = 0; round < 10; ++round) {
        std::vector<std::vector<float>> buckets;
        std::vector<int64_t> begun;
        for (const int64_t size : kSizes) buckets.push_back(WholeNumbers<float>(rank, size, round));
        const auto begin = [&](size_t i) {
          const absl::StatusOr<int64_t> number =
              communicator.BeginAllReduce(ViewOf(buckets[i]), ReduceOp::kSum);
          ASSERT_TRUE(number.ok()) << number.status();
          const int64_t before = begun.empty() ? 0 : begun.back();
          EXPECT_GE(*number, before);
          begun.push_back(*number);
        };
        const auto expect_sum = [&](size_t i) {
          EXPECT_TRUE(buckets[i] == SumOfWholeNumbers<float>(world_size, kSizes[i], round))
              << "rank " << rank << " of " << world_size << ", bucket " << i << ", round " << round;
        };
        for (size_t i = 0; i < 4; ++i) begin(i);
        EXPECT_TRUE(communicator.Await(begun[1]).ok());
        expect_sum(0);
        expect_sum(1);
        // Later calls run after the begun reductions.
        std::vector<double> means = WholeNumbers<double>(rank, 5, round);
        EXPECT_TRUE(communicator.AllReduce(ViewOf(means), ReduceOp::kSum).ok());
        EXPECT_TRUE(means == SumOfWholeNumbers<double>(world_size, 5, round));
        begin(4);
        begin(5);
        EXPECT_TRUE(communicator.Barrier().ok());
        begin(6);
        std::vector<int64_t> copies = WholeNumbers<int64_t>(rank, 9, round);
        EXPECT_TRUE(communicator.Broadcast(ViewOf(copies), world_size - 1).ok());
        EXPECT_TRUE(copies == WholeNumbers<int64_t>(world_size - 1, 9, round));
        begin(7);
        EXPECT_TRUE(communicator.Await(begun[7]).ok());
        for (size_t i = 2; i < buckets.size(); ++i) expect_sum(i);
      }
    });
  }
}

TEST_P(CommunicatorConformance, GivesTheSameBitsWhetherItWasBegunOrNot) {
  constexpr int64_t kSize = 4099;
  const Group group = GetParam().make(3);
  OnEachRank(group, [&](Communicator& communicator) {
    std::vector<float> at_once = OfManyMagnitudes(communicator.rank(), kSize);
    std::vector<float> begun = at_once;
    EXPECT_TRUE(communicator.AllReduce(ViewOf(at_once), ReduceOp::kSum).ok());
    const absl::StatusOr<int64_t> number = communicator.BeginAllReduce(ViewOf(begun), ReduceOp::kSum);
    ASSERT_TRUE(number.ok()) << number.status();
    EXPECT_TRUE(communicator.Await(*number).ok());
    EXPECT_EQ(std::memcmp(at_once.data(), begun.data(), kSize * sizeof(float)), 0);
  });
}

// Either call may return the error.
absl::Status BeginAndAwait(Communicator& communicator, BufferView buffer) {
  const absl::StatusOr<int64_t> begun = communicator.BeginAllReduce(buffer, ReduceOp::kSum);
  return begun.ok() ? communicator.Await(*begun) : begun.status();
}

TEST_P(CommunicatorConformance, RefusesSizesThatDifferOfWhatWasBegun) {
  const Group group = GetParam().make(3);
  OnEachRank(group, [&](Communicator& communicator) {
    std::vector<float> elements(communicator.rank() == 2 ? 5 : 4, 1.0f);
    EXPECT_EQ(BeginAndAwait(communicator, ViewOf(elements)).code(), absl::StatusCode::kInvalidArgument);
    // The error is returned once, and the group continues.
    std::vector<float> alike(4, 1.0f);
    EXPECT_TRUE(BeginAndAwait(communicator, ViewOf(alike)).ok());
    EXPECT_EQ(alike, std::vector<float>(4, 3.0f));
  });
}

TEST_P(CommunicatorConformance, AbortReleasesAwait) {
  for (const int world_size : {1, 2, 3, 8}) {
    CheckAbortReleases(GetParam(), world_size, [](Communicator& communicator) {
      std::vector<float> elements(1000, 1.0f);
      return BeginAndAwait(communicator, ViewOf(elements));
    });
  }
}

TEST_P(CommunicatorConformance, AbortEndsAllThatWasBegun) {
  const Group group = GetParam().make(3);
  const absl::Status reason = absl::CancelledError("enough");
  OnEachRank(group, [&](Communicator& communicator) {
    std::vector<std::vector<float>> buckets(3, std::vector<float>(1000, 1.0f));
    absl::Status status;
    for (int round = 0; status.ok(); ++round) {
      if (communicator.rank() == 1 && round == 5) communicator.Abort(reason);
      std::vector<int64_t> begun;
      for (std::vector<float>& bucket : buckets) {
        const absl::StatusOr<int64_t> number =
            communicator.BeginAllReduce(ViewOf(bucket), ReduceOp::kAverage);
        status.Update(number.status());
        if (number.ok()) begun.push_back(*number);
      }
      for (const int64_t number : begun) status.Update(communicator.Await(number));
    }
    EXPECT_EQ(status, reason);
    EXPECT_EQ(communicator.status(), reason);
  });
}

TEST_P(CommunicatorConformance, AbortReleasesAllReduce) {
  for (const int world_size : {1, 2, 3, 8}) {
    CheckAbortReleases(GetParam(), world_size, [](Communicator& communicator) {
      std::vector<float> elements(1000, 1.0f);
      return communicator.AllReduce(ViewOf(elements), ReduceOp::kSum);
    });
  }
}

TEST_P(CommunicatorConformance, AbortReleasesBroadcast) {
  CheckAbortReleases(GetParam(), 3, [](Communicator& communicator) {
    std::vector<float> elements(1000, 1.0f);
    return communicator.Broadcast(ViewOf(elements), 2);
  });
}

TEST_P(CommunicatorConformance, AbortReleasesBarrier) {
  for (const int world_size : {2, 5}) {
    CheckAbortReleases(GetParam(), world_size,
                       [](Communicator& communicator) { return communicator.Barrier(); });
  }
}

TEST_P(CommunicatorConformance, NamesTheRankThatDoesNotCome) {
  if (GetParam().make_watched == nullptr) return;
  const Group group = GetParam().make_watched(3, absl::Seconds(2));
  OnEachRank(group, [](Communicator& communicator) {
    if (communicator.rank() == 1) return;
    std::vector<float> elements(100, 1.0f);
    const absl::Status status = communicator.AllReduce(ViewOf(elements), ReduceOp::kSum);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_NE(status.message().find("replica 1 has missed a collective"), std::string::npos) << status;
  });
  // The late rank learns of the abort at its next call.
  EXPECT_EQ(group[1]->Barrier().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_P(CommunicatorConformance, AWatchdogLeavesThoseAloneWhoCome) {
  if (GetParam().make_watched == nullptr) return;
  const Group group = GetParam().make_watched(2, absl::Minutes(2));
  OnEachRank(group, [](Communicator& communicator) {
    for (int round = 0; round < 1000; ++round) EXPECT_TRUE(communicator.Barrier().ok());
  });
}

TEST_P(CommunicatorConformance, FirstAbortCounts) {
  const Group group = GetParam().make(2);
  const absl::Status reason = absl::CancelledError("first");
  for (const auto& rank : group) EXPECT_TRUE(rank->status().ok());
  group[0]->Abort(reason);
  group[1]->Abort(absl::InternalError("second"));
  for (const auto& rank : group) EXPECT_EQ(rank->status(), reason);
  OnEachRank(group, [&](Communicator& communicator) { EXPECT_EQ(communicator.Barrier(), reason); });
}

TEST_P(CommunicatorConformance, AbortMidwayReachesEveryRank) {
  const Group group = GetParam().make(4);
  const absl::Status reason = absl::CancelledError("enough");
  OnEachRank(group, [&](Communicator& communicator) {
    absl::Status status;
    for (int round = 0; status.ok(); ++round) {
      if (communicator.rank() == 1 && round == 25) communicator.Abort(reason);
      std::vector<float> elements(100, 1.0f);
      status = communicator.AllReduce(ViewOf(elements), ReduceOp::kSum);
    }
    EXPECT_EQ(status, reason);
  });
}

void TestDroppedBroadcasts(const std::vector<std::unique_ptr<Communicator>>& group) {
  const int world_size = static_cast<int>(group.size());
  ASSERT_GE(world_size, 3);
  OnEachRank(group, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    for (int root = 0; root < world_size; ++root) {
      const bool drops = rank == (root + 1) % world_size;
      std::vector<int32_t> values(100, rank);
      BufferView view = ViewOf(values);
      if (drops) view.data = nullptr;
      EXPECT_TRUE(communicator.Broadcast(view, root).ok());
      EXPECT_EQ(values, std::vector<int32_t>(100, drops ? rank : root))
          << "rank " << rank << ", root " << root;
    }
  });
}

}  // namespace tandem
