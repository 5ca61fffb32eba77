// Blocks: the pieces that a segment of PyTorch's allocators is cut into.

#ifndef EXPANSE_BENCH_ALLOCATORS_BLOCK_H_
#define EXPANSE_BENCH_ALLOCATORS_BLOCK_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "vmm/units.h"

namespace expanse::bench {

class BlockPool;
class ExpandableSegment;

enum class BlockState : uint8_t {
  kUnmapped,  // addresses without memory; expandable segments only
  kFree,      // cached, ready for the stream of its pool
  kLive,      // handed out
  kPending,   // freed, waiting for events on other streams
};

// One piece of a segment. The blocks of a segment are a list in address order that covers it without gaps; two
// neighbours are never both free, nor both unmapped.
struct Block {
  DeviceAddress address;
  Bytes size;
  BlockPool* pool = nullptr;             // of its segment's stream and size class
  ExpandableSegment* segment = nullptr;  // null where segments do not expand
  Block* prev = nullptr;
  Block* next = nullptr;
  Bytes requested;      // kLive: what the program asked for
  uint32_t events = 0;  // kPending: events not yet complete
  BlockState state = BlockState::kFree;
  absl::InlinedVector<StreamHandle, 1> uses;  // kLive: streams other than the pool's that RecordUse named
};

// Cuts `block` after its first `front` bytes; 0 < front < size. The new block behind it has the same state, pool and
// segment, and is returned. Neither pool knows of the change: `block` must not be filed in one.
Block* SplitBlock(Block& block, Bytes front);

// Adds the next block to `block` and deletes it. The same holds for both.
void AbsorbNext(Block& block);

// Owns the blocks of one segment.
class BlockList {
 public:
  // A segment that is one block.
  BlockList(AddressRange range, BlockPool* pool, ExpandableSegment* segment, BlockState state);
  ~BlockList();
  BlockList(const BlockList&) = delete;
  BlockList& operator=(const BlockList&) = delete;

  // Splitting and absorbing keep the first block where it is, so this never changes.
  [[nodiscard]] Block& head() const { return *head_; }
  [[nodiscard]] AddressRange range() const { return range_; }
  // Whether the whole segment is one block.
  [[nodiscard]] bool IsWhole() const { return head_->next == nullptr; }

 private:
  const AddressRange range_;
  Block* const head_;
};

}  // namespace expanse::bench

#endif  // EXPANSE_BENCH_ALLOCATORS_BLOCK_H_
