//! Fuzz property of chat templates.

use gguf_tokenizer::template::{Context, Template};
use serde_json::json;

/// Parses and renders templates within their limits, or rejects them. Returns whether the template
/// is valid.
pub fn render(bytes: &[u8]) -> bool {
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
