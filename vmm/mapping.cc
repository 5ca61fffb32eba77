#include "vmm/mapping.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "vmm/driver_call.h"

namespace expanse {
namespace {

// Chunks whose mappings follow each other without a gap: positions [first, last) of a list in address order.
struct Run {
  size_t first;
  size_t last;
  AddressRange range;
};

// Sorts mapped chunks by address and divides them into as few runs as there can be.
std::vector<Run> SortIntoRuns(const ChunkPool& pool, std::vector<ChunkId>& chunks) {
  std::sort(chunks.begin(), chunks.end(),
            [&pool](ChunkId a, ChunkId b) { return pool.range(a).begin < pool.range(b).begin; });
  std::vector<Run> runs;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const AddressRange range = pool.range(chunks[i]);
    if (runs.empty() || runs.back().range.end() != range.begin)
      runs.push_back(Run{i, i, AddressRange{range.begin, Bytes()}});
    runs.back().last = i + 1;
    runs.back().range.size += range.size;
  }
  return runs;
}

absl::Status UnmapRange(const Driver& driver, AddressRange range) {
  return CallStatus(driver, driver.mem_unmap(range.begin.value(), range.size.count()), EntryPoint::mem_unmap,
                    "address=0x", absl::Hex(range.begin.value()), ", size=", range.size.count());
}

}  // namespace

MapTransaction::MapTransaction(ChunkPool& pool, const Reservation& reservation)
    : pool_(pool), reservation_(reservation.range()) {}

MapTransaction::~MapTransaction() {
  if (!ended_) Undo();
}

absl::StatusOr<ChunkId> MapTransaction::Map(DeviceAddress address, Bytes size) {
  if (ended_) return absl::FailedPreconditionError("the transaction has ended");
  absl::StatusOr<ChunkId> id = MapOne(address, size);
  if (id.ok()) {
    pool_.MarkMapped(*id, address);
    mapped_.push_back(*id);
  } else {
    Undo();
  }
  return id;
}

absl::StatusOr<ChunkId> MapTransaction::MapOne(DeviceAddress address, Bytes size) const {
  if (!reservation_.Contains(address) || size > reservation_.end() - address) {
    return absl::InvalidArgumentError(absl::StrCat(ToString(size), " at ", ToString(address),
                                                   " are outside the reservation ", ToString(reservation_)));
  }
  const ChunkId id = pool_.FindSpare(size);
  if (id.is_none()) return absl::NotFoundError(absl::StrCat("no spare chunk of ", ToString(size)));
  const Driver& driver = pool_.device().driver();
  const abi::Result result = driver.mem_map(address.value(), size.count(), 0, pool_.handle(id), 0);
  if (result != abi::kSuccess) {
    return CallStatus(driver, result, EntryPoint::mem_map, "address=0x", absl::Hex(address.value()),
                      ", size=", size.count(), ", handle=0x", absl::Hex(pool_.handle(id)));
  }
  return id;
}

absl::Status MapTransaction::Commit() {
  if (ended_) return absl::FailedPreconditionError("the transaction has ended");
  // Undoing goes by the order of mapping, which sorting in place would lose.
  std::vector<ChunkId> by_address = mapped_;
  for (const Run& run : SortIntoRuns(pool_, by_address)) {
    absl::Status status = SetAccess(run.range);
    if (status.ok()) continue;
    Undo();
    return status;
  }
  ended_ = true;
  return absl::OkStatus();
}

absl::Status MapTransaction::SetAccess(AddressRange run) const {
  const Driver& driver = pool_.device().driver();
  const int ordinal = pool_.device().ordinal().value();
  const abi::AccessDesc access{{abi::kLocationDevice, ordinal}, abi::kAccessReadWrite};
  return CallStatus(driver, driver.mem_set_access(run.begin.value(), run.size.count(), &access, 1),
                    EntryPoint::mem_set_access, "address=0x", absl::Hex(run.begin.value()), ", size=", run.size.count(),
                    ", device=", ordinal);
}

void MapTransaction::Undo() {
  ended_ = true;
  // One at a time, so that a refusal costs no more than the mapping it concerns.
  for (auto it = mapped_.rbegin(); it != mapped_.rend(); ++it) {
    const AddressRange range = pool_.range(*it);
    if (UnmapRange(pool_.device().driver(), range).ok()) {
      pool_.MarkSpare(*it);
    } else {
      pool_.Quarantine(*it);
      quarantined_.push_back(QuarantinedMapping{*it, range});
    }
  }
  mapped_.clear();
}

ChunkProgress UnmapChunks(ChunkPool& pool, const Reservation& reservation, absl::Span<const ChunkId> chunks) {
  ChunkProgress progress;
  for (const ChunkId id : chunks) {
    if (pool.state(id) != ChunkState::kMapped || !reservation.range().Contains(pool.range(id))) {
      progress.status = absl::InvalidArgumentError(
          absl::StrCat("chunk ", id.index(), " is not mapped in the reservation ", ToString(reservation.range())));
      return progress;
    }
  }
  std::vector<ChunkId> by_address(chunks.begin(), chunks.end());
  for (const Run& run : SortIntoRuns(pool, by_address)) {
    progress.status = UnmapRange(pool.device().driver(), run.range);
    if (!progress.status.ok()) return progress;
    for (size_t i = run.first; i < run.last; ++i) pool.MarkSpare(by_address[i]);
    progress.chunks += ChunkCount(run.last - run.first);
    progress.bytes += run.range.size;
  }
  return progress;
}

}  // namespace expanse
