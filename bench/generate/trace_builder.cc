#include "bench/generate/trace_builder.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace expanse::bench {

BlockId TraceBuilder::Allocate(Bytes size, int32_t stream) {
  const auto index = static_cast<uint32_t>(blocks_.size());
  if (size.is_zero()) error_.Update(absl::InternalError(absl::StrCat("block ", index, " has zero bytes")));
  blocks_.push_back({size, stream});
  ++live_blocks_;
  live_ += size;
  trace_.events.push_back({TraceOp::kAllocate, stream, index, size.count()});
  return BlockId(index);
}

void TraceBuilder::Free(BlockId block) {
  if (block.index() >= blocks_.size() || blocks_[block.index()].size.is_zero()) {
    error_.Update(absl::InternalError(absl::StrCat("block ", block.index(), " is freed while it is not live")));
    return;
  }
  Block& freed = blocks_[block.index()];
  --live_blocks_;
  live_ -= freed.size;
  freed.size = Bytes();
  trace_.events.push_back({TraceOp::kFree, freed.stream, block.index(), 0});
}

void TraceBuilder::Free(std::initializer_list<BlockId> blocks) {
  for (const BlockId block : blocks) Free(block);
}

void TraceBuilder::Free(const std::vector<BlockId>& blocks) {
  for (const BlockId block : blocks) Free(block);
}

void TraceBuilder::Mark(std::string label) {
  trace_.events.push_back({TraceOp::kMark, 0, static_cast<uint32_t>(trace_.labels.size()), 0});
  trace_.labels.push_back(std::move(label));
}

absl::StatusOr<Trace> TraceBuilder::Finish() && {
  if (!error_.ok()) return error_;
  trace_.ids.resize(blocks_.size());
  std::iota(trace_.ids.begin(), trace_.ids.end(), uint64_t{0});
  return std::move(trace_);
}

}  // namespace expanse::bench
