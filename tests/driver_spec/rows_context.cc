// Primary contexts, the current context, and errors that stick to a context.

#include "tests/driver_spec/row.h"

namespace expanse::driver_spec {
namespace {

using E = EntryPoint;
using G = Grade;

void AddPrimaryRows(std::vector<Row>& rows) {
  rows.push_back({"retain_context.same_every_time", E::primary_ctx_retain, G::kDocumented, {0}, [](World& w) {
                    abi::Context context = nullptr;
                    const int result = w.d.primary_ctx_retain(&context, 0);
                    w.NeedThat(context == w.context, "the same context");
                    w.Need(w.d.primary_ctx_release(0), "cuDevicePrimaryCtxRelease");
                    return result;
                  }});
  rows.push_back({"retain_context.does_not_push", E::primary_ctx_retain, G::kDocumented, {0}, [](World& w) {
                    return w.WithoutContext([&] {
                      abi::Context context = nullptr;
                      abi::Context current = nullptr;
                      const int result = w.d.primary_ctx_retain(&context, 0);
                      w.Need(w.d.ctx_get_current(&current), "cuCtxGetCurrent");
                      w.NeedThat(current == nullptr, "no current context");
                      w.Need(w.d.primary_ctx_release(0), "cuDevicePrimaryCtxRelease");
                      return result;
                    });
                  }});
  rows.push_back({"retain_context.output_null", E::primary_ctx_retain, G::kDocumented, {1}, [](World& w) {
                    return w.d.primary_ctx_retain(nullptr, 0);
                  }});
  for (const bool negative : {true, false}) {
    const std::string which = negative ? "device_negative" : "device_too_large";
    auto device = [negative](World& w) { return negative ? -1 : w.devices; };
    rows.push_back({"retain_context." + which, E::primary_ctx_retain, G::kDocumented, {101}, [device](World& w) {
                      abi::Context context = nullptr;
                      return w.d.primary_ctx_retain(&context, device(w));
                    }});
    rows.push_back({"release_context." + which, E::primary_ctx_release, G::kDocumented, {101}, [device](World& w) {
                      return w.d.primary_ctx_release(device(w));
                    }});
    rows.push_back({"context_state." + which, E::primary_ctx_get_state, G::kDocumented, {101}, [device](World& w) {
                      unsigned flags = 0;
                      int active = 0;
                      return w.d.primary_ctx_get_state(device(w), &flags, &active);
                    }});
  }
  rows.push_back(Row{
      "release_context.not_retained", E::primary_ctx_release, G::kDocumented, {201}, [](World& w) {
        return w.d.primary_ctx_release(1);
      }}.TwoDevices());
  rows.push_back({"context_state.active", E::primary_ctx_get_state, G::kDocumented, {0}, [](World& w) {
                    unsigned flags = 0;
                    int active = 0;
                    const int result = w.d.primary_ctx_get_state(0, &flags, &active);
                    w.NeedThat(active == 1, "an active context");
                    return result;
                  }});
  rows.push_back(Row{
      "context_state.inactive", E::primary_ctx_get_state, G::kDocumented, {0}, [](World& w) {
        unsigned flags = 0;
        int active = 1;
        const int result = w.d.primary_ctx_get_state(1, &flags, &active);
        w.NeedThat(active == 0, "an inactive context");
        return result;
      }}.TwoDevices());
  rows.push_back({"context_state.output_null", E::primary_ctx_get_state, G::kDocumented, {1}, [](World& w) {
                    unsigned flags = 0;
                    return w.d.primary_ctx_get_state(0, &flags, nullptr);
                  }});
}

void AddCurrentRows(std::vector<Row>& rows) {
  rows.push_back({"current.none", E::ctx_get_current, G::kDocumented, {0}, [](World& w) {
                    return w.WithoutContext([&] {
                      abi::Context current = w.context;
                      const int result = w.d.ctx_get_current(&current);
                      w.NeedThat(current == nullptr, "null");
                      return result;
                    });
                  }});
  rows.push_back({"current.output_null", E::ctx_get_current, G::kDocumented, {1}, [](World& w) {
                    return w.d.ctx_get_current(nullptr);
                  }});
  rows.push_back({"current_device.value", E::ctx_get_device, G::kDocumented, {0}, [](World& w) {
                    abi::Device device = -1;
                    const int result = w.d.ctx_get_device(&device);
                    w.NeedThat(device == 0, "device 0");
                    return result;
                  }});
  rows.push_back({"current_device.without_context", E::ctx_get_device, G::kDocumented, {201}, [](World& w) {
                    return w.WithoutContext([&] {
                      abi::Device device = -1;
                      return w.d.ctx_get_device(&device);
                    });
                  }});
  rows.push_back({"set_current.replaces_the_top", E::ctx_set_current, G::kDocumented, {0}, [](World& w) {
                    const int result = w.d.ctx_set_current(w.context);
                    abi::Context top = nullptr;
                    w.Need(w.d.ctx_pop_current(&top), "cuCtxPopCurrent");
                    abi::Context current = w.context;
                    w.Need(w.d.ctx_get_current(&current), "cuCtxGetCurrent");
                    w.NeedThat(top == w.context && current == nullptr, "one context on the stack, not two");
                    w.Need(w.d.ctx_push_current(w.context), "cuCtxPushCurrent");
                    return result;
                  }});
  rows.push_back({"set_current.null_pops", E::ctx_set_current, G::kDocumented, {0}, [](World& w) {
                    const int result = w.d.ctx_set_current(nullptr);
                    abi::Context current = w.context;
                    w.Need(w.d.ctx_get_current(&current), "cuCtxGetCurrent");
                    w.NeedThat(current == nullptr, "no current context");
                    w.Need(w.d.ctx_push_current(w.context), "cuCtxPushCurrent");
                    return result;
                  }});
  rows.push_back({"set_current.null_on_an_empty_stack", E::ctx_set_current, G::kDocumented, {0}, [](World& w) {
                    return w.WithoutContext([&] { return w.d.ctx_set_current(nullptr); });
                  }});
  rows.push_back(Row{
      "set_current.no_context", E::ctx_set_current, G::kDocumented, {201}, [](World& w) {
        int object = 0;
        return w.d.ctx_set_current(reinterpret_cast<abi::Context>(&object));
      }}.SimulatorOnly());
  rows.push_back(Row{
      "set_current.destroyed", E::ctx_set_current, G::kDocumented, {201, 709}, [](World& w) {
        abi::Context other = nullptr;
        w.Need(w.d.primary_ctx_retain(&other, 1), "cuDevicePrimaryCtxRetain");
        w.Need(w.d.primary_ctx_release(1), "cuDevicePrimaryCtxRelease");
        return w.d.ctx_set_current(other);
      }}.TwoDevices());
  rows.push_back({"push.null", E::ctx_push_current, G::kAssumed, {201, 1}, [](World& w) {
                    return w.d.ctx_push_current(nullptr);
                  }});
  rows.push_back({"push.twice_pops_twice", E::ctx_push_current, G::kDocumented, {0}, [](World& w) {
                    const int result = w.d.ctx_push_current(w.context);
                    abi::Context top = nullptr;
                    w.Need(w.d.ctx_pop_current(&top), "cuCtxPopCurrent");
                    abi::Context current = nullptr;
                    w.Need(w.d.ctx_get_current(&current), "cuCtxGetCurrent");
                    w.NeedThat(current == w.context, "the context still current");
                    return result;
                  }});
  rows.push_back({"pop.empty_stack", E::ctx_pop_current, G::kDocumented, {201}, [](World& w) {
                    return w.WithoutContext([&] {
                      abi::Context top = nullptr;
                      return w.d.ctx_pop_current(&top);
                    });
                  }});
  rows.push_back({"synchronize_context.idle", E::ctx_synchronize, G::kDocumented, {0}, [](World& w) {
                    return w.d.ctx_synchronize();
                  }});
  rows.push_back({"synchronize_context.without_context", E::ctx_synchronize, G::kDocumented, {201}, [](World& w) {
                    return w.WithoutContext([&] { return w.d.ctx_synchronize(); });
                  }});
  rows.push_back(Row{"reserve.without_retained_context",
                     E::mem_address_reserve,
                     G::kAssumed,
                     {0},
                     [](World& w) {
                       abi::DevicePtr address = 0;
                       const int result = w.d.mem_address_reserve(&address, w.g, 0, 0, 0);
                       if (result == 0) w.Need(w.d.mem_address_free(address, w.g), "cuMemAddressFree");
                       return result;
                     }}
                     .From(World::Start::kInitialised)
                     .Quirk([](sim::Quirks& quirks) { quirks.vmm_needs_context = true; }, {201}));
}

// Makes the context's error sticky, makes the call, and heals the context, which only the simulator can.
Row Sticky(const char* id, E entry_point, Grade grade, int code, std::function<int(World&)> call) {
  return Row{id,
             entry_point,
             grade,
             {code},
             [call = std::move(call)](World& w) {
               w.simulator->MakeSticky(abi::kIllegalAddress);
               const int result = call(w);
               w.simulator->ResetStickyError();
               return result;
             }}
      .SimulatorOnly();
}

void AddStickyRows(std::vector<Row>& rows) {
  rows.push_back(Sticky("memory_info.sticky", E::mem_get_info, G::kDocumented, 700, [](World& w) {
    size_t free = 0;
    size_t total = 0;
    return w.d.mem_get_info(&free, &total);
  }));
  rows.push_back(Sticky("synchronize_context.sticky", E::ctx_synchronize, G::kDocumented, 700,
                        [](World& w) { return w.d.ctx_synchronize(); }));
  rows.push_back(Sticky("query_event.sticky", E::event_query, G::kDocumented, 700,
                        [](World& w) { return w.d.event_query(w.event); }));
  rows.push_back(Sticky("fill.sticky", E::memset_d8_async, G::kDocumented, 700,
                        [](World& w) { return w.d.memset_d8_async(w.At(0), 0, 64, w.stream); }));
  rows.push_back(Sticky("error_name.sticky", E::get_error_name, G::kDocumented, 0, [](World& w) {
    const char* name = nullptr;
    return w.d.get_error_name(abi::kIllegalAddress, &name);
  }));
  // Whether calls that need no context see the error is not documented.
  auto off = [](sim::Quirks& quirks) { quirks.context_free_calls_see_sticky = false; };
  rows.push_back(Sticky("create.sticky", E::mem_create, G::kAssumed, 700, [](World& w) {
                   abi::MemHandle handle = 0;
                   const abi::AllocationProp prop = w.Prop();
                   const int result = w.d.mem_create(&handle, w.g, &prop, 0);
                   if (result == 0) w.Need(w.d.mem_release(handle), "cuMemRelease");
                   return result;
                 }).Quirk(off, {0}));
  rows.push_back(Sticky("unmap.sticky", E::mem_unmap, G::kAssumed, 700, [](World& w) {
                   const int result = w.d.mem_unmap(w.At(0), w.g);
                   w.one_mapped = result != 0;
                   return result;
                 }).Quirk(off, {0}));
}

}  // namespace

void AddContextRows(std::vector<Row>& rows) {
  AddPrimaryRows(rows);
  AddCurrentRows(rows);
  AddStickyRows(rows);
}

}  // namespace expanse::driver_spec
