#include "server/clusters/slurm/queue_answer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "server/clusters/slurm/slurm_text.h"

namespace tandem {
namespace {

constexpr absl::string_view kQueueBegin = "tandem-job|";
constexpr absl::string_view kPartitionBegin = "tandem-partition|";
constexpr absl::string_view kEnd = "|tandem-end\n";
// The bytes of a garbled answer that an error quotes.
constexpr size_t kQuoted = 200;

absl::Status Garbled(absl::string_view program, absl::string_view rest) {
  if (rest.empty()) {
    return absl::UnavailableError(absl::StrCat("cannot read the answer of ", program, ": it is empty"));
  }
  return absl::UnavailableError(absl::StrCat("cannot read the answer of ", program, ": \"",
                                             absl::CHexEscape(rest.substr(0, kQuoted)), "\" is no record"));
}

// Takes the next record from `rest`, and returns its fields. The last field may have any text.
absl::StatusOr<std::vector<absl::string_view>> TakeRecord(absl::string_view program, absl::string_view begin,
                                                          size_t fields, absl::string_view& rest) {
  const size_t end = rest.find(kEnd);
  if (!absl::StartsWith(rest, begin) || end == absl::string_view::npos) return Garbled(program, rest);
  const absl::string_view record = rest.substr(begin.size(), end - begin.size());
  std::vector<absl::string_view> parts = absl::StrSplit(record, absl::MaxSplits('|', fields - 1));
  if (parts.size() != fields) return Garbled(program, rest);
  rest.remove_prefix(end + kEnd.size());
  return parts;
}

bool IsJobId(absl::string_view text) { return !text.empty() && absl::ascii_isdigit(text[0]); }

bool IsStateName(absl::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isupper(c) || c == '_'; });
}

// Returns true for Slurm's words for "no time".
bool IsNoTime(absl::string_view text) { return text == "N/A" || text == "Unknown" || text == "NONE"; }

// Returns the nodes for people. A list in an unknown form is returned as a single name.
std::vector<std::string> NodesOf(absl::string_view list) {
  absl::StatusOr<std::vector<std::string>> nodes = ParseSlurmHosts(list);
  if (nodes.ok()) return *std::move(nodes);
  return {std::string(list)};
}

// The fields of kPartitionFormat.
struct PartitionRecord {
  std::string name;
  bool is_default = false;
  bool is_up = false;
  absl::Duration time_limit;
  int nodes = 0;
  // Slurm's short name, such as "idle" or "mix".
  std::string state;
  int cpus_per_node = 0;
  int cpus = 0, idle_cpus = 0;
  int gpus_per_node = 0;

  // Returns false if a field cannot be read.
  bool Parse(const std::vector<absl::string_view>& fields);
};

bool PartitionRecord::Parse(const std::vector<absl::string_view>& fields) {
  absl::string_view star = fields[0];
  is_default = absl::ConsumeSuffix(&star, "*");
  name = std::string(star);
  is_up = fields[1] == "up";
  const std::optional<absl::Duration> limit = ParseSlurmDuration(fields[2]);
  // "n/a" is an unlimited partition.
  time_limit = limit.value_or(absl::InfiniteDuration());
  state = std::string(fields[4]);
  // "4+" says that nodes differ.
  if (!absl::SimpleAtoi(fields[3], &nodes) ||
      !absl::SimpleAtoi(absl::StripSuffix(fields[5], "+"), &cpus_per_node)) {
    return false;
  }
  // Allocated, idle, other, total.
  const std::vector<absl::string_view> counts = absl::StrSplit(fields[6], '/');
  if (counts.size() != 4 || !absl::SimpleAtoi(counts[1], &idle_cpus) || !absl::SimpleAtoi(counts[3], &cpus)) {
    return false;
  }
  gpus_per_node = CountSlurmGpus(fields[7]);
  return !name.empty() && nodes >= 0 && cpus_per_node >= 0 && idle_cpus >= 0 && cpus >= idle_cpus;
}

// Returns true if a job can start on nodes in this state: idle, or asleep ("~"). "*" means that a node does
// not answer; other signs mean that a node will stop or is reserved.
bool IsFree(absl::string_view state) {
  return state == "idle" || state == "idle~" || state == "plnd" || state == "plnd~";
}

// Returns true if nodes in this state run jobs or can.
bool IsReady(absl::string_view state) {
  return IsFree(state) || state == "mix" || state == "alloc" || state == "comp";
}

// Returns true if nodes in this state start no jobs until a person or the node acts. "drain" also begins the
// longer name of a drained node.
bool IsDown(absl::string_view state) {
  // The node does not answer.
  if (absl::EndsWith(state, "*")) return true;
  for (const absl::string_view name : {"down", "drain", "drng", "fail", "inval", "unk"}) {
    if (absl::StartsWith(state, name)) return true;
  }
  return false;
}

void Join(const PartitionRecord& record, SlurmPartition& partition) {
  // Nothing was joined before.
  const bool is_first = partition.name.empty();
  partition.name = record.name;
  partition.is_default = record.is_default;
  partition.is_up = record.is_up;
  partition.time_limit = record.time_limit;
  partition.nodes += record.nodes;
  partition.cpus_per_node =
      is_first ? record.cpus_per_node : std::min(partition.cpus_per_node, record.cpus_per_node);
  partition.most_cpus_per_node = std::max(partition.most_cpus_per_node, record.cpus_per_node);
  partition.gpus_per_node =
      is_first ? record.gpus_per_node : std::min(partition.gpus_per_node, record.gpus_per_node);
  partition.most_gpus_per_node = std::max(partition.most_gpus_per_node, record.gpus_per_node);
  partition.cpus += record.cpus;
  partition.free_cpus += record.idle_cpus;
  partition.gpus += record.nodes * record.gpus_per_node;
  if (IsReady(record.state)) partition.ready_nodes += record.nodes;
  if (IsDown(record.state)) partition.down_nodes += record.nodes;
  if (!IsFree(record.state)) return;
  partition.free_nodes += record.nodes;
  partition.free_gpus += record.nodes * record.gpus_per_node;
}

}  // namespace

absl::StatusOr<std::vector<SlurmJob>> ParseQueue(absl::string_view output) {
  constexpr absl::string_view kProgram = "squeue";
  constexpr size_t kFields = 6;
  absl::string_view rest = output;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<absl::string_view> header,
                          TakeRecord(kProgram, kQueueBegin, kFields, rest));
  // The header has names in place of values.
  if (header[0] != "JOBID") return Garbled(kProgram, output);
  std::vector<SlurmJob> jobs;
  while (!rest.empty()) {
    const absl::string_view record = rest;
    TANDEM_ASSIGN_OR_RETURN(const std::vector<absl::string_view> fields,
                            TakeRecord(kProgram, kQueueBegin, kFields, rest));
    const std::optional<absl::Time> start = ParseSlurmTime(fields[2]);
    if (!IsJobId(fields[0]) || !IsStateName(fields[1]) || (!start.has_value() && !IsNoTime(fields[2]))) {
      return Garbled(kProgram, record);
    }
    if (!absl::StartsWith(fields[5], kSlurmCommentPrefix)) continue;
    SlurmJob job;
    job.id = std::string(fields[0]);
    job.state_text = std::string(fields[1]);
    job.state = ParseSlurmState(job.state_text);
    job.start = start;
    job.nodes = NodesOf(fields[3]);
    if (fields[4] != "None") job.reason = std::string(fields[4]);
    job.comment = std::string(fields[5]);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

absl::StatusOr<std::vector<SlurmPartition>> ParsePartitions(absl::string_view output) {
  constexpr absl::string_view kProgram = "sinfo";
  constexpr size_t kFields = 8;
  std::vector<SlurmPartition> partitions;
  absl::string_view rest = output;
  do {
    const absl::string_view text = rest;
    TANDEM_ASSIGN_OR_RETURN(const std::vector<absl::string_view> fields,
                            TakeRecord(kProgram, kPartitionBegin, kFields, rest));
    PartitionRecord record;
    if (!record.Parse(fields)) return Garbled(kProgram, text);
    auto partition = std::find_if(partitions.begin(), partitions.end(),
                                  [&](const SlurmPartition& known) { return known.name == record.name; });
    if (partition == partitions.end()) partition = partitions.insert(partitions.end(), SlurmPartition());
    Join(record, *partition);
  } while (!rest.empty());
  return partitions;
}

}  // namespace tandem
