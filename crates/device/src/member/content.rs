//! Whether a file holds anything at all, as far as a bounded look can tell.

use super::OpenError;
use super::facts::size_of;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How much of each end is looked at.
const END_BYTES: u64 = 1 << 20;
/// Into so many parts of one length it is cut; the first block of each is looked at beside that.
const SAMPLES: u64 = 64;
/// How much of each that is.
const SAMPLE_BYTES: u64 = 4096;

/// Something that is not zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Content {
    /// Where its first byte is.
    pub offset: u64,
    /// What the 8 bytes there are, or those up to the end of what was looked at and zeros.
    pub begins: [u8; 8],
}

/// The first that a file or device holds, in what is looked at: all of the first and the last MiB, and 63
/// blocks of 4 KiB evenly spread over the rest. `None`: it may be taken for blank.
pub fn first_content(path: &Path) -> Result<Option<Content>, OpenError> {
    let at = |source| OpenError::io(path)(source);
    let mut file = File::open(path).map_err(at)?;
    let size_bytes = size_of(&mut file, path)?;
    let mut buffer = vec![0; usize::try_from(END_BYTES).expect("1 MiB")];
    let places = places(size_bytes);
    let found = places.into_iter().map(|(offset, bytes)| first_in(&file, &mut buffer, offset, bytes));
    found.filter_map(Result::transpose).next().transpose().map_err(at)
}

/// What is looked at, in order: offset and length of each.
fn places(size_bytes: u64) -> Vec<(u64, u64)> {
    let end_bytes = size_bytes.min(END_BYTES);
    let sample = |index: u64| {
        let offset = u128::from(size_bytes) * u128::from(index) / u128::from(SAMPLES);
        let offset = u64::try_from(offset).expect("within the size") / SAMPLE_BYTES * SAMPLE_BYTES;
        (offset, SAMPLE_BYTES.min(size_bytes - offset))
    };
    let mut places = vec![(0, end_bytes)];
    places.extend((1..SAMPLES).map(sample));
    places.push((size_bytes - end_bytes, end_bytes));
    places
}

fn first_in(file: &File, buffer: &mut [u8], offset: u64, bytes: u64) -> io::Result<Option<Content>> {
    let buffer = &mut buffer[..usize::try_from(bytes).expect("at most 1 MiB")];
    file.read_exact_at(buffer, offset)?;
    let Some(index) = buffer.iter().position(|&byte| byte != 0) else { return Ok(None) };
    let mut begins = [0; 8];
    begins.iter_mut().zip(&buffer[index..]).for_each(|(to, from)| *to = *from);
    let index = u64::try_from(index).expect("within 1 MiB");
    Ok(Some(Content { offset: offset + index, begins }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn content_is_found_at_both_ends_and_in_between() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let size_bytes = (64 << 20) + 5;
        for first in [None, Some(0), Some(4095), Some((1 << 20) - 1), Some(32 << 20), Some(size_bytes - 1)] {
            let file = File::create(&path).unwrap();
            file.set_len(size_bytes).unwrap();
            if let Some(first) = first {
                file.write_all_at(&[7], first).unwrap();
            }
            assert_eq!(first_content(&path).unwrap().map(|found| found.offset), first);
        }
    }

    #[test]
    fn small_files_are_looked_at_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        for size in [0, 1, 4096, 5000, 3 << 20] {
            std::fs::write(&path, vec![0; size]).unwrap();
            assert_eq!(first_content(&path).unwrap(), None, "{size} bytes");
        }
        std::fs::write(&path, [vec![0; 4999], vec![1]].concat()).unwrap();
        let begins = [1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(first_content(&path).unwrap(), Some(Content { offset: 4999, begins }));
        assert!(first_content(&directory.path().join("nowhere")).is_err());
    }
}
