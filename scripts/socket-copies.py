#!/usr/bin/env python3
"""What MSG_ZEROCOPY saves on this machine's own sockets (docs/decisions/0062-sockets-copy.md).

Sends by plain `send` and with MSG_ZEROCOPY in turn, over loopback TCP and a pair of unix sockets, three rounds of each size:
speed, processor time of the sender, and how many of the sends the kernel copied all the same.
"""

import os
import resource
import socket
import struct
import time

SO_ZEROCOPY, MSG_ZEROCOPY = 60, 0x4000000
BUFFER_BYTES, ROUNDS = 4 << 20, 3


def pair(kind):
    """Two ends of a connection."""
    if kind == "unix":
        return socket.socketpair()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        return near, listener.accept()[0]


def drain(end, total):
    """The receiver, a process of its own: takes all, and says so."""
    buffer, left = bytearray(1 << 20), total
    while left > 0 and (count := end.recv_into(buffer)) > 0:
        left -= count
    if left == 0:
        end.sendall(b"x")


def take_notices(end):
    """Sends that the kernel is done with, and those of them that it copied (SO_EE_CODE_ZEROCOPY_COPIED)."""
    done = copied = 0
    while True:
        try:
            ancillary = end.recvmsg(1, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)[1]
        except BlockingIOError:
            return done, copied
        for _, _, data in ancillary:
            _, _, _, code, _, first, last = struct.unpack("=IBBBBII", data[:16])
            done, copied = done + last - first + 1, copied + (last - first + 1) * (code & 1)


def measure(kind, zerocopy, size, total):
    """Sends `total` bytes, `size` at a time; a line of what came of it."""
    near, far = pair(kind)
    for end in (near, far):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    if zerocopy:
        try:
            near.setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
        except OSError as error:
            return f"refused: {error.strerror}"
    receiver = os.fork()
    if receiver == 0:
        near.close()
        drain(far, total)
        os._exit(0)
    far.close()
    data = memoryview(os.urandom(16 << 20))
    flags, sent, at, sends, done, copied = MSG_ZEROCOPY if zerocopy else 0, 0, 0, 0, 0, 0
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
    while sent < total:
        sent += near.send(data[at : at + min(size, total - sent)], flags)
        at, sends = (at + size) % (len(data) - size), sends + 1
        if zerocopy and sends % 64 == 0:
            done, copied = (a + b for a, b in zip((done, copied), take_notices(near)))
    near.recv(1)
    seconds, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_SELF)
    os.waitpid(receiver, 0)
    if zerocopy:
        done, copied = (a + b for a, b in zip((done, copied), take_notices(near)))
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    speed = f"{total / seconds / 1e9:5.2f} GB/s, {processor / (total / (1 << 30)):.3f} s of the sender's processor per GiB"
    return speed + (f", the kernel copied {copied} of {done}" if zerocopy else "")


def main():
    """All of it."""
    for size, total in ((4096, 1 << 27), (65536, 1 << 29), (1 << 20, 1 << 29)):
        for _ in range(ROUNDS):
            for kind in ("tcp", "unix"):
                for zerocopy in (False, True):
                    how = "MSG_ZEROCOPY" if zerocopy else "plain"
                    print(f"{size:8} {kind:4} {how:12}  {measure(kind, zerocopy, size, total)}", flush=True)


if __name__ == "__main__":
    main()
