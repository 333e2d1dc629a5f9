//! Monte Carlo of the model, for what no chain knows: age, wear, repairs of a fixed length, rebuilds half
//! done.
//!
//! A loss is rare, so it is not waited for. Whenever a path enters a stretch in which nothing but a failure
//! can happen, it goes both ways: without a failure, with the probability of that as its weight, and with
//! one, at a moment drawn from those at which it may come, with the rest. Heights are devices out of service;
//! a path that comes down again goes on at the weight it had when it went up, with the probability that this
//! takes (splitting with forced failures, and Russian roulette on the way down). All this leaves every mean
//! as it is. What an unreadable place, a shock that takes too many, or updates not committed add is summed up
//! as probabilities, not drawn.

use crate::error::{Error, check};
use crate::lifetime::{Hazard, exponential};
use crate::markov::cause_index;
use crate::model::{CAUSES, Cause, Model, RepairOrder, RepairTime};
use block::{Random, XoshiroPlusPlus};

/// Paths that one trial may leave to be followed; beyond that those of least interest are dropped. It is far
/// more than ever happens, as roulette keeps them few.
const PATHS_MAX: usize = 100_000;
/// Below this weight a path adds nothing that could be seen.
const WEIGHT_MIN: f64 = 1e-60;

/// How much to compute.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// Lives of the array.
    pub trials: u32,
    /// Same seed, same result.
    pub seed: u64,
    /// Confidence of the intervals, such as 0.99.
    pub confidence: f64,
}

/// A mean and the interval that holds the true one with the plan's confidence.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The mean over all trials.
    pub mean: f64,
    /// Least.
    pub low: f64,
    /// Most.
    pub high: f64,
}

impl Estimate {
    /// Half the interval in relation to the mean; none without a mean.
    pub fn precision(&self) -> Option<f64> {
        (self.mean > 0.0).then(|| (self.high - self.mean) / self.mean)
    }
}

/// What came of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Probability of a loss within the time looked at.
    pub loss: Estimate,
    /// Probability that the first loss is of this cause.
    pub by_cause: [f64; 3],
    /// Bytes of users lost within the time, per usable byte (normalised magnitude of data loss). An array
    /// that has lost sectors or updates goes on; one that has lost too many devices has ended.
    pub lost_share: Estimate,
    /// Data devices that fail within the time.
    pub failures: f64,
}

/// Lives the model's array many times.
///
/// # Errors
/// The first parameter out of its range.
pub fn simulate(model: &Model, plan: &Plan) -> Result<Outcome, Error> {
    Ok(simulate_while(model, plan, &mut |_| true)?.expect("nothing stops it"))
}

/// The same; `goes_on` is asked before each life, with the number of those that have ended, and nothing comes
/// of it when the answer is no.
///
/// # Errors
/// The first parameter out of its range.
pub fn simulate_while(
    model: &Model,
    plan: &Plan,
    goes_on: &mut dyn FnMut(u32) -> bool,
) -> Result<Option<Outcome>, Error> {
    model.check()?;
    check("trials", f64::from(plan.trials), plan.trials >= 100, "at least 100")?;
    check("confidence", plan.confidence, (0.5..=0.999_999).contains(&plan.confidence), "0.5 to 0.999999")?;
    let mut trial = Trial::new(model, plan.seed);
    let (mut loss, mut bytes) = (Sum::default(), Sum::default());
    let (mut by_cause, mut failures) = ([0.0; 3], 0.0);
    for life in 0..plan.trials {
        if !goes_on(life) {
            return Ok(None);
        }
        let scored = trial.run();
        loss.add(scored.loss.iter().sum());
        bytes.add(scored.bytes / model.usable());
        by_cause.iter_mut().zip(scored.loss).for_each(|(sum, value)| *sum += value);
        failures += scored.failures;
    }
    let (trials, deviations) = (f64::from(plan.trials), normal_quantile(0.5 + plan.confidence / 2.0));
    let mut loss = loss.estimate(trials, deviations);
    (loss.mean, loss.high) = (loss.mean.min(1.0), loss.high.min(1.0));
    Ok(Some(Outcome {
        loss,
        by_cause: by_cause.map(|sum| sum / trials),
        lost_share: bytes.estimate(trials, deviations),
        failures: failures / trials,
    }))
}

/// Sums of values and of their squares.
#[derive(Default)]
struct Sum {
    values: f64,
    squares: f64,
}

impl Sum {
    fn add(&mut self, value: f64) {
        self.values += value;
        self.squares += value * value;
    }

    fn estimate(&self, count: f64, deviations: f64) -> Estimate {
        let mean = self.values / count;
        let variance = (self.squares / count - mean * mean).max(0.0);
        let half = deviations * (variance / (count - 1.0)).sqrt();
        Estimate { mean, low: (mean - half).max(0.0), high: mean + half }
    }
}

/// The value below which a standard normal variable is with this probability: bisection on the sum of its
/// series.
fn normal_quantile(probability: f64) -> f64 {
    let below = |x: f64| {
        // 1/2 + density x (x + x^3/3 + x^5/15 + ...)
        let (mut term, mut sum, mut odd) = (x, x, 3.0);
        while term > sum * 1e-17 {
            term *= x * x / odd;
            sum += term;
            odd += 2.0;
        }
        0.5 + sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
    };
    let (mut low, mut high) = (0.0, 10.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if below(middle) < probability { low = middle } else { high = middle }
    }
    low
}

/// What one life adds.
#[derive(Clone, Copy, Default)]
struct Score {
    loss: [f64; 3],
    bytes: f64,
    failures: f64,
}

/// A device out of service.
#[derive(Clone, Copy)]
struct Job {
    /// When its repair began and ends; not while it waits for its turn.
    span: Option<(f64, f64)>,
}

/// A life so far.
#[derive(Clone)]
struct Path {
    now: f64,
    /// How much of the probability it stands for.
    weight: f64,
    /// The share of that in which nothing has been lost yet.
    intact: f64,
    /// When each data device in service was new.
    births: Vec<f64>,
    jobs: Vec<Job>,
    logs_up: u32,
    log_jobs: Vec<Job>,
    /// The weight at each height when it was left upwards.
    left: Vec<f64>,
}

impl Path {
    fn height(&self) -> usize {
        self.jobs.len() + self.log_jobs.len()
    }

    fn failed(&self) -> u32 {
        u32::try_from(self.jobs.len()).expect("fewer than devices")
    }

    fn logs_failed(&self) -> u32 {
        u32::try_from(self.log_jobs.len()).expect("fewer than log devices")
    }

    fn up(&self) -> u32 {
        u32::try_from(self.births.len()).expect("fewer than devices")
    }

    /// Notes the weight before it climbs to a height, for all heights on the way.
    fn climb(&mut self, weight: f64, to: usize) {
        self.left.truncate(self.height());
        self.left.resize(to, weight);
    }

    /// The end of the next repair.
    fn next_repair(&self) -> f64 {
        let ends = self.jobs.iter().chain(&self.log_jobs).filter_map(|job| job.span);
        ends.map(|(_, end)| end).fold(f64::INFINITY, f64::min)
    }
}

/// What fails next.
enum Next {
    Device(usize),
    Log,
    Shock,
}

struct Trial<'a> {
    model: &'a Model,
    hazard: Hazard,
    random: XoshiroPlusPlus,
    /// The moment of a scrub, the same for all devices.
    scrubbed: f64,
    score: Score,
    open: Vec<Path>,
}

impl<'a> Trial<'a> {
    fn new(model: &'a Model, seed: u64) -> Self {
        Self {
            model,
            hazard: model.device.hazard(),
            random: XoshiroPlusPlus::new(seed),
            scrubbed: 0.0,
            score: Score::default(),
            open: Vec::new(),
        }
    }

    fn run(&mut self) -> Score {
        let model = self.model;
        let devices = usize::try_from(model.geometry.devices()).expect("a few hundred");
        self.score = Score::default();
        self.scrubbed = model.latent.scrub.map_or(0.0, |interval| -self.random.unit() * interval);
        self.open.clear();
        self.open.push(Path {
            now: 0.0,
            weight: 1.0,
            intact: 1.0,
            births: vec![-model.device.age; devices],
            jobs: Vec::new(),
            logs_up: model.geometry.logs,
            log_jobs: Vec::new(),
            left: Vec::new(),
        });
        while let Some(path) = self.open.pop() {
            self.follow(path);
        }
        self.score
    }

    /// Follows a path to its end; leaves branches behind.
    fn follow(&mut self, mut path: Path) {
        let years = self.model.years;
        while path.weight > WEIGHT_MIN {
            let end = path.next_repair().min(years);
            let span = end - path.now;
            let whole = self.sum(&path, span);
            let some = -(-whole).exp_m1();
            if some > 0.0 && self.open.len() < PATHS_MAX {
                let mut branch = path.clone();
                branch.weight *= some;
                self.fail(branch, end, whole);
            }
            path.weight *= (-whole).exp();
            self.pass(&mut path, span);
            path.now = end;
            if end >= years || !self.mend(&mut path) {
                return;
            }
        }
    }

    /// The hazard of all that may fail, summed up over a span.
    fn sum(&self, path: &Path, span: f64) -> f64 {
        let devices = match self.hazard.constant() {
            Some(rate) => f64::from(path.up()) * rate * span,
            None => path.births.iter().map(|birth| self.hazard.over(path.now - birth, span)).sum(),
        };
        devices * self.model.factor(path.failed()) + self.others(path) * span
    }

    /// The hazard of log devices and of shocks.
    fn others(&self, path: &Path) -> f64 {
        f64::from(path.logs_up) * self.model.log_rate + self.model.shocks(path.up())
    }

    /// The span after which the summed hazard is `wanted`, at most `limit`, where it is `whole`.
    fn span_until(&self, path: &Path, wanted: f64, limit: f64, whole: f64) -> f64 {
        if self.hazard.constant().is_some() {
            return (limit * (wanted / whole)).min(limit);
        }
        let (mut low, mut high) = (0.0, limit);
        let (mut below, mut above) = (0.0, whole);
        for _ in 0..200 {
            // Where a straight line would be, but away from the ends now and then.
            let line = low + (high - low) * ((wanted - below) / (above - below)).clamp(0.0, 1.0);
            for guess in [line, (low + high) / 2.0] {
                if !(low..=high).contains(&guess) {
                    continue;
                }
                let found = self.sum(path, guess);
                if found < wanted { (low, below) = (guess, found) } else { (high, above) = (guess, found) }
            }
            if high - low <= limit * 1e-9 {
                break;
            }
        }
        (low + high) / 2.0
    }

    /// Lets time pass in which nothing fails.
    fn pass(&mut self, path: &mut Path, span: f64) {
        path.now += span;
        // What becomes unreadable while nothing is there to mend it with.
        let rate = self.model.latent.rate * f64::from(path.up());
        if path.failed() == self.model.geometry.parity && rate > 0.0 {
            let (count, weight) = (rate * span, path.weight);
            self.lose_part(path, Cause::Sectors, weight, -(-count).exp_m1());
            self.score.bytes += weight * count * self.model.chunk;
        }
    }

    /// A loss, with a probability, that the array outlives.
    fn lose_part(&mut self, path: &mut Path, cause: Cause, weight: f64, probability: f64) {
        self.score.loss[cause_index(cause)] += weight * path.intact * probability;
        path.intact *= 1.0 - probability;
    }

    /// Carries out the repairs that end now. False if the path ends here, its weight being little.
    fn mend(&mut self, path: &mut Path) -> bool {
        let now = path.now;
        let ends = |job: &Job| job.span.is_some_and(|(_, end)| end <= now);
        if let Some(at) = path.jobs.iter().position(ends) {
            path.jobs.remove(at);
            path.births.push(now);
            self.start(path);
        } else if let Some(at) = path.log_jobs.iter().position(ends) {
            path.log_jobs.remove(at);
            path.logs_up += 1;
            self.start(path);
        }
        let before = path.left.get(path.height()).copied().unwrap_or(path.weight);
        path.left.truncate(path.height());
        // Always, not only where the weight has become small: both branches may come down, and if both went
        // on, there would soon be more paths than can be followed.
        let goes_on = self.random.unit() * before < path.weight;
        path.weight = before;
        goes_on
    }

    /// Begins the repairs whose turn it is.
    fn start(&mut self, path: &mut Path) {
        let repair = self.model.repair;
        let all = repair.order == RepairOrder::AllAtOnce;
        for (jobs, mean) in [(&mut path.jobs, repair.mean), (&mut path.log_jobs, repair.log_mean)] {
            let turns = if all { jobs.len() } else { jobs.len().min(1) };
            for job in jobs.iter_mut().take(turns).filter(|job| job.span.is_none()) {
                let takes = match repair.time {
                    RepairTime::Fixed => mean,
                    RepairTime::Exponential => exponential(&mut self.random, mean),
                };
                job.span = Some((path.now, path.now + takes));
            }
        }
    }

    /// A path on which something fails before `end`, where the summed hazard is `whole`.
    fn fail(&mut self, mut path: Path, end: f64, whole: f64) {
        let share = -(-whole).exp_m1();
        // A moment of those until `end`, as the hazards have it.
        let wanted = -(-self.random.unit() * share).ln_1p();
        let span = self.span_until(&path, wanted.min(whole), end - path.now, whole);
        // Without the failure the branch would weigh as much as its parent.
        let weight = path.weight / share;
        self.pass(&mut path, span);
        match self.next(&path) {
            Next::Device(device) => {
                path.climb(weight, path.height() + 1);
                self.score.failures += path.weight;
                let before = (path.failed(), path.logs_failed());
                path.births.swap_remove(device);
                path.jobs.push(Job { span: None });
                self.arrive(path, before);
            }
            Next::Log => {
                path.climb(weight, path.height() + 1);
                let before = (path.failed(), path.logs_failed());
                path.logs_up -= 1;
                path.log_jobs.push(Job { span: None });
                self.arrive(path, before);
            }
            Next::Shock => self.shock(path, weight),
        }
    }

    /// What it is that fails now.
    fn next(&mut self, path: &Path) -> Next {
        let factor = self.model.factor(path.failed());
        let logs = f64::from(path.logs_up) * self.model.log_rate;
        let others = self.others(path);
        let hazards: Vec<f64> = match self.hazard.constant() {
            Some(rate) => vec![rate * factor; path.births.len()],
            None => path.births.iter().map(|birth| self.hazard.at(path.now - birth) * factor).collect(),
        };
        let mut drawn = self.random.unit() * (hazards.iter().sum::<f64>() + others);
        if drawn < logs {
            return Next::Log;
        }
        if drawn < others || hazards.is_empty() {
            return Next::Shock;
        }
        drawn -= others;
        for (device, hazard) in hazards.iter().enumerate() {
            if drawn < *hazard {
                return Next::Device(device);
            }
            drawn -= hazard;
        }
        Next::Device(hazards.len() - 1)
    }

    /// Several devices at once. Those cases in which they are too many are summed up; one of the others goes
    /// on.
    fn shock(&mut self, mut path: Path, weight: f64) {
        let model = self.model;
        let up = path.up();
        let borne = model.geometry.parity - path.failed();
        let chances: Vec<f64> = (1..=up).map(|hit| model.shock(up, hit)).collect();
        let any: f64 = chances.iter().sum();
        if any <= 0.0 {
            return;
        }
        let whole = path.weight;
        let mut survived = 0.0;
        for (hit, chance) in (1..=up).zip(&chances) {
            self.score.failures += whole * chance / any * f64::from(hit);
            if hit <= borne {
                survived += chance;
                continue;
            }
            self.lose_devices(&path, whole * chance / any, hit);
        }
        if survived <= 0.0 {
            return;
        }
        path.weight = whole * survived / any;
        let mut drawn = self.random.unit() * survived;
        let mut hit = 1;
        for chance in &chances {
            if drawn < *chance || hit == borne {
                break;
            }
            drawn -= chance;
            hit += 1;
        }
        let before = (path.failed(), path.logs_failed());
        path.climb(weight, path.height() + usize::try_from(hit).expect("fewer than devices"));
        for _ in 0..hit {
            let device = self.random.index(path.births.len());
            path.births.swap_remove(device);
            path.jobs.push(Job { span: None });
        }
        self.arrive(path, before);
    }

    /// A path with more out of service than before, and what is lost by that.
    fn arrive(&mut self, mut path: Path, before: (u32, u32)) {
        let model = self.model;
        let parity = model.geometry.parity;
        if path.failed() > parity {
            // The device that failed last is among the jobs already.
            let weight = path.weight;
            path.jobs.pop();
            self.lose_devices(&path, weight, 1);
            return;
        }
        self.start(&mut path);
        let weight = path.weight;
        if path.failed() == parity && path.failed() > before.0 {
            let count = self.unreadable(&path);
            self.lose_part(&mut path, Cause::Sectors, weight, -(-count).exp_m1());
            self.score.bytes += weight * count * model.chunk;
        }
        if model.is_exposed(path.failed(), path.logs_failed()) && !model.is_exposed(before.0, before.1) {
            let share = model.exposure.share;
            self.lose_part(&mut path, Cause::Uncommitted, weight, share);
            self.score.bytes += weight * share * model.exposure.bytes;
        }
        self.open.push(path);
    }

    /// Places that the devices in service are expected not to be able to read now.
    fn unreadable(&self, path: &Path) -> f64 {
        let latent = &self.model.latent;
        let scrubbed = match latent.scrub {
            Some(interval) => self.scrubbed + ((path.now - self.scrubbed) / interval).floor() * interval,
            None => -self.model.device.age,
        };
        let spans = path.births.iter().map(|birth| path.now - birth.max(scrubbed));
        latent.rate * spans.sum::<f64>() + latent.per_pass * f64::from(path.up())
    }

    /// The end of a path by so many more devices. Lost is what of the stripes has more chunks missing than
    /// are borne: those that no rebuild has reached yet.
    fn lose_devices(&mut self, path: &Path, weight: f64, more: u32) {
        let model = self.model;
        self.score.loss[cause_index(Cause::Devices)] += weight * path.intact;
        let waiting = model.repair.waiting;
        let done = |(start, end): (f64, f64)| {
            let passed = (path.now - start) / (end - start).max(f64::MIN_POSITIVE);
            let rebuilt = (passed - waiting) / (1.0 - waiting).max(f64::MIN_POSITIVE);
            if waiting < 1.0 { rebuilt.clamp(0.0, 1.0) } else { 0.0 }
        };
        let mut reached: Vec<f64> = path.jobs.iter().map(|job| job.span.map_or(0.0, done)).collect();
        reached.sort_by(|a, b| b.total_cmp(a));
        // Down from the end, where no rebuild has been; below the place that one has reached, one less is
        // missing.
        let (mut above, mut missing) = (1.0, path.failed() + more);
        let mut lost = 0.0;
        for place in reached.into_iter().chain([0.0]) {
            if missing > model.geometry.parity {
                lost += (above - place) * f64::from(missing);
            }
            (above, missing) = (place, missing.saturating_sub(1));
        }
        self.score.bytes += weight * lost * model.user_bytes_per_device();
    }
}

/// The names of the causes, in the order of arrays by cause.
impl Cause {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Devices => "devices",
            Self::Sectors => "sectors",
            Self::Uncommitted => "uncommitted",
        }
    }
}

const _: () = assert!(CAUSES.len() == 3);

#[cfg(test)]
#[path = "carlo/tests.rs"]
mod tests;
