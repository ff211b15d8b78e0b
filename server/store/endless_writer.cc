// For tests: writes events to the log of job "j0" in the given database until killed. Prints the sequence
// number of each committed event to standard output, as 8 bytes in this machine's order.

#include <unistd.h>

#include <cstdint>
#include <memory>

#include "server/store/append_next.h"
#include "server/store/awaited.h"
#include "server/store/store.h"

int main(int argument_count, char** arguments) {
  if (argument_count != 2) return 2;
  const auto store = tandem::Store::Open(arguments[1]);
  if (!store.ok()) return 1;
  for (int i = 0;; ++i) {
    auto sequence = std::make_shared<int64_t>(0);
    tandem::Awaited<absl::Status> done;
    (*store)->Write(
        [sequence](tandem::Transaction& transaction) {
          return tandem::AppendNext(transaction, "j0", sequence.get());
        },
        [sequence, answer = done.Done()](absl::Status status) mutable {
          if (status.ok() && write(STDOUT_FILENO, sequence.get(), sizeof(*sequence)) < 0) _exit(1);
          answer(status);
        });
    if (i % 8 == 7 && !done.Get().ok()) return 1;
  }
}
