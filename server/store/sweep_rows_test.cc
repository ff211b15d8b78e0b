#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "server/store/awaited.h"
#include "server/store/store.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

// A job of the sweep "s" with the best accuracy `best` and the newest accuracy `last`.
StoredJob Measured(const std::string& id, double best, double last, bool keeps_best) {
  StoredJob row;
  row.job.set_name(JobName(id));
  row.job.set_sweep(SweepName("s"));
  row.job.set_state(v1::JOB_STATE_RUNNING);
  if (keeps_best) row.job.mutable_spec()->mutable_training()->mutable_best_model();
  row.job.mutable_best()->set_metric("accuracy");
  row.job.mutable_best()->set_validation(true);
  row.job.mutable_best()->set_value(best);
  (*row.job.mutable_last_epoch()->mutable_validation()->mutable_metrics())["accuracy"] = last;
  return row;
}

class SweepRowsTest : public testing::Test {
 protected:
  SweepRowsTest() : store_(*Store::Open(folder_.path() + "/tandem.db")) {}

  absl::Status Write(std::function<absl::Status(Transaction&)> body) {
    Awaited<absl::Status> done;
    store_->Write(std::move(body), done.Done());
    return done.Get();
  }

  // Creates the sweep "s" with these jobs.
  void Make(std::vector<StoredJob> jobs) {
    const absl::Status made = Write([&](Transaction& transaction) {
      StoredSweep sweep;
      sweep.sweep.set_name(SweepName("s"));
      sweep.sweep.mutable_objective()->set_metric("accuracy");
      sweep.sweep.mutable_objective()->set_mode(v1::PLATEAU_MODE_MAX);
      sweep.sweep.set_jobs(static_cast<int>(jobs.size()));
      TANDEM_RETURN_IF_ERROR(transaction.InsertSweep(&sweep, "", v1::Sweep()));
      for (StoredJob& job : jobs) {
        TANDEM_RETURN_IF_ERROR(transaction.InsertJob(&job, "", v1::JobSpec()));
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(made.ok()) << made;
  }

  // Ends the job with these artifacts.
  void End(const std::string& id, std::vector<std::string> artifacts) {
    const absl::Status ended = Write([&](Transaction& transaction) -> absl::Status {
      // Worker events are also applied without the spec.
      TANDEM_ASSIGN_OR_RETURN(StoredJob row, transaction.GetJobWithoutSpec(id));
      row.job.set_state(v1::JOB_STATE_SUCCEEDED);
      for (const std::string& name : artifacts) row.job.add_artifacts()->set_name(name);
      return transaction.UpdateJob(&row);
    });
    ASSERT_TRUE(ended.ok()) << ended;
  }

  // Returns the best job of the only sweep in the list; empty if none.
  std::string Best() {
    const absl::StatusOr<SweepPage> page = store_->ListSweeps(0, 10);
    EXPECT_TRUE(page.ok()) << page.status();
    EXPECT_EQ(page->sweeps.size(), 1);
    return page->sweeps[0].best.has_value() ? page->sweeps[0].best->job.name() : "";
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
};

TEST_F(SweepRowsTest, BestWeightsThatAreNotKeptDoNotCount) {
  Make({Measured("a", /*best=*/0.9, /*last=*/0.7, /*keeps_best=*/false),
        Measured("b", /*best=*/0.85, /*last=*/0.75, /*keeps_best=*/false)});
  EXPECT_EQ(Best(), "jobs/b");
  End("a", {"model.safetensors"});
  End("b", {"model.safetensors"});
  EXPECT_EQ(Best(), "jobs/b");
}

TEST_F(SweepRowsTest, ARunningJobThatKeepsItsBestWeightsCountsByThem) {
  Make({Measured("a", /*best=*/0.9, /*last=*/0.7, /*keeps_best=*/true),
        Measured("b", /*best=*/0.85, /*last=*/0.75, /*keeps_best=*/false)});
  EXPECT_EQ(Best(), "jobs/a");
  // Its file is lost.
  End("a", {"model.safetensors"});
  EXPECT_EQ(Best(), "jobs/b");
  EXPECT_TRUE(store_->GetSweep("s")->jobs[0].keeps_best);
  EXPECT_FALSE(store_->GetSweep("s")->jobs[1].keeps_best);
}

TEST_F(SweepRowsTest, AJobThatEndedWithoutAModelIsNotTheBest) {
  Make({Measured("a", 0.9, 0.9, /*keeps_best=*/true)});
  EXPECT_EQ(Best(), "jobs/a");
  End("a", {});
  EXPECT_EQ(Best(), "");
}

}  // namespace
}  // namespace tandem
