//! Loads every tensor of a checkpoint with candle-core.
use candle_core::{CpuStorage, Storage, Tensor, pickle::PthTensors};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: peer-candle FILE")?;
    let begin = Instant::now();
    let reader = PthTensors::new(&file, None)?;
    let mut loaded = Vec::new();
    for name in reader.tensor_infos().keys() {
        loaded.push(reader.get(name)?.ok_or("a tensor that was listed is not there")?);
    }
    let seconds = begin.elapsed().as_secs_f64();

    let mut sum = 0u64;
    let mut values = 0;
    for tensor in &loaded {
        values += tensor.elem_count();
        sum = sum.wrapping_add(checksum(tensor)?);
    }
    println!(
        "{{\"checksum\":\"{sum:016x}\",\"tensors\":{},\"values\":{values},\"load_seconds\":{seconds}}}",
        loaded.len()
    );
    Ok(())
}

fn checksum(tensor: &Tensor) -> Result<u64, Box<dyn std::error::Error>> {
    let (storage, layout) = tensor.storage_and_layout();
    let (from, to) = layout.contiguous_offsets().ok_or("not contiguous")?;
    let Storage::Cpu(storage) = &*storage else {
        return Err("not in the memory of the processor".into());
    };
    match storage {
        CpuStorage::F32(v) => Ok(add(&v[from..to], |x| x.to_bits() as u64)),
        CpuStorage::F16(v) => Ok(add(&v[from..to], |x: half::f16| x.to_f32().to_bits() as u64)),
        CpuStorage::I64(v) => Ok(add(&v[from..to], |x| x as u64)),
        _ => Err(format!("no checksum of {:?}", tensor.dtype()).into()),
    }
}

fn add<T: Copy>(values: &[T], value: impl Fn(T) -> u64) -> u64 {
    values.iter().fold(0, |sum, v| sum.wrapping_add(value(*v)))
}
