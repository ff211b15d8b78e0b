#ifndef TANDEM_CLIENT_DASHBOARD_JOB_LIST_H_
#define TANDEM_CLIENT_DASHBOARD_JOB_LIST_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/lib/client.h"

namespace tandem::dashboard {

// The rows of all jobs of the daemon (JobRow). Two threads follow the jobs while a page has a view. The first
// thread gets changed states at once. The second thread reads running jobs once a second. It also reads the
// whole list from time to time, and then drops rows of deleted jobs. Thread-safe.
class JobList {
 public:
  // The client must outlive this object.
  explicit JobList(client::Client* client) : client_(client) {}
  // Stops following. All views must be destroyed before.
  ~JobList();
  JobList(const JobList&) = delete;
  JobList& operator=(const JobList&) = delete;

  // Rows that changed after a version, as JSON texts, and names of deleted jobs.
  struct Changes {
    // The version for the next call.
    int64_t version = 0;
    std::vector<std::string> rows;
    std::vector<std::string> deleted;
    // OK if the daemon answers, or the error. UNAVAILABLE before the first answer.
    absl::Status connection;
  };

  // A view of an open page. The threads run from the start of the first view to the end of the last view.
  class View {
   public:
    explicit View(JobList* list) : list_(list) { list_->Enter(); }
    ~View() { list_->Leave(); }
    View(const View&) = delete;
    View& operator=(const View&) = delete;

    // Waits at most `at_most` until a row changes after `version`. -1 returns all rows: the first answer with
    // a version of 0 or more has every row.
    Changes Await(int64_t version, absl::Duration at_most) { return list_->Await(version, at_most); }

   private:
    JobList* const list_;
  };

 private:
  struct Row {
    std::string json;
    int64_t version = 0;
    bool is_active = false;
    std::deque<double> losses;
    int64_t step = -1;
  };

  void Enter() ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave() ABSL_LOCKS_EXCLUDED(mutex_);
  Changes Await(int64_t version, absl::Duration at_most) ABSL_LOCKS_EXCLUDED(mutex_);

  // The threads.
  void Read() ABSL_LOCKS_EXCLUDED(mutex_);
  void Hear() ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads the whole list.
  absl::Status ReadAll() ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads a job, and drops its row if the job was deleted.
  absl::Status ReadOne(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  void Put(const v1::Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetConnection(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsStopped() ABSL_LOCKS_EXCLUDED(mutex_);

  client::Client* const client_;

  // Held while threads start or are joined.
  absl::Mutex threads_mutex_;
  int views_ ABSL_GUARDED_BY(threads_mutex_) = 0;
  std::optional<std::thread> reader_ ABSL_GUARDED_BY(threads_mutex_);
  std::optional<std::thread> hearer_ ABSL_GUARDED_BY(threads_mutex_);

  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = true;
  bool has_all_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status connection_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Row> rows_ ABSL_GUARDED_BY(mutex_);
  // Deleted jobs, by the version of their deletion.
  std::map<int64_t, std::string> deleted_ ABSL_GUARDED_BY(mutex_);
  // Jobs whose states changed.
  std::set<std::string> heard_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem::dashboard

#endif  // TANDEM_CLIENT_DASHBOARD_JOB_LIST_H_
