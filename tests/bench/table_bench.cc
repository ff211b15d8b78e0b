// Prints the processor time of reading tables whole, as a training does. See pandas_tables.py.
//
//   table_bench TABLE.csv...

#include <sys/resource.h>

#include <cstdio>
#include <string>

#include "engine/data/dataset.h"

namespace {

double ProcessorSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    tandem::v1::DatasetSpec spec;
    spec.mutable_csv()->set_train(argv[i]);
    const double begin = ProcessorSeconds();
    const absl::StatusOr<tandem::OpenedDataset> opened = tandem::OpenDataset(spec);
    const double seconds = ProcessorSeconds() - begin;
    if (!opened.ok()) {
      std::fprintf(stderr, "table_bench: %s\n", std::string(opened.status().message()).c_str());
      return 1;
    }
    std::printf("%s: %lld rows, %lld inputs, %.2f s\n", argv[i],
                static_cast<long long>(opened->info.train_samples),
                static_cast<long long>(opened->info.shape.elements()), seconds);
  }
  return 0;
}
