#include "tests/stress/random_operations.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/stress/block_contents.h"
#include "vmm/sim/simulator.h"

namespace expanse::stress {
namespace {

using std::chrono::microseconds;

absl::Status Unexpected(const char* what, const absl::Status& status) {
  return absl::InternalError(absl::StrCat(what, ": ", status.ToString()));
}

}  // namespace

RandomOperations::RandomOperations(StressDevice& device, Allocator& allocator, const RandomShape& shape,
                                   Choices& choices)
    : device_(device),
      allocator_(allocator),
      shape_(shape),
      choices_(choices),
      watch_(shape.slot),
      vetoing_(shape.vetoes) {}

RandomOperations::~RandomOperations() {
  if (when_short_) (void)allocator_.RemoveOutOfMemoryCallback(*when_short_);
  for (const MappingCallbacksId id : when_mapping_) (void)allocator_.RemoveMappingCallbacks(id);
  (void)allocator_.SetSoftLimit(std::nullopt, nullptr);
}

absl::Status RandomOperations::Run(uint64_t operations) {
  absl::Status status = CreateStreams();
  if (status.ok()) status = AddCallbacks();
  for (uint64_t i = 0; status.ok() && i < operations && !choices_.exhausted(); ++i) {
    status = Step();
    status.Update(in_callback_);
    if (status.ok() && i % shape_.checked_every == 0) status = Check();
    if (!status.ok()) status = absl::Status(status.code(), absl::StrCat("operation ", i, ": ", status.message()));
  }
  return status;
}

absl::Status RandomOperations::CreateStreams() {
  streams_.push_back(StreamHandle());
  if (shape_.streams > 1 && shape_.per_thread_stream) streams_.push_back(StreamHandle::PerThread());
  while (streams_.size() < shape_.streams) {
    const absl::StatusOr<StreamHandle> stream = device_.CreateStream();
    if (!stream.ok()) return stream.status();
    streams_.push_back(*stream);
  }
  return absl::OkStatus();
}

// The one that listens comes before the one that vetoes, so that it is told of unmappings which then do not happen.
absl::Status RandomOperations::AddCallbacks() {
  MappingCallbacks listening;
  listening.before_unmap = [this](AddressRange range) { return OnUnmap(range); };
  listening.after_map = [this](AddressRange range) { watch_.Mapped(range); };
  MappingCallbacks vetoing;
  vetoing.before_unmap = [this](AddressRange) {
    const bool veto = vetoing_ && choices_.Below(10) == 0;
    vetoes_ += veto ? 1 : 0;
    return !veto;
  };
  for (MappingCallbacks* callbacks : {&listening, &vetoing}) {
    const absl::StatusOr<MappingCallbacksId> id = allocator_.AddMappingCallbacks(std::move(*callbacks));
    if (!id.ok()) return id.status();
    when_mapping_.push_back(*id);
  }
  if (!shape_.frees_when_asked) return absl::OkStatus();
  const absl::StatusOr<CallbackId> id =
      allocator_.AddOutOfMemoryCallback([this](const Shortage&) { return OnOutOfMemory(); });
  if (id.ok()) when_short_ = *id;
  return id.status();
}

absl::Status RandomOperations::Step() {
  device_.simulator().Advance(microseconds(choices_.Below(200)));
  const uint64_t operation = choices_.Below(256);
  if (operation < 104) return Allocate();
  if (operation < 196) return FreeAny();
  if (operation < 226) return UseAny();
  if (operation < 228) return Replace(choices_.Below(streams_.size()));
  if (operation < 230) return OnAnotherThread();
  if (operation < 234) return ChangePins();
  if (operation < 238) return ChangePools();
  if (operation < 242) return TrimSomething();
  if (operation < 245) return ChangeLimits();
  if (operation < 247) return CreateAhead();
  if (operation < 249) return ChangeNeighbour();
  if (operation < 252) return MisuseSomething();
  return LookAround();
}

Bytes RandomOperations::AnySize() {
  switch (choices_.Below(4)) {
    case 0:
      return Bytes(1 + choices_.Below(KiB(4).count()));
    case 1:
      return Bytes(1 + choices_.Below(shape_.slot.count() / 2));
    case 2:
      return Bytes(1 + choices_.Below(shape_.slot.count() * 4));
    default:
      return Bytes(1 + choices_.Below(shape_.memory.count() / 4));
  }
}

absl::Status RandomOperations::Allocate() { return AllocateOn(AnyStream()); }

absl::Status RandomOperations::AllocateOn(StreamHandle stream) {
  const Bytes size = AnySize();
  const PoolId pool = AnyPool();
  const absl::StatusOr<DeviceAddress> address =
      pool.is_default() ? allocator_.Allocate(size, stream) : allocator_.Allocate(size, stream, pool);
  if (absl::IsResourceExhausted(address.status())) {
    ++refused_;
    return absl::OkStatus();
  }
  if (!address.ok()) return Unexpected("Allocate", address.status());
  ++served_;
  Block block;
  block.range = {*address, size};
  if (!device_.simulator().IsMapped(block.range)) {
    return absl::InternalError(absl::StrCat(ToString(block.range), " was served and is not mapped"));
  }
  block.key = next_key_++;
  block.own = stream;
  block.last = stream;
  WriteContents(block.range, shape_.slot, block.key);
  live_.push_back(block);
  live_bytes_ += size;
  return Use(live_.back(), stream, /*tell=*/true);
}

// Queues work on the block, after its earlier work. The allocator has to be told unless `stream` is the block's own, or
// the block is about to be freed on `stream`.
absl::Status RandomOperations::Use(Block& block, StreamHandle stream, bool tell) {
  if (block.last != stream) {
    if (absl::Status status = device_.Order(block.last, stream); !status.ok()) return status;
  }
  if (tell && (block.own_is_gone || stream != block.own)) {
    if (absl::Status status = allocator_.RecordUse(block.range.begin, stream); !status.ok()) {
      return Unexpected("RecordUse", status);
    }
  }
  block.last = stream;
  const uint64_t length = choices_.Below(64) == 0 ? 5000 : choices_.Below(300);
  const sim::Access access{block.range, /*writes=*/choices_.Below(3) != 0};
  return ToStatus(device_.driver(), device_.simulator().Launch(stream, microseconds(length), {access}), "Launch");
}

absl::Status RandomOperations::UseAny() {
  if (live_.empty()) return absl::OkStatus();
  return Use(live_[choices_.Below(live_.size())], AnyStream(), /*tell=*/true);
}

absl::StatusOr<RandomOperations::Block> RandomOperations::TakeAny() {
  std::swap(live_[choices_.Below(live_.size())], live_.back());
  const Block block = live_.back();
  live_.pop_back();
  live_bytes_ -= block.range.size;
  if (absl::Status status = CheckContents(block.range, shape_.slot, block.key); !status.ok()) return status;
  return block;
}

absl::Status RandomOperations::FreeAny() {
  if (live_.empty()) return absl::OkStatus();
  absl::StatusOr<Block> block = TakeAny();
  if (!block.ok()) return block.status();
  const DeviceAddress address = block->range.begin;
  absl::Status status;
  // Other threads cannot name this one's default stream, which the block's uses may have to come after.
  if (!on_another_thread_ && choices_.Below(3) == 0) {
    const StreamHandle last = AnyStream();
    status = Use(*block, last, /*tell=*/false);
    if (status.ok()) status = allocator_.Free(address, last);
  } else {
    status = allocator_.Free(address);
  }
  return status.ok() ? ExpectNotLive(address) : Unexpected("Free", status);
}

absl::Status RandomOperations::ExpectNotLive(DeviceAddress address) {
  if (absl::IsInvalidArgument(allocator_.Free(address))) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("a second Free of ", ToString(address), " was not refused"));
}

// Destroys a stream and makes another one, which most likely gets its handle. Its blocks live on. What it was given
// comes before what the legacy stream is given next.
absl::Status RandomOperations::Replace(size_t stream_index) {
  const StreamHandle old = streams_[stream_index];
  if (stream_index == 0 || old == StreamHandle::PerThread()) return absl::OkStatus();
  const StreamHandle heir;
  absl::Status status = device_.Order(old, heir);
  if (status.ok()) status = allocator_.OnStreamDestroyed(old);
  if (status.ok()) status = device_.DestroyStream(old);
  if (!status.ok()) return Unexpected("destroying a stream", status);
  for (Block& block : live_) {
    if (block.own == old) block.own_is_gone = true;
    if (block.last == old) block.last = heir;
  }
  const absl::StatusOr<StreamHandle> stream = device_.CreateStream();
  if (stream.ok()) streams_[stream_index] = *stream;
  return stream.status();
}

// The thread frees a block of another one and leaves a block of its own behind. Whether or not it says so, its default
// stream ends with it; what that was given comes before what the legacy stream is given next.
absl::Status RandomOperations::OnAnotherThread() {
  if (!shape_.per_thread_stream) return absl::OkStatus();
  absl::Status status;
  std::thread([this, &status] {
    on_another_thread_ = true;
    status = FreeAny();  // without a current context
    if (status.ok()) status = device_.MakeCurrent();
    const uint64_t before = served_;
    if (status.ok()) status = AllocateOn(StreamHandle::PerThread());
    if (status.ok()) status = device_.Order(StreamHandle::PerThread(), StreamHandle());
    if (status.ok() && choices_.Below(2) == 0) status = allocator_.OnStreamDestroyed(StreamHandle::PerThread());
    if (served_ > before) {
      live_.back().own_is_gone = true;
      live_.back().last = StreamHandle();
    }
    on_another_thread_ = false;
  }).join();
  return status;
}

bool RandomOperations::OnUnmap(AddressRange range) {
  watch_.Unmapping(range);
  const auto is_there = [range](AddressRange held) { return held.Overlaps(range); };
  if (std::any_of(pins_.begin(), pins_.end(), is_there)) {
    in_callback_.Update(absl::InternalError(absl::StrCat(ToString(range), " is unmapped and pinned")));
  }
  if (std::any_of(live_.begin(), live_.end(), [&](const Block& block) { return is_there(block.range); })) {
    in_callback_.Update(absl::InternalError(absl::StrCat(ToString(range), " is unmapped and live")));
  }
  return true;
}

absl::Status RandomOperations::Check() const {
  const Stats stats = allocator_.GetStats();
  if (stats.live.current != live_bytes_ || stats.live_blocks != live_.size()) {
    return absl::InternalError(absl::StrCat("the allocator counts ", ToString(stats.live.current), " live in ",
                                            stats.live_blocks, " blocks; the program has ", ToString(live_bytes_),
                                            " in ", live_.size()));
  }
  if (stats.pinned.current.is_zero() != pins_.empty()) {
    return absl::InternalError(
        absl::StrCat(ToString(stats.pinned.current), " are counted as pinned, and ", pins_.size(), " ranges are"));
  }
  const bool told_of_all =
      std::all_of(live_.begin(), live_.end(), [this](const Block& block) { return watch_.Knows(block.range); }) &&
      std::all_of(pins_.begin(), pins_.end(), [this](AddressRange pin) { return watch_.Knows(pin); });
  if (!told_of_all) return absl::InternalError("no callback told that memory is mapped where it is live or pinned");
  if (!watch_.status().ok()) return watch_.status();
  sim::Simulator& simulator = device_.simulator();
  if (wrong_warning_) return absl::InternalError("a warning of less than the soft limit, or while books were open");
  if (!job_ && !shape_.device_gives_back_late && simulator.committed(DeviceOrdinal()) != stats.reserved.current) {
    return absl::InternalError(absl::StrCat("the allocator counts ", ToString(stats.reserved.current),
                                            " reserved; the driver has given it ",
                                            ToString(simulator.committed(DeviceOrdinal()))));
  }
  if (simulator.hazard_count() > 0) return absl::InternalError(simulator.hazards().front().description);
  return allocator_.CheckInvariants();
}

absl::Status RandomOperations::End() {
  vetoing_ = false;
  (void)allocator_.WaitForPrewarm();  // limit or device may have been in the way
  job_ = false;
  absl::Status status;
  for (; status.ok() && !pins_.empty(); pins_.pop_back()) {
    status = allocator_.Unpin(pins_.back().begin, pins_.back().size);
  }
  while (status.ok() && !live_.empty()) status = FreeAny();
  if (status.ok()) status = Check();
  if (status.ok()) status = device_.WaitForEverything();
  if (!status.ok()) return status;
  const absl::StatusOr<Bytes> released = allocator_.Trim(Bytes());
  if (!released.ok()) return Unexpected("Trim", released.status());
  if (allocator_.GetStats().reserved.current != Bytes() || device_.simulator().committed(DeviceOrdinal()) != Bytes()) {
    return absl::InternalError("memory is left reserved when nothing is live or queued");
  }
  if (!watch_.mapped().is_zero()) return absl::InternalError("no callback told that the last memory is unmapped");
  return Check();
}

}  // namespace expanse::stress
