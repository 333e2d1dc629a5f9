//! Options that say where clients are, and who serves them.

use clap::{Args, ValueEnum};
use format::ArrayConfig;
use front::{Guard, Network, Rules, SOCKET_BUFFERS_BYTES, Tls, buffers_bytes_beside_shards};
use lab::failure::Failure;
use node::activation::Passed;
use node::disk_wish::{DiskCache, DiskWish};
use node::serve::{Address, parse_address};
use node::sockets::ClientThreads;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread::available_parallelism;

/// Where clients are, and who serves them.
#[derive(Args, Clone, Debug)]
pub(super) struct ClientChoices {
    /// Where clients connect: unix:PATH or tcp:HOST:PORT; may be given several times. With --run alone, a
    /// socket of its own.
    #[arg(long, value_parser = parse_address, value_name = "ADDRESS")]
    pub(super) nbd: Vec<Address>,
    /// Where a virtual machine, or a program that drives a virtio disk itself, finds the volume: the path of
    /// a socket; may be given several times. A socket serves one client at a time.
    #[cfg(feature = "vhost-user")]
    #[arg(long, value_name = "PATH")]
    pub(super) vhost_user_blk: Vec<PathBuf>,
    /// Be the disk /dev/ublkbN of this machine: with that number, the one that a server of this array has
    /// left, or any that is free. Members come before it, unless a number follows. Needs root, and Linux 6.5
    /// or later with its module ublk_drv.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "auto",
          value_parser = parse_disk_number)]
    pub(super) ublk: Option<DiskNumber>,
    /// What answers of the disk promise: `none`: they are durable, and the disk outlives a server that is
    /// killed: the next one goes on with it; `volatile`: writes are durable after a flush, and the disk ends
    /// with its server.
    #[arg(long, value_enum, default_value = "none", value_name = "CACHE", requires = "ublk")]
    pub(super) ublk_cache: DiskCacheName,
    /// Threads that run the array, at most as many as it has shards; `auto`: as many as this machine has
    /// processors. With 1 the thread that does everything else runs it, too.
    #[arg(long, default_value = "auto", value_name = "N", value_parser = parse_threads)]
    pub(super) threads: Threads,
    /// Threads that serve the clients' sockets: `shards`: those that run the array; so many of their own,
    /// each with 32 MiB of buffers; with 0 the one that looks after the array.
    #[arg(long, default_value = "shards", value_name = "N", value_parser = parse_socket_threads)]
    pub(super) socket_threads: SocketThreads,
    #[command(flatten)]
    pub(super) guards: GuardChoices,
}

/// Who may come in by TCP.
#[derive(Args, Clone, Debug)]
pub struct GuardChoices {
    /// Encrypt all connections of tcp: addresses: the server's certificate, and what leads from it to the
    /// authority that clients know, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Only clients that have a certificate of this authority may connect; in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
    /// Only clients of this network, or with this address, may connect to tcp: addresses; may be given
    /// several times.
    #[arg(long, value_name = "CIDR")]
    allow: Vec<Network>,
}

impl GuardChoices {
    /// Whom those pass who come by TCP; refused where nobody does.
    pub fn guard(&self, addresses: &[Address], passed: &[Passed]) -> Result<Guard, Failure> {
        let is_used = self.tls_cert.is_some() || !self.allow.is_empty();
        let by_tcp = addresses.iter().any(|address| matches!(address, Address::Tcp(_)))
            || passed.iter().any(|socket| matches!(socket, Passed::Tcp(_)));
        if is_used && !by_tcp {
            return Err(Failure::new("--tls-cert and --allow are about tcp: addresses, and none is given"));
        }
        self.rules().map(Guard::new)
    }

    /// The rules of that, with certificates read from their files.
    pub fn rules(&self) -> Result<Rules, Failure> {
        let files = self.tls_cert.as_deref().zip(self.tls_key.as_deref());
        let tls = files.map(|(cert, key)| Tls::of_files(cert, key, self.tls_client_ca.as_deref()));
        let tls = tls.transpose().map_err(|error| Failure::new(error.to_string()))?;
        Ok(Rules { tls, allowed: self.allow.clone() })
    }
}

/// Threads that run the array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Threads {
    /// As many as there are processors, and shards for.
    Auto,
    /// So many.
    Exactly(usize),
}

pub fn parse_threads(text: &str) -> Result<Threads, String> {
    match text.parse() {
        _ if text == "auto" => Ok(Threads::Auto),
        Ok(count @ 1..=64) => Ok(Threads::Exactly(count)),
        Ok(_) | Err(_) => Err(format!("found {text:?}, expected auto or a number from 1 to 64")),
    }
}

impl Threads {
    /// Of an array with so many shards.
    pub fn of(self, shards: usize) -> Result<usize, Failure> {
        match self {
            Self::Auto => Ok(available_parallelism().map_or(1, NonZero::get).min(shards)),
            Self::Exactly(count) if count <= shards => Ok(count),
            Self::Exactly(count) => Err(Failure::new(format!(
                "--threads {count}: a thread needs a shard, and the array has {shards}; their number is chosen at \
                 `create --shards`"
            ))),
        }
    }
}

/// Threads that serve the clients' sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SocketThreads {
    /// Those that run the shards.
    OfShards,
    /// So many of their own.
    Exactly(usize),
}

fn parse_socket_threads(text: &str) -> Result<SocketThreads, String> {
    match text.parse() {
        _ if text == "shards" => Ok(SocketThreads::OfShards),
        Ok(count @ 0..=64) => Ok(SocketThreads::Exactly(count)),
        Ok(_) | Err(_) => Err(format!("found {text:?}, expected shards or a number from 0 to 64")),
    }
}

impl SocketThreads {
    /// Of an array that so many threads run: one is the thread that looks after it.
    pub(super) fn of(self, threads: usize) -> ClientThreads {
        match self {
            Self::OfShards if threads > 1 => ClientThreads::OfShards,
            Self::OfShards | Self::Exactly(0) => ClientThreads::Steward,
            Self::Exactly(count) => ClientThreads::Own(count),
        }
    }
}

/// The number of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DiskNumber(Option<u32>);

fn parse_disk_number(text: &str) -> Result<DiskNumber, String> {
    /// As many as the kernel has numbers for.
    const COUNT: u32 = 1 << 20;
    match text.parse() {
        _ if text == "auto" => Ok(DiskNumber(None)),
        Ok(number) if number < COUNT => Ok(DiskNumber(Some(number))),
        Ok(_) | Err(_) => Err(format!(
            "found {text:?}, expected the number of a disk, from 0 to {}, or nothing: then an option follows, or the end",
            COUNT - 1
        )),
    }
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DiskCacheName {
    None,
    Volatile,
}

impl ClientChoices {
    /// The disk that the array is to be, with a queue for each of so many threads.
    pub(super) fn disk(&self, socket_threads: usize) -> Option<DiskWish> {
        self.ublk.map(|DiskNumber(number)| DiskWish {
            number,
            cache: match self.ublk_cache {
                DiskCacheName::None => DiskCache::None,
                DiskCacheName::Volatile => DiskCache::Volatile,
            },
            queues: u16::try_from(socket_threads).unwrap_or(u16::MAX),
        })
    }

    /// Whether nobody would find the array.
    pub(super) fn is_nowhere(&self) -> bool {
        self.addresses().is_empty() && self.ublk.is_none()
    }

    /// Where clients connect.
    pub(super) fn addresses(&self) -> Vec<Address> {
        #[cfg_attr(not(feature = "vhost-user"), expect(unused_mut, reason = "nothing is added then"))]
        let mut addresses = self.nbd.clone();
        #[cfg(feature = "vhost-user")]
        addresses.extend(self.vhost_user_blk.iter().cloned().map(Address::VhostUserBlk));
        addresses
    }
}

/// What clients' requests take on their way to the shards, unless there is one on their own thread.
pub(super) fn buffers_bytes(config: &ArrayConfig, threads: usize, clients: ClientThreads) -> u64 {
    match clients {
        ClientThreads::Steward if config.shard.count == 1 => 0,
        ClientThreads::Steward => SOCKET_BUFFERS_BYTES,
        ClientThreads::Own(count) => SOCKET_BUFFERS_BYTES * count as u64,
        ClientThreads::OfShards => buffers_bytes_beside_shards(threads),
    }
}
