//! Plans for a small synthetic model: every preset against a snapshot, then the effects of options.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test -p gguf-quantize --test integration` regenerates the snapshot.

use std::fmt::Write as _;

use gguf::TensorType as T;
use gguf_quantize::recipe::NamePattern;
use gguf_quantize::recipe::{
    Model, Plan, PlannedTensor, Preset, Reason, RecipeOptions, Target, TensorDesc, plan,
};

/// Enough for an eighth and a sixteenth of the layers to differ.
const LAYERS: u64 = 16;

const LAYER_TENSORS: &[(&str, &[u64])] = &[
    ("attn_norm", &[256]),
    ("attn_q", &[256, 256]),
    ("attn_k", &[256, 128]),
    ("attn_v", &[256, 128]),
    ("attn_output", &[256, 256]),
    ("ffn_norm", &[256]),
    ("ffn_gate", &[256, 768]),
    ("ffn_up", &[256, 768]),
    ("ffn_down", &[768, 256]),
];

fn llama() -> Model {
    Model {
        architecture: "llama".into(),
        layer_count: LAYERS,
        head_count: 8,
        head_count_kv: 4,
        ..Model::default()
    }
}

type Tensor = (String, &'static [u64]);

fn tensors() -> Vec<Tensor> {
    let mut all: Vec<Tensor> = vec![
        ("token_embd.weight".into(), &[256, 2048]),
        ("output_norm.weight".into(), &[256]),
        ("output.weight".into(), &[256, 2048]),
    ];
    for layer in 0..LAYERS {
        all.extend(LAYER_TENSORS.iter().map(|(n, s)| (format!("blk.{layer}.{n}.weight"), *s)));
    }
    all
}

fn describe(tensors: &[Tensor]) -> Vec<TensorDesc<'_>> {
    let ty = |shape: &[u64]| if shape.len() > 1 { T::F16 } else { T::F32 };
    tensors.iter().map(|(name, shape)| TensorDesc { name, shape, ty: ty(shape) }).collect()
}

fn of<'p, 'a>(plan: &'p Plan<'a>, name: &str) -> &'p PlannedTensor<'a> {
    plan.tensors.iter().find(|t| t.source.name == name).unwrap()
}

/// One line per category: its types from the first layer to the last.
fn render(plan: &Plan<'_>) -> String {
    let mut text = String::new();
    for name in ["token_embd", "output", "output_norm"] {
        writeln!(text, "{name}: {}", of(plan, &format!("{name}.weight")).target).unwrap();
    }
    for (kind, _) in LAYER_TENSORS {
        let types: Vec<_> = (0..LAYERS)
            .map(|layer| of(plan, &format!("blk.{layer}.{kind}.weight")).target.name())
            .collect();
        let is_same = types.iter().all(|ty| *ty == types[0]);
        let shown = if is_same { types[0].to_string() } else { types.join(" ") };
        writeln!(text, "{kind}: {shown}").unwrap();
    }
    text
}

#[test]
fn every_preset_matches_the_snapshot() {
    let names = tensors();
    let tensors = describe(&names);
    let mut text = String::new();
    for &preset in Preset::ALL {
        let rendered = [false, true].map(|has_imatrix| {
            let options = RecipeOptions { has_imatrix, ..RecipeOptions::default() };
            render(&plan(Target::Preset(preset), &llama(), &tensors, &options).unwrap())
        });
        let [without, with] = &rendered;
        write!(text, "[{preset}]\n{without}\n").unwrap();
        if with != without {
            write!(text, "[{preset}+imatrix]\n{with}\n").unwrap();
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/recipe.txt");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(path).unwrap(), "types changed; see {path}");
}

/// Plans one matrix with rows of this length.
fn fitted(target: &str, columns: u64) -> Result<(T, Reason), &'static str> {
    let shape = [columns, 32];
    let tensor = TensorDesc { name: "blk.0.attn_q.weight", shape: &shape, ty: T::F32 };
    let plan = plan(target.parse().unwrap(), &llama(), &[tensor], &RecipeOptions::default());
    let plan = plan.map_err(|error| error.code())?;
    Ok((plan.tensors[0].target, plan.tensors[0].reason))
}

#[test]
fn odd_rows_fall_back() {
    for (target, columns, intended, got) in [
        ("Q4_K_S", 100, T::Q4_K, T::F16),
        ("Q4_K_S", 96, T::Q4_K, T::Q5_0),
        ("Q5_K_S", 96, T::Q5_K, T::Q5_1),
        ("Q6_K", 96, T::Q6_K, T::Q8_0),
        ("Q3_K_S", 96, T::Q3_K, T::Q4_0),
        ("Q2_0", 96, T::Q2_0, T::Q4_0),
        ("TQ2_0", 96, T::TQ2_0, T::Q4_0),
        ("IQ4_XS", 96, T::IQ4_XS, T::IQ4_NL),
        ("IQ3_S", 96, T::IQ3_S, T::IQ4_NL),
        ("IQ1_M", 96, T::IQ1_M, T::IQ4_NL),
        ("Q8_0", 100, T::Q8_0, T::F16),
        ("MXFP4", 100, T::MXFP4, T::F16),
    ] {
        let expected = Ok((got, Reason::Fallback { intended }));
        assert_eq!(fitted(target, columns), expected, "{target} {columns}");
    }
    assert_eq!(fitted("Q4_K_S", 512), Ok((T::Q4_K, Reason::Recipe)));
    assert_eq!(fitted("F16", 7), Ok((T::F16, Reason::Recipe)));
    assert_eq!(fitted("Q1_0", 96), Err("type-does-not-fit"));
}

#[test]
fn pure_means_one_type() {
    let names = tensors();
    let tensors = describe(&names);
    let pure = RecipeOptions { pure: true, ..RecipeOptions::default() };
    for (target, options) in [
        (Target::Preset(Preset::Q4_K_M), &pure),
        (Target::Type(T::Q4_K), &pure),
        (Target::Type(T::Q4_K), &RecipeOptions::default()),
    ] {
        let plan = plan(target, &llama(), &tensors, options).unwrap();
        for tensor in &plan.tensors {
            let is_vector = tensor.source.shape.len() == 1;
            let expected =
                if is_vector { (T::F32, Reason::Unchanged) } else { (T::Q4_K, Reason::Recipe) };
            assert_eq!((tensor.target, tensor.reason), expected, "{}", tensor.source.name);
        }
        assert_eq!(target.file_type().map(Preset::default_type), Some(T::Q4_K));
    }
}

#[test]
fn targets_parse() {
    assert_eq!("q4_k".parse(), Ok(Target::Preset(Preset::Q4_K_M)));
    assert_eq!("7".parse(), Ok(Target::Preset(Preset::Q8_0)));
    assert_eq!("mxfp4".parse(), Ok(Target::Type(T::MXFP4)));
    assert_eq!("copy".parse(), Ok(Target::Copy));
    for word in ["Q9", "4", "I32", "Q8_K", ""] {
        assert!(word.parse::<Target>().is_err(), "{word}");
    }
}

fn pattern(text: &str, ty: T) -> (NamePattern, T) {
    (NamePattern::new(text).unwrap(), ty)
}

#[test]
fn options_override_the_preset() {
    let names = tensors();
    let tensors = describe(&names);
    let options = RecipeOptions {
        output_tensor_type: Some(T::Q8_0),
        token_embedding_type: Some(T::Q5_0),
        tensor_types: vec![
            pattern(r"blk\.0\.ffn_down", T::Q3_K),
            pattern("ffn_down|attn_norm", T::Q6_K),
            pattern("ATTN_Q", T::Q2_K),
            pattern("token_embd|output", T::F32),
        ],
        ..RecipeOptions::default()
    };
    for preset in [Preset::Q4_K_M, Preset::F16] {
        let plan = plan(Target::Preset(preset), &llama(), &tensors, &options).unwrap();
        let got = |name| (of(&plan, name).target, of(&plan, name).reason);
        assert_eq!(got("output.weight"), (T::Q8_0, Reason::Override));
        assert_eq!(got("token_embd.weight"), (T::Q5_0, Reason::Override));
        assert_eq!(got("blk.0.ffn_down.weight"), (T::Q3_K, Reason::Override));
        assert_eq!(got("blk.1.ffn_down.weight"), (T::Q6_K, Reason::Override));
        assert_eq!(got("blk.1.attn_norm.weight"), (T::F32, Reason::Unchanged));
        assert_eq!(got("blk.1.attn_q.weight"), (preset.default_type(), Reason::Recipe));
    }

    let impossible = RecipeOptions { tensor_types: vec![pattern("ffn_up", T::Q4_2)], ..options };
    let error = plan(Target::Preset(Preset::Q4_0), &llama(), &tensors, &impossible).unwrap_err();
    let expected = "`blk.0.ffn_up.weight` cannot become Q4_2, a removed type; \
                    choose another type";
    assert_eq!((error.code(), &*error.to_string()), ("type-not-current", expected));
}

#[test]
fn tensors_matched_by_a_pattern_are_not_counted() {
    let names = tensors();
    let tensors = describe(&names);
    let options = RecipeOptions {
        tensor_types: vec![pattern(r"blk\.[01]\.attn_v", T::Q8_0)],
        ..RecipeOptions::default()
    };
    // Q3_K_M raises the first two value projections in the order of the tensors.
    let plan = plan(Target::Preset(Preset::Q3_K_M), &llama(), &tensors, &options).unwrap();
    let types: Vec<_> =
        (0..5).map(|n| of(&plan, &format!("blk.{n}.attn_v.weight")).target).collect();
    assert_eq!(types, [T::Q8_0, T::Q8_0, T::Q5_K, T::Q5_K, T::Q4_K]);
}

#[test]
fn output_can_stay_or_be_tied() {
    let names = tensors();
    let tensors = describe(&names);
    let leave = RecipeOptions { leave_output_tensor: true, ..RecipeOptions::default() };
    let left = plan(Target::Preset(Preset::Q4_K_M), &llama(), &tensors, &leave).unwrap();
    assert_eq!(of(&left, "output.weight").reason, Reason::Unchanged);
    assert_eq!(of(&left, "token_embd.weight").target, T::Q4_K);

    let tied: Vec<_> = tensors.iter().filter(|t| t.name != "output.weight").copied().collect();
    let embedding = |options: &RecipeOptions| {
        let plan = plan(Target::Preset(Preset::Q4_K_M), &llama(), &tied, options).unwrap();
        let tensor = of(&plan, "token_embd.weight");
        (tensor.target, tensor.reason)
    };
    assert_eq!(embedding(&RecipeOptions::default()), (T::Q6_K, Reason::Recipe));
    let output = RecipeOptions { output_tensor_type: Some(T::Q8_0), ..RecipeOptions::default() };
    assert_eq!(embedding(&output), (T::Q8_0, Reason::Override));
    let pure = RecipeOptions { pure: true, ..output };
    assert_eq!(embedding(&pure), (T::Q4_K, Reason::Recipe));
}

#[test]
fn layers_count_by_number_unless_order_is_kept() {
    let names = tensors();
    let mut tensors = describe(&names);
    tensors.reverse();
    let first_and_last = |options: &RecipeOptions| {
        let plan = plan(Target::Preset(Preset::Q3_K_M), &llama(), &tensors, options).unwrap();
        [0, LAYERS - 1].map(|n| of(&plan, &format!("blk.{n}.attn_v.weight")).target)
    };
    assert_eq!(first_and_last(&RecipeOptions::default()), [T::Q5_K, T::Q4_K]);
    let keep_order = RecipeOptions { keep_order: true, ..RecipeOptions::default() };
    assert_eq!(first_and_last(&keep_order), [T::Q4_K, T::Q5_K]);
}

#[test]
fn missing_importance_weights_are_listed() {
    let names = tensors();
    let tensors = describe(&names);
    let plan = plan(Target::Preset(Preset::Q2_K_S), &llama(), &tensors, &RecipeOptions::default())
        .unwrap();
    // All tensors except vectors, embeddings, output, and ffn_down of the first eighth.
    let missing = plan.check_imatrix(|_| false).unwrap_err();
    assert_eq!(missing.tensors.len(), 7 * 16 - 2);
    let missing = plan.check_imatrix(|name| !name.contains(".3.attn_k")).unwrap_err();
    assert_eq!(missing.tensors, [("blk.3.attn_k.weight".to_owned(), T::Q2_K)]);
    assert_eq!(
        missing.to_string(),
        "unusable without importance weights: `blk.3.attn_k.weight` as Q2_K"
    );
    assert_eq!(plan.check_imatrix(|_| true), Ok(()));
}

#[test]
fn unknown_architectures_follow_the_general_rules() {
    let names = tensors();
    let tensors = describe(&names);
    let known = plan(Target::Preset(Preset::Q4_K_M), &llama(), &tensors, &RecipeOptions::default())
        .unwrap();
    // Without metadata too: layers are counted by name.
    let model = Model::from_keys("never-heard-of", |_| None);
    let unknown =
        plan(Target::Preset(Preset::Q4_K_M), &model, &tensors, &RecipeOptions::default()).unwrap();
    assert_eq!(unknown, known);
}

#[test]
fn expert_names_determine_the_layer() {
    let model = Model { expert_count: 4, ..llama() };
    // Two experts per layer, each a separate tensor: the second expert of layer 1 is the fourth
    // tensor.
    let names: Vec<_> = (0..LAYERS)
        .flat_map(|layer| (0..2).map(move |e| format!("blk.{layer}.ffn_down.{e}.weight")))
        .collect();
    let tensors: Vec<_> =
        names.iter().map(|name| TensorDesc { name, shape: &[768, 256], ty: T::F16 }).collect();
    let plan =
        plan(Target::Preset(Preset::Q4_K_S), &model, &tensors, &RecipeOptions::default()).unwrap();
    let raised: Vec<_> =
        plan.tensors.iter().filter(|t| t.target == T::Q5_K).map(|t| t.source.name).collect();
    assert_eq!(raised, names[..4]);
}

#[test]
fn copy_keeps_all_types() {
    let names = tensors();
    let tensors = describe(&names);
    let plan = plan(Target::Copy, &llama(), &tensors, &RecipeOptions::default()).unwrap();
    assert!(plan.tensors.iter().all(|t| t.target == t.source.ty && t.reason == Reason::Unchanged));
}

/// The file types of the format agree with every preset.
#[test]
fn presets_are_file_types() {
    for preset in Preset::ALL {
        let file_type = gguf::file_type(preset.number().into()).unwrap();
        assert_eq!((file_type.name, file_type.main), (preset.name(), preset.default_type()));
    }
}
