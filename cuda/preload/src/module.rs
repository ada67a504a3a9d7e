// SPDX-License-Identifier: MIT OR Apache-2.0
//! Our images in the program's context.

use gpureplay_cuda_launch::abi::{Handle, JitOptions};

use crate::real::driver;

pub(crate) fn load(mut image: Vec<u8>, options: JitOptions) -> Result<Handle, String> {
    gpureplay_cuda_launch::image::check(&image).map_err(|error| error.to_string())?;
    let driver = driver().map_err(|status| status.to_string())?;
    image.push(0);
    let (mut names, mut values): (Vec<i32>, Vec<u64>) = options.listed().unzip();
    let count = u32::try_from(names.len()).unwrap_or(0);
    let mut module = 0;
    // SAFETY: the image is whole, as its parts were just read, and ends with a zero byte; as many options as are said.
    unsafe {
        driver.cuModuleLoadDataEx(
            &raw mut module,
            image.as_ptr().cast(),
            count,
            names.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    }
    .check()
    .map_err(|status| status.to_string())?;
    Ok(module)
}
