//! Content survives: random writes, reads, discards, commits, device losses, rebuilds, restarts; compared
//! with a plain byte vector.

use crate::common::*;
use block::{DevIndex, Durability, Random as _, SplitMix};
use format::SchemeKind;

fn scenario(seed: u64, k: usize, m: usize) {
    println!("seed {seed}, {k}+{m}");
    let mut rng = SplitMix::new(seed);
    let create = create_options(SchemeKind::Eplog, k, m);
    let count = k + 2 * m;
    let (mut array, _) = assemble(fresh(&create, 8, 8), count, options());
    let size = array.engine().volume_bytes();
    let mut model = vec![0u8; size as usize];
    let mut failed: Vec<u16> = Vec::new();
    for step in 0..1500u64 {
        let offset = rng.below(size / 512) * 512;
        let len = ((rng.below(40) + 1) * 512).min(size - offset);
        match rng.below(100) {
            0..60 => {
                let salt = rng.below(256);
                let bytes: Vec<u8> = (0..len).map(|i| (step + i * 7 + salt) as u8).collect();
                write(&mut array, offset, &bytes, Durability::Volatile).unwrap();
                model[offset as usize..(offset + len) as usize].copy_from_slice(&bytes);
            }
            60..80 => {
                let got = read(&mut array, offset, len).unwrap();
                assert!(
                    got == model[offset as usize..(offset + len) as usize],
                    "step {step} offset {offset}+{len}"
                );
            }
            80..88 => {
                let len = (len * 20).min(size - offset);
                discard(&mut array, offset, len).unwrap();
                model[offset as usize..(offset + len) as usize].fill(0);
            }
            88..91 => array.run(|e, tag| e.commit(tag)).unwrap(),
            91..93 => array.run(|e, tag| e.flush(tag)).unwrap(),
            93..94 => {
                array.run(|e, tag| e.write_checkpoint(tag, format::CheckpointKind::Incremental)).unwrap()
            }
            94..95 => array.run(|e, tag| e.scrub(tag, 0)).unwrap(),
            95..96 if failed.len() < m => {
                let dev = rng.below(count as u64) as u16;
                if !failed.contains(&dev) {
                    failed.push(dev);
                    array.engine().fail_device(DevIndex::new(dev));
                }
            }
            96..97 => {
                if let Some(dev) = failed.pop() {
                    let dev = DevIndex::new(dev);
                    array.devices().bytes_mut(dev).fill(0xee);
                    array.run(|e, tag| e.rebuild(tag, dev, 1000 + step as u32)).unwrap();
                }
            }
            97..98 if failed.is_empty() => {
                array.run(|e, tag| e.flush(tag)).unwrap();
                array.settle();
                if rng.below(2) == 0 {
                    array.stop().unwrap();
                }
                let (again, report) = assemble(array.into_devices(), count, options());
                assert_eq!(report.dropped, 0);
                array = again;
            }
            _ => {}
        }
    }
    let got = read_all(&mut array, size);
    assert!(got == model, "final content");
    assert_eq!(array.engine().stats().lost, 0);
}

fn read_all(array: &mut array::Array<device::MemorySet>, size: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while (out.len() as u64) < size {
        let len = (size - out.len() as u64).min(256 << 10);
        out.extend(read(array, out.len() as u64, len).unwrap());
    }
    out
}

#[test]
fn random_operations_read_back_like_a_byte_vector() {
    for seed in 0..6 {
        scenario(seed, 6, 2);
        scenario(seed, 4, 1);
        scenario(seed, 3, 3);
    }
}
