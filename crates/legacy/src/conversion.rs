//! A job for the pipeline from an old model.

use gguf::{ByteOrder, Error, ModelName, Shape, TensorType};
use gguf_pipeline::{Content, Item, Job, Tensor};
use gguf_quantize::recipe::Target;

use super::choice::{self, Change, How};
use super::model::{Legacy, Options};

/// A conversion that is ready to run.
pub struct Conversion {
    /// What to write.
    pub job: Job,
    /// What the output is to be called where nothing else is said.
    pub file_name: String,
    /// What the user should know.
    pub notes: Vec<String>,
    /// What becomes of each tensor of the job.
    pub changes: Vec<Change>,
}

impl Legacy {
    /// Plans the conversion.
    ///
    /// # Errors
    /// If a tensor cannot have the type that it should, or the tensors do not make up a model of
    /// the architecture.
    pub fn plan(&self, options: &Options) -> Result<Conversion, Error> {
        let mut notes = self.notes.clone();
        let plain: Vec<Tensor> =
            self.tensors.iter().map(|tensor| self.floats(tensor)).collect::<Result<_, _>>()?;
        let target = options.outtype.filter(|target| *target != Target::Copy);
        let (mut items, mut changes) = match target {
            None => self.exact(plain)?,
            Some(target) => self.wanted(plain, target, &options.quantization, &mut notes)?,
        };
        items.extend(self.filters().map(|tensor| Item::new(tensor, TensorType::F32)));
        changes.extend(self.filters().map(|tensor| Change {
            name: tensor.name,
            from: "F32".into(),
            to: TensorType::F32,
            how: How::AsItIs,
        }));
        notes.extend(choice::summary(&changes, target));
        let file_type = self.file_type(target, &items, &changes)?;
        let mut metadata = self.keys(file_type, options);
        gguf_quantize::set_overrides(&mut metadata, &options.quantization);
        let job = Job { metadata, items, check_finite: true, order: ByteOrder::Little };
        self.check_architecture(&job)?;
        let file_name = self.file_name(file_type, &job.items);
        Ok(Conversion { job, file_name, notes, changes })
    }

    /// The name of the old file by the naming convention, with the type of the new one: `model-f16.bin`
    /// becomes `model-7B-Q4_K_M.gguf`.
    fn file_name(&self, file_type: u32, items: &[Item]) -> String {
        let stem = self.old.path.file_stem().unwrap_or_default().to_string_lossy();
        let Some(known) = gguf::file_type(file_type.into()) else {
            return format!("{stem}.gguf");
        };
        let tensors = items.iter().map(|item| (&*item.tensor.name, &item.tensor.shape[..]));
        ModelName::of_output(&stem, tensors, known.name).to_string()
    }

    /// Whisper's filter bank, which other files do not hold.
    fn filters(&self) -> impl Iterator<Item = Tensor> {
        self.old.vocabulary.filters.iter().filter_map(|filters| {
            Some(Tensor {
                name: "mel_filters".to_owned(),
                shape: Shape::new(&[filters.columns.into(), filters.rows.into()])?,
                stored_type: TensorType::F32,
                content: Content::Values(filters.values.clone()),
            })
        })
    }

    /// The tensors are those of the architecture, in its shapes.
    fn check_architecture(&self, job: &Job) -> Result<(), Error> {
        const CODES: [&str; 5] =
            ["tensor-missing", "tensor-unexpected", "tensor-shape", "layer-count", "vocab-rows"];
        let findings = gguf_check::check_raw_header(&job.header()?.into_raw());
        match findings.iter().find(|finding| CODES.contains(&finding.code)) {
            Some(finding) => {
                let what = format!("does not make up a {} model: {finding}", self.architecture);
                let help = "the file is damaged; if not, name its program with --architecture";
                Err(Error::input("legacy-misfit", &self.old.path, what, help))
            }
            None => Ok(()),
        }
    }
}
