//! What is to be made of an original.

use gguf_pipeline::Job;
use gguf_quantize::recipe::{Mix, Target};

use super::Options;
use super::report::LeftOut;
use crate::Error;
use crate::calibration::Ready;
use crate::eval::Opened;

/// Which types are measured.
#[derive(Clone, Debug, Default)]
pub enum Types {
    /// Those that people publish.
    #[default]
    Common,
    /// Every mix.
    All,
    /// These.
    Listed(Vec<Target>),
}

/// The mixes that people publish, those for importance matrices included.
const COMMON: [Mix; 15] = [
    Mix::Q8_0,
    Mix::Q6_K,
    Mix::Q5_K_M,
    Mix::Q5_K_S,
    Mix::Q4_K_M,
    Mix::Q4_K_S,
    Mix::IQ4_XS,
    Mix::Q4_0,
    Mix::Q3_K_L,
    Mix::Q3_K_M,
    Mix::Q3_K_S,
    Mix::IQ3_XXS,
    Mix::Q2_K,
    Mix::IQ2_M,
    Mix::IQ2_XS,
];

/// A mix that is to be made.
pub(super) struct Planned {
    pub name: String,
    pub job: Job,
    /// Whether its weights are rounded by what a text shows.
    pub calibrated: bool,
}

/// What the name of a mix ends with then.
const CALIBRATED: &str = " calibrated";

/// A job for each type, and the types for which there is none: what a list names is to be had, or else
/// an error.
pub(super) fn plans(
    opened: &Opened,
    options: &Options,
    ready: Option<&Ready>,
) -> Result<(Vec<Planned>, Vec<LeftOut>), Error> {
    let targets: Vec<Target> = match &options.types {
        Types::Common => COMMON.map(Target::Mix).to_vec(),
        Types::All => Mix::ALL.iter().copied().map(Target::Mix).collect(),
        Types::Listed(targets) => targets.clone(),
    };
    let named = matches!(options.types, Types::Listed(_));
    let mut quantization = gguf_quantize::Options {
        allow_requantize: options.allow_requantize,
        ..gguf_quantize::Options::default()
    };
    if let Some(imatrix) = &options.imatrix {
        imatrix.add_to(&mut quantization)?;
    }
    let model = opened.model();
    let data: u64 = model.tensors().iter().map(|tensor| tensor.info.byte_len().unwrap_or(0)).sum();
    let (mut plans, mut left_out) = (Vec::<Planned>::new(), Vec::<LeftOut>::new());
    for target in targets {
        let name = target.to_string();
        if plans.iter().any(|other| other.name == name) {
            continue;
        }
        let planned = gguf_quantize::plan(model, target, &quantization)
            .and_then(|planned| Ok((planned.job.header()?.data_len(), planned.job)));
        // The smallest mixes need weights for columns, which a text gives, too.
        let mut wanted = true;
        match planned {
            Ok((len, _)) if len >= data && !named => {
                let why = "no smaller than the original".to_owned();
                left_out.push(LeftOut { name: name.clone(), why });
                wanted = false;
            }
            Ok((_, job)) => plans.push(Planned { name: name.clone(), job, calibrated: false }),
            Err(error) if (!named || ready.is_some()) && reason(&error).is_some() => {
                let why = reason(&error).unwrap_or_default();
                wanted = why == NEEDS_WEIGHTS;
                left_out.push(LeftOut { name: name.clone(), why: why.to_owned() });
            }
            Err(error) => return Err(error),
        }
        if let Some(ready) = ready.filter(|_| wanted) {
            let mut told = quantization.clone();
            ready.tell(&mut told);
            let mut job = gguf_quantize::plan(model, target, &told)?.job;
            ready.restore(&mut job, quantization.importance.as_ref());
            plans.push(Planned { name: name + CALIBRATED, job, calibrated: true });
        }
    }
    Ok((plans, left_out))
}

/// Why the smallest mixes cannot be had.
const NEEDS_WEIGHTS: &str = "needs an importance matrix";

/// Why a type cannot be had of this original, if that is no fault.
fn reason(error: &Error) -> Option<&'static str> {
    match error.code() {
        "imatrix-needed" => Some(NEEDS_WEIGHTS),
        "type-does-not-fit" => Some("its blocks do not fit the rows of this model"),
        _ => None,
    }
}
