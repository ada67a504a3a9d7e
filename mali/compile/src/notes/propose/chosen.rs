// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names, types and shapes that the user chose.

use super::*;

pub(in crate::notes) fn apply(
    proposal: &mut Proposal,
    choices: &Choices,
) -> Result<(), ProposeError> {
    let stated = &choices.stated;
    let known: Vec<String> = proposal.tensors.iter().map(|t| t.name.clone()).collect();
    stated.check(&known)?;
    let mut seconds: HashMap<&str, Vec<&mut Tensor>> = HashMap::new();
    let mut new_names = Vec::new();
    for (name, other) in &mut proposal.second {
        new_names.push(stated.name(name).to_owned());
        seconds.entry(name).or_default().push(other);
    }
    for tensor in &mut proposal.tensors {
        let bytes = tensor.tensor.bytes().len() as u64;
        if let Some(form) = stated.form_of(&tensor.name, bytes)? {
            let wrong = || StatedError::Form {
                name: tensor.name.clone(),
                bytes,
                form: form.clone(),
            };
            tensor.tensor = reformed(&tensor.tensor, form).ok_or_else(wrong)?;
            let elements = u32::try_from(tensor.tensor.len()).map_err(|_| wrong())?;
            let places = tensor.layout.pieces.iter().map(|piece| piece.va);
            tensor.layout = Layout {
                dtype: form.dtype,
                pieces: places
                    .map(|va| Piece::dense(elements, form.dtype, va))
                    .collect(),
            };
            tensor.shape.clone_from(&form.shape);
            for other in seconds.get_mut(tensor.name.as_str()).into_iter().flatten() {
                **other = reformed(other, form).ok_or_else(wrong)?;
            }
        }
        tensor.name = stated.name(&tensor.name).to_owned();
    }
    for ((name, _), new) in proposal.second.iter_mut().zip(new_names) {
        *name = new;
    }
    Ok(())
}

fn reformed(tensor: &Tensor, form: &Form) -> Option<Tensor> {
    let shape: Vec<u64> = form.shape.iter().copied().map(u64::from).collect();
    Tensor::new(form.dtype, &shape, tensor.bytes().to_vec()).ok()
}
