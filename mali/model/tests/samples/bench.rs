// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a kernel's test needs.

use crate::dump::Dump;
use crate::machine::Machine;

const BUFFER: usize = 65536;

const SHADER: u64 = 0xe000_0000;

pub(crate) struct Bench {
    pub(crate) machine: Machine,
    arguments: Vec<u64>,
    words: Vec<u64>,
    push_uniforms: u64,
    state: u64,
}

#[derive(Clone, Copy)]
pub(crate) enum Within {
    /// Of single precision.
    Ulps(f64),
    /// Relative to the value, or absolute if it is below 1.
    Relative(f64),
}

impl Bench {
    pub(crate) fn new(product: u16, dump: &Dump, threads: usize, seed: u64) -> Bench {
        Bench::on(Machine::new(product, dump, threads), dump, seed)
    }

    pub(crate) fn on(machine: Machine, dump: &Dump, seed: u64) -> Bench {
        let push_uniforms = machine.draw(28);
        let state = machine.draw(30) & !63;
        let words = u64::from(
            u32::from_le_bytes(machine.read(state + 48, 4).try_into().unwrap()) >> 15 & 127,
        ) * 2;
        let buffers: Vec<_> = dump
            .buffers
            .iter()
            .filter(|(_, bytes)| bytes.len() >= 0x4000)
            .map(|b| b.0)
            .collect();
        let (mut arguments, mut places) = (Vec::new(), Vec::new());
        let mut word = 0;
        while word + 1 < words {
            let value = machine.pointer(push_uniforms + word * 4);
            if buffers.contains(&value) {
                arguments.push(value);
                places.push(word);
                word += 1;
            }
            word += 1;
        }
        Bench {
            machine,
            arguments,
            words: places,
            push_uniforms,
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    pub(crate) fn replace_shader(&mut self, code: &[u8]) {
        let state = self.machine.draw(30) & !63;
        let address = SHADER;
        self.machine.map(address, code.len() as u64 + 256);
        self.machine.write(address, code);
        self.machine.write(state, &address.to_le_bytes());
    }

    pub(crate) fn set_uniform(&self, word: u64, value: u32) {
        self.machine
            .write(self.push_uniforms + word * 4, &value.to_le_bytes());
    }

    pub(crate) fn alias(&mut self, index: usize, other: usize) {
        let address = self.arguments[other];
        self.set_uniform(self.words[index], address as u32);
        self.set_uniform(self.words[index] + 1, (address >> 32) as u32);
        self.arguments[index] = address;
    }

    pub(crate) fn random(&mut self) -> u32 {
        self.state = self
            .state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.state >> 32) as u32
    }

    pub(crate) fn uniform(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * (self.random() >> 8) as f32 / 16777216.0
    }

    pub(crate) fn floats(&mut self, count: usize, low: f32, high: f32) -> Vec<f32> {
        (0..count).map(|_| self.uniform(low, high)).collect()
    }

    pub(crate) fn words(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.random()).collect()
    }

    pub(crate) fn argument(&self, index: usize) -> u64 {
        self.arguments[index]
    }

    pub(crate) fn fill(&self, index: usize, bytes: &[u8]) {
        let mut all = vec![0xa5; BUFFER.min(0x4000.max(bytes.len()))];
        all[..bytes.len()].copy_from_slice(bytes);
        self.machine.write(self.arguments[index], &all);
    }

    pub(crate) fn put<T: Word>(&self, index: usize, values: &[T]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.bytes()).collect();
        self.fill(index, &bytes);
    }

    pub(crate) fn get<T: Word>(&self, index: usize, count: usize) -> Vec<T> {
        self.at(self.arguments[index], count)
    }

    pub(crate) fn at<T: Word>(&self, address: u64, count: usize) -> Vec<T> {
        self.machine
            .read(address, count * size_of::<T>())
            .chunks_exact(size_of::<T>())
            .map(T::from_bytes)
            .collect()
    }

    pub(crate) fn run(&mut self) -> Result<(), String> {
        self.machine.run()
    }
}

pub(crate) trait Word: Copy {
    fn bytes(self) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Self;
}

macro_rules! word {
    ($($t:ty)*) => {$(
        impl Word for $t {
            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn from_bytes(bytes: &[u8]) -> Self {
                <$t>::from_le_bytes(bytes.try_into().unwrap())
            }
        }
    )*};
}
word!(u8 i16 u16 i32 u32 i64 f32);

pub(crate) fn same<T: PartialEq + std::fmt::Debug>(
    got: &[T],
    want: impl IntoIterator<Item = T>,
) -> Result<(), String> {
    let want: Vec<T> = want.into_iter().collect();
    match got.iter().zip(&want).position(|(a, b)| a != b) {
        None if got.len() == want.len() => Ok(()),
        None => Err(format!("{} values for {}", got.len(), want.len())),
        Some(i) => Err(format!("[{i}] is {:?}, want {:?}", got[i], want[i])),
    }
}

fn ulp(value: f64) -> f64 {
    let exponent = value.abs().max(f64::from(f32::MIN_POSITIVE)).log2().floor();
    2f64.powf(exponent - 23.0)
}

/// NaN equals NaN.
pub(crate) fn close(
    got: &[f32],
    want: impl IntoIterator<Item = f64>,
    within: Within,
) -> Result<(), String> {
    let want: Vec<f64> = want.into_iter().collect();
    for (i, (&a, &b)) in got.iter().zip(&want).enumerate() {
        let rounded = b as f32;
        let allowed = match within {
            Within::Ulps(count) => count * ulp(b),
            Within::Relative(part) => part * b.abs().max(1.0),
        };
        let fits =
            (a.is_nan() && b.is_nan()) || a == rounded || (f64::from(a) - b).abs() <= allowed;
        if !fits {
            return Err(format!("[{i}] is {a:e}, want {b:e} within {allowed:e}"));
        }
    }
    if got.len() == want.len() {
        Ok(())
    } else {
        Err("lengths differ".into())
    }
}

/// Independent of the model's own.
pub(crate) fn half_value(h: u16) -> f64 {
    let (sign, exponent, mantissa) = (h >> 15, (h >> 10 & 31) as i32, f64::from(h & 1023));
    let magnitude = match exponent {
        0 => mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + mantissa) * 2f64.powi(exponent - 25),
    };
    if sign == 1 { -magnitude } else { magnitude }
}

/// Ties to even; `toward_zero` truncates.
pub(crate) fn half_bits(x: f64, toward_zero: bool) -> u16 {
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    if x.is_nan() {
        return 0x7e00;
    }
    let a = x.abs();
    let exponent = if a == 0.0 {
        -14
    } else {
        (a.log2().floor() as i32).clamp(-14, 16)
    };
    let step = 2f64.powi(exponent - 10);
    let count = if toward_zero {
        (a / step).floor()
    } else {
        (a / step).round_ties_even()
    };
    let value = count * step;
    if value >= 65536.0 {
        return sign
            | if toward_zero && a.is_finite() {
                0x7bff
            } else {
                0x7c00
            };
    }
    if value < 2f64.powi(-14) {
        return sign | (value * 2f64.powi(24)) as u16;
    }
    let exponent = value.log2().floor() as i32;
    sign | ((exponent + 15) as u16) << 10 | ((value / 2f64.powi(exponent) - 1.0) * 1024.0) as u16
}
