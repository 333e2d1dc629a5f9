//! HCA, the direct counting rival of GLRU (WAS, section V-G; W-40).
//!
//! Hotness of a chunk: H = W_F / N_F + W_C / dAge, where W_C counts the chunk's writes, dAge is the
//! time between its last two writes, W_F counts the writes of its file and N_F the file's chunks. A
//! group's similarity S is the mean of the hotness of what was assigned to it; a chunk joins the group
//! whose S is closest.
//!
//! What the paper leaves open, and how it is read here:
//! - A block device knows no files: an aligned extent of the volume, 1 MiB by default, stands for one;
//!   or the term is left out.
//! - A chunk's first write has no interval: its second term is 0.
//! - S is the mean over assignments. The mean over present members would need each chunk's group and hotness,
//!   and the paper's 10 bytes per chunk (8 for time, 2 for count) have no room for them.
//! - A group without chunks has no mean: the first chunk goes to the coldest group, and a chunk hotter than
//!   all means so far opens the next hotter group while there is one. Means keep their order from then on,
//!   because a mean moves towards a hotness it is the closest to.

use crate::error::within;
use crate::{Hotness, OptionError, Tier};
use block::Lcn;

/// Shape of an [`Hca`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HcaOptions {
    /// Logical chunks of the volume: 1 to 2^40. Costs 10 bytes of memory each.
    pub chunk_count: u64,
    /// Groups told apart: 2 to 4.
    pub groups: u64,
    /// Chunks of the extent that stands for a file, `None` to leave the file's term out.
    pub extent_chunks: Option<u64>,
}

impl HcaOptions {
    /// 1 MiB of 4 KiB chunks.
    pub const EXTENT_CHUNKS: u64 = 256;
    /// Bytes remembered of a chunk: when it was written last, how often, and its share of what is
    /// noted of extents.
    pub const BYTES_PER_CHUNK: u64 = 11;
}

/// Mean hotness of what was assigned to a group.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    assigned: u64,
    similarity: f64,
}

/// Hotness by counting every chunk's writes.
#[derive(Clone, Debug)]
pub struct Hca {
    /// Per chunk: when it was last written.
    written: Box<[u64]>,
    /// Per chunk: how often, up to 65,535; 0 means never.
    counts: Box<[u16]>,
    /// Per extent: writes.
    extents: Box<[u64]>,
    extent_chunks: Option<u64>,
    groups: [Group; 4],
    group_count: u8,
}

impl Hca {
    /// All chunks unwritten, all groups empty.
    pub fn new(options: HcaOptions) -> Result<Self, OptionError> {
        let chunk_count = within("chunks of the volume", options.chunk_count, 1, 1 << 40)?;
        let group_count = within("groups", options.groups, 2, 4)?;
        if let Some(extent) = options.extent_chunks {
            within("chunks of an extent", extent, 1, 1 << 40)?;
        }
        let extents = options.extent_chunks.map_or(0, |extent| chunk_count.div_ceil(extent));
        let index = |count: u64| usize::try_from(count).expect("at most 2^40, and usize has 64 bits");
        Ok(Self {
            written: vec![0; index(chunk_count)].into(),
            counts: vec![0; index(chunk_count)].into(),
            extents: vec![0; index(extents)].into(),
            extent_chunks: options.extent_chunks,
            groups: [Group::default(); 4],
            group_count: u8::try_from(group_count).expect("at most 4"),
        })
    }

    /// S of each group, coldest first; `None` for one that is still empty. For inspection.
    pub fn similarities(&self) -> impl Iterator<Item = Option<f64>> {
        let groups = &self.groups[..usize::from(self.group_count)];
        groups.iter().map(|group| (group.assigned > 0).then_some(group.similarity))
    }

    /// Notes the write and computes H.
    fn hotness(&mut self, lcn: Lcn, now: u64) -> f64 {
        let chunk = usize::try_from(lcn.get()).unwrap_or(usize::MAX);
        assert!(chunk < self.counts.len(), "chunk {lcn} is outside the volume of {}", self.counts.len());
        let file = match self.extent_chunks {
            None => 0.0,
            Some(size) => {
                let extent = lcn.get() / size;
                let writes = &mut self.extents[usize::try_from(extent).expect("below the chunk's index")];
                *writes += 1;
                let chunk_count = self.counts.len() as u64;
                *writes as f64 / size.min(chunk_count - extent * size) as f64 // The last extent may be short.
            }
        };
        let first = self.counts[chunk] == 0;
        self.counts[chunk] = self.counts[chunk].saturating_add(1);
        let interval = now.saturating_sub(self.written[chunk]).max(1);
        self.written[chunk] = now;
        if first { file } else { file + f64::from(self.counts[chunk]) / interval as f64 }
    }

    /// The group that a chunk of this hotness joins.
    fn closest(&self, hotness: f64) -> usize {
        let groups = &self.groups[..usize::from(self.group_count)];
        let open = groups.iter().take_while(|group| group.assigned > 0).count();
        let hottest = open.checked_sub(1).map(|last| groups[last].similarity);
        if open < groups.len() && hottest.is_none_or(|similarity| hotness > similarity) {
            return open;
        }
        let distance = |group: usize| (groups[group].similarity - hotness).abs();
        // The colder one of two equally close.
        (1..open).fold(0, |best, group| if distance(group) < distance(best) { group } else { best })
    }
}

impl Hotness for Hca {
    fn tiers(&self) -> u8 {
        self.group_count
    }

    /// # Panics
    /// If `lcn` is outside the volume, which is a bug of the caller.
    fn identify(&mut self, lcn: Lcn, now: u64) -> Tier {
        let hotness = self.hotness(lcn, now);
        let index = self.closest(hotness);
        let group = &mut self.groups[index];
        group.assigned += 1;
        group.similarity += (hotness - group.similarity) / group.assigned as f64;
        Tier::new(u8::try_from(index).expect("at most 3"))
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.written)
            + size_of_val(&*self.counts)
            + size_of_val(&*self.extents)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::*;

    fn hca(chunk_count: u64, groups: u64, extent_chunks: Option<u64>) -> Hca {
        Hca::new(HcaOptions { chunk_count, groups, extent_chunks }).unwrap()
    }

    fn similarities(hca: &Hca) -> Vec<Option<f64>> {
        hca.similarities().collect()
    }

    /// Requirement W-40.
    #[test]
    fn hotness_and_groups_by_hand() {
        // Extents of 4 chunks; chunks 0 to 3 are one "file".
        let mut hca = hca(8, 2, Some(4));
        // Chunk 0, first write: H = 1/4. The first chunk goes to the coldest group.
        assert_eq!(hca.identify(Lcn::new(0), 0), Tier::COLD);
        assert_eq!(similarities(&hca), [Some(0.25), None]);
        // Chunk 5 of the other extent: H = 1/4, not hotter than 1/4: S stays the mean of two quarters.
        assert_eq!(hca.identify(Lcn::new(5), 1), Tier::COLD);
        assert_eq!(similarities(&hca), [Some(0.25), None]);
        // Chunk 0 again, 2 later: H = 2/4 + 2/2 = 1.5 opens the hot group.
        assert_eq!(hca.identify(Lcn::new(0), 2), Tier::new(1));
        assert_eq!(similarities(&hca), [Some(0.25), Some(1.5)]);
        // Chunk 1: H = 3/4, 0.5 from cold and 0.75 from hot: cold becomes (0.25 + 0.25 + 0.75) / 3.
        assert_eq!(hca.identify(Lcn::new(1), 3), Tier::COLD);
        assert!((hca.similarities().next().unwrap().unwrap() - 1.25 / 3.0).abs() < 1e-12);
        // Chunk 0 a third time, 2 later: H = 4/4 + 3/2 = 2.5: hot becomes (1.5 + 2.5) / 2.
        assert_eq!(hca.identify(Lcn::new(0), 4), Tier::new(1));
        assert_eq!(similarities(&hca)[1], Some(2.0));
    }

    /// Requirement A-20.
    #[test]
    fn the_term_of_files_can_be_left_out() {
        let mut hca = hca(8, 2, None);
        assert_eq!(hca.identify(Lcn::new(0), 0), Tier::COLD); // H = 0
        assert_eq!(hca.identify(Lcn::new(1), 1), Tier::COLD); // H = 0
        assert_eq!(hca.identify(Lcn::new(0), 8), Tier::new(1)); // H = 2/8
        assert_eq!(hca.identify(Lcn::new(1), 21), Tier::COLD); // H = 2/20 = 0.1: closer to 0
        assert_eq!(hca.identify(Lcn::new(1), 26), Tier::new(1)); // H = 3/5
        let reached: Vec<_> = hca.similarities().map(Option::unwrap).collect();
        assert!((reached[0] - 0.1 / 3.0).abs() < 1e-12 && (reached[1] - 0.425).abs() < 1e-12, "{reached:?}");
    }

    /// Requirement A-20.
    #[test]
    fn the_last_extent_may_be_short() {
        let mut hca = hca(6, 2, Some(4));
        hca.identify(Lcn::new(5), 0); // H = 1/2: two chunks are left
        assert_eq!(similarities(&hca), [Some(0.5), None]);
    }

    /// Requirement W-40.
    #[test]
    fn groups_keep_their_order() {
        let mut hca = hca(1000, 4, Some(10));
        for now in 0..50_000_u64 {
            // Low chunks far more often than high ones.
            let lcn = (now * now % 1009) * (now % 37) / 37;
            hca.identify(Lcn::new(lcn % 1000), now);
        }
        let reached: Vec<_> = hca.similarities().map(Option::unwrap).collect();
        assert!(reached.is_sorted(), "{reached:?}");
    }

    /// Requirement W-40.
    #[test]
    fn ten_bytes_per_chunk_and_counts_that_do_not_wrap() {
        let mut hca = hca(1 << 20, 2, Some(256));
        let per_chunk = hca.memory_bytes() as f64 / f64::from(1 << 20);
        assert!((10.0..10.1).contains(&per_chunk), "{per_chunk}");
        for now in 0..70_000 {
            hca.identify(Lcn::new(1), now);
        }
        assert_eq!(hca.counts[1], u16::MAX);
    }

    #[test]
    fn shapes_out_of_range_are_refused() {
        let refuse = |chunk_count, groups, extent_chunks| {
            Hca::new(HcaOptions { chunk_count, groups, extent_chunks }).unwrap_err().to_string()
        };
        assert_eq!(refuse(0, 2, None), "chunks of the volume: found 0, expected 1 to 1099511627776");
        assert_eq!(refuse(1, 1, None), "groups: found 1, expected 2 to 4");
        assert_eq!(refuse(1, 2, Some(0)), "chunks of an extent: found 0, expected 1 to 1099511627776");
    }
}
