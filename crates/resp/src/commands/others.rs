//! Commands that Redis has and this server has not, so that they can be refused by name: whoever looks for
//! a mistake in his spelling should not.

/// Their names, in order.
#[rustfmt::skip]
const NAMES: [&str; 187] = [
    "acl", "asking", "bgrewriteaof", "bitcount", "bitfield", "bitfield_ro", "bitop", "bitpos", "blmove",
    "blmpop", "blpop", "brpop", "brpoplpush", "bzmpop", "bzpopmax", "bzpopmin", "cluster", "copy", "debug",
    "discard", "dump", "eval", "eval_ro", "evalsha", "evalsha_ro", "exec", "failover", "fcall", "fcall_ro",
    "function", "geoadd", "geodist", "geohash", "geopos", "georadius", "georadius_ro", "georadiusbymember",
    "georadiusbymember_ro", "geosearch", "geosearchstore", "getbit", "hdel", "hexists", "hexpire", "hget",
    "hgetall", "hincrby", "hincrbyfloat", "hkeys", "hlen", "hmget", "hmset", "hpersist", "hpexpire",
    "hrandfield", "hscan", "hset", "hsetnx", "hstrlen", "httl", "hvals", "incrbyfloat", "latency", "lcs",
    "lindex", "linsert", "llen", "lmove", "lmpop", "lolwut", "lpop", "lpos", "lpush", "lpushx", "lrange",
    "lrem", "lset", "ltrim", "memory", "migrate", "module", "monitor", "move", "msetnx", "multi", "object",
    "pfadd", "pfcount", "pfdebug", "pfmerge", "pfselftest", "psubscribe", "psync", "publish", "pubsub",
    "punsubscribe", "randomkey", "rename", "renamenx", "replconf", "replicaof", "restore",
    "restore-asking", "rpop", "rpoplpush", "rpush", "rpushx", "sadd", "scard", "script", "sdiff",
    "sdiffstore", "setbit", "setrange", "sinter", "sintercard", "sinterstore", "sismember", "slaveof",
    "slowlog", "smembers", "smismember", "smove", "sort", "sort_ro", "spop", "spublish", "srandmember",
    "srem", "sscan", "ssubscribe", "subscribe", "sunion", "sunionstore", "sunsubscribe", "swapdb", "sync",
    "unsubscribe", "unwatch", "watch", "xack", "xadd", "xautoclaim", "xclaim", "xdel", "xgroup", "xinfo",
    "xlen", "xpending", "xrange", "xread", "xreadgroup", "xrevrange", "xsetid", "xtrim", "zadd", "zcard",
    "zcount", "zdiff", "zdiffstore", "zincrby", "zinter", "zintercard", "zinterstore", "zlexcount",
    "zmpop", "zmscore", "zpopmax", "zpopmin", "zrandmember", "zrange", "zrangebylex", "zrangebyscore",
    "zrangestore", "zrank", "zrem", "zremrangebylex", "zremrangebyrank", "zremrangebyscore", "zrevrange",
    "zrevrangebylex", "zrevrangebyscore", "zrevrank", "zscan", "zscore", "zunion", "zunionstore",
];

/// Whether this is one of them, in small letters.
pub fn is_known_to_redis(name: &[u8]) -> bool {
    NAMES.binary_search_by(|known| known.as_bytes().cmp(name)).is_ok()
}

/// Why a command of Redis is not carried out here.
pub fn why_not(name: &str) -> String {
    let why = match name {
        "msetnx" | "rename" | "renamenx" | "copy" => {
            "which would have to do all of it or nothing, also after a power cut"
        }
        "multi" | "exec" | "discard" | "watch" | "unwatch" => "which has no transactions",
        "eval" | "eval_ro" | "evalsha" | "evalsha_ro" | "fcall" | "fcall_ro" | "script" | "function" => {
            "which has no scripts"
        }
        "publish" | "pubsub" | "psubscribe" | "punsubscribe" | "spublish" | "ssubscribe" | "subscribe"
        | "sunsubscribe" | "unsubscribe" => "which carries no messages",
        // Of strings or of the server; that it stores strings says nothing of these.
        "acl" | "bgrewriteaof" | "bitcount" | "bitfield" | "bitfield_ro" | "bitop" | "bitpos" | "debug"
        | "dump" | "getbit" | "incrbyfloat" | "latency" | "lcs" | "migrate" | "module" | "monitor"
        | "move" | "object" | "restore" | "setbit" | "setrange" | "slowlog" | "swapdb" => {
            return format!("ERR command '{name}' is not supported by elastripe; COMMAND LIST says what is");
        }
        "memory" => "which keeps values on devices; INFO says what its index takes",
        "randomkey" => "whose keys are in no order to choose from; SCAN names them",
        "cluster" | "replicaof" | "slaveof" | "psync" | "replconf" => {
            "which has no replicas: the array has redundancy"
        }
        _ => "which stores strings",
    };
    format!("ERR command '{name}' is not supported by elastripe, {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order() {
        assert!(NAMES.is_sorted_by(|a, b| a < b));
        assert!(is_known_to_redis(b"lpush") && !is_known_to_redis(b"lpusch"));
        let said = why_not("lpush");
        assert_eq!(said, "ERR command 'lpush' is not supported by elastripe, which stores strings");
    }
}
