#include "tests/fuzz/fuzz_support.h"

#include <malloc.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "bench/trace/base_format.h"

namespace expanse::fuzz {
namespace {

std::atomic<bool> metering{false};
std::atomic<int64_t> held{0};
std::atomic<int64_t> peak_held{0};

void CountAllocation(void* p) {
  if (p == nullptr || !metering.load(std::memory_order_relaxed)) return;
  const int64_t now =
      held.fetch_add(static_cast<int64_t>(malloc_usable_size(p))) + static_cast<int64_t>(malloc_usable_size(p));
  int64_t peak = peak_held.load();
  while (now > peak && !peak_held.compare_exchange_weak(peak, now)) {
  }
}

void CountFree(void* p) {
  if (p != nullptr && metering.load(std::memory_order_relaxed))
    held.fetch_sub(static_cast<int64_t>(malloc_usable_size(p)));
}

}  // namespace

void Require(bool condition, absl::string_view what) {
  if (condition) return;
  std::fprintf(stderr, "property failed: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

void RequireSoundTrace(const bench::Trace& trace) {
  const absl::Status valid = bench::Validate(trace);
  Require(valid.ok(), valid.ToString());
  const bench::TraceSummary summary = bench::Summarize(trace);
  Require(summary.allocations == trace.ids.size(), "the summary counts every allocation");
  Require(summary.peak_live <= summary.peak_allocated, "rounding never makes less");
  const absl::StatusOr<std::string> text = bench::FormatBaseFormat(trace);
  Require(text.ok(), text.status().ToString());
  const absl::StatusOr<bench::Trace> again = bench::ParseBaseFormat(*text, "again");
  Require(again.ok(), again.status().ToString());
  Require(again->events == trace.events, "events read back the same");
  Require(again->labels == trace.labels, "labels read back the same");
  Require(again->ids == trace.ids, "ids read back the same");
  Require(again->extra_header == trace.extra_header, "names of extra columns read back the same");
  Require(again->extra_columns == trace.extra_columns, "extra columns read back the same");
}

MemoryMeter::MemoryMeter() {
  Require(!metering.load(), "one meter at a time");
  held = 0;
  peak_held = 0;
  metering = true;
}

MemoryMeter::~MemoryMeter() { metering = false; }

size_t MemoryMeter::peak() const { return static_cast<size_t>(peak_held.load()); }

void MemoryMeter::RequireWithinBound(size_t decompressed_size) const {
  const size_t bound = (size_t{512} << 10) + 64 * decompressed_size;
  if (peak() > bound) std::fprintf(stderr, "%zu bytes held for an input of %zu\n", peak(), decompressed_size);
  Require(peak() <= bound, "memory stays within its bound");
}

}  // namespace expanse::fuzz

// The meter's hooks. Plain malloc underneath, so that the address sanitizer sees every block.
void* operator new(size_t size) {
  void* const p = std::malloc(size != 0 ? size : 1);
  if (p == nullptr) throw std::bad_alloc();
  expanse::fuzz::CountAllocation(p);
  return p;
}
void* operator new[](size_t size) { return operator new(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  void* const p = std::malloc(size != 0 ? size : 1);
  expanse::fuzz::CountAllocation(p);
  return p;
}
void* operator new[](size_t size, const std::nothrow_t& tag) noexcept { return operator new(size, tag); }
void operator delete(void* p) noexcept {
  expanse::fuzz::CountFree(p);
  std::free(p);
}
void operator delete(void* p, size_t) noexcept { operator delete(p); }
void operator delete[](void* p) noexcept { operator delete(p); }
void operator delete[](void* p, size_t) noexcept { operator delete(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { operator delete(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { operator delete(p); }
