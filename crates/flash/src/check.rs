//! Laws of conservation: everything counted is counted again from the arrays.

use crate::error::BrokenLaw;
use crate::ftl::{Ftl, NONE, State};
use crate::slc::Mode;

fn law(law: &'static str, found: u64, expected: u64) -> Result<(), BrokenLaw> {
    if found == expected { Ok(()) } else { Err(BrokenLaw { law, found, expected }) }
}

impl Ftl {
    /// Pages programmed in a block since its last erase.
    fn written(&self, block: u32) -> u32 {
        let info = self.blocks[block as usize];
        match info.state {
            State::Free => 0,
            State::Closed => self.capacity(info.mode),
            State::Open => {
                let open = self.open.iter().find(|open| open.block == block);
                open.map_or(0, |open| open.next - block * self.pages_per_block)
            }
        }
    }

    /// Valid, invalid and free pages of all blocks; those a block in SLC mode does not have are none of them.
    pub(crate) fn pages(&self) -> [u64; 3] {
        let mut pages = [0; 3];
        for (block, info) in (0u32..).zip(&self.blocks) {
            let (written, valid) = (u64::from(self.written(block)), u64::from(info.valid));
            let capacity =
                if info.state == State::Free { self.pages_per_block } else { self.capacity(info.mode) };
            pages[0] += valid;
            pages[1] += written - valid.min(written);
            pages[2] += u64::from(capacity) - written;
        }
        pages
    }

    /// Recounts everything, in time proportional to the flash.
    pub(crate) fn check(&self) -> Result<(), BrokenLaw> {
        self.check_pages()?;
        self.check_blocks()?;
        let programmed: u64 = (0..self.blocks.len() as u32).map(|block| u64::from(self.written(block))).sum();
        let counters = &self.counters;
        let all = self.programmed.before_reset + counters.flash_pages_written();
        law("pages programmed, by block and by counter", self.programmed.before_erase + programmed, all)?;
        let parts = counters.host_pages_written
            + counters.page_copies
            + counters.wear_copies
            + counters.translation_writes;
        law(
            "host pages + copies + translation pages = pages programmed",
            parts,
            counters.flash_pages_written(),
        )?;
        law("blocks emptied = erases", counters.gc_operations + counters.wear_operations, counters.erases)
    }

    fn check_pages(&self) -> Result<(), BrokenLaw> {
        let mut valid = vec![0u64; self.blocks.len()];
        let mut mapped = 0;
        for (lpn, &page) in (0u32..).zip(&self.map) {
            if page == NONE {
                continue;
            }
            law("owner of a mapped page", u64::from(self.owners[page as usize]), u64::from(lpn))?;
            valid[self.block_of(page) as usize] += 1;
            mapped += u64::from(lpn < self.logical_pages);
        }
        law("mapped logical pages", u64::from(self.mapped), mapped)?;
        for (info, &counted) in self.blocks.iter().zip(&valid) {
            law("valid pages of a block", u64::from(info.valid), counted)?;
        }
        let slc_lost: u64 = self
            .blocks
            .iter()
            .filter(|info| info.state != State::Free)
            .map(|info| u64::from(self.pages_per_block - self.capacity(info.mode)))
            .sum();
        let pages: u64 = self.pages().iter().sum();
        law("valid + invalid + free = pages", pages + slc_lost, self.owners.len() as u64)
    }

    fn check_blocks(&self) -> Result<(), BrokenLaw> {
        let count = |state| self.blocks.iter().filter(|info| info.state == state).count() as u64;
        law("free blocks", u64::from(self.free.count()), count(State::Free))?;
        law("closed blocks", u64::from(self.victims.count()), count(State::Closed))?;
        law("closed blocks on lists", self.victims.all().count() as u64, count(State::Closed))?;
        let slc = |in_use: bool| {
            let those = self.blocks.iter().filter(|info| info.mode == Mode::Slc);
            those.filter(|info| !in_use || info.state != State::Free).count() as u64
        };
        law("blocks in SLC mode", u64::from(self.slc.blocks), slc(false))?;
        law("blocks in SLC mode in use", u64::from(self.slc.in_use), slc(true))
    }
}
