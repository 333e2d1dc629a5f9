//! Greedy GC on an SSD of a few blocks of a few pages: the stationary distribution of its Markov chain.

use std::collections::BTreeMap;

/// Valid pages of the blocks that are neither open nor free, sorted; pages written and valid of
/// the open block.
type State = (Vec<u8>, u8, u8);

/// Most states that are looked at.
const STATES_MAX: usize = 200_000;

/// The exact write amplification of greedy GC under uniform writes with one frontier: `blocks` blocks, free
/// ones that GC keeps not counted, of which `logical_pages` pages are mapped. `None` if there are too many
/// states, or if there is no spare page.
///
/// State of the chain (Bux and Iliadis 2010 call it the number of blocks with so many valid pages): how many
/// valid pages each block has. Exact up to the last digits: states are followed from the one of a filled SSD
/// until the distribution moves no more.
pub fn greedy_finite(blocks: u32, pages_per_block: u8, logical_pages: u32) -> Option<f64> {
    let capacity = blocks * u32::from(pages_per_block);
    if logical_pages == 0 || blocks < 2 || logical_pages >= capacity {
        return None;
    }
    let (states, rows) = chain(blocks, pages_per_block, logical_pages)?;
    let mut now = vec![1.0 / states.len() as f64; states.len()];
    for _ in 0..100_000 {
        let mut next = vec![0.0; now.len()];
        for (from, row) in rows.iter().enumerate() {
            for &(to, probability) in &row.moves {
                // Half of the weight stays, so that no period of the chain can keep it from settling.
                next[to] += 0.5 * now[from] * probability;
            }
            next[from] += 0.5 * now[from];
        }
        let moved: f64 = now.iter().zip(&next).map(|(a, b)| (a - b).abs()).sum();
        now = next;
        if moved < 1e-13 {
            break;
        }
    }
    // Each victim brings N_p programs, of which its valid pages are copies.
    let victims: f64 = rows.iter().zip(&now).filter(|(row, _)| row.copies.is_some()).map(|(_, p)| p).sum();
    let copies: f64 = rows.iter().zip(&now).filter_map(|(row, p)| row.copies.map(|c| c * p)).sum();
    let np = f64::from(pages_per_block);
    Some(if victims == 0.0 { 1.0 } else { np / (np - copies / victims) })
}

/// What a host write does in one state.
#[derive(Default)]
struct Row {
    moves: Vec<(usize, f64)>,
    /// Pages that GC copies before it.
    copies: Option<f64>,
}

fn chain(blocks: u32, np: u8, logical_pages: u32) -> Option<(Vec<State>, Vec<Row>)> {
    let mut states: Vec<State> = vec![filled(blocks, np, logical_pages)?];
    let mut numbers = BTreeMap::from([(states[0].clone(), 0usize)]);
    let mut rows = Vec::new();
    while rows.len() < states.len() {
        let (mut closed, mut written, mut valid) = states[rows.len()].clone();
        let mut row = Row::default();
        if written == np {
            closed.push(valid);
            closed.sort_unstable();
            let victim = closed.remove(0);
            row.copies = Some(f64::from(victim));
            (written, valid) = (victim, victim);
        }
        let mut add = |state: State, weight: u32| {
            let fresh = states.len();
            let number = *numbers.entry(state.clone()).or_insert(fresh);
            if number == fresh {
                states.push(state);
            }
            row.moves.push((number, f64::from(weight) / f64::from(logical_pages)));
        };
        let mut last = None;
        for place in 0..closed.len() {
            let pages = closed[place];
            if pages == 0 || last == Some(pages) {
                continue;
            }
            last = Some(pages);
            let equal = closed.iter().filter(|&&other| other == pages).count() as u32;
            let mut after = closed.clone();
            after[place] -= 1;
            after.sort_unstable();
            add((after, written + 1, valid + 1), equal * u32::from(pages));
        }
        if valid > 0 {
            add((closed, written + 1, valid), u32::from(valid));
        }
        rows.push(row);
        if states.len() > STATES_MAX {
            return None;
        }
    }
    Some((states, rows))
}

/// All pages written in order, and one page written again and again until every block but one is closed.
fn filled(blocks: u32, np: u8, logical_pages: u32) -> Option<State> {
    let mut pages = logical_pages;
    let mut closed = Vec::new();
    for _ in 1..blocks {
        let part = pages.min(u32::from(np));
        pages -= part;
        closed.push(u8::try_from(part).ok()?);
    }
    closed.sort_unstable();
    let open = u8::try_from(pages).ok()?;
    Some((closed, open, open))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiny_ssds_by_hand() {
        // One page per block: the victim is the invalid page, nothing is ever copied.
        assert_eq!(greedy_finite(3, 1, 2), Some(1.0));
        assert_eq!(greedy_finite(4, 2, 8), None, "no spare page");
        assert_eq!(greedy_finite(1, 2, 1), None);
        // Two blocks of two pages, one logical page: the closed block has nothing valid.
        assert_eq!(greedy_finite(2, 2, 1), Some(1.0));
    }

    #[test]
    fn many_blocks_tend_to_the_mean_field() {
        let infinite = super::super::greedy(2, 4.0 / 3.0);
        let excess = [8, 16, 32]
            .map(|blocks| greedy_finite(blocks, 2, blocks * 3 / 2).expect("few states") - infinite);
        // In proportion to 1 / blocks: the open block is part of them, and blocks differ by chance.
        for pair in excess.windows(2) {
            let ratio = pair[0] / pair[1];
            assert!((1.7..2.2).contains(&ratio), "{excess:?}");
        }
    }
}
