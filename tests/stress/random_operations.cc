#include "tests/stress/random_operations.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/stress/block_contents.h"
#include "vmm/sim/simulator.h"

namespace expanse::stress {
namespace {

using std::chrono::microseconds;

// The whole state is looked at once in so many operations.
constexpr uint64_t kChecked = 64;
constexpr uint64_t kMostPools = 4;

absl::Status Unexpected(const char* what, const absl::Status& status) {
  return absl::InternalError(absl::StrCat(what, ": ", status.ToString()));
}

}  // namespace

RandomOperations::Shape RandomOperations::Draw(Choices& choices) {
  Shape shape;
  shape.chunk = choices.Below(4) == 0 ? MiB(2) : KiB(256);
  shape.memory = shape.chunk * (48 + choices.Below(80));
  shape.options.chunk_size = shape.chunk;
  shape.options.growth = choices.Below(2) == 0 ? Growth::kLazy : Growth::kFrugal;
  if (choices.Below(4) == 0) shape.options.limit = shape.memory * 3 / 4;
  shape.options.address_space_multiple = 1 << choices.Below(4);
  shape.streams = 1 + choices.Below(8);
  shape.per_thread_stream = choices.Below(2) == 0;
  shape.frees_when_asked = choices.Below(4) == 0;
  shape.device_gives_back_late = choices.Below(4) == 0;
  return shape;
}

absl::StatusOr<std::unique_ptr<StressDevice>> RandomOperations::OpenDevice(const Shape& shape) {
  sim::Config config;
  config.devices[0].total_memory = shape.memory;
  config.devices[0].granularity = shape.chunk;
  config.poison = false;  // blocks are filled here, and filling whole chunks takes most of the time
  config.quirks.release_lag = shape.device_gives_back_late;
  return StressDevice::Open(config);
}

RandomOperations::RandomOperations(StressDevice& device, Allocator& allocator, const Shape& shape, Choices& choices)
    : device_(device), allocator_(allocator), shape_(shape), choices_(choices) {}

RandomOperations::~RandomOperations() {
  if (callback_) (void)allocator_.RemoveOutOfMemoryCallback(*callback_);
}

absl::Status RandomOperations::Run(uint64_t operations) {
  absl::Status status = CreateStreams();
  for (uint64_t i = 0; status.ok() && i < operations && !choices_.exhausted(); ++i) {
    status = Step();
    status.Update(in_callback_);
    if (status.ok() && i % kChecked == 0) status = Check();
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
  if (!shape_.frees_when_asked) return absl::OkStatus();
  const absl::StatusOr<CallbackId> callback =
      allocator_.AddOutOfMemoryCallback([this](const Shortage&) { return OnOutOfMemory(); });
  if (callback.ok()) callback_ = *callback;
  return callback.status();
}

absl::Status RandomOperations::Step() {
  device_.simulator().Advance(microseconds(choices_.Below(200)));
  const uint64_t operation = choices_.Below(256);
  if (operation < 110) return Allocate();
  if (operation < 206) return FreeAny();
  if (operation < 240) return UseAny();
  if (operation < 242) return Replace(choices_.Below(streams_.size()));
  if (operation < 245) return ChangePools();
  if (operation < 248) return TrimSomething();
  if (operation < 250) return ChangeLimit();
  if (operation < 254) return MisuseSomething();
  allocator_.ResetPeaks();
  return absl::OkStatus();
}

Bytes RandomOperations::AnySize() {
  switch (choices_.Below(4)) {
    case 0:
      return Bytes(1 + choices_.Below(KiB(4).count()));
    case 1:
      return Bytes(1 + choices_.Below(shape_.chunk.count() / 2));
    case 2:
      return Bytes(1 + choices_.Below(shape_.chunk.count() * 4));
    default:
      return Bytes(1 + choices_.Below(shape_.memory.count() / 4));
  }
}

absl::Status RandomOperations::Allocate() {
  const Bytes size = AnySize();
  const StreamHandle stream = AnyStream();
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
  WriteContents(block.range, shape_.chunk, block.key);
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

absl::Status RandomOperations::FreeAny() {
  return live_.empty() ? absl::OkStatus() : Free(choices_.Below(live_.size()));
}

absl::Status RandomOperations::Free(size_t index) {
  std::swap(live_[index], live_.back());
  Block block = live_.back();
  live_.pop_back();
  live_bytes_ -= block.range.size;
  if (absl::Status status = CheckContents(block.range, shape_.chunk, block.key); !status.ok()) return status;
  const DeviceAddress address = block.range.begin;
  absl::Status status;
  if (choices_.Below(3) == 0) {
    const StreamHandle last = AnyStream();
    status = Use(block, last, /*tell=*/false);
    if (status.ok()) status = allocator_.Free(address, last);
  } else {
    status = allocator_.Free(address);
  }
  if (!status.ok()) return Unexpected("Free", status);
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

absl::Status RandomOperations::ChangePools() {
  if (pools_.size() < kMostPools && choices_.Below(2) == 0) {
    PoolOptions options;
    options.name = "tenant";
    if (choices_.Below(2) == 0) options.limit = shape_.chunk * (1 + choices_.Below(32));
    const absl::StatusOr<PoolId> pool = allocator_.CreatePool(options);
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

absl::Status RandomOperations::TrimSomething() {
  const PoolId pool = AnyPool();
  const Bytes target = shape_.memory * choices_.Below(5) / 4;
  const absl::StatusOr<Bytes> released =
      choices_.Below(2) == 0 ? allocator_.Trim(target) : allocator_.TrimPool(pool, target);
  return released.ok() ? absl::OkStatus() : Unexpected("Trim", released.status());
}

absl::Status RandomOperations::ChangeLimit() {
  std::optional<Bytes> limit;
  if (choices_.Below(2) == 0) limit = shape_.memory / 2 + shape_.chunk * choices_.Below(32);
  const absl::Status status = allocator_.SetLimit(limit);
  return status.ok() ? status : Unexpected("SetLimit", status);
}

absl::Status RandomOperations::MisuseSomething() {
  DeviceAddress address;
  if (!live_.empty() && choices_.Below(2) == 0) {
    const Block& block = live_[choices_.Below(live_.size())];
    address = block.range.begin + RoundUp(block.range.size, kBlockAlignment) / 2;
    if (address == block.range.begin) address += Bytes(1);
  }
  for (const absl::Status& refused : {allocator_.Free(address), allocator_.RecordUse(address, AnyStream()),
                                      allocator_.Allocate(Bytes(), AnyStream()).status(),
                                      allocator_.Allocate(shape_.memory * 2, AnyStream()).status()}) {
    if (!absl::IsInvalidArgument(refused)) return Unexpected("a call that makes no sense was answered with", refused);
  }
  return absl::OkStatus();
}

bool RandomOperations::OnOutOfMemory() {
  if (live_.empty() || !in_callback_.ok()) return false;
  in_callback_ = FreeAny();
  return in_callback_.ok();
}

absl::Status RandomOperations::Check() const {
  const Stats stats = allocator_.GetStats();
  if (stats.live.current != live_bytes_ || stats.live_blocks != live_.size()) {
    return absl::InternalError(absl::StrCat("the allocator counts ", ToString(stats.live.current), " live in ",
                                            stats.live_blocks, " blocks; the program has ", ToString(live_bytes_),
                                            " in ", live_.size()));
  }
  if (device_.simulator().hazard_count() > 0) {
    return absl::InternalError(device_.simulator().hazards().front().description);
  }
  return allocator_.CheckInvariants();
}

absl::Status RandomOperations::End() {
  absl::Status status;
  while (status.ok() && !live_.empty()) status = FreeAny();
  if (status.ok()) status = Check();
  if (status.ok()) status = device_.WaitForEverything();
  if (!status.ok()) return status;
  const absl::StatusOr<Bytes> released = allocator_.Trim(Bytes());
  if (!released.ok()) return Unexpected("Trim", released.status());
  if (allocator_.GetStats().reserved.current != Bytes() || device_.simulator().committed(DeviceOrdinal()) != Bytes()) {
    return absl::InternalError("memory is left reserved when nothing is live or queued");
  }
  return Check();
}

}  // namespace expanse::stress
