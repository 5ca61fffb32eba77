#include "vmm/sim/entry_traits.h"

#include <array>

namespace expanse::sim {
namespace {

constexpr EntryTraits Traits(EntryPoint entry_point) {
  using E = EntryPoint;
  using Sticky = EntryTraits::Sticky;
  EntryTraits traits;
  switch (entry_point) {
    case E::init:
    case E::driver_get_version:
    case E::get_error_name:
    case E::get_error_string:
      traits.needs_init = false;
      break;
    // Device queries and the thread's context stack touch no context's work.
    case E::device_get:
    case E::device_get_count:
    case E::device_get_name:
    case E::device_get_uuid:
    case E::device_total_mem:
    case E::device_get_attribute:
    case E::device_can_access_peer:
    case E::primary_ctx_get_state:
    case E::ctx_get_current:
    case E::ctx_set_current:
    case E::ctx_push_current:
    case E::ctx_pop_current:
    case E::ctx_get_device:
    case E::thread_exchange_stream_capture_mode:
      break;
    // Releasing a broken context is the way to be rid of its error.
    case E::primary_ctx_release:
      traits.failable = true;
      break;
    case E::primary_ctx_retain:
      traits.failable = true;
      traits.sticky = Sticky::kAny;
      break;
    case E::mem_get_address_range:
    case E::pointer_get_attribute:
      traits.sticky = Sticky::kAny;
      break;
    case E::mem_get_allocation_granularity:
    case E::mem_get_access:
    case E::mem_get_allocation_properties:
      traits.vmm = true;
      traits.sticky = Sticky::kAny;
      break;
    case E::mem_address_reserve:
    case E::mem_address_free:
    case E::mem_create:
    case E::mem_release:
    case E::mem_map:
    case E::mem_unmap:
    case E::mem_set_access:
    case E::mem_retain_allocation_handle:
    case E::mem_export:
    case E::mem_import:
      traits.vmm = true;
      traits.failable = true;
      traits.sticky = Sticky::kAny;
      break;
    case E::stream_get_id:
    case E::stream_is_capturing:
    case E::stream_get_capture_info:
      traits.sticky = Sticky::kCurrent;
      break;
    case E::ctx_synchronize:
    case E::mem_get_info:
    case E::mem_alloc:
    case E::mem_free:
    case E::mem_alloc_async:
    case E::mem_free_async:
    case E::device_get_default_mem_pool:
    case E::mem_pool_trim_to:
    case E::mem_pool_set_attribute:
    case E::mem_pool_get_attribute:
    case E::mem_pool_create:
    case E::mem_pool_destroy:
    case E::memcpy_async:
    case E::memcpy_htod_async:
    case E::memcpy_dtoh_async:
    case E::memcpy_dtod_async:
    case E::memset_d8_async:
    case E::stream_create:
    case E::stream_destroy:
    case E::stream_synchronize:
    case E::stream_query:
    case E::stream_wait_event:
    case E::event_create:
    case E::event_destroy:
    case E::event_record:
    case E::event_query:
    case E::event_synchronize:
      traits.failable = true;
      traits.sticky = Sticky::kCurrent;
      break;
  }
  return traits;
}

constexpr std::array<EntryTraits, kEntryPointCount> MakeTable() {
  std::array<EntryTraits, kEntryPointCount> table{};
  for (int i = 0; i < kEntryPointCount; ++i) table[static_cast<size_t>(i)] = Traits(static_cast<EntryPoint>(i));
  return table;
}

constexpr std::array<EntryTraits, kEntryPointCount> kTraits = MakeTable();

}  // namespace

const EntryTraits& TraitsOf(EntryPoint entry_point) { return kTraits[static_cast<size_t>(entry_point)]; }

}  // namespace expanse::sim
