//! Raw outputs as a hash: what `bench` records of a frame and `run` prints of a call.

use prony_backend::Session;
use prony_types::{TensorData, TensorView};
use sha2::{Digest, Sha256};

/// Values that are hashed at a time.
const BLOCK: usize = 4096;

/// SHA-256 of the values of all outputs of the last call in slot 0, in the order of the session; see
/// [`OutputsRecord`](prony_types::OutputsRecord).
pub fn outputs_sha256(session: &dyn Session) -> String {
    of((0..session.output_count()).map(|index| session.output(0, index)))
}

fn of<'a>(outputs: impl Iterator<Item = TensorView<'a>>) -> String {
    let mut hash = Sha256::new();
    for output in outputs {
        match output.data {
            TensorData::F32(data) => update(&mut hash, data, f32::to_le_bytes),
            TensorData::I32(data) => update(&mut hash, data, i32::to_le_bytes),
            TensorData::I64(data) => update(&mut hash, data, i64::to_le_bytes),
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Values go in by the block: one by one, a hundred megabytes of masks would take seconds.
fn update<const N: usize, T: Copy>(hash: &mut Sha256, data: &[T], bytes: fn(T) -> [u8; N]) {
    for block in data.chunks(BLOCK) {
        hash.update(block.iter().flat_map(|&value| bytes(value)).collect::<Vec<u8>>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensors::npy_bytes;

    #[test]
    fn the_hash_is_that_of_the_npy_file_behind_its_header() {
        let data = [1.5f32, -0.0, f32::NAN];
        let view = || TensorView { name: "y", shape: &[3], data: TensorData::F32(&data) };
        let file = npy_bytes(&view());
        let body: String = Sha256::digest(&file[file.len() - 12..]).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(of([view()].into_iter()), body);
        let zero = [1.5f32, 0.0, f32::NAN];
        let other = TensorView { name: "y", shape: &[3], data: TensorData::F32(&zero) };
        assert_ne!(of([other].into_iter()), body, "the sign of a zero is a bit too");
    }
}
