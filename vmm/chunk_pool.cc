#include "vmm/chunk_pool.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "vmm/driver_call.h"

namespace expanse {

ChunkPool::ChunkPool(const Device& device, const ChunkPoolOptions& options) : device_(device), options_(options) {}

// One call a chunk, although the driver takes runs of neighbours: neighbours may lie in two reservations, which the
// pool does not know and no source says that a call may span, and what is refused here stays mapped for good. The
// driver's time goes by mappings, not by calls.
ChunkPool::~ChunkPool() {
  const Driver& driver = device_.driver();
  for (const Slot& slot : slots_) {
    if (slot.address.is_null()) continue;
    (void)Insist([&] { return driver.mem_unmap(slot.address.value(), slot.chunk.size().count()); });
  }
  // The slots release their handles.
}

absl::Status ChunkPool::Create(ChunkCount count, Bytes size) {
  absl::Status status = CheckRoom(count, size);
  if (!status.ok()) return status;
  for (uint64_t made = 0; made < count.count(); ++made) {
    status = CreateOne(size);
    if (status.ok()) continue;
    for (; made > 0; --made) (void)Release(FindSpare(size));
    return status;
  }
  return absl::OkStatus();
}

ChunkProgress ChunkPool::ReleaseSpare(Bytes wanted, ReleaseBound bound) {
  std::vector<Bytes> sizes;
  for (const auto& [size, chunks] : spare_) {
    if (!chunks.empty()) sizes.push_back(size);
  }
  std::sort(sizes.begin(), sizes.end());

  ChunkProgress progress;
  const auto left = [&] { return wanted - std::min(wanted, progress.bytes); };
  const auto release = [&](Bytes size) {
    const absl::Status status = Release(FindSpare(size));
    progress.status.Update(status);
    if (!status.ok()) return;
    progress.chunks += ChunkCount(1);
    progress.bytes += size;
  };
  // The largest that fit, so that few calls are made; then the smallest that covers what is left.
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    while (*size <= left() && !left().is_zero() && !spare(*size).is_zero()) release(*size);
  }
  if (bound == ReleaseBound::kAtMost) return progress;
  for (const Bytes size : sizes) {
    while (!left().is_zero() && !spare(size).is_zero()) release(size);
  }
  return progress;
}

ChunkId ChunkPool::FindSpare(Bytes size) const {
  const auto it = spare_.find(size);
  return it == spare_.end() || it->second.empty() ? ChunkId() : it->second.back();
}

void ChunkPool::MarkMapped(ChunkId id, DeviceAddress address) {
  assert(state(id) == ChunkState::kSpare && !address.is_null());
  slots_[id.index()].address = address;
  SetState(id, ChunkState::kMapped);
}

void ChunkPool::MarkSpare(ChunkId id) {
  assert(state(id) == ChunkState::kMapped);
  slots_[id.index()].address = DeviceAddress();
  SetState(id, ChunkState::kSpare);
}

void ChunkPool::Quarantine(ChunkId id) { SetState(id, ChunkState::kQuarantined); }

AddressRange ChunkPool::range(ChunkId id) const {
  const Slot& slot = slots_[id.index()];
  return slot.address.is_null() ? AddressRange() : AddressRange{slot.address, slot.chunk.size()};
}

Bytes ChunkPool::bytes_left() const { return options_.limit - std::min(options_.limit, bytes()); }

ChunkCount ChunkPool::chunks_left() const { return options_.max_chunks - std::min(options_.max_chunks, chunks()); }

ChunkCount ChunkPool::chunks() const {
  ChunkCount sum;
  for (const Total& total : totals_) sum += total.chunks;
  return sum;
}

Bytes ChunkPool::bytes() const {
  Bytes sum;
  for (const Total& total : totals_) sum += total.bytes;
  return sum;
}

ChunkCount ChunkPool::spare(Bytes size) const {
  const auto it = spare_.find(size);
  return ChunkCount(it == spare_.end() ? 0 : it->second.size());
}

absl::Status ChunkPool::CheckRoom(ChunkCount count, Bytes size) const {
  if (size.is_zero() || !IsMultipleOf(size, device_.granularity())) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunk size ", ToString(size), ", expected a multiple of ", ToString(device_.granularity())));
  }
  if (count.count() > bytes_left() / size) {
    return absl::ResourceExhaustedError(absl::StrCat(ToString(count), " of ", ToString(size),
                                                     " would exceed the limit of ", ToString(options_.limit),
                                                     "; held: ", ToString(bytes())));
  }
  if (count > chunks_left()) {
    return absl::ResourceExhaustedError(absl::StrCat(ToString(count), " more would exceed the limit of ",
                                                     ToString(options_.max_chunks), "; held: ", ToString(chunks())));
  }
  return absl::OkStatus();
}

absl::Status ChunkPool::CreateOne(Bytes size) {
  absl::StatusOr<Chunk> chunk = Chunk::Create(device_.driver(), device_.ordinal(), size, options_.kind);
  if (!chunk.ok()) return chunk.status();
  Adopt(*std::move(chunk));
  return absl::OkStatus();
}

void ChunkPool::Adopt(Chunk chunk) {
  ChunkId id(static_cast<uint32_t>(slots_.size()));
  if (unused_slots_.empty()) {
    slots_.emplace_back();
  } else {
    id = unused_slots_.back();
    unused_slots_.pop_back();
  }
  Slot& slot = slots_[id.index()];
  slot.chunk = std::move(chunk);
  slot.state = ChunkState::kSpare;
  Count(id);
  created_ += ChunkCount(1);
}

absl::Status ChunkPool::Release(ChunkId id) {
  assert(state(id) == ChunkState::kSpare);
  Slot& slot = slots_[id.index()];
  Uncount(id);
  absl::Status status = slot.chunk.Release();
  if (status.ok()) {
    unused_slots_.push_back(id);
    released_ += ChunkCount(1);
  } else {
    slot.state = ChunkState::kQuarantined;
    Count(id);
  }
  return status;
}

void ChunkPool::SetState(ChunkId id, ChunkState state) {
  Uncount(id);
  slots_[id.index()].state = state;
  Count(id);
}

void ChunkPool::Count(ChunkId id) {
  Total& total = totals_[Index(state(id))];
  total.chunks += ChunkCount(1);
  total.bytes += size(id);
  if (state(id) == ChunkState::kSpare) spare_[size(id)].push_back(id);
}

void ChunkPool::Uncount(ChunkId id) {
  Total& total = totals_[Index(state(id))];
  total.chunks -= ChunkCount(1);
  total.bytes -= size(id);
  if (state(id) != ChunkState::kSpare) return;
  std::vector<ChunkId>& list = spare_[size(id)];
  const auto found = std::find(list.rbegin(), list.rend(), id);  // nearly always the last
  assert(found != list.rend());
  list.erase(std::next(found).base());
}

absl::Status ChunkPool::CheckInvariants() const {
  Total counted[kStates];
  std::vector<AddressRange> mapped;
  uint64_t used_slots = 0;
  for (uint32_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    const ChunkId id(i);
    if (slot.chunk.empty()) {
      if (!slot.address.is_null()) return absl::InternalError(absl::StrCat("unused slot ", i, " has an address"));
      continue;
    }
    ++used_slots;
    counted[Index(slot.state)].chunks += ChunkCount(1);
    counted[Index(slot.state)].bytes += slot.chunk.size();
    if (!slot.address.is_null()) mapped.push_back(range(id));
    if (slot.state == ChunkState::kSpare && !slot.address.is_null()) {
      return absl::InternalError(absl::StrCat("chunk ", i, " is spare but mapped at ", ToString(slot.address)));
    }
    if (slot.state == ChunkState::kMapped && slot.address.is_null()) {
      return absl::InternalError(absl::StrCat("chunk ", i, " is mapped nowhere"));
    }
    const auto list = spare_.find(slot.chunk.size());
    const int64_t listed = list == spare_.end() ? 0 : std::count(list->second.begin(), list->second.end(), id);
    if (listed != (slot.state == ChunkState::kSpare ? 1 : 0)) {
      return absl::InternalError(absl::StrCat("chunk ", i, " is ", listed, " times on the spare list of its size"));
    }
  }
  uint64_t listed = 0;
  for (const auto& [size, list] : spare_) listed += list.size();
  if (listed != counted[Index(ChunkState::kSpare)].chunks.count()) {
    return absl::InternalError(absl::StrCat(listed, " chunks are on spare lists, expected ",
                                            counted[Index(ChunkState::kSpare)].chunks.count()));
  }
  for (int state = 0; state < kStates; ++state) {
    if (counted[state].chunks != totals_[state].chunks || counted[state].bytes != totals_[state].bytes) {
      return absl::InternalError(absl::StrCat("state ", state, " has ", ToString(counted[state].chunks), " of ",
                                              ToString(counted[state].bytes), ", but ", ToString(totals_[state].chunks),
                                              " of ", ToString(totals_[state].bytes), " are on the books"));
    }
  }
  if (slots_.size() - used_slots != unused_slots_.size()) {
    return absl::InternalError(
        absl::StrCat(unused_slots_.size(), " slots are on the unused list, expected ", slots_.size() - used_slots));
  }
  if (created_ != chunks() + released_) {
    return absl::InternalError(absl::StrCat(ToString(created_), " created, but ", ToString(chunks()), " held and ",
                                            ToString(released_), " released"));
  }
  std::sort(mapped.begin(), mapped.end(), [](AddressRange a, AddressRange b) { return a.begin < b.begin; });
  for (size_t i = 1; i < mapped.size(); ++i) {
    if (mapped[i].begin < mapped[i - 1].end()) {
      return absl::InternalError(absl::StrCat("chunks overlap at ", ToString(mapped[i].begin)));
    }
  }
  return absl::OkStatus();
}

}  // namespace expanse
