//! Templates and vocabularies of the reference data: no finding but information.

use std::fs;
use std::path::{Path, PathBuf};

use gguf_scan::scan_directory;
use gguf_tokenizer::template::Renderer;

use crate::{CHATML, codes, metadata, scan};

fn data() -> Option<PathBuf> {
    let data = std::env::var_os("GGUF_TEST_DATA").map(PathBuf::from);
    if data.is_none() {
        eprintln!("SKIPPED: GGUF_TEST_DATA does not name the reference data");
    }
    data
}

#[test]
fn ordinary_templates_have_no_findings() {
    for template in [
        CHATML,
        // A default system prompt, multimodal content, a date, and a switch for reasoning.
        "{% if messages[0].role != 'system' %}<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}\
         {% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}\
         {% for part in m.content %}{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}{% endfor %}\
         {% endif %}<|im_end|>\n{% endfor %}",
        "{% set date = strftime_now('%d %B %Y') %}Today is {{ date }}. {% for m in messages %}{{ m.content }}{% endfor %}",
        "{% for m in messages %}{% set c = m.content %}{% if '</think>' in c %}{% set c = c.split('</think>')[-1] %}\
         {% endif %}{% if c.startswith('<tool_response>') %}{{ c }}{% else %}{{ c|trim }}{% endif %}{% endfor %}",
        // Words of its own text in short messages and in strings of the template.
        "Analyze and prioritize. {% if tools %}{% for t in tools %}{{ t['description'] }}{% endfor %}{% endif %}\
         <role_description>descriptions</role_description>{% for m in messages %}{{ m.role ~ m['content'] }}{% endfor %}",
    ] {
        assert_eq!(scan(&metadata(template)), [], "{template}");
    }
}

#[test]
fn vocabularies_have_no_findings() {
    let Some(data) = data() else { return };
    let vocabularies = fs::read_dir(data.join("vocab")).unwrap().map(|entry| entry.unwrap().path());
    for path in vocabularies.filter(|path| path.extension().is_some_and(|name| name == "gguf")) {
        let bytes = gguf::Bytes::from(fs::read(&path).unwrap());
        let file = gguf::Gguf::read(&bytes).unwrap();
        assert_eq!(codes(&scan(file.metadata())), [""; 0], "{}", path.display());
    }
}

#[test]
fn checkpoints_have_no_findings() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/Tiny-KJV-Llama-4M");
    assert_eq!(scan_directory(&model, &Renderer::in_process()).unwrap(), []);
    let Some(data) = data() else { return };
    for entry in fs::read_dir(data.join("zoo")).unwrap() {
        let path = entry.unwrap().path();
        if gguf_scan::is_checkpoint(&path) {
            let found = scan_directory(&path, &Renderer::in_process()).unwrap();
            assert_eq!(codes(&found), [""; 0], "{}: {found:?}", path.display());
        }
    }
}
