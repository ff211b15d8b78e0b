#include "server/store/interruption.h"

#include <sqlite3.h>

#include <algorithm>

namespace tandem {
namespace {

// Steps of SQLite's virtual machine; less than a millisecond.
constexpr int kStepsToStop = 10000;

}  // namespace

void Interruption::Request() {
  requested_ = true;
  // A whole check of a tree is a single step of that machine, so the progress handler is not enough.
  MutexLock lock(&mutex_);
  for (sqlite3* const database : databases_) sqlite3_interrupt(database);
}

Interruption::Scope::Scope(Interruption* interruption, sqlite3* database)
    : interruption_(interruption), database_(database) {
  // SQLite forgets an interrupt if nothing runs. The progress handler stops later statements.
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
