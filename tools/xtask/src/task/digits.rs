// SPDX-License-Identifier: MIT OR Apache-2.0
//! The digits' right answers: the recorded probabilities.

use std::path::{Path, PathBuf};

use gpureplay_tensors::read_npy;

use super::error::{Error, Result};

/// The examples' recording.
pub fn digits(top: &Path) -> PathBuf {
    top.join("recordings/digits-g52")
}

/// A file's ten numbers.
pub fn probabilities(path: &Path) -> Result<Vec<f32>> {
    let tensor =
        read_npy(path).map_err(|error| Error::Usage(format!("{}: {error}", path.display())))?;
    Ok(tensor.values().map(|value| value as f32).collect())
}

/// `text` names the digit and ends with probabilities.
pub fn same(text: &str, digit: usize, expected: &[f32]) -> std::result::Result<(), String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let from = words.len().saturating_sub(expected.len());
    let found = words.get(from..).unwrap_or_default();
    let found: Vec<f32> = found.iter().filter_map(|word| word.parse().ok()).collect();
    if found.len() != expected.len() {
        return Err(format!(
            "{} numbers were expected at the end of {text:?}",
            expected.len()
        ));
    }
    if let Some(at) = (0..found.len()).find(|&at| found[at].to_bits() != expected[at].to_bits()) {
        return Err(format!(
            "probability {at} is {:e} instead of {:e}",
            found[at], expected[at]
        ));
    }
    if !text.contains(&format!("digit {digit} (")) {
        return Err(format!("\"digit {digit}\" was expected in {text:?}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn answers_are_compared_bit_for_bit() {
        let expected = [0.25, 1e-9, 0.75];
        assert_eq!(
            same("digit 2 (0.75)\n0.25 1e-09 0.75\n", 2, &expected),
            Ok(())
        );
        let error = |text: &str| same(text, 2, &expected).unwrap_err();
        assert!(error("digit 2 (0.75)\n0.25 1.1e-9 0.75").contains("probability 1"));
        assert!(error("digit 1 (0.75)\n0.25 1e-9 0.75").contains("digit 2"));
        assert!(error("digit 2 (0.75)\n0.25 0.75").contains("3 numbers"));
        assert!(error("").contains("3 numbers"));
    }
}
