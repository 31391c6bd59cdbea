//! Answers of a hub to uploads: every repository is empty, the storage has all bytes, and each commit is taken.

use serde_json::{Value, json};

use crate::server::{Reply, Request};

pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// Answers a request of an upload; `None` for other requests.
pub fn answer(request: &Request) -> Option<Reply> {
    let path = request.path.split('?').next()?;
    let words: Vec<_> = path.trim_start_matches('/').split('/').collect();
    let value = match words[..] {
        ["api", "repos", "create"] => json!({}),
        ["api", "models", _, _, "revision", _] => json!({ "sha": COMMIT }),
        ["api", "models", _, _, "tree", COMMIT] => json!([]),
        ["api", "models", _, _, "preupload", _] => json!({ "files": [] }),
        ["api", "models", _, _, "commit", _] => json!({ "commitOid": COMMIT }),
        [.., "objects", "batch"] => {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let objects = body["objects"].as_array().unwrap().iter();
            json!({ "objects": objects.map(|object| json!({ "oid": object["oid"] })).collect::<Vec<_>>() })
        }
        _ => return None,
    };
    Some(Reply::whole(value.to_string().as_bytes()))
}
