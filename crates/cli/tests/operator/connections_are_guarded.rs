//! TCP with TLS and a list of who may connect, tried by libnbd and qemu, with certificates made here.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig, has};
use crate::signals_end_in_order::is_hup_ignored;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

/// Makes an authority, a server and a client that it vouches for, and a stranger, in `pki`.
fn make_certificates(rig: &Rig) {
    let script = r#"
set -e
mkdir -p pki/client pki/stranger pki/nobody; cd pki
key() { openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null || openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }
authority() { key "$1-key.pem"; openssl req -x509 -new -key "$1-key.pem" -subj "/CN=$1" -days 2 -out "$1.pem" \
  -addext basicConstraints=critical,CA:true -addext keyUsage=critical,keyCertSign; }
vouch() { key "$3"; printf 'basicConstraints=CA:false\nsubjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=%s\n' "$5" > ext
  openssl req -new -key "$3" -subj "/CN=$2" -out req.pem
  openssl x509 -req -in req.pem -CA "$1.pem" -CAkey "$1-key.pem" -CAcreateserial -days 2 -extfile ext -out "$4"; }
authority ca; authority other
vouch ca localhost server-key.pem server-cert.pem serverAuth
vouch ca client client/client-key.pem client/client-cert.pem clientAuth
vouch other client stranger/client-key.pem stranger/client-cert.pem clientAuth
vouch other localhost later-key.pem later-cert.pem serverAuth
for who in client stranger nobody; do cp ca.pem "$who/ca-cert.pem"; done
mkdir later; cp other.pem later/ca-cert.pem
"#;
    let made = Command::new("bash").args(["-c", script]).current_dir(rig.dir.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

const TLS: [&str; 6] =
    ["--nbd", "tcp:127.0.0.1:0", "--tls-cert", "pki/server-cert.pem", "--tls-key", "pki/server-key.pem"];
/// Where the server is, for programs that look at the name in a certificate.
const WHERE: &str =
    "port=${ELASTRIPE_URI##*:}; uri() { echo \"nbds://localhost:$port/?tls-certificates=$PWD/pki/$1\"; }; ";

fn serve(rig: &Rig, more: &[&str], script: &str) -> crate::common::Ran {
    rig.serve_run(&MEMBERS, &format!("{WHERE}{script}"), &[&TLS, more].concat())
}

#[test]
fn with_tls_the_volume_is_read_and_written_encrypted_and_not_otherwise() {
    if !has("openssl") || !has("nbdinfo") || !has("nbdcopy") {
        return;
    }
    let rig = Rig::with_array();
    make_certificates(&rig);
    // Larger than any buffer on the way, in both directions, over several connections.
    let script = "head -c 24M /dev/urandom > data && nbdinfo --size $(uri nobody) && nbdcopy data $(uri nobody) \
                  && nbdcopy $(uri nobody) back && head -c 24M back | cmp - data && echo same; \
                  nbdinfo nbd://localhost:$port/ || echo refused; nbdinfo $(uri nobody) | grep -c 'TLS: *yes\\|with TLS\\|using TLS'";
    let ran = serve(&rig, &[], script).ok();
    assert!(ran.out.contains("same") && ran.out.contains("refused"), "{ran:#?}");
    // The same content without TLS, on a socket that has none.
    rig.serve_run(&MEMBERS, "nbdcopy \"$ELASTRIPE_URI\" back && head -c 24M back | cmp - data", &[]).ok();
    if has("qemu-img") {
        let script = "qemu-img info --object tls-creds-x509,id=t,endpoint=client,dir=$PWD/pki/nobody --image-opts \
                      driver=nbd,host=localhost,port=$port,tls-creds=t && echo seen";
        let ran = serve(&rig, &[], script).ok();
        assert!(ran.out.contains("seen"), "{ran:#?}");
    }
}

#[test]
fn clients_show_a_certificate_if_they_must() {
    if !has("openssl") || !has("nbdinfo") {
        return;
    }
    let rig = Rig::with_array();
    make_certificates(&rig);
    let script = "nbdinfo --size $(uri client) && echo welcome; nbdinfo --size $(uri stranger) || echo no stranger; \
                  nbdinfo --size $(uri nobody) || echo not nobody";
    let ran = serve(&rig, &["--tls-client-ca", "pki/ca.pem"], script).ok();
    assert!(["welcome", "no stranger", "not nobody"].iter().all(|word| ran.out.contains(word)), "{ran:#?}");
    assert!(ran.err.contains("TLS: "), "{ran:#?}");
}

/// A certificate that was renewed counts without a restart; what cannot be read changes nothing.
#[test]
fn certificates_are_read_again_on_sighup() {
    if !has("openssl") || !has("nbdinfo") || is_hup_ignored() {
        return;
    }
    let rig = Rig::with_array();
    make_certificates(&rig);
    let script = r#"
tell() { kill -HUP $PPID; sleep 1; }
see() { for who in nobody later; do nbdinfo --size $(uri $who) >/dev/null 2>&1 && echo "$1: $who"; done; true; }
see first
echo junk > pki/server-cert.pem; tell; see junk
cp pki/later-cert.pem pki/server-cert.pem; cp pki/later-key.pem pki/server-key.pem; tell; see renewed
"#;
    let ran = serve(&rig, &[], script).ok();
    let seen: Vec<&str> = ran.out.lines().filter(|line| line.contains(": ")).collect();
    assert_eq!(seen, ["first: nobody", "junk: nobody", "renewed: later"], "{ran:#?}");
    assert!(ran.err.contains("everything stays as it was: pki/server-cert.pem"), "{ran:#?}");
}

#[test]
fn bad_files_and_networks_are_refused_before_anything_begins() {
    let rig = Rig::with_array();
    std::fs::write(rig.path("junk"), "no certificate").unwrap();
    let serve = |options: &[&str]| rig.serve_run(&MEMBERS, "true", options);
    let tcp = ["--nbd", "tcp:127.0.0.1:0"];
    serve(&[&tcp[..], &["--tls-cert", "junk", "--tls-key", "junk"]].concat())
        .refused(&["junk", "no certificate"]);
    serve(&[&tcp[..], &["--tls-cert", "none", "--tls-key", "junk"]].concat()).refused(&["none"]);
    serve(&["--allow", "10.0.0.0/8"]).refused(&["tcp:"]);
    assert!(serve(&[&tcp[..], &["--allow", "10.0.0.1/8"]].concat()).err.contains("expected a network"));
}

#[test]
fn who_is_on_no_list_stays_outside() {
    let rig = Rig::with_array();
    let greeted = |networks: &[&str]| {
        let mut options = vec!["--nbd", "tcp:127.0.0.1:0"];
        networks.iter().for_each(|network| options.extend(["--allow", network]));
        let script = "exec 3<>/dev/tcp/127.0.0.1/${ELASTRIPE_URI##*:}; head -c 8 <&3";
        rig.serve_run(&MEMBERS, &format!("bash -c '{script}'"), &options).ok()
    };
    assert!(greeted(&["10.0.0.0/8", "127.0.0.0/8"]).out.contains("NBDMAGIC"));
    let ran = greeted(&["10.0.0.0/8", "::1"]);
    assert!(!ran.out.contains("NBDMAGIC") && ran.err.contains("none of the networks"), "{ran:#?}");
}

#[test]
fn an_address_that_is_guarded_is_not_warned_of() {
    let rig = Rig::with_array();
    make_certificates_if_possible(&rig);
    let warns = |options: &[&str]| {
        let options = [&["--nbd", "tcp:0.0.0.0:0"], options].concat();
        rig.serve_run(&MEMBERS, "true", &options).ok().err.contains("can read and write the volume")
    };
    assert!(warns(&[]));
    assert!(!warns(&["--allow", "10.0.0.0/8"]));
    if rig.path("pki").exists() {
        let tls = ["--tls-cert", "pki/server-cert.pem", "--tls-key", "pki/server-key.pem"];
        assert!(warns(&tls));
        assert!(!warns(&[&tls[..], &["--tls-client-ca", "pki/ca.pem"]].concat()));
    }
}

fn make_certificates_if_possible(rig: &Rig) {
    if has("openssl") {
        make_certificates(rig);
    }
}

/// An option of the handshake.
fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    [b"IHAVEOPT", &number.to_be_bytes()[..], &length.to_be_bytes(), data].concat()
}

#[test]
fn before_encryption_nothing_is_told_and_nothing_is_slipped_in() {
    if !has("openssl") {
        return;
    }
    const ABORT: u32 = 2;
    const LIST: u32 = 3;
    const STARTTLS: u32 = 5;
    const GO: u32 = 7;
    let rig = Rig::with_array();
    make_certificates(&rig);
    let server = rig.serve(&MEMBERS, &TLS);
    let uri = rig.status(&["d0"])["uris"][1].as_str().unwrap().to_owned();
    let talk = |words: &[Vec<u8>]| {
        let mut stream = TcpStream::connect(uri.strip_prefix("nbds://").unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(&[&3u32.to_be_bytes()[..], &words.concat()].concat()).unwrap();
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        heard.split_off(18)
    };
    // Each is answered by `NBD_REP_ERR_TLS_REQD`.
    let heard = talk(&[option(LIST, &[]), option(GO, &[0; 6]), option(ABORT, &[])]);
    let replies: Vec<&[u8]> =
        heard.windows(4).filter(|word| *word == 0x8000_0005_u32.to_be_bytes()).collect();
    assert_eq!(replies.len(), 2, "{heard:x?}");
    assert!(!heard.windows(4).any(|word| word == b"tank"));
    // To this there is no answer.
    assert!(talk(&[option(1, b"tank")]).is_empty());
    // What somebody on the way adds to the request for encryption is not taken for the client's words.
    let heard = talk(&[option(STARTTLS, &[]), option(LIST, &[])]);
    assert!(!heard.windows(4).any(|word| word == b"tank"), "{heard:x?}");
    let err = server.stop().ok().err;
    assert!(
        err.contains("must use TLS") && err.contains("between the request for TLS and its answer"),
        "{err}"
    );
}
