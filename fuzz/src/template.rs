//! What must hold for any bytes taken as a chat template.

use std::panic;
use std::sync::Once;

use gguf_tokenizer::template::{Context, Template};
use serde_json::json;

/// Templates are read and rendered within their limits, or refused. Returns whether it is one.
pub fn render(bytes: &[u8]) -> bool {
    forgive_the_engine();
    let Ok(text) = str::from_utf8(bytes) else { return false };
    let Ok(template) = Template::new(text) else { return false };
    let mut context = Context::new(json!([
        { "role": "system", "content": "be brief" },
        { "role": "user", "content": "hello" },
        { "role": "assistant", "content": "", "tool_calls": [
            { "type": "function", "function": { "name": "f", "arguments": { "x": [1, 2.5] } } },
        ] },
    ]));
    context.tools = json!([{ "type": "function", "function": { "name": "f" } }]);
    if let Err(error) = template.render(&context) {
        let _ = error.to_string();
    }
    true
}

/// A panic within the engine is an error to who renders, as in `''[::-1]`: it ends the thread of the
/// rendering only. Any other panic is a finding.
fn forgive_the_engine() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !info.location().is_some_and(|place| place.file().contains("/minijinja")) {
                usual(info);
            }
        }));
    });
}
