//! Arguments of the flags that the programs of llama.cpp share, for `gguf`.

use gguf_runtime::CacheType;

use super::arguments::Arguments;
use crate::failure::Failure;

/// Returns the model location for `gguf`.
pub fn model(arguments: &Arguments) -> Result<String, Failure> {
    let hub = |repository: &str| {
        let file = arguments.value("--hf-file");
        match file {
            Some(file) => {
                let repository = repository.split(':').next().unwrap_or_default();
                format!("hf:{repository}:{file}")
            }
            None => format!("hf:{repository}"),
        }
    };
    let local = arguments.value("--model").or(arguments.value("--model-url")).map(str::to_owned);
    local
        .or(arguments.value("--hf-repo").map(hub))
        .ok_or_else(|| Failure::Usage("the model is missing: use -m".to_owned()))
}

/// Translates flags of [`RUN`](super::shared_flags::RUN) whose values have another syntax in `gguf`.
pub fn run_flags(arguments: &Arguments) -> Result<Vec<String>, Failure> {
    let mut flags = Vec::new();
    if let Some(threads @ 1..) = arguments.number::<i64>("--threads")? {
        flags.push(format!("--threads={threads}"));
    }
    for names in arguments.all("--lora").map(|values| &values[0]) {
        flags.extend(names.split(',').map(|name| format!("--lora={name}:1")));
    }
    for names in arguments.all("--lora-scaled").map(|values| &values[0]) {
        flags.extend(names.split(',').map(|name| format!("--lora={name}")));
    }
    if let Some(kind) = cache_type(arguments)? {
        flags.push(format!("--cache-type={}", kind.name()));
    }
    Ok(flags)
}

/// Returns the type of the KV cache, if given.
pub fn cache_type(arguments: &Arguments) -> Result<Option<CacheType>, Failure> {
    let (keys, values) = (arguments.value("--cache-type-k"), arguments.value("--cache-type-v"));
    match (keys, values) {
        (None, None) => Ok(None),
        (keys, values) => {
            let (keys, values) = (keys.unwrap_or("f16"), values.unwrap_or("f16"));
            match CacheType::from_name(keys).filter(|_| keys == values) {
                Some(ty) => Ok(Some(ty)),
                None => {
                    let names = CacheType::ALL.map(CacheType::name).join(", ");
                    Err(Failure::Usage(format!(
                        "-ctk {keys} -ctv {values}: keys and values must have the same type: {names}"
                    )))
                }
            }
        }
    }
}

/// Returns the text file, if given.
pub fn text(arguments: &Arguments) -> Option<&str> {
    arguments.value("--file").or(arguments.value("--binary-file"))
}
