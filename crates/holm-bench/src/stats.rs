//! Medians and spread.

/// The value below which the share `q` (0 to 1) of the samples lies; not a number without samples.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an index into a few thousand samples"
)]
pub fn quantile(samples: &[f64], q: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let index = (sorted.len().saturating_sub(1) as f64 * q).round() as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

/// Median and spread of a row of samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    pub median: f64,
    pub p10: f64,
    pub p90: f64,
}

impl Summary {
    pub fn of(samples: &[f64]) -> Self {
        Self {
            median: quantile(samples, 0.5),
            p10: quantile(samples, 0.1),
            p90: quantile(samples, 0.9),
        }
    }

    /// Of the ratios of two rows that were sampled side by side: what disturbed one round disturbed
    /// both.
    pub fn of_ratios(samples: &[f64], to: &[f64]) -> Self {
        let ratios: Vec<f64> = samples.iter().zip(to).map(|(a, b)| a / b).collect();
        Self::of(&ratios)
    }

    /// The median, with its spread.
    pub fn with_spread(&self) -> String {
        format!("{:.2} ({:.2} to {:.2})", self.median, self.p10, self.p90)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        let samples: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let summary = Summary::of(&samples);
        assert_eq!(summary, Summary { median: 50.0, p10: 10.0, p90: 90.0 });
        assert!(quantile(&[], 0.5).is_nan());
        assert!((quantile(&[7.0], 0.9) - 7.0).abs() < f64::EPSILON);
    }

    #[test]
    fn ratios_are_paired() {
        let ratios = Summary::of_ratios(&[2.0, 20.0, 200.0], &[1.0, 10.0, 100.0]);
        assert_eq!(ratios, Summary { median: 2.0, p10: 2.0, p90: 2.0 });
    }
}
