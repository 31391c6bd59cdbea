//! Modules of `sentence-transformers` after the transformer: pooling and dense layers.

use std::path::PathBuf;

use gguf::Error;
use gguf_checkpoint::config::Config;
use gguf_checkpoint::modules;
use gguf_checkpoint::modules::Module;
use gguf_store::Model;
use serde_json::{Map, Value, json};

use crate::convert::Mapping;
use crate::convert::export::count;
use crate::convert::keys::Keys;
use crate::schema::key;

/// Sets the pooling type, if the module files beside `config.json` give it.
pub fn pooling_key(keys: &mut Keys, config: &Config) -> Result<(), Error> {
    keys.set_u32(key::POOLING_TYPE, pooling(config)?);
    Ok(())
}

/// Sets the pooling type of the classifier, if `config.json` gives it.
pub fn classifier_pooling_key(keys: &mut Keys, config: &Config) {
    let stated = config.find(&["classifier_pooling"]).and_then(|(_, kind)| kind.as_str());
    let kind = KINDS.iter().find(|(_, mode, _)| stated == Some(mode));
    keys.set_u32(key::CLASSIFIER_POOLING_TYPE, kind.map(|(_, _, number)| *number));
}

/// Returns the value of `classifier_pooling` in `config.json` that leads to the key of the model.
pub fn classifier_pooling(model: &Model) -> Option<&'static str> {
    let stated = count(model, key::CLASSIFIER_POOLING_TYPE)?;
    KINDS.iter().find(|(_, _, number)| u64::from(*number) == stated).map(|(_, mode, _)| *mode)
}

/// Kinds of pooling: the field, its value in newer files, the number in the key.
const KINDS: [(&str, &str, u32); 3] = [
    ("pooling_mode_mean_tokens", "mean", 1),
    ("pooling_mode_cls_token", "cls", 2),
    ("pooling_mode_lasttoken", "lasttoken", 3),
];

/// The kind of pooling that `modules.json` (of `sentence-transformers`) leads to, numbered as in
/// the key.
fn pooling(config: &Config) -> Result<Option<u32>, Error> {
    let modules = modules(config)?;
    let Some(module) = modules.iter().find(|module| module.is("Pooling")) else { return Ok(None) };
    let (fields, path) = fields_of(config, module)?;
    let chosen = KINDS.iter().find(|(flag, _, _)| fields[flag] == true);
    let chosen =
        chosen.or_else(|| KINDS.iter().find(|(_, mode, _)| fields["pooling_mode"] == *mode));
    chosen.map(|&(_, _, number)| Some(number)).ok_or_else(|| {
        let what = "has a pooling other than mean, cls and lasttoken";
        Error::input(
            "config-unsupported",
            &path,
            what,
            "remove `modules.json` to convert the model without a pooling type",
        )
    })
}

/// The modules beside the configuration.
pub fn modules(config: &Config) -> Result<Vec<Module>, Error> {
    let list = config.file(modules::FILE)?.unwrap_or_default();
    Ok(Module::from_list(&list, &config.path().with_file_name(modules::FILE)))
}

/// The configuration of a module, and where it stands.
pub fn fields_of(config: &Config, module: &Module) -> Result<(Value, PathBuf), Error> {
    let file = format!("{}/config.json", module.folder()?);
    let path = config.path().with_file_name(&file);
    let fields = config.file(&file)?.ok_or_else(|| {
        let help = "download the directory of the module";
        Error::input("config-missing", &path, "is not there, though `modules.json` names it", help)
    })?;
    Ok((fields, path))
}

/// The matrices that a GGUF has a place for: their configurations, and their names in it.
const DENSE: [(&str, &str); 2] =
    [("2_Dense/config.json", "dense_2"), ("3_Dense/config.json", "dense_3")];

fn folder(file: &str) -> &str {
    file.split('/').next().unwrap_or_default()
}

/// The widths of the matrices behind the pooling.
///
/// # Errors
/// If a module does more than a product, which no key can say, or stands in another folder.
pub fn dense_keys(keys: &mut Keys, config: &Config) -> Result<(), Error> {
    for module in modules(config)?.iter().filter(|module| module.is("Dense")) {
        let (fields, path) = fields_of(config, module)?;
        let refused = |what: &str| {
            let help = "remove the module from `modules.json` to convert the model without it";
            Error::input("config-unsupported", &path, what, help)
        };
        let wanted = module.folder()?;
        let Some((_, ours)) = DENSE.iter().find(|(file, _)| folder(file) == wanted) else {
            return Err(refused("is a dense layer that GGUF cannot store"));
        };
        // That of the library is tanh.
        let function = fields["activation_function"].as_str().unwrap_or("Tanh");
        if !function.ends_with("Identity") {
            let what = format!("has the activation {function}, which llama.cpp does not support");
            return Err(refused(&what));
        }
        if fields["bias"] != false {
            return Err(refused("has a bias, which GGUF cannot store"));
        }
        for (key, field) in [("feat_in", "in_features"), ("feat_out", "out_features")] {
            let width = fields[field].as_u64().and_then(|width| u32::try_from(width).ok());
            let width = width.ok_or_else(|| refused(&format!("has no width `{field}`")))?;
            keys.set(&format!("{ours}_{key}"), width);
        }
    }
    Ok(())
}

/// Maps the weight of a dense layer.
pub fn dense(name: &str) -> Option<Mapping> {
    let (of, name) = name.split_once('/')?;
    let (_, ours) = DENSE.iter().find(|(file, _)| folder(file) == of)?;
    (name == "linear.weight").then(|| Mapping::one(format!("{ours}.weight"), []))
}

/// Returns the module files that describe the pooling and the dense layers of the model.
pub fn module_files(model: &Model) -> Vec<(&'static str, Value)> {
    let number = |key: &str| count(model, key);
    let kind = number("pooling_type");
    if !KINDS.iter().any(|(_, _, number)| kind == Some((*number).into())) {
        return Vec::new();
    }
    let mut pooling: Map<String, Value> = KINDS
        .iter()
        .map(|(field, _, number)| ((*field).to_owned(), (kind == Some((*number).into())).into()))
        .collect();
    pooling.insert("word_embedding_dimension".into(), number("embedding_length").into());
    let mut folders = vec![("", "Transformer"), ("1_Pooling", "Pooling")];
    let mut files = vec![("1_Pooling/config.json", Value::from(pooling))];
    for (file, ours) in DENSE {
        let widths = ["feat_in", "feat_out"].map(|key| number(&format!("{ours}_{key}")));
        let [Some(from), Some(to)] = widths else { continue };
        folders.push((folder(file), "Dense"));
        let function = "torch.nn.modules.linear.Identity";
        let config = json!({"in_features": from, "out_features": to, "bias": false,
            "activation_function": function});
        files.push((file, config));
    }
    let module = |(number, (path, class)): (usize, (&str, &str))| {
        let class = format!("sentence_transformers.models.{class}");
        json!({"idx": number, "name": number.to_string(), "path": path, "type": class})
    };
    files.push(("modules.json", folders.into_iter().enumerate().map(module).collect()));
    files
}

/// The foreign names of the matrices.
pub fn dense_names() -> [String; 2] {
    DENSE.map(|(file, _)| format!("{}/linear.weight", folder(file)))
}
