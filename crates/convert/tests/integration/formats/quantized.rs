//! Quantized checkpoints, packed number by number and compared with the decoding formula.

use gguf::TensorType;
use gguf_checkpoint::Checkpoint;
use half::f16;
use serde_json::{Value, json};

use super::builders::{Tensor, bytes, checkpoint, digest, f16s, f32s, floats, numbers, scales};
use crate::fixtures::reference_data;

/// Every matrix has the digest in the reference data.
#[test]
fn reference_checkpoints_decode_bit_exactly() {
    let Some(data) = reference_data() else { return };
    for folder in ["gptq-llama", "awq-llama", "fp8-llama"] {
        let dir = data.join("zoo").join(folder);
        let checkpoint = Checkpoint::open(&dir).unwrap();
        let reference = std::fs::read(dir.join("dequant_sha256.json")).unwrap();
        let reference: Value = serde_json::from_slice(&reference).unwrap();
        let matrices = reference["tensors"].as_object().unwrap();
        assert_eq!(matrices.len(), 14);
        for (name, expected) in matrices {
            let values = floats(&checkpoint, name);
            assert_eq!(digest(&f32s(&values)), expected["sha256"], "{folder}: {name}");
        }
        let expected = if folder == "fp8-llama" { TensorType::F32 } else { TensorType::Q5_0 };
        let quantized = checkpoint.entries.iter().filter(|entry| entry.name.contains("_proj"));
        assert!(quantized.clone().all(|entry| entry.tensor_type == expected), "{folder}");
        assert_eq!(quantized.count(), 14);
        assert_eq!(checkpoint.notes.len(), 1, "{:?}", checkpoint.notes);
    }
}

/// Packs numbers of `bits` bits into words, lowest first, across word boundaries.
fn stream(numbers: impl Iterator<Item = u32>, bits: usize) -> Vec<u32> {
    let (mut words, mut at) = (Vec::new(), 0);
    for number in numbers {
        for bit in 0..bits {
            if at % 32 == 0 {
                words.push(0);
            }
            words[at / 32] |= (number >> bit & 1) << (at % 32);
            at += 1;
        }
    }
    words
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn transposed(words: &[Vec<u32>]) -> Vec<u32> {
    (0..words[0].len()).flat_map(|i| words.iter().map(move |row| row[i])).collect()
}

const INPUTS: usize = 64;
const OUTPUTS: usize = 32;
const GROUPS: usize = 2;

#[test]
fn gptq_with_every_bit_width() {
    for bits in [2, 3, 4, 8] {
        for act_order in [false, true] {
            for (format, offset) in [("gptq", 1), ("gptq_v2", 0)] {
                gptq(bits, act_order, format, offset);
            }
        }
    }
}

fn gptq(bits: usize, act_order: bool, format: &str, offset: i32) {
    let q = numbers(INPUTS * OUTPUTS, 1 << bits);
    let zeros = numbers(GROUPS * OUTPUTS, 1 << bits);
    let scales = scales(GROUPS * OUTPUTS);
    let group = |input: usize| match act_order {
        true => input * 7 % GROUPS,
        false => input / (INPUTS / GROUPS),
    };
    let columns: Vec<_> = (0..OUTPUTS)
        .map(|output| stream((0..INPUTS).map(|input| q[input * OUTPUTS + output]), bits))
        .collect();
    let zero_rows = zeros.chunks(OUTPUTS).flat_map(|row| stream(row.iter().copied(), bits));
    let zero_rows: Vec<_> = zero_rows.collect();
    let indices: Vec<_> = (0..INPUTS).map(|input| group(input) as u32).collect();
    let (packed, packed_zeros) = ((INPUTS * bits / 32) as u64, (OUTPUTS * bits / 32) as u64);
    let tensors = [
        Tensor("a.g_idx".into(), "I32", vec![INPUTS as u64], words(&indices)),
        Tensor(
            "a.qweight".into(),
            "I32",
            vec![packed, OUTPUTS as u64],
            words(&transposed(&columns)),
        ),
        Tensor("a.qzeros".into(), "I32", vec![GROUPS as u64, packed_zeros], words(&zero_rows)),
        Tensor("a.scales".into(), "F16", vec![GROUPS as u64, OUTPUTS as u64], f16s(&scales)),
        Tensor("b.bias".into(), "F16", vec![1], f16s(&[1.0])),
    ];
    let config = json!({ "quant_method": "gptq", "bits": bits, "checkpoint_format": format });
    let dir = checkpoint(&config, &tensors);
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    let names: Vec<_> = checkpoint.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["b.bias", "a.weight"]);
    assert_eq!(checkpoint.entries[1].shape, [OUTPUTS as u64, INPUTS as u64]);
    let expected = (0..OUTPUTS).flat_map(|output| {
        let (q, zeros, scales) = (&q, &zeros, &scales);
        (0..INPUTS).map(move |input| {
            let at = group(input) * OUTPUTS + output;
            scales[at] * (q[input * OUTPUTS + output] as i32 - (zeros[at] as i32 + offset)) as f32
        })
    });
    let what = format!("{bits} bits, act order {act_order}, {format}");
    assert_eq!(floats(&checkpoint, "a.weight"), expected.collect::<Vec<_>>(), "{what}");
    let ty = match (bits, act_order) {
        (_, true) | (8, _) => TensorType::F32,
        (4, _) => TensorType::Q5_0,
        _ => TensorType::Q4_0,
    };
    assert_eq!(checkpoint.entries[1].tensor_type, ty, "{what}");
}

#[test]
fn awq_with_interleaved_order() {
    const ORDER: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];
    let q = numbers(INPUTS * OUTPUTS, 16);
    // Zero points of 8: symmetric quantization.
    let zeros = vec![8; GROUPS * OUTPUTS];
    let scales = scales(GROUPS * OUTPUTS);
    let pack = |numbers: &[u32]| -> Vec<u32> {
        let word = |eight: &[u32]| (0..8).fold(0, |word, i| word | eight[ORDER[i]] << (4 * i));
        numbers.chunks(8).map(word).collect()
    };
    let (inputs, outputs, groups) = (INPUTS as u64, OUTPUTS as u64, GROUPS as u64);
    let tensors = [
        Tensor("a.qweight".into(), "I32", vec![inputs, outputs / 8], words(&pack(&q))),
        Tensor("a.qzeros".into(), "I32", vec![groups, outputs / 8], words(&pack(&zeros))),
        Tensor("a.scales".into(), "F16", vec![groups, outputs], f16s(&scales)),
    ];
    let dir = checkpoint(&json!({ "quant_method": "awq", "version": "gemm" }), &tensors);
    // AutoAWQ's own file has the same fields.
    std::fs::write(dir.path().join("config.json"), "{}").unwrap();
    std::fs::write(dir.path().join("quant_config.json"), r#"{"w_bit":4,"version":"GEMM"}"#)
        .unwrap();
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    let expected = (0..OUTPUTS).flat_map(|output| {
        let (q, scales) = (&q, &scales);
        (0..INPUTS).map(move |input| {
            let group = input / (INPUTS / GROUPS);
            scales[group * OUTPUTS + output] * (q[input * OUTPUTS + output] as f32 - 8.0)
        })
    });
    assert_eq!(floats(&checkpoint, "a.weight"), expected.collect::<Vec<_>>());
    assert_eq!(checkpoint.entries[0].tensor_type, TensorType::Q4_0);
}

/// Outputs are rows. Zero points and scales have room for more groups than there are.
#[test]
fn awq_with_row_order() {
    const ROOM: usize = 8;
    let q = numbers(OUTPUTS * INPUTS, 16);
    let zeros: Vec<_> = numbers(OUTPUTS * ROOM, 16).into_iter().map(|zero| zero.min(8)).collect();
    let scales = scales(OUTPUTS * ROOM);
    let pack = |numbers: &[u32]| words(&stream(numbers.iter().copied(), 4));
    let outputs = OUTPUTS as u64;
    let tensors = [
        Tensor("a.qweight".into(), "I32", vec![outputs, INPUTS as u64 / 8], pack(&q)),
        Tensor("a.qzeros".into(), "I32", vec![outputs, 1], pack(&zeros)),
        Tensor("a.scales".into(), "F16", vec![outputs, ROOM as u64], f16s(&scales)),
    ];
    let size = INPUTS / GROUPS;
    let fields =
        |size: i64| json!({ "quant_method": "awq", "version": "gemv", "group_size": size });
    for (given, size) in [(size as i64, size), (-1, INPUTS)] {
        let dir = checkpoint(&fields(given), &tensors);
        let checkpoint = Checkpoint::open(dir.path()).unwrap();
        let expected = q.iter().enumerate().map(|(at, q)| {
            let group = at / INPUTS * ROOM + at % INPUTS / size;
            scales[group] * (*q as i32 - zeros[group] as i32) as f32
        });
        assert_eq!(floats(&checkpoint, "a.weight"), expected.collect::<Vec<_>>(), "{given}");
        assert_eq!(checkpoint.entries[0].tensor_type, TensorType::Q5_0);
    }
    for size in [0, -2, 7, 4] {
        let dir = checkpoint(&fields(size), &tensors);
        let message = Checkpoint::open(dir.path()).unwrap_err().to_string();
        assert!(message.contains("64 inputs and room for 8 groups"), "{size}: {message}");
    }
}

/// Returns the order in which Marlin packs four tiles.
fn marlin_order() -> Vec<usize> {
    let mut order = Vec::new();
    for thread in 0..32 {
        let (column, row) = (thread / 4, 2 * (thread % 4));
        let rows = [row, row + 1, row + 8, row + 9];
        let of_tile: Vec<_> =
            [0, 8].iter().flat_map(|block| rows.map(|row| 16 * row + column + block)).collect();
        for tile in 0..4 {
            order.extend([0, 2, 4, 6, 1, 3, 5, 7].map(|i| of_tile[i] + 256 * tile));
        }
    }
    order
}

#[test]
fn gptq_in_marlin_layout() {
    let (inputs, outputs) = (64, 128);
    let order = marlin_order();
    for groups in [1, 2] {
        let q = numbers(inputs * outputs, 16);
        let scales = scales(groups * outputs);
        let mut packed = Vec::new();
        for rows in q.chunks(16 * outputs) {
            // Consecutive tiles of 16 outputs.
            let tiles = (0..outputs / 16).flat_map(|tile| {
                (0..16).flat_map(move |row| &rows[row * outputs + 16 * tile..][..16])
            });
            let tiles: Vec<_> = tiles.copied().collect();
            let ordered = tiles.chunks(1024).flat_map(|four| order.iter().map(|at| four[*at]));
            packed.extend(stream(ordered, 4));
        }
        let scale_order: Vec<usize> = match groups {
            1 => (0..4).flat_map(|i| [0, 1, 8, 9, 16, 17, 24, 25].map(|j| 2 * i + j)).collect(),
            _ => (0..8).flat_map(|i| (0..8).map(move |j| i + 8 * j)).collect(),
        };
        let ordered: Vec<_> = scales
            .chunks(scale_order.len())
            .flat_map(|part| scale_order.iter().map(|at| part[*at]))
            .collect();
        let shape = vec![inputs as u64 / 16, 2 * outputs as u64];
        let tensors = [
            Tensor("a.B".into(), "I32", shape, words(&packed)),
            Tensor("a.s".into(), "F16", vec![groups as u64, outputs as u64], f16s(&ordered)),
        ];
        let named = json!({ "quant_method": "gptq", "checkpoint_format": "marlin" });
        let older = json!({ "quant_method": "gptq", "is_marlin_format": true });
        for config in [named, older] {
            let dir = checkpoint(&config, &tensors);
            let checkpoint = Checkpoint::open(dir.path()).unwrap();
            let expected = (0..outputs).flat_map(|output| {
                let (q, scales) = (&q, &scales);
                (0..inputs).map(move |input| {
                    let group = input / (inputs / groups);
                    scales[group * outputs + output] * (q[input * outputs + output] as f32 - 8.0)
                })
            });
            assert_eq!(floats(&checkpoint, "a.weight"), expected.collect::<Vec<_>>(), "{groups}");
            assert_eq!(checkpoint.entries[0].tensor_type, TensorType::Q4_0);
        }
    }
}

#[test]
fn hqq_with_every_packing() {
    // Bits per number, bits per word, numbers per word, whether groups are rows.
    let cases = [8, 4, 2, 1].map(|bits| (bits, "U8", 8 / bits)).into_iter();
    for (bits, dtype, parts) in cases.chain([(3, "I32", 10), (4, "I32", 8)]) {
        for by_row in [true, false] {
            let (rows, width) = (OUTPUTS * INPUTS / 16, 16);
            let packed_rows = rows.div_ceil(parts);
            let q = numbers(rows * width, 1 << bits);
            let groups = if by_row { rows } else { width };
            let (scale, zero) = (scales(groups), scales(2 * groups)[groups..].to_vec());
            let word = |at: usize| {
                (0..parts).fold(0u32, |word, part| {
                    let q = q.get(part * packed_rows * width + at).copied().unwrap_or(0);
                    word | q << ((parts - 1 - part) * bits)
                })
            };
            let packed: Vec<_> = (0..packed_rows * width).map(word).collect();
            let bytes = match dtype {
                "U8" => packed.iter().map(|word| *word as u8).collect(),
                _ => words(&packed),
            };
            let of_groups = if by_row { vec![rows as u64, 1] } else { vec![1, width as u64] };
            let shape = [OUTPUTS as i64, INPUTS as i64].into_iter().flat_map(|n| n.to_le_bytes());
            let tensors = [
                Tensor("a.W_q".into(), dtype, vec![packed_rows as u64, width as u64], bytes),
                Tensor("a.nbits".into(), "I32", vec![], words(&[bits as u32])),
                Tensor("a.offload_meta".into(), "U8", vec![], vec![0]),
                Tensor("a.packing".into(), "U8", vec![7], b"4bit_u8".to_vec()),
                Tensor("a.scale".into(), "F16", of_groups.clone(), f16s(&scale)),
                Tensor("a.shape".into(), "I64", vec![2], shape.collect()),
                Tensor("a.zero".into(), "F16", of_groups, f16s(&zero)),
            ];
            let dir = checkpoint(&json!({ "quant_method": "hqq" }), &tensors);
            let checkpoint = Checkpoint::open(dir.path()).unwrap();
            assert_eq!(checkpoint.entries.len(), 1);
            assert_eq!(checkpoint.entries[0].shape, [OUTPUTS as u64, INPUTS as u64]);
            let expected = q.iter().enumerate().map(|(at, q)| {
                let group = if by_row { at / width } else { at % width };
                (*q as f32 - zero[group]) * scale[group]
            });
            let expected: Vec<_> = expected.collect();
            assert_eq!(floats(&checkpoint, "a.weight"), expected, "{bits} {dtype} {by_row}");
        }
    }
}

#[test]
fn invalid_hqq_fails() {
    let packed =
        |rows: u64| Tensor("a.W_q".into(), "U8", vec![rows, 8], vec![0; 8 * rows as usize]);
    let float = |name: &str, n: u64| {
        Tensor(format!("a.{name}"), "F16", vec![n, 1], vec![0; 2 * n as usize])
    };
    let shape = |n: [i64; 2]| {
        let bytes = n.iter().flat_map(|n| n.to_le_bytes()).collect();
        Tensor("a.shape".into(), "I64", vec![2], bytes)
    };
    let cases = [
        (vec![packed(4), float("scale", 8), shape([8, 8])], "has no `a.zero`"),
        (vec![packed(4), float("scale", 8), float("zero", 8)], "has no `a.shape`"),
        (vec![packed(4), float("scale", 8), float("zero", 7), shape([8, 8])], "[8, 1] or [1, 8]"),
        (
            vec![packed(5), float("scale", 8), float("zero", 8), shape([8, 8])],
            "does not hold 8 x 8",
        ),
        (vec![packed(4), float("scale", 8), float("zero", 8), shape([-8, 8])], "negative"),
        (
            vec![packed(4), float("scale", 8), float("zero", 8), shape([i64::MAX, 8])],
            "does not hold",
        ),
    ];
    let bits = |n: u32| json!({ "weight_quant_params": { "nbits": n } });
    for (tensors, part) in cases {
        let dir = checkpoint(&json!({ "quant_method": "hqq", "quant_config": bits(4) }), &tensors);
        let message = Checkpoint::open(dir.path()).unwrap_err().to_string();
        for part in [part, "model.safetensors", "a.W_q", "config.json"] {
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }
}

/// Returns the value of an E4M3 byte.
fn e4m3(byte: u32) -> f32 {
    let (sign, exponent, mantissa) = (byte >> 7, (byte >> 3 & 15) as i32, (byte & 7) as f32);
    let magnitude = match exponent {
        0 => mantissa / 8.0 * 2f32.powi(-6),
        _ => (1.0 + mantissa / 8.0) * 2f32.powi(exponent - 7),
    };
    if sign == 0 { magnitude } else { -magnitude }
}

#[test]
fn fp8_with_every_scale_granularity() {
    let codes: Vec<_> =
        numbers(3 * 40, 254).iter().map(|c| if c & 127 == 127 { 1 } else { *c }).collect();
    let weight: Vec<u8> = codes.iter().map(|code| *code as u8).collect();
    let block = json!({ "quant_method": "fp8", "weight_block_size": [2, 16] });
    let channel = json!({ "quant_method": "compressed-tensors", "format": "float-quantized",
        "config_groups": { "group_0": { "weights": { "num_bits": 8, "type": "float" } } } });
    let modelopt = json!({ "quant_method": "modelopt" });
    // Configuration, name and shape of the scales, and a function from row and column to the scale's index.
    type Case<'c> = (&'c Value, &'c str, Vec<u64>, fn(usize, usize) -> usize);
    let cases: [Case; 5] = [
        (&block, "a.weight_scale_inv", vec![2, 3], |row, column| row / 2 * 3 + column / 16),
        (&channel, "a.weight_scale", vec![3, 1], |row, _| row),
        (&channel, "a.weight_scale", vec![1], |_, _| 0),
        (&modelopt, "a.weight_scale", vec![], |_, _| 0),
        (&block, "a.qscale_weight", vec![], |_, _| 0),
    ];
    for (config, name, shape, place) in cases {
        let scales = scales(shape.iter().product::<u64>() as usize);
        let tensors = [
            Tensor("a.weight".into(), "F8_E4M3", vec![3, 40], weight.clone()),
            Tensor(name.into(), "F32", shape.clone(), f32s(&scales)),
            Tensor("a.input_scale".into(), "F32", vec![], f32s(&[1.0])),
        ];
        let dir = checkpoint(config, &tensors);
        let checkpoint = Checkpoint::open(dir.path()).unwrap();
        assert_eq!(checkpoint.entries.len(), 1);
        let value = |at: usize| e4m3(codes[at]) * scales[place(at / 40, at % 40)];
        let expected: Vec<_> = (0..120).map(value).collect();
        assert_eq!(floats(&checkpoint, "a.weight"), expected, "{name} {shape:?}");
    }
}

#[test]
fn compressed_tensors_int8() {
    let (rows, columns, groups) = (4, 64, 2);
    let q = numbers(rows * columns, 256);
    let scales = scales(rows * groups);
    let zeros = [0i8, 3, -7, 0, 1, 2, -128, 127];
    let config = json!({ "quant_method": "compressed-tensors", "format": "int-quantized",
        "config_groups": { "group_0": { "weights": { "num_bits": 8 } } } });
    for with_zeros in [false, true] {
        let mut tensors = vec![
            Tensor("a.weight".into(), "I8", vec![4, 64], q.iter().map(|q| *q as u8).collect()),
            Tensor("a.weight_scale".into(), "F16", vec![4, 2], f16s(&scales)),
        ];
        if with_zeros {
            let zeros = zeros.iter().map(|zero| *zero as u8).collect();
            tensors.push(Tensor("a.weight_zero_point".into(), "I8", vec![4, 2], zeros));
        }
        let dir = checkpoint(&config, &tensors);
        let checkpoint = Checkpoint::open(dir.path()).unwrap();
        let value = |at: usize| {
            let group = at / columns * groups + at % columns / 32;
            let zero = if with_zeros { f32::from(zeros[group]) } else { 0.0 };
            scales[group] * (f32::from(q[at] as u8 as i8) - zero)
        };
        let expected: Vec<_> = (0..rows * columns).map(value).collect();
        assert_eq!(floats(&checkpoint, "a.weight"), expected);
        let ty = if with_zeros { TensorType::F32 } else { TensorType::Q8_0 };
        assert_eq!(checkpoint.entries[0].tensor_type, ty);
    }
}

#[test]
fn compressed_tensors_packed() {
    for (bits, with_zeros) in [(4usize, false), (4, true), (3, true), (8, false)] {
        let (rows, columns, groups) = (5usize, 64usize, 2usize);
        let per_word = 32 / bits;
        let q = numbers(rows * columns, 1 << bits);
        let zeros = numbers(rows * groups, 1 << bits);
        let scales = scales(rows * groups);
        let pack = |numbers: &[u32]| -> Vec<u32> {
            let word = |some: &[u32]| {
                some.iter().enumerate().fold(0, |word, (i, number)| word | number << (bits * i))
            };
            numbers.chunks(per_word).map(word).collect()
        };
        let packed: Vec<_> = q.chunks(columns).flat_map(pack).collect();
        let zero_columns: Vec<_> = (0..groups)
            .map(|group| {
                let column: Vec<_> = (0..rows).map(|row| zeros[row * groups + group]).collect();
                pack(&column)
            })
            .collect();
        let shape = [rows as u64, columns as u64].iter().flat_map(|n| n.to_le_bytes()).collect();
        let mut tensors = vec![
            Tensor(
                "a.weight_packed".into(),
                "I32",
                vec![rows as u64, columns.div_ceil(per_word) as u64],
                words(&packed),
            ),
            Tensor("a.weight_scale".into(), "F16", vec![5, 2], f16s(&scales)),
            Tensor("a.weight_shape".into(), "I64", vec![2], shape),
        ];
        if with_zeros {
            tensors.push(Tensor(
                "a.weight_zero_point".into(),
                "I32",
                vec![rows.div_ceil(per_word) as u64, 2],
                words(&transposed(&zero_columns)),
            ));
        }
        let config = json!({ "quant_method": "compressed-tensors", "format": "pack-quantized",
            "config_groups": { "group_0": { "weights": { "num_bits": bits } } } });
        let dir = checkpoint(&config, &tensors);
        let checkpoint = Checkpoint::open(dir.path()).unwrap();
        let value = |at: usize| {
            let group = at / columns * groups + at % columns / 32;
            let zero = if with_zeros { zeros[group] as i32 } else { 1 << (bits - 1) };
            scales[group] * (q[at] as i32 - zero) as f32
        };
        let expected: Vec<_> = (0..rows * columns).map(value).collect();
        assert_eq!(floats(&checkpoint, "a.weight"), expected, "{bits} bits");
        let ty = match (bits, with_zeros) {
            (8, _) => TensorType::Q8_0,
            (4, true) => TensorType::Q5_0,
            _ => TensorType::Q4_0,
        };
        assert_eq!(checkpoint.entries[0].tensor_type, ty, "{bits} bits");
    }
}

/// Values of NF4 (appendix of the QLoRA paper), as bitsandbytes stores them.
const NF4: [f32; 16] = [
    -1.0,
    -0.6961928,
    -0.52507305,
    -0.3949175,
    -0.28444138,
    -0.18477343,
    -0.091050036,
    0.0,
    0.0795803,
    0.1609302,
    0.2461123,
    0.33791524,
    0.44070983,
    0.562617,
    0.72295684,
    1.0,
];

#[test]
fn bitsandbytes_4_bit() {
    let (rows, columns, block) = (6usize, 50usize, 64usize);
    let codes = numbers(rows * columns, 16);
    let packed = codes.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect::<Vec<_>>();
    let blocks = (rows * columns).div_ceil(block);
    let config = json!({ "quant_method": "bitsandbytes", "load_in_4bit": true });
    for nested in [false, true] {
        let state = json!({ "quant_type": "nf4", "blocksize": block, "dtype": "bfloat16",
            "shape": [rows, columns], "nested_blocksize": 2, "nested_offset": 0.5,
            "nested_dtype": "float32" });
        let state = state.to_string().into_bytes();
        let name = |end: &str| format!("a.weight.{end}");
        let mut tensors = vec![
            Tensor("a.weight".into(), "U8", vec![packed.len() as u64, 1], packed.clone()),
            Tensor(name("quant_map"), "F32", vec![16], f32s(&NF4)),
            Tensor(name("quant_state.bitsandbytes__nf4"), "U8", vec![state.len() as u64], state),
        ];
        let map: Vec<f32> = (0..256).map(|i| (i as f32 - 100.0) / 77.0).collect();
        let outer = scales(blocks.div_ceil(2));
        let inner = numbers(blocks, 256);
        let absmax: Vec<f32> = match nested {
            true => (0..blocks).map(|i| map[inner[i] as usize] * outer[i / 2] + 0.5).collect(),
            false => scales(blocks),
        };
        let count = vec![blocks as u64];
        if nested {
            let inner = inner.iter().map(|code| *code as u8).collect();
            tensors.push(Tensor(name("absmax"), "U8", count, inner));
            let count = vec![outer.len() as u64];
            tensors.push(Tensor(name("nested_absmax"), "F32", count, f32s(&outer)));
            tensors.push(Tensor(name("nested_quant_map"), "F32", vec![256], f32s(&map)));
        } else {
            tensors.push(Tensor(name("absmax"), "F32", count, f32s(&absmax)));
        }
        let dir = checkpoint(&config, &tensors);
        let checkpoint = Checkpoint::open(dir.path()).unwrap();
        assert_eq!(checkpoint.entries.len(), 1);
        assert_eq!(checkpoint.entries[0].shape, [6, 50]);
        let value = |at: usize| NF4[codes[at] as usize] * absmax[at / block];
        let expected: Vec<_> = (0..rows * columns).map(value).collect();
        assert_eq!(floats(&checkpoint, "a.weight"), expected, "nested {nested}");
    }
}

#[test]
fn bitsandbytes_8_bit() {
    let q = numbers(3 * 10, 256);
    let scales = scales(3);
    let tensors = [
        Tensor("a.SCB".into(), "F32", vec![3], f32s(&scales)),
        Tensor("a.weight".into(), "I8", vec![3, 10], q.iter().map(|q| *q as u8).collect()),
        Tensor("a.weight_format".into(), "U8", vec![], vec![0]),
    ];
    let dir = checkpoint(&json!({ "quant_method": "bitsandbytes" }), &tensors);
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    assert_eq!(checkpoint.entries.len(), 1);
    let value = |at: usize| f32::from(q[at] as u8 as i8) * scales[at / 10] * 7.874_016e-3;
    let expected: Vec<_> = (0..30).map(value).collect();
    assert_eq!(floats(&checkpoint, "a.weight"), expected);
}

/// Values of E2M1 codes (OCP Microscaling Formats 1.0, 5.3.3).
const E2M1: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

#[test]
fn mxfp4_experts() {
    let codes = numbers(2 * 4 * 64, 16);
    let exponents: Vec<u8> = numbers(16, 40).iter().map(|e| (e + 100) as u8).collect();
    let blocks: Vec<u8> = codes.chunks(2).map(|pair| (pair[0] | pair[1] << 4) as u8).collect();
    let value =
        |at: usize| E2M1[codes[at] as usize] * 2f32.powi(i32::from(exponents[at / 32]) - 127);
    let expected: Vec<_> = (0..codes.len()).map(value).collect();
    let gpt_oss = [
        Tensor("a.down_proj_blocks".into(), "U8", vec![2, 4, 2, 16], blocks.clone()),
        Tensor("a.down_proj_scales".into(), "U8", vec![2, 4, 2], exponents.clone()),
    ];
    let compressed = [
        Tensor("a.weight_packed".into(), "U8", vec![8, 32], blocks),
        Tensor("a.weight_scale".into(), "U8", vec![8, 2], exponents.clone()),
    ];
    let other = json!({ "quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized" });
    for (config, tensors, name, shape) in [
        (json!({ "quant_method": "mxfp4" }), gpt_oss, "a.down_proj.weight", vec![2, 4, 64]),
        (other, compressed, "a.weight", vec![8, 64]),
    ] {
        let dir = checkpoint(&config, &tensors);
        let checkpoint = Checkpoint::open(dir.path()).unwrap();
        assert_eq!(checkpoint.entries[0].tensor_type, TensorType::MXFP4);
        assert_eq!(checkpoint.entries[0].shape, shape);
        assert_eq!(floats(&checkpoint, name), expected);
    }
}

#[test]
fn deepseek_fp8_with_power_of_two_scales() {
    let config = json!({ "quant_method": "fp8", "fmt": "e4m3", "scale_fmt": "ue8m0", "weight_block_size": [128, 128] });
    let (rows, columns) = (160, 64);
    let eights: Vec<u8> = numbers(rows * columns, 0x7f).iter().map(|code| *code as u8).collect();
    let codes = numbers(8 * 64, 16);
    let blocks: Vec<u8> = codes.chunks(2).map(|pair| (pair[0] | pair[1] << 4) as u8).collect();
    let exponents: Vec<u8> = numbers(16, 40).iter().map(|e| (e + 100) as u8).collect();
    let tensors = [
        Tensor("a.weight".into(), "F8_E4M3", vec![rows as u64, columns as u64], eights.clone()),
        Tensor("a.scale".into(), "F8_E8M0", vec![2, 1], vec![120, 125]),
        Tensor("b.weight".into(), "I8", vec![8, 32], blocks),
        Tensor("b.scale".into(), "F8_E8M0", vec![8, 2], exponents.clone()),
        // Scales that are not powers of two.
        Tensor("c.weight".into(), "I8", vec![2, 2], vec![1; 4]),
        Tensor("c.scale".into(), "F32", vec![1], f32s(&[2.0])),
    ];
    let dir = checkpoint(&config, &tensors);
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    let entries = checkpoint.entries.iter();
    let found: Vec<_> =
        entries.map(|entry| (entry.name.as_str(), entry.tensor_type, entry.is_fp8)).collect();
    let expected = [
        ("a.weight", TensorType::F32, true),
        ("b.weight", TensorType::MXFP4, false),
        ("c.scale", TensorType::F32, false),
        ("c.weight", TensorType::I8, false),
    ];
    assert_eq!(found, expected);
    let scale = |at: usize| 2f32.powi(if at / columns < 128 { 120 - 127 } else { 125 - 127 });
    let of_eights = (0..eights.len()).map(|at| e4m3(eights[at].into()) * scale(at));
    assert_eq!(floats(&checkpoint, "a.weight"), of_eights.collect::<Vec<_>>());
    let of_blocks = (0..codes.len())
        .map(|at| E2M1[codes[at] as usize] * 2f32.powi(i32::from(exponents[at / 32]) - 127));
    assert_eq!(floats(&checkpoint, "b.weight"), of_blocks.collect::<Vec<_>>());
}

#[test]
fn nvfp4_of_modelopt_and_compressed_tensors() {
    let codes = numbers(4 * 64, 16);
    let scale_codes = numbers(16, 0x7f);
    let packed: Vec<u8> = codes.chunks(2).map(|pair| (pair[0] | pair[1] << 4) as u8).collect();
    let scale_bytes: Vec<u8> = scale_codes.iter().map(|code| *code as u8).collect();
    let other = json!({ "quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized" });
    let modelopt = json!({ "quant_method": "modelopt", "quant_algo": "NVFP4" });
    for (global, ty) in [(1.0, TensorType::NVFP4), (0.0123, TensorType::F32)] {
        for (config, weight, global_name, divides) in [
            (&modelopt, "a.weight", "a.weight_scale_2", false),
            (&other, "a.weight_packed", "a.weight_global_scale", true),
        ] {
            let tensors = [
                Tensor("a.input_scale".into(), "F32", vec![], f32s(&[3.0])),
                Tensor(weight.into(), "U8", vec![4, 32], packed.clone()),
                Tensor("a.weight_scale".into(), "F8_E4M3", vec![4, 4], scale_bytes.clone()),
                Tensor(global_name.into(), "F32", vec![], f32s(&[global])),
            ];
            let dir = checkpoint(config, &tensors);
            let checkpoint = Checkpoint::open(dir.path()).unwrap();
            assert_eq!(checkpoint.entries.len(), 1);
            assert_eq!(checkpoint.entries[0].tensor_type, ty);
            let scale = |group: usize| match divides {
                true => e4m3(scale_codes[group]) / global,
                false => e4m3(scale_codes[group]) * global,
            };
            let value = |at: usize| E2M1[codes[at] as usize] * scale(at / 16);
            let expected: Vec<_> = (0..codes.len()).map(value).collect();
            assert_eq!(floats(&checkpoint, "a.weight"), expected, "{global} {divides}");
        }
    }
}

#[test]
fn mlx_with_every_bit_width() {
    for bits in [2, 3, 4, 5, 6, 8] {
        // `b` is a stack of matrices with its own bit width.
        let q = numbers(INPUTS * OUTPUTS, 1 << bits);
        let (scales, biases) = (scales(GROUPS * OUTPUTS), scales(2 * GROUPS * OUTPUTS));
        let biases: Vec<_> = biases[GROUPS * OUTPUTS..].iter().map(|x| -x * 8.0).collect();
        let rows: Vec<_> =
            q.chunks(INPUTS).flat_map(|row| stream(row.iter().copied(), bits)).collect();
        let (outputs, packed) = (OUTPUTS as u64, (INPUTS * bits / 32) as u64);
        let tensors = [
            Tensor("a.biases".into(), "F16", vec![outputs, GROUPS as u64], f16s(&biases)),
            Tensor("a.scales".into(), "F16", vec![outputs, GROUPS as u64], f16s(&scales)),
            Tensor("a.weight".into(), "U32", vec![outputs, packed], words(&rows)),
            Tensor("b.biases".into(), "F32", vec![1, 2, 1], f32s(&[0.1, -1.0])),
            Tensor("b.scales".into(), "F32", vec![1, 2, 1], f32s(&[0.3, 2.0])),
            // The numbers 0 to 7 with three bits each, repeated.
            Tensor("b.weight".into(), "U32", vec![1, 2, 3], [0x88, 0xc6, 0xfa].repeat(8)),
            Tensor("c.weight".into(), "F16", vec![1], f16s(&[1.0])),
        ];
        let own = json!({ "bits": 3, "group_size": 32 });
        let fields = json!({
            "bits": bits, "group_size": INPUTS / GROUPS, "mode": "affine", "b": own, "c": false
        });
        let dir = checkpoint(&fields, &tensors);
        // Newer files have only MLX's own field.
        let config = json!({ "quantization": fields }).to_string();
        for rewritten in [false, true] {
            if rewritten {
                std::fs::write(dir.path().join("config.json"), &config).unwrap();
            }
            let checkpoint = Checkpoint::open(dir.path()).unwrap();
            let found = |i: usize| {
                let entry = &checkpoint.entries[i];
                (entry.name.as_str(), &entry.shape[..], entry.tensor_type)
            };
            let ty = match bits {
                2..=4 => TensorType::Q4_1,
                5 => TensorType::Q5_1,
                _ => TensorType::F32,
            };
            assert_eq!(found(0), ("a.weight", &[outputs, INPUTS as u64][..], ty), "{bits} bits");
            assert_eq!(found(1), ("b.weight", &[1, 2, 32][..], TensorType::F32));
            assert_eq!(found(2), ("c.weight", &[1][..], TensorType::F16));
            let expected = q.iter().enumerate().map(|(at, q)| {
                let group = at / (INPUTS / GROUPS);
                scales[group] * *q as f32 + biases[group]
            });
            assert_eq!(floats(&checkpoint, "a.weight"), expected.collect::<Vec<_>>(), "{bits}");
            let expected = (0..64).map(|at| match at / 32 {
                0 => 0.3 * (at % 8) as f32 + 0.1,
                _ => 2.0 * (at % 8) as f32 - 1.0,
            });
            assert_eq!(floats(&checkpoint, "b.weight"), expected.collect::<Vec<_>>());
        }
    }
}

#[test]
fn mlx_that_contradicts_its_configuration_fails() {
    let part = |name: &str, dtype, columns: u64, bytes| {
        Tensor(format!("a.{name}"), dtype, vec![2, columns], vec![0; 2 * columns as usize * bytes])
    };
    let weight = |words| part("weight", "U32", words, 4);
    let f16 = |name, groups| part(name, "F16", groups, 2);
    let cases = [
        (vec![weight(8), f16("scales", 1)], "has no `a.biases`"),
        (vec![weight(8), f16("biases", 1)], "has no `a.scales`"),
        (vec![weight(8), f16("scales", 2), f16("biases", 1)], "`a.scales` of shape [2, 2]"),
        (vec![weight(8), f16("scales", 1), f16("biases", 2)], "`a.biases` of shape [2, 2]"),
        (vec![weight(7), f16("scales", 1), f16("biases", 1)], "groups of 64 values of 4 bits"),
        (vec![part("weight", "I32", 8, 4), f16("scales", 1)], "not packed into U32"),
    ];
    for (tensors, part) in cases {
        let dir = checkpoint(&json!({ "bits": 4, "group_size": 64 }), &tensors);
        let message = Checkpoint::open(dir.path()).unwrap_err().to_string();
        for part in [part, "model.safetensors", "a.weight", "config.json"] {
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }
}

#[test]
fn inconsistent_tensors_fail() {
    let qweight = || Tensor("a.qweight".into(), "I32", vec![8, 32], vec![0; 1024]);
    let qzeros = || Tensor("a.qzeros".into(), "I32", vec![2, 4], vec![0; 32]);
    let scales = |n: u64| Tensor("a.scales".into(), "F16", vec![2, n], vec![0; 4 * n as usize]);
    let indices = |g: u32| Tensor("a.g_idx".into(), "I32", vec![64], words(&[g; 64]));
    let config = json!({ "quant_method": "gptq", "bits": 4 });
    let cases = [
        (vec![qweight(), scales(32)], "has no `a.qzeros`"),
        (vec![qweight(), qzeros(), scales(16), indices(0)], "different shapes"),
        (vec![qweight(), qzeros(), scales(32), indices(2)], "groups without scales"),
    ];
    for (tensors, part) in cases {
        let dir = checkpoint(&config, &tensors);
        let message = Checkpoint::open(dir.path()).unwrap_err().to_string();
        for part in [part, "model.safetensors", "a.qweight", "config.json"] {
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }
}

#[test]
fn unknown_methods_fail_by_name() {
    let cases = [
        (json!({ "quant_method": "quanto" }), "`quanto`"),
        (json!({ "quant_method": "awq", "version": "gemv_fast" }), "AWQ `gemv_fast`"),
        (json!({ "quant_method": "awq", "version": "gemv" }), "`group_size` is missing"),
        (json!({ "quant_method": "gptq", "checkpoint_format": "bitblas" }), "`bitblas`"),
        (json!({ "quant_method": "compressed-tensors", "format": "marlin-24" }), "`marlin-24`"),
        (json!({ "group_size": 32, "bits": 4, "mode": "mxfp4" }), "MLX in the mode `mxfp4`"),
        (json!({ "group_size": 32, "bits": 7 }), "7 bits per weight"),
        (json!({ "group_size": 0, "bits": 4 }), "groups of 0 columns"),
        (json!({ "group_size": 32 }), "no MLX field `bits`"),
        (json!({ "group_size": "x", "bits": 4 }), "`group_size` of \"x\""),
        (
            json!({ "group_size": 32, "bits": 4, "up": { "mode": "nvfp4" } }),
            "module `up` is quantized by MLX in the mode `nvfp4`",
        ),
    ];
    for (config, part) in cases {
        let dir = checkpoint(&config, &[]);
        let message = Checkpoint::open(dir.path()).unwrap_err().to_string();
        assert!(message.contains(part) && message.contains("use "), "{message}");
    }
}

/// Unquantized weights keep their bytes. Types that GGUF lacks are widened.
#[test]
fn types_unknown_to_gguf_are_widened() {
    let dir = checkpoint(
        &Value::Null,
        &[
            Tensor("bool".into(), "BOOL", vec![2], vec![0, 1]),
            Tensor("byte".into(), "U8", vec![2], vec![0, 255]),
            Tensor("eight".into(), "F8_E5M2", vec![1], vec![0x3d]),
        ],
    );
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    let read = |i: usize| {
        let entry = &checkpoint.entries[i];
        (entry.tensor_type, bytes(&checkpoint, entry))
    };
    assert_eq!(read(0), (TensorType::I8, vec![0, 1]));
    assert_eq!(read(1), (TensorType::I16, vec![0, 0, 255, 0]));
    assert_eq!(read(2), (TensorType::F16, f16::from_f32(1.25).to_le_bytes().to_vec()));
}
