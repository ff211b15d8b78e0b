#ifndef TANDEM_SERVER_CLUSTERS_SLURM_QUEUE_ANSWER_H_
#define TANDEM_SERVER_CLUSTERS_SLURM_QUEUE_ANSWER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/clusters/slurm/slurm_types.h"

namespace tandem {

// The format of squeue, for its option -o. Each record stands between two fixed words, so that a comment with
// line breaks harms no other record.
inline constexpr char kQueueFormat[] = "tandem-job|%i|%T|%S|%N|%r|%k|tandem-end";
// The format of sinfo, for its option -o.
inline constexpr char kPartitionFormat[] = "tandem-partition|%P|%a|%l|%D|%t|%c|%C|%G|tandem-end";

// Reads the output of squeue with kQueueFormat and squeue's own header record. Returns the jobs whose
// comments start with kSlurmCommentPrefix. UNAVAILABLE if the output lacks the header, so that an empty
// output never means "no jobs", or if any record is garbled. Times are UTC.
absl::StatusOr<std::vector<SlurmJob>> ParseQueue(absl::string_view output);

// Reads the output of sinfo with kPartitionFormat, without a header. sinfo prints a record for each state
// and kind of nodes; the records of a partition are joined. UNAVAILABLE if the output is empty or garbled.
absl::StatusOr<std::vector<SlurmPartition>> ParsePartitions(absl::string_view output);

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_SLURM_QUEUE_ANSWER_H_
