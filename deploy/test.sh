#!/usr/bin/env bash
# Builds everything and runs every test. Ends with the line "N passed, N failed, N skipped", and exits with 0 only if
# nothing failed. Works on a bare Debian 12: deploy/setup.sh installs missing packages.
#
#   deploy/test.sh             the default: long suites run a sample
#   deploy/test.sh --whole     long suites run whole, and g++ compiles each source alone (hours)
#   deploy/test.sh --sanitize  also runs every Bazel test under the address, undefined-behaviour and thread sanitizers
#                              (hours)
set -uo pipefail
cd "$(dirname "$0")/.."

whole=0
sanitize=0
for argument in "$@"; do
  case "$argument" in
    --whole) whole=1 ;;
    --sanitize) sanitize=1 ;;
    *)
      echo "test.sh: unknown argument '$argument'; see the first lines of this file" >&2
      exit 2
      ;;
  esac
done

deploy/setup.sh --test || exit 1

passed=0
failed=0
skipped=0
failures=()
skips=()
pass() { passed=$((passed + 1)); }
fail() {
  failed=$((failed + 1))
  failures+=("$1")
}
skip() {
  skipped=$((skipped + 1))
  skips+=("$1")
}

# The parts of this script with their times, in seconds.
parts=()
part=
part_start=0
end_part() {
  if [[ -n $part ]]; then parts+=("$(printf '%6d s  %s' $((SECONDS - part_start)) "$part")"); fi
}
heading() {
  end_part
  part=$*
  part_start=$SECONDS
  printf '\n== %s\n' "$part"
}

# judge NAME CODE SECONDS LOG: counts a test that ended. Exit code 77 is a skip, and the last line of the log is its
# reason. Each line "SKIPPED: <what>: <why>" of the log is a skip of a part.
judge() {
  local name=$1 code=$2 log=$4 line
  echo "$name: $3 s"
  case "$code" in
    0) pass ;;
    77) skip "$name: $(tail -n 1 "$log")" ;;
    *) fail "$name (exit code $code)" ;;
  esac
  while read -r line; do skip "$name: ${line#SKIPPED: }"; done < <(grep -a '^SKIPPED: ' "$log" | sort -u)
}

# check NAME COMMAND...: runs a command as a test.
check() {
  local name=$1 log start=$SECONDS
  shift
  log=$(mktemp)
  "$@" 2>&1 | tee "$log"
  judge "$name" "${PIPESTATUS[0]}" $((SECONDS - start)) "$log"
  rm -f "$log"
}

# check_together N SCRIPT...: runs scripts as tests, at most N at the same time, and starts them in this order. Prints the
# whole output of a script when the script ends.
declare -A running=() # The scripts that run, by their process ids.
check_together() {
  local most=$1 log code pid
  local -A starts=() logs=()
  shift
  while (($# || ${#running[@]})); do
    while (($# && ${#running[@]} < most)); do
      log=$(mktemp)
      "$1" >"$log" 2>&1 </dev/null &
      logs[$!]=$log
      running[$!]=$1
      starts[$!]=$SECONDS
      shift
    done
    code=0
    wait -n -p pid "${!running[@]}" || code=$?
    printf -- '-- %s\n' "${running[$pid]}"
    cat "${logs[$pid]}"
    judge "${running[$pid]}" "$code" $((SECONDS - starts[$pid])) "${logs[$pid]}"
    rm -f "${logs[$pid]}"
    unset "running[$pid]"
  done
}
# Bash keeps Ctrl-C from scripts that run in the background.
trap '((${#running[@]} == 0)) || { kill "${!running[@]}" && wait; }' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Counts the cases in the test.xml files of the newest Bazel run. A test without such a file counts by Bazel's verdict.
# A line "SKIPPED: <what>: <why>" is a skip, too: a case that needs a GPU leaves only this line on a machine without a
# GPU.
count_bazel() {
  local label=$1 log=$2 target verdict xml cases bad left line missing
  while read -r target verdict; do
    xml="$(readlink -f bazel-testlogs)/${target#//}"
    xml="${xml/://}/test.xml"
    cases=$(grep -c '<testcase ' "$xml" 2>/dev/null || true)
    bad=$(grep -c '<failure ' "$xml" 2>/dev/null || true)
    left=$(grep -cE '<skipped|status="notrun"' "$xml" 2>/dev/null || true)
    cases=${cases:-0} bad=${bad:-0} left=${left:-0}
    if [[ $verdict != PASSED && $verdict != "(cached)" && $verdict != FLAKY ]]; then
      fail "$label$target ($verdict)"
      continue
    fi
    mapfile -t missing < <(grep -a '^SKIPPED: ' "${xml%.xml}.log" 2>/dev/null | sort -u)
    for line in "${missing[@]}"; do skip "$label$target: ${line#SKIPPED: }"; done
    if ((cases == 0 && ${#missing[@]} == 0)); then cases=1; fi
    passed=$((passed + cases - bad - left))
    if ((left > 0)); then
      skipped=$((skipped + left))
      skips+=("$label$target: $left case(s), see $xml")
    fi
  done < <(sed -nE 's#^(//[^ ]+) +(\(cached\) )?(PASSED|FAILED|FLAKY|TIMEOUT|NO STATUS|REMOTE FAILURE).*#\1 \3#p' "$log")
}

run_bazel_tests() {
  local label=$1 log code
  shift
  log=$(mktemp)
  bazel test --keep_going --test_summary=short --noshow_progress "$@" 2>&1 | tee "$log"
  code=${PIPESTATUS[0]}
  count_bazel "$label" "$log"
  # 0: all passed. 3: some failed, and the counts include them. Any other code: no test ran.
  if [[ $code != 0 && $code != 3 ]]; then
    fail "${label}bazel test $* (exit code $code)"
  fi
  rm -f "$log"
}

heading "Style"
check clang-format bash -c 'git ls-files "*.h" "*.cc" | xargs -P "$(nproc)" -n 100 clang-format --dry-run --Werror'
check_together 2 tests/lint/{buf.sh,prettier.sh,version.sh,documents.py,messages.py,wide_stores.py}

heading "Build"
check build bazel build --noshow_progress //...

heading "Tests"
whole_flags=()
if ((whole)); then
  whole_flags=(--test_env=TANDEM_WHOLE=1 --test_timeout=3600)
fi
# Many tests mostly wait, and everything is built: so more tests run at a time than there are cores.
run_bazel_tests "" "${whole_flags[@]}" --jobs=HOST_CPUS*1.5 --local_cpu_resources=HOST_CPUS*1.5 //...

heading "Whole-system scripts"
TANDEM_BIN_DIR=$(readlink -f bazel-bin)
export TANDEM_BIN_DIR TANDEM_WHOLE=$whole
# Other load would show in the memory and the times that this script measures.
alone=(tests/fault/hostile_clients.sh)
# All other scripts run side by side, because they mostly wait. The longest start first.
together=(
  tests/fault/{slurm_kills,full_disk}.sh tests/integration/{slurm_commands,dashboard,fetch,slurm,package,bundle,tensorboard}.sh
  tests/accuracy/{examples,tables}.sh
)
for script in tests/integration/*.sh tests/fault/*.sh tests/accuracy/*.sh tests/gpu/report_test.py; do
  if [[ -x $script && " ${alone[*]} ${together[*]} " != *" $script "* ]]; then together+=("$script"); fi
done
check_together 3 "${together[@]}"
check_together 1 "${alone[@]}"

if ((whole)); then
  # With an output base of its own, because another compiler would discard the usual build.
  heading "Each source alone (g++)"
  check g++ bazel --output_base="$HOME/.cache/tandem/gcc" build --config=gcc --output_groups=compilation_outputs \
    --noshow_progress --keep_going --experimental_convenience_symlinks=ignore \
    //client/... //engine/... //proto/... //server/... //tests/...
  bazel --output_base="$HOME/.cache/tandem/gcc" shutdown
fi

if ((sanitize)); then
  # The first two sanitizers can share a build, and each build takes long.
  for sanitizers in "asan ubsan" tsan; do
    heading "Tests under $sanitizers"
    # shellcheck disable=SC2086 # Each word is a configuration.
    run_bazel_tests "$sanitizers: " $(printf -- '--config=%s ' $sanitizers) --test_timeout=900,900,1800,3600 //...
  done
fi

find ~/.cache/tandem/bazel -type f -atime +14 -delete 2>/dev/null

heading "Result"
printf '%s\n' "${parts[@]}"
if ((${#skips[@]})); then printf 'skipped: %s\n' "${skips[@]}"; fi
if ((${#failures[@]})); then printf 'failed: %s\n' "${failures[@]}"; fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
