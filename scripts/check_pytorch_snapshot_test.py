"""Does the check of PyTorch snapshots see what is wrong?"""

import copy
import unittest

import check_pytorch_snapshot as check

BLOCK = {'address': 4096, 'size': 1024, 'requested_size': 1000, 'state': 'active_allocated', 'frames': []}
FREE = {'address': 5120, 'size': 512, 'requested_size': 0, 'state': 'inactive', 'frames': []}
EVENT = {'action': 'alloc', 'addr': 4096, 'size': 1000, 'stream': 0, 'time_us': 7, 'frames': []}
SNAPSHOT = {
    'segments': [{'device': 0, 'address': 4096, 'total_size': 1536, 'allocated_size': 1024, 'active_size': 1024,
                  'requested_size': 1000, 'stream': 0, 'segment_type': 'small', 'segment_pool_id': (0, 0),
                  'is_expandable': True, 'frames': [], 'blocks': [BLOCK, FREE]}],
    'device_traces': [[EVENT]],
    'allocator_settings': {'expandable_segments': True},
    'external_annotations': [{'name': 'step0', 'stage': 'START', 'device': 0, 'time_us': 7}],
}


def dicts(value):
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from dicts(item)


class Check(unittest.TestCase):
    def test_accepts_what_is_right(self):
        check.check(SNAPSHOT)

    def test_misses_every_key(self):
        for i, original in enumerate(dicts(SNAPSHOT)):
            for key in original:
                broken = copy.deepcopy(SNAPSHOT)
                del list(dicts(broken))[i][key]
                with self.assertRaises(check.Wrong, msg=key):
                    check.check(broken)

    def test_sees_what_does_not_fit_together(self):
        for place, key, value in (('segments', 'total_size', 2048), ('segments', 'allocated_size', 1536),
                                  ('segments', 'device', 1), ('segments', 'segment_type', 'huge'),
                                  ('segments', 'is_expandable', 1), ('device_traces', 'size', 999),
                                  ('device_traces', 'addr', 8192), ('device_traces', 'action', 'malloc')):
            broken = copy.deepcopy(SNAPSHOT)
            found = broken[place][0]
            (found[0] if isinstance(found, list) else found)[key] = value
            with self.assertRaises(check.Wrong, msg=key):
                check.check(broken)
        for key, value in (('address', 4608), ('size', 512), ('state', 'free'), ('requested_size', 0)):
            broken = copy.deepcopy(SNAPSHOT)
            broken['segments'][0]['blocks'][0][key] = value
            with self.assertRaises(check.Wrong, msg=key):
                check.check(broken)


if __name__ == '__main__':
    unittest.main()
