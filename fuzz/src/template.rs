//! What must hold for any bytes taken as a chat template.

use gguf_tokenizer::{Context, Template};
use serde_json::json;

/// Templates are read and rendered within their limits, or refused. Returns whether it is one.
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
