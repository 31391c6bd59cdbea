//! Which file or quantization type of a model fits a machine: memory, context, expected speed and loss of each, from
//! headers and from measured kernels.

mod choice;
mod losses;
mod planned_model;
mod speed;

pub use choice::{
    Candidate, Choice, NEGLIGIBLE_LOSS, Reason, Recommendation, Request, Task, recommend,
};
pub use losses::{Loss, LossOrigin};
pub use planned_model::planned_model;
pub use speed::{MachineSpeed, Speed};
