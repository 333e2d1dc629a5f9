//! What an SSD has done.

/// Counts since the beginning or since [`crate::Ssd::reset_counters`]; pages and blocks, not bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Pages the host wrote.
    pub host_pages_written: u64,
    /// How many of those were tagged as parity.
    pub parity_pages_written: u64,
    /// Pages the host read.
    pub host_pages_read: u64,
    /// Mapped pages the host trimmed.
    pub host_pages_trimmed: u64,
    /// Valid pages that GC copied, translation pages included.
    pub page_copies: u64,
    /// How many of those were programmed in SLC mode.
    pub page_copies_slc: u64,
    /// Valid pages that static wear levelling copied.
    pub wear_copies: u64,
    /// Translation pages read.
    pub translation_reads: u64,
    /// Translation pages written, without copies of them.
    pub translation_writes: u64,
    /// Pages programmed: the sum of host pages, copies and translation pages written, by mode of the block.
    pub programs_mlc: u64,
    /// Pages programmed in SLC mode.
    pub programs_slc: u64,
    /// Victim blocks cleaned by GC: the papers' GC operations, or requests.
    pub gc_operations: u64,
    /// Blocks emptied by static wear levelling.
    pub wear_operations: u64,
    /// Blocks erased, all of them.
    pub erases: u64,
    /// How many of those blocks were last programmed in SLC mode.
    pub erases_slc: u64,
    /// Blocks turned from MLC to SLC mode.
    pub slc_conversions: u64,
    /// Blocks turned back.
    pub mlc_conversions: u64,
}

impl Counters {
    /// Pages programmed.
    pub fn flash_pages_written(&self) -> u64 {
        self.programs_mlc + self.programs_slc
    }

    /// Pages programmed per page the host wrote; 1 if it wrote none.
    pub fn write_amplification(&self) -> f64 {
        if self.host_pages_written == 0 {
            return 1.0;
        }
        self.flash_pages_written() as f64 / self.host_pages_written as f64
    }

    /// Accumulated programming stress in pages programmed in SLC mode: SLC counts 1, MLC `ratio` (P-12,
    /// Erases are not charged separately, copies are charged as writes. The expected lifespan is
    /// inversely proportional (P-13).
    pub fn wear(&self, ratio: f64) -> f64 {
        self.programs_slc as f64 + ratio * self.programs_mlc as f64
    }

    /// Both together.
    pub fn sum(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a + b)
    }

    /// What came after `earlier`, which must be an earlier state of the same counters.
    pub fn since(&self, earlier: &Self) -> Self {
        self.combine(earlier, |a, b| a - b)
    }

    fn combine(&self, other: &Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            host_pages_written: with(self.host_pages_written, other.host_pages_written),
            parity_pages_written: with(self.parity_pages_written, other.parity_pages_written),
            host_pages_read: with(self.host_pages_read, other.host_pages_read),
            host_pages_trimmed: with(self.host_pages_trimmed, other.host_pages_trimmed),
            page_copies: with(self.page_copies, other.page_copies),
            page_copies_slc: with(self.page_copies_slc, other.page_copies_slc),
            wear_copies: with(self.wear_copies, other.wear_copies),
            translation_reads: with(self.translation_reads, other.translation_reads),
            translation_writes: with(self.translation_writes, other.translation_writes),
            programs_mlc: with(self.programs_mlc, other.programs_mlc),
            programs_slc: with(self.programs_slc, other.programs_slc),
            gc_operations: with(self.gc_operations, other.gc_operations),
            wear_operations: with(self.wear_operations, other.wear_operations),
            erases: with(self.erases, other.erases),
            erases_slc: with(self.erases_slc, other.erases_slc),
            slc_conversions: with(self.slc_conversions, other.slc_conversions),
            mlc_conversions: with(self.mlc_conversions, other.mlc_conversions),
        }
    }
}
