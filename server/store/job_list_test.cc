#include "server/store/job_list.h"

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/time_util.h"
#include "gtest/gtest.h"
#include "server/store/migrator.h"
#include "server/store/temporary_folder.h"
#include "server/store/transaction.h"

namespace tandem {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Not;

using Order = JobQuery::Order;

constexpr v1::JobState kStates[] = {v1::JOB_STATE_QUEUED, v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUCCEEDED};

class JobListTest : public ::testing::Test {
 protected:
  JobListTest() {
    auto connection = Connection::Open(folder_.path() + "/test.db", Connection::Access::kMake);
    EXPECT_TRUE(connection.ok()) << connection.status();
    connection_ = *std::move(connection);
    EXPECT_TRUE(Migrate(connection_.get(), Migrations()).ok());
  }

  // Adds job `i`. Its state, time and name are functions of `i`, each in another order.
  void Insert(int i) {
    StoredJob job;
    job.job.set_name(absl::StrCat("jobs/j", (i * 7) % 30 + 10));
    job.job.set_state(kStates[i % 3]);
    *job.job.mutable_create_time() =
        google::protobuf::util::TimeUtil::MicrosecondsToTimestamp((i * 11) % 13 + 1);
    job.job.set_last_sequence(1);
    ASSERT_TRUE(Transaction(connection_.get()).InsertJob(&job, "", v1::JobSpec()).ok());
    jobs_.push_back(std::move(job));
  }

  // Lists with pages of three.
  std::vector<std::string> List(JobQuery query) {
    query.page_size = 3;
    std::vector<std::string> names;
    do {
      const absl::StatusOr<JobPage> page = ReadJobList(connection_.get(), query);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) break;
      for (const v1::Job& job : page->jobs) names.push_back(job.name());
      query.page_token = page->next_page_token;
    } while (!query.page_token.empty());
    return names;
  }

  // The same, from a list of all jobs.
  std::vector<std::string> Expected(const JobQuery& query) const {
    std::vector<StoredJob> jobs = jobs_;
    std::sort(jobs.begin(), jobs.end(), [&](const StoredJob& left, const StoredJob& right) {
      const auto key = [&](const StoredJob& job) {
        const int64_t time = job.job.create_time().nanos();
        return query.order == Order::kName ? std::tuple(job.job.name(), int64_t{0}, int64_t{0})
                                           : std::tuple(std::string(), time, job.number);
      };
      return query.descending ? key(right) < key(left) : key(left) < key(right);
    });
    std::vector<std::string> names;
    for (const StoredJob& job : jobs) {
      const auto& states = query.states;
      if (states.empty() || std::count(states.begin(), states.end(), job.job.state()) > 0) {
        names.push_back(job.job.name());
      }
    }
    return names;
  }

  // Returns SQLite's plan for a statement.
  std::string Plan(const std::string& sql) {
    std::string plan;
    const auto statement = connection_->Prepare("EXPLAIN QUERY PLAN " + sql);
    for (Query query(statement.get()); query.Next();) absl::StrAppend(&plan, query.GetBlob(3), "\n");
    return plan;
  }

  static std::vector<JobQuery> Queries() {
    std::vector<JobQuery> queries;
    for (const Order order : {Order::kCreateTime, Order::kName}) {
      for (const bool descending : {false, true}) {
        for (const std::vector<v1::JobState>& states :
             std::vector<std::vector<v1::JobState>>{{},
                                                    {kStates[0]},
                                                    {kStates[2], kStates[0]},
                                                    {kStates[1], kStates[0], kStates[2], kStates[1]},
                                                    {v1::JOB_STATE_FAILED}}) {
          JobQuery query;
          query.order = order;
          query.descending = descending;
          query.states = states;
          queries.push_back(query);
        }
      }
    }
    return queries;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Connection> connection_;
  std::vector<StoredJob> jobs_;
};

TEST_F(JobListTest, EveryOrderAndSetOfStatesOverItsPages) {
  for (int i = 0; i < 30; ++i) Insert(i);
  for (const JobQuery& query : Queries()) {
    EXPECT_THAT(List(query), ElementsAreArray(Expected(query))) << JobListStatement(query);
  }
}

// With many jobs, a list that sorts or reads all of them would be slow.
TEST_F(JobListTest, NoListSortsOrReadsAllJobs) {
  for (JobQuery query : Queries()) {
    for (const char* token : {"", "any"}) {
      query.page_token = token;
      const std::string plan = Plan(JobListStatement(query));
      EXPECT_THAT(plan, HasSubstr("USING INDEX")) << JobListStatement(query);
      EXPECT_THAT(plan, Not(HasSubstr("TEMP B-TREE"))) << JobListStatement(query);
      if (query.states.empty()) continue;
      EXPECT_THAT(plan, Not(HasSubstr("SCAN"))) << JobListStatement(query);
    }
  }
}

}  // namespace
}  // namespace tandem
