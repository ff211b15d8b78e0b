#!/usr/bin/env bash
# Tests the commands of server/clusters/slurm with a real Slurm cluster of two nodes, also while its controller is away.
# Exit code 77: not root, or no Slurm.
cd "$(dirname "$0")"
source ./daemon.bash
source ./slurm/cluster.bash

tests=$bin/tests/integration/slurm_commands
[[ -x $tests ]] || die "$tests is missing: bazel build //tests/integration:slurm_commands, or set TANDEM_BIN_DIR"

SLURM_LAB_GPUS=2 start_cluster 2

# run_tests PATTERN: runs tests on the login node. Their files are in a folder that all nodes have.
run_tests() {
  mkdir -p "$scratch/shared"
  TANDEM_SHARED_FOLDER=$scratch/shared "$cluster" run "$tests" --gtest_filter="$1" || die "the tests $1 failed"
}

echo "The commands do what their comments say."
run_tests 'SlurmCommandsTest.*'

echo "Without a controller, there is no answer; afterwards, there is one."
"$cluster" kill ctl
run_tests 'SlurmAwayTest.*'
"$cluster" start ctl
# A killed controller forgets its last seconds: it may know ended jobs as running.
end_jobs() { "$cluster" run scancel --user=root 2>/dev/null; }
await 180 end_jobs || die "the controller does not come back"
has_nodes() { [[ $("$cluster" run sinfo -h --responding -p work -t idle -o %D 2>/dev/null) == 2 ]]; }
await 180 has_nodes || die "the nodes do not come back"
run_tests 'SlurmCommandsTest.RunsAJobOnTwoNodes'

echo "A node that fails ends its job, and the job does not start again."
run_tests 'SlurmNodeTest.StartsAJobThatLasts'
"$cluster" kill n2
run_tests 'SlurmNodeTest.TheJobEndsWithItsNode'
"$cluster" start n2
echo "All commands passed."
