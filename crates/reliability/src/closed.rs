//! Mean time to data loss by the closed forms of the WAS paper, section V-F. Both count whole devices only,
//! with constant rates and one repair at a time; both are exact for that. Rates are per any one unit of time.

/// W-44: n devices of which one may fail; `(mu + (2n-1) lambda) / (n (n-1) lambda^2)`.
pub fn raid5(devices: u32, failure_rate: f64, repair_rate: f64) -> f64 {
    let (n, lambda, mu) = (f64::from(devices), failure_rate, repair_rate);
    (mu + (2.0 * n - 1.0) * lambda) / (n * (n - 1.0) * lambda * lambda)
}

/// W-45: n devices of which two may fail;
/// `(mu^2 + 2(n-1) lambda mu + (3n^2-6n+2) lambda^2) / (n (n-1) (n-2) lambda^3)`.
pub fn raid6(devices: u32, failure_rate: f64, repair_rate: f64) -> f64 {
    let (n, lambda, mu) = (f64::from(devices), failure_rate, repair_rate);
    let above = mu * mu + 2.0 * (n - 1.0) * lambda * mu + ((3.0 * n - 6.0) * n + 2.0) * lambda * lambda;
    above / (n * (n - 1.0) * (n - 2.0) * lambda * lambda * lambda)
}

/// The one that fits this number of parities, if one does.
pub fn mean_time_to_loss(data: u32, parity: u32, failure_rate: f64, repair_rate: f64) -> Option<f64> {
    let devices = data.checked_add(parity)?;
    match parity {
        1 => Some(raid5(devices, failure_rate, repair_rate)),
        2 => Some(raid6(devices, failure_rate, repair_rate)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// n = 8 and 0.25 failures a year (W-47); mu as printed, of 400 GB at 100 MB/s, and of 400 GB at 100 Mb/s
    /// . The wanted figures are exact fractions, rounded.
    #[test]
    fn the_papers_parameters_in_both_readings() {
        let alike =
            |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 1e-9, "{found} {wanted}");
        alike(raid5(8, 0.25, 10_000.0), 10_003.75 / 3.5);
        alike(raid6(8, 0.25, 10_000.0), 100_035_009.125 / 5.25);
        alike(raid5(8, 0.25, 7_889.4), 7_893.15 / 3.5);
        alike(raid6(8, 0.25, 7_889.4), (7_889.4 * 7_889.4 + 3.5 * 7_889.4 + 9.125) / 5.25);
        alike(raid5(8, 0.25, 986.175), 989.925 / 3.5);
        alike(raid6(8, 0.25, 986.175), (986.175 * 986.175 + 3.5 * 986.175 + 9.125) / 5.25);
    }

    /// W-46: failure rates times 0.37 to 0.77. The paper prints 2 to 20 times (H-49).
    #[test]
    fn fewer_erases_make_two_to_twenty_times() {
        let gain = |of: fn(u32, f64, f64) -> f64, alpha: f64| of(8, 0.25 * alpha, 1e4) / of(8, 0.25, 1e4);
        let shown = |gain: f64| format!("{gain:.2}");
        assert_eq!([0.37, 0.5, 0.77].map(|alpha| shown(gain(raid5, alpha))), ["7.30", "4.00", "1.69"]);
        assert_eq!([0.37, 0.5, 0.77].map(|alpha| shown(gain(raid6, alpha))), ["19.74", "8.00", "2.19"]);
    }
}
