// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an app set a kernel argument to.

use gpureplay_trace::note::Value;

#[derive(Clone, Debug, Default)]
pub(crate) struct Set {
    /// The object whose handle the bytes look like.
    pub(crate) object: Option<u32>,
    /// What the sampler is whose handle the bytes look like.
    pub(crate) sampler: Option<Vec<u8>>,
    /// Cut; `None` for work-group memory and what the layer did not see.
    pub(crate) bytes: Option<Vec<u8>>,
    pub(crate) local: Option<u64>,
}

impl Set {
    pub(crate) fn value(&self, type_name: &str) -> Value {
        let may_be_object =
            type_name.is_empty() || type_name.contains('*') || type_name.contains("image");
        let may_be_sampler = type_name.is_empty() || type_name.contains("sampler");
        if let (Some(is), true) = (&self.sampler, may_be_sampler) {
            return Value::Scalar(is.clone());
        }
        match (self.object, &self.bytes, self.local) {
            (Some(object), ..) if may_be_object => Value::Object(object),
            (_, Some(bytes), _) => Value::Scalar(bytes.clone()),
            (_, None, Some(size)) => Value::Local(size),
            (_, None, None) => Value::Unknown,
        }
    }
}
