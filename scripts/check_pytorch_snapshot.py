#!/usr/bin/env python3
"""Checks that a memory snapshot is what PyTorch's viewers of such files can show.

usage: check_pytorch_snapshot.py FILE

FILE is loaded with Python's own pickle, which must need to import nothing. Asked for are the keys that
pytorch.org/memory_viz and torch/cuda/_memory_viz.py read, and what they take for granted: that the blocks of a segment
fill it in order, that its sums are those of its blocks, and that events of one device fit together. Prints what the
file holds, or the first thing that is wrong and exits with 1.
"""

import pickle
import sys

STATES = {'active_allocated', 'active_pending_free', 'active_awaiting_free', 'inactive'}
BLOCK_ACTIONS = {'alloc', 'free_requested', 'free_completed'}
SEGMENT_ACTIONS = {'segment_alloc', 'segment_free', 'segment_map', 'segment_unmap'}
OTHER_ACTIONS = {'oom', 'snapshot', 'user_defined'}


class Wrong(Exception):
    pass


class PlainUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise Wrong(f'the pickle imports {module}.{name}')


def want(condition, place, problem):
    if not condition:
        raise Wrong(f'{place}: {problem}')


def get(container, key, kind, place):
    want(isinstance(container, dict), place, 'no dict')
    want(key in container, place, f'lacks {key!r}')
    # In Python a bool is an int; not here.
    fits = isinstance(container[key], kind) and isinstance(container[key], bool) == (kind is bool)
    want(fits, place, f'{key} is {container[key]!r}, expected {kind.__name__}')
    return container[key]


def check_segment(segment, place):
    address, total = get(segment, 'address', int, place), get(segment, 'total_size', int, place)
    for key in ('device', 'stream'):
        want(get(segment, key, int, place) >= 0, place, f'{key} is negative')
    want(get(segment, 'segment_type', str, place) in ('small', 'large'), place, 'segment_type')
    get(segment, 'is_expandable', bool, place)
    want(len(get(segment, 'segment_pool_id', tuple, place)) == 2, place, 'segment_pool_id is no pair')
    get(segment, 'frames', list, place)
    end, allocated, active, requested = address, 0, 0, 0
    for i, block in enumerate(get(segment, 'blocks', list, place)):
        at = f'{place}.blocks[{i}]'
        size, state = get(block, 'size', int, at), get(block, 'state', str, at)
        want(size > 0, at, 'size is not positive')
        want(get(block, 'address', int, at) == end, at, f'begins at {block["address"]}, the one before ends at {end}')
        want(state in STATES, at, f'state {state!r}')
        get(block, 'frames', list, at)
        asked = get(block, 'requested_size', int, at)
        if state != 'inactive':
            want(0 < asked <= size, at, f'{asked} bytes requested in a block of {size}')
            active += size
            requested += asked
        if state == 'active_allocated':
            allocated += size
        end += size
    want(end == address + total, place, f'blocks end at {end}, the segment at {address + total}')
    for key, value in (('allocated_size', allocated), ('active_size', active), ('requested_size', requested)):
        want(get(segment, key, int, place) == value, place, f'{key} is {segment[key]}, its blocks have {value}')


def check_trace(trace, place):
    """Returns the live blocks that the events leave, by address, with the bytes asked for."""
    live, time = {}, 0
    for i, event in enumerate(trace):
        at = f'{place}[{i}]'
        action = get(event, 'action', str, at)
        want(action in BLOCK_ACTIONS | SEGMENT_ACTIONS | OTHER_ACTIONS, at, f'action {action!r}')
        size, address = get(event, 'size', int, at), 0
        get(event, 'stream', int, at)
        get(event, 'frames', list, at)
        want(get(event, 'time_us', int, at) >= time, at, 'time goes back')
        time = event['time_us']
        if action == 'oom':
            want(get(event, 'device_free', int, at) >= 0, at, 'device_free is negative')
        else:
            address = get(event, 'addr', int, at)
        if action == 'alloc':
            want(address not in live, at, f'a block is live at {address}')
            live[address] = size
        elif action == 'free_completed':
            live.pop(address, None)  # absent where the block is older than the recording
    return live


def check(snapshot):
    segments = get(snapshot, 'segments', list, 'the snapshot')
    traces = get(snapshot, 'device_traces', list, 'the snapshot')
    ends = {}
    for i, segment in enumerate(segments):
        place = f'segments[{i}]'
        check_segment(segment, place)
        device = segment['device']
        want(device < len(traces), place, f'device {device}, and {len(traces)} device_traces')
        want(segment['address'] >= ends.get(device, 0), place, 'overlaps the segment before it or is out of order')
        ends[device] = segment['address'] + segment['total_size']
    for device, trace in enumerate(traces):
        want(isinstance(trace, list), f'device_traces[{device}]', 'no list')
        blocks = {block['address']: block['requested_size'] for segment in segments if segment['device'] == device
                  for block in segment['blocks'] if block['state'] != 'inactive'}
        for address, size in check_trace(trace, f'device_traces[{device}]').items():
            want(blocks.get(address) == size, f'device_traces[{device}]',
                 f'leaves {size} bytes live at {address}, where the segments have {blocks.get(address)}')
    settings = get(snapshot, 'allocator_settings', dict, 'the snapshot')
    get(settings, 'expandable_segments', bool, 'allocator_settings')
    for i, mark in enumerate(get(snapshot, 'external_annotations', list, 'the snapshot')):
        for key, kind in (('name', str), ('stage', str), ('device', int), ('time_us', int)):
            get(mark, key, kind, f'external_annotations[{i}]')


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        with open(sys.argv[1], 'rb') as file:
            snapshot = PlainUnpickler(file).load()
        check(snapshot)
    except (Wrong, OSError, pickle.UnpicklingError, EOFError) as error:
        print(f'{sys.argv[1]}: {error}', file=sys.stderr)
        return 1
    states = [block['state'] for segment in snapshot['segments'] for block in segment['blocks']]
    print(f'{len(snapshot["segments"])} segments, {sum(map(len, snapshot["device_traces"]))} events, '
          + ', '.join(f'{states.count(state)} {state}' for state in sorted(set(states))))
    return 0


if __name__ == '__main__':
    sys.exit(main())
