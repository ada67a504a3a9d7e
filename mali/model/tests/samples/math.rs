// SPDX-License-Identifier: MIT OR Apache-2.0
//! References for `math.cl`, within OpenCL's errors.

use Domain::{All, Moderate, Normal, Positive, Small};
use Within::{Relative, Ulps};

use crate::Case;
use crate::bench::{Bench, Within, close, half_bits, half_value, same};

pub(crate) const CASES: &[Case] = &[("m_conv", conversions), ("m_dot", dot), ("m_half", halves)];

type Function = fn(f64) -> f64;

pub(crate) const FUNCTIONS: &[(&str, Domain, Within, Function)] = &[
    ("m_div", All, Ulps(2.5), |x| 1.5 / x),
    ("m_div2", Moderate, Ulps(2.5), |x| {
        x / f64::from(x as f32 + 3.0)
    }),
    ("m_rcp", Moderate, Ulps(2.0), |x| 1.0 / x),
    ("m_sqrt", All, Ulps(3.0), f64::sqrt),
    ("m_rsqrt", Normal, Ulps(2.0), |x| 1.0 / x.sqrt()),
    ("m_exp", All, Ulps(3.0), f64::exp),
    ("m_exp2", All, Ulps(3.0), f64::exp2),
    ("m_nexp", Small, Relative(1e-5), f64::exp),
    ("m_log", All, Ulps(3.0), f64::ln),
    ("m_nlog2", Positive, Relative(1e-5), f64::log2),
    ("m_sin", Moderate, Ulps(4.0), f64::sin),
    ("m_nsin", Small, Relative(3e-5), f64::sin),
    ("m_ncos", Small, Relative(3e-5), f64::cos),
    ("m_tanh", All, Ulps(5.0), f64::tanh),
    ("m_pow", All, Ulps(16.0), |x| x.powf(2.5)),
    ("m_npow", Positive, Relative(1e-4), |x| x.powf(2.5)),
    ("m_floor", Moderate, Ulps(2.0), |x| {
        let x = x as f32;
        f64::from(x.floor() + x.ceil() + x.trunc() + x.round_ties_even() + x.round())
    }),
    ("m_minmax", Moderate, Ulps(1.0), |x| {
        let x = x as f32;
        f64::from(x.min(2.0) + x.max(-1.0) + x.clamp(0.0, 1.0) + x.abs() + -x.abs())
    }),
    ("m_frexp", Moderate, Ulps(1.0), |x| {
        x * 8.0 + x.abs().log2().floor()
    }),
    ("m_isnan", All, Ulps(0.0), |x| {
        if x.is_nan() {
            1.0
        } else if x.is_infinite() {
            2.0
        } else if x.is_sign_negative() {
            3.0
        } else {
            x
        }
    }),
    ("m_fmod", Moderate, Ulps(0.0), |x| x % 3.0),
    ("m_atan2", All, Ulps(6.0), |x| x.atan2(2.0)),
    ("m_select", Moderate, Relative(2e-6), select),
];

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Domain {
    All,
    Normal,
    /// To ±1000, near whole numbers too.
    Moderate,
    /// From -10 to 10.
    Small,
    /// From 0.01 to 100.
    Positive,
}

fn numbers(b: &mut Bench, domain: Domain) -> Vec<f32> {
    const SPECIAL: [f32; 14] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        88.8,
        -103.0,
        0.999_999_94,
        2.5,
    ];
    (0..64)
        .map(|i| match domain {
            All if i < SPECIAL.len() => SPECIAL[i],
            All | Normal if i % 2 == 0 => loop {
                let x = f32::from_bits(b.random());
                if x.is_normal() && (domain == All || x.abs() > 1e-37) {
                    break x;
                }
            },
            Moderate if i % 4 == 0 => (b.random() % 64) as f32 / 2.0 - 12.25,
            Moderate => b.uniform(-1000.0, 1000.0),
            Positive => b.uniform(0.01, 100.0),
            _ => b.uniform(-10.0, 10.0),
        })
        .collect()
}

pub(crate) fn one(
    b: &mut Bench,
    domain: Domain,
    within: Within,
    f: Function,
) -> Result<(), String> {
    let x = numbers(b, domain);
    b.put(0, &x);
    b.run()?;
    let want = x.iter().map(|&x| f(f64::from(x)));
    close(&b.get(1, 64), want, within).map_err(|error| {
        let index: usize = error[1..]
            .split(']')
            .next()
            .and_then(|i| i.parse().ok())
            .unwrap_or(0);
        format!("{error} for {:e}", x[index])
    })
}

fn conversions(b: &mut Bench) -> Result<(), String> {
    let x = b.floats(64, 0.0, 20000.0);
    b.put(0, &x);
    b.run()?;
    let want = x.iter().map(|&x| {
        let terms = [
            f32::from(x.round_ties_even().clamp(0.0, 255.0) as u8),
            x.round_ties_even() as i32 as f32,
            x.trunc() as u32 as f32,
            f32::from(x.floor().clamp(-32768.0, 32767.0) as i16),
            (x * 3.0) as u32 as f32,
            f32::from(x as i32 as u16),
        ];
        // convert_uchar_sat without a mode rounds toward zero.
        let first = f32::from(x.trunc().clamp(0.0, 255.0) as u8);
        f64::from(terms[1..].iter().fold(first, |sum, term| sum + term))
    });
    close(&b.get(1, 64), want, Ulps(1.0))
}

fn select(x: f64) -> f64 {
    let step = if x < 1.0 { 0.0 } else { 1.0 };
    let t = x.clamp(0.0, 1.0);
    let sign = if x == 0.0 { 0.0 } else { x.signum() };
    // `select` looks at bits: 1 is true.
    let chosen = if x > 3.0 { 2.0 * x } else { x };
    chosen + step + t * t * (3.0 - 2.0 * t) + (x + (2.0 - x) * 0.25) + sign + x.to_degrees()
}

fn dot(b: &mut Bench) -> Result<(), String> {
    let x = b.floats(260, -3.0, 3.0);
    b.put(0, &x);
    b.run()?;
    let want = (0..64).map(|i| {
        let a: Vec<f64> = x[i * 4..][..4].iter().map(|&x| x.into()).collect();
        let c: Vec<f64> = x[i * 4 + 4..][..4].iter().map(|&x| x.into()).collect();
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let length = dot(&a, &a).sqrt();
        dot(&a, &c) + length + a[0] / length + (a[2] * c[0] - a[0] * c[2])
    });
    close(&b.get(1, 64), want, Relative(1e-4))
}

fn halves(b: &mut Bench) -> Result<(), String> {
    let x: Vec<u16> = b
        .words(64)
        .iter()
        .map(|&x| x as u16)
        .filter(|x| x & 0x7c00 != 0x7c00)
        .collect();
    let x: Vec<u16> = x.into_iter().chain([0x1234; 64]).take(64).collect();
    b.put(0, &x);
    b.run()?;
    let times = |factor, toward_zero| {
        let x = x.iter();
        x.map(move |&x| half_bits(half_value(x) * factor, toward_zero))
    };
    same(&b.get(1, 64), times(2.0, false))?;
    same(&b.at(b.argument(1) + 2000, 64), times(3.0, true))
}
