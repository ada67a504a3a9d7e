// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variants of a recording for several GPUs.
//!
//! A variant's file has only the data that the first one lacks. Together they are checked as a whole recording.

use std::borrow::Cow;

use gpureplay_format::encode::assemble;
use gpureplay_format::layout::SECTIONS;
use gpureplay_format::{Recording as View, Section};
use gpureplay_host::beneath;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::files::Files;
use crate::manifest::Variant;
use crate::package::open::MAX_BYTES;
use crate::recording::Recording;

const DATA: usize = Section::Data as usize - 1;

/// `None` if the other recording's data do not begin with those of `first`, its original.
pub fn variant_file(first: &View<'_>, other: &View<'_>) -> Option<Vec<u8>> {
    let more = other.data().strip_prefix(first.data())?;
    Some(with_data(other, more))
}

fn with_data(recording: &View<'_>, data: &[u8]) -> Vec<u8> {
    let mut sections: [&[u8]; SECTIONS] = recording.sections();
    sections[DATA] = data;
    assemble(recording.header().platform(), &sections)
}

impl Files {
    /// Opens the recording for another GPU, not verified yet.
    ///
    /// # Errors
    /// Its file cannot be read, or is damaged.
    pub fn variant(&self, variant: &Variant) -> Result<Self> {
        self.variant_of(&self.parse()?, variant)
    }

    fn variant_of(&self, first: &View<'_>, variant: &Variant) -> Result<Self> {
        let path = self.directory.join(&variant.file);
        let held = self.held.as_ref().and_then(|held| {
            let file = held.variants.get(variant.file.to_str()?)?;
            Some(Cow::Borrowed(file.as_slice()))
        });
        let file = match held {
            Some(file) => file,
            None => beneath::read(&self.directory, &variant.file, MAX_BYTES)
                .map(Cow::Owned)
                .map_err(|error| Error::file(&path, error))?,
        };
        let other = View::parse(&file).map_err(|error| Error::Damaged {
            path: path.clone(),
            error,
        })?;
        let length = first.data().len() as u64 + other.data().len() as u64;
        if length > MAX_BYTES {
            return Err(Error::Package {
                path,
                reason: format!(
                    "a recording with {length} bytes of data, expected at most {MAX_BYTES}"
                ),
            });
        }
        let data = [first.data(), other.data()].concat();
        let bytes = with_data(&other, &data);
        let mut manifest = self.manifest.clone();
        if let Some(manifest) = &mut manifest {
            manifest.variants.clear();
            let sha256 = variant.sha256.clone();
            manifest.provenance.insert("sha256".into(), sha256);
        }
        Ok(Self {
            path,
            directory: self.directory.clone(),
            bytes,
            manifest,
            copy: None,
            held: None,
        })
    }
}

impl Files {
    /// [`Files::verify`] for all variants.
    ///
    /// # Errors
    /// The first variant that cannot be read, is damaged, has another hash, or breaks a rule.
    pub fn verify_variants(&self) -> Result<()> {
        let manifest = self.manifest.iter();
        let mut variants = manifest
            .flat_map(|manifest| &manifest.variants)
            .collect::<Vec<_>>();
        // Several GPUs may have the same one.
        variants.sort_by_key(|it| (&it.file, &it.sha256));
        variants.dedup_by_key(|it| (&it.file, &it.sha256));
        if variants.is_empty() {
            return Ok(());
        }
        let first = self.parse()?;
        let mut variants = variants.into_iter();
        variants.try_for_each(|variant| {
            let files = self.variant_of(&first, variant)?;
            files.verify(&files.view()?).map(drop)
        })
    }
}

impl Recording {
    /// # Errors
    /// The file cannot be read, is damaged, has another hash, or breaks a rule.
    pub fn variant(&self, variant: &Variant) -> Result<Self> {
        Self::beside(self.files().variant(variant)?, self)
    }

    /// The first variant that fits the GPU, else itself; with code where the device can place it.
    ///
    /// # Errors
    /// As for [`Recording::variant`], or the device cannot place its code.
    pub fn for_device(&self, device: &mut Device) -> Result<Self> {
        self.for_gpu(device)?.placed_for(device)
    }

    fn for_gpu(&self, device: &mut Device) -> Result<Self> {
        let variants = self.manifest().map_or(&[][..], |it| &it.variants);
        if variants.is_empty() || device.check_identity(self.verified().recording()).is_ok() {
            return Ok(self.clone());
        }
        for variant in variants {
            // Only the variant says which identity registers are read.
            let variant = self.variant(variant)?;
            let fits = device.check_identity(variant.verified().recording());
            if fits.is_ok() {
                return Ok(variant);
            }
        }
        Ok(self.clone())
    }
}
