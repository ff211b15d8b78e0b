#include "engine/backends/cuda/driver/emulated_stream.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace {

// The number of further streams that will be late, whether this applies, and the streams to which it applied.
thread_local int late_streams = 0;
thread_local bool defers_streams = false;
thread_local std::vector<CUstream_st*> streams;

}  // namespace

namespace tandem::cuda {

void DeferStreams(int streams) {
  late_streams = streams;
  defers_streams = streams > 0;
}

void Give(Stream stream, std::function<void()> work) {
  if (stream == nullptr) return work();
  if (stream->record != nullptr) {
    stream->record->push_back(std::move(work));
  } else if (stream->defers()) {
    stream->Defer(std::move(work));
  } else {
    stream->Await();
    work();
  }
}

}  // namespace tandem::cuda

CUstream_st::CUstream_st() : is_late_(late_streams > 0) {
  if (is_late_) --late_streams;
  if (defers_streams) streams.push_back(this);
}

CUstream_st::~CUstream_st() {
  Await();
  streams.erase(std::remove(streams.begin(), streams.end(), this), streams.end());
}

void CUstream_st::DoNext() {
  // A wait stays in the queue until it is over, because others enter here meanwhile.
  if (const Point point = deferred_.front().point; point != nullptr && !point->reached) {
    point->stream->Await(point.get());
    if (point->reached) return;
    std::fputs("cuda emulation: a stream waits for what never comes\n", stderr);
    std::abort();
  }
  const Deferred next = std::move(deferred_.front());
  deferred_.pop_front();
  if (next.work != nullptr) next.work();
}

void CUstream_st::Await(const tandem::cuda::EmulatedPoint* point) {
  while (!deferred_.empty() && (point == nullptr || !point->reached)) {
    DoNext();
    DoWhatMayBeDone();
  }
  if (point == nullptr && pending != nullptr) pending->Await();
}

void CUstream_st::DoWhatMayBeDone() {
  for (CUstream_st* stream : streams) {
    while (!stream->is_late_ && !stream->deferred_.empty()) {
      const Point& point = stream->deferred_.front().point;
      if (point != nullptr && !point->reached) break;
      stream->DoNext();
    }
  }
}

void CUstream_st::AwaitAll() {
  for (CUstream_st* stream : streams) stream->Await();
}
