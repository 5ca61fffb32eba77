// The part of the random program that is about pools, pins and whatever else is neither a block nor an amount.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/stress/random_operations.h"
#include "vmm/sim/simulator.h"

namespace expanse::stress {
namespace {

constexpr uint64_t kMostPools = 4;
constexpr uint64_t kMostPins = 6;

absl::Status Unexpected(const char* what, const absl::Status& status) {
  return absl::InternalError(absl::StrCat(what, ": ", status.ToString()));
}

}  // namespace

absl::Status RandomOperations::ChangePools() {
  if (pools_.size() < kMostPools && choices_.Below(2) == 0) {
    PoolOptions options;
    options.name = "tenant";
    options.deterministic = choices_.Below(3) == 0;
    if (choices_.Below(2) == 0) options.limit = shape_.slot * (1 + choices_.Below(32));
    const absl::StatusOr<PoolId> pool = allocator_.CreatePool(options);
    // A deterministic one takes its addresses at once.
    if (options.deterministic && shape_.addresses && absl::IsResourceExhausted(pool.status())) return absl::OkStatus();
    if (!pool.ok()) return Unexpected("CreatePool", pool.status());
    pools_.push_back(*pool);
    return absl::OkStatus();
  }
  const size_t index = choices_.Below(pools_.size());
  if (index == 0) return absl::OkStatus();
  const PoolId pool = pools_[index];
  pools_.erase(pools_.begin() + static_cast<std::ptrdiff_t>(index));
  if (const absl::Status status = allocator_.RetirePool(pool); !status.ok()) return Unexpected("RetirePool", status);
  const absl::Status gone = allocator_.Allocate(KiB(1), StreamHandle(), pool).status();
  return absl::IsFailedPrecondition(gone) || absl::IsNotFound(gone) ? absl::OkStatus()
                                                                    : Unexpected("a retired pool answered", gone);
}

absl::Status RandomOperations::ChangePins() {
  if (pins_.size() < kMostPins && !live_.empty() && choices_.Below(2) == 0) {
    return Pin(live_[choices_.Below(live_.size())]);
  }
  if (pins_.empty()) return absl::OkStatus();
  std::swap(pins_[choices_.Below(pins_.size())], pins_.back());
  const AddressRange range = pins_.back();
  pins_.pop_back();
  const absl::Status status = allocator_.Unpin(range.begin, range.size);
  return status.ok() ? status : Unexpected("Unpin", status);
}

absl::Status RandomOperations::Pin(const Block& block) {
  const Bytes offset(choices_.Below(block.range.size.count()));
  const AddressRange range{block.range.begin + offset, Bytes(1 + choices_.Below((block.range.size - offset).count()))};
  const absl::Status status = allocator_.Pin(range.begin, range.size);
  if (!status.ok()) return Unexpected("Pin", status);
  pins_.push_back(range);
  const absl::StatusOr<std::vector<HandleSpan>> spans = allocator_.HandlesSpanning(range.begin, range.size);
  if (!spans.ok()) return Unexpected("HandlesSpanning", spans.status());
  DeviceAddress covered = range.begin;
  for (const HandleSpan& span : *spans) {
    if (span.range().begin == covered && span.chunk.Contains(span.range())) covered = span.range().end();
  }
  if (!spans->empty() && spans->front().chunk.size > shape_.slot) ++pins_in_large_chunks_;
  if (covered == range.end()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the handles of ", ToString(range), " end at ", ToString(covered)));
}

absl::Status RandomOperations::ChangeNeighbour() {
  if (!shape_.neighbour) return absl::OkStatus();
  const Bytes more = shape_.slot * choices_.Below(shape_.memory / shape_.slot / 2);
  device_.simulator().SetTakenByOthers(DeviceOrdinal(), shape_.total - shape_.memory + more);
  return absl::OkStatus();
}

bool RandomOperations::OnOutOfMemory() {
  if (live_.empty() || !in_callback_.ok()) return false;
  in_callback_ = FreeAny();
  return in_callback_.ok();
}

absl::Status RandomOperations::MisuseSomething() {
  DeviceAddress address;
  if (!live_.empty() && choices_.Below(2) == 0) {
    const Block& block = live_[choices_.Below(live_.size())];
    address = block.range.begin + RoundUp(block.range.size, kBlockAlignment) / 2;
    if (address == block.range.begin) address += Bytes(1);
  }
  for (const absl::Status& refused :
       {allocator_.Free(address), allocator_.RecordUse(address, AnyStream()),
        allocator_.Allocate(Bytes(), AnyStream()).status(), allocator_.Allocate(shape_.total * 2, AnyStream()).status(),
        allocator_.Allocate(Bytes(~uint64_t{0}), AnyStream()).status(), allocator_.Pin(DeviceAddress(), Bytes(1)),
        allocator_.Pin(address, Bytes()), allocator_.Pin(address, shape_.total),
        allocator_.HandlesSpanning(address, shape_.total).status()}) {
    if (!absl::IsInvalidArgument(refused)) return Unexpected("a call that makes no sense was answered with", refused);
  }
  const absl::Status never_pinned = allocator_.Unpin(address, shape_.total);
  return absl::IsNotFound(never_pinned) ? absl::OkStatus() : Unexpected("Unpin of what was not pinned", never_pinned);
}

absl::Status RandomOperations::LookAround() {
  allocator_.ResetPeaks();
  const PoolId pool = AnyPool();
  if (const absl::Status status = allocator_.GetPoolStats(pool).status(); !status.ok()) {
    return Unexpected("GetPoolStats", status);
  }
  if (allocator_.GetStreamStats(AnyStream()).live > live_bytes_) {
    return absl::InternalError("a stream has more live bytes than there are");
  }
  if (shape_.options.record_events == 0) return absl::OkStatus();
  absl::Status status = allocator_.Mark("here");
  if (status.ok()) status = allocator_.GetRecording().status();
  return status.ok() ? status : Unexpected("recording", status);
}

}  // namespace expanse::stress
