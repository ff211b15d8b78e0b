#include "server/scheduler/driver_questions.h"

#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace tandem {
namespace {

TEST(DriverQuestionsTest, GivesTheDriversAnswers) {
  DriverQuestions questions;
  EXPECT_TRUE(questions.Ask([] { return absl::OkStatus(); }, absl::Seconds(30)).ok());
  EXPECT_TRUE(absl::IsNotFound(questions.Ask([] { return absl::NotFoundError("none"); }, absl::Seconds(30))));
  questions.Stop();
  EXPECT_TRUE(absl::IsCancelled(questions.Ask([] { return absl::OkStatus(); }, absl::Seconds(30))));
}

TEST(DriverQuestionsTest, ADriverThatHangsHoldsUpNobody) {
  // The thread uses it, so it must outlive the object.
  const auto release = std::make_shared<absl::Notification>();
  const auto over = std::make_shared<absl::Notification>();
  const absl::Time begin = absl::Now();
  {
    DriverQuestions questions;
    const auto hang = [release, over] {
      release->WaitForNotification();
      over->Notify();
      return absl::OkStatus();
    };
    EXPECT_TRUE(absl::IsUnavailable(questions.Ask(hang, absl::Milliseconds(20))));
    // A question that nobody waits for is not asked later.
    bool asked = false;
    EXPECT_TRUE(absl::IsUnavailable(questions.Ask(
        [&asked] {
          asked = true;
          return absl::OkStatus();
        },
        absl::Milliseconds(20))));
    EXPECT_FALSE(asked);
    // Nothing keeps such a question.
    const auto kept = std::make_shared<int>();
    EXPECT_TRUE(absl::IsUnavailable(questions.Ask(
        [kept] {
          ADD_FAILURE() << *kept;
          return absl::OkStatus();
        },
        absl::Milliseconds(20))));
    EXPECT_EQ(kept.use_count(), 1);
    std::thread waiting([&questions] {
      EXPECT_TRUE(absl::IsCancelled(questions.Ask([] { return absl::OkStatus(); }, absl::Hours(1))));
    });
    absl::SleepFor(absl::Milliseconds(20));
    questions.Stop();
    waiting.join();
  }
  EXPECT_LT(absl::Now() - begin, absl::Seconds(20));
  release->Notify();
  over->WaitForNotification();
}

TEST(DriverQuestionsTest, OneThatWasSlowIsAskedAgain) {
  DriverQuestions questions;
  absl::Notification release;
  EXPECT_TRUE(absl::IsUnavailable(questions.Ask(
      [&release] {
        release.WaitForNotification();
        return absl::OkStatus();
      },
      absl::Milliseconds(10))));
  release.Notify();
  EXPECT_TRUE(questions.Ask([] { return absl::OkStatus(); }, absl::Seconds(30)).ok());
}

}  // namespace
}  // namespace tandem
