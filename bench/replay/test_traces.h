// Tiny traces and scripted allocators for the replay's tests.

#ifndef EXPANSE_BENCH_REPLAY_TEST_TRACES_H_
#define EXPANSE_BENCH_REPLAY_TEST_TRACES_H_

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bench/allocators/bench_allocator.h"
#include "bench/replay/replayer.h"
#include "bench/trace/base_format.h"
#include "bench/trace/trace.h"
#include "gtest/gtest.h"
#include "vmm/units.h"

namespace expanse::bench {

// The trace that these rows, without the header, make; fails the test where they are none.
inline Trace TraceOf(const std::string& rows) {
  absl::StatusOr<Trace> trace = ParseBaseFormat("op,id,bytes,stream\n" + rows, "test.csv");
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.ok() ? *trace : Trace{};
}

// One device allocation, made when the allocator is, cut into blocks that never overlap and are never used again, and a
// budget of live bytes. What it was told is kept in a log, as "a 1024 s0". A correct allocator, if a wasteful one:
// tests derive from it to break it. Streams are named by the order in which they were first seen.
class ScriptedAllocator : public BenchAllocator {
 public:
  ScriptedAllocator(const Driver& driver, Bytes arena, Bytes budget, std::vector<std::string>* log)
      : driver_(driver), budget_(budget), log_(log) {
    abi::DevicePtr base = 0;
    EXPECT_EQ(driver_.mem_alloc(&base, arena.count()), abi::kSuccess);
    base_ = next_ = DeviceAddress(base);
    figures_.reserved = figures_.peak_reserved = arena;
  }
  ~ScriptedAllocator() override { (void)driver_.mem_free(base_.value()); }

  absl::StatusOr<DeviceAddress> Allocate(Bytes size, StreamHandle stream) override {
    Log(absl::StrCat("a ", size.count(), " ", Name(stream)));
    if (figures_.live + size > budget_) return absl::ResourceExhaustedError("over the budget");
    const DeviceAddress address = Place(size);
    sizes_[address.value()] = size;
    figures_.live += size;
    figures_.peak_live = std::max(figures_.peak_live, figures_.live);
    return address;
  }
  absl::Status Free(DeviceAddress address, StreamHandle stream) override {
    const auto block = sizes_.find(address.value());
    if (block == sizes_.end()) return absl::InvalidArgumentError("not a block");
    Log(absl::StrCat("f ", block->second.count(), " ", Name(stream)));
    figures_.live -= block->second;
    sizes_.erase(block);
    return absl::OkStatus();
  }
  absl::Status RecordUse(DeviceAddress address, StreamHandle stream) override {
    Log(absl::StrCat("u ", sizes_.at(address.value()).count(), " ", Name(stream)));
    return absl::OkStatus();
  }
  AllocatorFigures figures() const override { return figures_; }
  absl::Status CheckInvariants() const override { return absl::OkStatus(); }

 protected:
  virtual DeviceAddress Place(Bytes size) {
    const DeviceAddress address = next_;
    next_ += RoundUp(size, Bytes(512));
    return address;
  }
  [[nodiscard]] DeviceAddress base() const { return base_; }
  const Driver& driver_;
  AllocatorFigures figures_;

 private:
  void Log(std::string line) {
    if (log_ != nullptr) log_->push_back(std::move(line));
  }
  std::string Name(StreamHandle stream) {
    for (size_t i = 0; i < streams_.size(); ++i) {
      if (streams_[i] == stream) return absl::StrCat("s", i);
    }
    streams_.push_back(stream);
    return absl::StrCat("s", streams_.size() - 1);
  }

  Bytes budget_;
  std::vector<std::string>* log_;
  DeviceAddress base_, next_;
  std::map<uint64_t, Bytes> sizes_;
  std::vector<StreamHandle> streams_;
};

// Breaks the rule of streams: places every block at the same address at once, whatever work is still queued there.
class CarelessAllocator final : public ScriptedAllocator {
 public:
  using ScriptedAllocator::ScriptedAllocator;

 private:
  DeviceAddress Place(Bytes) override { return base(); }
};

template <typename Allocator>
AllocatorFactory Scripted(Bytes arena, Bytes budget, std::vector<std::string>* log = nullptr) {
  return [arena, budget, log](const Driver& driver, const BenchAllocatorOptions&) {
    return absl::StatusOr<std::unique_ptr<BenchAllocator>>(std::make_unique<Allocator>(driver, arena, budget, log));
  };
}

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_REPLAY_TEST_TRACES_H_
