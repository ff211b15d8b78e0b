#include "server/jobs/transitions.h"

#include <iterator>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/store/records.h"

namespace tandem {
namespace {

constexpr v1::JobState kStates[] = {
    v1::JOB_STATE_QUEUED,    v1::JOB_STATE_STARTING,   v1::JOB_STATE_RUNNING,   v1::JOB_STATE_CANCELLING,
    v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED,     v1::JOB_STATE_CANCELLED, v1::JOB_STATE_PAUSING,
    v1::JOB_STATE_PAUSED,    v1::JOB_STATE_PREEMPTING,
};

// A second copy of the table, written by hand as letters: the next state, '=' to stay, '.' to refuse.
constexpr char kLetters[] = "QSRCsfcPpM";
struct Expected {
  Trigger trigger;
  // One letter for each of kStates.
  const char* next;
};
constexpr Expected kExpected[] = {
    //                              QSRCsfcPpM
    {Trigger::kSchedule, "S........."},
    {Trigger::kRequeue, ".Q........"},
    {Trigger::kTrainingStarted, ".R.=...=.="},
    {Trigger::kReport, ".===...=.="},
    {Trigger::kFinishedSucceeded, "..sc...s.s"},
    {Trigger::kFinishedFailed, ".ffc...f.f"},
    {Trigger::kFinishedCancelled, ".ffc...f.f"},
    {Trigger::kFinishedPaused, ".ffc...p.Q"},
    {Trigger::kWorkerLost, ".ffc===p=Q"},
    {Trigger::kRestart, ".QQ......."},
    {Trigger::kCancel, "cCC=..=CcC"},
    {Trigger::kPause, "pPP....==P"},
    {Trigger::kPreempt, ".MM......="},
    {Trigger::kResume, "===..Q..Q="},
    {Trigger::kDelete, "....===..."},
};

char LetterOf(v1::JobState state) {
  for (size_t i = 0; i < std::size(kStates); ++i) {
    if (kStates[i] == state) return kLetters[i];
  }
  return '?';
}

TEST(TransitionsTest, EveryStateAndTrigger) {
  ASSERT_EQ(std::size(kExpected), std::size(kTriggers));
  for (const Expected& expected : kExpected) {
    for (size_t i = 0; i < std::size(kStates); ++i) {
      const Transition transition = NextState(kStates[i], expected.trigger);
      const char actual = transition.outcome == Transition::Outcome::kRefuse ? '.'
                          : transition.outcome == Transition::Outcome::kStay ? '='
                                                                             : LetterOf(transition.to);
      EXPECT_EQ(actual, expected.next[i])
          << v1::JobState_Name(kStates[i]) << ", " << TriggerName(expected.trigger);
    }
    EXPECT_EQ(NextState(v1::JOB_STATE_UNSPECIFIED, expected.trigger).outcome, Transition::Outcome::kRefuse);
  }
}

TEST(TransitionsTest, NothingLeavesATerminalStateButAResume) {
  for (const v1::JobState state : kStates) {
    for (const Trigger trigger : kTriggers) {
      if (IsTerminal(state) && trigger != Trigger::kResume) {
        EXPECT_NE(NextState(state, trigger).outcome, Transition::Outcome::kMove);
      }
    }
  }
}

TEST(TransitionsTest, EveryStateCanBeReachedAndEveryJobCanEnd) {
  std::map<v1::JobState, std::set<v1::JobState>> next;
  for (const v1::JobState state : kStates) {
    for (const Trigger trigger : kTriggers) {
      const Transition transition = NextState(state, trigger);
      if (transition.outcome == Transition::Outcome::kMove) next[state].insert(transition.to);
    }
  }
  const auto reachable = [&next](v1::JobState from) {
    std::set<v1::JobState> reached = {from};
    for (size_t before = 0; before != reached.size();) {
      before = reached.size();
      for (const v1::JobState state : std::set<v1::JobState>(reached)) {
        reached.insert(next[state].begin(), next[state].end());
      }
    }
    return reached;
  };
  EXPECT_EQ(reachable(v1::JOB_STATE_QUEUED).size(), std::size(kStates));
  for (const v1::JobState state : kStates) {
    bool ends = false;
    for (const v1::JobState reached : reachable(state)) ends = ends || IsTerminal(reached);
    EXPECT_TRUE(ends) << v1::JobState_Name(state);
  }
}

TEST(TransitionsTest, TriggersHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Trigger trigger : kTriggers) names.insert(std::string(TriggerName(trigger)));
  EXPECT_EQ(names.size(), std::size(kTriggers));
}

}  // namespace
}  // namespace tandem
