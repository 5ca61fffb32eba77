#include "bench/allocators/naive_allocator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/allocators/pytorch_rules.h"
#include "vmm/driver_call.h"

namespace expanse::bench {

NaiveAllocator::NaiveAllocator(std::unique_ptr<DeviceContext> context, std::optional<Bytes> limit)
    : context_(std::move(context)), limit_(limit) {}

NaiveAllocator::~NaiveAllocator() {
  MutexLock lock(mu_);
  // There is nobody to tell that the driver refuses.
  (void)context_->MakeCurrent();
  for (const auto& [address, requested] : live_) (void)context_->driver().mem_free(address.value());
}

absl::StatusOr<DeviceAddress> NaiveAllocator::Allocate(Bytes size, StreamHandle /*stream*/) {
  if (size.is_zero()) return absl::InvalidArgumentError("a request of 0 bytes: expected at least 1");
  if (size > pytorch::kLargestRequest) {
    return absl::ResourceExhaustedError(absl::StrCat("a request of ", ToString(size), " fits no device"));
  }
  const Bytes rounded = pytorch::RoundRequest(size);
  if (absl::Status status = context_->MakeCurrent(); !status.ok()) return status;
  {
    MutexLock lock(mu_);
    if (limit_.has_value() && figures_.reserved.current() + asked_for_ + rounded > *limit_) {
      return absl::ResourceExhaustedError(absl::StrCat(ToString(rounded), " more would exceed the limit of ",
                                                       ToString(*limit_), " with ", ToString(figures_.live.current()),
                                                       " live"));
    }
    asked_for_ += rounded;
  }
  abi::DevicePtr pointer = 0;
  absl::Status status = CallStatus(context_->driver(), context_->driver().mem_alloc(&pointer, size.count()),
                                   EntryPoint::mem_alloc, "bytes=", size.count());
  MutexLock lock(mu_);
  asked_for_ -= rounded;
  if (!status.ok()) return status;
  live_.emplace(DeviceAddress(pointer), size);
  figures_.live.Add(size);
  figures_.allocated.Add(rounded);
  figures_.reserved.Add(rounded);
  return DeviceAddress(pointer);
}

absl::Status NaiveAllocator::Free(DeviceAddress address, StreamHandle /*stream*/) {
  if (absl::Status status = context_->MakeCurrent(); !status.ok()) return status;
  Bytes size;
  {
    // Taken out before the driver may give the address to somebody else.
    MutexLock lock(mu_);
    auto it = live_.find(address);
    if (it == live_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(ToString(address), " is not a live block: it is null, foreign, interior or already freed"));
    }
    size = it->second;
    live_.erase(it);
  }
  absl::Status status = CallStatus(context_->driver(), context_->driver().mem_free(address.value()),
                                   EntryPoint::mem_free, "address=0x", absl::Hex(address.value()));
  MutexLock lock(mu_);
  if (!status.ok()) {
    live_.emplace(address, size);
    return status;
  }
  figures_.live.Subtract(size);
  figures_.allocated.Subtract(pytorch::RoundRequest(size));
  figures_.reserved.Subtract(pytorch::RoundRequest(size));
  return absl::OkStatus();
}

absl::Status NaiveAllocator::RecordUse(DeviceAddress address, StreamHandle /*stream*/) {
  MutexLock lock(mu_);
  if (live_.contains(address)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(ToString(address), " is not a live block"));
}

AllocatorFigures NaiveAllocator::figures() const {
  MutexLock lock(mu_);
  return figures_.Report();
}

absl::Status NaiveAllocator::CheckInvariants() const {
  MutexLock lock(mu_);
  Bytes live, rounded;
  for (const auto& [address, size] : live_) {
    if (address.is_null() || size.is_zero()) return absl::InternalError("an empty block is live");
    live += size;
    rounded += pytorch::RoundRequest(size);
  }
  if (live != figures_.live.current() || rounded != figures_.allocated.current() ||
      rounded != figures_.reserved.current()) {
    return absl::InternalError("the figures are not the sums over the live blocks");
  }
  return absl::OkStatus();
}

}  // namespace expanse::bench
