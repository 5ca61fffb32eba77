#include "bench/allocators/block.h"

namespace expanse::bench {

Block* SplitBlock(Block& block, Bytes front) {
  auto* rest = new Block;
  rest->address = block.address + front;
  rest->size = block.size - front;
  rest->pool = block.pool;
  rest->segment = block.segment;
  rest->state = block.state;
  rest->prev = &block;
  rest->next = block.next;
  if (rest->next != nullptr) rest->next->prev = rest;
  block.next = rest;
  block.size = front;
  return rest;
}

void AbsorbNext(Block& block) {
  Block* absorbed = block.next;
  block.size += absorbed->size;
  block.next = absorbed->next;
  if (block.next != nullptr) block.next->prev = &block;
  delete absorbed;
}

BlockList::BlockList(AddressRange range, BlockPool* pool, ExpandableSegment* segment, BlockState state)
    : range_(range), head_(new Block) {
  head_->address = range.begin;
  head_->size = range.size;
  head_->pool = pool;
  head_->segment = segment;
  head_->state = state;
}

BlockList::~BlockList() {
  for (Block* block = head_; block != nullptr;) {
    Block* next = block->next;
    delete block;
    block = next;
  }
}

}  // namespace expanse::bench
