#include "core/peers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "vmm/mutex.h"

namespace expanse {
namespace {

struct Members {
  Mutex asking;  // held while members are asked, before `mu` and before any allocator's lock
  Mutex mu;      // nothing else is locked under it
  std::vector<const Peer*> list ABSL_GUARDED_BY(mu);
};

// Never destroyed: allocators with static storage may outlive any other static object.
Members& AllMembers() {
  static Members& members = *new Members;
  return members;
}

}  // namespace

Peer::Peer(DeviceOrdinal device, GiveBack give_back) : device_(device), give_back_(std::move(give_back)) {
  Members& members = AllMembers();
  MutexLock lock(members.mu);
  members.list.push_back(this);
}

Peer::~Peer() {
  Members& members = AllMembers();
  MutexLock not_asked(members.asking);
  MutexLock lock(members.mu);
  members.list.erase(std::find(members.list.begin(), members.list.end(), this));
}

bool Peer::HasOthers() const {
  Members& members = AllMembers();
  MutexLock lock(members.mu);
  return std::any_of(members.list.begin(), members.list.end(),
                     [this](const Peer* peer) { return peer != this && peer->device_ == device_; });
}

Bytes Peer::AskOthers(Bytes wanted) const {
  Members& members = AllMembers();
  MutexLock asking(members.asking);  // until then none of them goes
  std::vector<const Peer*> others;
  {
    MutexLock lock(members.mu);
    others = members.list;
  }
  Bytes given;
  for (const Peer* peer : others) {
    if (given >= wanted) break;
    if (peer != this && peer->device_ == device_) given += peer->give_back_(wanted - given);
  }
  return given;
}

}  // namespace expanse
