#include "server/store/store.h"

#include <filesystem>
#include <functional>
#include <future>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/time_util.h"
#include "gtest/gtest.h"
#include "server/store/awaited.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::google::protobuf::util::TimeUtil;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

StoredJob MakeJob(const std::string& id, int64_t create_time_s = 1,
                  v1::JobState state = v1::JOB_STATE_QUEUED) {
  StoredJob job;
  job.job.set_name(JobName(id));
  job.job.mutable_spec()->set_name(id);
  job.job.set_state(state);
  *job.job.mutable_create_time() = TimeUtil::SecondsToTimestamp(create_time_s);
  return job;
}

class StoreTest : public testing::Test {
 protected:
  StoreTest() { Reopen(); }

  void Reopen() {
    store_.reset();
    auto store = Store::Open(folder_.path() + "/tandem.db");
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  // Writes and blocks for the result.
  absl::Status Write(std::function<absl::Status(Transaction&)> body) {
    Awaited<absl::Status> done;
    store_->Write(std::move(body), done.Done());
    return done.Get();
  }

  absl::Status Insert(StoredJob job, const std::string& request_id = "") {
    return Write([&](Transaction& transaction) {
      v1::JobSpec submitted;
      submitted.set_name("as submitted");
      return transaction.InsertJob(&job, request_id, submitted);
    });
  }

  // Adds events. Every third is a state change, which is also added to the log of changes.
  absl::Status AddEvents(const std::string& id, int count, const std::string& notice = "") {
    return Write([&](Transaction& transaction) -> absl::Status {
      TANDEM_ASSIGN_OR_RETURN(StoredJob job, transaction.GetJobWithoutSpec(id));
      for (int i = 0; i < count; ++i) {
        v1::JobEvent event;
        event.set_job(job.job.name());
        event.set_sequence(job.job.last_sequence() + 1);
        if (!notice.empty()) event.mutable_notice()->set_message(notice);
        TANDEM_RETURN_IF_ERROR(transaction.AppendEvent(job, event));
        job.job.set_last_sequence(event.sequence());
        if (event.sequence() % 3 == 1) {
          TANDEM_RETURN_IF_ERROR(transaction.AppendChange(job, event.sequence()).status());
        }
      }
      return transaction.UpdateJob(&job);
    });
  }

  std::vector<std::string> List(JobQuery query) {
    std::vector<std::string> ids;
    for (int page_number = 0; page_number < 100; ++page_number) {
      const absl::StatusOr<JobPage> page = store_->ListJobs(query);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) break;
      EXPECT_LE(page->jobs.size(), query.page_size);
      for (const v1::Job& job : page->jobs) ids.push_back(JobId(job.name()));
      if (page->next_page_token.empty()) break;
      query.page_token = page->next_page_token;
    }
    return ids;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
};

TEST_F(StoreTest, KeepsAJobOverAReopening) {
  StoredJob job = MakeJob("a-1");
  job.job.set_folder(folder_.path() + "/jobs/a-1");
  job.job.set_message("hello");
  job.job.set_user("ann");
  job.job.mutable_waiting()->set_position(3);
  job.last_worker_sequence = 4;
  ASSERT_TRUE(Insert(job).ok());
  Reopen();
  const auto read = store_->GetJob("a-1");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_GT(read->number, 0);
  EXPECT_EQ(read->last_worker_sequence, 4);
  job.job.clear_waiting();
  EXPECT_EQ(read->job.SerializeAsString(), job.job.SerializeAsString());
  EXPECT_EQ(store_->GetJob("a-2").status().code(), absl::StatusCode::kNotFound);
}

// A daemon on a copy of a database must not change the original's folders.
TEST_F(StoreTest, AJobsFolderIsBesideTheDatabaseThatItIsReadFrom) {
  StoredJob job = MakeJob("a");
  job.job.set_folder(folder_.path() + "/jobs/a");
  ASSERT_TRUE(Insert(job, "request").ok());
  store_.reset();
  TemporaryFolder elsewhere;
  std::filesystem::copy(folder_.path(), elsewhere.path() + "/copy", std::filesystem::copy_options::recursive);
  const auto copy = Store::Open(elsewhere.path() + "/copy/tandem.db");
  ASSERT_TRUE(copy.ok()) << copy.status();
  const std::string folder = elsewhere.path() + "/copy/jobs/a";
  EXPECT_EQ((*copy)->GetJob("a")->job.folder(), folder);
  EXPECT_EQ((*copy)->ListJobs({})->jobs.at(0).folder(), folder);
  EXPECT_EQ((*copy)->NonTerminalJobs()->at(0).job.folder(), folder);
  EXPECT_EQ((*(*copy)->FindRequest("request"))->job.job.folder(), folder);
  Reopen();
  EXPECT_EQ(store_->GetJob("a")->job.folder(), folder_.path() + "/jobs/a");
}

TEST_F(StoreTest, AnUpdateWithoutTheSpecLeavesTheSpec) {
  ASSERT_TRUE(Insert(MakeJob("a")).ok());
  ASSERT_TRUE(Write([](Transaction& transaction) -> absl::Status {
                TANDEM_ASSIGN_OR_RETURN(StoredJob job, transaction.GetJobWithoutSpec("a"));
                EXPECT_FALSE(job.job.has_spec());
                job.job.set_state(v1::JOB_STATE_RUNNING);
                TANDEM_RETURN_IF_ERROR(transaction.UpdateJob(&job));
                return transaction.LoadSpec(&job);
              }).ok());
  const auto read = store_->GetJob("a");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->job.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(read->job.spec().name(), "a");
}

TEST_F(StoreTest, IdsAndRequestIdsAreUnique) {
  ASSERT_TRUE(Insert(MakeJob("a"), "request").ok());
  EXPECT_EQ(Insert(MakeJob("a")).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Insert(MakeJob("b"), "request").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(Insert(MakeJob("c")).ok());
  EXPECT_TRUE(Insert(MakeJob("d")).ok());
  EXPECT_TRUE(Write([](Transaction& transaction) -> absl::Status {
                TANDEM_ASSIGN_OR_RETURN(auto found, transaction.FindRequest("request"));
                EXPECT_TRUE(found.has_value());
                EXPECT_EQ(found->job.job.name(), "jobs/a");
                EXPECT_EQ(found->submitted_spec.name(), "as submitted");
                TANDEM_ASSIGN_OR_RETURN(found, transaction.FindRequest("other"));
                EXPECT_FALSE(found.has_value());
                return absl::OkStatus();
              }).ok());
}

TEST_F(StoreTest, AFailingBodyTakesBackItsOwnChangesAlone) {
  // A blocking body queues the three writes as one group.
  Awaited<bool> go;
  Awaited<absl::Status> first, second, third;
  store_->Write(
      [&](Transaction&) {
        go.Get();
        return absl::OkStatus();
      },
      [](absl::Status) {});
  const auto insert = [](const std::string& id, absl::Status status) {
    return [id, status](Transaction& transaction) {
      StoredJob job = MakeJob(id);
      EXPECT_TRUE(transaction.InsertJob(&job, "", {}).ok());
      return status;
    };
  };
  store_->Write(insert("a", absl::OkStatus()), first.Done());
  store_->Write(insert("b", absl::AbortedError("no")), second.Done());
  store_->Write(insert("c", absl::OkStatus()), third.Done());
  go.Done()(true);
  EXPECT_TRUE(first.Get().ok());
  EXPECT_EQ(second.Get(), absl::AbortedError("no"));
  EXPECT_TRUE(third.Get().ok());
  JobQuery query;
  query.order = JobQuery::Order::kName;
  query.descending = false;
  EXPECT_THAT(List(query), ElementsAre("a", "c"));
}

TEST_F(StoreTest, AStatementThatFailsDoesNotSpoilItsTransaction) {
  ASSERT_TRUE(Insert(MakeJob("a")).ok());
  ASSERT_TRUE(Write([](Transaction& transaction) {
                StoredJob again = MakeJob("a");
                EXPECT_EQ(transaction.InsertJob(&again, "", {}).code(), absl::StatusCode::kAlreadyExists);
                StoredJob other = MakeJob("b");
                return transaction.InsertJob(&other, "", {});
              }).ok());
  EXPECT_TRUE(store_->GetJob("b").ok());
}

TEST_F(StoreTest, RefusesWritesAfterClose) {
  Awaited<absl::Status> before, after;
  store_->Write([](Transaction&) { return absl::OkStatus(); }, before.Done());
  store_->Close();
  EXPECT_TRUE(before.IsDone());
  store_->Write([](Transaction&) { return absl::OkStatus(); }, after.Done());
  EXPECT_EQ(after.Get().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(store_->NonTerminalJobs().ok());
}

TEST_F(StoreTest, ReadsALogInPieces) {
  ASSERT_TRUE(Insert(MakeJob("a")).ok());
  ASSERT_TRUE(Insert(MakeJob("b")).ok());
  ASSERT_TRUE(AddEvents("a", 5).ok());
  ASSERT_TRUE(AddEvents("b", 2).ok());
  ASSERT_TRUE(AddEvents("a", 5).ok());
  auto page = store_->ReadEvents("a", 3, 4);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_THAT(page->events, SizeIs(4));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(page->events[i].sequence(), 4 + i);
    EXPECT_EQ(page->events[i].job(), "jobs/a");
  }
  EXPECT_EQ(page->last_sequence, 10);
  EXPECT_FALSE(page->ended);
  page = store_->ReadEvents("a", 10, 4);
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(page->events, IsEmpty());
  EXPECT_EQ(store_->ReadEvents("c", 0, 4).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StoreTest, APageOfALogEndsAtItsMostBytes) {
  const std::string notice(100'000, 'n');
  ASSERT_TRUE(Insert(MakeJob("a")).ok());
  ASSERT_TRUE(AddEvents("a", 10, notice).ok());
  // The notice and less than 100 bytes of other fields: 2 events have less than 250,000 bytes, 3 have more.
  v1::JobEvent event;
  event.set_job("jobs/a");
  event.set_sequence(10);
  event.mutable_notice()->set_message(notice);
  ASSERT_LT(event.ByteSizeLong(), notice.size() + 100);
  const auto events_in = [&](int64_t after, int limit, int64_t most_bytes) {
    std::vector<int64_t> sequences;
    const auto page = store_->ReadEvents("a", after, limit, most_bytes);
    EXPECT_TRUE(page.ok() && page->last_sequence == 10) << page.status();
    if (!page.ok()) return sequences;
    for (const v1::JobEvent& read : page->events) {
      EXPECT_EQ(read.notice().message(), notice);
      sequences.push_back(read.sequence());
    }
    return sequences;
  };
  EXPECT_THAT(events_in(0, 100, 250'000), ElementsAre(1, 2));
  EXPECT_THAT(events_in(2, 100, 250'000), ElementsAre(3, 4));
  EXPECT_THAT(events_in(9, 100, 250'000), ElementsAre(10));
  EXPECT_THAT(events_in(0, 1, 250'000), ElementsAre(1));
  // An event larger than a page is a page of its own.
  EXPECT_THAT(events_in(4, 100, 1), ElementsAre(5));
  EXPECT_THAT(events_in(10, 100, 1), IsEmpty());
  EXPECT_THAT(store_->ReadEvents("a", 0, 100)->events, SizeIs(10));

  // The changes are the events 1, 4, 7 and 10.
  const auto changes = store_->ReadChanges(0, 100, 250'000);
  ASSERT_TRUE(changes.ok()) << changes.status();
  ASSERT_THAT(changes->changes, SizeIs(2));
  EXPECT_EQ(changes->changes[1].event.sequence(), 4);
  const auto rest = store_->ReadChanges(changes->changes[1].cursor, 100, 1);
  ASSERT_TRUE(rest.ok()) << rest.status();
  ASSERT_THAT(rest->changes, SizeIs(1));
  EXPECT_EQ(rest->changes[0].event.sequence(), 7);
  EXPECT_THAT(store_->ReadChanges(0, 100)->changes, SizeIs(4));
}

TEST_F(StoreTest, VisitsALogUntilTheVisitorHasEnough) {
  ASSERT_TRUE(Insert(MakeJob("a")).ok());
  ASSERT_TRUE(AddEvents("a", 10).ok());
  std::vector<int64_t> visited;
  const auto visit = [&](int64_t after, int limit, size_t enough) {
    visited.clear();
    return store_->VisitEvents("a", after, limit, [&](const v1::JobEvent& event) {
      EXPECT_EQ(event.job(), "jobs/a");
      visited.push_back(event.sequence());
      return visited.size() < enough;
    });
  };
  auto newest = visit(3, 4, 100);
  ASSERT_TRUE(newest.ok()) << newest.status();
  EXPECT_EQ(*newest, 10);
  EXPECT_THAT(visited, ElementsAre(4, 5, 6, 7));
  ASSERT_TRUE(visit(0, 100, 2).ok());
  EXPECT_THAT(visited, ElementsAre(1, 2));
  ASSERT_TRUE(visit(10, 100, 100).ok());
  EXPECT_THAT(visited, IsEmpty());
  EXPECT_EQ(store_->VisitEvents("c", 0, 4, [](const v1::JobEvent&) { return true; }).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(StoreTest, AnEventIsNeverOverwritten) {
  ASSERT_TRUE(Insert(MakeJob("a")).ok());
  ASSERT_TRUE(AddEvents("a", 1).ok());
  EXPECT_EQ(Write([](Transaction& transaction) -> absl::Status {
              TANDEM_ASSIGN_OR_RETURN(StoredJob job, transaction.GetJob("a"));
              v1::JobEvent event;
              event.set_sequence(1);
              return transaction.AppendEvent(job, event);
            }).code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(StoreTest, DeletingAJobTakesItsEventsAndKeepsTheCursorsOfOthers) {
  ASSERT_TRUE(Insert(MakeJob("a"), "request").ok());
  ASSERT_TRUE(Insert(MakeJob("b")).ok());
  ASSERT_TRUE(AddEvents("a", 1).ok());
  ASSERT_TRUE(AddEvents("b", 1).ok());
  ASSERT_TRUE(AddEvents("a", 3).ok());
  auto changes = store_->ReadChanges(0, 100);
  ASSERT_TRUE(changes.ok());
  ASSERT_THAT(changes->changes, SizeIs(3));
  const int64_t of_b = changes->changes[1].cursor;
  const int64_t newest = changes->newest_cursor;
  EXPECT_EQ(newest, changes->changes[2].cursor);

  ASSERT_TRUE(Write([](Transaction& transaction) -> absl::Status {
                TANDEM_ASSIGN_OR_RETURN(const StoredJob job, transaction.GetJob("a"));
                return transaction.DeleteJob(job);
              }).ok());
  Reopen();
  EXPECT_EQ(store_->GetJob("a").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->ReadEvents("a", 0, 10).status().code(), absl::StatusCode::kNotFound);
  changes = store_->ReadChanges(0, 100);
  ASSERT_TRUE(changes.ok());
  ASSERT_THAT(changes->changes, SizeIs(1));
  EXPECT_EQ(changes->changes[0].cursor, of_b);
  EXPECT_EQ(changes->changes[0].event.job(), "jobs/b");
  EXPECT_EQ(changes->newest_cursor, newest);

  // A cursor is never reused, but the request id may be.
  ASSERT_TRUE(Insert(MakeJob("c"), "request").ok());
  ASSERT_TRUE(AddEvents("c", 1).ok());
  changes = store_->ReadChanges(of_b, 100);
  ASSERT_TRUE(changes.ok());
  ASSERT_THAT(changes->changes, SizeIs(1));
  EXPECT_GT(changes->changes[0].cursor, newest);
}

TEST_F(StoreTest, TheEventsOfADeletedJobGoInPieces) {
  ASSERT_TRUE(Insert(MakeJob("a"), "request").ok());
  ASSERT_TRUE(AddEvents("a", 25).ok());
  ASSERT_TRUE(Insert(MakeJob("b")).ok());
  ASSERT_TRUE(AddEvents("b", 5).ok());
  ASSERT_TRUE(Write([](Transaction& transaction) -> absl::Status {
                TANDEM_ASSIGN_OR_RETURN(const StoredJob job, transaction.GetJob("a"));
                return transaction.DeleteJob(job);
              }).ok());
  // Nothing shows the job from now on, and a new job may use its id.
  EXPECT_EQ(store_->GetJob("a").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(List({}), ElementsAre("b"));
  EXPECT_TRUE(*store_->WasDeleted("a"));
  EXPECT_FALSE(store_->FindRequest("request")->has_value());
  EXPECT_THAT(*store_->NonTerminalJobs(), SizeIs(1));
  ASSERT_TRUE(Insert(MakeJob("a", 2), "request").ok());
  ASSERT_TRUE(AddEvents("a", 2).ok());

  int pieces = 0;
  for (bool more = true; more; ++pieces) {
    ASSERT_TRUE(Write([&more](Transaction& transaction) -> absl::Status {
                  TANDEM_ASSIGN_OR_RETURN(more, transaction.RemoveDeleted(10));
                  return absl::OkStatus();
                }).ok());
  }
  // 10, 10, 5 and the job, plus a look that finds nothing.
  EXPECT_EQ(pieces, 4);
  EXPECT_THAT(store_->ReadEvents("a", 0, 100)->events, SizeIs(2));
  EXPECT_THAT(store_->ReadEvents("b", 0, 100)->events, SizeIs(5));
}

TEST_F(StoreTest, WritesGoOnBetweenThePiecesOfADeletion) {
  ASSERT_TRUE(Insert(MakeJob("a")).ok());
  ASSERT_TRUE(AddEvents("a", 5000).ok());
  ASSERT_TRUE(Write([](Transaction& transaction) -> absl::Status {
                TANDEM_ASSIGN_OR_RETURN(const StoredJob job, transaction.GetJob("a"));
                return transaction.DeleteJob(job);
              }).ok());
  // The writer blocks until both are requested.
  std::promise<void> both;
  store_->Write(
      [&both](Transaction&) {
        both.get_future().wait();
        return absl::OkStatus();
      },
      [](const absl::Status&) {});
  store_->RemoveDeleted();
  bool more = false;
  Awaited<absl::Status> done;
  store_->Write(
      [&more](Transaction& transaction) -> absl::Status {
        TANDEM_ASSIGN_OR_RETURN(more, transaction.RemoveDeleted(1));
        return absl::OkStatus();
      },
      done.Done());
  both.set_value();
  ASSERT_TRUE(done.Get().ok());
  // The write ran after the first piece and long before the last.
  EXPECT_TRUE(more);
  // The next daemon removes the rest.
  Reopen();
  for (more = true; more;) {
    ASSERT_TRUE(Write([&more](Transaction& transaction) -> absl::Status {
                  TANDEM_ASSIGN_OR_RETURN(more, transaction.RemoveDeleted(1000));
                  return absl::OkStatus();
                }).ok());
  }
}

TEST_F(StoreTest, FindsJobsThatHaveNotEnded) {
  int64_t time = 100;
  for (int state = v1::JOB_STATE_QUEUED; state <= v1::JOB_STATE_CANCELLED; ++state) {
    ASSERT_TRUE(Insert(MakeJob(absl::StrCat("j", state), --time, static_cast<v1::JobState>(state))).ok());
  }
  const auto jobs = store_->NonTerminalJobs();
  ASSERT_TRUE(jobs.ok());
  std::vector<std::string> names;
  for (const StoredJob& job : *jobs) names.push_back(job.job.name());
  EXPECT_THAT(names, ElementsAre("jobs/j1", "jobs/j2", "jobs/j3", "jobs/j4"));
  // Nobody holds all their specs.
  for (const StoredJob& job : *jobs) EXPECT_FALSE(job.job.has_spec());
  std::vector<std::string> visited;
  const absl::Status status = store_->VisitNonTerminalJobs([&visited](const StoredJob& job) {
    EXPECT_TRUE(job.job.has_spec());
    visited.push_back(job.job.name());
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(visited, names);
}

TEST_F(StoreTest, ListsInBothOrdersAndDirectionsPageByPage) {
  // Two jobs with the same time of creation.
  ASSERT_TRUE(Insert(MakeJob("d", 1)).ok());
  ASSERT_TRUE(Insert(MakeJob("a", 2)).ok());
  ASSERT_TRUE(Insert(MakeJob("c", 2, v1::JOB_STATE_FAILED)).ok());
  ASSERT_TRUE(Insert(MakeJob("b", 3, v1::JOB_STATE_RUNNING)).ok());
  for (const int page_size : {1, 2, 3, 4, 50}) {
    JobQuery query;
    query.page_size = page_size;
    EXPECT_THAT(List(query), ElementsAre("b", "c", "a", "d"));
    query.descending = false;
    EXPECT_THAT(List(query), ElementsAre("d", "a", "c", "b"));
    query.order = JobQuery::Order::kName;
    EXPECT_THAT(List(query), ElementsAre("a", "b", "c", "d"));
    query.descending = true;
    EXPECT_THAT(List(query), ElementsAre("d", "c", "b", "a"));
    query.states = {v1::JOB_STATE_RUNNING, v1::JOB_STATE_FAILED};
    EXPECT_THAT(List(query), ElementsAre("c", "b"));
    query.states = {v1::JOB_STATE_SUCCEEDED};
    EXPECT_THAT(List(query), IsEmpty());
  }
}

TEST_F(StoreTest, APageTokenIsOfItsQueryAlone) {
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(Insert(MakeJob(id)).ok());
  JobQuery query;
  query.page_size = 1;
  const auto page = store_->ListJobs(query);
  ASSERT_TRUE(page.ok());
  const std::string token = page->next_page_token;
  ASSERT_FALSE(token.empty());

  const auto code = [this](const JobQuery& query) { return store_->ListJobs(query).status().code(); };
  query.page_token = token;
  query.page_size = 2;  // the page size may change
  EXPECT_EQ(code(query), absl::StatusCode::kOk);
  query.descending = false;
  EXPECT_EQ(code(query), absl::StatusCode::kInvalidArgument);
  query.descending = true;
  query.states = {v1::JOB_STATE_QUEUED};
  EXPECT_EQ(code(query), absl::StatusCode::kInvalidArgument);
  query.states = {};
  for (const std::string& bad : {std::string("x"), token + "A", token.substr(1), std::string(300, '_')}) {
    query.page_token = bad;
    EXPECT_NE(code(query), absl::StatusCode::kInternal) << bad;
  }
}

TEST_F(StoreTest, APageOfLargeJobsFitsIntoAMessage) {
  for (int i = 0; i < 9; ++i) {
    StoredJob job = MakeJob(absl::StrCat("j", i), i + 1);
    job.job.mutable_spec()->mutable_dataset()->set_name(std::string(900'000, 'x'));
    ASSERT_TRUE(Insert(std::move(job)).ok());
  }
  JobQuery query;
  query.page_size = 1000;
  const auto page = store_->ListJobs(query);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->jobs, SizeIs(3));
  EXPECT_THAT(List(query), SizeIs(9));
}

TEST_F(StoreTest, APageGoesOnWhereItStoodAlthoughJobsComeAndGo) {
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(Insert(MakeJob(absl::StrCat("j", i), i + 1)).ok());
  JobQuery query;
  query.page_size = 2;
  auto page = store_->ListJobs(query);
  ASSERT_TRUE(page.ok());
  query.page_token = page->next_page_token;
  ASSERT_TRUE(Insert(MakeJob("new", 100)).ok());
  ASSERT_TRUE(Write([](Transaction& transaction) -> absl::Status {
                TANDEM_ASSIGN_OR_RETURN(const StoredJob job, transaction.GetJob("j4"));
                return transaction.DeleteJob(job);
              }).ok());
  EXPECT_THAT(List(query), ElementsAre("j3", "j2", "j1", "j0"));
}

TEST_F(StoreTest, KeepsDataSetsOverAReopening) {
  const auto insert = [&](const std::string& id, const std::string& upload, const std::string& request_id) {
    StoredDataset dataset;
    dataset.dataset.set_name(DatasetName(id));
    dataset.dataset.set_description("about " + id);
    dataset.upload = upload;
    dataset.request_id = request_id;
    dataset.request = request_id.empty() ? "" : "a request";
    return Write([&](Transaction& transaction) { return transaction.InsertDataset(dataset); });
  };
  ASSERT_TRUE(insert("flowers", "u1", "r1").ok());
  ASSERT_TRUE(insert("animals", "", "").ok());
  ASSERT_TRUE(insert("cars", "", "").ok());
  for (const auto& [id, upload, request_id] :
       {std::tuple("flowers", "", ""), std::tuple("other", "u1", ""), std::tuple("other", "", "r1")}) {
    EXPECT_EQ(insert(id, upload, request_id).code(), absl::StatusCode::kAlreadyExists);
  }
  const auto remove = [&] { return Write([](Transaction& t) { return t.DeleteDataset("cars"); }); };
  EXPECT_TRUE(remove().ok());
  EXPECT_EQ(remove().code(), absl::StatusCode::kNotFound);
  Reopen();
  const absl::StatusOr<std::vector<StoredDataset>> datasets = store_->Datasets();
  ASSERT_TRUE(datasets.ok()) << datasets.status();
  ASSERT_THAT(*datasets, SizeIs(2));
  EXPECT_EQ((*datasets)[0].dataset.description(), "about flowers");
  EXPECT_EQ((*datasets)[0].upload, "u1");
  EXPECT_EQ((*datasets)[0].request_id, "r1");
  EXPECT_EQ((*datasets)[0].request, "a request");
  EXPECT_EQ((*datasets)[1].dataset.name(), "datasets/animals");
  EXPECT_EQ((*datasets)[1].upload, "");
}

TEST_F(StoreTest, CountsJobsByState) {
  EXPECT_THAT(*store_->CountJobs(), IsEmpty());
  ASSERT_TRUE(Insert(MakeJob("a")).ok());
  ASSERT_TRUE(Insert(MakeJob("b")).ok());
  ASSERT_TRUE(Insert(MakeJob("c", 1, v1::JOB_STATE_FAILED)).ok());
  ASSERT_TRUE(Write([](Transaction& transaction) -> absl::Status {
                TANDEM_ASSIGN_OR_RETURN(const StoredJob job, transaction.GetJob("b"));
                return transaction.DeleteJob(job);
              }).ok());
  EXPECT_THAT(*store_->CountJobs(),
              ElementsAre(std::pair(v1::JOB_STATE_QUEUED, 1), std::pair(v1::JOB_STATE_FAILED, 1)));
}

TEST_F(StoreTest, AReportWritesNoIndex) {
  ASSERT_TRUE(Insert(MakeJob("a", 1, v1::JOB_STATE_RUNNING)).ok());
  int step = 0;
  const auto report = [&](v1::JobState state) {
    return Write([&](Transaction& transaction) -> absl::Status {
      TANDEM_ASSIGN_OR_RETURN(StoredJob job, transaction.GetJobWithoutSpec("a"));
      job.job.set_state(state);
      job.job.mutable_progress()->set_step(++step);
      return transaction.UpdateJob(&job);
    });
  };
  // The write-ahead log has a page and 24 bytes for each page of each commit.
  const auto written_pages = [&] {
    constexpr int kFrameBytes = 4096 + 24;
    return std::filesystem::file_size(folder_.path() + "/tandem.db-wal") / kFrameBytes;
  };
  ASSERT_TRUE(report(v1::JOB_STATE_RUNNING).ok());
  const auto before = written_pages();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(report(v1::JOB_STATE_RUNNING).ok());
  EXPECT_EQ(written_pages() - before, 10);
  EXPECT_EQ(store_->GetJob("a")->job.progress().step(), 11);
  ASSERT_TRUE(report(v1::JOB_STATE_PAUSING).ok());
  EXPECT_EQ(store_->GetJob("a")->job.progress().step(), 12);
  EXPECT_THAT(*store_->CountJobs(), ElementsAre(std::pair(v1::JOB_STATE_PAUSING, 1)));
}

TEST_F(StoreTest, AProbeIsWrittenAndChangesNothing) {
  const int64_t before = std::filesystem::file_size(folder_.path() + "/tandem.db-wal");
  Awaited<absl::Status> done;
  store_->Probe(done.Done());
  EXPECT_TRUE(done.Get().ok());
  EXPECT_GT(static_cast<int64_t>(std::filesystem::file_size(folder_.path() + "/tandem.db-wal")), before);
  EXPECT_FALSE(*store_->WasDeleted("/"));
}

TEST_F(StoreTest, ItsCommitsAreHeardOf) {
  Awaited<int> heard;
  store_->SetCommitObserver(
      [done = heard.Done()](absl::Duration duration, int writes, const absl::Status& status) mutable {
        EXPECT_GT(duration, absl::ZeroDuration());
        EXPECT_TRUE(status.ok()) << status;
        done(writes);
      });
  ASSERT_TRUE(Insert(MakeJob("a")).ok());
  EXPECT_GE(heard.Get(), 1);
  store_->SetCommitObserver(nullptr);
  EXPECT_TRUE(Insert(MakeJob("b")).ok());
}

}  // namespace
}  // namespace tandem
