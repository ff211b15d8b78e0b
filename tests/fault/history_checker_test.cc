// Hand-made histories: a history that keeps every promise, and for each promise some that break only this
// promise.
#include "tests/fault/history_checker.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fault/history_model.h"

namespace tandem::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kJob[] = "jobs/a";

absl::Duration At(double seconds) { return absl::Seconds(seconds); }

v1::JobEvent Moved(int64_t sequence, v1::JobState from, v1::JobState to) {
  v1::JobEvent event;
  event.set_job(kJob);
  event.set_sequence(sequence);
  event.mutable_state_change()->set_from(from);
  event.mutable_state_change()->set_to(to);
  event.set_terminal(to == v1::JOB_STATE_SUCCEEDED || to == v1::JOB_STATE_FAILED ||
                     to == v1::JOB_STATE_CANCELLED);
  return event;
}

v1::JobEvent Reported(int64_t sequence) {
  v1::JobEvent event;
  event.set_job(kJob);
  event.set_sequence(sequence);
  event.mutable_progress()->set_step(sequence);
  return event;
}

// A job that is accepted, trains, reports, and is cancelled.
std::vector<v1::JobEvent> Log() {
  return {Moved(1, v1::JOB_STATE_UNSPECIFIED, v1::JOB_STATE_QUEUED),
          Moved(2, v1::JOB_STATE_QUEUED, v1::JOB_STATE_STARTING),
          Moved(3, v1::JOB_STATE_STARTING, v1::JOB_STATE_RUNNING),
          Reported(4),
          Moved(5, v1::JOB_STATE_RUNNING, v1::JOB_STATE_CANCELLING),
          Moved(6, v1::JOB_STATE_CANCELLING, v1::JOB_STATE_CANCELLED)};
}

class HistoryCheckerTest : public ::testing::Test {
 protected:
  // Each call takes half a second. The base history, which keeps all promises, has a call at each whole
  // second; its calls have the numbers of these seconds.
  HistoryCheckerTest() {
    AddCreate(0, "r1", kJob);
    AddSeen(1, CallKind::kGet, v1::JOB_STATE_QUEUED, 1);
    AddSeen(2, CallKind::kGet, v1::JOB_STATE_RUNNING, 4);
    AddSeen(3, CallKind::kCancel, v1::JOB_STATE_CANCELLING, 5);
    AddSeen(4, CallKind::kGet, v1::JOB_STATE_CANCELLED, 6);
    AddList(5, {kJob}, v1::JOB_STATE_CANCELLED, 6);
    AddWatch(6, 0, Log());
    AddWatch(7, 3, {Log()[3], Log()[4], Log()[5]});
  }

  Call& Add(double begin, CallKind kind, const std::string& job) {
    Call call;
    call.number = static_cast<int>(history_.calls.size());
    call.kind = kind;
    call.job = job;
    call.begin = At(begin);
    call.end = At(begin + 0.5);
    history_.calls.push_back(std::move(call));
    return history_.calls.back();
  }

  Call& AddCreate(double begin, const std::string& request, const std::string& job,
                  const std::string& spec_name = "") {
    Call& call = Add(begin, CallKind::kCreate, "");
    call.request_id = request;
    call.spec_name = spec_name.empty() ? request : spec_name;
    if (!job.empty()) {
      call.jobs.push_back({job, call.spec_name, v1::JOB_STATE_QUEUED, 1, call.begin, call.end});
    }
    return call;
  }

  Call& AddFailed(double begin, CallKind kind, grpc::StatusCode code, const std::string& job = kJob) {
    Call& call = Add(begin, kind, job);
    call.code = code;
    return call;
  }

  Call& AddSeen(double begin, CallKind kind, v1::JobState state, int64_t sequence) {
    Call& call = Add(begin, kind, kJob);
    call.jobs.push_back({kJob, "r1", state, sequence, call.begin, call.end});
    return call;
  }

  Call& AddList(double begin, const std::vector<std::string>& jobs, v1::JobState state, int64_t sequence) {
    Call& call = Add(begin, CallKind::kList, "");
    for (const std::string& job : jobs) {
      call.jobs.push_back({job, job == kJob ? "r1" : "r2", state, sequence, call.begin, call.end});
    }
    return call;
  }

  Call& AddWatch(double begin, int64_t after, const std::vector<v1::JobEvent>& events) {
    Call& call = Add(begin, CallKind::kWatch, kJob);
    call.after_sequence = after;
    for (const v1::JobEvent& event : events) call.events.push_back({event, call.end});
    return call;
  }

  // Replaces the log of the base history, and removes the history's other calls.
  void UseLog(const std::vector<v1::JobEvent>& events) {
    history_.calls.resize(1);
    AddWatch(6, 0, events);
  }

  std::vector<std::string> Broken(bool is_settled = true) const {
    std::vector<std::string> promises;
    for (const Violation& violation : CheckHistory(history_, is_settled)) {
      promises.push_back(violation.promise + ": " + violation.what);
      const std::string text = Explain(history_, violation);
      EXPECT_THAT(text, HasSubstr(violation.what));
      for (const int call : violation.calls) EXPECT_THAT(text, HasSubstr(Describe(history_.calls[call])));
    }
    return promises;
  }

  // Expects violations of this promise only, and at least one with this text.
  void ExpectBroken(const std::string& promise, const std::string& what) const {
    const std::vector<std::string> broken = Broken();
    EXPECT_THAT(broken, Each(HasSubstr(promise))) << absl::StrJoin(broken, "\n");
    EXPECT_THAT(broken, Contains(HasSubstr(what))) << absl::StrJoin(broken, "\n");
  }

  History history_;
};

TEST_F(HistoryCheckerTest, AGoodHistoryIsAccepted) { EXPECT_THAT(Broken(), IsEmpty()); }

TEST_F(HistoryCheckerTest, WhatMayHappenIsAccepted) {
  // An answer that did not come, and the same request again.
  AddCreate(8, "r2", "").code = grpc::StatusCode::UNAVAILABLE;
  AddCreate(9, "r2", "jobs/b");
  Call& wrong = AddCreate(10, "r3", "");
  wrong.is_valid = false;
  wrong.code = grpc::StatusCode::INVALID_ARGUMENT;
  AddCreate(11, "r1", "", "r1-other").code = grpc::StatusCode::ALREADY_EXISTS;
  // A read at the same time as another may be older than it.
  AddSeen(4.2, CallKind::kGet, v1::JOB_STATE_CANCELLING, 5);
  // Refusals because of the job's state, and calls on a deleted job.
  AddFailed(2.6, CallKind::kDelete, grpc::StatusCode::FAILED_PRECONDITION);
  AddFailed(12, CallKind::kPause, grpc::StatusCode::FAILED_PRECONDITION);
  AddFailed(13, CallKind::kWatch, grpc::StatusCode::OUT_OF_RANGE).after_sequence = 9;
  Add(14, CallKind::kDelete, kJob);
  AddFailed(14.2, CallKind::kDelete, grpc::StatusCode::NOT_FOUND);
  AddFailed(15, CallKind::kGet, grpc::StatusCode::NOT_FOUND);
  AddList(16, {"jobs/b"}, v1::JOB_STATE_QUEUED, 1);
  // Once its job is deleted, a request id is free.
  AddCreate(17, "r1", "jobs/c");
  EXPECT_THAT(Broken(/*is_settled=*/false), IsEmpty());
}

TEST_F(HistoryCheckerTest, FailedMayBeResumed) {
  UseLog({Moved(1, v1::JOB_STATE_UNSPECIFIED, v1::JOB_STATE_QUEUED),
          Moved(2, v1::JOB_STATE_QUEUED, v1::JOB_STATE_STARTING),
          Moved(3, v1::JOB_STATE_STARTING, v1::JOB_STATE_FAILED),
          Moved(4, v1::JOB_STATE_FAILED, v1::JOB_STATE_QUEUED),
          Moved(5, v1::JOB_STATE_QUEUED, v1::JOB_STATE_CANCELLED)});
  ExpectBroken("2. States", "let go on 1 times; asked for were 0");
  AddFailed(3, CallKind::kResume, grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(Broken(), IsEmpty());
}

TEST_F(HistoryCheckerTest, AnAcceptedJobIsLost) {
  AddFailed(8, CallKind::kGet, grpc::StatusCode::NOT_FOUND);
  ExpectBroken("5. Refusals", "nobody deleted it");
}

TEST_F(HistoryCheckerTest, OneRequestMakesTwoJobs) {
  AddCreate(8, "r1", "jobs/b");
  EXPECT_THAT(Broken(/*is_settled=*/false), ElementsAre(HasSubstr("and jobs/a before")));
}

TEST_F(HistoryCheckerTest, AnUnansweredRequestMakesTwoJobs) {
  AddCreate(8, "r2", "").code = grpc::StatusCode::UNAVAILABLE;
  AddList(9, {kJob}, v1::JOB_STATE_CANCELLED, 6);
  Call& list = AddList(10, {kJob, "jobs/b", "jobs/c"}, v1::JOB_STATE_QUEUED, 1);
  list.jobs[0].state = v1::JOB_STATE_CANCELLED;
  list.jobs[0].sequence = 6;
  const std::vector<std::string> broken = Broken(/*is_settled=*/false);
  EXPECT_THAT(broken, Contains(HasSubstr("and jobs/b before")));
  EXPECT_THAT(broken, Each(HasSubstr("1. Requests")));
}

TEST_F(HistoryCheckerTest, NobodyAskedForTheJob) {
  Call& list = AddList(8, {kJob, "jobs/b"}, v1::JOB_STATE_CANCELLED, 6);
  list.jobs[1].spec_name = "r7";
  EXPECT_THAT(Broken(/*is_settled=*/false), Contains(HasSubstr("nobody had asked for it")));
}

TEST_F(HistoryCheckerTest, ARefusedRequestMakesAJob) {
  Call& wrong = AddCreate(7, "r2", "");
  wrong.is_valid = false;
  wrong.code = grpc::StatusCode::INVALID_ARGUMENT;
  AddList(8, {kJob, "jobs/b"}, v1::JOB_STATE_CANCELLED, 6);
  EXPECT_THAT(Broken(/*is_settled=*/false), Contains(HasSubstr("nobody had asked for it")));
}

TEST_F(HistoryCheckerTest, AWrongSpecIsAccepted) {
  AddCreate(8, "r2", "jobs/b").is_valid = false;
  EXPECT_THAT(Broken(/*is_settled=*/false), Contains(HasSubstr("a wrong spec was accepted")));
}

TEST_F(HistoryCheckerTest, ARequestIdIsReused) {
  AddCreate(8, "r1", "jobs/b", "r1-other");
  EXPECT_THAT(Broken(/*is_settled=*/false), Contains(HasSubstr("its request id was another job's")));
}

TEST_F(HistoryCheckerTest, ARequestIsTakenForAnother) {
  AddCreate(8, "r2", "").code = grpc::StatusCode::ALREADY_EXISTS;
  ExpectBroken("1. Requests", "no other spec had been sent");
}

TEST_F(HistoryCheckerTest, AMoveOutsideTheTable) {
  UseLog({Moved(1, v1::JOB_STATE_UNSPECIFIED, v1::JOB_STATE_QUEUED),
          Moved(2, v1::JOB_STATE_QUEUED, v1::JOB_STATE_SUCCEEDED)});
  ExpectBroken("2. States", "from QUEUED to SUCCEEDED");
}

TEST_F(HistoryCheckerTest, AnEndThatChanges) {
  std::vector<v1::JobEvent> log = Log();
  log.push_back(Moved(7, v1::JOB_STATE_CANCELLED, v1::JOB_STATE_QUEUED));
  log.push_back(Moved(8, v1::JOB_STATE_QUEUED, v1::JOB_STATE_CANCELLED));
  UseLog(log);
  AddSeen(5, CallKind::kResume, v1::JOB_STATE_QUEUED, 7);
  ExpectBroken("2. States", "from CANCELLED to QUEUED");
}

TEST_F(HistoryCheckerTest, AChangeThatFollowsFromNothing) {
  std::vector<v1::JobEvent> log = Log();
  log[4] = Moved(5, v1::JOB_STATE_STARTING, v1::JOB_STATE_CANCELLING);
  UseLog(log);
  ExpectBroken("2. States", "says that the job was STARTING, which was RUNNING");
}

TEST_F(HistoryCheckerTest, AReportAfterTheEnd) {
  std::vector<v1::JobEvent> log = Log();
  log.push_back(Reported(7));
  UseLog(log);
  EXPECT_THAT(Broken(), Contains(HasSubstr("follows the job's end as CANCELLED")));
}

TEST_F(HistoryCheckerTest, AnAttemptThatComesBack) {
  std::vector<v1::JobEvent> log = Log();
  log[2].set_attempt(2);
  log[3].set_attempt(1);
  UseLog(log);
  ExpectBroken("2. States", "is of attempt 1, one before is of 2");
}

TEST_F(HistoryCheckerTest, AJobThatDoesNotEnd) {
  UseLog({Moved(1, v1::JOB_STATE_UNSPECIFIED, v1::JOB_STATE_QUEUED)});
  history_.calls.back().code = grpc::StatusCode::DEADLINE_EXCEEDED;
  ExpectBroken("2. States", "it has not ended: QUEUED");
}

TEST_F(HistoryCheckerTest, AReadThatIsOld) {
  // After the one at 4 was answered.
  AddSeen(4.6, CallKind::kGet, v1::JOB_STATE_CANCELLING, 5);
  ExpectBroken("3. Freshness", "shows event 5; event 6 was known before");
}

TEST_F(HistoryCheckerTest, AListThatIsOld) {
  AddList(8, {kJob}, v1::JOB_STATE_RUNNING, 4);
  ExpectBroken("3. Freshness", "shows event 4; event 6 was known before");
}

TEST_F(HistoryCheckerTest, AReadOlderThanAnEvent) {
  Call& watch = AddWatch(1.6, 0, {Log()[0], Log()[1], Log()[2], Log()[3]});
  watch.code = grpc::StatusCode::UNAVAILABLE;
  AddSeen(2.2, CallKind::kGet, v1::JOB_STATE_STARTING, 2);
  ExpectBroken("3. Freshness", "shows event 2; event 4 was known before");
}

TEST_F(HistoryCheckerTest, AStateThatTheLogDoesNotHave) {
  AddSeen(2, CallKind::kGet, v1::JOB_STATE_STARTING, 4);
  ExpectBroken("3. Freshness", "shows STARTING with event 4, where the log has RUNNING");
}

TEST_F(HistoryCheckerTest, AKnownEventIsOutOfRange) {
  AddFailed(8, CallKind::kWatch, grpc::StatusCode::OUT_OF_RANGE).after_sequence = 6;
  ExpectBroken("3. Freshness", "event 6 was known, and is out of range");
}

TEST_F(HistoryCheckerTest, ADeletedJobComesBack) {
  Add(8, CallKind::kDelete, kJob);
  AddSeen(9, CallKind::kGet, v1::JOB_STATE_CANCELLED, 6);
  ExpectBroken("3. Freshness", "that it was deleted was known");
}

TEST_F(HistoryCheckerTest, ADeletedJobIsListed) {
  Add(8, CallKind::kDelete, kJob);
  AddList(9, {kJob}, v1::JOB_STATE_CANCELLED, 6);
  ExpectBroken("3. Freshness", "that it was deleted was known");
}

TEST_F(HistoryCheckerTest, ADeletedJobIsWatched) {
  Add(8, CallKind::kDelete, kJob);
  AddWatch(9, 0, Log()).code = grpc::StatusCode::UNAVAILABLE;
  ExpectBroken("5. Refusals", "it was deleted, and its events came");
}

TEST_F(HistoryCheckerTest, ACancelledJobSucceeds) {
  std::vector<v1::JobEvent> log = Log();
  log[4] = Moved(5, v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUCCEEDED);
  log.pop_back();
  UseLog(log);
  AddSeen(3, CallKind::kCancel, v1::JOB_STATE_RUNNING, 4);
  ExpectBroken("4. Cancelling", "it was cancelled, and did not end so");
}

TEST_F(HistoryCheckerTest, AGrantedCallShowsNothingOfIt) {
  AddSeen(2, CallKind::kPause, v1::JOB_STATE_RUNNING, 4);
  ExpectBroken("4. Cancelling", "PauseJob was granted, and shows RUNNING");
}

TEST_F(HistoryCheckerTest, ARefusalWithoutCause) {
  AddFailed(8, CallKind::kDelete, grpc::StatusCode::FAILED_PRECONDITION);
  ExpectBroken("5. Refusals", "DeleteJob was refused");
}

TEST_F(HistoryCheckerTest, ARefusalAtTheWrongTime) {
  // It would be refused before, and later.
  AddFailed(2.1, CallKind::kCancel, grpc::StatusCode::FAILED_PRECONDITION);
  ExpectBroken("5. Refusals", "CancelJob was refused");
}

TEST_F(HistoryCheckerTest, ARunningJobIsDeleted) {
  UseLog({Log()[0], Log()[1], Log()[2], Log()[3]});
  history_.calls.back().code = grpc::StatusCode::NOT_FOUND;
  Add(5.6, CallKind::kDelete, kJob);
  AddSeen(4, CallKind::kGet, v1::JOB_STATE_RUNNING, 4);
  // No watcher saw the last event, so the job may have ended.
  EXPECT_THAT(Broken(), IsEmpty());
  // A watcher saw it.
  AddSeen(6.2, CallKind::kGet, v1::JOB_STATE_RUNNING, 4).begin = At(6.15);
  EXPECT_THAT(Broken(), Not(IsEmpty()));
}

TEST_F(HistoryCheckerTest, AnErrorThatIsNotPromised) {
  AddFailed(8, CallKind::kGet, grpc::StatusCode::INTERNAL);
  ExpectBroken("5. Refusals", "GetJob gave code 13");
}

TEST_F(HistoryCheckerTest, AGapInAStream) {
  AddWatch(8, 2, {Log()[3], Log()[4], Log()[5]});
  ExpectBroken("6. Events", "event 4 came after 2");
}

TEST_F(HistoryCheckerTest, AnEventTwice) {
  AddWatch(8, 3, {Log()[3], Log()[3], Log()[4], Log()[5]});
  ExpectBroken("6. Events", "event 4 came after 4");
}

TEST_F(HistoryCheckerTest, OutOfOrder) {
  AddWatch(8, 3, {Log()[4], Log()[3], Log()[5]});
  ExpectBroken("6. Events", "event 5 came after 3");
}

TEST_F(HistoryCheckerTest, TwoWatchersSeeDifferentEvents) {
  std::vector<v1::JobEvent> log = Log();
  log[3].mutable_progress()->set_step(5);
  AddWatch(8, 0, log);
  ExpectBroken("6. Events", "event 4 was seen as");
}

TEST_F(HistoryCheckerTest, AnEventThatNobodyGets) {
  // It is in no watcher's stream.
  history_.calls[6].events.erase(history_.calls[6].events.begin() + 3);
  history_.calls[7].events.clear();
  history_.calls[7].code = grpc::StatusCode::UNAVAILABLE;
  ExpectBroken("6. Events", "only 5 were seen");
}

TEST_F(HistoryCheckerTest, AStreamThatEndsEarly) {
  AddWatch(2, 0, {Log()[0], Log()[1], Log()[2], Log()[3]}).jobs.clear();
  ExpectBroken("6. Events", "without an end of the job");
}

TEST_F(HistoryCheckerTest, AJobListedTwice) {
  AddList(8, {kJob, kJob}, v1::JOB_STATE_CANCELLED, 6);
  ExpectBroken("7. Lists", "shows it twice");
}

TEST_F(HistoryCheckerTest, AJobThatIsNotListed) {
  AddList(8, {}, v1::JOB_STATE_CANCELLED, 6);
  ExpectBroken("7. Lists", "does not show it");
}

TEST_F(HistoryCheckerTest, AStateThatWasNotAskedFor) {
  AddList(8, {kJob}, v1::JOB_STATE_CANCELLED, 6).states = {v1::JOB_STATE_SUCCEEDED};
  ExpectBroken("7. Lists", "in a state that was not asked for");
}

TEST(JobTimelineTest, SaysBetweenWhichNumbersItWas) {
  JobTimeline timeline;
  timeline.AddKnown(At(2), 3);
  timeline.AddKnown(At(1), 5);
  timeline.AddShown(At(4), 9);
  timeline.AddShown(At(6), 7);
  timeline.Finish();
  EXPECT_EQ(timeline.Least(At(1)), 0);
  EXPECT_EQ(timeline.Least(At(1.5)), 5);
  EXPECT_EQ(timeline.Least(At(3)), 5);
  EXPECT_EQ(timeline.Most(At(3)), 7);
  EXPECT_EQ(timeline.Most(At(6)), JobTimeline::kGone);
}

}  // namespace
}  // namespace tandem::testing
