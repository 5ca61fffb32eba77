#include "core/chunk_supply.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace expanse {
namespace {

ChunkPoolOptions PoolOptions(Bytes limit) {
  ChunkPoolOptions options;
  options.limit = limit;
  options.max_chunks = ChunkCount(std::numeric_limits<uint32_t>::max());  // the budget, which can change, bounds it
  return options;
}

}  // namespace

ChunkSupply::ChunkSupply(const Device& device, Bytes smallest, Bytes limit, Budget& budget)
    : smallest_(smallest), budget_(budget), pool_(device, PoolOptions(limit)) {}

ChunkSupply::~ChunkSupply() { budget_.Give(pool_.chunks().count()); }

uint64_t ChunkSupply::Creatable(uint64_t largest) const {
  const uint64_t chunks = std::min(pool_.chunks_left().count(), budget_.left());
  const uint64_t slots = Room() / smallest_;
  return chunks < slots / largest ? chunks * largest : slots;
}

uint64_t ChunkSupply::LikelyCreatable(uint64_t count, uint64_t chunks) {
  if (count == 0 || (chunks <= kCreatedUnasked && !asks_first_)) return count;
  const Device& device = pool_.device();
  const absl::StatusOr<MemoryInfo> info = device.GetMemoryInfo();
  const Bytes wanted = smallest_ * count;
  if (info.ok() && info->free >= wanted) asks_first_ = false;
  if (!info.ok() || info->free >= wanted) return count;
  const absl::Status all = Create(wanted);
  if (all.ok()) (void)ReleaseOne(wanted);  // quarantined and counted if the driver refuses
  if (!absl::IsResourceExhausted(all)) return count;
  NoteRefused(info->free / smallest_);
  return left_at_refusal_;
}

absl::Status ChunkSupply::CheckRoom(Bytes size) const {
  if (size <= Room() && !pool_.chunks_left().is_zero()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("a chunk of ", ToString(size), " more would exceed the limit of ",
                                                   ToString(pool_.limit()), "; held: ", ToString(bytes_soon())));
}

absl::Status ChunkSupply::NoHandleLeft() const {
  return absl::ResourceExhaustedError(absl::StrCat("the process's handle budget of ", budget_.limit(),
                                                   " is used up; held here: ", pool_.chunks().count()));
}

absl::Status ChunkSupply::BeginCreation(Bytes size) {
  if (const absl::Status status = CheckRoom(size); !status.ok()) return status;
  if (!budget_.TryTake(1)) return NoHandleLeft();
  in_creation_ += size;
  return absl::OkStatus();
}

absl::Status ChunkSupply::EndCreation(Bytes size, absl::StatusOr<Chunk> chunk) {
  in_creation_ -= size;
  if (!chunk.ok()) {
    budget_.Give(1);
    if (size == smallest_ && absl::IsResourceExhausted(chunk.status())) NoteRefused(0);
    return chunk.status();
  }
  absl::Status room = CheckRoom(size);  // the limit may have been lowered meanwhile
  pool_.Adopt(*std::move(chunk));
  refusal_age_ = 0;
  if (!room.ok()) (void)ReleaseOne(size);
  return room;
}

void ChunkSupply::NoteRefused(uint64_t left) {
  refusal_age_ = kRefusalAge;
  asks_first_ = true;
  left_at_refusal_ = left;
  ++refusals_;
}

absl::Status ChunkSupply::Create(Bytes size) {
  if (const absl::Status status = CheckRoom(size); !status.ok()) return status;
  if (!budget_.TryTake(1)) return NoHandleLeft();
  const absl::Status status = pool_.Create(ChunkCount(1), size);
  if (!status.ok()) budget_.Give(1);
  if (status.ok()) refusal_age_ = 0;
  if (size == smallest_ && absl::IsResourceExhausted(status)) NoteRefused(0);
  return status;
}

absl::Status ChunkSupply::ReleaseOne(Bytes size) {
  const absl::Status status = pool_.Release(pool_.FindSpare(size));
  if (!status.ok()) return status;
  budget_.Give(1);
  refusal_age_ = 0;
  return status;
}

ChunkProgress ChunkSupply::Release(Bytes wanted, ReleaseBound bound) {
  const ChunkProgress progress = pool_.ReleaseSpare(wanted, bound);
  budget_.Give(progress.chunks.count());
  if (progress.chunks.count() > 0) refusal_age_ = 0;
  return progress;
}

}  // namespace expanse
