//! Loads every tensor of a checkpoint with the crate pytorch-reader.
use pytorch_reader::{DType, PytorchReader};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: peer-pytorch-reader FILE")?;
    let begin = Instant::now();
    let reader = PytorchReader::new(&file)?;
    let mut loaded = Vec::with_capacity(reader.len());
    for tensor in reader.tensors().values() {
        loaded.push((tensor.dtype(), tensor.num_elements(), tensor.read()?));
    }
    let seconds = begin.elapsed().as_secs_f64();

    let mut sum = 0u64;
    let mut values = 0;
    for (dtype, elements, bytes) in &loaded {
        values += elements;
        sum = sum.wrapping_add(match dtype {
            DType::F32 => add(bytes, |b: [u8; 4]| u32::from_le_bytes(b) as u64),
            DType::I64 => add(bytes, u64::from_le_bytes),
            other => return Err(format!("no checksum of {other:?}").into()),
        });
    }
    println!(
        "{{\"checksum\":\"{sum:016x}\",\"tensors\":{},\"values\":{values},\"load_seconds\":{seconds}}}",
        loaded.len()
    );
    Ok(())
}

fn add<const N: usize>(bytes: &[u8], value: impl Fn([u8; N]) -> u64) -> u64 {
    bytes.as_chunks::<N>().0.iter().fold(0, |sum, b| sum.wrapping_add(value(*b)))
}
