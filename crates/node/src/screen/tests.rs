//! The screen, as text: any change of it shows up here.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::render;
use crate::status::Status;
use serde_json::{Value, json};

fn device(name: &str, state: &str, errors: Value) -> Value {
    let traffic =
        if errors.is_null() { Value::Null } else { json!({ "read_bytes": 4096, "written_bytes": 1 << 20 }) };
    let role = if name.starts_with("log") { "log" } else { "main" };
    json!({
        "name": name, "role": role, "index": 0, "state": state, "path": format!("/dev/{name}"),
        "errors": errors, "traffic": traffic,
    })
}

fn status(state: &str, source: &str, devices: Vec<Value>) -> Value {
    json!({
        "uuid": "00112233-4455-6677-8899-aabbccddeeff", "name": "tank", "state": state, "source": source,
        "clean": if source == "stopped" { json!(true) } else { Value::Null },
        "scheme": "eplog", "code": "xor", "consistency": null,
        "data_count": 2, "parity_count": 1, "log_count": 1, "chunk_bytes": 4096, "volume_bytes": 3u64 << 30,
        "reserve_permille": 100, "created_unix_s": 0, "epoch": 3, "uris": [], "devices": devices,
        "stale": [], "ignored": [], "space": null, "commit": null, "checkpoints": null, "memory": null,
        "work": null, "last_work": null, "activity": null, "scrub_cursor": 0,
    })
}

fn shown(status: Value) -> String {
    render(&serde_json::from_value::<Status>(status).unwrap())
}

#[test]
fn a_healthy_array_that_was_stopped() {
    let devices = ["data0", "data1", "data2", "log0"].map(|name| device(name, "healthy", Value::Null));
    let expected = "     array: tank  00112233-4455-6677-8899-aabbccddeeff
     state: HEALTHY
   meaning: all 4 devices work; any 1 of them may fail without loss of data
    served: no; stopped in order
     shape: eplog 2+1 with 1 log device, code xor, 4 KiB chunks; made 1970-01-01 00:00:00 UTC
    volume: 3 GiB (3221225472 bytes); 10.0 % of each data device kept for new versions
      work: none
     scrub: never

  DEVICE   STATE       PATH
  data0    healthy     /dev/data0
  data1    healthy     /dev/data1
  data2    healthy     /dev/data2
  log0     healthy     /dev/log0
";
    assert_eq!(shown(status("healthy", "stopped", devices.to_vec())), expected);
}

#[test]
fn an_array_that_is_down_says_how_it_was_served() {
    let again = |uris: Value| {
        let mut status = status("down", "dead", vec![device("data0", "healthy", Value::Null)]);
        status["uris"] = uris;
        let shown = shown(status);
        let at = shown.find("elastripe ").unwrap();
        shown[at..].lines().next().unwrap().to_owned()
    };
    let all = json!(["unix:/n", "tcp:h:1", "vhost-user-blk:/v", "/dev/ublkb3"]);
    let expected = "elastripe serve /dev/data0 --nbd unix:/n --nbd tcp:h:1 --vhost-user-blk /v --ublk 3";
    assert_eq!(again(all), expected);
    assert_eq!(again(json!(["resp:unix:/k"])), "elastripe kv serve /dev/data0 --resp unix:/k");
}

#[test]
fn a_degraded_array_that_is_being_rebuilt() {
    let errors = json!({ "read": 1, "write": 0, "checksum": 2, "healed": 3 });
    let mut status = status(
        "degraded",
        "served",
        vec![device("data0", "healthy", errors.clone()), device("data1", "rebuilding", errors)],
    );
    status["uris"] = json!(["nbd+unix:///?socket=/s"]);
    status["space"] = json!({
        "chunk_count": 1000, "chunks_free": 500, "chunks_reserved": 100, "log_blocks": 200, "log_blocks_used": 50,
    });
    status["commit"] = json!({
        "dirty_stripes": 1234, "log_stripes": 99, "running": true, "stuck_stripes": 0, "commits": 2,
        "stripes_committed": 10000,
    });
    status["checkpoints"] = json!({ "number": 7, "full_number": 5, "written": 2 });
    status["memory"] =
        json!({ "fixed_bytes": 1 << 20, "dynamic_bytes": 0, "bytes_per_chunk_hundredths": 1107 });
    status["work"] = json!({
        "kind": "rebuild", "devices": ["data1"], "done": 250, "total": 1000, "bytes_per_s": 300 << 20, "eta_s": 75,
        "device_bytes_per_s": 100 << 20, "limit_bytes_per_s": 120 << 20, "paused": false,
        "lost": 0, "mismatches": 0,
    });
    status["activity"] = json!({
        "seconds": 61, "requests": 1000, "chunks_read": 1, "chunks_written": 2, "covered_reads": 3, "lost": 0,
    });
    status["stale"] = json!(["/dev/old"]);
    let expected = "     array: tank  00112233-4455-6677-8899-aabbccddeeff
     state: DEGRADED
   meaning: data1 is being rebuilt; all data can be read and written; one more failure loses data
    served: nbd+unix:///?socket=/s
     shape: eplog 2+1 with 1 log device, code xor, 4 KiB chunks; made 1970-01-01 00:00:00 UTC
    volume: 3 GiB (3221225472 bytes); 10.0 % of each data device kept for new versions
     space: 1.95 MiB free on the data devices (50.0 %), parity and new versions counted in; log 25.0 % full
    commit: 1,234 stripes wait for parity commit, covered by 99 log stripes; commit under way; 10,000 stripes committed since the start
checkpoint: number 7 on top of full 5; 2 written since the start
    memory: maps and checksums 11.07 bytes per chunk (1 MiB), uncommitted updates 0 B
  activity: 1,000 requests in 1min 01s: 1 chunks read, 2 written, 3 computed from others
      work: rebuild of data1: 25.0 % done, 100 MiB/s of each device (limit 120 MiB/s), 1min 15s left
     scrub: never

  DEVICE   STATE         READ  WRITE  CKSUM HEALED BYTES READ BYTES WRITTEN  PATH
  data0    healthy          1      0      2      3      4 KiB         1 MiB  /dev/data0
  data1    rebuilding       1      0      2      3      4 KiB         1 MiB  /dev/data1
  /dev/old: not in service; it was replaced, or left and can come back (`elastripe online`)
";
    assert_eq!(shown(status), expected);
}

#[test]
fn what_became_of_long_work_is_shown_until_there_is_more_of_it() {
    let mut status = status("healthy", "served", vec![device("data0", "healthy", Value::Null)]);
    let message = "rebuild ended after 3s with 0 errors left, 1,234 chunks written";
    status["last_ended"] =
        json!({ "unix_ms": 61_500, "level": "info", "event": "rebuild", "device": "", "message": message });
    let text = shown(status);
    let expected = format!("      work: none; {message}, on 1970-01-01 00:01:01 UTC\n");
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn a_member_that_is_being_replaced_while_it_works() {
    let mut member = device("data0", "healthy", Value::Null);
    member["replacement"] = json!({
        "path": "/dev/new", "done_bytes": 250 << 20, "total_bytes": 1000 << 20, "written_bytes": 1 << 20, "unused_bytes": 0,
        "unread_bytes": 8192, "bytes_per_s": 100 << 20, "eta_s": 7,
    });
    let text = shown(status("healthy", "served", vec![member]));
    let expected = "      work: /dev/new becomes what data0 is, which stays in service: 25.0 % looked at, 100 MiB/s, 7s left, \
                    8 KiB of it could not be read and will be rebuilt\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn an_elastic_array_shows_its_units_instead_of_commits() {
    let errors = json!({ "read": 0, "write": 0, "checksum": 0, "healed": 0 });
    let mut status = status("healthy", "served", vec![device("data0", "healthy", errors)]);
    status["scheme"] = json!("was");
    status["log_count"] = json!(0);
    status["unit_rows"] = json!(64);
    status["reserve_permille"] = json!(217);
    status["space"] = json!({
        "chunk_count": 1000, "chunks_free": 250, "chunks_reserved": 217, "log_blocks": 0, "log_blocks_used": 0,
    });
    status["commit"] = json!({
        "dirty_stripes": 0, "log_stripes": 0, "running": false, "stuck_stripes": 0, "commits": 0,
        "stripes_committed": 0,
    });
    status["gc"] = json!({
        "units": 100, "rows_free": 1600, "units_collected": 7, "chunks_rewritten": 1234, "chunks_read": 1234,
        "full_stripes": 5000, "short_stripes": 6,
    });
    status["memory"] = json!({
        "fixed_bytes": 1 << 20, "dynamic_bytes": 0, "bytes_per_chunk_hundredths": 1107, "placement_bytes": 4688,
    });
    let text = shown(status);
    let rows: Vec<&str> = text.lines().map(str::trim).filter(|row| !row.is_empty()).collect();
    for row in [
        "shape: was 2+1, code xor, 4 KiB chunks, units of 64 rows; made 1970-01-01 00:00:00 UTC",
        "volume: 3 GiB (3221225472 bytes); 21.7 % of each data device left for garbage",
        "space: 1000 KiB free on the data devices (25.0 %), parity and new versions counted in",
        "gc: 25.0 % of the rows of 100 units free; since the start 7 units collected, 1,234 chunks moved; 5,000 full and 6 short stripes written",
        "memory: maps and checksums 11.07 bytes per chunk (1 MiB), placement 4.57 KiB",
    ] {
        assert!(rows.contains(&row), "no {row:?} in {text}");
    }
    assert!(!text.contains("commit:"), "{text}");
}

#[test]
fn errors_that_the_last_scrub_left_are_said_and_what_to_do() {
    let devices = ["data0", "data1", "log0"].map(|name| device(name, "healthy", Value::Null));
    let mut status = status("degraded", "served", devices.to_vec());
    status["last_scrub"] = json!({
        "ended_unix_s": 60, "seconds": 1, "chunks_repaired": 0, "metadata_repaired": 0, "errors_left": 2,
        "completed": true,
    });
    let text = shown(status);
    assert!(text.contains("the last scrub left 2 errors: what they are in lacks redundancy"), "{text}");
    assert!(text.contains("action: scrub again"), "{text}");
    assert!(!text.contains("may fail"), "{text}");
}

#[test]
fn what_a_degraded_or_failed_array_means_and_what_to_do() {
    let lines = |state: &str, source: &str, states: [&str; 3]| -> Vec<String> {
        let devices = ["data0", "data1", "log0"].into_iter().zip(states);
        let devices = devices.map(|(name, state)| device(name, state, Value::Null)).collect();
        let text = shown(status(state, source, devices));
        let wanted = |line: &&str| line.contains("meaning:") || line.contains("action:");
        text.lines().filter(wanted).map(|line| line.trim().to_owned()).collect()
    };
    assert_eq!(
        lines("degraded", "served", ["healthy", "failed", "healthy"]),
        [
            "meaning: data1 is out of service; all data can be read and written; one more failure loses data",
            "action: elastripe online tank --device data1, if its device is well; else elastripe replace tank --device data1 --with NEWPATH",
        ]
    );
    assert_eq!(
        lines("degraded", "stopped", ["healthy", "healthy", "missing"]),
        [
            "meaning: log0 is not among the named paths; all data can be read and written; one more failure loses data",
            "action: name the path of log0, too; a device that is lost can be replaced later",
        ]
    );
    assert_eq!(
        lines("failed", "served", ["failed", "failed", "healthy"]),
        [
            "meaning: data0 and data1 are out of service, the array bears 1: writes are refused; what can be read still is served, the rest is lost",
            "action: bring back members that were only disconnected: stop the array (elastripe stop tank) and serve it with all that are still there; or restore from a backup",
        ]
    );
    assert_eq!(
        lines("failed", "stopped", ["missing", "missing", "healthy"]),
        [
            "meaning: data0 and data1 are not among the named paths; without more than 1 members the array cannot be started",
            "action: name the paths of data0 and data1, too; a device that is lost can be replaced later",
        ]
    );
}

/// What a drive tells.
fn worn(used_percent: u8, warnings: &[&str]) -> Value {
    json!({
        "drive": "/dev/nvme0n1", "asked_unix_s": 60, "used_percent": used_percent, "written_bytes": 5u64 << 40,
        "read_bytes": null, "media_errors": 3, "spare_percent": 97, "spare_percent_min": 10,
        "temperature_c": 38, "power_on_hours": 8760, "unsafe_shutdowns": 2, "warnings": warnings,
    })
}

#[test]
fn drives_tell_of_their_wear_and_complain_unasked() {
    let mut devices = ["data0", "data1", "log0"].map(|name| device(name, "healthy", Value::Null));
    devices[0]["wear"] = worn(12, &[]);
    devices[1]["wear"] = worn(97, &["spare-low"]);
    devices[2]["wear_not_offered"] = json!("it is a file");
    let status: Status = serde_json::from_value(status("healthy", "served", devices.to_vec())).unwrap();
    let text = render(&status);
    let complaint = "  data1: its drive /dev/nvme0n1 warns of spare-low; 97 % of its endurance is used up\n";
    assert!(text.contains(complaint), "{text}");
    assert!(text.contains("action: replace data1 before it fails"), "{text}");
    assert!(!text.contains("data0: "), "{text}");
    let mut table = String::new();
    super::wear::list(&mut table, &status);
    let expected = "
  WEAR       USED     WRITTEN  MEDIA  SPARE   TEMP    HOURS  WARNINGS         DRIVE, ASKED AT
  data0      12 %       5 TiB      3   97 %   38 C    8,760  none             /dev/nvme0n1, 1970-01-01 00:01:00 UTC
  data1      97 %       5 TiB      3   97 %   38 C    8,760  spare-low        /dev/nvme0n1, 1970-01-01 00:01:00 UTC
  log0     not offered: it is a file
";
    assert_eq!(table, expected);
}

#[test]
fn who_is_told_what_a_write_is() {
    let of = |counts: [Value; 3]| {
        let devices = ["data0", "data1", "log0"].into_iter().zip(counts).map(|(name, count)| {
            let mut one = device(name, "healthy", Value::Null);
            one["write_streams"] = count;
            one
        });
        let status = status("healthy", "served", devices.collect());
        let mut text = String::new();
        super::streams::list(&mut text, &serde_json::from_value::<Status>(status).unwrap());
        text
    };
    assert_eq!(of([json!(null), json!(null), json!(null)]), "");
    assert!(of([json!(0), json!(0), json!(null)]).contains("write streams: none offered by any device"));
    let mixed = of([json!(8), json!(0), json!(2)]);
    assert!(mixed.contains("write streams: data0 8, log0 2; none offered by data1; data"), "{mixed}");
}
