//! Plans the pipeline job that converts a legacy model.

use gguf::{ByteOrder, Error, ModelName, Shape, TensorType};
use gguf_pipeline::{Content, Item, Job, Tensor};
use gguf_quantize::recipe::Target;

use super::model::{LegacyModel, LegacyOptions};
use super::target_types::{self, Change, Fidelity};

/// A planned conversion.
pub struct Conversion {
    /// The job that writes the output.
    pub job: Job,
    /// Default file name of the output.
    pub file_name: String,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// The type conversion of each tensor of the job.
    pub changes: Vec<Change>,
}

impl LegacyModel {
    /// Plans the conversion.
    ///
    /// # Errors
    /// If a tensor cannot have its target type, or the tensors do not match the architecture.
    pub fn plan(&self, options: &LegacyOptions) -> Result<Conversion, Error> {
        let mut notes = self.notes.clone();
        let plain: Vec<Tensor> =
            self.tensors.iter().map(|tensor| self.plain(tensor)).collect::<Result<_, _>>()?;
        let target = options.outtype.filter(|target| *target != Target::Copy);
        let (mut items, mut changes) = match target {
            None => self.lossless_types(plain)?,
            Some(target) => {
                self.requested_types(plain, target, &options.quantization, &mut notes)?
            }
        };
        items.extend(self.filters().map(|tensor| Item::new(tensor, TensorType::F32)));
        changes.extend(self.filters().map(|tensor| Change {
            name: tensor.name,
            from: "F32".into(),
            to: TensorType::F32,
            fidelity: Fidelity::Unchanged,
        }));
        notes.extend(target_types::summary(&changes, target));
        let file_type = self.file_type(target, &items, &changes)?;
        let mut metadata = self.keys(file_type, options);
        gguf_quantize::set_overrides(&mut metadata, &options.quantization);
        let job = Job { metadata, items, check_finite: true, order: ByteOrder::Little };
        self.check_architecture(&job)?;
        let file_name = self.file_name(file_type, &job.items);
        Ok(Conversion { job, file_name, notes, changes })
    }

    /// Name of the legacy file under the naming convention, with the output type: `model-f16.bin`
    /// becomes `model-7B-Q4_K_M.gguf`.
    fn file_name(&self, file_type: u32, items: &[Item]) -> String {
        let stem = self.file.path.file_stem().unwrap_or_default().to_string_lossy();
        let Some(known) = gguf::file_type(file_type.into()) else {
            return format!("{stem}.gguf");
        };
        let tensors = items.iter().map(|item| (&*item.tensor.name, &item.tensor.shape[..]));
        ModelName::for_output(&stem, tensors, known.name).to_string()
    }

    /// Whisper's mel filter bank, which no other legacy format stores.
    fn filters(&self) -> impl Iterator<Item = Tensor> {
        self.file.vocabulary.filters.iter().filter_map(|filters| {
            Some(Tensor {
                name: "mel_filters".to_owned(),
                shape: Shape::new(&[filters.columns.into(), filters.rows.into()])?,
                stored_type: TensorType::F32,
                content: Content::Values(filters.values.clone()),
            })
        })
    }

    /// Checks that the tensors are those of the architecture and have its shapes.
    fn check_architecture(&self, job: &Job) -> Result<(), Error> {
        const CODES: [&str; 5] =
            ["tensor-missing", "tensor-unexpected", "tensor-shape", "layer-count", "vocab-rows"];
        let findings = gguf_check::check_raw_header(&job.header()?.into_raw());
        match findings.iter().find(|finding| CODES.contains(&finding.code)) {
            Some(finding) => {
                let what = format!("tensors do not match a {} model: {finding}", self.architecture);
                let help =
                    "the file is damaged; if it is not, specify the model with --architecture";
                Err(Error::input("legacy-misfit", &self.file.path, what, help))
            }
            None => Ok(()),
        }
    }
}
