//! Writes the seeds of the fuzz targets; seeds of fixed bugs are not overwritten. Usage: `cargo run
//! --example make_seeds` in `fuzz/`.

use std::path::Path;

use gguf_store::edit::Journal;
use gguf::{Array, ByteOrder, RawHeader, Header, Shape, TensorInfo, TensorType, Value, write_header};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let save = |name: &str, bytes: &[u8]| std::fs::write(seeds.join(name), bytes);

    let all = file(every_value_type(), &[TensorType::F32, TensorType::Q4_0]);
    let model = file(model(), &[TensorType::F16, TensorType::Q8_0, TensorType::Q4_K]);
    save("values.gguf", &encoded(&all, 3, ByteOrder::Little)?)?;
    save("values-be.gguf", &encoded(&all, 3, ByteOrder::Big)?)?;
    save("values-v2.gguf", &encoded(&all, 2, ByteOrder::Little)?)?;
    save("values-v1.gguf", &encoded(&all, 1, ByteOrder::Little)?)?;
    save("model.gguf", &encoded(&model, 3, ByteOrder::Little)?)?;
    let mut reserved = model.clone();
    reserved.metadata.set("gguf_kit.reserve", Array::from(&[0u8; 300][..]));
    save("reserve.gguf", &encoded(&reserved, 3, ByteOrder::Little)?)?;
    let bare = encoded(&file(RawHeader::default(), &[]), 3, ByteOrder::Little)?;
    save("empty.gguf", &bare)?;
    save("unpadded.gguf", &bare[..24])?;
    let mut aligned = file(every_value_type(), &[TensorType::I8]);
    aligned.metadata.set("general.alignment", 8u32);
    save("aligned-8.gguf", &encoded(&aligned, 3, ByteOrder::Little)?)?;

    // Common faults of files.
    let whole = encoded(&all, 3, ByteOrder::Little)?;
    save("cut.gguf", &whole[..whole.len() * 2 / 3])?;
    for (name, at, forged) in [
        ("forged-tensors.gguf", 8, u64::MAX),
        ("forged-keys.gguf", 16, 1 << 40),
        ("forged-key-length.gguf", 24, u64::MAX - 7),
    ] {
        let mut bytes = whole.clone();
        bytes[at..at + 8].copy_from_slice(&forged.to_le_bytes());
        save(name, &bytes)?;
    }
    let mut nested =
        b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0k".to_vec();
    for _ in 0..10 {
        nested.extend_from_slice(b"\x09\0\0\0\x01\0\0\0\0\0\0\0");
    }
    save("nested-too-deep.gguf", &nested)?;

    // Checkpoints.
    save("weights.safetensors", &safetensors())?;
    save("weights-zip.bin", &pytorch_zip()?)?;
    save("weights-stream.bin", &pytorch_stream())?;
    save("pickle.pkl", &state_dict("N"))?;
    save("header.json", SAFETENSORS.as_bytes())?;
    save("index.json", br#"{"metadata":{},"weight_map":{"a":"x","b":"x"}}"#)?;

    // Tokenizers and templates.
    save("tokenizer-bpe.json", BPE.as_bytes())?;
    save("tokenizer-unigram.json", UNIGRAM.as_bytes())?;
    save("tokenizer-pieces.json", WORD_PIECE.as_bytes())?;
    save("tokenizer.model", &sentencepiece())?;
    save("template.jinja", TEMPLATE.as_bytes())?;

    // Legacy models, an interrupted edit, HTTP responses.
    save("legacy-llama.bin", &legacy())?;
    save("journal.bin", &journal())?;
    save("http.txt", HTTP.as_bytes())?;
    save("http-listing.txt", LISTING.as_bytes())?;
    Ok(())
}

/// Returns two tensors, one of a type that is converted to a wider one.
fn safetensors() -> Vec<u8> {
    let len = (SAFETENSORS.len() as u64).to_le_bytes();
    [&len, SAFETENSORS.as_bytes(), &[0; 10]].concat()
}

const SAFETENSORS: &str = r#"{"a":{"dtype":"F16","shape":[2,2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[2],"data_offsets":[8,10]}}"#;

const BPE: &str = r#"{"added_tokens":[{"id":6,"content":"<s>","special":true,"normalized":false},{"id":7,"content":"<pad>"}],"normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],"pair":[]},"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"H":0,"e":1,"l":2,"o":3,"He":4,"ll":5},"merges":["H e",["l","l"]]}}"#;

const UNIGRAM: &str = r#"{"normalizer":{"type":"Precompiled","precompiled_charsmap":""},"pre_tokenizer":{"type":"Metaspace","prepend_scheme":"always"},"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["</s>",0],["a",-1.5],["He",-2],["llo",-3],["\u2581",-4]]}}"#;

const WORD_PIECE: &str = r###"{"normalizer":{"type":"BertNormalizer","lowercase":true,"strip_accents":null},"pre_tokenizer":{"type":"BertPreTokenizer"},"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2,"hello":3,"world":4,"##s":5}}}"###;

/// Returns fields of `ModelProto`: pieces with text, score and type, the trainer, the normalizer.
fn sentencepiece() -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
    let piece = |text: &str, score: f32, kind: u8| {
        field(
            1,
            &[&field(1, text.as_bytes())[..], b"\x15", &score.to_le_bytes(), b"\x18", &[kind]]
                .concat(),
        )
    };
    let mut model =
        [piece("<unk>", 0.0, 2), piece("<s>", 0.0, 3), piece("<0x0A>", 0.0, 6)].concat();
    model.extend([piece("\u{2581}", -1.0, 1), piece("He", -2.0, 1), piece("H", -3.0, 4)].concat());
    model.extend(field(2, b"\x18\x01"));
    model.extend([field(3, &[&field(2, b"")[..], b"\x18\x01\x20\x00"].concat())].concat());
    model
}

const TEMPLATE: &str = "{%- for m in messages if m.content is string %}{{ '<|' + m['role'] + '|>' }}\n{{ m.content | trim }}{% set ns = namespace(n=loop.index0) %}{%- endfor -%}{% macro f(x) %}{{ x | tojson }}{% endmacro %}{{ f(tools) if tools else raise_exception('none') }}{% for k, v in messages[0].items() %}{{ k.split('o')[-1] ~ v[::-1] }}{% endfor %}";

/// Returns a GGJT file of Llama with four tokens and one tensor.
fn legacy() -> Vec<u8> {
    let mut file = Vec::new();
    let numbers = |file: &mut Vec<u8>, numbers: &[u32]| {
        numbers.iter().for_each(|number| file.extend(number.to_le_bytes()));
    };
    numbers(&mut file, &[0x6767_6a74, 1, 4, 8, 256, 1, 1, 8, 0]);
    for text in [&b" \xe2\x81\x87 "[..], b"", b"", b" a"] {
        numbers(&mut file, &[text.len() as u32]);
        file.extend(text);
        numbers(&mut file, &[0]);
    }
    numbers(&mut file, &[2, 21, 0, 8, 4]);
    file.extend(b"tok_embeddings.weight");
    file.resize(file.len().next_multiple_of(32) + 8 * 4 * 4, 0);
    file
}

/// Returns a model with a partly overwritten header, and the journal of that edit.
fn journal() -> Vec<u8> {
    let header = |name: &str| {
        let mut header = RawHeader::default();
        header.metadata.set("general.architecture", "llama");
        header.metadata.set("general.name", name);
        write_header(&Header::new(header).unwrap()).unwrap()
    };
    let (old, new) = (header("the old name"), header("THE NEW NAME"));
    let present = [&new[..old.len() - 24], &old[old.len() - 24..]].concat();
    let journal = Journal { inode: 0, len: old.len() as u64, modified: 0, old, new };
    [present, journal.encode()].concat()
}

const HTTP: &str = "HTTP/1.1 302 Found\r\nLocation: x\r\nContent-Length: 0\r\n\r\n\n--\nHTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n\n--\nHTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-3/4\r\nContent-Length: 4\r\nETag: \"e\"\r\nConnection: close\r\n\r\nGGUF";

const LISTING: &str = "HTTP/1.1 200 OK\r\nLink: <?cursor=1>; rel=\"next\"\r\nConnection: close\r\n\r\n[{\"type\":\"file\",\"path\":\"m.gguf\"}]\n--\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]";

/// Returns a pickle of a state dict with a transposed tensor of two rows and three columns; `view`
/// is the view metadata of old files.
fn state_dict(view: &str) -> Vec<u8> {
    let mut pickle = b"\x80\x02ccollections\nOrderedDict\n)R(X\x01\0\0\0a".to_vec();
    pickle.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storage");
    pickle.extend(b"ctorch\nHalfStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x06");
    pickle.extend(view.as_bytes());
    pickle.extend(b"tQK\0K\x03K\x02\x86K\x01K\x03\x86\x89ccollections\nOrderedDict\n)RtRu.");
    pickle
}

fn pytorch_zip() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in [("a/data.pkl", state_dict("")), ("a/data/0", vec![1; 12])] {
        zip.start_file(name, stored)?;
        std::io::Write::write_all(&mut zip, &bytes)?;
    }
    Ok(zip.finish()?.into_inner())
}

fn pytorch_stream() -> Vec<u8> {
    let magic = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";
    let (version, machine, keys) =
        (b"\x80\x02M\xe9\x03.", b"\x80\x02}.", b"\x80\x02]X\x01\0\0\x000a.");
    let count = 6u64.to_le_bytes();
    [&magic[..], version, machine, &state_dict("N"), keys, &count, &[1; 12]].concat()
}

/// Returns a key of every value type, and arrays of each kind of encoding.
fn every_value_type() -> RawHeader {
    let mut header = RawHeader::default();
    let metadata = &mut header.metadata;
    metadata.push("general.architecture", "other");
    metadata.push("v.u8", 1u8);
    metadata.push("v.i8", -1i8);
    metadata.push("v.u16", 2u16);
    metadata.push("v.i16", -2i16);
    metadata.push("v.u32", 3u32);
    metadata.push("v.i32", -3i32);
    metadata.push("v.u64", 4u64);
    metadata.push("v.i64", -4i64);
    metadata.push("v.f32", 0.5f32);
    metadata.push("v.f64", f64::NAN);
    metadata.push("v.bool", true);
    metadata.push("v.bytes", Value::String(b"\xff\0".to_vec().into()));
    metadata.push("a.u16", Array::from(&[1u16, 2, 3][..]));
    metadata.push("a.bool", Array::from(&[true, false][..]));
    metadata.push("a.text", Array::from_strings(["one", "", "three"]));
    metadata.push("a.none", Array::from(&[] as &[u64]));
    header
}

/// Returns the keys of a small model that the rules on values check.
fn model() -> RawHeader {
    let mut header = RawHeader::default();
    let metadata = &mut header.metadata;
    metadata.push("general.architecture", "llama");
    metadata.push("general.file_type", 7u32);
    metadata.push("general.quantization_version", 2u32);
    metadata.push("llama.block_count", 1u32);
    metadata.push("llama.context_length", 8u32);
    metadata.push("llama.embedding_length", 256u32);
    metadata.push("llama.attention.head_count", 2u32);
    metadata.push("tokenizer.ggml.model", "llama");
    metadata.push("tokenizer.ggml.tokens", Array::from_strings(["<unk>", "<s>", "<0x0A>", "a"]));
    metadata.push("tokenizer.ggml.scores", Array::from(&[0.0f32, 0.0, -1.0, -2.0][..]));
    metadata.push("tokenizer.ggml.token_type", Array::from(&[2i32, 3, 6, 1][..]));
    metadata.push("tokenizer.ggml.bos_token_id", 1u32);
    metadata.push("tokenizer.ggml.merges", Array::from_strings(["a a"]));
    metadata.push("tokenizer.chat_template", "{{ messages }}");
    metadata.push("split.no", 0u16);
    metadata.push("split.count", 1u16);
    header
}

/// Returns the header with one row of one block per type.
fn file(mut header: RawHeader, types: &[TensorType]) -> RawHeader {
    for (i, &tensor_type) in types.iter().enumerate() {
        let (elements, _) = tensor_type.block().unwrap_or((1, 1));
        header.tensors.push(TensorInfo {
            name: format!("blk.{i}.attn_q.weight").into(),
            shape: Shape::new(&[elements, 2]).unwrap_or_else(|| unreachable!()),
            tensor_type,
            offset: 0, opaque_len: None });
    }
    header
}

/// Returns a whole file with data that count up.
fn encoded(header: &RawHeader, version: u32, order: ByteOrder) -> Result<Vec<u8>, gguf::Error> {
    let mut header = RawHeader { version, order, ..header.clone() };
    let len = header.lay_out()?;
    let mut bytes = write_header(&Header::new(header)?)?;
    bytes.extend((0..len).map(|i| i as u8));
    Ok(bytes)
}
