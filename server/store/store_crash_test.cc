// Tests the store on a failing file system. A script uses all of the store. At each write, sync, truncation
// and removal of the script, the process or the machine stops, or only this operation fails.
//
//   bazel test //server/store:store_crash_test --test_env=TANDEM_WHOLE=1

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/faulty_env.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/util/time_util.h"
#include "gtest/gtest.h"
#include "server/store/awaited.h"
#include "server/store/connection.h"
#include "server/store/env_vfs.h"
#include "server/store/store.h"

namespace tandem {
namespace {

using Unsynced = FaultyEnv::Unsynced;
using Operation = std::function<absl::Status(Transaction&)>;

constexpr char kPath[] = "/state/tandem.db";
// Small, so that SQLite often moves the log into the database.
constexpr int kCheckpointPages = 12;

bool RunsWhole() {
  const char* const whole = std::getenv("TANDEM_WHOLE");
  return whole != nullptr && absl::string_view(whole) == "1";
}

StoredJob MakeJob(const std::string& id, const std::string& sweep = "") {
  StoredJob job;
  job.job.set_name(JobName(id));
  job.job.mutable_spec()->set_name(id);
  job.job.set_state(v1::JOB_STATE_QUEUED);
  if (!sweep.empty()) job.job.set_sweep(SweepName(sweep));
  *job.job.mutable_create_time() = google::protobuf::util::TimeUtil::SecondsToTimestamp(7);
  return job;
}

Operation Insert(const std::string& id) {
  return [id](Transaction& transaction) {
    StoredJob job = MakeJob(id);
    v1::JobSpec submitted;
    submitted.set_name("as submitted");
    return transaction.InsertJob(&job, absl::StrCat("request of ", id), submitted);
  };
}

// A state change and `events` - 1 other events, committed like JobMachine: all or none.
Operation Move(const std::string& id, v1::JobState state, int events, int event_bytes = 40) {
  return [=](Transaction& transaction) -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(StoredJob job, transaction.GetJobWithoutSpec(id));
    for (int i = 0; i < events; ++i) {
      v1::JobEvent event;
      event.set_job(job.job.name());
      event.set_sequence(job.job.last_sequence() + 1);
      if (i == 0) {
        event.mutable_state_change()->set_to(state);
      } else {
        event.mutable_notice()->set_message(std::string(event_bytes, 'e'));
      }
      TANDEM_RETURN_IF_ERROR(transaction.AppendEvent(job, event));
      if (i == 0) TANDEM_RETURN_IF_ERROR(transaction.AppendChange(job, event.sequence()).status());
      job.job.set_last_sequence(event.sequence());
    }
    job.job.set_state(state);
    job.last_worker_sequence += events;
    return transaction.UpdateJob(&job);
  };
}

Operation AddCheckpoint(const std::string& id, int64_t step) {
  return [=](Transaction& transaction) -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(const StoredJob job, transaction.GetJobWithoutSpec(id));
    v1::Checkpoint checkpoint;
    checkpoint.set_step(step);
    checkpoint.set_file(absl::StrCat("checkpoint-", step, ".safetensors"));
    return transaction.PutCheckpoint(job, checkpoint, /*keep_last=*/2, /*keep_best=*/false);
  };
}

Operation AddSweep(const std::string& id, int jobs) {
  return [=](Transaction& transaction) -> absl::Status {
    StoredSweep sweep;
    sweep.sweep.set_name(SweepName(id));
    TANDEM_RETURN_IF_ERROR(transaction.InsertSweep(&sweep, absl::StrCat("request of ", id), sweep.sweep));
    for (int i = 0; i < jobs; ++i) {
      StoredJob job = MakeJob(absl::StrCat(id, "-", i), id);
      TANDEM_RETURN_IF_ERROR(transaction.InsertJob(&job, "", {}));
    }
    return absl::OkStatus();
  };
}

Operation AddToken(const std::string& user) {
  return [user](Transaction& transaction) {
    StoredToken token;
    token.token.set_user(user);
    token.hash = absl::StrCat("hash of ", user);
    return transaction.InsertToken(token);
  };
}

Operation AddDataset(const std::string& id) {
  return [id](Transaction& transaction) {
    StoredDataset dataset;
    dataset.dataset.set_name(DatasetName(id));
    dataset.upload = absl::StrCat("upload of ", id);
    return transaction.InsertDataset(dataset);
  };
}

Operation Delete(const std::string& id) {
  return [id](Transaction& transaction) -> absl::Status {
    TANDEM_ASSIGN_OR_RETURN(const StoredJob job, transaction.GetJob(id));
    return transaction.DeleteJob(job);
  };
}

// All of a daemon's uses of its store. Null: the daemon ends, and another opens the store.
std::vector<Operation> Script() {
  return {
      Insert("a"),
      Move("a", v1::JOB_STATE_STARTING, 1),
      AddToken("ann"),
      Move("a", v1::JOB_STATE_RUNNING, 3),
      Insert("b"),
      AddSweep("s", 3),
      AddCheckpoint("a", 10),
      Move("a", v1::JOB_STATE_RUNNING, 20, 900),
      nullptr,
      AddCheckpoint("a", 20),
      AddDataset("d"),
      Move("b", v1::JOB_STATE_CANCELLED, 2),
      [](Transaction& transaction) { return transaction.ReserveJobId("fork"); },
      Insert("fork"),
      AddCheckpoint("a", 30),
      // A failed body leaves nothing.
      [](Transaction& transaction) -> absl::Status {
        StoredJob job = MakeJob("none");
        TANDEM_RETURN_IF_ERROR(transaction.InsertJob(&job, "", {}));
        return absl::AbortedError("on purpose");
      },
      [](Transaction& transaction) {
        return transaction.PutUsage({"ann", 5, 6});
      },
      [](Transaction& transaction) {
        return transaction.PutDevice({"devices/cpu:0", v1::DEVICE_STATE_DRAINED, "why", 1, "jobs/a"});
      },
      Move("a", v1::JOB_STATE_SUCCEEDED, 30, 900),
      Delete("b"),
      [](Transaction& transaction) { return transaction.RemoveDeleted(1).status(); },
      Delete("a"),
      [](Transaction& transaction) { return transaction.RemoveDeleted(20).status(); },
      nullptr,
      [](Transaction& transaction) { return transaction.DeleteToken("ann"); },
      [](Transaction& transaction) { return transaction.DeleteDataset("d"); },
      [](Transaction& transaction) { return transaction.Touch(); },
      Insert("c"),
      Move("s-1", v1::JOB_STATE_FAILED, 40, 200),
      Delete("s-2"),
      [](Transaction& transaction) { return transaction.DeleteSweep("s"); },
  };
}

template <typename T>
T Take(absl::StatusOr<T> value) {
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? *std::move(value) : T();
}

// Returns everything that a store can read.
std::string Everything(Store& store) {
  std::string all;
  const auto add = [&all](const auto& message) { absl::StrAppend(&all, message.ShortDebugString(), "\n"); };
  JobQuery query;
  query.order = JobQuery::Order::kName;
  query.page_size = 1000;
  const JobPage page = Take(store.ListJobs(query));
  for (const v1::Job& listed : page.jobs) {
    const std::string id = JobId(listed.name());
    const StoredJob job = Take(store.GetJob(id));
    absl::StrAppend(&all, job.number, " ", job.last_worker_sequence, " ");
    add(job.job);
    const EventPage events = Take(store.ReadEvents(id, 0, 10000));
    for (const v1::JobEvent& event : events.events) add(event);
    const std::vector<v1::Checkpoint> checkpoints = Take(store.Checkpoints(id));
    for (const v1::Checkpoint& checkpoint : checkpoints) add(checkpoint);
  }
  const ChangePage changes = Take(store.ReadChanges(0, 10000));
  for (const JobChange& change : changes.changes) {
    absl::StrAppend(&all, change.cursor, " ");
    add(change.event);
  }
  absl::StrAppend(&all, changes.newest_cursor, "\n");
  const SweepPage sweeps = Take(store.ListSweeps(0, 100));
  for (const ListedSweep& sweep : sweeps.sweeps) {
    absl::StrAppend(&all, sweep.number, " ", sweep.has_ended, " ", sweep.end_time_us, " ");
    for (const auto& [state, jobs] : sweep.counts) absl::StrAppend(&all, state, ":", jobs, " ");
    add(sweep.sweep);
  }
  const std::vector<StoredToken> tokens = Take(store.Tokens());
  for (const StoredToken& token : tokens) {
    absl::StrAppend(&all, token.hash, " ");
    add(token.token);
  }
  const std::vector<StoredDataset> datasets = Take(store.Datasets());
  for (const StoredDataset& dataset : datasets) add(dataset.dataset);
  const std::vector<StoredUsage> usages = Take(store.Usages());
  for (const StoredUsage& usage : usages) absl::StrAppend(&all, usage.user, usage.device_us, "\n");
  const std::vector<StoredDevice> devices = Take(store.Devices());
  for (const StoredDevice& device : devices) absl::StrAppend(&all, device.name, device.message, "\n");
  for (const char* id : {"a", "b", "fork", "none", "s-2"}) {
    absl::StrAppend(&all, id, Take(store.WasDeleted(id)) ? " was deleted\n" : " was not deleted\n");
    absl::StrAppend(&all, Take(store.FindRequest(absl::StrCat("request of ", id))).has_value(), "\n");
  }
  return all;
}

// Several processes, one after another, on one file system.
class Daemons {
 public:
  explicit Daemons(FaultyEnv* env) : vfs_(absl::StrCat("faulty-", ++count_), env) {}

  absl::Status Open() {
    store_.reset();
    auto store = Store::Open(kPath, {.vfs = vfs_.name(), .checkpoint_pages = kCheckpointPages});
    if (store.ok()) store_ = *std::move(store);
    return store.status();
  }
  void Close() { store_.reset(); }

  // The operation that fails on purpose counts as done.
  absl::Status Do(const Operation& operation) {
    if (operation == nullptr) return Open();
    Awaited<absl::Status> done;
    store_->Write([&operation](Transaction& transaction) { return operation(transaction); }, done.Done());
    const absl::Status status = done.Get();
    return absl::IsAborted(status) ? absl::OkStatus() : status;
  }

  std::string Everything() { return tandem::Everything(*store_); }

  // The database's own check.
  std::string CheckIntegrity() {
    const auto connection = Connection::Open(kPath, Connection::Access::kReadOnly, vfs_.name());
    if (!connection.ok()) return connection.status().ToString();
    return WithoutExceptions("check",
                             [&]() -> absl::StatusOr<std::string> {
                               Query query(connection->get(), "PRAGMA integrity_check");
                               return query.Next() ? std::string(query.GetBlob(0)) : "nothing";
                             })
        .value_or("it fails");
  }

 private:
  static int count_;
  EnvVfs vfs_;
  std::unique_ptr<Store> store_;
};

int Daemons::count_ = 0;

// The state of an undisturbed run before the first and after each operation, and its number of file changes.
struct Course {
  std::vector<std::string> states;
  int changes = 0;
};

Course Undisturbed(const std::vector<Operation>& script) {
  Course course;
  FaultyEnv env;
  Daemons daemons(&env);
  EXPECT_TRUE(daemons.Open().ok());
  course.states.push_back(daemons.Everything());
  for (const Operation& operation : script) {
    const absl::Status status = daemons.Do(operation);
    EXPECT_TRUE(status.ok()) << status;
    course.states.push_back(daemons.Everything());
  }
  daemons.Close();
  course.changes = env.changes();
  return course;
}

struct Ending {
  const char* name;
  Unsynced unsynced;
  uint64_t seeds;
};

class StoreCrashTest : public testing::TestWithParam<Ending> {};

TEST_P(StoreCrashTest, AfterACrashAnywhereAllThatWasAcknowledgedIsThereOnce) {
  const std::vector<Operation> script = Script();
  const Course course = Undisturbed(script);
  const uint64_t seeds = GetParam().seeds * (RunsWhole() ? 10 : 1);
  int crashes = 0;
  for (int point = 0; point <= course.changes; ++point) {
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      SCOPED_TRACE(absl::StrCat("crash at change ", point, ", seed ", seed));
      FaultyEnv env;
      Daemons daemons(&env);
      env.FailAfter(point);
      size_t acknowledged = 0;
      bool opened = daemons.Open().ok();
      while (opened && acknowledged < script.size() && daemons.Do(script[acknowledged]).ok()) ++acknowledged;
      // A dying process does not tidy up.
      daemons.Close();
      env.CutPower(GetParam().unsynced, 1000 * point + seed);
      ++crashes;

      const absl::Status status = daemons.Open();
      ASSERT_TRUE(status.ok()) << status;
      const std::string state = daemons.Everything();
      // An operation in progress may have completed.
      const bool is_there = state == course.states[acknowledged];
      const bool one_more = acknowledged < script.size() && state == course.states[acknowledged + 1];
      ASSERT_TRUE(is_there || one_more) << acknowledged << " operations were acknowledged, but there is\n"
                                        << state << "\nin place of\n"
                                        << course.states[acknowledged];
      ASSERT_EQ(daemons.CheckIntegrity(), "ok");
      // The run continues to the same end.
      if (seed > 0) continue;
      for (size_t i = acknowledged + (is_there ? 0 : 1); i < script.size(); ++i) {
        const absl::Status done = daemons.Do(script[i]);
        ASSERT_TRUE(done.ok()) << done;
      }
      ASSERT_EQ(daemons.Everything(), course.states.back());
    }
  }
  std::cout << GetParam().name << ": " << course.changes + 1 << " points, " << crashes << " crashes\n";
}

INSTANTIATE_TEST_SUITE_P(Endings, StoreCrashTest,
                         testing::Values(Ending{"of_the_process", Unsynced::kKept, 1},
                                         Ending{"of_the_machine", Unsynced::kLost, 1},
                                         Ending{"of_the_machine_in_the_middle", Unsynced::kSome, 3}),
                         [](const auto& info) { return std::string(info.param.name); });

// One operation of the file system fails. Its write must report the error and leave nothing, and the repeated
// write must succeed. In the end nothing is missing, before and after a power cut.
TEST(StoreFaultTest, AFailureAnywhereIsSaidAndOvercome) {
  const std::vector<Operation> script = Script();
  const Course course = Undisturbed(script);
  int failures = 0;
  for (const absl::Status& error : {absl::ResourceExhaustedError("the disk is full"),
                                    absl::UnavailableError("the disk does not answer")}) {
    for (int point = 0; point < course.changes; ++point) {
      SCOPED_TRACE(absl::StrCat("failure of change ", point, ": ", error.ToString()));
      FaultyEnv env;
      Daemons daemons(&env);
      env.FailOnceAfter(point, error);
      if (const absl::Status opened = daemons.Open(); !opened.ok()) {
        ++failures;
        ASSERT_TRUE(daemons.Open().ok());
      }
      for (size_t i = 0; i < script.size(); ++i) {
        absl::Status status = daemons.Do(script[i]);
        if (status.ok()) continue;
        ++failures;
        if (script[i] != nullptr) {
          ASSERT_EQ(daemons.Everything(), course.states[i]) << status;
          if (absl::IsResourceExhausted(error)) {
            ASSERT_TRUE(absl::IsResourceExhausted(status) || absl::IsInternal(status)) << status;
          }
        }
        status = daemons.Do(script[i]);
        ASSERT_TRUE(status.ok()) << status;
      }
      ASSERT_EQ(daemons.Everything(), course.states.back());
      daemons.Close();
      env.CutPower();
      ASSERT_TRUE(daemons.Open().ok());
      ASSERT_EQ(daemons.Everything(), course.states.back());
      ASSERT_EQ(daemons.CheckIntegrity(), "ok");
    }
  }
  std::cout << course.changes << " points, " << failures << " failures that a write was told of\n";
  EXPECT_GT(failures, 100);
}

// From some moment on the disk refuses all writes, like a disk that became read-only. Every write must report
// an error, and reads must continue. When the disk accepts writes again, the store must work without being
// reopened.
TEST(StoreFaultTest, ADiskThatTakesNothingForAWhileIsOvercome) {
  const std::vector<Operation> script = Script();
  const Course course = Undisturbed(script);
  int refused = 0;
  for (int point = 0; point < course.changes; ++point) {
    SCOPED_TRACE(absl::StrCat("from change ", point, " on"));
    FaultyEnv env;
    Daemons daemons(&env);
    env.FailAfter(point);
    if (!daemons.Open().ok()) {
      env.FailAfter(1 << 30);
      ASSERT_TRUE(daemons.Open().ok());
    }
    for (size_t i = 0; i < script.size(); ++i) {
      absl::Status status = daemons.Do(script[i]);
      if (!status.ok() && script[i] != nullptr) {
        ++refused;
        ASSERT_FALSE(daemons.Do(script[i]).ok());
        ASSERT_EQ(daemons.Everything(), course.states[i]);
      }
      if (status.ok()) continue;
      env.FailAfter(1 << 30);
      status = daemons.Do(script[i]);
      ASSERT_TRUE(status.ok()) << status;
    }
    ASSERT_EQ(daemons.Everything(), course.states.back());
    ASSERT_EQ(daemons.CheckIntegrity(), "ok");
  }
  std::cout << course.changes << " points, " << refused << " refused writes\n";
}

}  // namespace
}  // namespace tandem
