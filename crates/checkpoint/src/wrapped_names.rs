//! Names of tensors that training libraries wrap.

use std::collections::BTreeSet;

use gguf::Error;

use super::raw::Raw;
use super::weight_file::WeightFile;

/// Parts of names that wrappers insert, with the library that does.
const WRAPPERS: [(&str, &str); 5] = [
    ("_orig_mod", "torch.compile"),
    ("module", "DataParallel"),
    ("_fsdp_wrapped_module", "FSDP"),
    ("_checkpoint_wrapped_module", "activation checkpointing"),
    ("_forward_module", "DeepSpeed"),
];

/// Prefix of all names of a PEFT model.
const PEFT_PREFIX: &str = "base_model.model.";

/// Part of the names of weights that PEFT adapts.
const BASE_LAYER: &str = ".base_layer.";

/// Infixes of the matrices that PEFT trains.
const ADAPTERS: [&str; 4] = [".lora_A.", ".lora_B.", ".lora_embedding_A", ".lora_embedding_B"];

/// Removes wrappers from the names of tensors. Returns a note for each kind that was removed.
pub(crate) fn unwrap(raws: &mut [Raw]) -> Vec<String> {
    let mut removed: Vec<(&str, &str, usize)> =
        WRAPPERS.iter().map(|(part, library)| (*part, *library, 0)).collect();
    for raw in raws {
        let Some((module, tensor)) = raw.name.rsplit_once('.') else { continue };
        for (part, _, count) in &mut removed {
            *count += usize::from(module.split('.').any(|other| other == *part));
        }
        let is_wrapper = |part: &str| WRAPPERS.iter().any(|(wrapper, _)| *wrapper == part);
        let kept: Vec<&str> = module.split('.').filter(|part| !is_wrapper(part)).collect();
        raw.name = kept.into_iter().chain([tensor]).collect::<Vec<_>>().join(".");
    }
    removed.retain(|(_, _, count)| *count > 0);
    let note = |(part, library, count)| {
        format!("removed `{part}.` of {library} from the names of {count} tensors")
    };
    removed.into_iter().map(note).collect()
}

/// Removes what PEFT adds to the names of a whole model. Names of classes with built-in adapters stay.
///
/// # Errors
/// `checkpoint-adapter-unmerged` if the checkpoint holds matrices of a PEFT adapter.
pub(crate) fn unwrap_peft(raws: &mut [Raw], files: &[WeightFile]) -> Result<Vec<String>, Error> {
    let is_adapter = |raw: &&Raw| {
        let ends = raw.name.ends_with(".weight") || raw.name.contains(".lora_embedding_");
        ends && ADAPTERS.iter().any(|infix| raw.name.contains(infix))
    };
    let unmerged = raws.iter().find(is_adapter);
    if let Some(raw) = unmerged {
        let what = format!("has the tensor `{}` of a LoRA adapter that is not merged", raw.name);
        let help = "merge it with PEFT's `merge_and_unload` and save the model again; or save the adapter alone \
                    with `save_pretrained` and convert it with --base";
        return Err(Error::input("checkpoint-adapter-unmerged", &files[raw.file].path, what, help));
    }
    let adapted: BTreeSet<String> =
        raws.iter().filter_map(|raw| Some(raw.name.split_once(".lora_")?.0.to_owned())).collect();
    let mut counts = [0; 2];
    for raw in raws {
        while let Some(rest) = raw.name.strip_prefix(PEFT_PREFIX) {
            raw.name = rest.to_owned();
            counts[0] += 1;
        }
        if let Some((module, tensor)) = raw.name.rsplit_once(BASE_LAYER)
            && !adapted.contains(module)
        {
            raw.name = format!("{module}.{tensor}");
            counts[1] += 1;
        }
    }
    let found = [PEFT_PREFIX, &BASE_LAYER[1..]].into_iter().zip(counts).filter(|(_, n)| *n > 0);
    Ok(found
        .map(|(part, count)| format!("removed `{part}` of PEFT from the names of {count} tensors"))
        .collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use safetensors::tensor::{Dtype, TensorView};

    use crate::Checkpoint;

    fn write(path: &Path, names: &[&str]) {
        let data = [0; 8];
        let views =
            names.iter().map(|name| (*name, TensorView::new(Dtype::F32, vec![2], &data).unwrap()));
        std::fs::write(path, ::safetensors::serialize(views, None).unwrap()).unwrap();
    }

    fn names(dir: &Path, stored: &[&str]) -> Result<(Vec<String>, Vec<String>), gguf::Error> {
        write(&dir.join("model.safetensors"), stored);
        let opened = Checkpoint::open(dir)?;
        let names = opened.entries.into_iter().map(|entry| entry.name).collect();
        Ok((names, opened.notes))
    }

    #[test]
    fn wrappers_are_removed_with_a_note() {
        let dir = tempfile::tempdir().unwrap();
        let cases = [
            ("_orig_mod.model.norm.weight", "_orig_mod."),
            ("module.model.norm.weight", "module."),
            ("module._orig_mod.model.norm.weight", "torch.compile"),
            ("model._fsdp_wrapped_module.norm.weight", "FSDP"),
            ("base_model.model.model.norm.weight", "base_model.model."),
            ("model.norm.base_layer.weight", "base_layer."),
            ("_orig_mod.base_model.model.model.norm.base_layer.weight", "PEFT"),
            ("module.base_model.model._orig_mod.model.norm.module.weight", "DataParallel"),
        ];
        for (name, note) in cases {
            let (names, notes) = names(dir.path(), &[name]).unwrap();
            assert_eq!(names, ["model.norm.weight"], "{name}");
            assert!(notes.iter().any(|found| found.contains(note)), "{name}: {notes:?}");
        }
    }

    #[test]
    fn other_names_stay() {
        let dir = tempfile::tempdir().unwrap();
        // The last two are of a class with built-in adapters.
        let stored = ["model.modules.weight", "module", "x.base_layer.weight", "x.lora_A"];
        let (mut found, notes) = names(dir.path(), &stored).unwrap();
        found.sort_unstable();
        let mut stored = stored.map(str::to_owned);
        stored.sort_unstable();
        assert_eq!((&found[..], notes), (&stored[..], vec![]));
    }

    #[test]
    fn names_that_become_equal_and_unmerged_adapters_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let twice = ["model.norm.weight", "module.model.norm.weight"];
        assert!(names(dir.path(), &twice).is_err());
        for name in ["x.lora_A.default.weight", "base_model.model.x.lora_B.weight"] {
            let error = names(dir.path(), &["x.base_layer.weight", name]).unwrap_err();
            assert_eq!(error.code(), "checkpoint-adapter-unmerged");
        }
    }
}
