"""Sets keys, then updates them by Zipf 0.99: in the key-value store or in RocksDB, the same keys in the same order.

    kv_writes.py load|update unix:SOCKET|rocksdb:DIRECTORY KEYS BYTES TURNS SEED
"""
import bisect
import itertools
import os
import random
import socket
import sys
import threading

phase, target, count, size, turns, seed = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
kind, path = target.split(":", 1)
draw = random.Random(seed)
noise = draw.randbytes(1 << 22)


def numbers():
    if phase == "load":
        return range(count)
    sums = list(itertools.accumulate(1 / rank**0.99 for rank in range(1, count + 1)))
    order = list(range(count))
    draw.shuffle(order)
    return (order[bisect.bisect(sums, draw.random() * sums[-1])] for _ in range(count * turns))


def pairs():
    for number in numbers():
        at = draw.randrange(len(noise) - size)
        yield b"key:%012d" % number, noise[at : at + size]


def to_store():
    server = socket.socket(socket.AF_UNIX)
    server.connect(path)
    total = count * (1 if phase == "load" else turns)

    def answers():
        left = 5 * total
        while left > 0:
            some = server.recv(1 << 20)
            assert some and set(some) <= set(b"+OK\r\n"), some[:200]
            left -= len(some)

    reader = threading.Thread(target=answers)
    reader.start()
    everything = pairs()
    while batch := list(itertools.islice(everything, 256)):
        server.sendall(b"".join(b"*3\r\n$3\r\nSET\r\n$16\r\n%s\r\n$%d\r\n%s\r\n" % (key, size, value) for key, value in batch))
    reader.join()
    server.sendall(b"SAVE\r\n")
    assert server.recv(100) == b"+OK\r\n"


def to_rocksdb():
    from rocksdict import DBCompressionType, Options, Rdict

    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_compression_type(DBCompressionType.none())
    if os.environ.get("BUFFERS", "eighth") == "eighth":
        # An eighth of its defaults, with which it runs out of space on small volumes. The shape of its levels is the same.
        options.set_write_buffer_size(8 << 20)
        options.set_target_file_size_base(8 << 20)
        options.set_max_bytes_for_level_base(32 << 20)
        options.set_level_compaction_dynamic_level_bytes(True)
    db = Rdict(path, options)
    for key, value in pairs():
        db[key] = value
    db.flush(True)
    db.close()


{"unix": to_store, "rocksdb": to_rocksdb}[kind]()
