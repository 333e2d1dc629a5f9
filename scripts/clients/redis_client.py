"""The python client `redis` on `kv serve`: what programs ask of it, and a ledger of what was acknowledged.

    redis_client.py talk SOCKET             answers are those of Redis; exit code 1 and the reason if not
    redis_client.py write SOCKET LEDGER     sets, changes and deletes keys until the server is gone
    redis_client.py check SOCKET LEDGER     every acknowledged change is there; one under way may be
"""
import random
import sys
import threading

import redis


def client(socket, protocol=2):
    return redis.Redis(unix_socket_path=socket, protocol=protocol)


def refused(call, *words):
    try:
        answer = call()
    except redis.ResponseError as error:
        assert all(word in str(error).lower() for word in words), f"refused as {error}, expected {words}"
        return
    raise AssertionError(f"{words}: was not refused but answered {answer}")


def talk_once(db, large):
    db.flushall()
    assert db.ping() and db.echo("hello") == b"hello"
    assert db.set("a", "1") and db.get("a") == b"1" and db.get("none") is None
    assert db.set("a", "2", nx=True) is None and db.set("a", "2", xx=True, get=True) == b"1"
    assert db.set("a", "x", ex=100) and 98 <= db.ttl("a") <= 100 and 98_000 <= db.pttl("a") <= 100_000
    assert db.persist("a") and db.ttl("a") == -1 and db.ttl("none") == -2
    assert db.expire("a", 50, nx=True) and not db.expire("a", 60, nx=True) and db.expire("a", 60, gt=True)
    assert db.expireat("a", 4_000_000_000) and db.expiretime("a") == 4_000_000_000
    assert db.set("gone", "x", px=1) and db.set("s", "v", ex=100) and db.getex("s", persist=True) == b"v"
    assert db.append("s", "alue") == 5 and db.strlen("s") == 5 and db.getrange("s", 1, -2) == b"alu"
    assert db.incr("n") == 1 and db.incrby("n", 41) == 42 and db.decr("n") == 41
    assert db.getset("n", "7") == b"41" and db.getdel("n") == b"7" and not db.exists("n")
    assert db.mset({f"k{i}": f"v{i}" for i in range(1000)})
    assert db.mget([f"k{i}" for i in range(1000)] + ["none"]) == [f"v{i}".encode() for i in range(1000)] + [None]
    assert set(db.scan_iter(match="k1?")) == {f"k1{i}".encode() for i in range(10)}
    assert len(set(db.scan_iter(match="k*", count=17))) == 1000 and len(db.keys("k*")) == 1000
    assert set(db.scan_iter(_type="string")) >= {b"k0"} and not list(db.scan_iter(_type="list"))
    assert db.type("k0") == b"string" and db.exists("k0", "k0", "none") == 2 and db.touch("k0") == 1
    assert db.delete("k0", "none") == 1 and db.unlink("k1") == 1 and db.dbsize() >= 999
    with db.pipeline(transaction=False) as pipe:
        for i in range(2, 500):
            pipe.get(f"k{i}")
        assert pipe.execute() == [f"v{i}".encode() for i in range(2, 500)]
    binary = bytes(range(256)) * 8
    assert db.set(binary[:255], binary) and db.get(binary[:255]) == binary and db.set("empty", "") and db.get("empty") == b""
    assert db.set("large", large) and db.get("large") == large and db.getrange("large", 9_999_990, 10_000_009) == large[9_999_990:10_000_010]
    info = db.info()
    assert info["redis_version"] == "7.0.0" and int(info["db0"]["keys"]) == db.dbsize(), info
    assert "maxmemory" in db.config_get("maxmemory*") and db.command_count() > 50 and b"get" in db.command_list() and "get" in db.command()
    assert db.client_setname("tester") and db.client_getname() in (b"tester", "tester") and db.save() and db.lastsave()
    assert db.time()[0] > 1_600_000_000 and db.wait(0, 1) == 0


def talk_not(db):
    """What it cannot do it says by name."""
    refused(lambda: db.lpush("l", 1), "lpush", "not supported")
    refused(lambda: db.hset("h", "f", 1), "hset", "not supported")
    refused(lambda: db.publish("c", 1), "publish", "not supported")
    refused(lambda: db.execute_command("MULTI"), "multi", "not supported")
    refused(lambda: db.msetnx({"a": 1}), "msetnx", "not supported")
    refused(lambda: db.eval("return 1", 0), "eval", "not supported")
    refused(lambda: db.execute_command("SELECT", 1), "index is out of range")
    refused(lambda: db.execute_command("NOSUCH"), "unknown command", "nosuch")
    refused(lambda: db.set("", "x"), "key")
    refused(lambda: db.set("k" * 256, "x"), "key")
    refused(lambda: db.incr("large"), "not an integer")


def talk(socket):
    large = random.Random(1).randbytes(20_000_000)
    for protocol in (2, 3):
        talk_once(client(socket, protocol), large)
    talk_not(client(socket))
    db, failures = client(socket), []

    def count():
        try:
            for _ in range(200):
                db.incr("counter")
        except Exception as error:  # whatever a thread meets is a failure of the test
            failures.append(error)

    threads = [threading.Thread(target=count) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures and db.get("counter") == b"1600", (failures, db.get("counter"))
    print("talked")


def value(number, version):
    return f"{number}/{version};".encode() * (1 + number * 7 % 300)


def write(socket, path):
    """Lines of the ledger: `i NUMBER VERSION` is about to be set, `d NUMBER VERSION` about to be deleted, `s` all before is safe."""
    db, draw, version = client(socket), random.Random(path), 0
    with open(path, "a", buffering=1) as ledger:
        try:
            while True:
                batch, pipe = {}, db.pipeline(transaction=False)
                for _ in range(draw.randrange(1, 40)):
                    version += 1
                    batch[draw.randrange(2000)] = (version, draw.random() < 0.2)
                ledger.write("".join(f"{'d' if gone else 'i'} {n} {v}\n" for n, (v, gone) in batch.items()))
                for number, (v, gone) in batch.items():
                    pipe.delete(f"key{number}") if gone else pipe.set(f"key{number}", value(number, v))
                pipe.execute()
                ledger.write("s\n")
        except redis.ConnectionError:
            print(f"{version} changes until the server was gone")


def check(socket, path):
    db, may, safe = client(socket), {}, 0
    for line in open(path).read().split("\n")[:-1]:
        kind, *rest = line.split(" ")
        if kind == "s":
            safe += 1
            may = {number: versions[-1:] for number, versions in may.items()}
        else:
            number, version = map(int, rest)
            may.setdefault(number, [None]).append(value(number, version) if kind == "i" else None)
    assert safe > 0, "nothing was acknowledged"
    for number, versions in may.items():
        found = db.get(f"key{number}")
        assert found in versions, f"key{number} is {found and found[:20]}, may be {[v and v[:20] for v in versions]}"
    print(f"{len(may)} keys of {safe} acknowledged batches are as they may be")


if __name__ == "__main__":
    {"talk": talk, "write": write, "check": check}[sys.argv[1]](*sys.argv[2:])
