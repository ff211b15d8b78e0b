#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/scheduler/backfill_policy.h"
#include "server/scheduler/inventory.h"

namespace tandem {
namespace {

constexpr int64_t kGiB = 1 << 30;

// Random jobs and devices, one event after another. An independent Inventory executes the policy's decisions
// and refuses leases that do not fit.
class World {
 public:
  explicit World(int seed) : random_(seed), inventory_(MakeDevices()) {
    BackfillPolicy::Options options;
    options.reservations = Below(4);
    options.most_backfilled = 1 + Below(5);
    policy_ = std::make_unique<BackfillPolicy>(options);
    for (int user = 0; user < 3; ++user) {
      if (Below(2) == 0) quotas_[absl::StrCat("user-", user)] = 1 + Below(4);
    }
  }

  void Step() {
    now_ += absl::Seconds(Below(100));
    switch (Below(6)) {
      case 0:
      case 1:
        Submit();
        break;
      case 2:
      case 3:
        if (!holding_.empty()) End();
        break;
      case 4:
        SetDeviceState();
        break;
      default:
        CancelOrChange();
    }
    Decide();
  }

  // Ends all jobs until no more start. The remaining jobs can never run or exceed their quotas.
  void Drain() {
    for (v1::Device& device : inventory_.Devices()) {
      ASSERT_TRUE(inventory_.SetState(device.name(), v1::DEVICE_STATE_ACTIVE, "", 0).ok());
    }
    Decide();
    while (!holding_.empty()) {
      End();
      Decide();
    }
    const std::vector<Explanation> left = policy_->Explain(TakeSnapshot());
    EXPECT_EQ(left.size(), queue_.size());
    for (const Explanation& explanation : left) {
      EXPECT_TRUE(explanation.waiting.reason() == v1::Waiting::REASON_DEVICES_MISSING ||
                  explanation.waiting.reason() == v1::Waiting::REASON_QUOTA)
          << explanation.waiting.ShortDebugString();
    }
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % n); }

  std::vector<v1::Device> MakeDevices() {
    std::vector<v1::Device> devices(1 + Below(8));
    for (size_t i = 0; i < devices.size(); ++i) {
      const bool gpu = Below(3) == 0;
      devices[i].set_name(absl::StrCat("devices/", gpu ? "gpu:" : "cpu:", i));
      devices[i].set_kind(gpu ? v1::DEVICE_KIND_GPU : v1::DEVICE_KIND_CPU);
      devices[i].set_memory_bytes((1 + Below(8)) * kGiB);
    }
    return devices;
  }

  void Submit() {
    WaitingJob job;
    job.id = absl::StrCat("job-", submitted_++);
    job.user = absl::StrCat("user-", Below(3));
    job.priority = Below(5) - 2;
    job.create_time = job.waits_since = now_;
    job.gang.device_kind = static_cast<v1::DeviceKind>(Below(3));
    job.gang.devices = 1 + Below(4);
    job.gang.replicas = job.gang.devices + Below(2);
    job.gang.replica_memory_bytes = Below(3) * kGiB;
    if (Below(5) == 0) {
      const std::vector<v1::Device> devices = inventory_.Devices();
      for (const v1::Device& device : devices) {
        if (static_cast<int>(job.gang.names.size()) < job.gang.devices)
          job.gang.names.push_back(device.name());
      }
      job.gang.devices = static_cast<int>(job.gang.names.size());
      job.gang.replicas = std::max(job.gang.replicas, job.gang.devices);
    }
    if (Below(2) == 0) job.share = 0.25 * (1 + Below(4));
    job.longest_run_time = Below(4) == 0 ? absl::InfiniteDuration() : absl::Seconds(1 + Below(500));
    if (Below(4) > 0) job.expected_run_time = absl::Seconds(Below(500));
    ASSERT_TRUE(queue_.Add(job));
    waiting_[job.id] = job;
  }

  void End() {
    const auto job = std::next(holding_.begin(), Below(static_cast<int>(holding_.size())));
    EXPECT_EQ(inventory_.Release(job->first).size(), job->second.devices.size());
    if (job->second.ending && Below(2) == 0) {
      // It was preempted and waits again.
      ASSERT_TRUE(queue_.Add(waiting_[job->first]));
    }
    holding_.erase(job);
  }

  void SetDeviceState() {
    const std::vector<v1::Device> devices = inventory_.Devices();
    const v1::Device& device = devices[Below(static_cast<int>(devices.size()))];
    const auto state = static_cast<v1::DeviceState>(1 + Below(3));
    ASSERT_TRUE(inventory_.SetState(device.name(), state, "", 0).ok());
  }

  void CancelOrChange() {
    if (waiting_.empty()) return;
    const auto job = std::next(waiting_.begin(), Below(static_cast<int>(waiting_.size())));
    if (!queue_.Remove(job->first)) return;
    if (Below(2) == 0) return;
    job->second.priority = Below(5) - 2;
    ASSERT_TRUE(queue_.Add(job->second));
  }

  Snapshot TakeSnapshot() {
    Snapshot snapshot;
    snapshot.now = snapshot.monotonic_now = now_;
    snapshot.queue = &queue_;
    for (const v1::Device& device : inventory_.Devices()) {
      snapshot.devices.push_back({device.name(), device.kind(), device.memory_bytes(), device.state()});
    }
    for (const auto& [user, most] : quotas_) snapshot.users[user].max_devices = most;
    for (const auto& [id, job] : holding_) snapshot.holding.push_back(job);
    return snapshot;
  }

  void Decide() {
    const Snapshot snapshot = TakeSnapshot();
    const size_t before = queue_.size();
    EXPECT_EQ(policy_->Explain(snapshot).size(), before);
    const Decision decision = policy_->Decide(snapshot);
    for (const std::string& id : decision.preemptions) {
      ASSERT_TRUE(holding_.count(id) > 0 && holding_[id].preemptible && !holding_[id].ending) << id;
      holding_[id].ending = true;
    }
    for (const Placement& placement : decision.placements) {
      ASSERT_NE(queue_.Find(placement.job_id), nullptr) << placement.job_id;
      const WaitingJob job = *queue_.Find(placement.job_id);
      // The whole gang, on different devices of the requested kind.
      ASSERT_EQ(static_cast<int>(placement.devices.size()), job.gang.devices);
      if (!job.gang.names.empty()) {
        EXPECT_EQ(placement.devices, job.gang.names);
      }
      HoldingJob& holding = holding_[job.id];
      for (const std::string& name : placement.devices) {
        const auto device = std::find_if(snapshot.devices.begin(), snapshot.devices.end(),
                                         [&](const DeviceSlot& slot) { return slot.name == name; });
        ASSERT_NE(device, snapshot.devices.end());
        EXPECT_EQ(device->state, v1::DEVICE_STATE_ACTIVE) << name;
        EXPECT_GE(device->memory_bytes, job.gang.memory_bytes());
        if (job.gang.names.empty() && job.gang.device_kind != v1::DEVICE_KIND_UNSPECIFIED) {
          EXPECT_EQ(device->kind, job.gang.device_kind);
        }
        holding.devices.push_back(static_cast<int>(device - snapshot.devices.begin()));
      }
      holding.id = job.id;
      holding.user = job.user;
      holding.priority = job.priority;
      holding.preemptible = Below(2) == 0;
      holding.share = job.share;
      holding.memory_bytes = job.gang.memory_bytes();
      holding.lease_time = now_;
      holding.expected_end = now_ + job.expected_run_time;
      holding.latest_end = now_ + job.longest_run_time;
      // The inventory refuses leases that do not fit.
      const absl::Status acquired =
          inventory_.Acquire(job.id, {placement.devices, job.share, job.gang.memory_bytes()});
      ASSERT_TRUE(acquired.ok()) << acquired;
      ASSERT_TRUE(queue_.Start(job.id, now_, placement.was_longest));
    }
    queue_.NoteWaiting(decision.waiting, now_);
    std::map<std::string, int> held;
    for (const auto& [id, job] : holding_) held[job.user] += static_cast<int>(job.devices.size());
    for (const auto& [user, most] : quotas_) EXPECT_LE(held[user], most) << user;
  }

  std::mt19937 random_;
  Inventory inventory_;
  std::unique_ptr<BackfillPolicy> policy_;
  std::map<std::string, int> quotas_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  JobQueue queue_;
  std::map<std::string, HoldingJob> holding_;
  // Every job so far, as last submitted or changed.
  std::map<std::string, WaitingJob> waiting_;
  int submitted_ = 0;
};

// Leases overlap only as sharing allows, every gang is all or none, no quota is exceeded, and no job that
// could run waits for ever.
TEST(BackfillPolicyPropertyTest, LeasesNeverOverlapAndGangsAreWhole) {
  for (int seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    World world(seed);
    for (int step = 0; step < 100 && !testing::Test::HasFailure(); ++step) world.Step();
    world.Drain();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tandem
