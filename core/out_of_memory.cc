#include "core/out_of_memory.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace expanse {

std::string HelpfulSetting(const Shortage& shortage) {
  if (shortage.pool_is_full && shortage.pool_limit) {
    return absl::StrCat("a higher limit of ", shortage.pool, ", which is ", ToString(*shortage.pool_limit), " with ",
                        ToString(shortage.pool_reserved), " reserved");
  }
  if (shortage.needed.is_zero() && shortage.rounded > shortage.addresses_left) {
    return "a larger address budget of the process, or allocators that reserve less of it (address_space_multiple)";
  }
  if (shortage.needed / shortage.chunk_size > shortage.handles_left) {
    return absl::StrCat("a larger chunk_size, or a larger handle budget of the process: ", shortage.handles_left,
                        " handles are left");
  }
  if (shortage.limit && shortage.device_free && shortage.reserved + shortage.needed > *shortage.limit &&
      *shortage.device_free >= shortage.needed) {
    return absl::StrCat("a limit higher by ", ToString(shortage.reserved + shortage.needed - *shortage.limit),
                        ": the device has ", ToString(*shortage.device_free), " free");
  }
  if (shortage.partly_used >= shortage.rounded && shortage.chunk_size > shortage.granularity) {
    return absl::StrCat("a smaller chunk_size, down to ", ToString(shortage.granularity), ": ",
                        ToString(shortage.partly_used), " are held in partly used chunks");
  }
  return "";
}

absl::Status OutOfMemoryError(const Shortage& shortage) {
  std::string text =
      absl::StrCat("out of memory: asked for ", ToString(shortage.asked), ", rounded to ", ToString(shortage.rounded),
                   ", missing ", ToString(shortage.missing), "; live ", ToString(shortage.live), ", allocated ",
                   ToString(shortage.allocated), ", pending ", ToString(shortage.pending));
  if (!shortage.pending_on.empty()) absl::StrAppend(&text, " on ", absl::StrJoin(shortage.pending_on, ", "));
  absl::StrAppend(&text, ", idle ", ToString(shortage.idle), ", pinned ", ToString(shortage.pinned),
                  ", held in partly used chunks ", ToString(shortage.partly_used), ", quarantined ",
                  ToString(shortage.quarantined), ", reserved ", ToString(shortage.reserved), "; largest free range ",
                  ToString(shortage.largest_free));
  absl::StrAppend(&text, "; device: ", shortage.device_free ? ToString(*shortage.device_free) : "an unknown part",
                  " free of ", ToString(shortage.device_total));
  if (shortage.pool_limit) {
    absl::StrAppend(&text, "; ", shortage.pool, ": limit ", ToString(*shortage.pool_limit), ", reserved ",
                    ToString(shortage.pool_reserved));
  }
  absl::StrAppend(&text, "; limit ", shortage.limit ? ToString(*shortage.limit) : "none",
                  "; budgets left: ", shortage.handles_left, " handles, ", ToString(shortage.addresses_left),
                  " of addresses; tried: other allocators ", shortage.other_allocators_asked, " times, callbacks ",
                  shortage.callback_rounds, " times, waits ", shortage.waits, "; last attempt: ", shortage.reason);
  if (const std::string help = HelpfulSetting(shortage); !help.empty()) absl::StrAppend(&text, "; would help: ", help);
  return absl::ResourceExhaustedError(text);
}

}  // namespace expanse
