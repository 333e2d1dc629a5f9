use block::{Random as _, XoshiroPlusPlus};
use placement::model::*;
use placement::*;
struct Zipf {
    cdf: Vec<f64>,
    perm: Vec<u32>,
    r: XoshiroPlusPlus,
    hot: usize,
    every: u64,
    n: u64,
}
impl Zipf {
    fn new(n: usize, theta: f64, seed: u64, hot: f64, every: f64) -> Self {
        let mut s = 0.0;
        let mut cdf = vec![];
        for i in 1..=n {
            s += (i as f64).powf(-theta);
            cdf.push(s);
        }
        for c in &mut cdf {
            *c /= s;
        }
        let mut r = XoshiroPlusPlus::new(seed);
        let mut perm: Vec<u32> = (0..n as u32).collect();
        if std::env::var("ID").is_err() {
            for i in (1..n).rev() {
                perm.swap(i, r.below(i as u64 + 1) as usize);
            }
        }
        Self { cdf, perm, r, hot: (n as f64 * hot) as usize, every: (n as f64 * every) as u64, n: 0 }
    }
    fn draw(&mut self) -> u32 {
        if self.every > 0 && self.n % self.every == 0 && self.n > 0 {
            for i in (1..self.hot).rev() {
                self.perm.swap(i, self.r.below(i as u64 + 1) as usize);
            }
        }
        self.n += 1;
        let u = (self.r.word() >> 11) as f64 / (1u64 << 53) as f64;
        self.perm[self.cdf.partition_point(|&c| c < u).min(self.perm.len() - 1)]
    }
}
fn gen_main() {
    use std::io::Write;
    let o = std::io::stdout();
    let mut o = std::io::BufWriter::new(o.lock());
    let a: Vec<String> = std::env::args().collect();
    let n = 244140usize;
    let mut z = Zipf::new(n, 1.0, 1, 0.2, if a[1] == "rot" { 0.01 } else { 0.0 });
    for i in 0..59 * n as u64 {
        let c = z.draw();
        writeln!(o, "{} 1 {} 4096", i, c).unwrap();
    }
}
fn main() {
    if std::env::args().count() == 2 {
        return gen_main();
    }
    main2()
}
fn main2() {
    let a: Vec<String> = std::env::args().collect();
    let kind: PlacementKind = a[1].parse().unwrap();
    let gc: VictimKind = a[2].parse().unwrap();
    let mode = &a[3];
    let theta: f64 = a[4].parse().unwrap();
    let rot = a[5] == "rot";
    let times = if a.get(6).is_some_and(|x| x == "stamps") { Times::Stamps } else { Times::Exact };
    let groups: u64 = a.get(7).map_or(8, |x| x.parse().unwrap());
    let own = a.get(8).is_some();
    let (chunks, unit, space, turns) = if mode == "gp" {
        (262144u32, 1024u32, Space::Garbage { percent: 15 }, 10u64)
    } else {
        (244140, 512, Space::Units { count: 512, free: 4 }, 59)
    };
    let tuning = Tuning {
        midas_groups: groups,
        gc_group: if own { GcGroup::Own } else { GcGroup::Coldest },
        ..Tuning::default()
    };
    let p = PlacementOptions { tuning, ..PlacementOptions::new(kind, chunks.into()) }.build().unwrap();
    let mut m = Model::new(&ModelOptions { chunks, unit_chunks: unit, space, times }, p, gc.build()).unwrap();
    for c in 0..chunks {
        m.write(c, Sequence::Random).unwrap();
    }
    let mut z = Zipf::new(chunks as usize, theta, 1, 0.2, if rot { 0.01 } else { 0.0 });
    let mut before = m.counts();
    for t in 0..turns {
        for _ in 0..chunks {
            m.write(z.draw(), Sequence::Random).unwrap();
        }
        if t % 10 == 9 || t + 1 == turns {
            let c = m.counts();
            let d = c.since(before);
            before = c;
            println!(
                "turn {t}: WA {:.3} all {:.3}",
                1.0 + d.copied as f64 / d.written as f64,
                1.0 + c.copied as f64 / c.written as f64
            );
        }
    }
    assert!(m.is_sound());
}
