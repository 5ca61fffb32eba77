#include "core/fixed_placement.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace expanse {

void FixedPlacement::AddSegment(Segment* segment) {
  parts_.push_back(std::make_unique<Part>(Part{segment, Layout(segment->range()), {}}));
}

void FixedPlacement::RemoveSegment(const Segment& segment) {
  const auto is_it = [&](const std::unique_ptr<Part>& part) { return part->segment == &segment; };
  parts_.erase(std::find_if(parts_.begin(), parts_.end(), is_it));
}

std::optional<FixedPlacement::Place> FixedPlacement::Find(Bytes size) const {
  for (const std::unique_ptr<Part>& part : parts_) {
    const std::optional<DeviceAddress> begin = part->layout.Place(size);
    if (!begin) continue;
    const auto before = part->by_end.find(*begin);
    Block* first = before == part->by_end.end() ? part->segment->first_block() : before->second->next;
    return Place{part->segment, {*begin, size}, first};
  }
  return std::nullopt;
}

Block* FixedPlacement::TakeMapped(Bytes size) {
  const std::optional<Place> place = Find(size);
  if (!place) return nullptr;
  Block* block = place->first;
  if (block->state != BlockState::kFree || block->size < size) return nullptr;
  place->segment->Take(block, place->range.begin, size);
  Occupy(block);
  return block;
}

void FixedPlacement::Occupy(Block* used) { Occupy(PartOf(*used->segment), used); }

void FixedPlacement::Occupy(Part& part, Block* block) {
  part.layout.Occupy(block->range());
  part.by_end.emplace(block->end(), block);
}

void FixedPlacement::Vacate(const Block* used) {
  Part& part = PartOf(*used->segment);
  part.layout.Vacate(used->range());
  part.by_end.erase(used->end());
}

void FixedPlacement::NoteQuarantined(const Segment& segment) {
  Part& part = PartOf(segment);
  for (Block* block = part.segment->first_block(); block != nullptr; block = block->next) {
    if (block->state != BlockState::kQuarantined || part.by_end.contains(block->end())) continue;
    Occupy(part, block);
  }
}

FixedPlacement::Part& FixedPlacement::PartOf(const Segment& segment) {
  const auto is_it = [&](const std::unique_ptr<Part>& part) { return part->segment == &segment; };
  return **std::find_if(parts_.begin(), parts_.end(), is_it);
}

absl::Status FixedPlacement::CheckInvariants() const {
  for (const std::unique_ptr<Part>& each : parts_) {
    const Part& part = *each;
    absl::Status status = part.layout.CheckInvariants();
    if (!status.ok()) return status;
    size_t occupied = 0;
    DeviceAddress gap = part.segment->range().begin;  // where the gap began that lies before the next occupied block
    const auto check_gap = [&](DeviceAddress end) {
      const auto it = part.layout.gaps().find(gap);
      const Bytes size = it == part.layout.gaps().end() ? Bytes() : it->second;
      if (size == end - gap) return absl::OkStatus();
      return absl::InternalError(absl::StrCat("the gap of a layout at ", ToString(gap), " is ", ToString(size),
                                              ", expected ", ToString(end - gap)));
    };
    for (Block* block = part.segment->first_block(); block != nullptr; block = block->next) {
      if (block->state != BlockState::kUsed && block->state != BlockState::kQuarantined) continue;
      ++occupied;
      const auto it = part.by_end.find(block->end());
      if (it == part.by_end.end() || it->second != block) {
        return absl::InternalError(absl::StrCat("the block ", ToString(block->range()), " is not found by its end"));
      }
      if (status = check_gap(block->begin); !status.ok()) return status;
      gap = block->end();
    }
    if (status = check_gap(part.segment->range().end()); !status.ok()) return status;
    if (occupied != part.by_end.size()) return absl::InternalError("a layout knows ends of blocks that are not used");
  }
  return absl::OkStatus();
}

}  // namespace expanse
