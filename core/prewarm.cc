// The part of the allocator that creates memory before it is asked for.

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"
#include "core/allocator_impl.h"
#include "core/size_class.h"
#include "vmm/scoped_context.h"

namespace expanse {
namespace {

// The virtual memory calls are said to need no context. Should a driver think otherwise, a thread of ours has none.
absl::StatusOr<Chunk> CreateInContext(const Device& device, Bytes size, const ChunkKind& kind) {
  const absl::StatusOr<ScopedContext> context = ScopedContext::Enter(device);
  if (!context.ok()) return context.status();
  return Chunk::Create(device.driver(), device.ordinal(), size, kind);
}

}  // namespace

absl::Status Allocator::Impl::Prewarm(Bytes target, PrewarmMode mode) {
  MutexLock lock(mu_);
  if (target > supply_.pool().limit()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "asked to prewarm ", ToString(target), ", expected at most the limit of ", ToString(supply_.pool().limit())));
  }
  const Bytes soon = supply_.pool().bytes() + prewarm_.left;
  if (target > soon) prewarm_.left += RoundUp(target - soon, supply_.smallest());
  if (!prewarm_.running) {
    prewarm_.status = absl::OkStatus();
    if (prewarm_.left.is_zero()) return absl::OkStatus();
    prewarm_.running = true;
    prewarm_.largest = LargestPrewarmed(target);
    // A thread of before is past its last use of the lock.
    if (prewarm_.thread.joinable()) prewarm_.thread.join();
    if (mode == PrewarmMode::kBackground) {
      if (absl::Status status = StartPrewarmThread(); !status.ok()) return status;
    } else {
      prewarm_.runner = std::this_thread::get_id();
      RunPrewarm();
    }
  }
  return mode == PrewarmMode::kBackground ? absl::OkStatus() : PrewarmEnd();
}

absl::Status Allocator::Impl::StartPrewarmThread() {
  try {  // a process that may have no more threads is the one thing that is told by an exception here
    prewarm_.thread = std::thread([this] {
      MutexLock lock(mu_);
      RunPrewarm();
    });
  } catch (const std::system_error& error) {
    prewarm_.running = false;
    prewarm_.left = Bytes();
    return absl::ResourceExhaustedError(absl::StrCat("no thread could be started to prewarm: ", error.what()));
  }
  prewarm_.runner = prewarm_.thread.get_id();
  return absl::OkStatus();
}

absl::Status Allocator::Impl::WaitForPrewarm() {
  MutexLock lock(mu_);
  return PrewarmEnd();
}

absl::Status Allocator::Impl::PrewarmEnd() {
  if (prewarm_.running && prewarm_.runner == std::this_thread::get_id()) {
    return absl::FailedPreconditionError(
        "a callback of the thread that creates memory ahead would wait for that thread itself; expected a call of "
        "another thread, or PrewarmMode::kBackground");
  }
  while (prewarm_.running) prewarm_progress_.Wait(mu_);
  return prewarm_.status;
}

// Chunks as growth would create them once so much is held.
uint64_t Allocator::Impl::LargestPrewarmed(Bytes target) const {
  if (options_.chunk_size) return 1;
  return LargestChunk(kLargestOfClass[kSizeClassCount - 2], target, supply_.pool().bytes_left(), supply_.smallest());
}

void Allocator::Impl::RunPrewarm() {
  absl::Status status;
  while (status.ok() && !prewarm_.stop && !prewarm_.left.is_zero()) {
    const uint64_t slots = absl::bit_floor(std::min(prewarm_.largest, prewarm_.left / supply_.smallest()));
    status = PrewarmOne(supply_.smallest() * slots);
    if (absl::IsResourceExhausted(status) && slots > 1) {
      prewarm_.largest = slots / 2;  // a device that is nearly full may still have a smaller one
      status = absl::OkStatus();
    }
  }
  prewarm_.left = Bytes();
  prewarm_.status = std::move(status);
  prewarm_.running = false;
  prewarm_progress_.NotifyAll();
}

absl::Status Allocator::Impl::PrewarmOne(Bytes size) {
  if (const absl::Status status = supply_.BeginCreation(size); !status.ok()) return status;
  const ChunkKind kind = supply_.pool().kind();
  mu_.Unlock();
  absl::StatusOr<Chunk> chunk = CreateInContext(*device_, size, kind);
  mu_.Lock();
  if (const absl::Status status = supply_.EndCreation(size, std::move(chunk)); !status.ok()) {
    UpdateFigures();  // a chunk too many that the driver will not take back is quarantined
    return status;
  }
  prewarm_.left -= std::min(prewarm_.left, size);
  grower_.NoteCreated(size);
  ++counts_.chunks_prewarmed;
  prewarmed_.Add(size);
  UpdateFigures();
  const std::optional<SoftLimitWarning> warning = soft_limit_.TakeDue();
  prewarm_.in_callback = warning.has_value();
  prewarm_progress_.NotifyAll();
  if (warning) {
    mu_.Unlock();
    warning->Give();
    mu_.Lock();
    prewarm_.in_callback = false;
  }
  return absl::OkStatus();
}

void Allocator::Impl::AwaitPrewarmed(const Request& request) {
  // Wherever the request will lie, it takes no more than that.
  const Bytes enough = RoundUp(request.rounded, supply_.smallest()) + supply_.smallest();
  const auto must_wait = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return prewarm_.running && !prewarm_.in_callback && prewarm_.runner != std::this_thread::get_id() &&
           supply_.spare() < enough;
  };
  if (!must_wait()) return;
  const StallCounter::Clock::time_point begin = StallCounter::Clock::now();
  while (must_wait()) prewarm_progress_.Wait(mu_);
  prewarm_stalls_.AddSince(begin);
}

void Allocator::Impl::StopPrewarm() {
  std::thread thread;
  {
    MutexLock lock(mu_);
    prewarm_.stop = true;
    thread = std::move(prewarm_.thread);
  }
  if (thread.joinable()) thread.join();
}

}  // namespace expanse
