#ifndef TANDEM_SERVER_STORE_RECORDS_H_
#define TANDEM_SERVER_STORE_RECORDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tandem/v1/dataset.pb.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"
#include "tandem/v1/sweep.pb.h"

namespace tandem {

// "jobs/<id>" of an id.
std::string JobName(const std::string& id);
// The id of "jobs/<id>"; empty where `name` is not of that form.
std::string JobId(const std::string& name);
// "sweeps/<id>" of an id.
std::string SweepName(const std::string& id);
// The id of "sweeps/<id>"; empty where `name` is not of that form.
std::string SweepId(const std::string& name);
// "datasets/<id>" of an id.
std::string DatasetName(const std::string& id);
// The id of "datasets/<id>", or what is an id by itself.
std::string DatasetId(const std::string& name_or_id);
// Whether a job in this state has ended: its log is complete, unless it is resumed.
bool IsTerminal(v1::JobState state);
// Whether a job in this state has ended or is paused: its worker, where it still has one, is about to exit.
bool IsAtRest(v1::JobState state);

// A job as the store keeps it.
struct StoredJob {
  // Its row; grows with each job created.
  int64_t number = 0;
  // Without `waiting`, which is not stored.
  v1::Job job;
  // The newest event of its present attempt's worker that was applied; 0 before the first.
  int64_t last_worker_sequence = 0;
  // Its spec asks for the weights of its best result. Set by the store, which does not read every spec.
  bool keeps_best = false;
};

// A job that was made for a request id, and the spec as the request had it.
struct StoredRequest {
  StoredJob job;
  v1::JobSpec submitted_spec;
};

// A sweep as the store keeps it, and the jobs that it has at the moment.
struct StoredSweep {
  // Its row; grows with each sweep created.
  int64_t number = 0;
  // What does not follow from its jobs. Its state is CANCELLING from when it was cancelled on, else unset.
  v1::Sweep sweep;
  // Without their specs, in the order in which they were made.
  std::vector<StoredJob> jobs;
};

// A sweep that was made for a request id, and the sweep as the request had it.
struct StoredSweepRequest {
  StoredSweep sweep;
  v1::Sweep submitted;
};

// A sweep in a list: what its jobs come to.
struct ListedSweep {
  // As StoredSweep::number.
  int64_t number = 0;
  // As StoredSweep::sweep.
  v1::Sweep sweep;
  // Its jobs in each state, those states alone in which there are some.
  std::map<v1::JobState, int> counts;
  // All its jobs have ended, and there are some.
  bool has_ended = false;
  // When the last of its jobs ended; 0 where none has.
  int64_t end_time_us = 0;
  // The first of its jobs whose downloadable weights (server/store/downloadable.h) have the best value of
  // its objective, without its spec; none before the first measurement of a job that has not FAILED.
  std::optional<StoredJob> best;
};

// How many jobs the sweeps of a page have, about: of each an entry of an index is read.
inline constexpr int64_t kMostListedJobs = 100000;

// A page of sweeps.
struct SweepPage {
  std::vector<ListedSweep> sweeps;
  // ListedSweep::number of the last; 0 on the last page.
  int64_t next_before = 0;
};

// A registered data set as the store keeps it.
struct StoredDataset {
  // What does not follow from its files: name, description, spec and so on.
  v1::Dataset dataset;
  // The folder of its files among those of uploads; empty where none were uploaded for it.
  std::string upload;
  // Of the request that made it; may be empty.
  std::string request_id;
  // By what a repetition of that request is recognised (server/datasets/request_digest.h); empty where
  // request_id is.
  std::string request;
};

// The most facts about data sets' files under one prefix of keys, and the most bytes of these facts. A named
// set has up to two: facts without counts, and facts with counts. A user's 200 sets with all names of classes
// that are shown have 50 MiB of facts.
inline constexpr int64_t kMostDataFactsKept = 1000;
inline constexpr int64_t kMostDataFactsBytesKept = 64 << 20;

// A piece of a job's log, and how the job stood in the same snapshot.
struct EventPage {
  std::vector<v1::JobEvent> events;
  // The job's newest event.
  int64_t last_sequence = 0;
  // The newest event is the terminal one.
  bool ended = false;
};

// A job's change of state, in the order over all jobs.
struct JobChange {
  // Grows with each change; may have gaps.
  int64_t cursor = 0;
  // Its kind is state_change.
  v1::JobEvent event;
};

// A piece of the log of changes, and the newest cursor in the same snapshot.
struct ChangePage {
  std::vector<JobChange> changes;
  // The largest cursor ever given, to jobs deleted since included.
  int64_t newest_cursor = 0;
};

// Which jobs to list, and how.
struct JobQuery {
  enum class Order { kCreateTime, kName };
  // Only jobs in one of these states; all where empty.
  std::vector<v1::JobState> states;
  Order order = Order::kCreateTime;
  bool descending = true;
  // At least 1.
  int page_size = 50;
  // JobPage::next_page_token of the page before, asked with the same states and order; empty for the first.
  std::string page_token;
};

// A page of jobs.
struct JobPage {
  std::vector<v1::Job> jobs;
  // Empty on the last page.
  std::string next_page_token;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_STORE_RECORDS_H_
