#include "core/allocator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/allocator_impl.h"

namespace expanse {
namespace {

absl::Status Forked() {
  return absl::FailedPreconditionError(
      "this process was forked after the allocator was made: no driver call works here; make an allocator in a process "
      "that was started afresh");
}

std::optional<Bytes> LimitOf(const AllocatorOptions& options, const Device& device) {
  if (!options.limit_fraction) return options.limit;
  return Bytes(static_cast<uint64_t>(static_cast<double>(device.total_memory().count()) * *options.limit_fraction));
}

absl::Status Validate(const AllocatorOptions& options, const Device& device, Bytes chunk_size) {
  if (chunk_size.is_zero() || !IsMultipleOf(chunk_size, device.granularity()) || chunk_size > device.total_memory()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "chunk_size is ", ToString(chunk_size), ", expected a multiple of the device's granularity of ",
        ToString(device.granularity()), " that its memory of ", ToString(device.total_memory()), " holds"));
  }
  if (options.trim_after && options.trim_after->count() <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("trim_after is ", options.trim_after->count(), " ns, expected more than 0, or none"));
  }
  if (options.limit && options.limit_fraction) {
    return absl::InvalidArgumentError(absl::StrCat("limit is ", ToString(*options.limit), " and limit_fraction is ",
                                                   *options.limit_fraction, ", expected one of them at most"));
  }
  if (const std::optional<double> fraction = options.limit_fraction; fraction && !(*fraction > 0 && *fraction <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("limit_fraction is ", *fraction, ", expected more than 0 and at most 1"));
  }
  if (options.limit_fraction && *LimitOf(options, device) < chunk_size) {
    return absl::InvalidArgumentError(absl::StrCat("limit_fraction is ", *options.limit_fraction, ", which is ",
                                                   ToString(*LimitOf(options, device)),
                                                   ", expected at least one chunk of ", ToString(chunk_size)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Allocator>> Allocator::Create(const Driver& driver, const AllocatorOptions& options) {
  if (options.address_space_multiple < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("address_space_multiple is ", options.address_space_multiple, ", expected at least 1"));
  }
  if (options.record_events > AllocatorOptions::kMostRecordedEvents) {
    return absl::InvalidArgumentError(absl::StrCat("record_events is ", options.record_events, ", expected at most ",
                                                   AllocatorOptions::kMostRecordedEvents));
  }
  absl::StatusOr<std::unique_ptr<Device>> device = Device::Open(driver, options.device);
  if (!device.ok()) return device.status();
  const Bytes chunk_size = options.chunk_size.value_or(std::max(MiB(2), (*device)->granularity()));
  if (const absl::Status status = Validate(options, **device, chunk_size); !status.ok()) return status;
  auto impl = std::make_unique<Impl>(*std::move(device), options, chunk_size);
  absl::Status status = impl->SetLimit(LimitOf(options, impl->device()));
  if (status.ok()) status = impl->SetSoftLimit(options.soft_limit, options.on_soft_limit);
  if (status.ok()) status = impl->ReserveAddresses();
  if (!status.ok()) return status;
  return std::unique_ptr<Allocator>(new Allocator(std::move(impl)));
}

Allocator::Allocator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Allocator::~Allocator() {
  // In a forked child there is nothing to give back, no thread to end, and no lock or driver call is safe. Where the
  // driver will not say that work is over, memory that it may still use stays mapped until the process ends.
  if (!impl_->forked()) impl_->StopPrewarm();
  if (impl_->forked()) {
    Impl::KeepForever(std::move(impl_));
  } else if (!impl_->Quiesce()) {
    impl_->Abandon();
    Impl::KeepForever(std::move(impl_));
  } else {
    impl_->TellOfDestruction();
  }
}

absl::StatusOr<DeviceAddress> Allocator::Allocate(Bytes size, StreamHandle stream) {
  if (impl_->forked()) return Forked();
  return impl_->Allocate(size, stream, PoolId());
}

absl::StatusOr<DeviceAddress> Allocator::Allocate(Bytes size, StreamHandle stream, PoolId pool) {
  if (impl_->forked()) return Forked();
  return impl_->Allocate(size, stream, pool);
}

absl::Status Allocator::Free(DeviceAddress address) {
  if (impl_->forked()) return absl::OkStatus();
  return impl_->Free(address, std::nullopt);
}

absl::Status Allocator::Free(DeviceAddress address, StreamHandle stream) {
  if (impl_->forked()) return absl::OkStatus();
  return impl_->Free(address, stream);
}

absl::Status Allocator::RecordUse(DeviceAddress address, StreamHandle stream) {
  if (impl_->forked()) return absl::OkStatus();
  return impl_->RecordUse(address, stream);
}

absl::Status Allocator::OnStreamDestroyed(StreamHandle stream) {
  if (impl_->forked()) return absl::OkStatus();
  return impl_->OnStreamDestroyed(stream);
}

absl::StatusOr<Bytes> Allocator::Trim(Bytes target, TrimMode mode) {
  if (impl_->forked()) return Forked();
  return impl_->Trim(target, mode);
}

absl::StatusOr<Bytes> Allocator::TrimUnused() {
  if (impl_->forked()) return Forked();
  return impl_->TrimUnused();
}

absl::Status Allocator::Prewarm(Bytes target, PrewarmMode mode) {
  if (impl_->forked()) return Forked();
  return impl_->Prewarm(target, mode);
}

absl::Status Allocator::WaitForPrewarm() {
  if (impl_->forked()) return Forked();
  return impl_->WaitForPrewarm();
}

absl::StatusOr<PoolId> Allocator::CreatePool(const PoolOptions& options) {
  if (impl_->forked()) return Forked();
  return impl_->CreatePool(options);
}

absl::StatusOr<PoolStats> Allocator::GetPoolStats(PoolId pool) const {
  if (impl_->forked()) return Forked();
  return impl_->GetPoolStats(pool);
}

absl::StatusOr<Bytes> Allocator::TrimPool(PoolId pool, Bytes target) {
  if (impl_->forked()) return Forked();
  return impl_->TrimPool(pool, target);
}

absl::Status Allocator::RetirePool(PoolId pool) {
  if (impl_->forked()) return absl::OkStatus();
  return impl_->RetirePool(pool);
}

absl::Status Allocator::SetLimit(std::optional<Bytes> limit) {
  if (impl_->forked()) return Forked();
  return impl_->SetLimit(limit);
}

absl::Status Allocator::SetSoftLimit(std::optional<Bytes> soft_limit, SoftLimitCallback callback) {
  if (impl_->forked()) return Forked();
  return impl_->SetSoftLimit(soft_limit, std::move(callback));
}

absl::StatusOr<CallbackId> Allocator::AddOutOfMemoryCallback(OutOfMemoryCallback callback) {
  if (impl_->forked()) return Forked();
  if (callback == nullptr)
    return absl::InvalidArgumentError("the out-of-memory callback is empty, expected one to call");
  return impl_->callbacks().Add(std::move(callback));
}

absl::Status Allocator::RemoveOutOfMemoryCallback(CallbackId id) {
  if (impl_->forked() || impl_->callbacks().Remove(id)) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("no out-of-memory callback has the id ", id, ": it was removed before, or never added"));
}

absl::Status Allocator::Pin(DeviceAddress address, Bytes length) {
  if (impl_->forked()) return Forked();
  return impl_->Pin({address, length});
}

absl::Status Allocator::Unpin(DeviceAddress address, Bytes length) {
  if (impl_->forked()) return absl::OkStatus();
  return impl_->Unpin({address, length});
}

absl::StatusOr<std::vector<HandleSpan>> Allocator::HandlesSpanning(DeviceAddress address, Bytes length) const {
  if (impl_->forked()) return Forked();
  return impl_->HandlesSpanning({address, length});
}

absl::StatusOr<MappingCallbacksId> Allocator::AddMappingCallbacks(MappingCallbacks callbacks) {
  if (impl_->forked()) return Forked();
  return impl_->AddMappingCallbacks(std::move(callbacks));
}

absl::Status Allocator::RemoveMappingCallbacks(MappingCallbacksId id) {
  if (impl_->forked()) return absl::OkStatus();
  return impl_->RemoveMappingCallbacks(id);
}

Stats Allocator::GetStats() const { return impl_->forked() ? Stats() : impl_->GetStats(); }

HeapStats Allocator::GetStreamStats(StreamHandle stream) const {
  return impl_->forked() ? HeapStats() : impl_->GetStreamStats(stream);
}

Snapshot Allocator::TakeSnapshot() const { return impl_->forked() ? Snapshot() : impl_->TakeSnapshot(); }

absl::Status Allocator::Mark(std::string_view label) {
  if (impl_->forked()) return absl::OkStatus();
  return impl_->Mark(label);
}

absl::StatusOr<std::string> Allocator::GetRecording() const {
  if (impl_->forked()) return Forked();
  return impl_->GetRecording();
}

DriverCallCounts Allocator::GetDriverCalls() const { return impl_->GetDriverCalls(); }

void Allocator::ResetPeaks() {
  if (!impl_->forked()) impl_->ResetPeaks();
}

absl::Status Allocator::CheckInvariants() const {
  return impl_->forked() ? absl::OkStatus() : impl_->CheckInvariants();
}

}  // namespace expanse
