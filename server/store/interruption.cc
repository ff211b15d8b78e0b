#include "server/store/interruption.h"

#include <sqlite3.h>

#include <algorithm>

namespace tandem {
namespace {

// Of the database's machine: less than a millisecond.
constexpr int kStepsToStop = 10000;

}  // namespace

void Interruption::Request() {
  requested_ = true;
  // Reading all pages of a tree is one step of that machine, however large the tree is.
  MutexLock lock(&mutex_);
  for (sqlite3* const database : databases_) sqlite3_interrupt(database);
}

Interruption::Scope::Scope(Interruption* interruption, sqlite3* database)
    : interruption_(interruption), database_(database) {
  // An interrupt is forgotten when nothing runs; this is for what begins after it.
  sqlite3_progress_handler(
      database, kStepsToStop,
      [](void* asked) { return static_cast<const Interruption*>(asked)->requested() ? 1 : 0; }, interruption);
  MutexLock lock(&interruption_->mutex_);
  interruption_->databases_.push_back(database);
}

Interruption::Scope::~Scope() {
  sqlite3_progress_handler(database_, 0, nullptr, nullptr);
  MutexLock lock(&interruption_->mutex_);
  auto& databases = interruption_->databases_;
  databases.erase(std::find(databases.begin(), databases.end(), database_));
}

}  // namespace tandem
