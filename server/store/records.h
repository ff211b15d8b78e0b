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

// Returns "jobs/<id>".
std::string JobName(const std::string& id);
// Returns the id in "jobs/<id>"; empty if `name` has another form.
std::string JobId(const std::string& name);
// Returns "sweeps/<id>".
std::string SweepName(const std::string& id);
// Returns the id in "sweeps/<id>"; empty if `name` has another form.
std::string SweepId(const std::string& name);
// Returns "datasets/<id>".
std::string DatasetName(const std::string& id);
// Returns the id in "datasets/<id>", or the argument if it is an id.
std::string DatasetId(const std::string& name_or_id);
// Returns true if a job in this state has ended. Its log is then complete, unless the job is resumed.
bool IsTerminal(v1::JobState state);
// Returns true if a job in this state has ended or is paused. A remaining worker is about to exit.
bool IsAtRest(v1::JobState state);
// Returns true if a job in this state has a worker and holds devices.
bool IsHolding(v1::JobState state);
// Returns true if the worker of a job in this state must write a checkpoint and stop, so that the job may
// continue later.
bool IsToStopForNow(v1::JobState state);

// A job in the store.
struct StoredJob {
  // The number of its row; larger for later jobs.
  int64_t number = 0;
  // Without `waiting`, which is not stored.
  v1::Job job;
  // The newest applied event of its current attempt's worker; 0 before the first.
  int64_t last_worker_sequence = 0;
  // True if its spec keeps the weights of the best result. The store sets it, because not every read includes
  // the spec.
  bool keeps_best = false;
};

// A job that was created for a request id, and the request's spec.
struct StoredRequest {
  StoredJob job;
  v1::JobSpec submitted_spec;
};

// A sweep in the store, and its current jobs.
struct StoredSweep {
  // The number of its row; larger for later sweeps.
  int64_t number = 0;
  // Without the fields that its jobs determine. Its state is CANCELLING after a cancellation, and otherwise
  // unset.
  v1::Sweep sweep;
  // Without their specs, in the order of creation.
  std::vector<StoredJob> jobs;
};

// A sweep that was created for a request id, and the request's sweep.
struct StoredSweepRequest {
  StoredSweep sweep;
  v1::Sweep submitted;
};

// A sweep in a list, with a summary of its jobs.
struct ListedSweep {
  // As StoredSweep::number.
  int64_t number = 0;
  // As StoredSweep::sweep.
  v1::Sweep sweep;
  // The number of its jobs in each state, without zeros.
  std::map<v1::JobState, int> counts;
  // True if it has jobs and all have ended.
  bool has_ended = false;
  // The end of its last job; 0 if none has ended.
  int64_t end_time_us = 0;
  // The first job with the objective's best value (Downloadable::measured), without its spec. Unset until a
  // job that has not FAILED has a measurement.
  std::optional<StoredJob> best;
};

// The approximate number of jobs in the sweeps of a page. An index entry is read for each job.
inline constexpr int64_t kMostListedJobs = 100000;

// A page of sweeps.
struct SweepPage {
  std::vector<ListedSweep> sweeps;
  // ListedSweep::number of the last sweep; 0 on the last page.
  int64_t next_before = 0;
};

// A registered data set in the store.
struct StoredDataset {
  // Without the facts of its files: name, description, spec and so on.
  v1::Dataset dataset;
  // The folder of its files in the uploads' folder; empty if it has no upload.
  std::string upload;
  // The request id of its creation; may be empty.
  std::string request_id;
  // The digest that identifies a repeated request (server/datasets/request_digest.h); empty if request_id is
  // empty.
  std::string request;
};

// The most facts about data sets' files under one prefix of keys, and their most bytes. A named set has up to
// two facts: with and without counts. A user's 200 sets with the most class names have 50 MiB of facts.
inline constexpr int64_t kMostDataFactsKept = 1000;
inline constexpr int64_t kMostDataFactsBytesKept = 64 << 20;

// A part of a job's log, and the log's state in the same snapshot.
struct EventPage {
  std::vector<v1::JobEvent> events;
  // The sequence number of the job's newest event.
  int64_t last_sequence = 0;
  // True if the newest event is terminal.
  bool ended = false;
};

// A job's state change, in the order over all jobs.
struct JobChange {
  // Larger for later changes; may have gaps.
  int64_t cursor = 0;
  // Always a state_change.
  v1::JobEvent event;
};

// A part of the log of changes, and the newest cursor in the same snapshot.
struct ChangePage {
  std::vector<JobChange> changes;
  // The largest cursor so far, deleted jobs included.
  int64_t newest_cursor = 0;
};

// The filter and order of a list of jobs.
struct JobQuery {
  enum class Order { kCreateTime, kName };
  // Only jobs in these states; empty: all.
  std::vector<v1::JobState> states;
  Order order = Order::kCreateTime;
  bool descending = true;
  // At least 1.
  int page_size = 50;
  // JobPage::next_page_token of the previous page, which must have the same states and order. Empty for the
  // first page.
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
