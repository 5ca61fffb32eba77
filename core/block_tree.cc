#include "core/block_tree.h"

#include "absl/strings/str_cat.h"

namespace expanse {
Block* BlockTree::Last() const {
  Block* block = root_;
  while (block->larger != nullptr) block = block->larger;
  return block;
}

bool BlockTree::Contains(const Block* block) const {
  const Block* found = root_;
  while (found != nullptr && found != block) found = Precedes(found, block) ? found->larger : found->smaller;
  return found != nullptr;
}

void BlockTree::ForEachBelow(const Block* root, absl::FunctionRef<void(const Block&)> visit) {
  if (root == nullptr) return;
  ForEachBelow(root->smaller, visit);
  visit(*root);
  ForEachBelow(root->larger, visit);
}

absl::Status BlockTree::CheckInvariants() const {
  absl::Status status;
  const Block* previous = nullptr;
  ForEach([&](const Block& block) {
    const bool follows = previous == nullptr || Precedes(previous, &block);
    bool tops = true;
    for (const Block* child : {block.smaller, block.larger}) {
      tops = tops && (child == nullptr || child->priority <= block.priority);
    }
    if (block.priority != PriorityOf(block.begin) || !follows || !tops) {
      status.Update(absl::InternalError(absl::StrCat("block tree: ", ToString(block.range()), " is out of place")));
    }
    previous = &block;
  });
  return status;
}

}  // namespace expanse
